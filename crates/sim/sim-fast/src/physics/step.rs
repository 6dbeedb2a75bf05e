//! How far to go towards where the fixed point seems to lie.
//!
//! # Approach
//! Taking all of each step makes threads that slow each other down swing, and those crawl that get
//! more of a cache the faster they are. The part that is taken follows the last two steps
//! (Aitken): if what was missing changed sign the step was too long, if it hardly shrank too
//! short. A thread that swings time and again is at a cliff, which has no slope to follow: the more often, the
//! shorter its longest step (`LONGEST`).

/// Largest relative change of an IPC that counts as none.
pub const CLOSE: f64 = 2e-3;

/// The longest step by how often the sign of what was missing has changed.
const LONGEST: [f64; 8] = [3.0, 1.0, 1.0, 0.8, 0.7, 0.5, 0.5, 0.35];
/// The longest one after that, and the shortest of all.
const SHORTEST: f64 = 0.25;

/// Only a thread that misses the fixed point by no more than this goes further than its estimate
/// share.
const NEAR: f64 = 0.3;

/// The steps of one thread.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step {
    part: f64,
    before: f64,
    swings: usize,
}

impl Default for Step {
    fn default() -> Self {
        Self { part: 0.7, before: 0.0, swings: 0 }
    }
}

impl Step {
    /// Has the sign of what was missing changed more than once?
    pub fn swings(&self) -> bool {
        self.swings > 1
    }

    /// The step to take when `missing` lies between `here` and where it seems to lie.
    pub fn next(&mut self, missing: f64, here: f64) -> f64 {
        self.swings += usize::from(self.before * missing < 0.0);
        let longest = LONGEST.get(self.swings).copied().unwrap_or(SHORTEST);
        let change = self.before - missing;
        if self.before != 0.0 && change.abs() > 1e-12 {
            let part = self.part * self.before / change;
            // What was missing grew: others moved, which says nothing of the slope.
            self.part = if part > 0.0 { part } else { 1.0 };
        }
        let far = missing.abs() > NEAR * here.abs();
        self.part = self.part.clamp(SHORTEST, if far { longest.min(1.0) } else { longest });
        self.before = missing;
        self.part * missing
    }
}

#[cfg(test)]
mod tests {
    use super::Step;

    fn rounds(slope: f64) -> u32 {
        // Two threads alike: each wants 1 − slope·(the other − 1).
        let (mut step, mut x) = (Step::default(), 3.0);
        for round in 1.. {
            let missing = 1.0 - slope * (x - 1.0) - x;
            if f64::abs(missing) < 1e-3 {
                return round;
            }
            x += step.next(missing, x);
        }
        0
    }

    #[test]
    fn slopes_of_any_steepness_settle_soon() {
        for (slope, most) in [(-0.5, 8), (0.0, 4), (0.3, 4), (0.7, 4), (1.0, 4), (2.0, 4), (3.0, 4)]
        {
            assert!(rounds(slope) <= most, "slope {slope}: {} rounds", rounds(slope));
        }
    }
}
