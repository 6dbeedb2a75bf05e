//! Models that are fitted on all programs of a training but some.
//!
//! # Problem
//! What a policy gains with programs that its model was trained on says nothing about others. Training
//! anew for each workload would take hours.
//!
//! # Approach
//! [`LeftOut`] holds what a training observed, and [`Models`] fits on that without any of the programs
//! that are named: coefficients, ridges, throttling, and all else that was learned.
//!
//! # Properties
//! - With no program left out it is the training's own model, and it knows nothing of those that are
//!   left out (`models_without_some_programs_are_fitted_on_the_others`).
//! - Whether enough remains to fit one is known beforehand ([`Models::can_do_without`]); a model for
//!   workloads of pairs asks for no groups of four (`workloads_of_pairs_ask_for_no_groups_of_four`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use symbiont_model::{Components, Model, Shares, SmtMode, TrainedMode};
use symbiont_policy::PairSlowdowns;
use symbiont_training::{Observation, TrainingSet, Weighting, fit_throttling};

use super::evaluate::{alone, observe, ratios, slowdowns};
use super::options::TrainingOptions;
use super::plan::TrainingRun;
use super::site::Site;
use super::watch::WatchedRun;
use symbiont_campaign::Error;

/// What a training observed.
#[derive(Debug)]
pub struct LeftOut {
    /// What an observation weighs in a fit.
    pub(super) weighting: Weighting,
    /// Of which machine and components, without coefficients.
    pub(super) model: Model,
    /// Mean slowdowns of pairs against running alone.
    pub slowdowns: PairSlowdowns,
    pub(super) modes: Vec<Observed>,
}

/// Of one mode.
#[derive(Debug)]
pub(super) struct Observed {
    pub mode: SmtMode,
    pub observations: Vec<Observation>,
    /// Throttled stacks with throttled over isolated CPI, by program.
    pub ratios: Vec<(String, Shares, f64)>,
}

impl LeftOut {
    /// Of a training's runs.
    ///
    /// # Errors
    /// When some are missing.
    pub fn new(
        site: &dyn Site,
        options: &TrainingOptions,
        runs: &BTreeMap<TrainingRun, WatchedRun>,
    ) -> Result<Self, Error> {
        let isolated = alone(runs, 1)?;
        let mut modes = Vec::new();
        for width in options.size.widths() {
            let Some(mode) = SmtMode::of(width) else { continue };
            let throttled = alone(runs, width)?;
            let (observations, _) = observe(runs, width, &throttled)?;
            modes.push(Observed { mode, observations, ratios: ratios(runs, width, &isolated)? });
        }
        let model = Model {
            machine: site.machine(),
            core: site.core(),
            catalogue: site.catalogue().name().to_owned(),
            components: options.components(site)?,
            training: options.training(),
            modes: BTreeMap::new(),
        };
        Ok(Self {
            weighting: options.weighting,
            slowdowns: slowdowns(
                runs,
                (&options.programs, options.size.quantum),
                &model.machine,
                &isolated,
            )?,
            model,
            modes,
        })
    }

    /// Makes it ready to fit.
    ///
    /// # Errors
    /// When nothing was observed.
    pub fn models(&self) -> Result<Models<'_>, Error> {
        let mut sets = Vec::new();
        for observed in &self.modes {
            let set = TrainingSet::new(observed.mode, &observed.observations, self.weighting)
                .map_err(Error::evaluation)?;
            sets.push((observed, set));
        }
        Ok(Models { left_out: self, sets, known: Mutex::default() })
    }
}

/// Fits models without some programs, each once.
#[derive(Debug)]
pub struct Models<'l> {
    left_out: &'l LeftOut,
    sets: Vec<(&'l Observed, TrainingSet<'l>)>,
    known: Mutex<BTreeMap<ModelKey, Arc<Model>>>,
}

/// Programs that a model knows nothing of, and the threads of the widest groups that it knows.
type ModelKey = (BTreeSet<Arc<str>>, usize);

/// Threads of the widest groups that a model has to know for cores of so many threads: no group is
/// chosen without the narrower ones that it is made of.
fn widest_for(width: usize) -> usize {
    width.next_power_of_two().clamp(2, 4)
}

impl Models<'_> {
    /// The components of the stack that they predict from.
    #[must_use]
    pub fn components(&self) -> &Components {
        &self.left_out.model.components
    }

    /// Does the training hold enough to fit a model for cores of so many threads that knows nothing of
    /// these programs?
    #[must_use]
    pub fn can_do_without(&self, programs: &[String], width: usize) -> bool {
        let groups = [2, 4].into_iter().filter(|&threads| threads <= widest_for(width));
        groups.into_iter().all(|threads| self.groups_without(programs, threads) > 0)
    }

    /// How many groups of so many threads the training holds without these programs.
    pub(super) fn groups_without(&self, programs: &[String], threads: usize) -> usize {
        let programs = set_of(programs);
        let mode = SmtMode::of(threads);
        let sets = self.sets.iter().filter(|(observed, _)| Some(observed.mode) == mode);
        sets.map(|(_, set)| set.groups_without(&programs)).sum()
    }

    /// The model for cores of so many threads that knows nothing of these programs.
    ///
    /// # Errors
    /// When too few are left to fit on.
    pub fn without(&self, programs: &[String], width: usize) -> Result<Arc<Model>, Error> {
        let wanted = (set_of(programs), widest_for(width));
        let known = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(model) = known().get(&wanted) {
            return Ok(Arc::clone(model));
        }
        let model = Arc::new(self.fit(&wanted)?);
        known().insert(wanted, Arc::clone(&model));
        Ok(model)
    }

    fn fit(&self, (programs, widest): &ModelKey) -> Result<Model, Error> {
        let mut model = self.left_out.model.clone();
        model.training.programs.retain(|program| !programs.contains(program.as_str()));
        let known = |observed: &Observed| observed.mode.threads() <= *widest;
        for (observed, set) in self.sets.iter().filter(|(observed, _)| known(observed)) {
            let fit = set.fit_without(programs).map_err(Error::evaluation)?;
            let others = observed.ratios.iter().filter(|(of, ..)| !programs.contains(of.as_str()));
            let ratios: Vec<(Shares, f64)> =
                others.map(|(_, stack, ratio)| (stack.clone(), *ratio)).collect();
            let throttling = Some(fit_throttling(&ratios).map_err(Error::evaluation)?);
            model.modes.insert(observed.mode, TrainedMode { fit, throttling, scores: Vec::new() });
        }
        Ok(model)
    }
}

fn set_of(programs: &[String]) -> BTreeSet<Arc<str>> {
    programs.iter().map(|one| one.as_str().into()).collect()
}
