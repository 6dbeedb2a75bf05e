//! `symbiont run --policy hysched` over a catalogue of software events that stand for
//! Top-Down categories.

use std::path::Path;

use symbiont_linux::perf::support;
use symbiont_machine::Target;

use crate::balance::{Bench, Program, distinguished, run, skip};

const SLOTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/counting/slots.toml");
const ARGS: [&str; 4] = ["--policy", "hysched", "--catalogue", SLOTS];

/// Two of each category on two cores: on each core one of each, pinned. Where a core
/// has one hardware thread only, a pair takes turns.
pub fn paired() {
    let Some(Bench { cpus, state, record }) = Bench::set() else { return };
    let program = Program::start(&state, &ARGS, &record, cpus);
    let hungry = program.processes["hungry"].clone();
    assert_eq!(program.processes.values().map(Vec::len).sum::<usize>(), 4);
    program.wait_until_apart(&record, |record| judge(record, &hungry));
    program.finish();
    assert!(judge(&record, &hungry) >= 10);
}

/// Whenever all four have a place and were counted for long enough, the two of a category are
/// apart, and the reason says why. How often was that?
fn judge(record: &Path, hungry: &[u32]) -> u32 {
    let mut judged = 0;
    for (quantum, _) in distinguished(record) {
        let placed: Vec<_> = (quantum.placement.iter())
            .filter_map(|(id, assignment)| match &assignment.target {
                Target::Cpus(cpus) => Some((id, cpus, &assignment.reason)),
                Target::Os => None,
            })
            .collect();
        if placed.len() != 4 {
            continue;
        }
        judged += 1;
        for is_hungry in [true, false] {
            let places: Vec<_> = (placed.iter())
                .filter(|(id, ..)| hungry.contains(&id.process) == is_hungry)
                .map(|(_, cpus, _)| *cpus)
                .collect();
            assert!(matches!(places[..], [a, b] if a.is_disjoint(b)), "{placed:?}");
        }
        for (_, _, reason) in placed {
            assert!(reason.contains("different categories"), "{reason}");
            assert!(reason.contains("retiring") && reason.contains("backend_bound"), "{reason}");
        }
    }
    judged
}

/// The catalogue has the first level only; the default variant is the third.
pub fn made_do() {
    if support().software.is_err() {
        return skip("software events cannot be counted");
    }
    let output = run(&ARGS);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("TopL are the deepest categories there are"), "{said}");
}
