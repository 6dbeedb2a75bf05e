//! A program that a user confined is never let out, whatever the policy wants.

use std::process::Command;
use std::time::{Duration, Instant};

use libtest_mimic::Trial;

use crate::settings::of_tree;
use crate::test_folder::{TestFolder, wait_until};
use crate::trials::{own_cpus, skip, trial};

/// Three busy processes and many short ones.
const PROGRAM: &str = "echo > \"$0\"; (while :; do :; done) & (while :; do /bin/true; done) & \
                       while :; do :; done";

pub fn trials() -> Vec<Trial> {
    vec![
        trial("confined_from_outside_stays_confined_under_phases", || outside("phases")),
        trial("confined_from_outside_stays_confined_under_random", || outside("random")),
        trial("confined_by_itself_stays_confined_under_phases", || inside("phases")),
        trial("confined_by_itself_stays_confined_under_random", || inside("random")),
    ]
}

fn has_taskset() -> bool {
    Command::new("taskset").arg("--version").output().is_ok()
}

/// `taskset -c CPU symbiont run …`
fn outside(policy: &str) {
    let place = TestFolder::new();
    let begun = place.path("begun");
    let program = ["sh", "-c", PROGRAM, begun.to_str().expect("UTF-8")];
    stays_confined(policy, &place, |cpu| {
        let run = place.run(&["--policy", policy, "--quantum", "10ms"], &program);
        let mut taskset = Command::new("taskset");
        taskset.args(["-c", cpu]).arg(run.get_program()).args(run.get_args());
        taskset
    });
}

/// `symbiont run … -- taskset -c CPU …`
fn inside(policy: &str) {
    let place = TestFolder::new();
    let begun = place.path("begun");
    let begun = begun.to_str().expect("UTF-8");
    stays_confined(policy, &place, |cpu| {
        let program = ["taskset", "-c", cpu, "sh", "-c", PROGRAM, begun];
        place.run(&["--policy", policy, "--quantum", "10ms"], &program)
    });
}

fn stays_confined(policy: &str, place: &TestFolder, command: impl FnOnce(&str) -> Command) {
    if !has_taskset() {
        return skip("there is no taskset here");
    }
    let cpu = own_cpus().last().expect("a CPU").to_string();
    let program = place.start(&mut command(&cpu));
    wait_until("the program runs", || place.path("begun").exists());
    let begin = Instant::now();
    let mut samples = 0;
    while begin.elapsed() < Duration::from_millis(1500) || samples < 100 {
        for (thread, now) in of_tree(program.id()) {
            assert_eq!(now.mask, cpu, "{policy}: thread {thread} was let out: {now:?}");
            assert_eq!(now.cpu, cpu, "{policy}: thread {thread} ran elsewhere: {now:?}");
            samples += 1;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    assert!(place.manager().is_some(), "it is managed all the time");
}
