//! Thousands of threads a second are born and end: the manager does not grow.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use libtest_mimic::Trial;
use symbiont_synth::churn::{ChurnOptions, Report, run};

use crate::test_folder::{Program, TestFolder, wait_until};
use crate::trials::trial;

pub fn trials() -> Vec<Trial> {
    vec![trial("churn_of_threads_leaves_memory_and_descriptors_as_they_are", churn)]
}

/// Becomes a program of short-lived threads if the arguments ask for that: for each line that it
/// reads, threads are born and end for so many seconds, and a report is a line of its output.
pub fn play(mut arguments: impl Iterator<Item = String>) {
    if arguments.next().as_deref() != Some("@churn") {
        return;
    }
    for line in std::io::stdin().lines() {
        let seconds = line.expect("a line").parse().expect("seconds");
        let duration = Duration::from_secs(seconds);
        let options = ChurnOptions { per_s: 5000.0, work: 5, duration };
        let report = run(&options, &Arc::new(AtomicBool::new(false))).expect("threads");
        println!("{}", serde_json::to_string(&report).expect("JSON"));
    }
    std::process::exit(0);
}

/// Has the program make threads for so many seconds, and gives its report.
fn make_threads(program: &mut Program, seconds: u32) -> Report {
    writeln!(program.0.stdin.as_mut().expect("a pipe"), "{seconds}").expect("a program that reads");
    let mut line = String::new();
    let output = program.0.stdout.as_mut().expect("a pipe");
    // The program writes nothing more before it is asked again.
    BufReader::new(output).read_line(&mut line).expect("a line");
    serde_json::from_str(&line).expect("a report")
}

/// What a manager holds.
#[derive(Debug, Clone, Copy)]
struct Held {
    descriptors: usize,
    memory_kb: u64,
}

/// What a manager holds once it has closed the files of threads that ended, and has at most so many
/// descriptors. A manager that gets no CPU closes nothing: it is waited for.
fn held(manager: u32, most: usize) -> Held {
    let mut descriptors = 0;
    wait_until("the manager has closed what it had opened for threads", || {
        let links = links(manager);
        let threads: Vec<&Path> = links.iter().filter_map(|link| thread_of(link)).collect();
        descriptors = links.len();
        !threads.is_empty() && threads.iter().all(|thread| thread.exists()) && descriptors <= most
    });
    let status = fs::read_to_string(format!("/proc/{manager}/status")).expect("a manager");
    let memory = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    let memory = memory.and_then(|memory| memory.trim().strip_suffix(" kB")?.parse().ok());
    Held { descriptors, memory_kb: memory.expect("memory in KB") }
}

/// What the descriptors of a process are open for.
fn links(process: u32) -> Vec<PathBuf> {
    let entries = fs::read_dir(format!("/proc/{process}/fd")).expect("a manager");
    // One may be closed meanwhile.
    entries.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok()).collect()
}

/// The directory of the thread that a file is about, if it is such a file.
fn thread_of(link: &Path) -> Option<&Path> {
    let parent = link.parent()?;
    (parent.parent()?.file_name()? == "task").then_some(parent)
}

fn churn() {
    let place = TestFolder::new();
    let me = std::env::current_exe().expect("this binary");
    let mut run = place.run(&["--policy", "random"], &[me.to_str().expect("UTF-8"), "@churn"]);
    let mut program = place.start(run.stdin(Stdio::piped()).stdout(Stdio::piped()));
    wait_until("it is managed", || place.manager().is_some());
    let manager = place.manager().expect("a manager");
    make_threads(&mut program, 5);
    let before = held(manager, usize::MAX);
    let report = make_threads(&mut program, 5);
    let after = held(manager, before.descriptors);
    println!("{report:?}: {before:?} before, {after:?} after");
    drop(program.0.stdin.take());
    assert!(program.wait().success());
    // On a loaded machine fewer are born; then less is shown, but nothing wrong.
    assert!(report.threads > 1000, "{report:?}");
    assert!(after.memory_kb <= before.memory_kb + 1024, "memory grows: {before:?} {after:?}");
}
