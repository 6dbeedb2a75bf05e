//! Objectives: what a co-schedule is judged by.

use serde::{Deserialize, Serialize};

/// The sum over all threads that is minimised.
///
/// Throughput is not linear (1/slowdown), so it prefers one pairing to another even
/// where slowdowns only add up; the other two do not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Objective {
    /// Σ slowdown against throttled speed (Feliu et al., section 3.2).
    Slowdown,
    /// −STP: −Σ isolated CPI / co-running CPI.
    Stp,
    /// ANTT times the number of threads: Σ co-running CPI / isolated CPI. Where
    /// no thread is throttled, or all are alike, it orders coschedules as
    /// [`Objective::Slowdown`] does.
    Antt,
}

impl Objective {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Slowdown, Self::Stp, Self::Antt];

    /// The name that files and reports use.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Slowdown => "slowdown",
            Self::Stp => "stp",
            Self::Antt => "antt",
        }
    }

    /// What one thread adds, from its slowdown against throttled speed and
    /// the ratio of throttled to isolated CPI.
    #[must_use]
    pub fn cost(self, slowdown: f64, throttling: f64) -> f64 {
        match self {
            Self::Slowdown => slowdown,
            Self::Stp => -1.0 / (slowdown * throttling),
            Self::Antt => slowdown * throttling,
        }
    }
}

/// STP of a coschedule: Σ 1/slowdown, slowdowns against isolated speed.
#[must_use]
pub fn stp(slowdowns: &[f64]) -> f64 {
    slowdowns.iter().map(|slowdown| 1.0 / slowdown).sum()
}

/// ANTT of a coschedule: the mean slowdown against isolated speed; none for
/// no threads.
#[must_use]
pub fn antt(slowdowns: &[f64]) -> Option<f64> {
    (!slowdowns.is_empty()).then(|| slowdowns.iter().sum::<f64>() / slowdowns.len() as f64)
}
