//! A scheduler of Symbiont's in the kernel keeps threads where they belong: no mask changes, and however it ends,
//! nothing is left.

use std::fs;
use std::time::Duration;

use rustix::process::Signal;
use symbiont_ext::{NAME, loader, obstacle};

use crate::given::Given;
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
/// How often either side is killed.
const KILLS: usize = 3;
/// How often a cpuset is changed.
const TURNS: usize = 12;
/// How often masks are looked at.
const LOOKS: usize = 40;

/// Ends a scenario where no scheduler can be loaded.
pub fn needs_a_scheduler() {
    if let Some(why) = obstacle() {
        skip(&why);
    }
    if loader().is_none() {
        skip("symbiont-scx is not built (make scx)");
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
    placed_by(place, "sched-ext")
}

fn placed_by(place: &TestFolder, actuator: &str) -> Program {
    needs_a_scheduler();
    let words = command(&["group", "all", "8", "sleeper"]);
    let options = [&RANDOM[..5], &[actuator]].concat();
    let program = place.start(&mut place.run(&options, &words));
    wait_until("threads are kept", || is_loaded() && has_kept_threads(&program));
    program
}

/// The program that loads the scheduler: a child of the manager.
fn loader_of(place: &TestFolder) -> u32 {
    let manager = place.manager().expect("a manager");
    let is_loader = |process: &u32| {
        fs::read_to_string(format!("/proc/{process}/comm"))
            .is_ok_and(|name| name.trim() == "symbiont-scx")
    };
    tree(manager).into_iter().find(is_loader).expect("a loader")
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
        let program = placed_by(&place, actuator);
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
pub fn killed(_: &Given) {
    for _ in 0..KILLS {
        let place = TestFolder::new();
        let program = placed(&place);
        send(loader_of(&place), Signal::KILL);
        wait_until("the kernel's own scheduler decides", || state() == "disabled");
        wait_until("no thread is of its class", || !has_kept_threads(&program));
        let manager = place.manager().expect("it manages on");
        assert!(is_alive(manager));
        place.signal_manager(Signal::TERM);
        is_as_before(&program);
        program.kill_all();

        let place = TestFolder::new();
        let program = placed(&place);
        place.kill_manager();
        wait_until("the kernel's own scheduler decides", || state() == "disabled");
        let restored = place.restore();
        assert_eq!(restored.code, Some(0), "{}", restored.stderr);
        is_as_before(&program);
        assert!(place.journals().is_empty(), "{:?}", place.journals());
        program.kill_all();
    }
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
