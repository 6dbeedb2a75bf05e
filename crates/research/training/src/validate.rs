//! Cross-validation: errors on programs that the model has not seen.
//!
//! # Problem
//! A model that is tested on its own training set looks better than it is. To leave out single quanta is not
//! enough, since the quanta of a program resemble each other: whole programs are left out.
//!
//! # Approach
//! Leave-p-out over groups (Feliu et al., section 6.1):
//!
//! ```text
//! for each set of programs that ran together:
//!     fit on the observations in which none of them takes part
//!     predict those in which only they do
//! ```
//!
//! For pairs that is leave-two-out, for groups of four leave-four-out. Sums over the training set are kept for
//! each set of programs, so that a fold adds up sums and does not go through the observations again.
//!
//! Predictions of different folds must not be compared with each other, as a matching would. Two folds leave out
//! different observations, each just those that it is tested on: summed over the pairs of a matching, even the
//! plain mean of each fold's training set reveals the true cost of that matching. What pairing gains is therefore
//! measured within one fold, from which all programs of a workload are left out together
//! ([`TrainingSet::leave_out`]).
//!
//! [`Holdout::Combinations`] leaves out only the combination; its programs stay in the training set with other
//! partners. Then the victim-plus-aggressor baseline knows the programs.
//!
//! # Properties
//! - A fold's model has seen no observation of its programs
//!   (`a_fold_knows_nothing_of_its_programs`).
//! - Known coefficients give no error (`without_noise_there_is_no_error`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use symbiont_model::{Components, Fit, Holdout, Inversion, Score, SmtMode};

use crate::baseline::Baseline;
use crate::fit::{FitError, Moments, Weighting, check, from_moments};
use crate::observation::Case;
use crate::{Errors, Observation};

mod fold;
#[cfg(test)]
mod tests;

pub use fold::{Fold, PairTables, Predictor};

/// Why nothing can be cross-validated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ValidationError {
    /// The observations themselves are of no use.
    #[error(transparent)]
    Fit(#[from] FitError),
    /// No fold has a training set left.
    #[error(
        "{programs} programs are too few: with those of a group left out, no group remains to fit on"
    )]
    TooFew {
        /// Programs of the training set.
        programs: usize,
    },
}

/// Observations of one SMT mode, summed up per set of programs.
#[derive(Debug)]
pub struct TrainingSet<'a> {
    components: usize,
    weighting: Weighting,
    stop: Option<&'a AtomicBool>,
    groups: BTreeMap<BTreeSet<Arc<str>>, Group<'a>>,
}

/// Observations of one set of programs.
#[derive(Debug)]
struct Group<'a> {
    moments: Moments,
    /// Weights of the threads observed, and weighted sum of their slowdowns.
    cases: BTreeMap<Case, (f64, f64)>,
    observations: Vec<&'a Observation>,
}

/// Errors of all folds.
#[derive(Debug, Clone, PartialEq)]
pub struct Validation {
    /// One for each set of programs that ran together, in order.
    pub folds: Vec<Fold>,
    /// Sets of programs without which nothing remained to fit on.
    pub without_training: usize,
}

impl<'a> TrainingSet<'a> {
    /// Sums observations up, each with its weight.
    ///
    /// # Errors
    /// When there are none, or they do not belong together.
    pub fn new(
        mode: SmtMode,
        observations: &'a [Observation],
        weighting: Weighting,
    ) -> Result<Self, FitError> {
        let components = check(mode, observations)?;
        let mut groups = BTreeMap::new();
        for observation in observations {
            let group = groups.entry(observation.programs()).or_insert_with(|| Group {
                moments: Moments::new(components, weighting),
                cases: BTreeMap::new(),
                observations: Vec::new(),
            });
            group.moments.add(observation);
            for (case, thread) in observation.cases().into_iter().zip(observation.threads()) {
                let (count, sum) = group.cases.entry(case).or_default();
                let weight = weighting.of(thread.slowdown());
                *count += weight;
                *sum += weight * thread.slowdown();
            }
            group.observations.push(observation);
        }
        Ok(Self { components, weighting, stop: None, groups })
    }

    /// The same set; once `stop` has become true it fits no more models.
    #[must_use]
    pub fn until(self, stop: &'a AtomicBool) -> Self {
        Self { stop: Some(stop), ..self }
    }

    /// All programs.
    #[must_use]
    pub fn programs(&self) -> BTreeSet<Arc<str>> {
        self.groups.keys().flatten().cloned().collect()
    }

    /// The model fitted on all observations.
    ///
    /// # Errors
    /// [`FitError::Unsolvable`] when observations are not finite.
    pub fn fit(&self) -> Result<Fit, FitError> {
        self.fit_without(&BTreeSet::new())
    }

    /// The model fitted on all groups but those with any of these programs.
    ///
    /// # Errors
    /// [`FitError::Empty`] when nothing is left to fit on, [`FitError::Unsolvable`] when
    /// observations are not finite, [`FitError::Stopped`] when it was asked to stop.
    pub fn fit_without(&self, programs: &BTreeSet<Arc<str>>) -> Result<Fit, FitError> {
        let keep = |group: &BTreeSet<Arc<str>>| group.is_disjoint(programs);
        let (moments, _) = self.train(keep)?.ok_or(FitError::Empty)?;
        from_moments(&moments)
    }

    /// How many sets of programs that ran together remain without these programs.
    #[must_use]
    pub fn groups_without(&self, programs: &BTreeSet<Arc<str>>) -> usize {
        self.groups.keys().filter(|group| group.is_disjoint(programs)).count()
    }

    /// Leave-p-out over all sets of programs that ran together.
    ///
    /// # Errors
    /// [`ValidationError::TooFew`] when no fold has a training set left.
    pub fn cross_validate(&self, holdout: Holdout) -> Result<Validation, ValidationError> {
        let mut validation = Validation { folds: Vec::new(), without_training: 0 };
        for left_out in self.groups.keys() {
            let fold = match holdout {
                Holdout::Programs => self.fold(
                    left_out,
                    |programs| programs.is_disjoint(left_out),
                    |programs| programs == left_out,
                )?,
                Holdout::Combinations => {
                    self.fold(left_out, |programs| programs != left_out, |p| p == left_out)?
                }
            };
            match fold {
                Some(fold) => validation.folds.push(fold),
                None => validation.without_training += 1,
            }
        }
        if validation.folds.is_empty() {
            return Err(ValidationError::TooFew { programs: self.programs().len() });
        }
        Ok(validation)
    }

    /// One fold: a model of all groups without any of these programs, tested
    /// on all groups that consist of these programs only. What pairing gains
    /// with programs that were left out is measured on such a fold ([`Fold::pairs`]).
    ///
    /// # Errors
    /// [`ValidationError::TooFew`] when nothing is left to fit on.
    pub fn leave_out(&self, programs: &BTreeSet<Arc<str>>) -> Result<Fold, ValidationError> {
        let train = |group: &BTreeSet<Arc<str>>| group.is_disjoint(programs);
        let fold = self.fold(programs, train, |group| group.is_subset(programs))?;
        fold.ok_or_else(|| ValidationError::TooFew { programs: self.programs().len() })
    }

    /// The fold of a model trained on all groups, and tested on those that consist
    /// of these programs only: the published case, in which the scheduler knows all
    /// programs.
    ///
    /// # Errors
    /// [`FitError::Unsolvable`] when observations are not finite.
    pub fn keep_in(&self, programs: &BTreeSet<Arc<str>>) -> Result<Fold, ValidationError> {
        let fold = self.fold(programs, |_| true, |group| group.is_subset(programs))?;
        fold.ok_or(ValidationError::Fit(FitError::Empty))
    }

    /// Trains on some groups, tests on others; none if there is nothing to
    /// train on.
    fn fold(
        &self,
        programs: &BTreeSet<Arc<str>>,
        train: impl Fn(&BTreeSet<Arc<str>>) -> bool,
        test: impl Fn(&BTreeSet<Arc<str>>) -> bool,
    ) -> Result<Option<Fold>, FitError> {
        let Some((moments, baseline)) = self.train(&train)? else { return Ok(None) };
        let model = from_moments(&moments)?.model;
        let mut fold = Fold::new(programs.clone(), model.clone());
        let tested = || self.groups.iter().filter(|(programs, _)| test(programs));
        for (_, group) in tested() {
            for observation in &group.observations {
                fold.test(&model, &baseline, observation);
            }
        }
        Ok(Some(fold))
    }

    /// What some groups add up to; none if there are none.
    fn train(
        &self,
        keep: impl Fn(&BTreeSet<Arc<str>>) -> bool,
    ) -> Result<Option<(Moments, Baseline)>, FitError> {
        if self.stop.is_some_and(|stop| stop.load(Ordering::Relaxed)) {
            return Err(FitError::Stopped);
        }
        let mut moments = Moments::new(self.components, self.weighting);
        let mut cases: BTreeMap<&Case, (f64, f64)> = BTreeMap::new();
        for (_, group) in self.groups.iter().filter(|(programs, _)| keep(programs)) {
            moments.merge(&group.moments);
            for (case, (count, sum)) in &group.cases {
                let total = cases.entry(case).or_default();
                total.0 += count;
                total.1 += sum;
            }
        }
        if cases.is_empty() {
            return Ok(None);
        }
        let cases = cases.into_iter().map(|(case, (count, sum))| (case, count, sum / count));
        let baseline = Baseline::fit(cases).ok_or(FitError::Unsolvable)?;
        Ok(Some((moments, baseline)))
    }
}

impl Validation {
    /// Errors of the slowdown over all folds.
    #[must_use]
    pub fn slowdown(&self, predictor: Predictor) -> Errors {
        merge(self.folds.iter().filter_map(|fold| fold.slowdown.get(&predictor)))
    }

    /// Errors of a component of the throttled stacks over all folds.
    #[must_use]
    pub fn component(&self, inversion: Inversion, component: usize) -> Errors {
        let of = |fold: &'_ Fold| fold.components.get(&inversion)?.get(component).cloned();
        merge(self.folds.iter().filter_map(of).collect::<Vec<_>>().iter())
    }

    /// All errors as a model file keeps them: each predictor's of the slowdown,
    /// each inversion's of each component.
    #[must_use]
    pub fn scores(&self, components: &Components, holdout: Holdout) -> Vec<Score> {
        let score = |of: &str, predicts: &str, errors: &Errors| {
            Some(Score {
                of: of.to_owned(),
                predicts: predicts.to_owned(),
                holdout,
                count: errors.count(),
                mean_absolute: errors.mean_absolute()?,
                within: errors.share_within()?,
            })
        };
        let slowdowns = Predictor::ALL
            .into_iter()
            .filter_map(|predictor| score(predictor.name(), "slowdown", &self.slowdown(predictor)));
        let inverses = Inversion::ALL.into_iter().flat_map(|inversion| {
            components.names().enumerate().filter_map(move |(at, name)| {
                score(inversion.name(), name, &self.component(inversion, at))
            })
        });
        slowdowns.chain(inverses).collect()
    }

    /// The component that is largest in the measured throttled stacks.
    #[must_use]
    pub fn largest_component(&self) -> usize {
        let mut sums: Vec<f64> = Vec::new();
        for fold in &self.folds {
            sums.resize(fold.shares.len().max(sums.len()), 0.0);
            for (sum, share) in sums.iter_mut().zip(&fold.shares) {
                *sum += share;
            }
        }
        let largest = sums.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1));
        largest.map_or(0, |(at, _)| at)
    }
}

fn merge<'a>(parts: impl Iterator<Item = &'a Errors>) -> Errors {
    parts.fold(Errors::default(), |mut sum, part| {
        sum.merge(part);
        sum
    })
}
