//! How far to go towards where the fixed point seems to lie.
//!
//! # Approach
//! Taking all of each step makes threads that slow each other down swing. The part
//! that is taken follows the last two steps (Aitken): if what was missing changed sign the
//! step was too long, if it hardly shrank too short. Between a quarter and all of it is
//! taken; half after ten rounds, a quarter after twice as many: a
//! fixed point at a cliff has no slope to follow.

/// Rounds in which the part is adapted.
const PATIENCE: u32 = 10;

/// The steps of one thread.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step {
    part: f64,
    before: f64,
}

impl Default for Step {
    fn default() -> Self {
        Self { part: 0.7, before: 0.0 }
    }
}

impl Step {
    /// The step to take when `missing` lies between here and where it seems to lie.
    pub fn next(&mut self, missing: f64, round: u32) -> f64 {
        if round > 2 * PATIENCE {
            self.part = 0.25;
        } else if round > PATIENCE {
            self.part = 0.5;
        } else if self.before != 0.0 {
            let change = self.before - missing;
            if change.abs() > 1e-12 {
                self.part = (self.part * self.before / change).abs().clamp(0.25, 1.0);
            }
        }
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
            x += step.next(missing, round);
        }
        0
    }

    #[test]
    fn slopes_of_any_steepness_settle_soon() {
        for slope in [0.0, 0.3, 0.7, 1.0, 2.0, 3.0] {
            assert!(rounds(slope) <= 6, "slope {slope}: {} rounds", rounds(slope));
        }
    }
}
