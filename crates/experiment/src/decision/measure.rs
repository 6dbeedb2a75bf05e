//! Carries out one run.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use symbiont_control::Controller;
use symbiont_counters::catalogue::Catalogue;
use symbiont_machine::Machine;
use symbiont_model::{
    Coefficients, Components, Depth, Model, SmtMode, Throttling, Trained, Training,
};
use symbiont_planner::{Bounds, Planner};
use symbiont_policy::{Models, Policy, Settings, SymbioticOnline};
use symbiont_topology::{CoreKind, Topology};
use symbiont_training::fit;
use symbiont_training::synthetic::World;

use super::plan::Load;
use super::synthetic_threads::SyntheticThreads;
use symbiont_campaign::harness::Error;

/// Whose events are counted.
const CATALOGUE: &str = "power8";
/// The first decision: the first sample has nothing to compare with.
const FIRST: u32 = 1;
const QUANTUM: Duration = Duration::from_millis(100);

/// What decisions are made by, for each stack that was asked for.
pub(super) struct FittedModels {
    catalogue: Catalogue,
    models: BTreeMap<Depth, Arc<Models>>,
}

fn wrong(why: impl std::fmt::Display) -> Error {
    Error::Evaluation(why.to_string())
}

impl FittedModels {
    pub fn new() -> Result<Self, Error> {
        let catalogue = Catalogue::named(CATALOGUE);
        let catalogue = catalogue.ok_or_else(|| wrong(format!("no catalogue '{CATALOGUE}'")))?;
        Ok(Self { catalogue: catalogue.map_err(wrong)?, models: BTreeMap::new() })
    }

    /// Wall time of each decision, ms, the first one too.
    ///
    /// # Errors
    /// When a decision does not group all threads.
    pub fn measure(&mut self, load: Load, quanta: u32) -> Result<Vec<f64>, Error> {
        let models = Some(self.model(load.stack)?);
        let line = format!("core:{} smt:{}", load.cores(), load.smt);
        let topology = Topology::synthetic(&line).map_err(wrong)?;
        let places = topology.cpus().len();
        let policy = SymbioticOnline::with(&Settings { models, ..Settings::default() });
        let threads =
            SyntheticThreads::new(topology, &self.catalogue, &policy.requirements().required);
        let planner = Planner::new(Bounds::none());
        let mut controller = Controller::new(threads, Box::new(policy), planner);
        let mut times = Vec::with_capacity(quanta as usize);
        for quantum in 0..=quanta + FIRST {
            let begin = Instant::now();
            let step = controller.step().map_err(wrong)?;
            let took = begin.elapsed();
            let grouped = step.placement.values().filter(|a| a.predicted_slowdown.is_some());
            if quantum >= FIRST {
                let grouped = grouped.count();
                if grouped != places {
                    return Err(wrong(format!("{load}: {grouped} of {places} were grouped")));
                }
                times.push(took.as_secs_f64() * 1e3);
            }
            controller.machine_mut().wait(QUANTUM).map_err(wrong)?;
        }
        Ok(times)
    }

    fn model(&mut self, stack: Depth) -> Result<Arc<Models>, Error> {
        if let Some(known) = self.models.get(&stack) {
            return Ok(Arc::clone(known));
        }
        let models = Arc::new(model(&self.catalogue, stack)?.into());
        self.models.insert(stack, Arc::clone(&models));
        Ok(models)
    }
}

/// A model of synthetic programs.
fn model(catalogue: &Catalogue, stack: Depth) -> Result<Model, Error> {
    let components = Components::of(catalogue, stack.sum()).map_err(wrong)?;
    let law = Coefficients::new(World::law(components.len(), 0.5)).map_err(wrong)?;
    let world = World { noise: 0.02, ..World::new(20, 3, law, 1) };
    let mut modes = BTreeMap::new();
    for mode in [SmtMode::Smt2, SmtMode::Smt4] {
        let groups = world.some_groups(mode.threads(), 100, 2);
        let fit = fit(mode, &world.observe(&groups, 3, 3)).map_err(wrong)?;
        let throttling = Throttling { weights: vec![1.1; components.len()], error: 0.0 };
        modes.insert(mode, Trained { fit, throttling: Some(throttling), scores: Vec::new() });
    }
    let training = Training {
        date: String::new(),
        programs: Vec::new(),
        quantum_ms: QUANTUM.as_millis() as u64,
        note: String::new(),
    };
    Ok(Model {
        machine: "a synthetic machine".to_owned(),
        core: CoreKind::Performance,
        catalogue: catalogue.name().to_owned(),
        components,
        training,
        modes,
    })
}
