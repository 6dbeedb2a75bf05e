//! Descriptions of simulated machines, and parts of these machines.
#![no_main]

use symbiont_fuzz::fuzz_target;
use symbiont_sim_fast::description::Description;

fuzz_target!(|text: &str| {
    let Ok(machine) = Description::parse("input", text) else { return };
    for core in machine.topology.cores() {
        assert!(machine.core_type(core.kind).is_some() && machine.hertz(core) > 0.0);
    }
    let part = machine.clone().restricted(Some(1), Some(1)).expect("each machine has a core");
    assert_eq!(part.topology.cpus().len(), 1);
});
