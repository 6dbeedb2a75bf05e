//! One thread on a core. The first operation is fetched in cycle 0, dispatched in 1,
//! issued in 2.

use symbiont_profile::OpClass;
use symbiont_sim_cycle::{Branch, Op};

use crate::support::*;

#[test]
fn independent_work_runs_at_the_width() {
    let count = 400;
    let end = end(&plain(), repeat(Op::plain(OpClass::Integer), count));
    // The last group is fetched in cycle count / width − 1.
    assert_eq!(end, count / WIDTH - 1 + 3);
}

#[test]
fn a_chain_takes_its_latencies() {
    assert_eq!(end(&plain(), chain(OpClass::Multiply, 100)), 2 + 100 * MULTIPLY);
    assert_eq!(end(&plain(), chain(OpClass::Integer, 100)), 2 + 100);
}

#[test]
fn a_divider_is_not_pipelined() {
    let divide = end(&plain(), repeat(Op::plain(OpClass::Divide), 50));
    assert_eq!(divide, 2 + 50 * DIVIDE);
    let multiply = end(&plain(), repeat(Op::plain(OpClass::Multiply), 50));
    assert_eq!(multiply, 2 + 49 + MULTIPLY);
}

#[test]
fn the_rob_bounds_misses_in_parallel() {
    let rob = 16;
    let small = machine(|_, core_type| core_type.rob = shared(rob as u32));
    let groups = 10;
    // The window moves on when its oldest load is there, a cycle before the next can
    // issue; the loads of a window issue four a cycle.
    let expected = 2 + (groups - 1) * (MEMORY + 1) + (rob / 4 - 1) + MEMORY;
    assert_eq!(end(&small, scattered_loads(groups * rob)), expected);
}

#[test]
fn a_group_takes_an_entry_of_its_own() {
    let ends = |branches| {
        let machine = machine(|_, core_type| {
            (core_type.rob, core_type.group_branches) = (shared(16), branches);
        });
        end(&machine, scattered_loads(240))
    };
    // Sixteen misses at a time, or four groups of three loads and the place for a branch.
    for (branches, rounds) in [(None, 15), (Some(1), 20)] {
        let (end, least) = (ends(branches), rounds * (MEMORY + 1));
        assert!((least..least + 20).contains(&end), "{branches:?}: {end} for {least}");
    }
}

#[test]
fn miss_registers_bound_misses_in_parallel() {
    let few = machine(|_, core_type| core_type.mshrs = shared(4));
    let groups = 25;
    assert_eq!(end(&few, scattered_loads(groups * 4)), 2 + groups * MEMORY);
}

#[test]
fn bandwidth_bounds_misses_in_parallel() {
    // A line of 64 bytes every 10 ns.
    let slow = machine(|machine, _| machine.memory.total_gbps = 6.4);
    let count = 200;
    assert_eq!(end(&slow, scattered_loads(count)), (count - 1) * 10 + MEMORY);
}

#[test]
fn a_wrong_guess_costs_resolution_and_refill() {
    let blocks = 20;
    let ops = (0..blocks * WIDTH).map(|n| {
        let wrong = n % WIDTH == WIDTH - 1;
        if wrong {
            Op { branch: Branch::Given { wrong }, ..Op::plain(OpClass::Branch) }
        } else {
            Op::plain(OpClass::Integer)
        }
    });
    // A block is dispatched `REFILL` after the branch before was done, which is two
    // cycles after its own dispatch.
    let counts = run(&plain(), vec![stream(ops)]);
    assert_eq!(counts[0].last_retired, 1 + (blocks - 1) * (2 + REFILL) + 2);
    assert_eq!(counts[0].mispredicted, blocks);
}

/// Looks random.
fn mixed(n: u64) -> u64 {
    (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 17).wrapping_pow(3) >> 40
}

#[test]
fn a_predictor_that_has_learnt_costs_nothing() {
    let count = 4000;
    let ops = move |way: fn(u64) -> bool| {
        stream((0..count).map(move |n| {
            let branch = Branch::Conditional { taken: way(n) };
            Op { branch, ..Op::plain(OpClass::Branch) }
        }))
    };
    let always = run(&plain(), vec![ops(|_| true)]);
    let coin = run(&plain(), vec![ops(|n| mixed(n) % 2 == 1)]);
    // Each step of the history finds a fresh counter until the history is all ones.
    assert!(always[0].mispredicted < 20, "{}", always[0].mispredicted);
    assert!(coin[0].mispredicted > count / 5, "{}", coin[0].mispredicted);
}

#[test]
fn an_instruction_miss_adds_its_latency() {
    let far = Op { pc: 1 << 20, ..Op::plain(OpClass::Integer) };
    let ops = repeat(Op::plain(OpClass::Integer), 4).chain(repeat(far, 4));
    // Fetched in cycle 1 but for the miss.
    assert_eq!(end(&plain(), stream(ops)), 1 + MEMORY + 3);
}

#[test]
fn a_full_store_queue_holds_up_dispatch() {
    let two = machine(|_, core_type| core_type.sq = shared(2));
    let stores = stream((0..20).map(|n| Op::memory(OpClass::Store, DATA + 64 * n)));
    // Two lines under way at a time; they leave one a cycle, and the next are
    // dispatched in the cycle in which there is room and ask for their lines in the one after.
    let end = end(&two, stores);
    let issue = |pair: u64| 2 + pair * (MEMORY + 1);
    assert_eq!(end, issue(9) + 1 + 1);
}

#[test]
fn causes_sum_to_the_cycles_and_slots() {
    let ops = (0..3000_u64).map(|n| match n % 7 {
        0 => Op::memory(OpClass::Load, (n * 7919) % 100_000 * 64),
        1 => Op::memory(OpClass::Store, n * 64),
        2 => Op { sources: [2, 0], ..Op::plain(OpClass::FpAdd) },
        3 => Op { branch: Branch::Given { wrong: n % 5 == 0 }, ..Op::plain(OpClass::Branch) },
        _ => Op { sources: [1, 3], ..Op::plain(OpClass::Integer) },
    });
    let both = vec![
        stream(ops.clone()),
        stream(ops.map(|op| Op { address: op.address + (1 << 40), ..op })),
    ];
    for counts in run(&plain(), both) {
        assert_eq!(counts.slots.iter().sum::<u64>(), WIDTH * counts.all_cycles());
        // It is there until its last store has left and its last operation retired.
        assert!(counts.all_cycles() >= counts.last_retired);
        assert!(counts.all_cycles() <= counts.last_retired + 1);
        assert_eq!(counts.uops, 3000);
    }
}

#[test]
fn a_taken_branch_ends_what_is_fetched_in_a_cycle() {
    let blocks = 50;
    let taken = |n: u64| n % 2 == 1;
    let ops = (0..2 * blocks).map(move |n| {
        let class = if taken(n) { OpClass::Branch } else { OpClass::Integer };
        Op { taken: taken(n), ..Op::plain(class) }
    });
    // Two operations a cycle.
    assert_eq!(end(&plain(), stream(ops)), blocks - 1 + 3);
}
