//! Several symbionts of one user: inside each other, beside each other, and
//! one right after the other.

use libtest_mimic::Trial;

use crate::place::{Place, stderr, wait_until};
use crate::trials::{start_script, trial};

pub fn trials() -> Vec<Trial> {
    vec![
        trial("nested_run_leaves_management_to_the_outer_one", nested),
        trial("concurrent_run_goes_unmanaged_with_one_line", concurrent),
        trial("successive_runs_are_each_managed", successive),
    ]
}

fn nested() {
    let place = Place::new();
    let inner = place.run(&["--policy", "stay"], &["sh", "-c", "echo ran; exit 7"]);
    let words: Vec<_> = [inner.get_program()].into_iter().chain(inner.get_args()).collect();
    for options in [&["--policy", "stay"][..], &["--policy", "stay", "--record", "/dev/null"]] {
        let output = place.run(options, &words).output().expect("symbiont starts");
        assert_eq!(output.status.code(), Some(7), "{output:?}");
        assert_eq!(output.stdout, b"ran\n");
        let said = stderr(&output);
        assert_eq!(said.lines().count(), 1, "{said}");
        assert!(said.starts_with("symbiont: runs unmanaged: process "), "{said}");
        assert!(said.ends_with(" manages it already\n"), "{said}");
    }
}

fn concurrent() {
    let place = Place::new();
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
    let place = Place::new();
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
