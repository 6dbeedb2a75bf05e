//! The scheduler of this machine compared with Linux's.
//!
//! # Problem
//! A policy's gain over this baseline means something only if the baseline places threads
//! about as the kernel does.
//!
//! # Approach
//! A guest of the lab recorded what Linux does with spinning threads on a machine of
//! two sockets (`scripts/os-baseline.sh`). The same threads run on a simulated machine
//! of the same structure, are looked at at the same times, and both are put side by side in
//! a report, `baseline/README.md`. What counts as alike was settled before anything was
//! recorded:
//!
//! | row | alike if |
//! |---|---|
//! | where threads begin, and settle | as many cores are in use, and as many threads on the fuller node |
//! | moves once settled | they differ by at most one for each thread and second |
//! | a core becomes idle | as many threads are on it half a second later |
//! | memory on the other node | in the end most of it is where the thread runs |
//!
//! Of memory on the other node that says nothing of the way there: memory may follow the thread, or
//! the thread go back to its memory. So the report also says whether the thread ends on the same node.
//!
//! # What differs
//! Beginning: the guest's own process that starts the threads takes a hardware thread
//! while it does, so that a full machine begins a little less evenly there; here no thread but
//! the threads runs. An idle core: here idle hardware threads take at once, Linux's first
//! fail a few times to take a running thread. Memory follows a thread that was sent away, where
//! here the thread goes back to its memory.
//!
//! How often waiting threads move depends on what is drawn by a few percent only
//! (`how_often_waiting_threads_move_is_hardly_drawn`).
//!
//! # What it leaves out
//! The moment of births: the recording says where each thread was right after its own.
//! Threads that sleep, and priorities.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

use serde::Deserialize;
use symbiont_profile::Profile;

use super::tests::{Toy, profile, program};
use super::*;
use crate::program::Shape;

/// The guest's machine: CPUs are numbered through thread by thread, core by core.
const MACHINE: &str = "package:2 core:4 smt:2";
const SEED: u64 = 1;
const TICK: Duration = Duration::from_nanos(crate::os::TICK_NS);
/// Until all have settled, as in the guest.
const SETTLED: Duration = Duration::from_secs(1);

#[derive(Deserialize)]
struct Recording {
    kernel: String,
    numa_balancing: String,
    spread: Vec<Spread>,
    freed: Vec<Freed>,
    home: Home,
}

#[derive(Deserialize)]
struct Spread {
    threads: usize,
    begun: Vec<usize>,
    settled: Vec<usize>,
    moves: u64,
    seconds: u64,
}

#[derive(Deserialize)]
struct Freed {
    threads: usize,
    after_ms: Vec<u64>,
    on_the_core: Vec<usize>,
}

/// A thread with memory on node 0 was sent to node 1.
#[derive(Deserialize)]
struct Home {
    after_s: Vec<u64>,
    on_node: Vec<u32>,
    share_there: Vec<f64>,
}

/// A simulated machine of the guest's structure whose threads spin.
struct Spinners<'p>(SimMachine<'p, Toy>);

impl<'p> Spinners<'p> {
    fn start(spinner: &'p Profile, count: usize, seed: u64) -> Self {
        let mut machine = Description::named("xeon-e5-2620v4").unwrap();
        machine.topology = Topology::synthetic(MACHINE).unwrap();
        machine.memory.nodes = machine.topology.nodes().iter().map(|node| node.id).collect();
        let programs = (0..count).map(|_| program(spinner, Shape::Single, None)).collect();
        let options = SimOptions { seed, ..SimOptions::default() };
        Self(SimMachine::new(&machine, Toy::default(), programs, &[], options).unwrap())
    }

    /// Where each is.
    fn at(&self) -> Vec<usize> {
        self.0.threads.iter().filter(|thread| thread.ready).map(|thread| thread.at).collect()
    }

    fn wait(&mut self, time: Duration) {
        self.0.wait(time).unwrap();
    }

    /// How often they are moved in so many seconds. None is twice in a tick.
    fn moves(&mut self, seconds: u64) -> usize {
        let ticks = seconds * 1_000_000_000 / crate::os::TICK_NS;
        let mut moved = || {
            let before = self.at();
            self.wait(TICK);
            before.iter().zip(self.at()).filter(|(before, now)| **before != *now).count()
        };
        (0..ticks).map(|_| moved()).sum()
    }

    /// How many are on a core.
    fn on(&self, core: usize) -> usize {
        self.at().iter().filter(|&&at| self.0.map.place(at).core == core).count()
    }

    /// Those on the core with the fewest stop; gives how many are there after a while each.
    fn freed(&mut self, after_ms: &[u64]) -> Vec<usize> {
        let core = (0..self.0.map.cores()).min_by_key(|&core| self.on(core)).unwrap();
        for thread in 0..self.0.threads.len() {
            if self.0.map.place(self.0.threads[thread].at).core == core {
                self.0.sleep(thread);
            }
        }
        let mut now_ms = 0;
        let reading = |&ms: &u64| {
            self.wait(Duration::from_millis(ms - now_ms));
            now_ms = ms;
            self.on(core)
        };
        after_ms.iter().map(reading).collect()
    }
}

/// Threads on each of both nodes.
fn on_nodes(map: &Map, at: &[usize]) -> [usize; 2] {
    [0, 1].map(|node| at.iter().filter(|&&at| map.place(at).node == NodeId(node)).count())
}

/// Where threads are: in words, and what of it is compared.
fn whereabouts(map: &Map, at: &[usize]) -> (String, [usize; 2]) {
    let cores: BTreeSet<usize> = at.iter().map(|&at| map.place(at).core).collect();
    let [first, second] = on_nodes(map, at);
    let words = format!("{} cores, {first} + {second}", cores.len());
    (words, [cores.len(), first.max(second)])
}

fn yes(alike: bool) -> &'static str {
    if alike { "yes" } else { "no" }
}

fn report(recording: &Recording) -> String {
    let Recording { kernel, numa_balancing, spread, freed, home } = recording;
    let mut text = format!(
        "# The simulated machine's scheduler compared with Linux's\n\n\
         Left Linux {kernel} (numa_balancing {numa_balancing}) on an emulated machine of 2 sockets \
         × 4 cores × 2 threads, each socket a NUMA node, that executes by counting. Right a \
         simulated machine of the same structure, with its scheduler (`crates/sim/sim-fast/src/os`). Threads \
         spin, and no policy places them. Made by `make os-baseline`; a test holds the right side to \
         the code, and `crates/sim/sim-fast/src/machine/against_linux.rs` says what counts as alike, and why \
         some is not.\n"
    );
    // One phase; how long is all the same.
    let spinner = profile(&[1], &[(0, 1_000_000_000)]);
    places(&mut text, spread, &spinner);
    moves(&mut text, spread, &spinner);
    idle_core(&mut text, freed, &spinner);
    memory(&mut text, home, &spinner);
    text
}

fn places(text: &mut String, spread: &[Spread], spinner: &Profile) {
    text.push_str(
        "\n## Where threads begin and settle: cores in use, threads on each node\n\n\
         | threads | Linux, begun | simulated | alike | Linux, settled | simulated | alike |\n\
         |--:|---|---|---|---|---|---|\n",
    );
    for Spread { threads, begun, settled, .. } in spread {
        let mut ours = Spinners::start(spinner, *threads, SEED);
        write!(text, "| {threads} |").unwrap();
        for theirs in [begun, settled] {
            let theirs = whereabouts(&ours.0.map, theirs);
            let now = whereabouts(&ours.0.map, &ours.at());
            write!(text, " {} | {} | {} |", theirs.0, now.0, yes(theirs.1 == now.1)).unwrap();
            ours.wait(SETTLED);
        }
        text.push('\n');
    }
}

fn moves(text: &mut String, spread: &[Spread], spinner: &Profile) {
    text.push_str(
        "\n## Moves of all threads in a second, once they have settled\n\n\
         | threads | Linux | simulated | alike |\n|--:|--:|--:|---|\n",
    );
    for Spread { threads, moves, seconds, .. } in spread {
        let mut ours = Spinners::start(spinner, *threads, SEED);
        ours.wait(SETTLED);
        let ours = ours.moves(*seconds) as f64 / *seconds as f64;
        let theirs = *moves as f64 / *seconds as f64;
        let alike = (theirs - ours).abs() <= *threads as f64;
        writeln!(text, "| {threads} | {theirs:.1} | {ours:.1} | {} |", yes(alike)).unwrap();
    }
}

fn idle_core(text: &mut String, freed: &[Freed], spinner: &Profile) {
    text.push_str(
        "\n## A core becomes idle: threads on it after a while\n\n\
         | threads before | Linux | simulated | alike |\n|--:|---|---|---|\n",
    );
    for Freed { threads, after_ms, on_the_core } in freed {
        let words = |on_the_core: &[usize]| {
            let looks = after_ms.iter().zip(on_the_core);
            looks.map(|(ms, on)| format!("{on} after {ms} ms")).collect::<Vec<_>>().join(", ")
        };
        let mut ours = Spinners::start(spinner, *threads, SEED);
        ours.wait(SETTLED);
        let ours = ours.freed(after_ms);
        let (left, right) = (words(on_the_core), words(&ours));
        let alike = on_the_core.last() == ours.last();
        writeln!(text, "| {threads} | {left} | {right} | {} |", yes(alike)).unwrap();
    }
}

fn memory(text: &mut String, home: &Home, spinner: &Profile) {
    let words = |on_node: &[u32], share_there: &[f64]| {
        let looks = home.after_s.iter().zip(on_node).zip(share_there);
        let looks = looks.map(|((s, node), share)| format!("node {node} ({share:.2}) after {s} s"));
        looks.collect::<Vec<_>>().join(", ")
    };
    let mut ours = Spinners::start(spinner, 1, SEED);
    let away = ours.0.topology.nodes()[1].cpus.clone();
    ours.0.retarget(0, Some(away));
    ours.wait(TICK);
    ours.0.retarget(0, None);
    let (mut now_s, mut on_node, mut share_there) = (0, Vec::new(), Vec::new());
    for &s in &home.after_s {
        ours.wait(Duration::from_secs(s - now_s));
        now_s = s;
        let NodeId(node) = ours.0.map.place(ours.at()[0]).node;
        on_node.push(node);
        // All of its memory is where its run began.
        share_there.push(f64::from(NodeId(node) == ours.0.runs[0].home));
    }
    let near = |share_there: &[f64]| share_there.last().is_some_and(|share| *share > 0.5);
    writeln!(
        text,
        "\n## A thread with memory on node 0 was sent to node 1: where it runs (and the share of \
         its memory there)\n\nAlike: in the end most of its memory is where it runs, whichever of \
         the two moved.\n\n| Linux | simulated | alike | ends on the same node |\n\
         |---|---|---|---|\n| {} | {} | {} | {} |",
        words(&home.on_node, &home.share_there),
        words(&on_node, &share_there),
        yes(near(&home.share_there) && near(&share_there)),
        yes(home.on_node.last() == on_node.last())
    )
    .unwrap();
}

#[test]
fn the_report_against_linux_is_what_this_scheduler_does() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("baseline");
    let Ok(recording) = std::fs::read_to_string(folder.join("linux.json")) else {
        eprintln!("skipped: nothing was recorded; `make os-baseline` does");
        return;
    };
    let report = report(&serde_json::from_str(&recording).unwrap());
    let kept = folder.join("README.md");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&kept, &report).unwrap();
    }
    assert_eq!(std::fs::read_to_string(&kept).unwrap(), report);
}

#[test]
fn how_often_waiting_threads_move_is_hardly_drawn() {
    let spinner = profile(&[1], &[(0, 1_000_000_000)]);
    let moves = |seed| {
        let mut spinners = Spinners::start(&spinner, 24, seed);
        spinners.wait(SETTLED);
        spinners.moves(10) as f64
    };
    let all: Vec<f64> = (0..8).map(moves).collect();
    let mean = all.iter().sum::<f64>() / all.len() as f64;
    assert!(all.iter().all(|one| (one / mean - 1.0).abs() < 0.1), "{all:?}");
}

#[test]
fn a_scheduler_that_acts_otherwise_than_linux_is_not_alike() {
    let differs = |settled: [usize; 2], moves, on_the_core, (node, share)| {
        let (begun, settled) = (vec![0, 8], settled.to_vec());
        let recording = Recording {
            kernel: "made up".to_owned(),
            numa_balancing: "0".to_owned(),
            spread: vec![Spread { threads: 2, begun, settled, moves, seconds: 2 }],
            freed: vec![Freed { threads: 9, after_ms: vec![500], on_the_core: vec![on_the_core] }],
            home: Home { after_s: vec![8], on_node: vec![node], share_there: vec![share] },
        };
        report(&recording).matches("| no |").count()
    };
    let at_home = (0, 1.0);
    assert_eq!(differs([0, 8], 0, 1, at_home), 0);
    assert_eq!(differs([0, 1], 0, 1, at_home), 1, "one core");
    assert_eq!(differs([0, 2], 0, 1, at_home), 1, "one node");
    assert_eq!(differs([0, 8], 5, 1, at_home), 1, "many moves");
    assert_eq!(differs([0, 8], 0, 0, at_home), 1, "a core left idle");
    assert_eq!(differs([0, 8], 0, 1, (0, 0.1)), 1, "far from its memory");
    assert_eq!(differs([0, 8], 0, 1, (1, 1.0)), 1, "its memory followed it");
}
