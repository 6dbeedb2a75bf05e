//! A meter fed with blocks and accesses by hand.

use symbiont_profile::raw::Interval;
use symbiont_profile::vectors::{Geometry, Hierarchy};
use symbiont_profile::{OpClass, ReuseBin};

use super::{Meter, TRACES};
use crate::block::{Block, Repeat};
use crate::decode::block;
use crate::window::Plan;

const ADD: &[u8] = &[0x48, 0x01, 0xd8]; // add rax, rbx
const LOAD: &[u8] = &[0x48, 0x8b, 0x03]; // mov rax, [rbx]
const JNE: &[u8] = &[0x75, 0x00]; // jne
const REP_STOSB: &[u8] = &[0xf3, 0xaa]; // rep stosb

fn leak(id: usize, at: u64, bytes: &[&'static [u8]]) -> &'static Block {
    let mut next = at;
    let placed: Vec<(u64, &[u8])> = bytes
        .iter()
        .map(|bytes| {
            let here = next;
            next += bytes.len() as u64;
            (here, *bytes)
        })
        .collect();
    Box::leak(Box::new(block(id, placed.into_iter())))
}

/// Executes `times` rounds of: load, add, jne back.
fn run(meter: &mut Meter, times: u64) -> Vec<Interval> {
    let body = leak(0, 0x40_1000, &[LOAD, ADD, JNE]);
    let mut intervals = Vec::new();
    for round in 0..times {
        if meter.execute(body) {
            intervals.extend(meter.take());
        }
        meter.access(0, OpClass::Load, 0x10_0000 + 64 * (round % 100));
    }
    intervals
}

#[test]
fn intervals_are_as_long_as_the_budget() {
    let mut meter = Meter::new(3, 30_000);
    let intervals = run(&mut meter, 100_000);
    assert_eq!(intervals.len(), 10);
    for interval in &intervals {
        assert_eq!(interval.signature.thread, 3);
        assert_eq!(interval.phase.instructions, 30_000);
        assert_eq!(interval.phase.mix.count(OpClass::Integer), 10_000);
        assert_eq!(interval.phase.mix.count(OpClass::Branch), 10_000);
        assert_eq!(interval.signature.blocks.iter().sum::<u64>(), 30_000);
    }
    let loads: u64 = intervals.iter().map(|i| i.phase.mix.count(OpClass::Load)).sum();
    // The last round's load comes after the last interval's end.
    assert_eq!(loads, 99_999);
    assert!(intervals.iter().skip(1).all(|i| i.traces.traces.len() as u64 == TRACES));
}

#[test]
fn reuse_times_and_branches_of_a_loop_are_as_they_must_be() {
    let mut meter = Meter::new(0, 30_000);
    let intervals = run(&mut meter, 100_000);
    let phase = &intervals[5].phase;
    let hundred = ReuseBin::of(100).index().unwrap();
    assert_eq!(phase.data.line_64.counts[hundred], phase.data.line_64.sampled());
    assert_eq!(phase.data.line_64.cold, 0);
    assert_eq!(phase.footprint.data_lines, 100);
    assert_eq!(phase.branches.conditional, 10_000);
    assert_eq!(phase.branches.mispredicted[0], 0);
    // All in one line: fetched once more as the interval before ended.
    assert!(phase.code.line_64.accesses <= 1);
}

#[test]
fn micro_traces_are_warm_and_whole() {
    let mut meter = Meter::new(0, 30_000);
    let intervals = run(&mut meter, 100_000);
    for trace in &intervals[5].traces.traces {
        assert!((1_200..=1_500).contains(&trace.instructions()), "{}", trace.instructions());
        for ops in trace.ops.chunks(3) {
            let [load, add, branch] = ops else { continue };
            assert_eq!(load.class, OpClass::Load);
            assert_eq!(load.access.unwrap().reuse_64, ReuseBin::of(100));
            assert_eq!(add.sources[0], 1, "the add needs the load");
            assert_eq!(branch.class, OpClass::Branch);
            assert_eq!(branch.sources[0], 1, "the branch needs the add's flags");
            assert!(ops.iter().all(|op| op.starts_instruction));
        }
    }
}

#[test]
fn a_short_program_has_a_micro_trace_too() {
    let mut meter = Meter::new(0, 50_000_000);
    run(&mut meter, 50);
    meter.flush();
    let intervals = meter.take();
    assert_eq!(intervals.len(), 1);
    assert_eq!(intervals[0].phase.instructions, 150);
    assert_eq!(intervals[0].traces.traces.len(), 1);
}

#[test]
fn a_repeated_string_instruction_is_one_instruction() {
    let mut meter = Meter::new(0, 1_000_000);
    let entry = leak(0, 0x40_1000, &[ADD, REP_STOSB]);
    let round = leak(1, 0x40_1003, &[REP_STOSB]);
    meter.execute(entry);
    meter.string(1, OpClass::Store, 0x20_0000);
    for byte in 1..256 {
        meter.execute(round);
        meter.string(0, OpClass::Store, 0x20_0000 + byte);
    }
    meter.flush();
    let interval = meter.take().remove(0);
    assert_eq!(interval.phase.instructions, 2);
    assert_eq!(interval.phase.mix.count(OpClass::Store), 256 / 32);
    assert_eq!(interval.phase.mix.count(OpClass::Integer), 2);
    let trace = &interval.traces.traces[0];
    assert_eq!(trace.instructions(), 1 + 1);
    assert_eq!(trace.ops.iter().filter(|op| op.class == OpClass::Store).count(), 8);
}

/// qemu 10.0 and later make all rounds of a repeated string instruction within one execution of its block.
#[test]
fn rounds_within_a_block_are_rounds_of_their_own() {
    const REP_MOVSB: &[u8] = &[0xf3, 0xa4];
    const REPE_CMPSB: &[u8] = &[0xf3, 0xa6];
    for (string, classes) in [
        (REP_STOSB, &[OpClass::Store][..]),
        (REP_MOVSB, &[OpClass::Load, OpClass::Store]),
        (REPE_CMPSB, &[OpClass::Load, OpClass::Load]),
    ] {
        let entry = leak(0, 0x40_1000, &[ADD, string]);
        let round = leak(1, 0x40_1003, &[string]);
        let repeat: &'static Repeat = Box::leak(Box::new(Repeat::of(entry, round).unwrap()));
        assert_eq!((repeat.instruction, repeat.accesses), (1, classes.len()));
        let intervals = [1, 10, u64::MAX].map(|per_execution| {
            let mut meter = Meter::new(0, 1_000_000);
            for element in 0..1_000 {
                if element == 0 {
                    meter.execute(entry);
                } else if element % per_execution == 0 {
                    meter.execute(round);
                }
                for (which, class) in classes.iter().enumerate() {
                    meter.repeated(repeat, *class, 0x10_0000 * (1 + which as u64) + element);
                }
            }
            meter.flush();
            meter.take()
        });
        assert_eq!(intervals[0][0].phase.instructions, 2);
        assert_eq!(intervals[0], intervals[1]);
        assert_eq!(intervals[0], intervals[2]);
    }
}

#[test]
fn a_long_string_instruction_does_not_fill_a_micro_trace_without_end() {
    // Clearing 16 MiB: 524,288 stores of 32 bytes in one instruction.
    let mut meter = Meter::new(0, 30_000);
    let entry = leak(1, 0x40_2000, &[ADD, REP_STOSB]);
    let round = leak(2, 0x40_2003, &[REP_STOSB]);
    meter.execute(entry);
    for piece in 0..1_u64 << 19 {
        meter.string(usize::from(piece == 0), OpClass::Store, 0x20_0000 + 32 * piece);
        meter.execute(round);
    }
    let intervals = run(&mut meter, 20_000);
    let interval = &intervals[0];
    assert!(interval.phase.mix.count(OpClass::Store) >= 1 << 19, "all of them are counted");
    let traces = &interval.traces.traces;
    assert!(traces.iter().all(|trace| (1..=6_000).contains(&trace.ops.len())));
    assert!(traces.iter().all(|trace| trace.ops[0].starts_instruction));
    // Those that begin later are as long as ever.
    let last = &traces[traces.len() - 1];
    assert!((1_200..=1_500).contains(&last.instructions()), "{}", last.instructions());
}

/// What is executed before a micro-trace ends where a string instruction begins.
#[test]
fn a_micro_trace_does_not_begin_within_a_string_instruction() {
    let mut meter = Meter::new(0, 60_000);
    let entry = leak(0, 0x40_1000, &[ADD, REP_STOSB]);
    let round = leak(1, 0x40_1003, &[REP_STOSB]);
    for _ in 0..62_000 {
        meter.execute(entry);
        meter.string(1, OpClass::Store, 0x20_0000);
        for piece in 1..4 {
            meter.execute(round);
            meter.string(0, OpClass::Store, 0x20_0000 + 32 * piece);
        }
    }
    let traces = &meter.take()[1].traces.traces;
    assert_eq!(traces.len() as u64, TRACES);
    assert!(traces.iter().all(|trace| trace.ops[0].starts_instruction));
    assert!(traces.iter().skip(1).all(|trace| trace.ops[0].sources != [0; 2]), "made before");
}

#[test]
fn pieces_of_a_wide_access_are_one_access() {
    let mut meter = Meter::new(0, 1_000_000);
    let body = leak(0, 0x40_1000, &[LOAD, ADD]);
    meter.execute(body);
    for piece in 0..4 {
        meter.piece(0, OpClass::Load, 0x10_0000 + 8 * piece, 8, 32);
    }
    meter.execute(body);
    for piece in 0..2 {
        meter.piece(0, OpClass::Load, 0x10_0000 + 8 * piece, 8, 16);
    }
    // Not adjacent: elements of a gather.
    meter.piece(0, OpClass::Load, 0x30_0000, 8, 16);
    meter.flush();
    assert_eq!(meter.take()[0].phase.mix.count(OpClass::Load), 3);
}

#[test]
fn a_forked_child_starts_counting_anew_but_warm() {
    let mut meter = Meter::new(2, 30_000_000);
    run(&mut meter, 1_000);
    meter.fork();
    run(&mut meter, 1_000);
    meter.flush();
    let interval = meter.take().remove(0);
    assert_eq!(interval.signature.thread, 0);
    assert_eq!(interval.phase.instructions, 3_000);
    assert_eq!(interval.phase.data.line_64.cold, 0);
}

#[test]
fn an_interval_that_was_looked_at_goes_on() {
    let mut meter = Meter::new(0, 30_000_000);
    run(&mut meter, 1_000);
    let early = meter.so_far();
    assert!(early.signature.before_exec);
    assert_eq!(early.phase.instructions, 3_000);
    run(&mut meter, 1_000);
    meter.flush();
    let interval = meter.take().remove(0);
    assert!(!interval.signature.before_exec);
    assert_eq!(interval.phase.instructions, 6_000);
    assert_eq!(interval.phase.mix.count(OpClass::Load), 2_000);
}

#[test]
fn windows_hold_what_was_executed() {
    use symbiont_profile::trace::{About, TraceFile, write};
    let mut meter = Meter::new(3, 30_000);
    meter.record_windows(Plan { length: 6_000, starts: vec![12_000, 59_000, 60_000, 1_000_000] });
    run(&mut meter, 30_000);
    let windows = meter.take_windows();
    // Each begins with the block that reaches its start, the third behind the second.
    let places: Vec<_> = windows.iter().map(|w| (w.thread, w.start, w.instructions)).collect();
    assert_eq!(places, [(3, 11_997, 6_000), (3, 58_998, 6_000), (3, 64_998, 6_000)]);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.trace");
    let name = || "loop".to_owned();
    let about = About {
        program: name(),
        command: vec![],
        digest: name(),
        instructions: 90_000,
        gaps: vec![],
    };
    write(&path, &about, windows.into_iter().map(|raw| Ok((0, 0.5, 600, raw)))).unwrap();
    let file = TraceFile::open(&path).unwrap();
    for (index, info) in file.windows().iter().enumerate() {
        let window = file.window(index).unwrap();
        let first = info.start / 3;
        // All hundred lines, the one of the round before last.
        let before: Vec<u64> = window.data.iter().map(|line| line.line).collect();
        let expected: Vec<u64> =
            (first - 100..first).map(|round| 0x10_0000 / 64 + round % 100).collect();
        assert_eq!(before, expected);
        assert_eq!(window.code.len(), 1);
        let ops: Vec<_> = window.ops.map(Result::unwrap).collect();
        assert_eq!(ops.len(), 6_000);
        for (ops, round) in ops.chunks(3).zip(first..) {
            let [load, add, branch] = ops else { panic!("three operations") };
            assert_eq!(load.address, Some(0x10_0000 + 64 * (round % 100)));
            assert_eq!((load.class, load.at, load.length), (OpClass::Load, 0x40_1000, 3));
            assert_eq!((add.class, add.sources[0]), (OpClass::Integer, 1));
            let outcome = branch.branch.unwrap();
            assert_eq!((outcome.taken, outcome.next), (true, 0x40_1000));
        }
    }
}

#[test]
fn what_is_observed_later_is_the_same() {
    // A meter with simulated caches observes all at once.
    let cache = Geometry { sets: 64, ways: 8, line: 64 };
    let mut at_once = Meter::new(0, 30_000);
    at_once.simulate_caches(&Hierarchy { l1d: cache, l1i: cache, l2: cache });
    let mut meters = [Meter::new(0, 30_000), at_once];
    let blocks: Vec<_> = (0..40)
        .map(|id| {
            let last = if id % 7 == 0 { REP_STOSB } else { JNE };
            leak(id, 0x40_1000 + 24 * id as u64, &[LOAD, ADD, last])
        })
        .collect();
    let mut ended: [Vec<Interval>; 2] = Default::default();
    let mut state = 1_u64;
    for round in 0..60_000 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let block = blocks[(state >> 40) as usize % blocks.len()];
        let class = if state >> 35 & 3 == 0 { OpClass::Store } else { OpClass::Load };
        for (meter, ended) in meters.iter_mut().zip(&mut ended) {
            if meter.execute(block) {
                ended.extend(meter.take());
            }
            for access in 0..state >> 30 & 3 {
                meter.access(0, class, 0x10_0000 + 64 * (state >> (44 + access) & 0x3ff));
            }
            match round {
                20_001 => ended.push(meter.so_far()),
                40_001 => meter.fork(),
                _ => {}
            }
        }
    }
    for (meter, ended) in meters.iter_mut().zip(&mut ended) {
        meter.flush();
        ended.extend(meter.take());
    }
    let [later, mut at_once] = ended;
    assert!(later.len() > 5);
    for interval in &mut at_once {
        assert!(interval.caches.take().is_some());
    }
    assert_eq!(later, at_once);
}
