//! Who is placed on which siblings.

use std::collections::{BTreeSet, VecDeque};
use std::fs;
use std::process::Stdio;
use std::time::Duration;

use crate::given::Given;
use crate::place::{Place, Program, wait_until};
use crate::settings::tree;

use super::workers::{WORKER, command};
use super::{INIT, STAND_IN};

/// How often in a row a placement must be seen.
pub const LASTS: u32 = 5;

/// A worker's role.
fn role(process: u32) -> Option<String> {
    let line = fs::read_to_string(format!("/proc/{process}/cmdline")).ok()?;
    let words: Vec<&str> = line.trim_end_matches('\0').split('\0').collect();
    match words[..] {
        [INIT, WORKER, role] => Some(role.to_owned()),
        _ => None,
    }
}

/// The workers of a program that have this role.
pub fn workers(program: &Program, wanted: &str) -> Vec<u32> {
    let has_role = |process: &u32| role(*process).as_deref() == Some(wanted);
    tree(program.id()).into_iter().filter(has_role).collect()
}

/// CPUs of a mask as the kernel writes it.
pub fn cpus(mask: &str) -> BTreeSet<u32> {
    let mask: symbiont_topology::CpuSet = mask.parse().unwrap();
    mask.iter().map(|pu| pu.0).collect()
}

/// The CPUs that a process may use; none if it is gone.
pub fn cpus_of(process: u32) -> BTreeSet<u32> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    mask.map(|mask| cpus(mask.trim())).unwrap_or_default()
}

/// For each of these cores, how many of the processes are held to it; none if
/// one of them is held to neither.
fn on_cores(processes: &[u32], cores: &[&[u32]; 2]) -> Option<[usize; 2]> {
    let mut counts = [0; 2];
    for process in processes {
        let mask = cpus_of(*process);
        let within = |core: &&[u32]| !mask.is_empty() && mask.iter().all(|cpu| core.contains(cpu));
        counts[cores.iter().position(within)?] += 1;
    }
    Some(counts)
}

pub fn list(cpus: &[u32]) -> String {
    cpus.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

/// What holds while a manager rests between two quanta: it moves nobody meanwhile. None if
/// it did anything, and where there is no manager.
fn at_rest<T>(place: &Place, look: impl FnOnce() -> T) -> Option<T> {
    let manager = place.manager()?;
    let switches = || {
        let status = fs::read_to_string(format!("/proc/{manager}/status")).ok()?;
        let lines = |word: &str| -> Vec<String> {
            status.lines().filter(|line| line.contains(word)).map(str::to_owned).collect()
        };
        status.contains("State:\tS").then(|| lines("ctxt_switches"))
    };
    let before = switches()?;
    let seen = look();
    (switches()? == before).then_some(seen)
}

/// Two full cores; half of the threads have page faults, which stand for
/// accesses to the L1 cache: each core gets half of them, as pairs, quadruples
/// or octuples. Who is about to be moved is not looked at: many threads take an
/// emulated machine a while. On a busy machine rates are uneven now and then: of
/// the last placements, a quantum apart, eight of ten are right, of octuples three of four.
pub fn balanced(given: &Given) {
    let place = Place::new();
    let cores = given.two_cores();
    let count = given.smt().to_string();
    let words = ["group", &list(&cores.concat()), &count, "hungry", "modest"];
    // On a guest of sixteen busy CPUs a manager takes seconds to read and move all.
    let (quantum_ms, looks, enough) = if given.smt() > 4 { (5000, 4, 3) } else { (500, 10, 8) };
    let quantum = format!("{quantum_ms}ms");
    let policy = ["--policy", "l1-bandwidth", "--catalogue", STAND_IN.0];
    let options = [&policy[..], &["--quantum", quantum.as_str()]].concat();
    let program = place.start(&mut place.run(&options, &command(&words)));
    let look = || {
        let [hungry, modest] = ["hungry", "modest"].map(|role| workers(&program, role));
        at_rest(&place, || (on_cores(&hungry, &cores), on_cores(&modest, &cores)))
    };
    wait_until("all are placed", || matches!(look(), Some((Some(_), Some(_)))));
    let right = Some([given.smt() / 2; 2]);
    let mut last = VecDeque::from(vec![None; looks]);
    wait_until_seen("each core has as many hungry as modest ones", |seen| {
        let Some(now) = look() else { return false };
        last.pop_front();
        last.push_back(Some(now));
        *seen = format!("hungry and modest by core, the last ones: {last:?}");
        std::thread::sleep(Duration::from_millis(quantum_ms));
        last.iter().filter(|now| **now == Some((right, right))).count() >= enough
    });
}

/// [`wait_until`], telling what was seen last if it never comes.
pub fn wait_until_seen(what: &str, mut holds: impl FnMut(&mut String) -> bool) {
    let mut last = Told(String::new());
    wait_until(what, || {
        std::thread::sleep(Duration::from_millis(50));
        holds(&mut last.0)
    });
}

/// Prints itself when a wait was in vain.
struct Told(String);

impl Drop for Told {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("{}", self.0);
        }
    }
}

/// Starts a serial program beside a parallel one, under `phases`.
pub fn start_serial(place: &Place, stderr: Stdio) -> Program {
    let jobs = place.path("jobs.toml");
    let text = format!(
        "[[job]]\nname = 'parallel'\ncommand = {:?}\n[[job]]\nname = 'serial'\ncommand = {:?}\n",
        command(&["group", "all", "4", "modest"]),
        command(&["group", "all", "1", "hungry"]),
    );
    fs::write(&jobs, text).unwrap();
    let mut run = place.symbiont("run");
    run.args(["--policy", "phases", "--quantum", "200ms", "--job"]).arg(&jobs).stderr(stderr);
    place.start(&mut run)
}

/// The serial one gets all siblings of a core, of the fastest where they differ, and the
/// parallel one none of them.
pub fn serial_gets_a_core(given: &Given, program: &Program) {
    let fastest = given.capacities.iter().max().unwrap();
    let mut right = 0;
    wait_until_seen("the serial thread has a core of its own", |seen| {
        let masks = |role: &str| -> Vec<BTreeSet<u32>> {
            workers(program, role).into_iter().map(cpus_of).collect()
        };
        let (serial, parallel) = (masks("hungry"), masks("modest"));
        *seen = format!("serial {serial:?}, parallel {parallel:?}");
        let [serial] = &serial[..] else { return false };
        let is_core = given.cores.iter().zip(&given.capacities).any(|(core, capacity)| {
            core.iter().copied().eq(serial.iter().copied()) && capacity == fastest
        });
        let apart = parallel.iter().all(|mask| mask.is_disjoint(serial));
        right = if is_core && apart && !parallel.is_empty() { right + 1 } else { 0 };
        right >= LASTS
    });
}

/// A serial program gets a whole core.
pub fn serial(given: &Given) {
    let place = Place::new();
    serial_gets_a_core(given, &start_serial(&place, Stdio::inherit()));
}
