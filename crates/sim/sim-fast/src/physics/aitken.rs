//! Aitken's delta-squared process: the length of a thread's next step towards the fixed point.
//!
//! # Problem
//! Full steps make threads oscillate that slow each other down, and make those creep that get more of a
//! cache the faster they are.
//!
//! # Approach
//! Aitken's delta-squared as dynamic relaxation (Irons and Tuck, 1969), thread by thread. With the
//! residual fₖ = 1/CPI(xₖ) − xₖ of the IPC xₖ:
//!
//! ```text
//! ωₖ = ωₖ₋₁ · fₖ₋₁ / (fₖ₋₁ − fₖ)        1 if that is negative
//! xₖ₊₁ = xₖ + clamp(ωₖ, SHORTEST, longest) · fₖ
//! ```
//!
//! A thread whose residual changes its sign again and again is at a cliff, which has no slope to follow:
//! the more often, the shorter its longest step (`LONGEST`). Far from the fixed point no step is longer
//! than the residual.
//!
//! # Properties
//! - Slopes of any steepness converge soon (`slopes_of_any_steepness_settle_soon`).

/// The IPC has converged when it changes by no more than this, relatively.
pub const CLOSE: f64 = 2e-3;

/// The longest step, by how often the residual has changed its sign.
const LONGEST: [f64; 8] = [3.0, 1.0, 1.0, 0.8, 0.7, 0.5, 0.5, 0.35];
/// The longest one after that, and the shortest of all.
const SHORTEST: f64 = 0.25;

/// Only a thread whose residual is no more than this part of its IPC steps further than the residual
/// itself.
const NEAR: f64 = 0.3;

/// The steps of one thread.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Aitken {
    part: f64,
    before: f64,
    swings: usize,
}

impl Default for Aitken {
    fn default() -> Self {
        Self { part: 0.7, before: 0.0, swings: 0 }
    }
}

impl Aitken {
    /// Has the residual changed its sign more than once?
    pub fn swings(&self) -> bool {
        self.swings > 1
    }

    /// The step to take from `here`, where the residual is `missing`.
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
    use super::Aitken;

    fn rounds(slope: f64) -> u32 {
        // Two threads alike: each wants 1 − slope·(the other − 1).
        let (mut step, mut x) = (Aitken::default(), 3.0);
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
