//! Waits for the last of the processes that outlive their program's first one.
//!
//! # Problem
//! Once the first process of every program has ended, the manager ends together with the last process that
//! remains. A manager that notices this only at the end of a quantum holds the lock meanwhile, and the next run
//! would go unmanaged.
//!
//! # Approach
//! One of the remaining processes is held by a pidfd, whose end wakes the loop:
//!
//! ```text
//! the held process ended:
//!     another one of the list lives  →  hold that one; no sample
//!     none of them lives             →  take a sample: it may find processes that were born since
//! ```
//!
//! In a chain of processes, each born by one that ends, each link would cost a sample: after [`MOST`] of them in
//! a quantum the loop sleeps to its end. A sample that fails has not said what remains, and is soon repeated. For
//! some time after the end of the first processes the loop looks more often ([`Survivors::within`]), since a
//! daemon leaves its session a moment after its parent has ended.
//!
//! # Properties
//! - The end of the last process rings, that of another one does not
//!   (`the_end_of_the_last_process_rings`).
//! - A chain of short processes rings a bounded number of times
//!   (`a_chain_of_processes_rings_a_bounded_number_of_times`).
//! - A failed sample does not make the loop sleep to the end of its quantum
//!   (`a_sample_that_failed_is_repeated_soon`).

use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

/// Samples in a quantum that ends of processes may cause.
const MOST: u32 = 16;
/// The first pause between samples after the end of the first processes; each
/// is twice as long as the one before.
const FIRST: Duration = Duration::from_millis(10);
/// Such pauses; together they last 1.27 s.
const LOOKS: u32 = 7;

/// What is left of the programs once their first processes have ended.
#[derive(Debug, Default)]
pub(super) struct Survivors {
    /// Processes that lived at the last sample; none known before the first processes ended.
    processes: Vec<u32>,
    held: Option<OwnedFd>,
    /// A sample has begun that has not noted what remains: if it failed, nothing would wake the loop.
    expected: bool,
    /// Samples caused in this quantum.
    caused: u32,
    looks: u32,
}

impl Survivors {
    /// A sample begins, at the end of which it will be noted what remains.
    pub fn expect(&mut self) {
        self.expected = true;
    }

    /// Takes note of all processes of a sample.
    pub fn note(&mut self, processes: impl Iterator<Item = u32>) {
        self.expected = false;
        self.held = None;
        self.processes = processes.collect();
        self.looks = self.looks.saturating_add(1);
    }

    /// A new quantum begins.
    pub fn quantum(&mut self) {
        self.caused = 0;
    }

    /// How long the loop may sleep at most; none: to the end of its quantum.
    pub fn within(&self) -> Option<Duration> {
        if self.expected {
            return Some(FIRST);
        }
        let factor = 1 << self.looks.checked_sub(1)?.min(LOOKS);
        (self.looks <= LOOKS && !self.processes.is_empty()).then_some(FIRST * factor)
    }

    /// Readable when the process that is held ends; none if there is nothing to wait for.
    pub fn bell(&mut self) -> Option<BorrowedFd<'_>> {
        if self.caused >= MOST {
            return None;
        }
        while self.held.is_none() {
            // A number that passed to another process makes the loop wake late, not wrong.
            let number = i32::try_from(self.processes.pop()?).ok().and_then(Pid::from_raw);
            self.held = number.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        }
        self.held.as_ref().map(AsFd::as_fd)
    }

    /// The bell rang: has the last of the processes ended?
    pub fn all_ended(&mut self) -> bool {
        self.held = None;
        while let Some(bell) = self.bell() {
            let now = Timespec { tv_sec: 0, tv_nsec: 0 };
            let lives = poll(&mut [PollFd::new(&bell, PollFlags::IN)], Some(&now)) == Ok(0);
            if lives {
                return false;
            }
            self.held = None;
        }
        self.caused += 1;
        true
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command};

    use super::*;

    fn sleeper() -> Child {
        Command::new("sleep").arg("1000").spawn().unwrap()
    }

    fn end(mut child: Child) {
        child.kill().unwrap();
        child.wait().unwrap();
    }

    fn rings(survivors: &mut Survivors) -> bool {
        let bell = survivors.bell().unwrap();
        let soon = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut [PollFd::new(&bell, PollFlags::IN)], Some(&soon)) == Ok(1)
    }

    #[test]
    fn the_end_of_the_last_process_rings() {
        let (one, other) = (sleeper(), sleeper());
        let mut survivors = Survivors::default();
        assert!(survivors.bell().is_none(), "nothing is known yet");
        survivors.note([one.id(), other.id()].into_iter());
        assert!(!rings(&mut survivors));
        end(other);
        assert!(rings(&mut survivors));
        assert!(!survivors.all_ended(), "one still lives");
        assert!(!rings(&mut survivors));
        end(one);
        assert!(rings(&mut survivors));
        assert!(survivors.all_ended());
    }

    #[test]
    fn a_chain_of_processes_rings_a_bounded_number_of_times() {
        let mut survivors = Survivors::default();
        let mut ring = || {
            let child = sleeper();
            survivors.note([child.id()].into_iter());
            let heard = survivors.bell().is_some();
            end(child);
            if heard {
                assert!(survivors.all_ended());
            }
            heard
        };
        let heard = (0..MOST + 4).filter(|_| ring()).count();
        assert_eq!(u32::try_from(heard), Ok(MOST));
        survivors.quantum();
        survivors.note([std::process::id()].into_iter());
        assert!(survivors.bell().is_some(), "a new quantum begins anew");
    }

    #[test]
    fn a_sample_that_failed_is_repeated_soon() {
        let mut survivors = Survivors::default();
        for _ in 0..LOOKS + 2 {
            survivors.note([1].into_iter());
        }
        assert_eq!(survivors.within(), None);
        survivors.expect();
        assert_eq!(survivors.within(), Some(FIRST));
        survivors.note([1].into_iter());
        assert_eq!(survivors.within(), None);
    }

    #[test]
    fn the_first_pauses_are_short() {
        let mut survivors = Survivors::default();
        assert_eq!(survivors.within(), None, "the first processes live");
        let pauses: Vec<_> = (0..LOOKS + 2)
            .map(|_| {
                survivors.note([1].into_iter());
                survivors.within()
            })
            .collect();
        assert_eq!(pauses[0], Some(FIRST));
        assert_eq!(pauses[1], Some(FIRST * 2));
        assert_eq!(pauses[7..], [None, None]);
    }
}
