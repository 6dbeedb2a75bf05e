//! Programs to be managed: this binary in other roles.

use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_setaffinity};

use super::{clocked, nudging, rivals, runtimes};

/// What the command line of a worker begins with.
pub const WORKER: &str = "worker";
/// Where the sign to eat is waited for.
pub const EAT: &str = "/tmp/eat";
/// Where the sign to change places is waited for.
pub const TURN: &str = "/tmp/turn";
/// Pages that are touched at a time.
const PAGES: usize = 500;
/// More than allocators keep for later: it is mapped anew each time.
const LARGE: usize = 40 << 20;
/// What a `modest` one counts to at a time.
const TURNS: usize = 100_000;
/// What part of that a `nibbler` and a `dozer` do at a time, and how long they rest then: a
/// few host CPUs bear many of them.
const PART: usize = 16;
const REST: Duration = Duration::from_millis(100);
/// No user of the guest.
const OTHER_USER: u32 = 65_534;
/// Bytes that a `dweller` reads.
pub const DWELLING: usize = 32 << 20;

/// `group CPUS COUNT ROLE…`: confines itself to CPUs (`all` or `1,3`) and starts
/// COUNT of each ROLE. `hungry` has page faults all the time, `modest` has none; a `nibbler`
/// and a `dozer` are like them for a moment now and then; `sleeper` wakes now and then, `eater` takes ever more memory once there is a file
/// [`EAT`]; `early` is hungry until there is a file [`TURN`] and modest from then on, `late`
/// the other way round; `dweller` reads the same memory all the time. A `storm` makes processes
/// that end at once. They run until their parent is gone. `births` starts a sleeper twenty times a second, ten in all.
pub fn main(arguments: &[String]) {
    match arguments {
        [role, cpus, count, roles @ ..] if role == "group" => {
            if cpus != "all" {
                let cpus: Vec<u32> = cpus.split(',').map(|cpu| cpu.parse().unwrap()).collect();
                confine(None, &cpus);
            }
            let count: usize = count.parse().unwrap();
            let children = (0..count).flat_map(|_| roles).map(|role| start(role)).collect();
            wait_for(children);
        }
        [role] if role == "births" => {
            let birth = |_| {
                std::thread::sleep(Duration::from_millis(50));
                start("sleeper")
            };
            wait_for((0..10).map(birth).collect());
        }
        [role, shapes @ ..] if role == clocked::ROLE => clocked::main(shapes),
        [role] if role == nudging::BURSTS => nudging::burst(),
        [role, program] if role == rivals::USUAL => rivals::execute(program),
        [role, output] if role == runtimes::SERIAL => runtimes::serial(output),
        [role] if role == runtimes::TICKS => runtimes::ticks(),
        [role] => busy(role),
        _ => panic!("what is {arguments:?}?"),
    }
}

/// The words that start a worker.
pub fn command<'a>(words: &[&'a str]) -> Vec<&'a str> {
    [&[super::INIT, WORKER], words].concat()
}

/// Confines a process, or the calling one, to CPUs.
pub fn confine(process: Option<u32>, cpus: &[u32]) {
    let mut set = CpuSet::new();
    cpus.iter().for_each(|cpu| set.set(*cpu as usize));
    let pid = process.and_then(|process| Pid::from_raw(i32::try_from(process).ok()?));
    sched_setaffinity(pid, &set).unwrap();
}

/// Starts one.
pub fn start(role: &str) -> Child {
    let mut command = Command::new(super::INIT);
    command.args([WORKER, role]).stdin(Stdio::null()).spawn().unwrap()
}

fn wait_for(children: Vec<Child>) {
    for mut child in children {
        let _ = child.wait();
    }
}

/// The work of a thread that changes places.
fn at_the_moment(role: &str) -> &str {
    let turned = || std::fs::exists(TURN).unwrap_or_default();
    match role {
        "early" => ["hungry", "modest"][usize::from(turned())],
        "late" => ["modest", "hungry"][usize::from(turned())],
        _ => role,
    }
}

/// Has page faults.
fn fault(pages: usize) {
    let page = rustix::param::page_size();
    let mut memory: Vec<u8> = Vec::with_capacity(LARGE);
    for byte in memory.spare_capacity_mut().iter_mut().step_by(page).take(pages) {
        std::hint::black_box(byte.write(1));
    }
}

/// Has none.
pub fn spin(turns: usize) {
    (0..turns).for_each(|n| {
        std::hint::black_box(n);
    });
}

/// Has processes execute another program, some as another user.
fn storm() {
    let births = (0..4).map(|nth| {
        let mut command = Command::new(super::INIT);
        command.args([WORKER, "group", "all", "0"]).stdin(Stdio::null());
        if nth % 2 == 1 {
            command.uid(OTHER_USER);
        }
        command.spawn().unwrap()
    });
    wait_for(births.collect());
}

fn busy(role: &str) {
    let _ = rustix::thread::disable_transparent_huge_pages(true);
    let parent = rustix::process::getppid();
    let mut eaten = Vec::new();
    let dwelling = vec![1_u8; if role == "dweller" { DWELLING } else { 0 }];
    while rustix::process::getppid() == parent {
        match at_the_moment(role) {
            "hungry" => fault(PAGES),
            "nibbler" => {
                fault(PAGES / PART);
                std::thread::sleep(REST);
            }
            "modest" => spin(TURNS),
            "dozer" => {
                spin(TURNS / PART);
                std::thread::sleep(REST);
            }
            "sleeper" => std::thread::sleep(Duration::from_millis(100)),
            "eater" => {
                std::thread::sleep(Duration::from_millis(10));
                if std::fs::exists(EAT).unwrap_or_default() {
                    eaten.push(std::hint::black_box(vec![1_u8; 1 << 20]));
                }
            }
            "dweller" => {
                std::hint::black_box(dwelling.iter().step_by(64).filter(|byte| **byte > 0).count());
            }
            "storm" => storm(),
            _ => panic!("what is a {role}?"),
        }
    }
}
