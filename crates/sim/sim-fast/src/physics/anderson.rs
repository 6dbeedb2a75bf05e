//! Anderson acceleration: the next iterate of a fixed point of many coupled unknowns.
//!
//! # Problem
//! Threads that share memory all slow down when one of them fetches more, and then all fetch less. A
//! step of each by itself would be right only if the others stayed where they are.
//!
//! # Approach
//! Anderson acceleration of depth two (Anderson, 1965; Walker and Ni, SIAM J. Numer. Anal. 2011). With
//! the iterates xₖ, the residuals fₖ = g(xₖ) − xₖ and Δfₖ = fₖ − fₖ₋₁, Δxₖ likewise:
//!
//! ```text
//! γ = argmin ‖fₖ − γ₁·Δfₖ − γ₂·Δfₖ₋₁‖
//! xₖ₊₁ = xₖ + fₖ − γ₁·(Δxₖ + Δfₖ) − γ₂·(Δxₖ₋₁ + Δfₖ₋₁)
//! ```
//!
//! Cores are coupled by a few numbers, however many threads there are, so a short history suffices. Two
//! safeguards: when an accelerated step makes the residual grow by `AWAY`, the history is dropped and a
//! damped plain step is taken; and no step exceeds `FARTHEST` times the largest residual.
//!
//! # Terms and units
//! Speeds as log₂; *missing*: the residual fₖ.
//!
//! # Properties
//! - Many unknowns that are coupled by few converge in few rounds, however steeply
//!   (`many_numbers_that_meet_in_few_settle_soon`).
//! - Kinks do not hinder it (`edges_are_passed`).

/// Depth of the history.
const DEPTH: usize = 2;
/// The longest step, over the largest residual.
const FARTHEST: f64 = 4.0;
/// An accelerated step that makes the residual grow by this factor has failed.
const AWAY: f64 = 3.0;
/// Two differences count as parallel if less than this part of one is orthogonal to the other.
const ALIKE: f64 = 1e-4;

/// The history.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Anderson {
    /// The last iterates, the latest first.
    places: [Vec<f64>; DEPTH + 1],
    /// Their residuals.
    missing: [Vec<f64>; DEPTH + 1],
    /// How many of them there are.
    known: usize,
    /// The largest residual before the last step, if that was accelerated.
    learnt: Option<f64>,
    /// Damping of a plain step, as a number of halvings.
    halvings: i32,
}

impl Anderson {
    /// Clears the history.
    pub(super) fn begin(&mut self) {
        self.known = 0;
        self.learnt = None;
        self.halvings = 0;
    }

    /// Steps from the iterate `place`, where the residual is `missing`.
    pub(super) fn step(&mut self, place: &mut [f64], missing: &[f64]) {
        let most = missing.iter().fold(0.0, |most: f64, missing| most.max(missing.abs()));
        if self.learnt.take().is_some_and(|before| most > AWAY * before) {
            self.known = 0;
            self.halvings = (self.halvings + 1).min(2);
        }
        self.note(place, missing);
        let weights = self.weights();
        let plain = if weights == [0.0; DEPTH] {
            0.5_f64.powi(self.halvings)
        } else {
            self.learnt = Some(most);
            1.0
        };
        let step = |index: usize| {
            let back = |(round, weight): (usize, &f64)| {
                let change = |of: &[Vec<f64>]| of[round][index] - of[round + 1][index];
                weight * (change(&self.places) + change(&self.missing))
            };
            // Rounds that are not known may be of another length.
            let learnt = weights.iter().enumerate().filter(|(_, weight)| **weight != 0.0);
            plain * missing[index] - learnt.map(back).sum::<f64>()
        };
        let steps = || (0..missing.len()).map(step);
        let longest = steps().fold(0.0, |most: f64, step| most.max(step.abs()));
        let part = if longest > FARTHEST * most { FARTHEST * most / longest } else { 1.0 };
        place.iter_mut().zip(steps()).for_each(|(place, step)| *place += part * step);
    }

    /// Adds an iterate to the history.
    fn note(&mut self, place: &[f64], missing: &[f64]) {
        if self.missing[0].len() != missing.len() {
            self.known = 0;
        }
        for (rounds, now) in [(&mut self.places, place), (&mut self.missing, missing)] {
            rounds.rotate_right(1);
            rounds[0].clear();
            rounds[0].extend_from_slice(now);
        }
        self.known = (self.known + 1).min(DEPTH + 1);
    }

    /// The coefficients γ of the differences, by least squares; 0 where the history is too short
    /// or its differences are parallel.
    fn weights(&self) -> [f64; DEPTH] {
        let [now, before, earlier] = &self.missing;
        if self.known < 2 {
            return [0.0; DEPTH];
        }
        let product = |a: fn([f64; 3]) -> f64, b: fn([f64; 3]) -> f64| -> f64 {
            let third = |index: usize| if self.known > 2 { earlier[index] } else { 0.0 };
            let all = now.iter().zip(before).enumerate();
            all.map(|(index, (now, before))| [*now, *before, third(index)])
                .map(|rounds| a(rounds) * b(rounds))
                .sum()
        };
        let late: fn([f64; 3]) -> f64 = |[now, before, _]| now - before;
        let early: fn([f64; 3]) -> f64 = |[_, before, earlier]| before - earlier;
        let left: fn([f64; 3]) -> f64 = |[now, _, _]| now;
        let (late_late, late_left) = (product(late, late), product(late, left));
        if late_late <= 0.0 {
            return [0.0; DEPTH];
        }
        if self.known > 2 {
            let (late_early, early_early) = (product(late, early), product(early, early));
            let apart = late_late * early_early - late_early * late_early;
            if apart > ALIKE * late_late * early_early {
                let early_left = product(early, left);
                return [
                    (late_left * early_early - early_left * late_early) / apart,
                    (early_left * late_late - late_left * late_early) / apart,
                ];
            }
        }
        [late_left / late_late, 0.0]
    }
}

#[cfg(test)]
mod tests {
    use super::Anderson;

    /// Rounds until nothing is missing, or 30.
    fn rounds(start: &[f64], answer: impl Fn(&[f64]) -> Vec<f64>) -> usize {
        let (mut anderson, mut place) = (Anderson::default(), start.to_vec());
        anderson.begin();
        (1..30)
            .find(|_| {
                let there = answer(&place);
                let missing: Vec<f64> = there.iter().zip(&place).map(|(a, b)| a - b).collect();
                anderson.step(&mut place, &missing);
                missing.iter().all(|missing| missing.abs() < 1e-6)
            })
            .unwrap_or(30)
    }

    /// Each of forty minds two sums over all of them, each in its own way.
    fn answer(place: &[f64], gains: [f64; 2]) -> Vec<f64> {
        let weight = |index: usize, of: usize| (1 + (index * (3 + 4 * of)) % 7) as f64 / 160.0;
        let sum = |of: usize| -> f64 {
            place.iter().enumerate().map(|(index, place)| weight(index, of) * place).sum()
        };
        let minds = |index: usize| gains[0] * sum(0) + gains[1] * sum(1) * weight(index, 1) * 40.0;
        (0..place.len()).map(|index| 1.0 + index as f64 / 40.0 + minds(index)).collect()
    }

    #[test]
    fn many_numbers_that_meet_in_few_settle_soon() {
        for gains in [[0.0, 0.0], [-0.5, 0.0], [-2.0, 0.0], [0.5, -0.5], [-1.5, 0.4], [-1.0, -1.0]]
        {
            let rounds = rounds(&[0.0; 40], |place| answer(place, gains));
            assert!(rounds <= 9, "gains {gains:?}: {rounds} rounds");
        }
    }

    /// More than so much of the sum does not count.
    #[test]
    fn edges_are_passed() {
        for (gain, edge) in [(-2.0, 0.5), (-1.0, 0.8), (-3.0, 0.3)] {
            let answer = |place: &[f64]| {
                let sum = place.iter().sum::<f64>() / place.len() as f64;
                place.iter().map(|_| 1.0 + gain * (sum - edge).max(0.0)).collect()
            };
            let rounds = rounds(&[2.0; 10], answer);
            assert!(rounds <= 12, "gain {gain}, edge {edge}: {rounds} rounds");
        }
    }
}
