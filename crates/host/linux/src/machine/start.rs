//! Which processes are past their start.
//!
//! A program counts the CPUs that it may use when it starts, after some tens of milliseconds of running. On a
//! busy machine it may wait much longer than that for a hardware thread, so that its age says little about how
//! far it has come. Better measures are the time that it ran and, for a program that mostly sleeps, its age less
//! the time that it waited.

use std::collections::BTreeMap;
use std::time::Duration;

use symbiont_machine::{RunState, Timestamp};

use crate::observe::Observed;

/// How long a process runs until its start is taken to be over. A Java machine
/// has counted the CPUs after some 40 ms; a Python with many packages installed
/// reaches the first line of its script after 50 to 75 ms, and then imports.
const START: Duration = Duration::from_millis(200);
/// How long a process is there, without having to wait for a hardware thread, until
/// its start is taken to be over although it ran for less.
const UNHINDERED: Duration = Duration::from_secs(2);

/// The living processes.
#[derive(Debug, Default)]
pub(super) struct Starts(BTreeMap<u32, Start>);

#[derive(Debug, Clone, Copy)]
struct Start {
    generation: u32,
    /// When this program of the process was first seen.
    since: Timestamp,
    /// What the process had run by then.
    run_time: Duration,
    /// For how long it had waited by then.
    wait_time: Duration,
    over: bool,
}

impl Starts {
    /// Takes note of all threads that live at a moment, in order of identity.
    pub fn note(&mut self, at: Timestamp, observed: &[Observed]) {
        let mut last = std::mem::take(&mut self.0);
        for threads in observed.chunk_by(|a, b| a.id.process == b.id.process) {
            let Some(id) = threads.first().map(|thread| thread.id) else { continue };
            let run_time: Duration = threads.iter().map(|thread| thread.run_time).sum();
            let wait_time: Duration = threads.iter().map(|thread| thread.wait_time).sum();
            let known = last.remove(&id.process);
            let mut start = match known.filter(|start| start.generation == id.generation) {
                Some(start) => start,
                // A process that was made, not yet one that exec'd, has run for itself alone.
                None => Start {
                    generation: id.generation,
                    since: at,
                    run_time: if id.generation == 0 { Duration::ZERO } else { run_time },
                    wait_time,
                    over: false,
                },
            };
            let unhindered =
                at.since(start.since).saturating_sub(wait_time.saturating_sub(start.wait_time));
            // A wait that still lasts is not in the sum yet.
            let sleeps = threads.iter().all(|thread| thread.state != RunState::Runnable);
            start.over |= run_time.saturating_sub(start.run_time) >= START;
            start.over |= sleeps && unhindered >= UNHINDERED;
            self.0.insert(id.process, start);
        }
    }

    /// Has this process run its program for this long?
    pub fn lasts(&self, process: u32, at: Timestamp, time: Duration) -> bool {
        self.0.get(&process).is_some_and(|start| at.since(start.since) >= time)
    }

    /// Has this process run for long enough?
    pub fn is_over(&self, process: u32) -> bool {
        self.0.get(&process).is_some_and(|start| start.over)
    }
}

#[cfg(test)]
mod tests {
    use symbiont_machine::{ProgramId, ThreadId};

    use super::*;
    use crate::observe::Ages;

    const NOW: Timestamp = Timestamp(7);

    fn after(seconds: u64) -> Timestamp {
        Timestamp(NOW.0 + seconds * 1_000_000_000)
    }

    fn ran(process: u32, thread: u32, generation: u32, millis: u64) -> Observed {
        Observed {
            id: ThreadId { process, thread, born: 1, generation },
            program: ProgramId(0),
            state: RunState::Runnable,
            run_time: Duration::from_millis(millis),
            wait_time: Duration::ZERO,
            switches: 0,
            cpu: None,
            session: 0,
            scheduling: Default::default(),
            ages: Ages::default(),
        }
    }

    #[test]
    fn a_start_is_over_after_a_time_of_running() {
        let mut starts = Starts::default();
        starts.note(
            NOW,
            &[ran(1, 1, 0, 199), ran(2, 2, 0, 200), ran(3, 3, 0, 80), ran(3, 4, 0, 120)],
        );
        assert_eq!([1, 2, 3, 4].map(|process| starts.is_over(process)), [false, true, true, false]);
    }

    #[test]
    fn a_program_lasts_since_it_was_first_seen() {
        let mut starts = Starts::default();
        starts.note(NOW, &[ran(1, 1, 0, 10)]);
        let two = Duration::from_secs(2);
        assert!(!starts.lasts(1, after(1), two) && starts.lasts(1, after(2), two));
        assert!(!starts.lasts(2, after(2), two));
        starts.note(after(2), &[ran(1, 1, 1, 20)]);
        assert!(!starts.lasts(1, after(3), two), "an exec starts again");
    }

    #[test]
    fn an_exec_starts_again() {
        let mut starts = Starts::default();
        starts.note(NOW, &[ran(1, 1, 0, 400)]);
        starts.note(NOW, &[ran(1, 1, 1, 410)]);
        assert!(!starts.is_over(1));
        starts.note(NOW, &[ran(1, 1, 1, 609)]);
        assert!(!starts.is_over(1));
        starts.note(NOW, &[ran(1, 1, 1, 610)]);
        assert!(starts.is_over(1));
    }

    #[test]
    fn what_is_over_stays_over_and_gone_programs_are_forgotten() {
        let mut starts = Starts::default();
        starts.note(NOW, &[ran(1, 1, 0, 10), ran(1, 2, 0, 190)]);
        starts.note(NOW, &[ran(1, 1, 0, 11)]);
        assert!(starts.is_over(1), "a thread that ended has run all the same");
        starts.note(NOW, &[]);
        starts.note(NOW, &[ran(1, 1, 0, 1)]);
        assert!(!starts.is_over(1));
    }

    #[test]
    fn a_sleeper_is_past_its_start_after_a_while_and_a_waiter_is_not() {
        let mut starts = Starts::default();
        let sleeper = Observed { state: RunState::Sleeping, ..ran(1, 1, 1, 10) };
        let waiter = |seconds: u64| Observed {
            wait_time: Duration::from_secs(5 + seconds),
            ..Observed { id: ran(2, 2, 0, 10).id, ..sleeper }
        };
        let waiting = ran(3, 3, 0, 10);
        starts.note(NOW, &[sleeper, waiter(0), waiting]);
        starts.note(after(1), &[sleeper, waiter(1), waiting]);
        let over = |starts: &Starts| [1, 2, 3].map(|process| starts.is_over(process));
        assert_eq!(over(&starts), [false; 3]);
        starts.note(after(2), &[sleeper, waiter(2), waiting]);
        assert_eq!(over(&starts), [true, false, false]);
        starts.note(after(4), &[sleeper, waiter(2), waiting]);
        assert_eq!(over(&starts), [true, true, false]);
    }
}
