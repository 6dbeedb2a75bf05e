//! What an experiment has to show, and whether it does.

use serde::{Deserialize, Serialize};

use crate::report::{Cell, Column, Highlight, Table};
use crate::stats::Estimate;

/// Does the measurement show it?
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Yes.
    Pass,
    /// No.
    Fail,
    /// The runs are too few or too spread to tell.
    Undecided,
}

impl Verdict {
    /// For people.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::Undecided => "undecided",
        }
    }

    /// Pass or fail.
    #[must_use]
    pub fn of(holds: bool) -> Self {
        if holds { Self::Pass } else { Self::Fail }
    }
}

/// One thing that an experiment has to show.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Check {
    /// What has to hold.
    pub requirement: String,
    /// The figure that decides, where it is one figure.
    pub measured: Option<Estimate>,
    /// What stands beside it.
    pub beside: String,
    /// Whether it holds.
    pub verdict: Verdict,
}

impl Check {
    /// Checks as a table.
    #[must_use]
    pub fn table(checks: &[Self]) -> Table {
        let columns = vec![
            Column::text("Requirement"),
            Column::number("Measured"),
            Column::text("Beside it"),
            Column::text("Verdict"),
        ];
        let mut table = Table::new("checks", "What the experiment has to show", columns);
        for check in checks {
            let highlight = match check.verdict {
                Verdict::Pass => Highlight::Plain,
                Verdict::Fail => Highlight::Strong,
                Verdict::Undecided => Highlight::Muted,
            };
            table.row(vec![
                check.requirement.clone().into(),
                check.measured.into(),
                check.beside.clone().into(),
                Cell::from(check.verdict.name()).highlight(highlight),
            ]);
        }
        table
    }
}
