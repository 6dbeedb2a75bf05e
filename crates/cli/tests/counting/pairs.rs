//! `symbiont run --policy symbiotic` over a toy catalogue.

use std::path::Path;

use symbiont_machine::Target;
use symbiont_trace::Reader;

use crate::balance::{Bench, Program, run};
use crate::toy::{TOY, model, this_machine};

pub fn paired() {
    let Some(Bench { cpus, state, record }) = Bench::set() else { return };
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
        let shown = quantum.placement.values().filter(|assignment| {
            matches!(assignment.target, Target::Cpus(_))
                && assignment.predicted_slowdown.is_some()
                && assignment.reason.contains("predicted slowdowns")
        });
        quanta += u32::from(shown.count() == 4);
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
    assert!(none.contains("name the file with --model (`symbiont train`"), "{none}");
    let other = model(folder.path(), "another machine");
    let path = other.to_str().unwrap();
    let foreign = said(&["--model", path]);
    assert!(foreign.contains("trained on 'another machine', this is"), "{foreign}");
    let text = std::fs::read_to_string(&other).unwrap();
    std::fs::write(&other, text.replace("synthetic", "edited")).unwrap();
    let damaged = said(&["--model", path]);
    assert!(damaged.contains("damaged: its checksum"), "{damaged}");
    std::fs::write(&other, text.replace("version = 5", "version = 4")).unwrap();
    let older = said(&["--model", path]);
    assert!(older.contains("its format is version 4"), "{older}");
}
