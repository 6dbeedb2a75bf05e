//! Caches that threads fill.

use symbiont_profile::OpClass;
use symbiont_sim_cycle::levels::Kind;
use symbiont_sim_cycle::{Chip, CoreSlot, Op};
use symbiont_topology::CoreId;

use crate::support::*;

/// `count` loads, each after the one before, that go round `lines` lines of one set.
fn round(
    start: u64,
    set_bytes: u64,
    lines: u64,
    count: u64,
) -> symbiont_sim_cycle::Stream<'static> {
    stream((0..count).map(move |n| Op {
        sources: [1, 0],
        ..Op::memory(OpClass::Load, start + n % lines * set_bytes)
    }))
}

#[test]
fn two_threads_fight_for_a_set() {
    // 64 sets of 7 ways; each thread has 5 lines.
    let (sets, lines, count) = (64, 5, 200);
    let seven = machine(|_, core_type| {
        core_type.l1d.bytes = 7 * sets * 64;
        core_type.l1d.ways = 7;
        core_type.l2.bytes = 1 << 20;
        core_type.l2.ways = 16;
    });
    let way = sets * 64;
    let other = 1 << 30;
    let run = |second: u64| {
        let streams = vec![round(0, way, lines, count), round(second, way, lines, count)];
        let mut chip = chip(&seven, streams, &OPTIONS);
        for (user, start) in [(0, 0), (1, second)] {
            (0..lines).for_each(|n| chip.levels_mut().warm_data(user, start + n * way, false));
        }
        // In the L2, but no longer in the L1.
        for set in 0..2 {
            (0..7).for_each(|n| {
                chip.levels_mut().warm_data(0, (1 << 50) + set * 64 + n * way, false);
            });
        }
        let counts = finish(&mut chip);
        let ends = [counts[0].last_retired, counts[1].last_retired];
        let set = |user: usize, set: usize| chip.levels().sets(user, Kind::L1d)[set];
        (ends, set(0, 0), set(1, (second / 64 % sets) as usize))
    };
    // Ten lines in turn in seven ways: each has gone when it is used again, displaced seven
    // accesses later, by the other thread.
    let (ends, first, second) = run(other);
    assert_eq!(ends, [2 + count * L2, 3 + count * L2]);
    for counts in [first, second] {
        assert_eq!(u64::from(counts.misses), count);
        // The first round's were displaced by the lines that warmed up.
        assert!(u64::from(counts.inter_thread) >= count - lines);
    }
    // In sets of their own they miss in the first round only.
    let (ends, first, second) = run(other + 64);
    let expected = lines * L2 + (count - lines) * L1;
    assert_eq!(ends, [2 + expected, 3 + expected]);
    assert_eq!([first.misses, second.misses], [lines as u32; 2]);
}

#[test]
fn twins_find_each_others_code() {
    let nothing = || repeat(Op::plain(OpClass::Integer), 1);
    let mut chip = chip(&plain(), vec![nothing(), nothing()], &OPTIONS);
    let (here, there): (u64, u64) = (1 << 40, 1 << 41);
    let levels = chip.levels_mut();
    assert!(levels.code(0, 0.0, here + 640, 1) > 0.0);
    assert!(levels.code(1, 500.0, there + 640, 2) > 500.0);
    levels.move_code(1, here.wrapping_sub(there));
    assert!(levels.code(1, 1000.0, there + 640, 2) == 1000.0);
}

/// A cache, plainly: each set a list, the line used last at its end.
struct Plain {
    sets: Vec<Vec<u64>>,
    ways: usize,
    misses: Vec<u32>,
}

impl Plain {
    fn new(sets: usize, ways: usize) -> Self {
        Self { sets: vec![Vec::new(); sets], ways, misses: vec![0; sets] }
    }

    fn access(&mut self, line: u64) -> bool {
        let at = (line % self.sets.len() as u64) as usize;
        let set = &mut self.sets[at];
        let known = set.iter().position(|l| *l == line).map(|at| set.remove(at)).is_some();
        set.push(line);
        if set.len() > self.ways {
            set.remove(0);
        }
        self.misses[at] += u32::from(!known);
        known
    }
}

#[test]
fn misses_by_set_equal_an_independent_model() {
    let machine = machine(|_, core_type| {
        (core_type.l1d.bytes, core_type.l1d.ways) = (8 << 10, 4);
        (core_type.l2.bytes, core_type.l2.ways) = (64 << 10, 8);
    });
    // Loops, runs and strays, each load after the one before, so that they come in order.
    let addresses: Vec<u64> = (0..6000_u64)
        .map(|n| match n % 3 {
            0 => n % 900 * 64,
            1 => (1 << 20) + n * 24,
            _ => (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) % (1 << 18),
        })
        .collect();
    let (mut l1, mut l2) = (Plain::new(32, 4), Plain::new(128, 8));
    for address in &addresses {
        if !l1.access(address / 64) {
            l2.access(address / 64);
        }
    }
    let loads = addresses
        .into_iter()
        .map(|address| Op { sources: [1, 0], ..Op::memory(OpClass::Load, DATA + address) });
    let mut chip = chip(&machine, vec![stream(loads)], &OPTIONS);
    assert!(!chip.run_until(1e6));
    for (kind, plain) in [(Kind::L1d, l1), (Kind::L2, l2)] {
        let misses: Vec<u32> = chip.levels().sets(0, kind).iter().map(|set| set.misses).collect();
        // The line of code was fetched too, but before anything was counted.
        assert_eq!(misses, plain.misses, "{kind:?}");
    }
}

#[test]
fn a_pending_line_is_waited_for_once() {
    // Four loads of one line, four cycles apart at most: one miss, one wait.
    let loads = stream((0..4).map(|n| Op::memory(OpClass::Load, DATA + 8 * n)));
    let counts = run(&machine(|_, core_type| core_type.mshrs = shared(1)), vec![loads]);
    assert_eq!(counts[0].last_retired, 2 + MEMORY);
    assert_eq!(counts[0].traffic.l1d_misses, 1);
}

#[test]
fn a_prefetcher_hides_memory_from_a_stream() {
    let options = symbiont_sim_cycle::CycleOptions { prefetching: true, ..OPTIONS };
    let count = 400;
    let loads = || {
        stream(
            (0..count).map(|n| Op { sources: [1, 0], ..Op::memory(OpClass::Load, DATA + 64 * n) }),
        )
    };
    let far =
        machine(|_, core_type| (core_type.prefetch_streams, core_type.prefetch_lines) = (4, 16));
    let with = finish(&mut chip(&far, vec![loads()], &options))[0];
    let without = finish(&mut chip(&far, vec![loads()], &OPTIONS))[0];
    assert_eq!(without.last_retired, 2 + count * MEMORY);
    // From the second line on it is 16 lines ahead, as far as 16 hits in the L2: more than memory takes.
    // The first two lines come from memory, the third has 100 − 0 to wait, and so on.
    assert!(with.last_retired <= 2 + 3 * MEMORY + count * L2, "{}", with.last_retired);
    assert_eq!(with.traffic.memory_near, count + 16);
}

#[test]
fn cores_share_their_last_level_only() {
    let two = machine(|_, core_type| {
        let llc = symbiont_sim_fast::description::Scope::Llc;
        core_type.l3 = Some(symbiont_sim_fast::description::Cache {
            bytes: 4 * 64,
            ways: 4,
            latency: 40,
            scope: llc,
            ..core_type.l2
        });
    });
    let run = |cores: [u32; 2]| {
        let slots = cores.iter().zip(0..).map(|(core, which)| CoreSlot {
            core: CoreId(*core),
            mode: 1,
            home: 0,
            stream: round(DATA + (which << 30), 64, 3, 30),
        });
        let mut chip = Chip::new(&two, slots.collect(), &OPTIONS).unwrap();
        assert!(!chip.run_until(1e6));
        [0, 1].map(|slot| {
            (chip.counts(slot).traffic.l1d_misses, chip.levels().sets(slot, Kind::L3)[0].accesses)
        })
    };
    // Both miss their own lines once, whatever else is there; what each asked of the shared level
    // is its own code and data.
    assert_eq!(run([0, 1]), [(3, 4), (3, 4)]);
    assert_eq!(run([0, 0]), [(3, 4), (3, 3)]);
}
