//! Interference models that sources train on a simulated core, and what policies are given of them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use symbiont_model::Depth;
use symbiont_policy::Settings;
use symbiont_profile::Profile;
use symbiont_sim_fast::description::Description;
use symbiont_sim_fast::fast::TableBuilder;
use symbiont_sim_fast::machine::Errors;

use super::Context;
use symbiont_campaign::{Error, Progress, digest};
use symbiont_experiments_sim::mixes::Contender;
use symbiont_experiments_sim::training::simulated::Simulated;
use symbiont_experiments_sim::training::{
    self, LeftOut, Throughputs, TrainingResult, TrainingSize,
};
use symbiont_training::Weighting;

/// Carries out training runs on a core with this many threads, and hands them to `then`.
fn on_core<T>(
    machine: Description,
    width: usize,
    profiles: &BTreeMap<String, Profile>,
    (size, stack): (&TrainingSize, Depth),
    context: &Context<'_>,
    then: impl FnOnce(&Simulated<'_, '_>, &training::TrainingOptions) -> Result<T, Error>,
) -> Result<T, Error> {
    let builder =
        TableBuilder::new(machine.restricted(Some(1), Some(width)).map_err(Error::evaluation)?);
    let modes: Vec<u32> = [1, 2, 4].into_iter().filter(|mode| *mode <= width as u32).collect();
    (context.prepare)(&builder, &profiles.values().collect::<Vec<_>>(), &modes)?;
    let by = (Errors::default(), context.seed, context.workers);
    let site = Simulated::new(&builder, profiles, by).map_err(Error::evaluation)?;
    let options = training::TrainingOptions {
        output: context.records.clone(),
        programs: profiles.keys().cloned().collect(),
        stack,
        weighting: Weighting::Plain,
        size: size.clone(),
        seed: context.seed,
    };
    then(&site, &options)
}

/// A model of all programs, with its cross-validated errors.
pub fn train(
    machine: Description,
    width: usize,
    profiles: &BTreeMap<String, Profile>,
    size: &TrainingSize,
    context: &Context<'_>,
    progress: &mut dyn Progress,
) -> Result<TrainingResult, Error> {
    let of = (size, Depth::Coarse);
    on_core(machine, width, profiles, of, context, |site, options| {
        let runs = training::observe(site, options, progress)?;
        training::judge(site, options, &runs, progress)
    })
}

/// What models without some of the programs are fitted on.
pub fn left_out(
    machine: Description,
    width: usize,
    profiles: &BTreeMap<String, Profile>,
    of: (&TrainingSize, Depth),
    context: &Context<'_>,
    progress: &mut dyn Progress,
) -> Result<LeftOut, Error> {
    on_core(machine, width, profiles, of, context, |site, options| {
        let runs = training::observe(site, options, progress)?;
        LeftOut::new(site, options, &runs)
    })
}

/// The throughput of groups that `next` asks for (see [`training::explore`]).
pub fn explore(
    machine: Description,
    width: usize,
    profiles: &BTreeMap<String, Profile>,
    size: &TrainingSize,
    context: &Context<'_>,
    next: &(dyn Fn(&Throughputs) -> BTreeSet<Vec<String>> + Sync),
    progress: &mut dyn Progress,
) -> Result<Throughputs, Error> {
    let of = (size, Depth::Coarse);
    on_core(machine, width, profiles, of, context, |site, options| {
        training::explore(site, options, next, progress)
    })
}

/// What policies get.
#[derive(Debug, Clone, Default)]
pub struct Knowledge {
    /// A model, and the slowdowns of all pairs.
    pub settings: Settings,
    /// A digest of both.
    pub key: String,
}

impl Knowledge {
    /// Of a training.
    pub fn of(trained: &TrainingResult) -> Self {
        Self::new(&trained.model, &trained.slowdowns)
    }

    /// Of a model and slowdowns of pairs.
    pub fn new(model: &symbiont_model::Model, slowdowns: &symbiont_policy::PairSlowdowns) -> Self {
        let settings = Settings {
            models: Some(Arc::new(model.clone().into())),
            slowdowns: Some(Arc::new(slowdowns.clone())),
            ..Settings::default()
        };
        Self { settings, key: digest(&[&format!("{:?} {slowdowns:?}", model.modes)]) }
    }

    /// A policy that gets it.
    pub fn contender(&self, name: &str, policy: &'static str) -> Contender {
        let key = format!("{} {name}", self.key);
        Contender { settings: self.settings.clone(), key, ..Contender::new(name, policy) }
    }
}
