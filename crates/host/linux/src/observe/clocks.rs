//! Which processes have not run since the last round.
//!
//! # Problem
//! Most threads of a machine sleep most of the time, and to read that of each of them takes a call of some
//! microseconds.
//!
//! # Approach
//! Each process has a clock of the time that its threads ran together, also those that ended, in nanoseconds,
//! and whoever knows its number may read it (clock_getcpuclockid(3)). It is the sum of what `schedstat` says of its
//! threads. If it stands where it stood before the last round, none of them has run since, and their
//! `schedstat` is as it was then. Nor has their `stat` changed, but that one that slept may now be ready and wait.
//!
//! Numbers mean the same processes only where the folder is of the reader's own process namespace; elsewhere there
//! are no clocks.

use std::collections::HashMap;
use std::time::Duration;

use super::scan::Proc;
use super::sys::ProcessClock;

#[derive(Debug)]
struct Process {
    clock: ProcessClock,
    time: Duration,
    round: u64,
    stood: bool,
}

/// Clocks of the processes that were asked about in the last round.
#[derive(Debug)]
pub(crate) struct Clocks(HashMap<u32, Process>);

impl Clocks {
    /// None where numbers in `proc` may be other processes', or the own clock stands still.
    pub fn open(proc: &Proc) -> Option<Self> {
        let own = std::process::id();
        let clock = ProcessClock::of(own).filter(|_| proc.is_of_own_namespace())?;
        let start = clock.read()?;
        let advances = (0..1000).any(|_| clock.read().is_some_and(|now| now > start));
        advances.then(|| Self(HashMap::new()))
    }

    /// Has no thread of it run since it was asked about in the round before?
    pub fn stood(&mut self, process: u32, round: u64) -> bool {
        if let Some(known) = self.0.get_mut(&process) {
            if known.round != round {
                let time = known.clock.read().unwrap_or(Duration::MAX);
                known.stood = known.round + 1 == round && time == known.time;
                (known.time, known.round) = (time, round);
            }
            return known.stood && known.time != Duration::MAX;
        }
        if let Some(clock) = ProcessClock::of(process) {
            let time = clock.read().unwrap_or(Duration::MAX);
            self.0.insert(process, Process { clock, time, round, stood: false });
        }
        false
    }

    /// Forgets processes that were not asked about in this round.
    pub fn end(&mut self, round: u64) {
        self.0.retain(|_, known| known.round == round);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    fn own() -> Clocks {
        Clocks::open(&Proc::open("/proc".as_ref()).unwrap()).unwrap()
    }

    #[test]
    fn a_process_that_ran_is_not_taken_for_one_that_did_not() {
        let mut clocks = own();
        let mut sleeper = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let process = sleeper.id();
        let timeouts = Instant::now() + Duration::from_secs(30);
        let mut round = 1;
        assert!(!clocks.stood(process, round), "nothing is known of it yet");
        while !clocks.stood(process, round) && Instant::now() < timeouts {
            std::thread::sleep(Duration::from_millis(20));
            round += 1;
        }
        assert!(clocks.stood(process, round), "it sleeps");
        assert!(!clocks.stood(process, round + 2), "a round was left out");
        assert!(!clocks.stood(std::process::id(), round + 2));
        assert!(!clocks.stood(std::process::id(), round + 3), "this process runs");
        sleeper.kill().unwrap();
        sleeper.wait().unwrap();
        assert!(!clocks.stood(process, round + 3), "it is gone");
        assert!(!clocks.stood(process, round + 4), "it is gone for good");
    }

    #[test]
    fn what_is_not_asked_about_is_forgotten() {
        let mut clocks = own();
        clocks.stood(std::process::id(), 1);
        clocks.end(1);
        assert_eq!(clocks.0.len(), 1);
        clocks.end(2);
        assert!(clocks.0.is_empty());
    }

    #[test]
    fn numbers_of_another_namespace_have_no_clocks() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("self")).unwrap();
        let of = |numbers: &str| {
            std::fs::write(dir.path().join("self/status"), format!("Pid:\t7\nNSpid:{numbers}\n"));
            Clocks::open(&Proc::open(dir.path()).unwrap()).is_some()
        };
        let own = std::process::id();
        assert!(of(&format!("\t{own}")));
        assert!(!of(&format!("\t{own}\t{own}")), "the folder is of a namespace above");
        assert!(!of(&format!("\t{}", own + 1)));
        assert!(!of(""), "it is not seen from there");
    }
}
