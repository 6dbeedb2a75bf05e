//! Co-running threads on a core.

use symbiont_profile::OpClass;
use symbiont_sim_cycle::{Branch, Op};

use crate::support::*;

#[test]
fn two_threads_compete_for_a_port() {
    let count = 100;
    let adds = || repeat(Op::plain(OpClass::FpAdd), count);
    let counts = run(&plain(), vec![adds(), adds()]);
    // One port starts one in each cycle from cycle 2 on.
    let last = counts.iter().map(|counts| counts.last_retired).max();
    assert_eq!(last, Some(2 + 2 * count - 1 + 3));
    let alone = end(&plain(), adds());
    assert_eq!(alone, 2 + count - 1 + 3);
}

#[test]
fn a_private_port_is_not_competed_for() {
    let private =
        machine(|_, core_type| core_type.ports.iter_mut().for_each(|port| port.private = true));
    let count = 100;
    let adds = || repeat(Op::plain(OpClass::FpAdd), count);
    let counts = run(&private, vec![adds(), adds()]);
    assert_eq!(counts[0].last_retired, 2 + count - 1 + 3);
    // It was fetched a cycle later.
    assert_eq!(counts[1].last_retired, 3 + count - 1 + 3);
}

#[test]
fn a_partition_holds_what_a_shared_queue_gives() {
    let groups = 6;
    // Misses of a thread co-running with one that ends at once: the window is all or half of
    // the buffer.
    for (rob, window) in [(shared(32), 32), (partitioned(32), 16)] {
        let machine = machine(|_, core_type| core_type.rob = rob);
        let counts = run(
            &machine,
            vec![scattered_loads(groups * window), repeat(Op::plain(OpClass::Integer), 1)],
        );
        // In cycle 1 the other one fetches.
        let turn = 1;
        let expected = 2 + (groups - 1) * (MEMORY + 1) + turn + (window / 4 - 1) + MEMORY;
        assert_eq!(counts[0].last_retired, expected, "{rob:?}");
    }
}

#[test]
fn a_waiting_thread_clogs_a_shared_queue_only() {
    let quick = |iq| {
        let machine = machine(|_, core_type| core_type.iq = iq);
        let threads = vec![chain(OpClass::Divide, 200), repeat(Op::plain(OpClass::Integer), 2000)];
        run(&machine, threads)[1].last_retired
    };
    let (split, together) = (quick(partitioned(16)), quick(shared(16)));
    assert!(split <= 2000 / 4 + 40, "{split}");
    assert!(together > 2 * split, "{together} against {split}");
}

#[test]
fn a_thread_that_waits_for_memory_leaves_others_their_part() {
    // A chain of misses, each with seven operations that need it.
    let misses = || {
        stream((0..2400_u64).map(|n| match n % 8 {
            0 => Op { sources: [8, 0], ..Op::memory(OpClass::Load, DATA + 64 * n) },
            back => Op { sources: [back as u16, 0], ..Op::plain(OpClass::Integer) },
        }))
    };
    let quick = || repeat(Op::plain(OpClass::Integer), 8000);
    for queue in [shared(16), partitioned(16)] {
        let machine = machine(|_, core_type| (core_type.iq, core_type.rob) = (queue, shared(64)));
        let counts = run(&machine, vec![misses(), quick()]);
        // Fetch takes turns when both can; after that it has nearly all of the width.
        assert!(counts[1].last_retired <= 8000 / 4 * 6 / 5, "{queue:?}: {counts:?}");
        // No other thread is there: it is as fast as its chain.
        assert!(end(&machine, misses()) <= 300 * (MEMORY + 1) + 20);
    }
}

#[test]
fn identical_threads_are_equally_fast() {
    for count in [2, 4] {
        let thread = |which: u64| {
            stream((0..4000_u64).map(move |n| match n % 5 {
                0 => Op::memory(OpClass::Load, (which << 40) + which * 64 * 64 + n % 40 * 64),
                1 => Op { sources: [1, 0], ..Op::plain(OpClass::FpAdd) },
                2 => Op { sources: [3, 0], ..Op::plain(OpClass::Multiply) },
                _ => Op { sources: [2, 5], ..Op::plain(OpClass::Integer) },
            }))
        };
        let ends: Vec<u64> = run(&plain(), (0..count).map(thread).collect())
            .iter()
            .map(|counts| counts.last_retired)
            .collect();
        let (first, last) = (ends.iter().min().unwrap(), ends.iter().max().unwrap());
        assert!((last - first) * 500 <= *last, "{ends:?}");
    }
}

#[test]
fn a_thread_without_room_for_a_group_leaves_its_turn() {
    // The first thread dispatches one operation a cycle: it needs every fourth turn, the other
    // one has the rest.
    let split =
        machine(|_, core_type| (core_type.iq, core_type.rob) = (partitioned(16), partitioned(32)));
    let count = 3000;
    let threads = vec![chain(OpClass::Integer, count), repeat(Op::plain(OpClass::Integer), count)];
    let counts = run(&split, threads);
    let end = counts[1].last_retired;
    // Until its buffer is full the first one takes every other turn.
    assert!(end >= count / 3 && end <= count / 3 + 40, "{end}");
    assert!(counts[0].last_retired <= count + 10, "{counts:?}");
}

#[test]
fn halves_of_a_core_do_not_meet() {
    let halves = machine(|_, core_type| {
        core_type.halves_from = Some(2);
        core_type
            .ports
            .push(core_type.ports.iter().find(|p| p.does == [OpClass::FpAdd]).unwrap().clone());
    });
    let count = 100;
    let adds = || repeat(Op::plain(OpClass::FpAdd), count);
    // Each half has one of the two ports, and fetches in each cycle.
    let counts = run(&halves, vec![adds(), adds()]);
    assert_eq!([0, 1].map(|thread| counts[thread].last_retired), [2 + count - 1 + 3; 2]);
    // Half the width.
    let counts = run(&halves, vec![repeat(Op::plain(OpClass::Integer), 4), adds()]);
    assert_eq!(counts[0].last_retired, 1 + 3);
}

/// Mispredicted branches, each known to be after so many divisions.
fn misled(branches: u64, divisions: u64) -> symbiont_sim_cycle::Stream<'static> {
    let long = divisions + 1;
    stream((0..branches * long).map(move |n| match n % long {
        last if last == long - 1 => Op {
            branch: Branch::Given { wrong: true },
            sources: [1, 0],
            ..Op::plain(OpClass::Branch)
        },
        _ => Op { sources: [1, 0], ..Op::plain(OpClass::Divide) },
    }))
}

#[test]
fn a_wrong_path_takes_turns_from_others() {
    let adds = || repeat(Op::plain(OpClass::Integer), 2000);
    let alone = end(&plain(), adds());
    let co_running = run(&plain(), vec![misled(100, 1), adds()])[1].last_retired;
    // Of 33 cycles two are for what retires, and half of some 20 for wrong paths.
    assert!(
        (1.2..1.6).contains(&(co_running as f64 / alone as f64)),
        "{co_running} against {alone}"
    );
}

#[test]
fn a_wrong_path_takes_entries_from_others() {
    let loads = |rob| {
        let machine = machine(|_, core_type| core_type.rob = rob);
        run(&machine, vec![misled(100, 8), scattered_loads(2000)])[1].last_retired
    };
    let (split, together) = (loads(partitioned(64)), loads(shared(64)));
    assert!(together as f64 > 1.1 * split as f64, "{together} against {split}");
}
