//! `symbiont run --policy fpu` over a stand-in catalogue: page faults stand for floating-point
//! operations.

use std::time::Instant;

use crate::balance::{Bench, LASTS, Program, QUANTUM, STAND_IN, TIMEOUT, mask_of};

/// Where those are left to the OS that use the units little: the two hungry processes have a hardware thread each, of different cores, and the others may use
/// both, several times in a row.
pub fn spread() {
    let Some(Bench { cpus, state, record }) = Bench::set() else { return };
    let text = std::fs::read_to_string(STAND_IN).unwrap();
    let [before, after] = [
        "expr = \"context_switches / task_clock\"\nunit = \"switches/nanoseconds\"",
        "expr = \"page_faults / task_clock\"\nunit = \"faults/nanoseconds\"",
    ];
    assert!(text.contains(before), "{text}");
    let catalogue = state.path().join("fpu.toml");
    std::fs::write(&catalogue, text.replace(before, after)).unwrap();
    let args = ["--policy", "fpu", "--set", "least-usage=0.5", "--catalogue"];
    let args = [&args[..], &[catalogue.to_str().unwrap()]].concat();
    let program = Program::start(&state, &args, &record, cpus);
    let own = cpus.into_iter().collect();
    let (begin, mut right) = (Instant::now(), 0);
    while right < LASTS {
        let masks = |role: &str| -> Vec<_> {
            program.processes[role].iter().map(|process| mask_of(*process)).collect()
        };
        let modest = masks("modest");
        assert!(
            begin.elapsed() < TIMEOUT,
            "{right} times in a row; hungry {:?}, modest {modest:?}",
            masks("hungry")
        );
        std::thread::sleep(QUANTUM);
        let are_left = modest.iter().all(|mask| mask.as_ref() == Some(&own));
        right = if program.is_apart("hungry") && are_left { right + 1 } else { 0 };
    }
    program.finish();
}
