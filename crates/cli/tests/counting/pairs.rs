//! `symbiont run --policy symbiotic` over a toy catalogue.

use std::path::{Path, PathBuf};

use symbiont_counters::catalogue::Catalogue;
use symbiont_experiment::harness::Machine;
use symbiont_machine::Target;
use symbiont_model::synthetic::World;
use symbiont_model::{Coefficients, Components, Model, SmtMode, Terms, Trained, Training, fit};
use symbiont_topology::{CoreKind, HostTopology};
use symbiont_trace::Reader;

use crate::balance::{Program, Stage, run};

const TOY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/counting/toy.toml");

/// A model fitted on made-up runs, in which page faults hurt page faults.
fn model(folder: &Path, machine: &str) -> PathBuf {
    let catalogue = Catalogue::parse(TOY, &std::fs::read_to_string(TOY).unwrap()).unwrap();
    let terms = |gamma, delta| Terms { alpha: 0.0, beta: 1.0, gamma, delta };
    let law = Coefficients::new(vec![terms(0.05, 0.0), terms(0.1, 1.0)]).unwrap();
    let world = World::new(12, 2, law, 1);
    let observations = world.observe(&world.all_pairs(), 4, 2);
    let fitted = fit(SmtMode::Smt2, &observations).unwrap();
    let trained = Trained { fit: fitted, throttling: None, scores: Vec::new() };
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
            note: "made up".into(),
        },
        modes: [(SmtMode::Smt2, trained)].into(),
    };
    let file = folder.join("model.toml");
    model.save(&file).unwrap();
    file
}

fn this_machine() -> String {
    Machine::read().processor.unwrap_or_else(|| "an unknown processor".to_owned())
}

pub fn paired() {
    let Some(Stage { cpus, state, record }) = Stage::set() else { return };
    let model = model(state.path(), &this_machine());
    let args = ["--policy", "symbiotic", "--catalogue", TOY, "--model", model.to_str().unwrap()];
    let program = Program::start(&state, &args, &record, cpus);
    assert_eq!(program.processes.values().map(Vec::len).sum::<usize>(), 4);
    program.wait_until_apart(&record, explained);
    program.finish();
    assert!(explained(&record) >= 10);
}

/// Reasons and predictions travel with the placement: in how many quanta, for all four?
fn explained(record: &Path) -> u32 {
    let mut reader = Reader::open(record).unwrap();
    let mut quanta = 0;
    while let Some(quantum) = reader.next_quantum().unwrap() {
        let told = quantum.placement.values().filter(|assignment| {
            matches!(assignment.target, Target::Cpus(_))
                && assignment.predicted_slowdown.is_some()
                && assignment.reason.contains("predicted slowdowns")
        });
        quanta += u32::from(told.count() == 4);
    }
    quanta
}

pub fn refused() {
    let folder = tempfile::tempdir().unwrap();
    let said = |args: &[&str]| {
        let output = run(&[&["--catalogue", TOY, "--policy", "symbiotic"], args].concat());
        assert_eq!(output.status.code(), Some(125));
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let none = said(&[]);
    assert!(none.contains("no interference model: train one with `symbiont train`"), "{none}");
    let other = model(folder.path(), "another machine");
    let path = other.to_str().unwrap();
    let foreign = said(&["--model", path]);
    assert!(foreign.contains("trained on 'another machine', this is"), "{foreign}");
    let text = std::fs::read_to_string(&other).unwrap();
    std::fs::write(&other, text.replace("made up", "edited")).unwrap();
    let damaged = said(&["--model", path]);
    assert!(damaged.contains("damaged: its checksum"), "{damaged}");
    std::fs::write(&other, text.replace("version = 4", "version = 3")).unwrap();
    let older = said(&["--model", path]);
    assert!(older.contains("its format is version 3"), "{older}");
}
