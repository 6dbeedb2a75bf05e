//! This scheduler beside Linux's.
//!
//! # Problem
//! A policy's gain over this baseline means something only if the baseline places threads
//! about as the kernel does.
//!
//! # Approach
//! A guest of the lab recorded what Linux does with spinning threads on a machine of
//! two sockets (`scripts/os-baseline.sh`). The same threads are placed here by the same
//! calls that the simulated machine makes, and both are put side by side in a report,
//! `baseline/README.md`. What counts as alike was settled before anything was recorded:
//!
//! | row | alike if |
//! |---|---|
//! | where threads begin, and settle | as many cores are in use, and as many threads on the fuller node |
//! | moves once settled | they differ by at most one for each thread and second |
//! | a core becomes idle | as many threads are on it half a second later |
//! | memory on the other node | in the end most of it is where the thread runs |
//!
//! # What differs
//! Of more threads than hardware threads Linux moves some all the time, so that all get
//! about as much; here they stay in their queues. Into a core that becomes idle among full
//! ones Linux lets two threads from two cores, here one goes: as many have a core for
//! themselves then. A crowd begins a little less evenly there. And memory follows a thread
//! that was sent away, where here the thread goes back to its memory.
//!
//! # What it leaves out
//! The moment of births: the recording tells where each thread was right after its own.
//! Threads that sleep, and priorities.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;

use rand::SeedableRng;
use rand_pcg::Pcg64Mcg;
use serde::Deserialize;
use symbiont_topology::{CpuSet, NodeId, Topology};

use super::{Map, Queues, TICK_NS, Task, balance, place};

/// The guest's machine: CPUs are numbered through thread by thread, core by core.
const MACHINE: &str = "package:2 core:4 smt:2";
const SEED: u64 = 1;
/// Until all have settled; balancing ends in fewer.
const TICKS: u32 = 10;

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

/// Threads of the simulated machine, each with its memory where it began.
struct Threads {
    map: Map,
    allowed: CpuSet,
    at: Vec<usize>,
    homes: Vec<NodeId>,
}

impl Threads {
    /// Starts one after the other; the first choice is the emptier node.
    fn start(count: usize) -> Self {
        let map = Map::new(&Topology::synthetic(MACHINE).unwrap());
        let allowed: CpuSet = map.iter().map(|(_, place)| place.pu).collect();
        let mut random = Pcg64Mcg::seed_from_u64(SEED);
        let mut threads = Self { map, allowed, at: Vec::new(), homes: Vec::new() };
        for _ in 0..count {
            let [first, second] = on_nodes(&threads.map, &threads.at);
            let home = NodeId(u32::from(second < first));
            let queues = Queues::new(&threads.map, threads.at.iter().copied());
            let task = Task { at: 0, allowed: &threads.allowed, home };
            let at = place(&threads.map, &queues, &task, &mut random).unwrap();
            threads.homes.push(threads.map.place(at).node);
            threads.at.push(at);
        }
        threads
    }

    /// What a tick does; gives how many were moved.
    fn tick(&mut self) -> usize {
        let both = self.at.iter().zip(&self.homes);
        let task = |(&at, &home): (&usize, &NodeId)| Task { at, allowed: &self.allowed, home };
        let tasks: Vec<Task<'_>> = both.map(task).collect();
        let shifts = balance(&self.map, &tasks);
        for &(task, to) in &shifts {
            self.at[task] = to;
        }
        shifts.len()
    }

    /// Ticks until all have settled.
    fn settle(&mut self) {
        for _ in 0..TICKS {
            self.tick();
        }
    }

    /// How many are on a core.
    fn on(&self, core: usize) -> usize {
        self.at.iter().filter(|&&at| self.map.place(at).core == core).count()
    }

    /// Ends those on the core with the fewest; gives how many are there then.
    fn freed(mut self) -> usize {
        let core = (0..self.map.cores()).min_by_key(|&core| self.on(core)).unwrap();
        let both = self.at.iter().copied().zip(self.homes.iter().copied());
        let stay = both.filter(|&(at, _)| self.map.place(at).core != core);
        let (at, homes): (Vec<usize>, Vec<NodeId>) = stay.unzip();
        (self.at, self.homes) = (at, homes);
        self.tick();
        self.on(core)
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
        "# The simulated machine's scheduler beside Linux's\n\n\
         Left Linux {kernel} (numa_balancing {numa_balancing}) on an emulated machine of 2 sockets \
         × 4 cores × 2 threads, each socket a NUMA node, that executes by counting. Right the \
         scheduler of the simulated machine (`crates/sim/src/os`) on the same machine. Threads \
         spin, and nobody places them. Made by `make os-baseline`; a test holds the right side to \
         the code, and `beside_linux.rs` there says what counts as alike.\n"
    );
    places(&mut text, spread);
    moves(&mut text, spread);
    idle_core(&mut text, freed);
    memory(&mut text, home);
    text
}

fn places(text: &mut String, spread: &[Spread]) {
    text.push_str(
        "\n## Where threads begin and settle: cores in use, threads on each node\n\n\
         | threads | Linux, begun | simulated | alike | Linux, settled | simulated | alike |\n\
         |--:|---|---|---|---|---|---|\n",
    );
    for Spread { threads, begun, settled, .. } in spread {
        let mut ours = Threads::start(*threads);
        write!(text, "| {threads} |").unwrap();
        for theirs in [begun, settled] {
            let theirs = whereabouts(&ours.map, theirs);
            let now = whereabouts(&ours.map, &ours.at);
            write!(text, " {} | {} | {} |", theirs.0, now.0, yes(theirs.1 == now.1)).unwrap();
            ours.settle();
        }
        text.push('\n');
    }
}

fn moves(text: &mut String, spread: &[Spread]) {
    text.push_str(
        "\n## Moves of all threads in a second, once they have settled\n\n\
         | threads | Linux | simulated | alike |\n|--:|--:|--:|---|\n",
    );
    for Spread { threads, moves, seconds, .. } in spread {
        let mut ours = Threads::start(*threads);
        ours.settle();
        let ours = ours.tick() as f64 * 1e9 / TICK_NS as f64;
        let theirs = *moves as f64 / *seconds as f64;
        let alike = (theirs - ours).abs() <= *threads as f64;
        writeln!(text, "| {threads} | {theirs:.1} | {ours:.1} | {} |", yes(alike)).unwrap();
    }
}

fn idle_core(text: &mut String, freed: &[Freed]) {
    text.push_str(
        "\n## A core becomes idle: threads on it after a while\n\n\
         | threads before | Linux | simulated, at once | alike |\n|--:|---|--:|---|\n",
    );
    for Freed { threads, after_ms, on_the_core } in freed {
        let looks = after_ms.iter().zip(on_the_core).map(|(ms, on)| format!("{on} after {ms} ms"));
        let theirs = looks.collect::<Vec<_>>().join(", ");
        let mut ours = Threads::start(*threads);
        ours.settle();
        let ours = ours.freed();
        let alike = on_the_core.last() == Some(&ours);
        writeln!(text, "| {threads} | {theirs} | {ours} | {} |", yes(alike)).unwrap();
    }
}

fn memory(text: &mut String, home: &Home) {
    let looks = home.after_s.iter().zip(&home.on_node).zip(&home.share_there);
    let looks = looks.map(|((s, node), share)| format!("node {node} ({share:.2}) after {s} s"));
    let mut ours = Threads::start(1);
    ours.homes = vec![NodeId(0)];
    ours.at = vec![ours.map.len() - 1];
    ours.tick();
    let NodeId(node) = ours.map.place(ours.at[0]).node;
    let most = home.share_there.last().is_some_and(|share| *share > 0.5);
    writeln!(
        text,
        "\n## A thread with memory on node 0 was sent to node 1: where it runs (and the share of \
         its memory there)\n\n| Linux | simulated, at once | alike |\n|---|---|---|\n\
         | {} | node {node} ({:.2}) | {} |",
        looks.collect::<Vec<_>>().join(", "),
        if node == 0 { 1.0 } else { 0.0 },
        yes(most == (node == 0))
    )
    .unwrap();
}

#[test]
fn the_report_beside_linux_is_what_this_scheduler_does() {
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
fn a_kernel_beside_linux_that_acts_otherwise_is_not_alike() {
    let differs = |settled: [usize; 2], moves, on_the_core, share| {
        let (begun, settled) = (vec![0, 8], settled.to_vec());
        let recording = Recording {
            kernel: "made up".to_owned(),
            numa_balancing: "0".to_owned(),
            spread: vec![Spread { threads: 2, begun, settled, moves, seconds: 2 }],
            freed: vec![Freed { threads: 9, after_ms: vec![500], on_the_core: vec![on_the_core] }],
            home: Home { after_s: vec![8], on_node: vec![0], share_there: vec![share] },
        };
        report(&recording).matches("| no |").count()
    };
    assert_eq!(differs([0, 8], 0, 1, 1.0), 0);
    assert_eq!(differs([0, 1], 0, 1, 1.0), 1, "one core");
    assert_eq!(differs([0, 2], 0, 1, 1.0), 1, "one node");
    assert_eq!(differs([0, 8], 5, 1, 1.0), 1, "many moves");
    assert_eq!(differs([0, 8], 0, 0, 1.0), 1, "a core left idle");
    assert_eq!(differs([0, 8], 0, 1, 0.1), 1, "far from its memory");
}
