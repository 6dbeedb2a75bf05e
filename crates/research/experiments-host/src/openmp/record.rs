//! What a run gives.

use crate::harness::ManagerFigures;
use serde::{Deserialize, Serialize};
use symbiont_campaign::{FinishedRun, InRound};

use super::kernels::Outcome;
use super::plan::RunKind;
use crate::orders::OrderTimes;

/// What a run gives.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OpenmpRecord {
    /// What the kernels report: of one alone that one; of two in both orders the first
    /// and second of the one sequence, then those of the other.
    pub outcomes: Vec<Outcome>,
    /// What the manager reports; absent for runs alone.
    pub managed: Option<ManagerFigures>,
}

impl OpenmpRecord {
    /// What both orders took; none for a kernel alone.
    #[must_use]
    pub fn took(&self) -> Option<OrderTimes> {
        let [ab_a, ab_b, ba_b, ba_a] = self.outcomes.as_slice() else { return None };
        let seconds = |outcome: &Outcome| outcome.end - outcome.begin;
        let programs = [[seconds(ab_a), seconds(ba_a)], [seconds(ab_b), seconds(ba_b)]];
        let end = ab_b.end.max(ba_a.end);
        Some(OrderTimes { programs, completion: end - ab_a.begin.min(ba_b.begin) })
    }

    /// Where its time went; none for a kernel alone.
    #[must_use]
    pub fn spent(&self) -> Option<TimeSpent> {
        let [_, ab_b, _, ba_a] = self.outcomes.as_slice() else { return None };
        let cpu_s = self.outcomes.iter().map(|outcome| outcome.cpu_s).sum();
        Some(TimeSpent { cpu_s, alone_s: (ab_b.end - ba_a.end).abs() })
    }
}

/// Where the time of two kernels in both orders went.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct TimeSpent {
    /// CPU seconds of all four runs.
    pub cpu_s: f64,
    /// Seconds for which one sequence was alone at the end.
    pub alone_s: f64,
}

/// A finished run.
pub type KernelsRun = FinishedRun<InRound<RunKind>, OpenmpRecord>;
