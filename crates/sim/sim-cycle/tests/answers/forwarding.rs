//! Loads of what a store wrote that is still in the store queue.

use symbiont_profile::{FromStore, OpClass, test_support as synthetic};
use symbiont_sim_cycle::{CycleOptions, CycleReference, Op, Sample};
use symbiont_sim_fast::description::{Description, Forwarding};
use symbiont_sim_fast::fast::{Switches, TableBuilder};
use symbiont_sim_fast::machine::{Contention, Runner};
use symbiont_topology::{CoreId, NodeId};

use crate::support::*;

const FORWARD: u64 = 6;
const PARTIAL: u64 = 15;

fn forwarding(renames: bool) -> Description {
    let rule = Forwarding { latency: FORWARD as u32, partial: PARTIAL as u32, renames };
    machine(|_, core_type| core_type.forwarding = rule)
}

/// Cycles per round of a load, an addition to it and a store of the sum, where what the load reads was
/// stored so many rounds ago.
fn round(machine: &Description, rounds: u64, whole: bool, same_form: bool) -> f64 {
    let ops = move |n: u64| {
        let (at, which) = (n / 3, n % 3);
        let back = (3 * rounds).saturating_sub(2) as u16;
        let from = FromStore { back, whole, same_form };
        let address = DATA + at % rounds.max(1) * 8;
        match which {
            0 => Op {
                stored: (rounds > 0 && at >= rounds).then_some(from),
                ..Op::memory(OpClass::Load, address)
            },
            1 => Op { sources: [1, 0], ..Op::plain(OpClass::Integer) },
            _ => Op { sources: [1, 0], ..Op::memory(OpClass::Store, address) },
        }
    };
    let end = |count: u64| end(machine, stream((0..3 * count).map(ops)));
    (end(1200) - end(200)) as f64 / 1000.0
}

#[test]
fn a_chain_through_memory_takes_its_forwarding() {
    assert_eq!(round(&forwarding(false), 1, true, true), (FORWARD + 1) as f64);
    assert_eq!(round(&forwarding(true), 1, true, false), (FORWARD + 1) as f64);
    // Two chains side by side.
    assert_eq!(round(&forwarding(false), 2, true, true), (FORWARD + 1) as f64 / 2.0);
    // A control: nothing depends on anything, and a store is started and drained in a cycle.
    assert_eq!(round(&forwarding(false), 0, true, true), 1.0);
}

#[test]
fn a_renamed_chain_takes_no_forwarding() {
    assert_eq!(round(&forwarding(true), 1, true, true), 1.0);
}

#[test]
fn a_partial_store_is_waited_for_until_it_drained() {
    // It drains when its line has answered, which it asked for when it was issued.
    let once = (L1 + PARTIAL + 1) as f64;
    for renames in [false, true] {
        assert_eq!(round(&forwarding(renames), 1, false, true), once);
    }
}

#[test]
fn stores_that_drained_forward_nothing() {
    // The re-order buffer is much shorter than a hundred rounds.
    let mut machine = forwarding(false);
    machine.core_types[0].rob = shared(32);
    assert_eq!(round(&machine, 100, true, true), 1.0);
    assert_eq!(round(&machine, 100, false, true), 1.0);
}

#[test]
fn both_levels_see_a_variable_that_is_kept_in_memory() {
    let profile = synthetic::kept_in_memory();
    let phase = &profile.phases[0];
    let sample = Sample { warm_up: 10_000, counted: 20_000, longest: 5_000_000, fills: 2 };
    let runner = Runner { thread: 0, core: CoreId(0), phase: 0, home: NodeId(0), mode: 1 };
    // Four instructions a round: an addition, and from its store to the next load. Zen 4 hands the register on.
    for (name, round) in [("xeon-e5-2620v4", 5.0 + 1.0), ("zen4", 1.0)] {
        let machine = Description::named(name).unwrap();
        let mut reference = CycleReference::new(machine.clone(), CycleOptions::default(), sample);
        reference.prepare(phase).unwrap();
        let builder = TableBuilder::new(machine);
        let mut fast = builder.fast(Switches::default());
        fast.prepare(phase).unwrap();
        for thread_rates in
            [reference.thread_rates(&[runner], 1e6), fast.thread_rates(&[runner], 1e6)]
        {
            let cycles = 4.0 * thread_rates[0].activity.all_cycles();
            // A chain goes on from one micro-trace to the next.
            assert!((0.98..1.02).contains(&(cycles / round)), "{name}: {cycles}");
        }
    }
}
