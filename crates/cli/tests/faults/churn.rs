//! Thousands of threads a second are born and end: the manager does not grow.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use libtest_mimic::Trial;
use symbiont_synth::churn::{ChurnOptions, Report, run};

use crate::place::{Place, wait_until};
use crate::trials::trial;

pub fn trials() -> Vec<Trial> {
    vec![trial("churn_of_threads_leaves_memory_and_descriptors_as_they_are", churn)]
}

/// Becomes a program of short-lived threads if the arguments ask for that: for each line that it
/// reads, threads are born and end for some seconds, and a report is a line of its output.
pub fn play(mut arguments: impl Iterator<Item = String>) {
    if arguments.next().as_deref() != Some("@churn") {
        return;
    }
    for line in std::io::stdin().lines() {
        line.expect("a line");
        let options = ChurnOptions { per_s: 5000.0, work: 5, duration: Duration::from_secs(5) };
        let report = run(&options, &Arc::new(AtomicBool::new(false))).expect("threads");
        println!("{}", serde_json::to_string(&report).expect("JSON"));
    }
    std::process::exit(0);
}

/// What a manager holds.
#[derive(Debug, Clone, Copy)]
struct Held {
    descriptors: usize,
    memory_kb: u64,
}

fn held(manager: u32) -> Option<Held> {
    let status = fs::read_to_string(format!("/proc/{manager}/status")).ok()?;
    let memory = status.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
    Some(Held {
        descriptors: fs::read_dir(format!("/proc/{manager}/fd")).ok()?.count(),
        memory_kb: memory.trim().strip_suffix(" kB")?.parse().ok()?,
    })
}

/// What a manager holds once the number of its descriptors has not changed for a second.
fn settled(manager: u32) -> Held {
    let mut last = held(manager).expect("a manager");
    let mut since = Instant::now();
    wait_until("the manager's descriptors stay the same", || {
        let now = held(manager).expect("a manager");
        if now.descriptors != last.descriptors {
            since = Instant::now();
        }
        last = now;
        since.elapsed() > Duration::from_secs(1)
    });
    last
}

fn churn() {
    let place = Place::new();
    let me = std::env::current_exe().expect("this binary");
    let mut run = place.run(&["--policy", "random"], &[me.to_str().expect("UTF-8"), "@churn"]);
    let mut program = place.start(run.stdin(Stdio::piped()).stdout(Stdio::piped()));
    wait_until("it is managed", || place.manager().is_some());
    let manager = place.manager().expect("a manager");
    let before = settled(manager);
    let mut ask = program.0.stdin.take().expect("a pipe");
    writeln!(ask, "threads").expect("a program that reads");
    let begin = Instant::now();
    let mut reports = BufReader::new(program.0.stdout.take().expect("a pipe")).lines();
    let answer = std::thread::spawn(move || reports.next().expect("a report").expect("a line"));
    let (mut early, mut late) = (Vec::new(), Vec::new());
    while !answer.is_finished() {
        let held = held(manager).expect("a manager");
        match begin.elapsed().as_secs() {
            0..2 => {}
            2 => early.push(held.memory_kb),
            3 => {}
            _ => late.push(held.memory_kb),
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let answer = answer.join().expect("a report");
    let report: Report = serde_json::from_str(&answer).expect("a report");
    println!("{report:?}");
    // On a loaded machine fewer are born; then less is shown, but nothing wrong.
    assert!(report.threads > 1000, "{report:?}");
    let after = settled(manager);
    drop(ask);
    assert!(program.wait().success());
    let memory = (early.iter().max().expect("samples"), late.iter().max().expect("samples"));
    println!(
        "{before:?} before, {after:?} after; in the third second and from the fifth on {memory:?} KB"
    );
    // How many are open at a time is a matter of load: what was opened for threads is closed with them.
    assert!(after.descriptors <= before.descriptors, "descriptors are left: {before:?} {after:?}");
    assert!(*memory.1 <= *memory.0 + 1024, "memory grows: {memory:?} KB");
}
