//! More threads than descriptors.

use std::collections::BTreeSet;
use std::process::Command;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use symbiont_linux::observe::raise_descriptor_limit;
use symbiont_linux::perf::Sharing;
use symbiont_machine::{Sample, Signal, ThreadId};

use crate::bench::{CountingBench, can_count, skip};

/// Runs [`few_descriptors`] in a process of its own.
pub const FEW: &str = "few-descriptors";
const LIMIT: u64 = 320;
const THREADS: usize = 100;

pub fn with_few_descriptors() {
    if !can_count() {
        return;
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    let output = command.arg(FEW).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
}

fn open_descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

fn counted(sample: &Sample) -> impl Iterator<Item = ThreadId> + '_ {
    sample.threads.iter().filter(|t| t.counts.iter().all(Result::is_ok)).map(|t| t.id)
}

/// Every thread is sampled each quantum, and counted in turn.
pub fn few_descriptors() {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: Some(LIMIT), ..limit }).unwrap();
    let mut bench =
        CountingBench::new(&[Signal::L1dBandwidth, Signal::MemoryRequests], Sharing::Kernel);
    bench.worker.order(&format!("threads {THREADS}"));
    let mut seen: BTreeSet<ThreadId> = BTreeSet::new();
    let mut waited = false;
    bench.until("every thread had a turn", |sample| {
        assert!(open_descriptors() as u64 <= LIMIT);
        seen.extend(counted(sample));
        let whys = sample.threads.iter().flat_map(|t| &t.counts).filter_map(|c| c.as_ref().err());
        waited |= whys.clone().any(|why| why.contains("waits for file descriptors"));
        assert!(sample.threads.is_empty() || counted(sample).count() < THREADS, "no shortage");
        seen.len() > THREADS
    });
    assert!(waited);
    assert!(seen.len() == THREADS + 1, "{}", seen.len());
}

pub fn two_thousand_threads() {
    if !can_count() {
        return;
    }
    if raise_descriptor_limit().is_err() {
        return skip("the limit of open files cannot be raised");
    }
    let mut bench =
        CountingBench::new(&[Signal::L1dBandwidth, Signal::MemoryRequests], Sharing::Kernel);
    bench.worker.order("threads 2000");
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let mut seen: BTreeSet<ThreadId> = BTreeSet::new();
    bench.until("every thread was counted", |sample| {
        assert!(open_descriptors() as u64 <= limit);
        seen.extend(counted(sample));
        seen.len() == 2001
    });
}
