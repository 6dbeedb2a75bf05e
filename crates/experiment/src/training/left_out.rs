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
//! Without nobody it is the training's own model, and without some programs it knows nothing of them
//! (`models_without_some_programs_are_fitted_on_the_others`). Whether enough remains to fit one is
//! known beforehand ([`Models::can_do_without`]).

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use symbiont_counters::catalogue::Catalogue;
use symbiont_model::{
    Model, Observation, Pressure, Shares, SmtMode, Throttling, Trained, TrainingSet,
};

use super::campaign::{Kept, kept};
use super::evaluate::{alone, observe, ratios, wrong};
use crate::harness::Error;

/// What a training observed.
#[derive(Debug)]
pub struct LeftOut {
    model: Model,
    pressure: Pressure,
    rulers: BTreeSet<Arc<str>>,
    modes: Vec<Observed>,
}

/// Of one mode.
#[derive(Debug)]
struct Observed {
    mode: SmtMode,
    observations: Vec<Observation>,
    /// Throttled stacks with throttled over isolated CPI, by program.
    ratios: Vec<(String, Shares, f64)>,
}

impl LeftOut {
    /// Reads a training's folder; `model` is what it came to, of a machine whose counters are read by
    /// `catalogue`.
    ///
    /// # Errors
    /// When the folder does not hold a whole training of that machine and stack, or it cannot be read.
    pub fn read(folder: &Path, model: Model, catalogue: &Catalogue) -> Result<Self, Error> {
        let Kept { size, rulers, runs } = kept(folder, &model)?;
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
        Ok(Self { model, pressure, rulers, modes })
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
    known: Mutex<BTreeMap<BTreeSet<Arc<str>>, Arc<Model>>>,
}

impl Models<'_> {
    /// Does the training hold enough to fit a model that knows nothing of these programs?
    #[must_use]
    pub fn can_do_without(&self, programs: &[String]) -> bool {
        let programs = set_of(programs);
        self.sets.iter().all(|(_, set)| set.remains_without(&programs))
    }

    /// The model that knows nothing of these programs.
    ///
    /// # Errors
    /// When too few are left to fit on.
    pub fn without(&self, programs: &[String]) -> Result<Arc<Model>, Error> {
        let programs = set_of(programs);
        let known = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(model) = known().get(&programs) {
            return Ok(Arc::clone(model));
        }
        let model = Arc::new(self.fit(&programs)?);
        known().insert(programs, Arc::clone(&model));
        Ok(model)
    }

    fn fit(&self, programs: &BTreeSet<Arc<str>>) -> Result<Model, Error> {
        let mut model = self.left_out.model.clone();
        model.training.programs.retain(|program| !programs.contains(program.as_str()));
        model.modes.clear();
        for (observed, set) in &self.sets {
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
