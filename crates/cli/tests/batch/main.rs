//! `symbiont batch`: real commands through the real binary.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a failed test panics")]

mod faults;
mod kills;
mod parallel;

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use symbiont_linux::launch::by_fork;

fn symbiont(folder: &Path, options: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_symbiont"));
    command.current_dir(folder).args(["batch", "jobs.txt", "--store", "known.json"]).args(options);
    // No daemon of this machine is meant.
    command.args(["--state-dir", "state"]).env("XDG_STATE_HOME", folder);
    command
}

fn batch(folder: &Path, jobs: &str, options: &[&str]) -> Output {
    fs::write(folder.join("jobs.txt"), jobs).unwrap();
    symbiont(folder, options).output().unwrap()
}

/// Waits until something is so.
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < Duration::from_secs(120), "not so in time: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn each_job_ends_with_its_own_status_and_failures_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let jobs = "# a comment\necho one\nexit 3\n\nkill -9 $$\necho two >&2\n";
    let output = batch(folder.path(), jobs, &["-n", "2", "--output", "out", "--json"]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let summary: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let codes = summary["jobs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|job| (job["line"].as_u64().unwrap(), job["exit_code"].as_i64().unwrap()));
    let codes: Vec<_> = codes.collect();
    assert_eq!(codes, [(2, 0), (3, 3), (5, 137), (6, 0)]);
    assert_eq!(fs::read_to_string(folder.path().join("out/2.out")).unwrap(), "one\n");
    assert_eq!(fs::read_to_string(folder.path().join("out/6.err")).unwrap(), "two\n");
    let said = stderr(&output);
    assert!(said.contains("line 5: killed by signal 9: kill -9 $$"), "{said}");
}

#[test]
fn a_store_in_a_missing_folder_is_refused_before_anything_runs() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("jobs.txt"), "echo x >never\n").unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_symbiont"));
    command.current_dir(folder.path()).args(["batch", "jobs.txt", "--store", "missing/known.json"]);
    let output = command.args(["--state-dir", "state"]).output().unwrap();
    assert!(!output.status.success());
    let line = "symbiont: --store missing/known.json: there is no folder missing\n";
    assert_eq!(stderr(&output), line);
    assert!(!folder.path().join("missing").exists() && !folder.path().join("never").exists());
}

#[test]
fn a_job_ignores_the_signals_that_its_shell_would() {
    let folder = tempfile::tempdir().unwrap();
    let ignored = "grep SigIgn /proc/self/status";
    let mut alone = Command::new("sh");
    let alone = by_fork(alone.args(["-c", ignored])).output().unwrap();
    fs::write(folder.path().join("jobs.txt"), format!("{ignored}\n")).unwrap();
    let done = by_fork(&mut symbiont(folder.path(), &["--output", "out"])).output().unwrap();
    assert!(done.status.success(), "{}", stderr(&done));
    let job = fs::read(folder.path().join("out/1.out")).unwrap();
    assert_eq!(String::from_utf8(job).unwrap(), String::from_utf8(alone.stdout).unwrap());
}

#[test]
fn no_more_run_at_a_time_than_asked() {
    let folder = tempfile::tempdir().unwrap();
    let job = "touch run.$$; ls run.* | wc -l >>seen; sleep 0.05; rm run.$$\n";
    let output = batch(folder.path(), &job.repeat(8), &["-n", "2"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let seen = fs::read_to_string(folder.path().join("seen")).unwrap();
    assert_eq!(seen.lines().count(), 8);
    assert!(seen.lines().all(|count| count.trim().parse::<u32>().unwrap() <= 2), "{seen}");
}

#[test]
fn resume_runs_what_has_not_ended_well() {
    let folder = tempfile::tempdir().unwrap();
    let jobs = "echo a >>log\ntest -e ready && echo b >>log\n";
    let again = ["-n", "1", "--order", "first-come"];
    assert_eq!(batch(folder.path(), jobs, &again).status.code(), Some(1));
    fs::write(folder.path().join("ready"), "").unwrap();
    assert_eq!(batch(folder.path(), jobs, &["--resume"]).status.code(), Some(0));
    assert_eq!(fs::read_to_string(folder.path().join("log")).unwrap(), "a\nb\n");
    let output = batch(folder.path(), jobs, &["--resume"]);
    assert!(stderr(&output).contains("2 done earlier"), "{}", stderr(&output));
    assert_eq!(batch(folder.path(), jobs, &again).status.code(), Some(0));
    assert_eq!(fs::read_to_string(folder.path().join("log")).unwrap(), "a\nb\na\nb\n");
}

#[test]
fn a_signal_ends_the_jobs_and_starts_no_more() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("jobs.txt"), "sleep 1000; true\nsleep 1000\necho x >never\n")
        .unwrap();
    let mut child = symbiont(folder.path(), &["-n", "2", "--order", "first-come"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Their keepers are children of the batch.
    let children = format!("/proc/{0}/task/{0}/children", child.id());
    until("both have started", || {
        let children = fs::read_to_string(&children).unwrap_or_default();
        children.split_whitespace().count() == 2
    });
    std::thread::sleep(Duration::from_millis(100));
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let status = child.wait().unwrap();
    assert_eq!((status.code(), status.signal()), (Some(130), None));
    assert!(!folder.path().join("never").exists());
}

#[test]
fn what_earlier_runs_have_shown_is_used_by_later_ones() {
    let folder = tempfile::tempdir().unwrap();
    let jobs = "sleep 0.1\nsleep 0.4\nsleep 0.2\n";
    assert!(batch(folder.path(), jobs, &["-n", "1"]).status.success());
    let output = batch(folder.path(), jobs, &["-n", "1", "--dry-run"]);
    let text = String::from_utf8(output.stdout).unwrap();
    let order: Vec<_> = text.lines().filter_map(|line| line.split("sleep ").nth(1)).collect();
    assert!(
        order.iter().zip(["0.4", "0.2", "0.1"]).all(|(line, want)| line.starts_with(want)),
        "{text}"
    );
    let first = batch(folder.path(), jobs, &["-n", "1", "--dry-run", "--order", "first-come"]);
    let text = String::from_utf8(first.stdout).unwrap();
    assert!(text.find("sleep 0.1") < text.find("sleep 0.4"), "{text}");
}

#[test]
fn wrong_input_is_one_clear_line() {
    let folder = tempfile::tempdir().unwrap();
    for (jobs, options, part) in [
        ("# nothing\n", &[][..], "in the job file jobs.txt: there is no command"),
        ("true\n", &["--progress", "/dev/null"], "--progress"),
        ("true\n", &["--output", "jobs.txt"], "cannot create the folder jobs.txt"),
    ] {
        let output = batch(folder.path(), jobs, options);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.lines().count() == 1 && said.contains(part), "{said}");
    }
    // Jobs run although what is known of programs cannot be read.
    fs::write(folder.path().join("known.json"), "{").unwrap();
    let output = batch(folder.path(), "echo ran >ran\n", &[]);
    assert!(output.status.success() && folder.path().join("ran").exists());
    assert!(stderr(&output).contains("known.json holds no observations"), "{}", stderr(&output));
}
