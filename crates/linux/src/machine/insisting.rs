//! Threads that are looked at more often than once a quantum.
//!
//! # Problem
//! Where the kernel's balance disagrees with a placement, a nudged thread is moved away again within
//! milliseconds, and stays away until the next quantum finds it there.
//!
//! # Approach
//! Between two samples, each [`LOOK`], it is read where these threads are; those that run elsewhere are
//! nudged. A look costs a read of a file of `/proc` for each thread, a nudge three to four system calls, so the
//! controller asks for few threads.
//!
//! # Properties
//! - A thread that was moved away within a quantum is brought back in it
//!   (`a_thread_that_is_insisted_on_is_brought_back_within_the_quantum`, in tests/machine.rs).

use std::fs::File;
use std::io::Read;
use std::time::Duration;

use symbiont_machine::{Change, Move, Outcome, RunState, ThreadId};
use symbiont_topology::{CpuSet, PuId};

use crate::observe::parse_stat;

/// Time between two looks.
const LOOK: Duration = Duration::from_millis(10);
/// A `stat` file is shorter.
const LONGEST: usize = 1024;

/// The threads, and where each is to be.
#[derive(Debug, Default)]
pub(super) struct Insisting {
    on: Vec<(ThreadId, CpuSet)>,
    nudges: u64,
}

impl Insisting {
    /// With other threads from now on; gives the number of nudges so far, which begins anew.
    pub fn begin(&mut self, on: Vec<(ThreadId, CpuSet)>) -> u64 {
        self.on = on;
        std::mem::take(&mut self.nudges)
    }

    /// When to look next.
    pub fn within(&self) -> Option<Duration> {
        (!self.on.is_empty()).then_some(LOOK)
    }

    /// The nudges that bring back those that run elsewhere.
    pub fn away(&self) -> Vec<Move> {
        let is_away = |(thread, cpus): &&(ThreadId, CpuSet)| {
            runs_on(thread).is_some_and(|cpu| !cpus.contains(cpu))
        };
        let nudge = |(thread, cpus): &(ThreadId, CpuSet)| Move {
            thread: *thread,
            change: Change::Nudge(cpus.clone()),
        };
        self.on.iter().filter(is_away).map(nudge).collect()
    }

    /// Notes what became of them.
    pub fn count(&mut self, outcomes: &[Outcome]) {
        let done = outcomes.iter().filter(|outcome| **outcome == Outcome::Done).count();
        self.nudges += done as u64;
    }
}

/// Where a thread runs or is about to; none of one that sleeps or is gone.
fn runs_on(id: &ThreadId) -> Option<PuId> {
    let mut file = File::open(format!("/proc/{}/task/{}/stat", id.process, id.thread)).ok()?;
    let mut line = [0; LONGEST];
    let length = file.read(&mut line).ok()?;
    let stat = parse_stat(line.get(..length)?)?;
    let runs = stat.state == Some(RunState::Runnable) && stat.born == id.born;
    stat.cpu.filter(|_| runs).map(PuId)
}
