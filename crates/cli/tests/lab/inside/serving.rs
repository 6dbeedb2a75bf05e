//! One manager serves a user at a time, without the process that started it.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::time::Instant;

use rustix::process::Signal;

use crate::given::Given;
use crate::settings::{changed, own, wait_for_change};
use crate::test_folder::{Program, TestFolder, is_alive, send, wait_until};

use super::siblings::{cpus_of, workers};
use super::workers::command;

const RANDOM: [&str; 4] = ["--policy", "random", "--quantum", "100ms"];
const SLEEPERS: [&str; 4] = ["group", "all", "4", "sleeper"];

/// The rights of an unrestricted user.
fn everywhere(given: &Given) -> BTreeSet<u32> {
    given.cpus().into_iter().collect()
}

/// Waits until so many other placements of these were seen.
fn wait_until_dealt_anew(sleepers: &[u32], times: u32) {
    let masks = || -> Vec<_> { sleepers.iter().map(|sleeper| cpus_of(*sleeper)).collect() };
    for _ in 0..times {
        let before = masks();
        wait_until("threads are dealt anew", || masks() != before);
    }
}

/// The manager is asked to go: all is as it was.
fn goes(given: &Given, place: &TestFolder, sleepers: &[u32]) {
    place.signal_manager(Signal::TERM);
    for sleeper in sleepers {
        assert!(is_alive(*sleeper), "the program runs on");
        assert_eq!(cpus_of(*sleeper), everywhere(given), "it may run everywhere again");
    }
    assert!(place.journals().is_empty(), "{:?}", place.journals());
}

fn sleepers(program: &Program, count: usize) -> Vec<u32> {
    wait_until("all have begun", || workers(program, "sleeper").len() == count);
    workers(program, "sleeper")
}

/// A program that comes while a manager exists learns which one, runs unmanaged, and is left alone.
/// Once the manager was asked to go, the next program is managed.
pub fn second(given: &Given) {
    let place = TestFolder::new();
    let start = |said: &str| {
        let said = File::create(place.path(said)).unwrap();
        place.start(place.run(&RANDOM, &command(&SLEEPERS)).stderr(said))
    };
    let said = |by: &str| fs::read_to_string(place.path(by)).unwrap();
    let begin = Instant::now();
    let first = start("first");
    wait_for_change(first.id(), &own());
    let until_placed = begin.elapsed();
    let managed = sleepers(&first, 4);
    let manager = place.manager().expect("a manager");

    let second = start("second");
    sleepers(&second, 4);
    // Longer than it takes until a managed thread is placed.
    let begin = Instant::now();
    while begin.elapsed() < 2 * until_placed {
        wait_until_dealt_anew(&managed, 1);
        let touched = changed(second.id(), &own());
        assert!(touched.is_empty(), "threads of the second: {touched:?}");
    }
    println!("{}", said("second"));
    let line = format!(
        "runs unmanaged: another symbiont (process {manager}) already manages the programs"
    );
    assert!(said("second").contains(&line), "no word of process {manager}: {}", said("second"));
    assert_eq!(place.manager(), Some(manager));

    goes(given, &place, &managed);
    assert!(changed(first.id(), &own()).is_empty(), "{:?}", changed(first.id(), &own()));
    let third = start("third");
    wait_for_change(third.id(), &own());
    assert!(!said("third").contains("unmanaged"), "{}", said("third"));
    let managed = sleepers(&third, 4);
    goes(given, &place, &managed);
}

/// Two programs have a manager together. The process that started all that is killed: they are managed on,
/// until the manager is asked to go.
pub fn orphaned(given: &Given) {
    let place = TestFolder::new();
    let jobs = place.path("jobs.toml");
    let job =
        |name: &str| format!("[[job]]\nname = '{name}'\ncommand = {:?}\n", command(&SLEEPERS));
    fs::write(&jobs, ["one", "other"].map(job).concat()).unwrap();
    let mut run = place.symbiont("run");
    let mut supervisor = place.start(run.args(RANDOM).arg("--job").arg(&jobs));
    let sleepers = sleepers(&supervisor, 8);
    wait_for_change(supervisor.id(), &own());

    send(supervisor.id(), Signal::KILL);
    supervisor.wait();
    let placed = |sleeper: &u32| cpus_of(*sleeper) != everywhere(given);
    for _ in 0..3 {
        wait_until_dealt_anew(&sleepers, 1);
        wait_until("all of both programs are placed", || sleepers.iter().all(placed));
    }
    goes(given, &place, &sleepers);
}
