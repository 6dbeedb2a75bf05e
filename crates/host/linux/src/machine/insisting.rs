//! Looks at some threads more often than once a quantum.
//!
//! # Problem
//! Where the kernel's load balancing disagrees with a placement, it moves a nudged thread away again within
//! milliseconds, and the thread stays away until the next sample finds it there.
//!
//! # Approach
//!
//! ```text
//! between two samples, each LOOK, for each of these threads:
//!     it runs elsewhere, as it did at the look before, and has not slept in between  →  nudge it once more
//! ```
//!
//! Threads that sleep and wake are left alone: those of a team wake elsewhere all the time, and just then they
//! read their masks. A look costs reading a file of `/proc` for each thread, and another one for each thread that
//! is away; a nudge costs some ten system calls. So the controller names few threads.
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
    /// How often it had gone to sleep until the last look, if it ran elsewhere at that.
    away: Option<u64>,
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
        let away = |id: &ThreadId| before.iter().find(|known| known.thread == *id)?.away;
        let insisted = |(thread, cpus)| Insisted { away: away(&thread), thread, cpus };
        self.on = on.into_iter().map(insisted).collect();
        std::mem::take(&mut self.nudges)
    }

    /// When to look next.
    pub fn within(&self) -> Option<Duration> {
        (!self.on.is_empty()).then_some(LOOK)
    }

    /// The nudges that bring back those that run elsewhere. `runs_on`: where a thread runs. `sleeps`: how often it
    /// has gone to sleep.
    pub fn away(
        &mut self,
        runs_on: impl Fn(&ThreadId) -> Option<PuId>,
        sleeps: impl Fn(&ThreadId) -> Option<u64>,
    ) -> Vec<Move> {
        let mut moves = Vec::new();
        for Insisted { thread, cpus, away } in &mut self.on {
            let is_away = runs_on(thread).is_some_and(|cpu| !cpus.contains(cpu));
            let now = if is_away { sleeps(thread) } else { None };
            let before = std::mem::replace(away, now);
            if now.is_some() && now == before {
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

/// How often a thread has gone to sleep; none of one that is gone.
pub(super) fn sleeps(id: &ThreadId) -> Option<u64> {
    let path = format!("/proc/{}/task/{}/status", id.process, id.thread);
    let status = std::fs::read_to_string(path).ok()?;
    let count = |line: &str| line.strip_prefix("voluntary_ctxt_switches:")?.trim().parse().ok();
    // What a kernel does not count counts as one sleep.
    Some(status.lines().find_map(count).unwrap_or(1))
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
        let mut look =
            |cpu: Option<u32>, sleeps| insisting.away(|_| cpu.map(PuId), |_| Some(sleeps)).len();
        // Sleeping, just awake, awake.
        assert_eq!([look(None, 1), look(Some(1), 1), look(Some(1), 1)], [0, 0, 1]);
        // There, then away.
        assert_eq!([look(Some(0), 1), look(Some(1), 1), look(Some(2), 1)], [0, 0, 1]);
        // Awake at each look, and asleep in between.
        assert_eq!([look(Some(1), 2), look(Some(1), 3), look(Some(1), 3)], [0, 0, 1]);
        // Another quantum: what was seen last is still known.
        begin(&mut insisting);
        assert_eq!(insisting.away(|_| Some(PuId(1)), |_| Some(3)).len(), 1);
    }

    #[test]
    fn sleeps_are_counted() {
        let thread = rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
        let id = ThreadId { process: std::process::id(), thread, born: 0, generation: 0 };
        let before = sleeps(&id).unwrap();
        std::thread::sleep(Duration::from_millis(1));
        assert!(sleeps(&id).unwrap() > before);
    }
}
