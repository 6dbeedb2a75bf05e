//! The kernel's treatment of unplaced spinning threads: a recording, for the
//! simulated machine's scheduler to be held against.
//!
//! Nothing is read while they spin, so that the kernel has no other thread to place.

use std::fs;
use std::process::Child;
use std::time::Duration;

use serde_json::{Value, json};

use crate::given::Given;
use crate::test_folder::wait_until;

use super::memory::pages_by_node;
use super::skip;
use super::workers::{DWELLING, confine, start};

/// The line of the recording begins with it.
const MARK: &str = "record";
/// How many spin at a time.
const COUNTS: [usize; 7] = [1, 2, 4, 8, 12, 16, 24];
/// How many spin when a core is freed.
const CROWDS: [usize; 3] = [9, 12, 16];
/// When is looked at a core that was freed.
const LOOKS_MS: [u64; 3] = [20, 100, 500];
/// When is looked at a thread that was sent away from its memory.
const LOOKS_S: [u64; 3] = [1, 3, 8];
const SETTLED: Duration = Duration::from_secs(1);
/// For so long moves are counted.
const WATCHED_S: u64 = 2;

/// Processes that spin; killed when dropped.
struct Spinners {
    children: Vec<Child>,
    /// Where each began.
    begun: Vec<u32>,
}

impl Spinners {
    /// Starts one after the other, and waits until they have settled.
    fn start(count: usize) -> Self {
        let mut spinners = Self { children: Vec::new(), begun: Vec::new() };
        for _ in 0..count {
            let child = start("modest");
            spinners.begun.push(cpu(child.id()));
            spinners.children.push(child);
        }
        std::thread::sleep(SETTLED);
        spinners
    }

    /// Where each is, or was last.
    fn cpus(&self) -> Vec<u32> {
        self.children.iter().map(|child| cpu(child.id())).collect()
    }

    /// How often all of them were moved so far.
    fn moves(&self) -> u64 {
        self.children.iter().map(|child| moves(child.id())).sum()
    }

    /// How many are on a core.
    fn on(&self, core: &[u32]) -> usize {
        self.cpus().iter().filter(|cpu| core.contains(cpu)).count()
    }

    /// Ends those that are on a core.
    fn end_on(&mut self, core: &[u32]) {
        let is_there = |child: &Child| core.contains(&cpu(child.id()));
        let (end, rest) = self.children.drain(..).partition(is_there);
        self.children = rest;
        drop(Self { children: end, begun: Vec::new() });
    }
}

impl Drop for Spinners {
    fn drop(&mut self) {
        for child in &mut self.children {
            let _ = child.kill();
        }
        for child in &mut self.children {
            let _ = child.wait();
        }
    }
}

/// The CPU that a process runs on, or ran on last (proc_pid_stat(5), field 39).
fn cpu(process: u32) -> u32 {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    let (_, rest) = stat.rsplit_once(')').unwrap();
    rest.split_whitespace().nth(36).unwrap().parse().unwrap()
}

/// How often a process was moved to another CPU.
fn moves(process: u32) -> u64 {
    let path = format!("/proc/{process}/sched");
    let shown = fs::read_to_string(&path).unwrap_or_else(|why| skip(&format!("{path}: {why}")));
    let line = shown.lines().find(|line| line.starts_with("se.nr_migrations")).unwrap();
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

/// Where so many begin and settle, and how often they are moved on.
fn spread(count: usize) -> Value {
    let spinners = Spinners::start(count);
    let (settled, before) = (spinners.cpus(), spinners.moves());
    std::thread::sleep(Duration::from_secs(WATCHED_S));
    let moved = spinners.moves() - before;
    println!("{count}: {:?}, then {settled:?}, {moved} moves", spinners.begun);
    json!({
        "threads": count,
        "begun": spinners.begun,
        "settled": settled,
        "moves": moved,
        "seconds": WATCHED_S,
    })
}

/// A core becomes idle next to cores that are shared.
fn freed(given: &Given, count: usize) -> Value {
    let mut spinners = Spinners::start(count);
    let core = given.cores.iter().min_by_key(|core| spinners.on(core)).unwrap();
    spinners.end_on(core);
    let mut now_ms = 0;
    let looks = LOOKS_MS.map(|look_ms| {
        std::thread::sleep(Duration::from_millis(look_ms - now_ms));
        now_ms = look_ms;
        spinners.on(core)
    });
    println!("{count}: {core:?} freed, then {looks:?}");
    json!({"threads": count, "after_ms": LOOKS_MS, "on_the_core": looks})
}

/// A thread whose memory is on the first node was sent to the second, and may run anywhere
/// again: on which node it runs, and what share of its memory is there.
fn home(given: &Given) -> Value {
    let [first, second] = &given.nodes[..] else { return Value::Null };
    confine(None, first);
    let child = start("dweller");
    confine(None, &given.cpus());
    let process = child.id();
    let dweller = Spinners { children: vec![child], begun: Vec::new() };
    let pages = DWELLING / rustix::param::page_size();
    wait_until("it has its memory", || {
        pages_by_node(process).values().sum::<u64>() >= pages as u64
    });
    confine(Some(process), second);
    wait_until("it is away", || second.contains(&cpu(process)));
    confine(Some(process), &given.cpus());
    let mut now_s = 0;
    let looks = LOOKS_S.map(|look_s| {
        std::thread::sleep(Duration::from_secs(look_s - now_s));
        now_s = look_s;
        let node = usize::from(second.contains(&cpu(process)));
        let memory = pages_by_node(process);
        let there = memory.get(&node).copied().unwrap_or_default();
        (node, there as f64 / memory.values().sum::<u64>() as f64)
    });
    drop(dweller);
    println!("memory on node 0, sent to 1, then on (share of its memory there): {looks:?}");
    json!({
        "after_s": LOOKS_S,
        "on_node": looks.map(|(node, _)| node),
        "share_there": looks.map(|(_, share)| share),
    })
}

pub fn recorded(given: &Given) {
    let kernel = rustix::system::uname().release().to_string_lossy().into_owned();
    let balancing = fs::read_to_string("/proc/sys/kernel/numa_balancing").unwrap_or_default();
    let record = json!({
        "kernel": kernel,
        "numa_balancing": balancing.trim(),
        "spread": COUNTS.map(spread),
        "freed": CROWDS.map(|count| freed(given, count)),
        "home": home(given),
    });
    println!("{MARK} {record}");
}
