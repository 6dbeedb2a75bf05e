//! Workloads of the simulator, from a file and from a list.
#![no_main]

use symbiont_fuzz::fuzz_target;

// The experiments' crate as a whole takes minutes to build. What reads workloads is one file of it.
#[path = "../../../crates/research/experiments-sim/src/workload.rs"]
mod workload;

use workload::Workload;

fuzz_target!(|text: &str| {
    let _ = Workload::from_toml("input", text);
    let Ok(read) = Workload::from_list(text) else { return };
    let apps: Vec<String> = read.apps.iter().map(ToString::to_string).collect();
    let again = Workload::from_list(&apps.join(",")).expect("what was written can be read");
    assert_eq!(again.apps, read.apps);
});
