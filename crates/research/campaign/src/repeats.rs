//! How often a comparison is repeated.

use serde::{Deserialize, Serialize};

use symbiont_report::stats::mean_estimate_at;

/// One of this many comparisons of equal contenders may find a difference.
const OF: f64 = 40.0;

/// Repeats are added until a paired gain is decided, or a cap is reached.
///
/// What is finished is looked at after the fewest repeats, and then each time that their number has
/// doubled. An interval that is looked at several times excludes zero by chance more often than one
/// that is looked at once; so each look takes its share of the error (Bonferroni), and all of them
/// together find a difference where there is none in at most one of forty cases.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Repeats {
    /// Fewest, at least 2.
    pub least: u32,
    /// Most.
    pub most: u32,
    /// A gain whose interval is at most so wide on either side is decided to be none of interest.
    pub narrow: f64,
}

/// What the repeats so far say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// The interval excludes zero.
    Differs,
    /// The interval holds zero and is narrow.
    Equal,
    /// Neither: more repeats are needed, or the cap was reached.
    Undecided,
}

impl Repeats {
    /// Exactly this many.
    #[must_use]
    pub fn exactly(count: u32) -> Self {
        Self { least: count, most: count, narrow: 0.0 }
    }

    /// How many repeats there are at each look.
    pub fn looks(self) -> impl Iterator<Item = u32> {
        let most = self.most.max(self.least).max(1);
        let more = move |at: &u32| (*at < most).then(|| at.saturating_mul(2).min(most));
        std::iter::successors(Some(self.least.clamp(1, most)), more)
    }

    /// How many repeats there should be once this many are done; the same number when there are enough.
    pub fn wanted(self, done: u32, decided: impl FnOnce() -> bool) -> u32 {
        let next = self.looks().find(|look| *look > done);
        match next {
            None => done,
            Some(_) if self.looks().any(|look| look == done) && decided() => done,
            Some(next) => next,
        }
    }

    /// What gains of repeats say, with the error of one look.
    #[must_use]
    pub fn decide(self, gains: &[f64]) -> Decision {
        let error = 1.0 / OF / self.looks().count() as f64;
        let gain = mean_estimate_at(gains, 1.0 - error).ok();
        match gain.and_then(|gain| gain.interval) {
            Some(interval) if !interval.contains(0.0) => Decision::Differs,
            Some(interval) if interval.width() <= 2.0 * self.narrow => Decision::Equal,
            _ => Decision::Undecided,
        }
    }
}
