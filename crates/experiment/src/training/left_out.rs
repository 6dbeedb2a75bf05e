//! Models of all programs of a training but some.
//!
//! # Problem
//! What a policy gains with programs that its model was trained on says nothing of others. To train
//! anew for each workload would take hours.
//!
//! # Approach
//! A training keeps all of its runs. [`LeftOut`] reads them, and [`Models`] fits on those without any of
//! the programs that are named: coefficients, ridges and throttling, everything that was learned.
//!
//! # Properties
//! - Without nobody it is the training's own model, and without some programs it knows nothing of them
//!   (`models_without_some_programs_are_fitted_on_the_others`).
//! - Whether enough remains to fit one is known beforehand ([`Models::can_do_without`]), and so is how
//!   many groups of four would do where they are too few
//!   (`what_lacks_and_what_would_do_is_told`).
//! - A model for workloads of pairs asks for no groups of four
//!   (`workloads_of_pairs_ask_for_no_groups_of_four`).

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use symbiont_counters::catalogue::Catalogue;
use symbiont_model::{
    Model, Observation, Pressure, Shares, SmtMode, Throttling, Trained, TrainingSet,
};

use super::campaign::{Kept, kept};
use super::evaluate::{alone, observe, ratios, wrong};
use super::plan::fours;
use crate::harness::Error;

/// Groups of four of the largest training that is thought of.
pub const MOST_FOURS: usize = 20_000;

/// What a training observed.
#[derive(Debug)]
pub struct LeftOut {
    pub(super) model: Model,
    pub(super) planned: Planned,
    pub(super) pressure: Pressure,
    pub(super) rulers: BTreeSet<Arc<str>>,
    pub(super) modes: Vec<Observed>,
}

/// What groups of four were drawn from.
#[derive(Debug)]
pub(super) struct Planned {
    pub programs: Vec<String>,
    pub fours: usize,
    pub seed: u64,
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
    /// Reads a training's folder; `model` is what it came to, of a machine whose counters are read by
    /// `catalogue`.
    ///
    /// # Errors
    /// When the folder does not hold a whole training of that machine and stack, or it cannot be read.
    pub fn read(folder: &Path, model: Model, catalogue: &Catalogue) -> Result<Self, Error> {
        let Kept { size, programs, rulers, seed, runs } = kept(folder, &model)?;
        let isolated = alone(&runs, 1)?;
        let mut modes = Vec::new();
        for width in size.widths() {
            let Some(mode) = SmtMode::of(width) else { continue };
            let throttled = alone(&runs, width)?;
            let (observations, _) = observe(&runs, width, &throttled)?;
            modes.push(Observed { mode, observations, ratios: ratios(&runs, width, &isolated)? });
        }
        let pressure = Pressure::of(catalogue, &model.components);
        let rulers = rulers.iter().map(|ruler| Arc::from(ruler.as_str())).collect();
        let planned = Planned { programs, fours: size.fours, seed };
        Ok(Self { model, planned, pressure, rulers, modes })
    }

    /// What it came to with everybody.
    #[must_use]
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// Makes it ready to fit.
    ///
    /// # Errors
    /// When nothing was observed.
    pub fn models(&self) -> Result<Models<'_>, Error> {
        let mut sets = Vec::new();
        for observed in &self.modes {
            let set = TrainingSet::new(observed.mode, &observed.observations).map_err(wrong)?;
            let set = set.pressed_by(&self.pressure).with_rulers(self.rulers.clone());
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
    known: Mutex<BTreeMap<Wanted, Arc<Model>>>,
}

/// Programs that a model knows nothing of, and the threads of the widest groups that it knows.
type Wanted = (BTreeSet<Arc<str>>, usize);

/// Threads of the groups that a model has to know for cores of so many threads: no group is chosen
/// without the narrower ones that it is made of.
pub fn groups_for(width: usize) -> impl Iterator<Item = usize> {
    [2, 4].into_iter().filter(move |&threads| threads <= widest_for(width))
}

/// The widest of them.
fn widest_for(width: usize) -> usize {
    width.next_power_of_two().clamp(2, 4)
}

impl Models<'_> {
    /// Does the training hold enough to fit a model for cores of so many threads that knows nothing of
    /// these programs?
    #[must_use]
    pub fn can_do_without(&self, programs: &[String], width: usize) -> bool {
        groups_for(width).all(|threads| self.groups_without(programs, threads) > 0)
    }

    /// How many groups of so many threads the training holds without these programs.
    #[must_use]
    pub fn groups_without(&self, programs: &[String], threads: usize) -> usize {
        let programs = set_of(programs);
        let mode = SmtMode::of(threads);
        let sets = self.sets.iter().filter(|(observed, _)| Some(observed.mode) == mode);
        sets.map(|(_, set)| set.groups_without(&programs)).sum()
    }

    /// The programs of the training, but for rulers.
    #[must_use]
    pub fn programs(&self) -> &[String] {
        &self.left_out.planned.programs
    }

    /// Groups of four that the training was to draw.
    #[must_use]
    pub fn fours(&self) -> usize {
        self.left_out.planned.fours
    }

    /// So many groups of four that a training of the same programs and seed draws for each of these sets
    /// of programs one without any of them; none where not even [`MOST_FOURS`] do.
    #[must_use]
    pub fn fours_for(&self, all: &[Vec<String>]) -> Option<usize> {
        let Planned { programs, seed, .. } = &self.left_out.planned;
        let drawn = fours(programs, MOST_FOURS, *seed);
        let first = |left_out: &Vec<String>| {
            drawn.iter().position(|group| !group.iter().any(|one| left_out.contains(one)))
        };
        let firsts: Option<Vec<usize>> = all.iter().map(first).collect();
        Some(firsts?.into_iter().max().map_or(0, |last| last + 1))
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

    fn fit(&self, (programs, widest): &Wanted) -> Result<Model, Error> {
        let mut model = self.left_out.model.clone();
        model.training.programs.retain(|program| !programs.contains(program.as_str()));
        model.modes.clear();
        let known = |observed: &Observed| observed.mode.threads() <= *widest;
        for (observed, set) in self.sets.iter().filter(|(observed, _)| known(observed)) {
            let fit = set.fit_without(programs).map_err(wrong)?;
            let others = observed.ratios.iter().filter(|(of, ..)| !programs.contains(of.as_str()));
            let ratios: Vec<(Shares, f64)> =
                others.map(|(_, stack, ratio)| (stack.clone(), *ratio)).collect();
            let throttling = Some(Throttling::fit(&ratios).map_err(wrong)?);
            model.modes.insert(observed.mode, Trained { fit, throttling, scores: Vec::new() });
        }
        Ok(model)
    }
}

fn set_of(programs: &[String]) -> BTreeSet<Arc<str>> {
    programs.iter().map(|one| one.as_str().into()).collect()
}
