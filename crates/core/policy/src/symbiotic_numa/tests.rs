use std::sync::Arc;

use symbiont_machine::test_support::full_support;
use symbiont_topology::PuId;

use super::*;
use crate::worlds::stacks::{Bench, model};
use crate::{Settings, SymbioticOnline};

const LIKE: [f64; 5] = [40.0, 30.0, 10.0, 10.0, 10.0];
const ONE_MEMORY: &str = "node:1 core:2 smt:2 memory:1G | node:1 core:2 smt:2 memory:0";
const TWO_MEMORIES: &str = "node:1 core:2 smt:2 memory:1G | node:1 core:2 smt:2 memory:1G";

fn symbiotic() -> Symbiotic {
    let models = Some(Arc::new(model().into()));
    Symbiotic::published(&Settings { models, ..Settings::default() })
}

/// Steps until where threads are no longer depends on where they began; which
/// asks for memory, four of eight, is shown by `hungry`.
fn run(machine: &str, hungry: impl Fn(usize) -> bool, policy: &mut dyn Policy) -> Bench {
    let mut bench = Bench::new(machine, &[LIKE; 8]);
    for _ in 0..3 {
        bench.measure();
        for at in 0..8 {
            bench.set_signal(at, "memory_request_rate", if hungry(at) { 0.02 } else { 0.0 });
        }
        bench.decide(policy);
    }
    bench
}

/// How many of the hungry are on the node with memory.
fn near(bench: &Bench, hungry: impl Fn(usize) -> bool) -> usize {
    let first: CpuSet = (0..4).map(PuId).collect();
    (0..8).filter(|at| hungry(*at) && bench.cpus(*at).is_subset(&first)).count()
}

#[test]
fn groups_that_ask_most_of_memory_run_near_it() {
    // The last four begin on the node without memory, and the pairs stay.
    let hungry = |at: usize| at >= 4;
    let uniform = run(ONE_MEMORY, hungry, &mut symbiotic());
    assert_eq!(near(&uniform, hungry), 0);
    let aware = run(ONE_MEMORY, hungry, &mut SymbioticNuma::new(symbiotic()));
    assert_eq!(near(&aware, hungry), 4);
    let reasons = aware.placement().values().filter(|a| a.reason.starts_with("near the memory"));
    assert_eq!(reasons.count(), 4);
}

#[test]
fn symbiotic_online_runs_groups_near_memory_too() {
    let hungry = |at: usize| at >= 4;
    let online = |machine: &str| {
        let models = Some(Arc::new(model().into()));
        let mut policy = SymbioticOnline::with(&Settings { models, ..Settings::default() });
        policy.offer(&full_support(), &Topology::synthetic(machine).unwrap());
        run(machine, hungry, &mut policy)
    };
    assert_eq!(near(&online(ONE_MEMORY), hungry), 4);
    let reasons = |bench: &Bench| {
        bench.placement().values().filter(|a| a.reason.starts_with("near the memory")).count()
    };
    assert_eq!((reasons(&online(ONE_MEMORY)), reasons(&online(TWO_MEMORIES))), (4, 0));
}

#[test]
fn with_memory_everywhere_it_is_symbiotic() {
    let hungry = |at: usize| at >= 4;
    let uniform = run(TWO_MEMORIES, hungry, &mut symbiotic());
    let aware = run(TWO_MEMORIES, hungry, &mut SymbioticNuma::new(symbiotic()));
    assert_eq!(uniform.targets(), aware.targets());
}

/// Negative control: where all ask alike no thread moves.
#[test]
fn equal_demand_moves_no_thread() {
    let uniform = run(ONE_MEMORY, |_| true, &mut symbiotic());
    let aware = run(ONE_MEMORY, |_| true, &mut SymbioticNuma::new(symbiotic()));
    let cores = |bench: &Bench| bench.groups();
    assert_eq!(cores(&uniform), cores(&aware));
}
