//! Helpers of tests.

use std::collections::BTreeMap;

use symbiont_counters::catalogue::Catalogue;
use symbiont_topology::CoreKind;

use crate::synthetic::World;
use crate::{
    Coefficients, Components, Holdout, Model, SmtMode, Throttling, Trained, Training, TrainingSet,
};

/// A model of pairs on the paper's machine, trained on synthetic programs.
pub(crate) fn model() -> Model {
    let catalogue = Catalogue::named("power8").unwrap().unwrap();
    let components = Components::of(&catalogue, "cpi_stack").unwrap();
    let law = Coefficients::new(World::law(components.len(), 0.4)).unwrap();
    let world = World { noise: 0.02, ..World::new(6, 3, law, 7) };
    let observations = world.observe(&world.all_pairs(), 4, 8);
    let set = TrainingSet::new(SmtMode::Smt2, &observations).unwrap();
    let validation = set.cross_validate(Holdout::Programs).unwrap();
    let trained = Trained {
        fit: set.fit().unwrap(),
        throttling: Some(Throttling { weights: vec![1.1; components.len()], error: 0.03 }),
        scores: validation.scores(&components, Holdout::Programs),
    };
    Model {
        machine: "IBM Power System S812L".into(),
        core: CoreKind::Performance,
        catalogue: catalogue.name().into(),
        components,
        training: Training {
            date: "2026-01-02T03:04:05Z".into(),
            programs: world.programs.iter().map(|(name, _)| name.to_string()).collect(),
            quantum_ms: 100,
            note: String::new(),
        },
        modes: BTreeMap::from([(SmtMode::Smt2, trained)]),
    }
}

/// Equal but for rounding.
pub(crate) fn close(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-9
}
