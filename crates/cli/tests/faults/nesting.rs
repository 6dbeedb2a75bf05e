//! Several symbionts of one user: inside each other, next to each other, and
//! one right after the other.

use std::process::Stdio;
use std::time::Duration;

use libtest_mimic::Trial;
use rustix::process::Signal;

use crate::test_folder::{TestFolder, send, stderr, wait_until};
use crate::trials::{start_script, trial};

pub fn trials() -> Vec<Trial> {
    vec![
        trial("nested_run_leaves_management_to_the_outer_one", nested),
        trial("nested_run_with_another_state_directory_knows_its_manager", nested_elsewhere),
        trial("concurrent_run_goes_unmanaged_with_one_line", concurrent),
        trial("successive_runs_are_each_managed", successive),
        trial("lock_is_released_when_the_last_thread_ends_not_at_the_quantum", slow_quantum),
        trial("run_waits_for_a_manager_whose_programs_have_ended", waits_for_ending),
    ]
}

fn nested() {
    let place = TestFolder::new();
    let inner = place.run(&["--policy", "stay"], &["sh", "-c", "echo ran; exit 7"]);
    let words: Vec<_> = [inner.get_program()].into_iter().chain(inner.get_args()).collect();
    for options in [&["--policy", "stay"][..], &["--policy", "stay", "--record", "/dev/null"]] {
        let output = place.run(options, &words).output().expect("symbiont starts");
        assert_eq!(output.status.code(), Some(7), "{output:?}");
        assert_eq!(output.stdout, b"ran\n");
        let said = stderr(&output);
        assert_eq!(said.lines().count(), 1, "{said}");
        assert!(said.starts_with("symbiont: already managed by process "), "{said}");
        assert!(said.ends_with(" (another symbiont)\n"), "{said}");
    }
}

fn nested_elsewhere() {
    let (place, other) = (TestFolder::new(), TestFolder::new());
    let inner = other.run(&["--policy", "stay"], &["sh", "-c", "echo ran; exit 7"]);
    let words: Vec<_> = [inner.get_program()].into_iter().chain(inner.get_args()).collect();
    let output = place.run(&["--policy", "stay"], &words).output().expect("symbiont starts");
    assert_eq!(output.status.code(), Some(7), "{output:?}");
    assert_eq!(output.stdout, b"ran\n");
    let said = stderr(&output);
    assert!(said.starts_with("symbiont: already managed by process "), "{said}");
    assert!(said.ends_with(" (another symbiont)\n"), "{said}");
}

fn concurrent() {
    let place = TestFolder::new();
    let go = place.path("go");
    let script = format!("while [ ! -e '{}' ]; do sleep 0.02; done; exit 3", go.display());
    let mut first = start_script(&place, &["--policy", "stay"], &script);
    wait_until("the first is managed", || place.manager().is_some());
    for options in [&["--policy", "stay"][..], &["--policy", "stay", "--record", "/dev/null"]] {
        let second = place.run(options, &["sh", "-c", "echo ran; exit 7"]).output().unwrap();
        assert_eq!(second.status.code(), Some(7), "{second:?}");
        assert_eq!(second.stdout, b"ran\n");
        let said = stderr(&second);
        assert_eq!(said.lines().count(), 1, "{said}");
        let manager = place.manager().expect("the first manager");
        assert!(said.contains(&format!("another symbiont (process {manager})")), "{said}");
        assert!(said.contains("--job"), "says what to do: {said}");
    }
    std::fs::write(&go, "").expect("a file");
    assert_eq!(first.wait().code(), Some(3));
}

fn successive() {
    let place = TestFolder::new();
    let run = place.run(&["--policy", "random"], &["sh", "-c", "echo ran"]);
    let words: Vec<_> = [run.get_program()].into_iter().chain(run.get_args()).collect();
    let mut shell = std::process::Command::new("sh");
    shell.args([
        "-c",
        "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do \"$@\"; done",
    ]);
    let output = shell.arg("sh").args(words).output().expect("a shell");
    assert!(output.status.success(), "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "ran\n".repeat(20));
    assert_eq!(stderr(&output), "", "each one is managed");
}

/// Each run ends in the middle of a quantum that is longer than anything here waits.
fn slow_quantum() {
    let place = TestFolder::new();
    // Of the second script the last process is not the first one.
    for script in ["sleep 0.2", "sleep 0.2 & exec sleep 0.1"] {
        for _ in 0..3 {
            let options = ["--policy", "stay", "--quantum", "1h"];
            let output = place.run(&options, &["sh", "-c", script]).output().expect("a run");
            assert!(output.status.success(), "{output:?}");
            assert_eq!(stderr(&output), "", "it is managed");
        }
    }
    wait_until("the last manager ends", || place.manager().is_none());
    assert!(place.journals().is_empty(), "{:?}", place.journals());
}

/// A manager that is stopped cannot end with its program.
fn waits_for_ending() {
    let place = TestFolder::new();
    let mut first = start_script(&place, &["--policy", "stay"], "sleep 1000");
    wait_until("the first is managed", || place.manager().is_some());
    let manager = place.manager().expect("a manager");
    send(manager, Signal::STOP);
    first.kill_all();
    first.wait();
    let mut second = place.run(&["--policy", "stay"], &["echo", "ran"]);
    let second = place.start(second.stdout(Stdio::piped()).stderr(Stdio::piped()));
    std::thread::sleep(Duration::from_millis(900));
    send(manager, Signal::CONT);
    let second = second.output();
    assert_eq!((second.status.code(), second.stdout.as_slice()), (Some(0), &b"ran\n"[..]));
    assert_eq!(stderr(&second), "", "it is managed");
}
