//! CPUs go offline and come back while programs are managed.

use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;

use crate::given::Given;
use crate::settings::{changed, own};
use crate::test_folder::{TestFolder, send, stderr, wait_until};

use super::siblings::{cpus_of, workers};
use super::workers::command;

/// Takes a CPU offline, or brings it online.
pub fn switch(cpu: u32, online: bool) {
    let path = format!("/sys/devices/system/cpu/cpu{cpu}/online");
    fs::write(path, if online { "1" } else { "0" }).unwrap();
}

/// Takes all CPUs away but one.
pub fn only_online(given: &Given, left: u32) {
    given.cpus().into_iter().filter(|cpu| *cpu != left).for_each(|cpu| switch(cpu, false));
}

/// Brings back what a scenario took away.
pub fn all_online() {
    for entry in fs::read_dir("/sys/devices/system/cpu").unwrap().flatten() {
        let path = entry.path().join("online");
        if fs::read_to_string(&path).is_ok_and(|state| state.trim() == "0") {
            // The next scenario will show it.
            let _ = fs::write(path, "1");
        }
    }
}

/// One CPU goes while threads are dealt anew each quantum. They run on, on what
/// is left; the CPU is used again when it is back; and when the manager is gone,
/// all have the masks of the beginning.
pub fn hotplug(given: &Given) {
    let place = TestFolder::new();
    let before = own();
    let count = given.cpus().len().to_string();
    let options = ["--policy", "random", "--quantum", "100ms", "--report", "json"];
    let mut run = place.run(&options, &command(&["group", "all", &count, "sleeper"]));
    let program = place.start(run.stderr(Stdio::piped()));
    let workers = || workers(&program, "sleeper");
    let placed_on = |cpu: u32| workers().iter().any(|process| cpus_of(*process) == [cpu].into());
    let gone = given.cores[1][0];
    for _ in 0..3 {
        wait_until("a thread is placed on the CPU", || placed_on(gone));
        switch(gone, false);
        let begin = Instant::now();
        let mut samples = 0;
        while begin.elapsed() < Duration::from_secs(1) || samples < 5 {
            samples += 1;
            assert_eq!(workers().len().to_string(), count, "all run on");
            std::thread::sleep(Duration::from_millis(50));
        }
        assert!(place.manager().is_some(), "it manages on");
        switch(gone, true);
    }
    wait_until("a thread is placed on the CPU that is back", || placed_on(gone));
    place.signal_manager(Signal::TERM);
    let now = changed(program.id(), &before);
    let kept: Vec<_> = workers().into_iter().filter(|worker| now.contains_key(worker)).collect();
    assert!(kept.is_empty(), "{now:?}");
    for process in workers() {
        send(process, Signal::KILL);
    }
    let said = stderr(&program.output());
    let report: Value = serde_json::from_str(&said).expect("a report");
    println!("moves: {}", report["moves"]);
    assert!(report["moves"]["done"].as_u64() > Some(0), "{said}");
}
