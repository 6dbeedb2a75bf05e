//! Another process changes what the daemon has applied.

use libtest_mimic::Trial;
use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_setaffinity};

use crate::service::Service;
use crate::settings::{of_tree, own, wait_for_change};
use crate::test_folder::{Program, stderr, wait_until};
use crate::trials::{BUSY, own_cpus, skip, trial};

pub fn trials() -> Vec<Trial> {
    vec![
        trial("a_mask_that_another_process_sets_stays_and_is_logged_once", stays),
        trial("threads_of_other_scheduling_classes_are_never_touched", special),
    ]
}

/// As `taskset -p` does.
fn taskset(thread: u32, cpu: usize) {
    let mut mask = CpuSet::new();
    mask.set(cpu);
    sched_setaffinity(Pid::from_raw(i32::try_from(thread).unwrap()), &mask).unwrap();
}

fn mask_of(program: &Program) -> String {
    of_tree(program.id())[&program.id()].mask.clone()
}

fn stays() {
    let [first, second, ..] = own_cpus()[..] else { return skip("there is one CPU only") };
    let (mut service, own) = (Service::start("random"), own());
    let start = || service.place.start(&mut service.place.run(&[], &["sh", "-c", BUSY]));
    // The other one is there so that there is something to decide.
    let (program, _other) = (start(), start());
    let id = program.id();
    wait_for_change(id, &own);
    let shown = || -> Vec<String> {
        let is_it = |line: &&str| line.contains(&format!("of process {id} "));
        service.log().lines().filter(is_it).map(str::to_owned).collect()
    };
    // What the daemon has just chosen itself is no change.
    let mut turns = [first, second].into_iter().cycle();
    wait_until("a change is logged", || {
        turns.next().into_iter().for_each(|cpu| taskset(id, cpu));
        std::thread::sleep(std::time::Duration::from_millis(30));
        !shown().is_empty()
    });
    for cpu in [second, first, second] {
        taskset(id, cpu);
        let quanta = || service.status()["usage"]["quanta"].as_u64().unwrap();
        let before = quanta();
        wait_until("the daemon has decided some times", || quanta() > before + 5);
        assert_eq!(mask_of(&program), cpu.to_string(), "the other process's mask stays");
    }
    let shown = shown();
    assert!(shown.len() == 1 && shown[0].contains("changed the affinity"), "{shown:?}");
    let status = service.status();
    assert!(status["moves"]["externally_changed"].as_u64() >= Some(1), "{status}");
    let why = service.client(&["why", &id.to_string()]);
    let text = String::from_utf8_lossy(&why.stdout).into_owned();
    assert!(text.contains("another process changed this setting"), "{text} {}", stderr(&why));
    service.end();
    assert_eq!(mask_of(&program), second.to_string(), "it is the user's own now");
}

/// Threads that are real-time or idle before they are managed, or become it later, keep and get back their masks.
fn special() {
    if own_cpus().len() < 2 {
        return skip("there is one CPU only");
    }
    if !rustix::process::geteuid().is_root() {
        return skip("only root makes threads real-time");
    }
    let (service, own) = (Service::start("random"), own());
    // Real-time threads that were busy would leave nothing to the test.
    let naps = "select(undef, undef, undef, 0.005) while 1";
    let chrt = |option: &str, priority: &str, words: &[&str]| {
        let mut chrt = std::process::Command::new("chrt");
        chrt.args([option, priority]).args(words);
        chrt
    };
    let symbiont = env!("CARGO_BIN_EXE_symbiont");
    let state = service.place.state_dir();
    let run = [symbiont, "run", "--state-dir", state.to_str().unwrap(), "--", "perl", "-e", naps];
    for (option, priority) in [("-f", "1"), ("-r", "1"), ("-i", "0")] {
        let born = service.place.start(&mut chrt(option, priority, &run));
        let later = service.place.start(&mut service.place.run(&[], &["perl", "-e", naps]));
        wait_until("both are managed", || service.programs().len() == 2);
        let started = service.status()["usage"]["quanta"].as_u64().unwrap();
        wait_for_change(later.id(), &own);
        let made = chrt(option, "-p", &[priority, &later.id().to_string()]).status();
        assert!(made.unwrap().success());
        let full = |program: &Program| mask_of(program) == own.mask;
        wait_until("what was set is taken back", || full(&later));
        let quanta = || service.status()["usage"]["quanta"].as_u64().unwrap();
        let before = quanta();
        wait_until("the daemon has decided some times", || {
            assert!(full(&born), "born {option} since quantum {started}: {}", mask_of(&born));
            // A decision of the quantum before may come yet.
            assert!(quanta() < before + 3 || full(&later), "later {option}: {}", mask_of(&later));
            quanta() > before + 20
        });
        let why = service.client(&["why", &later.id().to_string()]);
        let text = String::from_utf8_lossy(&why.stdout).into_owned();
        assert!(text.contains("real-time and deadline threads"), "{text}");
        born.kill_all();
        later.kill_all();
        wait_until("both are gone", || service.programs().is_empty());
    }
}
