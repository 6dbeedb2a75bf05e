//! Which processes are past their start.
//!
//! A program counts the CPUs that it may use when it starts, after some
//! tens of milliseconds of running. On a busy machine it may wait for a hardware thread
//! for much longer than that: its age says little about how far it has come.
//! The time that it ran does.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::observe::Observed;

/// How long a process runs until its start is taken to be over. A Java machine
/// has counted the CPUs after some 40 ms; a Python with many packages installed
/// reaches the first line of its script after 50 to 75 ms, and then imports.
const START: Duration = Duration::from_millis(200);

/// The living processes.
#[derive(Debug, Default)]
pub(super) struct Starts(BTreeMap<u32, Start>);

#[derive(Debug, Clone, Copy)]
struct Start {
    generation: u32,
    /// What the process had run when this program of it was first seen.
    before: Duration,
    over: bool,
}

impl Starts {
    /// Takes note of all living threads, in order of identity.
    pub fn note(&mut self, observed: &[Observed]) {
        let mut last = std::mem::take(&mut self.0);
        for threads in observed.chunk_by(|a, b| a.id.process == b.id.process) {
            let Some(id) = threads.first().map(|thread| thread.id) else { continue };
            let ran: Duration = threads.iter().map(|thread| thread.ran).sum();
            let known = last.remove(&id.process);
            let mut start = match known.filter(|start| start.generation == id.generation) {
                Some(start) => start,
                // A process that was made, not yet one that exec'd, has run for itself alone.
                None => Start {
                    generation: id.generation,
                    before: if id.generation == 0 { Duration::ZERO } else { ran },
                    over: false,
                },
            };
            start.over |= ran.saturating_sub(start.before) >= START;
            self.0.insert(id.process, start);
        }
    }

    /// Has this process run for long enough?
    pub fn is_over(&self, process: u32) -> bool {
        self.0.get(&process).is_some_and(|start| start.over)
    }
}

#[cfg(test)]
mod tests {
    use symbiont_machine::{ProgramId, RunState, ThreadId};

    use super::*;
    use crate::observe::Ages;

    fn ran(process: u32, thread: u32, generation: u32, millis: u64) -> Observed {
        Observed {
            id: ThreadId { process, thread, born: 1, generation },
            program: ProgramId(0),
            state: RunState::Runnable,
            ran: Duration::from_millis(millis),
            waited: Duration::ZERO,
            switches: 0,
            cpu: None,
            session: 0,
            ages: Ages::default(),
        }
    }

    #[test]
    fn a_start_is_over_after_a_time_of_running() {
        let mut starts = Starts::default();
        starts.note(&[ran(1, 1, 0, 199), ran(2, 2, 0, 200), ran(3, 3, 0, 80), ran(3, 4, 0, 120)]);
        assert_eq!([1, 2, 3, 4].map(|process| starts.is_over(process)), [false, true, true, false]);
    }

    #[test]
    fn an_exec_starts_again() {
        let mut starts = Starts::default();
        starts.note(&[ran(1, 1, 0, 400)]);
        starts.note(&[ran(1, 1, 1, 410)]);
        assert!(!starts.is_over(1));
        starts.note(&[ran(1, 1, 1, 609)]);
        assert!(!starts.is_over(1));
        starts.note(&[ran(1, 1, 1, 610)]);
        assert!(starts.is_over(1));
    }

    #[test]
    fn what_is_over_stays_over_and_who_is_gone_is_forgotten() {
        let mut starts = Starts::default();
        starts.note(&[ran(1, 1, 0, 10), ran(1, 2, 0, 190)]);
        starts.note(&[ran(1, 1, 0, 11)]);
        assert!(starts.is_over(1), "a thread that ended has run all the same");
        starts.note(&[]);
        starts.note(&[ran(1, 1, 0, 1)]);
        assert!(!starts.is_over(1));
    }
}
