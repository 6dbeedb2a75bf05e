//! Thousands of threads a second are born and end: the manager does not grow.

use std::fs;
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

/// Becomes a program of short-lived threads if the arguments ask for that.
pub fn play(mut arguments: impl Iterator<Item = String>) {
    if arguments.next().as_deref() != Some("@churn") {
        return;
    }
    let options = ChurnOptions { per_s: 5000.0, work: 5, duration: Duration::from_secs(5) };
    let report = run(&options, &Arc::new(AtomicBool::new(false))).expect("threads");
    println!("{}", serde_json::to_string(&report).expect("JSON"));
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

fn churn() {
    let place = Place::new();
    let me = std::env::current_exe().expect("this binary");
    let mut run = place.run(&["--policy", "random"], &[me.to_str().expect("UTF-8"), "@churn"]);
    let program = place.start(run.stdout(Stdio::piped()));
    wait_until("it is managed", || place.manager().is_some());
    let manager = place.manager().expect("a manager");
    let begin = Instant::now();
    let (mut early, mut late) = (Vec::new(), Vec::new());
    while let Some(held) = held(manager) {
        match begin.elapsed().as_secs() {
            0..2 => {}
            2 => early.push(held),
            3 => {}
            _ => late.push(held),
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let output = program.output();
    let report: Report = serde_json::from_slice(&output.stdout).expect("a report");
    println!("{report:?}");
    // On a loaded machine fewer are born; then less is shown, but nothing wrong.
    assert!(report.threads > 1000, "{report:?}");
    // The files of threads that live are open: only what always is can be a leak.
    let least = |list: &[Held]| list.iter().map(|held| held.descriptors).min().expect("samples");
    let most = |list: &[Held]| list.iter().map(|held| held.memory_kb).max().expect("samples");
    let (descriptors, memory) = ((least(&early), least(&late)), (most(&early), most(&late)));
    println!(
        "descriptors {descriptors:?}, memory {memory:?} KB, in the third second and from the fifth on"
    );
    assert!(descriptors.1 <= descriptors.0 + 16, "descriptors grow: {descriptors:?}");
    assert!(memory.1 <= memory.0 + 1024, "memory grows: {memory:?} KB");
}
