use std::time::Duration;

use proptest::prelude::*;
use symbiont_machine::{
    GroupCounts, GroupReading, Lifecycle, ProgramId, RunState, Signal, Signals, Timestamp,
};

use super::*;
use crate::catalogue::Catalogue;
use crate::measured::Unmeasured;

/// Two groups; cycles and instructions are in both.
const TOY: &str = r#"name = "toy"
title = "A toy"
source = "made up"
caveats = "None."
smt = { threads = 1, correction = "None." }

[pmu]
type = "raw"
counters = [0, 1, 2]
format.event = "config:0-7"

[[event]]
name = "CYC"
what = "Cycles"
event = 1

[[event]]
name = "INS"
what = "Instructions"
event = 2

[[event]]
name = "STALL"
what = "Stalls"
event = 3

[[event]]
name = "MISS"
what = "Misses"
event = 4

[[group]]
name = "stack"
events = ["CYC", "INS", "STALL"]

[[group]]
name = "caches"
events = ["CYC", "INS", "MISS"]

[formula.cycles]
expr = "CYC"
unit = "cycles"
source = "made up"

[formula.instructions]
expr = "INS"
unit = "instructions"
source = "made up"

[formula.cpi]
expr = "CYC / INS"
unit = "cycles/instructions"
source = "made up"

[formula.ipc]
expr = "INS / CYC"
unit = "instructions/cycles"
source = "made up"

[formula.cpi_stall]
expr = "STALL / INS"
unit = "cycles/instructions"
source = "made up"

[formula.cpi_base]
expr = "cpi - cpi_stall"
unit = "cycles/instructions"
source = "made up"

[formula.llc_misses]
expr = "MISS"
unit = "misses"
source = "made up"

[formula.llc_miss_rate]
expr = "MISS / CYC"
unit = "misses/cycles"
source = "made up"

[[sum]]
name = "cpi_stack"
total = "cpi"
parts = ["cpi_base", "cpi_stall"]
"#;

fn counting(signals: &[Signal]) -> Arc<Counting> {
    let toy = Catalogue::parse("toy", TOY).unwrap();
    let wanted: Signals = signals.iter().copied().collect();
    Arc::new(toy.counting(&wanted))
}

fn all() -> Arc<Counting> {
    counting(&[Signal::Ipc, Signal::CpiStack, Signal::CacheMisses])
}

fn id() -> ThreadId {
    ThreadId { process: 1, thread: 1, born: 0, generation: 0 }
}

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn reading(opened: u64, enabled: u64, running: u64, counts: [u64; 3]) -> GroupCounts {
    let opened = Timestamp(opened);
    Ok(GroupReading { opened, enabled: ms(enabled), running: ms(running), counts: counts.to_vec() })
}

fn sample(counting: &Arc<Counting>, ran: u64, counts: Vec<GroupCounts>) -> Sample {
    let thread = ThreadSample {
        id: id(),
        program: ProgramId(0),
        state: RunState::Runnable,
        run_time: ms(ran),
        wait_time: ms(0),
        switches: 0,
        cpu: None,
        allowed: Arc::new("0".parse().unwrap()),
        lifecycle: Lifecycle::Settled,
        kept: false,
        cookie: None,
        counts,
    };
    Sample { threads: vec![thread], counting: Some(Arc::clone(counting)), ..Sample::default() }
}

/// Feeds samples of one thread; gives what is known of it after the last.
fn fold(samples: &[Sample]) -> Measured {
    let mut history = History::default();
    let mut last = Measurements::new();
    for sample in samples {
        last = history.take(sample).unwrap();
    }
    last[&id()].clone()
}

#[test]
fn a_first_reading_is_a_difference_to_nothing() {
    let counting = all();
    let counts = vec![reading(5, 10, 10, [400, 200, 100]), reading(5, 10, 10, [420, 210, 7])];
    let measured = fold(&[sample(&counting, 20, counts)]);
    let ipc = measured.get("ipc").unwrap();
    assert_eq!((ipc.value, ipc.coverage, ipc.age), (0.5, 1.0, 0));
    let stack = measured.stack().unwrap();
    assert_eq!(stack.parts, [("cpi_base", 1.5), ("cpi_stall", 0.5)]);
    assert_eq!(stack.residue, 0.0);
    assert_eq!(measured.value("llc_misses"), Some(7.0));
}

#[test]
fn later_readings_are_differences_and_raw_counts_stay_within_their_group() {
    let counting = all();
    let first = vec![reading(5, 10, 5, [400, 200, 100]), reading(5, 10, 5, [400, 200, 8])];
    let second = vec![reading(5, 20, 7, [500, 300, 125]), reading(5, 20, 13, [800, 240, 16])];
    let measured = fold(&[sample(&counting, 10, first), sample(&counting, 20, second)]);
    let rate = measured.get("llc_miss_rate").unwrap();
    assert_eq!((rate.value, rate.coverage), (8.0 / 400.0, 0.8));
    let stall = measured.get("cpi_stall").unwrap();
    assert_eq!((stall.value, stall.coverage), (0.25, 0.2));
    // A bare count stands for the whole quantum.
    assert_eq!(measured.value("llc_misses"), Some(10.0));
    assert_eq!(measured.value("cycles"), Some(500.0));
}

/// A thread that changes its rate within a quantum: what all groups saw is counted, not what
/// one of them would have seen.
#[test]
fn a_bare_count_is_put_together_from_groups_that_take_turns() {
    let counting = all();
    let first = vec![reading(5, 0, 0, [0; 3]), reading(5, 0, 0, [0; 3])];
    let second = vec![reading(5, 10, 4, [400, 200, 100]), reading(5, 10, 6, [900, 240, 12])];
    let measured = fold(&[sample(&counting, 0, first), sample(&counting, 10, second)]);
    let cycles = measured.get("cycles").unwrap();
    assert_eq!((cycles.value, cycles.coverage), (1300.0, 1.0));
    assert_eq!(measured.value("llc_misses"), Some(20.0));
}

#[test]
fn groups_in_rotation_show_half_coverage_and_their_age() {
    let counting = all();
    let a = reading(0, 10, 10, [100, 50, 10]);
    let b = reading(0, 10, 10, [100, 50, 3]);
    let idle = reading(0, 0, 0, [0; 3]);
    let a2 = reading(0, 20, 20, [180, 90, 20]);
    let samples = [
        sample(&counting, 0, vec![Err("just born".into()); 2]),
        sample(&counting, 10, vec![a.clone(), idle]),
        sample(&counting, 20, vec![a, b.clone()]),
        sample(&counting, 30, vec![a2, b]),
    ];
    let known = |upto: usize| fold(&samples[..upto]);
    let not_yet = known(2).get("llc_misses").unwrap_err();
    assert_eq!(not_yet, Unmeasured::NotYet { event: "MISS".into() });
    let third = known(3);
    assert_eq!(third.stack().unwrap().age, 1);
    assert_eq!(third.get("llc_misses").unwrap().age, 0);
    // Both groups give IPC; the fresher one is taken.
    assert_eq!(third.get("ipc").unwrap().age, 0);
    let fourth = known(4);
    let stall = fourth.get("cpi_stall").unwrap();
    assert_eq!((stall.value, stall.coverage, stall.age), (0.25, 0.5, 0));
    assert_eq!(fourth.get("llc_misses").unwrap().age, 1);
}

#[test]
fn a_sleeper_keeps_its_last_counts_which_grow_old() {
    let counting = all();
    let counts = vec![reading(0, 10, 10, [100, 50, 10]), reading(0, 10, 10, [100, 50, 3])];
    let asleep = sample(&counting, 10, counts);
    let measured = fold(&[asleep.clone(), asleep.clone(), asleep]);
    let ipc = measured.get("ipc").unwrap();
    assert_eq!((ipc.value, ipc.age), (0.5, 2));
}

#[test]
fn a_group_that_was_closed_meanwhile_starts_over() {
    let counting = all();
    let before = vec![reading(0, 10, 10, [900, 900, 9]), reading(0, 10, 10, [900, 900, 9])];
    let away = vec![Err("waits for descriptors".into()); 2];
    let again = vec![reading(7, 5, 5, [100, 50, 10]), reading(7, 5, 5, [100, 50, 3])];
    let samples =
        [sample(&counting, 10, before), sample(&counting, 20, away), sample(&counting, 25, again)];
    assert_eq!(fold(&samples[..2]).get("ipc").unwrap().age, 1);
    let ipc = fold(&samples).get("ipc").unwrap();
    assert_eq!((ipc.value, ipc.coverage, ipc.age), (0.5, 1.0, 0));
}

#[test]
fn what_was_never_counted_is_absent_with_its_reason() {
    let mut counting = Counting::clone(&all());
    counting.groups[1].events.pop();
    counting.refused.insert("MISS".into(), "no such event here".into());
    let counts = vec![Err("another user's".into()), reading(0, 10, 10, [100, 50, 0])];
    let measured = fold(&[sample(&Arc::new(counting), 10, counts)]);
    let reason = |name| measured.get(name).unwrap_err().to_string();
    assert_eq!(reason("llc_misses"), "MISS: no such event here");
    assert_eq!(reason("cpi_stall"), "STALL: another user's");
    assert_eq!(measured.stack().unwrap_err().to_string(), "STALL: another user's");
    assert_eq!(measured.value("ipc"), Some(0.5));
    assert_eq!(reason("fpu_usage"), "'fpu_usage' is not measured here");
}

#[test]
fn counts_that_run_backwards_are_no_difference() {
    let counting = all();
    let of = |cycles| vec![reading(0, cycles, cycles, [cycles, 50, 1]), Err("no".into())];
    let first = sample(&counting, 100, of(100));
    let back = sample(&counting, 110, of(90));
    let ipc = fold(&[first.clone(), back.clone()]).get("ipc").unwrap();
    assert_eq!((ipc.value, ipc.age), (0.5, 1));
    let on = sample(&counting, 120, vec![reading(0, 110, 110, [110, 60, 2]), Err("no".into())]);
    assert_eq!(fold(&[first, back, on]).value("ipc"), Some(0.5));
}

#[test]
fn a_machine_that_does_not_count_gives_nothing() {
    let mut history = History::default();
    history.take(&sample(&all(), 10, vec![])).unwrap();
    assert!(history.take(&Sample::default()).unwrap().is_empty());
    let broken = Counting { text: "name = ".into(), ..Counting::clone(&all()) };
    assert!(history.take(&sample(&Arc::new(broken), 10, vec![])).is_err());
}

#[test]
fn the_units_of_a_core_come_with_their_use() {
    let bulldozer = Catalogue::named("bulldozer").unwrap().unwrap();
    let units = |signal: Signal| {
        let counting = Arc::new(bulldozer.counting(&[signal].into()));
        fold(&[sample(&counting, 10, vec![])]).floating_point_units()
    };
    assert_eq!([units(Signal::FpuUsage), units(Signal::Ipc)], [Some(2), None]);
}

#[test]
fn only_what_is_wanted_is_counted() {
    let ipc = counting(&[Signal::Ipc]);
    assert_eq!(ipc.groups.iter().map(|g| &*g.name).collect::<Vec<_>>(), ["stack"]);
    assert_eq!(all().groups.len(), 2);
    assert!(counting(&[Signal::RunStates, Signal::FpuUsage]).groups.is_empty());
    assert_eq!(counting(&[Signal::FpuUsage]).signals, Signals::new());
}

fn group() -> impl Strategy<Value = GroupCounts> {
    let counts = prop::collection::vec(0u64..1000, 0..4);
    prop_oneof![
        1 => Just(Err("no".into())),
        4 => (0u64..3, 0u64..50, 0u64..50, counts).prop_map(|(opened, enabled, running, counts)| {
            let (enabled, running) = (ms(enabled), ms(running));
            Ok(GroupReading { opened: Timestamp(opened), enabled, running, counts })
        }),
    ]
}

proptest! {
    #[test]
    fn whatever_is_read_coverage_is_a_share_and_values_are_finite(
        rounds in prop::collection::vec((0u64..100, prop::collection::vec(group(), 0..3)), 1..12),
    ) {
        let counting = all();
        let mut history = History::default();
        for (quantum, (ran, counts)) in (0u64..).zip(rounds) {
            let known = history.take(&sample(&counting, ran, counts)).unwrap();
            for (name, value) in known[&id()].iter() {
                if let Ok(m) = value {
                    prop_assert!(m.coverage > 0.0 && m.coverage <= 1.0, "{name}: {m:?}");
                    prop_assert!(m.value.is_finite() && m.age <= quantum, "{name}: {m:?}");
                }
            }
        }
    }
}
