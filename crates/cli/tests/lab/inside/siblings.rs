//! Which threads are placed on which siblings.

use std::collections::{BTreeSet, VecDeque};
use std::fs;
use std::process::Stdio;
use std::time::Duration;

use crate::given::Given;
use crate::settings::tree;
use crate::test_folder::{Program, TIMEOUT, TestFolder, wait_until};

use super::workers::{WORKER, command};
use super::{EVEN, INIT};

/// How often in a row a placement must be seen.
pub const LASTS: u32 = 5;
/// Of the policy that balances.
const QUANTUM: Duration = Duration::from_secs(1);

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

/// For each core, how many of the processes are held to it; none if one of them is held to
/// no core.
fn on_cores(processes: &[u32], cores: &[Vec<u32>]) -> Option<Vec<usize>> {
    let mut counts = vec![0; cores.len()];
    for process in processes {
        let mask = cpus_of(*process);
        let within =
            |core: &Vec<u32>| !mask.is_empty() && mask.iter().all(|cpu| core.contains(cpu));
        counts[cores.iter().position(within)?] += 1;
    }
    Some(counts)
}

pub fn list(cpus: &[u32]) -> String {
    cpus.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

/// What holds while a manager rests between two quanta: it moves no thread meanwhile. None if
/// it did anything, and where there is no manager.
fn at_rest<T>(place: &TestFolder, look: impl FnOnce() -> T) -> Option<T> {
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

/// As many threads as hardware threads; half of them have page faults, which stand for
/// accesses to the L1 cache: each core gets equally many of these, as pairs, quadruples or
/// octuples. The threads rest most of the time, so that no host is too small for many of
/// them. A thread that is about to be moved is not looked at.
pub fn balanced(given: &Given) {
    balance(given, &["--policy", "l1-bandwidth"]);
}

/// The same where page faults stand for floating-point operations: as many threads as have them are
/// spread over the cores.
pub fn fpu_hungry(given: &Given) {
    let count = given.cores.len() * given.smt();
    let (active, top) = (format!("active={count}"), format!("top={}", count / 2));
    balance(given, &["--policy", "fpu", "--set", &active, "--set", &top]);
}

fn balance(given: &Given, policy: &[&str]) {
    let place = TestFolder::new();
    let half = given.smt() / 2;
    let count = given.cores.len() * half;
    let quantum = format!("{}ms", QUANTUM.as_millis());
    let options = [policy, &["--catalogue", EVEN.0, "--quantum", quantum.as_str()]].concat();
    let words = ["group", "all", &count.to_string(), "nibbler", "dozer"];
    let program = place.start(&mut place.run(&options, &command(&words)));
    let mut hungry = Vec::new();
    wait_until("all have begun", || {
        hungry = workers(&program, "nibbler");
        hungry.len() == count
    });
    let look = || at_rest(&place, || on_cores(&hungry, &given.cores));
    let right = vec![half; given.cores.len()];
    let enough = often_enough(given);
    let (mut row, mut last) = (0, VecDeque::new());
    wait_until_seen("each core has as many hungry ones as the others", |seen| {
        let Some(Some(now)) = look() else { return false };
        row = if now == right { row + 1 } else { 0 };
        last.push_back(now);
        last.drain(..last.len().saturating_sub(10));
        *seen = format!("{row} of {enough} in a row; hungry ones by core, the last: {last:?}");
        std::thread::sleep(QUANTUM);
        row >= enough
    });
}

/// How often in a row a placement must be right, so that one which is drawn by lot each
/// quantum passes in less than one of a hundred plays.
fn often_enough(given: &Given) -> u32 {
    let ways = |of: usize, many: usize| -> f64 {
        (0..many).map(|n| (of - n) as f64 / (many - n) as f64).product()
    };
    let (smt, cores) = (given.smt(), given.cores.len());
    let all = ways(smt * cores, smt * cores / 2);
    let chance = ways(smt, smt / 2).powi(i32::try_from(cores).unwrap()) / all;
    let looks = TIMEOUT.as_secs_f64() / QUANTUM.as_secs_f64();
    let row = ((0.01 / looks).ln() / chance.ln()).ceil();
    // Of eight hardware threads on two cores, eleven.
    LASTS.max(row as u32)
}

/// [`wait_until`], telling what was seen last if it never comes.
pub fn wait_until_seen(what: &str, mut holds: impl FnMut(&mut String) -> bool) {
    let mut last = LastOutput(String::new());
    wait_until(what, || {
        std::thread::sleep(Duration::from_millis(50));
        holds(&mut last.0)
    });
}

/// Prints itself when a wait was in vain.
struct LastOutput(String);

impl Drop for LastOutput {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("{}", self.0);
        }
    }
}

/// Starts a serial program together with a parallel one, under a policy.
pub fn start_serial(place: &TestFolder, policy: &str, stderr: Stdio) -> Program {
    let jobs = place.path("jobs.toml");
    let text = format!(
        "[[job]]\nname = 'parallel'\ncommand = {:?}\n[[job]]\nname = 'serial'\ncommand = {:?}\n",
        command(&["group", "all", "4", "modest"]),
        command(&["group", "all", "1", "hungry"]),
    );
    fs::write(&jobs, text).unwrap();
    let mut run = place.symbiont("run");
    run.args(["--policy", policy, "--quantum", "200ms", "--job"]).arg(&jobs).stderr(stderr);
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
    let place = TestFolder::new();
    serial_gets_a_core(given, &start_serial(&place, "phases", Stdio::inherit()));
}
