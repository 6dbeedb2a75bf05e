//! What an experiment has to show, and whether it does.

use serde::{Deserialize, Serialize};

use symbiont_report::stats::Estimate;
use symbiont_report::{Cell, Column, Highlight, Table};

/// Does the measurement show it?
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Yes.
    Pass,
    /// No.
    Fail,
    /// The runs are too few or too spread to decide.
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

/// How a measured change stands to one that a model predicts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// It goes the same way.
    AsPredicted,
    /// Its interval holds zero.
    Either,
    /// It goes the other way.
    Against,
}

impl Direction {
    /// None where the model predicts less than `least`, or where the measured change has no interval.
    #[must_use]
    pub fn of(predicted: f64, least: f64, measured: &Estimate) -> Option<Self> {
        let interval = measured.interval.filter(|_| predicted.abs() >= least)?;
        Some(match (interval.low > 0.0, interval.high < 0.0) {
            (true, _) if predicted > 0.0 => Self::AsPredicted,
            (_, true) if predicted < 0.0 => Self::AsPredicted,
            (false, false) => Self::Either,
            _ => Self::Against,
        })
    }
}

/// One thing that an experiment has to show.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Check {
    /// What has to hold.
    pub requirement: String,
    /// The figure that decides, where it is one figure.
    pub measured: Option<Estimate>,
    /// What it is compared with.
    pub reference: String,
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
            Column::text("Reference"),
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
                check.reference.clone().into(),
                Cell::from(check.verdict.name()).highlight(highlight),
            ]);
        }
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use symbiont_report::stats::Interval;

    #[test]
    fn a_change_goes_as_predicted_either_way_or_against() {
        let goes = |predicted, low, high| {
            let interval = Some(Interval { low, high });
            Direction::of(predicted, 0.01, &Estimate { interval, ..Estimate::exact(0.0) })
        };
        assert_eq!(goes(0.1, 0.02, 0.05), Some(Direction::AsPredicted));
        assert_eq!(goes(-0.1, -0.05, -0.02), Some(Direction::AsPredicted));
        assert_eq!(goes(0.1, -0.05, 0.02), Some(Direction::Either));
        assert_eq!(goes(0.1, -0.05, -0.02), Some(Direction::Against));
        assert_eq!(goes(-0.1, 0.02, 0.05), Some(Direction::Against));
        assert_eq!(goes(0.001, 0.02, 0.05), None, "too little is predicted");
        assert_eq!(Direction::of(0.1, 0.01, &Estimate::exact(0.2)), None);
    }
}
