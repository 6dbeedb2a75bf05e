//! What else may happen to a managed program and its manager.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::process::Stdio;

use rustix::process::Signal;
use rustix::time::{ClockId, Timespec, clock_gettime, clock_settime};
use serde_json::Value;

use crate::given::Given;
use crate::settings::{changed, own, wait_for_change};
use crate::test_folder::{Program, TestFolder, is_alive, send, stderr, wait_until};

use super::cgroup::Group;
use super::siblings::{cpus_of, workers};
use super::workers::{EAT, command};

const RANDOM: [&str; 4] = ["--policy", "random", "--quantum", "100ms"];
/// A user that owns nothing in the guest.
const UNPRIVILEGED: u32 = 61_184;

/// The masks of all sleepers.
fn masks(program: &Program) -> Vec<BTreeSet<u32>> {
    workers(program, "sleeper").into_iter().map(cpus_of).collect()
}

/// Waits until so many other placements were seen.
fn wait_until_dealt_anew(program: &Program, times: u32) {
    for _ in 0..times {
        let before = masks(program);
        wait_until("threads are dealt anew", || masks(program) != before);
    }
}

/// No thread is left as no user wanted it.
fn ends_well(place: &TestFolder, program: &Program) {
    place.signal_manager(Signal::TERM);
    let mut left = changed(program.id(), &own());
    // A dead process that its parent has not reaped yet keeps what it had.
    left.retain(|&thread, _| is_alive(thread));
    assert!(left.is_empty(), "{left:?}");
    assert!(place.journals().is_empty(), "{:?}", place.journals());
}

/// A program is frozen and thawed: managed on; frozen once more, its masks are restored
/// all the same.
pub fn frozen(_: &Given) {
    let place = TestFolder::new();
    let group = Group::new("frozen", &[]);
    let program = place.start(&mut place.run(&RANDOM, &command(&["group", "all", "4", "sleeper"])));
    wait_for_change(program.id(), &own());
    workers(&program, "sleeper").into_iter().for_each(|worker| group.take(worker));
    let freeze = |yes: u64| {
        group.set("cgroup.freeze", &yes.to_string());
        wait_until("it is as shown", || group.value("cgroup.events", "frozen") == yes);
    };
    freeze(1);
    std::thread::sleep(std::time::Duration::from_secs(1));
    assert!(place.manager().is_some(), "it manages on");
    freeze(0);
    wait_until_dealt_anew(&program, 3);
    freeze(1);
    ends_well(&place, &program);
    freeze(0);
}

/// The kernel kills one of several for want of memory: the others are managed on.
pub fn out_of_memory(_: &Given) {
    let place = TestFolder::new();
    let group = Group::new("memory", &["memory"]);
    let words = command(&["group", "all", "1", "sleeper", "sleeper", "eater"]);
    let program = place.start(&mut place.run(&RANDOM, &words));
    wait_for_change(program.id(), &own());
    wait_until("all have begun", || workers(&program, "eater").len() == 1);
    let eater = workers(&program, "eater")[0];
    group.set("memory.max", "32M");
    group.take(eater);
    fs::write(EAT, "").unwrap();
    wait_until("the eater is killed", || !is_alive(eater));
    assert!(group.value("memory.events", "oom_kill") > 0, "by the kernel, for want of memory");
    assert_eq!(masks(&program).len(), 2, "the others run on");
    wait_until_dealt_anew(&program, 3);
    ends_well(&place, &program);
}

/// The clock is set a day ahead, and two days back.
pub fn clock_jumps(_: &Given) {
    let place = TestFolder::new();
    let mut run = place.run(&RANDOM, &command(&["group", "all", "4", "sleeper"]));
    let program = place.start(&mut run);
    wait_for_change(program.id(), &own());
    for days in [1, -2] {
        let now = clock_gettime(ClockId::Realtime);
        let then = Timespec { tv_sec: now.tv_sec + days * 24 * 3600, ..now };
        clock_settime(ClockId::Realtime, then).unwrap();
        wait_until_dealt_anew(&program, 3);
    }
    ends_well(&place, &program);
}

/// An ordinary user's program is placed as well.
pub fn no_privilege(_: &Given) {
    let place = TestFolder::new();
    chown(place.path("."), Some(UNPRIVILEGED), Some(UNPRIVILEGED)).unwrap();
    let options = [&RANDOM[..], &["--report", "json"]].concat();
    let mut run = place.run(&options, &command(&["group", "all", "4", "sleeper"]));
    let program = place.start(run.uid(UNPRIVILEGED).gid(UNPRIVILEGED).stderr(Stdio::piped()));
    wait_for_change(program.id(), &own());
    wait_until_dealt_anew(&program, 3);
    ends_well(&place, &program);
    workers(&program, "sleeper").into_iter().for_each(|worker| send(worker, Signal::KILL));
    let said = stderr(&program.output());
    let report: Value = serde_json::from_str(&said).expect("a report");
    println!("{}", report["enrolment"]);
    assert!(report["threads"].as_u64() >= Some(5), "{said}");
}
