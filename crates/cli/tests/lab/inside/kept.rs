//! A scheduler of Symbiont's in the kernel keeps threads where they belong: no mask changes, and however it ends,
//! nothing is left.

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::time::{Duration, Instant};

use rustix::fs::OFlags;
use rustix::process::Signal;
use symbiont_ext::{NAME, loader, obstacle};

use crate::given::{Given, Scope};
use crate::settings::{changed, of_tree, own, tree};
use crate::test_folder::{Program, TestFolder, is_alive, send, wait_until};

use super::cgroup::Group;
use super::cpus::switch;
use super::siblings::list;
use super::skip;
use super::workers::command;

/// The number of the class `SCHED_EXT`.
const EXT: u32 = 7;
const RANDOM: [&str; 6] = ["--policy", "random", "--quantum", "100ms", "--actuator", "sched-ext"];
/// How often either side is killed where all is tried; once elsewhere.
const KILLS: usize = 3;
/// How often, together, where it is asked for by name.
const MANY_KILLS: usize = 200;
/// Words of the kernel's about a scheduler that it ended for a fault.
const FAULTS: [&str; 3] = ["watchdog", "stall", "error"];
/// How often a cpuset is changed.
const TURNS: usize = 12;
/// A scheduler that takes so long to load is in trouble.
const LONG: Duration = Duration::from_secs(30);
/// How often masks are looked at.
const LOOKS: usize = 40;

/// Ends a scenario where no scheduler can be loaded.
pub fn needs_a_scheduler() {
    if let Some(why) = obstacle() {
        skip(&why);
    }
    if loader().is_none() {
        skip(match std::env::consts::ARCH {
            "x86_64" => "symbiont-scx is not built (make scx)",
            _ => "symbiont-scx is not built for this architecture",
        });
    }
}

fn state() -> String {
    let state = fs::read_to_string("/sys/kernel/sched_ext/state").unwrap_or_default();
    let name = fs::read_to_string("/sys/kernel/sched_ext/root/ops").unwrap_or_default();
    format!("{} {}", state.trim(), name.trim()).trim().to_owned()
}

fn is_loaded() -> bool {
    state() == format!("enabled {NAME}")
}

fn has_kept_threads(program: &Program) -> bool {
    of_tree(program.id()).values().any(|thread| thread.class == EXT)
}

/// Eight processes, of which one is kept at least.
fn placed(place: &TestFolder) -> Program {
    placed_by(place, "sched-ext", &["sleeper"])
}

/// Eight processes, as many of each role.
fn placed_by(place: &TestFolder, actuator: &str, roles: &[&str]) -> Program {
    needs_a_scheduler();
    let each = (8 / roles.len()).to_string();
    let words = command(&[&["group", "all", &each], roles].concat());
    let options = [&RANDOM[..5], &[actuator]].concat();
    let program = place.start(&mut place.run(&options, &words));
    let (begin, mut said) = (Instant::now(), false);
    wait_until("threads are kept", || {
        if !said && begin.elapsed() > LONG {
            said = true;
            say_where_it_waits(place);
        }
        is_loaded() && has_kept_threads(&program)
    });
    program
}

/// Says where in the kernel the loader is.
fn say_where_it_waits(place: &TestFolder) {
    println!("state: {}", state());
    let Some(loader) = loader_of(place) else { return println!("no loader runs") };
    for thread in fs::read_dir(format!("/proc/{loader}/task")).into_iter().flatten().flatten() {
        for file in ["stat", "syscall", "stack"] {
            let text = fs::read_to_string(thread.path().join(file)).unwrap_or_default();
            text.lines().for_each(|line| println!("{file}: {line}"));
        }
    }
}

/// The program that loads the scheduler: a child of the manager.
fn loader_of(place: &TestFolder) -> Option<u32> {
    let is_loader = |process: &u32| {
        fs::read_to_string(format!("/proc/{process}/comm"))
            .is_ok_and(|name| name.trim() == "symbiont-scx")
    };
    tree(place.manager()?).into_iter().find(is_loader)
}

fn keep_their_masks(program: &Program) {
    let own = own().mask;
    for _ in 0..LOOKS {
        let masks: Vec<_> = of_tree(program.id()).into_values().map(|thread| thread.mask).collect();
        assert!(masks.iter().all(|mask| *mask == own), "{masks:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn is_as_before(program: &Program) {
    assert!(of_tree(program.id()).len() >= 9, "the program runs on");
    assert!(changed(program.id(), &own()).is_empty(), "{:?}", changed(program.id(), &own()));
}

/// Threads are kept with the masks that they had, and all is as before at the end.
pub fn end(_: &Given) {
    for (actuator, all) in [("sched-ext", "0"), ("sched-ext-full", "1")] {
        let place = TestFolder::new();
        let program = placed_by(&place, actuator, &["sleeper"]);
        let switched = fs::read_to_string("/sys/kernel/sched_ext/switch_all").unwrap();
        assert_eq!(switched.trim(), all, "{actuator}");
        keep_their_masks(&program);
        place.signal_manager(Signal::TERM);
        assert_eq!(state(), "disabled");
        is_as_before(&program);
        assert!(place.journals().is_empty(), "{:?}", place.journals());
        program.kill_all();
    }
}

/// The loader is killed, and the threads are nudged from then on; the manager is killed, and `restore` undoes what
/// is left: the number of the class, which means nothing without a scheduler.
pub fn killed(given: &Given) {
    for _ in 0..if given.scope == Scope::Whole { KILLS } else { 1 } {
        kill_loader(&["sleeper"]);
        kill_manager(&["sleeper"]);
    }
}

/// The same very often, while processes are made.
pub fn killed_often(_: &Given) {
    let roles = [&["sleeper"; 7][..], &["births"]].concat();
    let (begin, before) = (Instant::now(), counted_births());
    for kill in (2..=MANY_KILLS).step_by(2) {
        kill_loader(&roles);
        kill_manager(&roles);
        if kill % 10 == 0 {
            let births = counted_births() - before;
            println!("{kill} kills, {births} births, {:.0} s", begin.elapsed().as_secs_f64());
        }
    }
}

fn kill_loader(roles: &[&str]) {
    let place = TestFolder::new();
    let program = placed_by(&place, "sched-ext", roles);
    send(loader_of(&place).expect("a loader"), Signal::KILL);
    wait_until("the kernel's own scheduler decides", || state() == "disabled");
    wait_until("no thread is of its class", || !has_kept_threads(&program));
    let manager = place.manager().expect("it manages on");
    assert!(is_alive(manager));
    place.signal_manager(Signal::TERM);
    nothing_is_left(&place, &program);
}

fn kill_manager(roles: &[&str]) {
    let place = TestFolder::new();
    let program = placed_by(&place, "sched-ext", roles);
    place.kill_manager();
    wait_until("the kernel's own scheduler decides", || state() == "disabled");
    let restored = place.restore();
    assert_eq!(restored.code, Some(0), "{}", restored.stderr);
    nothing_is_left(&place, &program);
}

/// Nor did the kernel end it for a fault.
fn nothing_is_left(place: &TestFolder, program: &Program) {
    is_as_before(program);
    assert!(place.journals().is_empty(), "{:?}", place.journals());
    program.kill_all();
    let faults = faults();
    assert!(faults.is_empty(), "{faults:?}");
}

/// What the kernel has said so far of schedulers that it ended for a fault, such as a thread that waited too long.
fn faults() -> Vec<String> {
    let mut messages = OpenOptions::new()
        .read(true)
        .custom_flags(OFlags::NONBLOCK.bits() as i32)
        .open("/dev/kmsg")
        .unwrap();
    let mut message = [0; 8192];
    let mut faults = Vec::new();
    loop {
        match messages.read(&mut message) {
            Ok(length) => faults.push(String::from_utf8_lossy(&message[..length]).into_owned()),
            // What was overwritten meanwhile is lost.
            Err(why) if why.kind() == ErrorKind::BrokenPipe => {}
            Err(_) => break,
        }
    }
    let is_fault = |message: &String| {
        message.contains("sched_ext") && FAULTS.iter().any(|word| message.contains(word))
    };
    faults.retain(is_fault);
    faults
}

/// A CPU goes and comes back: the kernel ends the scheduler each time, and it is loaded again.
pub fn hotplug(given: &Given) {
    let place = TestFolder::new();
    let program = placed(&place);
    let gone = given.cores[1][0];
    for online in [false, true] {
        switch(gone, online);
        wait_until("it is loaded again", || is_loaded() && has_kept_threads(&program));
        assert!(place.manager().is_some(), "it manages on");
    }
    keep_their_masks(&program);
    place.signal_manager(Signal::TERM);
    assert_eq!(state(), "disabled");
    is_as_before(&program);
}

/// The kernel holds no thread of the class to a quota: a process that comes under one leaves it, and comes back
/// afterwards; the others of its program stay.
pub fn under_a_quota(_: &Given) {
    needs_a_scheduler();
    let group = Group::new("quota", &["cpu"]);
    group.set("cpu.max", "50000 100000");
    let place = TestFolder::new();
    let program = placed(&place);
    let is_kept = |process: u32| of_tree(process).values().any(|thread| thread.class == EXT);
    // Those that have made others count by those.
    let is_leaf = |process: &u32| tree(*process).len() == 1;
    let kept = |process: &u32| is_leaf(process) && is_kept(*process);
    let processes = || tree(program.id()).into_iter().filter(kept);
    wait_until("several are kept", || processes().count() >= 2);
    let limited = processes().next().unwrap();
    group.take(limited);
    wait_until("it left the class", || !is_kept(limited));
    std::thread::sleep(Duration::from_secs(1));
    assert!(!is_kept(limited), "it stays out");
    assert!(is_loaded() && has_kept_threads(&program), "the others are kept");
    Group::root().take(limited);
    wait_until("it is back", || is_kept(limited));
    place.signal_manager(Signal::TERM);
    is_as_before(&program);
}

/// Processes are made all the time, execute others and become another user's, and the cpuset shrinks and grows: no
/// thread stalls, for which the kernel would end the scheduler, and all is as before at the end.
pub fn storm(given: &Given) {
    needs_a_scheduler();
    let group = Group::new("kept", &["cpuset"]);
    let all = given.cpus();
    let set = |cpus: &[u32]| group.set("cpuset.cpus", &list(cpus));
    set(&all);
    group.take(std::process::id());
    let place = TestFolder::new();
    let words = command(&["group", "all", "4", "sleeper", "storm"]);
    let program = place.start(&mut place.run(&RANDOM, &words));
    wait_until("threads are kept", || is_loaded() && has_kept_threads(&program));
    let before = counted_births();
    for turn in 0..TURNS {
        set(if turn % 2 == 0 { &all[..all.len() / 2] } else { &all });
        std::thread::sleep(Duration::from_millis(500));
        assert!(is_loaded(), "the kernel has not ended it: {}", state());
    }
    println!("{} births", counted_births() - before);
    assert!(has_kept_threads(&program), "it goes on");
    place.signal_manager(Signal::TERM);
    assert_eq!(state(), "disabled");
    let left = || -> Vec<_> {
        let tree = of_tree(program.id()).into_iter();
        tree.filter(|(_, now)| now.class == EXT || now.mask != own().mask).collect()
    };
    // What was born while it ended has inherited nothing for long.
    wait_until("nothing is left", || left().is_empty());
}

/// Processes that were made since the guest was started.
fn counted_births() -> u64 {
    let stat = fs::read_to_string("/proc/stat").unwrap();
    let count = stat.lines().find_map(|line| line.strip_prefix("processes "));
    count.unwrap().trim().parse().unwrap()
}
