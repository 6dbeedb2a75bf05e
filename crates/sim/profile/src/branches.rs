//! Branches, and how often predictors of several kinds and sizes mispredict them.

use serde::{Deserialize, Serialize};

/// How a predictor finds what a branch does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Prediction {
    /// In one table of two-bit counters, indexed by the address and by as many of the last branches as the index
    /// has bits (McFarling).
    Gshare,
    /// In tagged tables for histories of many lengths (Seznec and Michaud).
    Tage,
}

/// A simulated predictor: its kind and its size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PredictorConfig {
    /// Its kind.
    pub prediction: Prediction,
    /// Two-bit counters, or tagged entries.
    pub entries: u32,
}

const fn gshare(entries: u32) -> PredictorConfig {
    PredictorConfig { prediction: Prediction::Gshare, entries }
}

const fn tage(entries: u32) -> PredictorConfig {
    PredictorConfig { prediction: Prediction::Tage, entries }
}

/// How many predictors were simulated.
pub const PREDICTORS: usize = 6;

/// The simulated predictors. Of each kind, each is half the one before, since threads that share a predictor of B
/// entries have B/2, B/4, … each.
pub const PREDICTOR_CONFIGS: [PredictorConfig; PREDICTORS] =
    [gshare(16_384), gshare(8_192), gshare(4_096), gshare(2_048), tage(10_240), tage(5_120)];

impl PredictorConfig {
    /// The best one of them, as an index into [`PREDICTOR_CONFIGS`].
    pub const BEST: usize = 4;

    /// The simulated predictor of a kind whose size is nearest, by ratio, to a number of entries: its index into
    /// [`PREDICTOR_CONFIGS`].
    #[must_use]
    pub fn nearest(prediction: Prediction, entries: f64) -> usize {
        let distance = |config: &Self| (entries.max(1.0) / f64::from(config.entries)).ln().abs();
        let configs = PREDICTOR_CONFIGS.iter().enumerate();
        let of_kind = configs.filter(|(_, config)| config.prediction == prediction);
        let nearest = of_kind.min_by(|a, b| distance(a.1).total_cmp(&distance(b.1)));
        nearest.map_or(0, |(index, _)| index)
    }
}

/// Branches of a phase and their mispredictions.
///
/// A gshare of n entries has a history of log₂ n branches, and a table of n / 16 targets for
/// indirect jumps and calls. A TAGE has histories of up to 128 branches, and of targets too. Both have
/// a stack of 16 return addresses. What no history can know, both mispredict.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Branches {
    /// Branch instructions, of every kind.
    pub executed: u64,
    /// Conditional ones.
    pub conditional: u64,
    /// Those that were taken.
    pub taken: u64,
    /// Jumps and calls through a register or memory; returns are not counted.
    pub indirect: u64,
    /// Mispredictions of any kind, by each of [`PREDICTOR_CONFIGS`].
    pub mispredicted: [u64; PREDICTORS],
}

impl Branches {
    /// Adds all of another stretch of execution.
    pub fn merge(&mut self, other: &Self) {
        self.executed = self.executed.saturating_add(other.executed);
        self.conditional = self.conditional.saturating_add(other.conditional);
        self.taken = self.taken.saturating_add(other.taken);
        self.indirect = self.indirect.saturating_add(other.indirect);
        for (mine, more) in self.mispredicted.iter_mut().zip(&other.mispredicted) {
            *mine = mine.saturating_add(*more);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{PREDICTOR_CONFIGS, Prediction, PredictorConfig};

    #[test]
    fn the_nearest_size_is_of_the_kind() {
        for (index, config) in PREDICTOR_CONFIGS.iter().enumerate() {
            let entries = f64::from(config.entries);
            for entries in [entries, 1.3 * entries, entries / 1.3] {
                assert_eq!(PredictorConfig::nearest(config.prediction, entries), index);
            }
        }
        assert_eq!(PredictorConfig::nearest(Prediction::Gshare, 1e9), 0);
        assert_eq!(PredictorConfig::nearest(Prediction::Gshare, 0.0), 3);
        assert_eq!(PredictorConfig::nearest(Prediction::Tage, 0.0), 5);
    }
}
