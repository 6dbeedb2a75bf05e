//! Hardware counters, against what was executed and what the emulator makes of it.

use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use symbiont_linux::perf::{
    Alive, Counted as Counts, Group, GroupOptions, HARDWARE, Modes, Sharing, Spec, Watch,
    WatchOptions,
};
use symbiont_machine::ThreadId;

use crate::given::Given;
use crate::test_folder::{TestFolder, stderr};

use super::counted::Counted;
use super::cpus::only_online;
use super::skip;
use super::workers::confine;

const TURNS: u32 = 10_000_000;
/// The kernel's work on the program's behalf, apart from others'.
const KERNEL: f64 = 0.03;
/// By how much a scaled count may err, apart from what others do: groups do not change at even
/// times.
const SCALED: f64 = 0.001;
/// Until the kernel has done what it puts off while it boots; idle time costs nothing.
const SETTLED: Duration = Duration::from_secs(10);
/// How often it is looked whether counts are exact.
const ROUNDS: usize = 5;
/// Three groups of three, more than there are counters.
const GROUPS: usize = 3;
const EACH: usize = 3;

fn instructions(name: &str) -> Spec {
    Spec::new(name, HARDWARE, 1).in_modes(Modes::User)
}

/// The program, on one of the fastest CPUs: the kernel tries to move a busy thread away
/// from a slow one. Where time is counted by instructions all CPUs' count as one
/// (QEMU, target/arm/helper.c: `instructions_get_count`), so the others are switched off.
fn start(given: &Given, place: &TestFolder, turns: u32) -> Counted {
    let program = Counted::start(place, turns)
        .unwrap_or_else(|| skip("no program of known length for this architecture"));
    let speeds = given.cores.iter().zip(&given.capacities);
    let (fastest, _) = speeds.max_by_key(|(_, capacity)| **capacity).unwrap();
    confine(Some(program.id()), &fastest[..1]);
    if cycles_per_instruction(given).is_some() {
        only_online(given, fastest[0]);
        std::thread::sleep(SETTLED);
    }
    program
}

/// None where time is not counted by instructions.
fn cycles_per_instruction(given: &Given) -> Option<f64> {
    given.counters.as_ref().unwrap().cycles_per_instruction.map(f64::from)
}

/// By how much what is not the program's adds to a count.
fn others(given: &Given) -> f64 {
    f64::from(given.counters.as_ref().unwrap().others) / 100.0
}

/// Is this `known`, or a little more for what others did?
#[track_caller]
fn is_about(counted: f64, known: f64, more: f64, what: &str) {
    println!("{what}: {counted} of {known}, {:+.4} %", (counted / known - 1.0) * 100.0);
    let right = (known..=known * (1.0 + more)).contains(&counted);
    assert!(right, "{what}: {counted} counted, {known} known");
}

/// A group's instructions and cycles are those that were executed.
pub fn exact(given: &Given) {
    let place = TestFolder::new();
    let mut program = start(given, &place, TURNS);
    let cycles = Spec::new("cycles", HARDWARE, 0).in_modes(Modes::User);
    let group = [cycles, instructions("instructions")];
    let group = Group::open(program.id(), &group, GroupOptions::default()).unwrap();
    assert!(group.missing().is_empty(), "{:?}", group.missing());
    let rounds: Vec<(f64, f64)> = (0..ROUNDS)
        .map(|_| {
            let before = group.read().unwrap();
            program.round();
            let change = group.read().unwrap().since(&before).unwrap();
            assert_eq!(change.enabled, change.running, "counters are enough");
            let count = |name| change.count(name).unwrap() as f64;
            (count("instructions"), count("cycles"))
        })
        .collect();
    let known = program.each_round as f64;
    match cycles_per_instruction(given) {
        Some(each) => all_are_about(given, &rounds, known, known * each),
        None => least_is_about(given, &rounds, known),
    }
}

/// Each round, where nothing depends on the machine outside.
fn all_are_about(given: &Given, rounds: &[(f64, f64)], instructions: f64, cycles: f64) {
    for round in rounds {
        is_about(round.0, instructions, others(given), "instructions");
        is_about(round.1, cycles, others(given), "cycles");
    }
}

/// Elsewhere the kernel may do much in one of the rounds, but not in all of them. Never are
/// there fewer than the program's own.
fn least_is_about(given: &Given, rounds: &[(f64, f64)], instructions: f64) {
    for round in rounds {
        println!("instructions: {} of {instructions}, cycles: {}", round.0, round.1);
        assert!(round.0 >= instructions, "{} counted, {instructions} known", round.0);
        assert!(round.1 > 0.0, "cycles pass");
    }
    let least = rounds.iter().map(|round| round.0).fold(f64::INFINITY, f64::min);
    is_about(least, instructions, others(given), "the least instructions of a round");
}

/// A watch of more events than there are counters.
fn watch(sharing: Sharing) -> Watch {
    let group = |group| (0..EACH).map(|at| instructions(&format!("{group}.{at}"))).collect();
    let group_options = GroupOptions::default();
    let options = WatchOptions { group: group_options, sharing, descriptors: 100, stay: 100 };
    Watch::new((0..GROUPS).map(group).collect(), options)
}

/// Ends a quantum of a watch over the program.
fn end_quantum(watch: &mut Watch, program: &Counted) -> Option<Counts> {
    let (process, thread) = (program.id(), program.id());
    let thread = ThreadId { process, thread, born: 0, generation: 0 };
    let alive = Alive { thread, run_time: Duration::ZERO };
    watch.end_quantum(&[alive]).remove(&thread)
}

/// The kernel gives counters to some groups at a time: each is scaled to the whole.
pub fn multiplexed(given: &Given) {
    let place = TestFolder::new();
    let mut program = start(given, &place, 4 * TURNS);
    let mut watch = watch(Sharing::Kernel);
    end_quantum(&mut watch, &program);
    end_quantum(&mut watch, &program);
    program.round();
    let counts = end_quantum(&mut watch, &program).expect("counts");
    assert!(counts.missing.is_empty(), "{:?}", counts.missing);
    let mut shares = 0.0;
    for (at, group) in counts.groups.iter().enumerate() {
        let reading = &group.as_ref().expect("it counts").reading;
        let share = reading.running.as_secs_f64() / reading.enabled.as_secs_f64();
        assert!((0.2..0.99).contains(&share), "counters are shared: {share}");
        shares += share;
        let known = program.each_round as f64;
        for event in 0..EACH {
            let name = format!("{at}.{event}");
            let estimate = reading.estimate(&name).unwrap();
            println!("{name}: {share:.3} of the time, {:+.4} %", (estimate / known - 1.0) * 100.0);
            assert!(
                (estimate / known - 1.0).abs() < 2.0 * others(given) + SCALED,
                "{name}: {estimate}, {known}"
            );
        }
    }
    let fit = (given.counters.as_ref().unwrap().at_a_time / EACH) as f64;
    assert!((fit - 0.2..=fit + 0.2).contains(&shares), "{shares} of {fit}");
}

/// One group counts at a time, the next one each quantum.
pub fn rotated(given: &Given) {
    let place = TestFolder::new();
    let mut program = start(given, &place, TURNS);
    let mut watch = watch(Sharing::ByQuantum);
    end_quantum(&mut watch, &program);
    end_quantum(&mut watch, &program);
    let known = program.each_round as f64;
    let mut rounds = [0; GROUPS];
    for _ in 0..2 * GROUPS {
        program.round();
        let counts = end_quantum(&mut watch, &program).expect("counts");
        let groups: Vec<_> = counts.groups.iter().map(|group| group.as_ref().unwrap()).collect();
        let fresh = |at: &usize| groups[*at].change.is_some() && groups[*at].age == 0;
        let now: Vec<usize> = (0..GROUPS).filter(fresh).collect();
        let [now] = now[..] else { panic!("one group at a time, not {now:?}") };
        rounds[now] += 1;
        for (at, group) in groups.iter().enumerate() {
            for event in 0..EACH {
                let name = format!("{at}.{event}");
                let count = group.reading.count(&name).unwrap() as f64;
                if rounds[at] > 0 {
                    is_about(count, known * f64::from(rounds[at]), others(given), &name);
                } else {
                    assert_eq!(count, 0.0, "{name}");
                }
            }
        }
    }
    assert_eq!(rounds, [2; GROUPS]);
}

/// The report for a user: instructions, and how many per cycle.
pub fn shown(given: &Given) {
    let place = TestFolder::new();
    let mut program = start(given, &place, 10 * TURNS);
    let event = &given.counters.as_ref().unwrap().instructions;
    let mut stat = Command::new(env!("CARGO_BIN_EXE_symbiont"));
    stat.args(["stat", "--catalogue=generic", "--json", "--for=5s", "--event", event, "--pid"]);
    stat.arg(program.id().to_string()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let stat = place.start(&mut stat);
    // It counts from the second quantum on.
    std::thread::sleep(Duration::from_secs(2));
    program.round();
    let output = stat.output();
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    println!("{shown}");
    let account: Value = serde_json::from_str(&shown).unwrap_or_else(|why| {
        panic!("{why}: {shown} {}", stderr(&output));
    });
    let thread = &account["threads"][0];
    let counted = thread["events"][event]["estimate"].as_f64().expect("a count");
    is_about(counted, program.each_round as f64, others(given) + KERNEL, "instructions");
    let ipc = thread["values"]["ipc"]["value"].as_f64().expect("instructions per cycle");
    let known = 1.0 / cycles_per_instruction(given).expect("known");
    // A virtual nanosecond passes in the kernel, too.
    let right = (ipc / known - 1.0).abs() <= others(given);
    assert!(right, "{ipc} instructions per cycle, {known} known");
}
