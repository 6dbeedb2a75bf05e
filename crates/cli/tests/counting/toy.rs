//! A model of a toy catalogue, which counts software events.

use std::path::{Path, PathBuf};

use symbiont_counters::catalogue::Catalogue;
use symbiont_experiments_host::harness::Machine;
use symbiont_model::{Coefficients, Components, Model, SmtMode, Terms, TrainedMode, Training};
use symbiont_topology::{CoreKind, HostTopology};
use symbiont_training::fit;
use symbiont_training::synthetic::World;

/// The catalogue.
pub const TOY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/counting/toy.toml");

/// A model fitted on synthetic runs, in which page faults hurt page faults.
pub fn model(folder: &Path, machine: &str) -> PathBuf {
    let catalogue = Catalogue::parse(TOY, &std::fs::read_to_string(TOY).unwrap()).unwrap();
    let terms = |gamma, delta| Terms { alpha: 0.0, beta: 1.0, gamma, delta };
    let law = Coefficients::new(vec![terms(0.05, 0.0), terms(0.1, 1.0)]).unwrap();
    let world = World::new(12, 2, law, 1);
    let observations = world.observe(&world.all_pairs(), 4, 2);
    let fitted = fit(SmtMode::Smt2, &observations).unwrap();
    let trained = TrainedMode { fit: fitted, throttling: None, scores: Vec::new() };
    let kind =
        HostTopology::read().unwrap().cores().first().map_or(CoreKind::default(), |c| c.kind);
    let model = Model {
        machine: machine.to_owned(),
        core: kind,
        catalogue: catalogue.name().to_owned(),
        components: Components::of(&catalogue, "cpi_stack").unwrap(),
        training: Training {
            date: "2026-01-02T03:04:05Z".into(),
            programs: Vec::new(),
            quantum_ms: 20,
            note: "synthetic".into(),
        },
        modes: [(SmtMode::Smt2, trained)].into(),
    };
    let file = folder.join("model.toml");
    model.save(&file).unwrap();
    file
}

/// As models name it.
pub fn this_machine() -> String {
    Machine::read().processor.unwrap_or_else(|| "an unknown processor".to_owned())
}
