//! Naive predictors that a model must beat.
//!
//! ```text
//! constant:                 slowdown = mean of the training set
//! victim plus aggressor:    slowdown = mean + suffers(program) + Σ over its co-runners: does(co-runner)
//! ```
//!
//! Like the model, both are fitted by the squares of relative errors; the effects of the second by least squares,
//! all together. It knows programs by name and needs no counters. Of programs that it was not trained on it knows
//! nothing: for these it predicts the mean.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::fit::Sums;
use crate::observation::Case;

/// Holds the effects of unknown programs at zero, and those of known ones
/// apart from the mean; too small to be felt otherwise.
const RIDGE: f64 = 1e-6;

#[derive(Debug, Clone)]
pub(crate) struct Baseline {
    pub(crate) mean: f64,
    constant: f64,
    suffers: BTreeMap<Arc<str>, f64>,
    does: BTreeMap<Arc<str>, f64>,
}

impl Baseline {
    /// From cases, each with its number of observations and mean slowdown.
    pub(crate) fn fit<'a>(cases: impl IntoIterator<Item = (&'a Case, f64, f64)>) -> Option<Self> {
        let cases: Vec<_> = cases.into_iter().collect();
        let mut programs: BTreeMap<&Arc<str>, usize> = BTreeMap::new();
        for ((victim, others), ..) in &cases {
            for program in others.iter().chain([victim]) {
                let next = programs.len();
                programs.entry(program).or_insert(next);
            }
        }
        let n = programs.len();
        let mut sums = Sums::new(1 + 2 * n);
        let mut features = vec![0.0; 1 + 2 * n];
        for ((victim, others), count, slowdown) in &cases {
            features.fill(0.0);
            let places = others.iter().filter_map(|other| programs.get(other)).map(|at| 1 + n + at);
            let places = places.chain(programs.get(victim).map(|at| 1 + at)).chain([0]);
            for place in places {
                if let Some(feature) = features.get_mut(place) {
                    *feature += 1.0;
                }
            }
            sums.add(&features, *slowdown, *count);
        }
        let values = sums.solve(|at| if at == 0 { 0.0 } else { RIDGE })?.values;
        let effects = |from: usize| {
            let effect = |at: usize| values.get(from + at).copied().unwrap_or(0.0);
            programs.iter().map(|(&program, &at)| (Arc::clone(program), effect(at))).collect()
        };
        let count: f64 = cases.iter().map(|(_, count, _)| count).sum();
        let mean = cases.iter().map(|(_, count, slowdown)| count * slowdown).sum::<f64>() / count;
        let constant = values.first().copied()?;
        Some(Self { mean, constant, suffers: effects(1), does: effects(1 + n) })
    }

    /// Victim plus aggressor.
    pub(crate) fn predict(&self, (victim, others): &Case) -> f64 {
        let known = self.suffers.contains_key(victim)
            || others.iter().any(|other| self.does.contains_key(other));
        if !known {
            return self.mean;
        }
        let effect =
            |of: &BTreeMap<Arc<str>, f64>, program| of.get(program).copied().unwrap_or(0.0);
        let done: f64 = others.iter().map(|other| effect(&self.does, other)).sum();
        self.constant + effect(&self.suffers, victim) + done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(victim: &str, other: &str) -> Case {
        (victim.into(), vec![other.into()])
    }

    #[test]
    fn what_is_additive_is_recovered() {
        let effects = [("a", 0.0, 0.1), ("b", 0.2, 0.0), ("c", 0.1, 0.4)];
        let mut cases = Vec::new();
        for (victim, suffers, _) in effects {
            for (other, _, does) in effects {
                cases.push((case(victim, other), 1.1 + suffers + does));
            }
        }
        let left_out = cases.remove(5);
        let fitted = Baseline::fit(cases.iter().map(|(case, slowdown)| (case, 3.0, *slowdown)));
        let fitted = fitted.unwrap();
        assert!((fitted.predict(&left_out.0) - left_out.1).abs() < 1e-4);
    }

    #[test]
    fn of_programs_that_it_does_not_know_it_says_the_mean() {
        let cases = [(case("a", "b"), 1.0), (case("b", "a"), 2.0)];
        let fitted = Baseline::fit(cases.iter().map(|(case, slowdown)| (case, 1.0, *slowdown)));
        assert_eq!(fitted.unwrap().predict(&case("x", "y")), 1.5);
        assert!(Baseline::fit([]).is_none());
    }
}
