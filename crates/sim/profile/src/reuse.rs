//! Distributions of reuse times, and the miss ratios that follow from them.

use crate::ReuseBin;
use serde::{Deserialize, Serialize};

/// How often each reuse time was seen in one stream of accesses.
///
/// The counts may be of a sample of the lines; only their ratios matter.
/// `accesses` is the number of all accesses of the stream, so that
/// `accesses / instructions` is its rate.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReuseHistogram {
    /// Accesses of the stream, sampled or not.
    pub accesses: u64,
    /// Sampled accesses by [`ReuseBin::index`]; bins at the end that are empty
    /// are left out, and bin 0 is always empty.
    pub counts: Vec<u64>,
    /// Sampled accesses to lines that were never accessed before.
    pub cold: u64,
}

impl ReuseHistogram {
    /// Adds `count` sampled accesses of a bin. It leaves `accesses` alone.
    pub fn add(&mut self, bin: ReuseBin, count: u64) {
        match bin.index() {
            None => self.cold += count,
            Some(0) => {}
            Some(index) => {
                if self.counts.len() <= index && count > 0 {
                    self.counts.resize(index + 1, 0);
                }
                if let Some(slot) = self.counts.get_mut(index) {
                    *slot += count;
                }
            }
        }
    }

    /// Adds all of another stretch of the same stream.
    pub fn merge(&mut self, other: &Self) {
        self.accesses = self.accesses.saturating_add(other.accesses);
        self.cold = self.cold.saturating_add(other.cold);
        if self.counts.len() < other.counts.len() {
            self.counts.resize(other.counts.len(), 0);
        }
        for (mine, more) in self.counts.iter_mut().zip(&other.counts) {
            *mine = mine.saturating_add(*more);
        }
    }

    /// Sampled accesses, cold ones too.
    pub fn sampled(&self) -> u64 {
        self.counts.iter().fold(self.cold, |sum, count| sum.saturating_add(*count))
    }

    /// The distribution as a curve that can be looked up.
    pub fn curve(&self) -> ReuseCurve {
        ReuseCurve::new(self)
    }
}

/// One linear piece of the survival function.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Piece {
    /// Where it starts, in accesses; it ends where the next one starts.
    start: f64,
    /// Survival at its start.
    survival: f64,
    /// How much survival falls per access in it.
    fall: f64,
    /// Integral of survival from 0 to its start.
    integral: f64,
}

/// The survival function of reuse times, P(t), and its integral, F(t).
///
/// P(t) is the probability that the reuse time of an access is longer than
/// `t` accesses. F(t) = ∫₀ᵗ P is the mean number of distinct lines in `t`
/// successive accesses (Eklov and Hagersten, StatStack; Hu et al., AET): a
/// cache of C lines with least-recently-used replacement misses the share P(T)
/// of the accesses, where F(T) = C. Within a bin, reuse times are taken as
/// spread evenly from the shortest to the longest. An empty histogram has
/// P = 0 and F = 0.
///
/// Looking up takes time logarithmic in the number of bins.
#[derive(Debug, Clone, PartialEq)]
pub struct ReuseCurve {
    pieces: Vec<Piece>,
}

impl ReuseCurve {
    fn new(histogram: &ReuseHistogram) -> Self {
        let total = histogram.sampled() as f64;
        if total == 0.0 {
            let flat = Piece { start: 0.0, survival: 0.0, fall: 0.0, integral: 0.0 };
            return Self { pieces: vec![flat] };
        }
        let mut pieces: Vec<Piece> = Vec::new();
        let mut at = Piece { start: 0.0, survival: 1.0, fall: 0.0, integral: 0.0 };
        // What lies behind each piece, summed from the far end: no cancellation.
        let mut behind: Vec<u64> = vec![histogram.cold; histogram.counts.len()];
        for index in (1..behind.len()).rev() {
            behind[index - 1] = behind[index].saturating_add(histogram.counts[index]);
        }
        for (index, &count) in histogram.counts.iter().enumerate().filter(|(_, c)| **c > 0) {
            let bin = ReuseBin::from_index(index);
            let (Some(shortest), Some(longest)) = (bin.shortest(), bin.longest()) else { continue };
            let after = behind[index] as f64 / total;
            let width = (longest - shortest) as f64;
            at = extend(&mut pieces, at, shortest as f64);
            if width > 0.0 {
                at.fall = count as f64 / total / width;
                at = extend(&mut pieces, at, longest as f64);
            }
            at.survival = after;
            at.fall = 0.0;
        }
        pieces.push(at);
        Self { pieces }
    }

    /// The last piece that starts at or before `t`.
    fn piece(&self, t: f64) -> &Piece {
        let after = self.pieces.partition_point(|piece| piece.start <= t);
        &self.pieces[after.saturating_sub(1)]
    }

    /// P(t): the share of accesses with a reuse time longer than `t` accesses.
    /// 1 below zero (0 for an empty histogram).
    pub fn survival(&self, t: f64) -> f64 {
        let t = t.max(0.0);
        let piece = self.piece(t);
        (piece.survival - tail(piece.fall, t - piece.start)).max(0.0)
    }

    /// F(t) = ∫₀ᵗ P: distinct lines in `t` successive accesses, on average.
    pub fn integral(&self, t: f64) -> f64 {
        let t = t.max(0.0);
        let piece = self.piece(t);
        let ahead = t - piece.start;
        piece.integral + tail(piece.survival - tail(piece.fall, ahead) / 2.0, ahead)
    }

    /// The time at which F reaches `lines`: infinite if it never does.
    pub fn reach(&self, lines: f64) -> f64 {
        let after = self.pieces.partition_point(|piece| piece.integral < lines);
        let Some(piece) = after.checked_sub(1).map(|index| &self.pieces[index]) else {
            return 0.0;
        };
        let missing = lines - piece.integral;
        let root = piece.survival.powi(2) - 2.0 * piece.fall * missing;
        let ahead = 2.0 * missing / (piece.survival + root.max(0.0).sqrt());
        let end = self.pieces.get(after).map_or(f64::INFINITY, |next| next.start);
        if ahead.is_finite() { (piece.start + ahead).min(end) } else { f64::INFINITY }
    }

    /// The share of misses of a cache of `lines` lines, fully associative, with
    /// least-recently-used replacement, that this stream has for itself.
    pub fn misses(&self, lines: f64) -> f64 {
        let reach = self.reach(lines);
        if reach.is_finite() { self.survival(reach) } else { self.floor() }
    }

    /// The share of cold accesses: survival at infinity.
    pub fn floor(&self) -> f64 {
        self.pieces.last().map_or(0.0, |piece| piece.survival)
    }
}

/// `rate · ahead`, and 0 for rate 0 even when `ahead` is infinite.
fn tail(rate: f64, ahead: f64) -> f64 {
    if rate == 0.0 { 0.0 } else { rate * ahead }
}

/// Ends the piece at `end` and returns the start of the next one.
fn extend(pieces: &mut Vec<Piece>, piece: Piece, end: f64) -> Piece {
    let width = end - piece.start;
    pieces.push(piece);
    let survival = piece.survival - piece.fall * width;
    let integral = piece.integral + width * (piece.survival + survival) / 2.0;
    Piece { start: end, survival, fall: piece.fall, integral }
}

#[cfg(test)]
mod tests;
