//! Threads that are looked at more often than once a quantum.
//!
//! # Problem
//! Where the kernel's balance disagrees with a placement, a nudged thread is moved away again within
//! milliseconds, and stays away until the next quantum finds it there.
//!
//! # Approach
//! Between two samples, each [`LOOK`], it is read where these threads are; those that run elsewhere, and ran at
//! the look before as well, are nudged. (One that woke just now may be about to read its mask.) A look costs a read of a file of `/proc` for each thread, a nudge some five system calls, so
//! the controller asks for few threads.
//!
//! # Properties
//! - A thread that was moved away within a quantum is brought back in it
//!   (`a_thread_that_is_insisted_on_is_brought_back_within_the_quantum`, in tests/machine.rs), but not as it wakes
//!   (`a_thread_that_woke_just_now_is_left_for_a_look`).

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

/// A thread, and where it is to be.
#[derive(Debug)]
struct Insisted {
    thread: ThreadId,
    cpus: CpuSet,
    /// Did it run at the last look?
    ran: bool,
}

/// The threads.
#[derive(Debug, Default)]
pub(super) struct Insisting {
    on: Vec<Insisted>,
    nudges: u64,
}

impl Insisting {
    /// With other threads from now on; gives the number of nudges so far, which begins anew.
    pub fn begin(&mut self, on: Vec<(ThreadId, CpuSet)>) -> u64 {
        let before = std::mem::take(&mut self.on);
        let ran = |id: &ThreadId| before.iter().any(|known| known.thread == *id && known.ran);
        let insisted = |(thread, cpus)| Insisted { ran: ran(&thread), thread, cpus };
        self.on = on.into_iter().map(insisted).collect();
        std::mem::take(&mut self.nudges)
    }

    /// When to look next.
    pub fn within(&self) -> Option<Duration> {
        (!self.on.is_empty()).then_some(LOOK)
    }

    /// The nudges that bring back those that run elsewhere. `runs_on`: where a thread runs.
    pub fn away(&mut self, runs_on: impl Fn(&ThreadId) -> Option<PuId>) -> Vec<Move> {
        let mut moves = Vec::new();
        for Insisted { thread, cpus, ran } in &mut self.on {
            let cpu = runs_on(thread);
            let ran_before = std::mem::replace(ran, cpu.is_some());
            if ran_before && cpu.is_some_and(|cpu| !cpus.contains(cpu)) {
                moves.push(Move { thread: *thread, change: Change::Nudge(cpus.clone()) });
            }
        }
        moves
    }

    /// Notes what became of them.
    pub fn count(&mut self, outcomes: &[Outcome]) {
        let done = outcomes.iter().filter(|outcome| **outcome == Outcome::Done).count();
        self.nudges += done as u64;
    }
}

/// Where a thread runs or is about to; none of one that sleeps or is gone.
pub(super) fn runs_on(id: &ThreadId) -> Option<PuId> {
    let mut file = File::open(format!("/proc/{}/task/{}/stat", id.process, id.thread)).ok()?;
    let mut line = [0; LONGEST];
    let length = file.read(&mut line).ok()?;
    let stat = parse_stat(line.get(..length)?)?;
    let runs = stat.state == Some(RunState::Runnable) && stat.born == id.born;
    stat.cpu.filter(|_| runs).map(PuId)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_woke_just_now_is_left_for_a_look() {
        let thread = ThreadId { process: 1, thread: 1, born: 0, generation: 0 };
        let target: CpuSet = "0".parse().unwrap();
        let mut insisting = Insisting::default();
        let begin = |insisting: &mut Insisting| insisting.begin(vec![(thread, target.clone())]);
        begin(&mut insisting);
        let mut look = |cpu: Option<u32>| insisting.away(|_| cpu.map(PuId)).len();
        // Sleeping, just awake, awake.
        assert_eq!([look(None), look(Some(1)), look(Some(1))], [0, 0, 1]);
        assert_eq!([look(Some(0)), look(Some(1))], [0, 1]);
        assert_eq!([look(None), look(Some(1))], [0, 0]);
        // Another quantum: what was seen last is still known.
        begin(&mut insisting);
        assert_eq!(insisting.away(|_| Some(PuId(1))).len(), 1);
    }
}
