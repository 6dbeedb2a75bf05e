//! Which threads of a process have not run since they were last looked at.
//!
//! # Problem
//! Most threads of a machine sleep most of the time, and finding that out for each of them takes a call of some
//! microseconds.
//!
//! # Approach
//! Each process has a clock that counts, in nanoseconds, how long all its threads have run, also those that have
//! ended. Any other process may read it (clock_getcpuclockid(3)). It is the sum of what `schedstat` says of them:
//!
//! ```text
//! before := the clock
//! look at the threads that had run at the last look
//! if the clock - base <= sum of the last known times of all threads: the others have not run
//! else: look at them, too; base := before - sum
//! ```
//!
//! `base` is what threads that ended had run. A thread that runs while this goes on makes the sum or `base` too
//! small, so that others are looked at in vain, but none that ran is left out. What a thread ran before it was first
//! looked at may be in `base`, which is therefore forgotten then; so it is when the clock goes back, which is another
//! process's. A thread that has not run is as it was, except that one that slept may now be ready and waiting.
//!
//! Where others are looked at in vain, as many threads run for a moment in each round, the clock is left out for a round,
//! then for three, and so on up to [`LONGEST_PAUSE`] (`a_clock_that_saves_nothing_is_left_out`).
//!
//! Numbers mean the same processes only where the folder is of the reader's own process namespace; elsewhere there
//! are no clocks.
//!
//! # Properties
//! `time_that_no_known_thread_ran_is_noticed`, `what_a_new_thread_ran_hides_no_other`,
//! `a_clock_that_goes_back_is_another_process_s`, `numbers_of_another_namespace_have_no_clocks`.

use std::collections::HashMap;
use std::time::Duration;

use super::scan::Proc;
use super::sys::ProcessClock;

/// Rounds.
const LONGEST_PAUSE: u64 = 15;

#[derive(Debug)]
struct Process {
    clock: ProcessClock,
    round: u64,
    /// The clock when it was first read in this round, and in the one before.
    time: Option<Duration>,
    before: Option<Duration>,
    /// Nanoseconds; none before all threads were looked at.
    base: Option<i128>,
    /// For how many rounds all are looked at before its clock is read again, and how many of them are over.
    pause: u64,
    paused: u64,
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

    /// What its threads have run; none if it is gone, or all of its threads are to be looked at.
    pub fn read(&mut self, process: u32, round: u64) -> Option<Duration> {
        if let Some(known) = self.0.get_mut(&process) {
            return known.read(round);
        }
        let clock = ProcessClock::of(process)?;
        let time = clock.read();
        let new = Process { clock, round, time, before: None, base: None, pause: 0, paused: 0 };
        self.0.insert(process, new);
        time
    }

    /// Did none of its threads run from when it was asked about in the last round to when it was in this one?
    pub fn stood(&self, process: u32) -> bool {
        self.0.get(&process).is_some_and(|process| process.time == process.before)
    }

    /// Did threads run whose times are not known, if it has run for `time` and the last known times of
    /// all its threads are these together?
    pub fn ran_unseen(&self, process: u32, time: Duration, known: Duration) -> bool {
        let base = self.0.get(&process).and_then(|process| process.base);
        base.is_none_or(|base| difference(time, known) > base)
    }

    /// Notes whether reading its clock saved looks: if not, that is left out for twice as many rounds.
    pub fn note_use(&mut self, process: u32, saved: bool) {
        if let Some(process) = self.0.get_mut(&process) {
            process.pause = if saved { 0 } else { (2 * process.pause + 1).min(LONGEST_PAUSE) };
            process.paused = 0;
        }
    }

    /// Notes that all its threads were looked at after it had run for `time`.
    pub fn note_complete(&mut self, process: u32, time: Duration, known: Duration) {
        if let Some(process) = self.0.get_mut(&process) {
            process.base = Some(difference(time, known));
        }
    }

    /// A thread of it was looked at for the first time.
    pub fn note_new(&mut self, process: u32) {
        if let Some(process) = self.0.get_mut(&process) {
            process.base = None;
        }
    }

    /// Forgets processes that were not asked about in this round.
    pub fn end(&mut self, round: u64) {
        self.0.retain(|_, known| known.round == round);
    }
}

impl Process {
    fn read(&mut self, round: u64) -> Option<Duration> {
        if self.round != round && self.paused < self.pause {
            (self.round, self.paused) = (round, self.paused + 1);
            return None;
        }
        let time = self.clock.read();
        if time < self.time {
            self.base = None;
        }
        if self.round != round {
            (self.round, self.before, self.time) = (round, self.time, time);
        }
        time
    }
}

/// Nanoseconds by which `time` is longer.
fn difference(time: Duration, known: Duration) -> i128 {
    let signed = |time: Duration| i128::try_from(time.as_nanos()).unwrap_or(i128::MAX / 4);
    signed(time) - signed(known)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own() -> Clocks {
        Clocks::open(&Proc::open("/proc".as_ref()).unwrap()).unwrap()
    }

    #[test]
    fn time_that_no_known_thread_ran_is_noticed() {
        let mut clocks = own();
        let process = std::process::id();
        let ms = Duration::from_millis;
        assert!(clocks.read(process, 1).is_some());
        assert!(clocks.ran_unseen(process, ms(50), ms(50)), "nothing is known of it yet");
        // Threads that ended had run for 20 ms.
        clocks.note_complete(process, ms(50), ms(30));
        assert!(!clocks.ran_unseen(process, ms(50), ms(30)));
        assert!(!clocks.ran_unseen(process, ms(59), ms(39)), "they were looked at");
        assert!(clocks.ran_unseen(process, ms(59) + Duration::from_nanos(1), ms(39)));
        // What is looked at after the clock has run for longer.
        clocks.note_complete(process, ms(10), ms(11));
        assert!(!clocks.ran_unseen(process, ms(12), ms(13)));
        assert!(clocks.ran_unseen(process, ms(13), ms(13)));
    }

    #[test]
    fn what_a_new_thread_ran_hides_no_other() {
        let mut clocks = own();
        let process = std::process::id();
        let ms = Duration::from_millis;
        assert!(clocks.read(process, 1).is_some());
        // A thread that is not known yet has run for 40 ms.
        clocks.note_complete(process, ms(90), ms(50));
        clocks.note_new(process);
        assert!(clocks.ran_unseen(process, ms(95), ms(90)), "another one ran for 5 ms");
    }

    #[test]
    fn a_clock_that_goes_back_is_another_process_s() {
        let mut clocks = own();
        let process = std::process::id();
        assert!(clocks.read(process, 1).is_some());
        let later = Duration::from_secs(1 << 40);
        clocks.note_complete(process, later, Duration::ZERO);
        assert!(clocks.read(process, 2).is_some_and(|now| !clocks.ran_unseen(process, now, now)));
        clocks.0.get_mut(&process).unwrap().time = Some(later);
        assert!(clocks.read(process, 3).is_some_and(|now| clocks.ran_unseen(process, now, now)));
    }

    #[test]
    fn a_clock_that_saves_nothing_is_left_out() {
        let mut clocks = own();
        let process = std::process::id();
        let mut read = Vec::new();
        for round in 1..=60 {
            if clocks.read(process, round).is_some() {
                read.push(round);
                clocks.note_use(process, false);
            }
            clocks.end(round);
        }
        assert_eq!(read, [1, 3, 7, 15, 31, 47]);
        clocks.note_use(process, true);
        assert!((61..70).all(|round| clocks.read(process, round).is_some()));
    }

    #[test]
    fn what_is_not_asked_about_is_forgotten() {
        let mut clocks = own();
        let process = std::process::id();
        clocks.read(process, 1);
        clocks.note_complete(process, Duration::ZERO, Duration::ZERO);
        clocks.end(1);
        assert!(!clocks.ran_unseen(process, Duration::ZERO, Duration::ZERO));
        clocks.end(2);
        assert!(clocks.ran_unseen(process, Duration::ZERO, Duration::ZERO));
    }

    #[test]
    fn numbers_of_another_namespace_have_no_clocks() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("self")).unwrap();
        let of = |numbers: &str| {
            let status = format!("Pid:\t7\nNSpid:{numbers}\n");
            std::fs::write(dir.path().join("self/status"), status).unwrap();
            Clocks::open(&Proc::open(dir.path()).unwrap()).is_some()
        };
        let own = std::process::id();
        assert!(of(&format!("\t{own}")));
        assert!(!of(&format!("\t{own}\t{own}")), "the folder is of a namespace above");
        assert!(!of(&format!("\t{}", own + 1)));
        assert!(!of(""), "it is not seen from there");
    }
}
