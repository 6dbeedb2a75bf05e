//! The jitter of a function at its anchor.
//!
//! # Problem
//! Where all operations of a program wait for one beat, a divider's or memory's, the slightest change of
//! anything shifts them against it: results jitter by half a percent about their mean. The result at the
//! anchor is in each term of a table, with alternating signs: with a dozen axes its error counts a dozen
//! times, and the jitter of a few results together looks like an interaction of inputs.
//!
//! # Approach
//! The function is sampled at pairs of points close to the anchor, opposite each other, each pair in
//! another direction. What is even there cancels: the mean of a pair differs from the anchor's result by
//! jitter alone. The median of these differences is the anchor's error; their spread is the jitter.
//! Where all pairs agree that the anchor is off, it lies at a step of the function, on one side or
//! the other, and stays as it is.
//!
//! # Properties
//! A smooth function does not jitter (`smooth_functions_do_not_jitter`); a result that is off by chance is
//! corrected (`an_anchor_that_is_off_is_set_right`), one at a step is not
//! (`an_anchor_at_a_step_stays`).

use super::Range;
use super::function::{Effort, Function, Values};

/// Pairs of points.
const PAIRS: usize = 8;
/// How far they lie from the anchor, as a share of the way to the ends.
const NEAR: f64 = 1e-3;
/// An anchor that is off by more standard deviations stands at a step, which is no jitter.
const STEP: f64 = 3.0;
/// Standard deviations of a normal distribution for each median of the absolute ones.
const DEVIATIONS: f64 = 1.4826;

/// The mean result at the anchor, and the standard deviation of single results.
pub(super) struct Jitter<const H: usize, const C: usize> {
    pub middle: Values<H, C>,
    pub deviation: f64,
}

impl<const H: usize, const C: usize> Jitter<H, C> {
    /// Of a function that says `here` at the anchor. What is off by no more than `least` is not.
    pub(super) fn new(
        ranges: &[Range],
        here: Values<H, C>,
        least: f64,
        function: &mut Function<'_, H, C>,
    ) -> Self {
        let mut neighbour = |pair: usize, side: f64| {
            let input = |(number, range): (usize, &Range)| {
                // Signs of Hadamard's matrix: of eight inputs in a row no two go the same way in
                // all pairs.
                let up = (number & pair).count_ones() % 2 == 0;
                let way = if up { side } else { -side };
                let end = if way > 0.0 { range.worst } else { range.best };
                // As far to both sides.
                let room =
                    (range.worst - range.anchor).abs().min((range.best - range.anchor).abs());
                range.anchor + NEAR * room * (end - range.anchor).signum()
            };
            let inputs: Vec<f64> = ranges.iter().enumerate().map(input).collect();
            function(&inputs, Effort::Full)
        };
        let pairs: Vec<[Values<H, C>; 2]> =
            (0..PAIRS).map(|pair| [neighbour(pair, 1.0), neighbour(pair, -1.0)]).collect();
        let off = |value: &dyn Fn(&Values<H, C>) -> f32| -> Vec<f64> {
            let mean = |[a, b]: &[Values<H, C>; 2]| f64::midpoint(value(a).into(), value(b).into());
            pairs.iter().map(|pair| mean(pair) - f64::from(value(&here))).collect()
        };
        let first = off(&|value| value.0[0]);
        let by = median(first.clone());
        let spread = median(first.iter().map(|off| (off - by).abs()).collect());
        // The mean of two deviates less than one.
        let deviation = DEVIATIONS * spread * std::f64::consts::SQRT_2;
        let mut middle = here;
        if by.abs() > least && by.abs() <= STEP * deviation {
            for (index, to) in middle.0.iter_mut().enumerate() {
                *to += median(off(&|value| value.0[index])) as f32;
            }
            for (index, to) in middle.1.iter_mut().enumerate() {
                *to += median(off(&|value| value.1[index])) as f32;
            }
        }
        Self { middle, deviation }
    }
}

fn median(mut of: Vec<f64>) -> f64 {
    of.sort_by(f64::total_cmp);
    let middle = of.len() / 2;
    match of.len() {
        0 => 0.0,
        count if count % 2 == 0 => f64::midpoint(of[middle - 1], of[middle]),
        _ => of[middle],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEAST: f64 = 2e-3;

    /// Of six inputs.
    fn jitter(f: impl Fn(&[f64]) -> f64) -> Jitter<1, 1> {
        let ranges = [Range::new(0.0, 0.4, 1.0); 6];
        let here = f(&[0.4; 6]) as f32;
        let mut function = |x: &[f64], _| ([f(x) as f32], [2.0 * f(x) as f32]);
        Jitter::new(&ranges, ([here], [2.0 * here]), LEAST, &mut function)
    }

    #[test]
    fn smooth_functions_do_not_jitter() {
        let f = |x: &[f64]| 1.0 + 3.0 * x[0] * x[1] * x[2] + (2.0 * x[3]).exp() + x[4];
        let Jitter { middle, deviation } = jitter(f);
        assert_eq!(middle.0[0], f(&[0.4; 6]) as f32);
        assert!(deviation < 1e-3, "{deviation}");
    }

    #[test]
    fn an_anchor_at_a_step_stays() {
        let f = |x: &[f64]| 1.0 + x[0] + if x[1] > 0.4 { 0.1 } else { 0.0 };
        let Jitter { middle, deviation } = jitter(f);
        assert_eq!(middle.0[0], f(&[0.4; 6]) as f32);
        assert!(deviation < 1e-3, "{deviation}");
    }

    /// What looks random in the digits of its inputs.
    fn noise(x: &[f64]) -> f64 {
        let mixed: f64 = x.iter().zip([7.1, 3.3, 9.7, 5.9, 2.3, 8.1]).map(|(x, by)| x * by).sum();
        2.0 * (1e4 * mixed.sin()).rem_euclid(1.0) - 1.0
    }

    #[test]
    fn an_anchor_that_is_off_is_set_right() {
        let f = |x: &[f64]| {
            let off = if x.iter().all(|x| *x == 0.4) { -0.0095 } else { 0.01 * noise(x) };
            1.0 + x[0] + x[1] * x[2] + off
        };
        let Jitter { middle, deviation } = jitter(f);
        assert!((f64::from(middle.0[0]) - 1.56).abs() < 6e-3, "{middle:?}");
        assert!((f64::from(middle.1[0]) - 3.12).abs() < 1.2e-2, "{middle:?}");
        assert!((2e-3..2e-2).contains(&deviation), "{deviation}");
    }
}
