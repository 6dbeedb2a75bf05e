//! How far the fast level may be off to be called checked.

use super::LevelComparison;

/// Limits of agreement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gates {
    /// Largest mean error of STP.
    pub stp: f64,
    /// Least rank correlation of slowdowns.
    pub rank: f64,
}

impl Default for Gates {
    /// STP within 5 %, slowdowns ranked alike to 0.95.
    fn default() -> Self {
        Self { stp: 0.05, rank: 0.95 }
    }
}

impl Gates {
    /// Why a comparison does not pass; none if it does. What could not be measured does not.
    #[must_use]
    pub fn missed(&self, compared: &LevelComparison) -> Option<String> {
        let (stp, rank) = (compared.stp.error, compared.slowdown.rank);
        let mut missed = Vec::new();
        if !stp.is_finite() || stp > self.stp {
            missed.push(format!("STP errs by {}, more than {}", percent(stp), percent(self.stp)));
        }
        match rank {
            None => missed.push("slowdowns have no ranks".to_owned()),
            Some(rank) if rank < self.rank => {
                missed.push(format!("slowdowns rank alike to {rank:.2}, less than {}", self.rank));
            }
            Some(_) => {}
        }
        (!missed.is_empty()).then(|| missed.join("; "))
    }
}

/// What a description is marked with as checked on a day (`2026-01-31`): the figures of all
/// comparisons. None unless all of them, at least one, pass.
#[must_use]
pub fn mark(
    compared: &[LevelComparison],
    gates: &Gates,
    programs: usize,
    day: &str,
) -> Option<String> {
    if compared.is_empty() || compared.iter().any(|one| gates.missed(one).is_some()) {
        return None;
    }
    let figures = compared.iter().map(|one| {
        let rank = one.slowdown.rank.unwrap_or(f64::NAN);
        format!(
            "SMT{}: STP within {}, slowdowns rank alike to {rank:.3} ({} groups)",
            one.threads,
            percent(one.stp.error),
            one.groups
        )
    });
    let figures: Vec<String> = figures.collect();
    Some(format!(
        "checked against the cycle level on {day} with {programs} programs; {}",
        figures.join("; ")
    ))
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}
