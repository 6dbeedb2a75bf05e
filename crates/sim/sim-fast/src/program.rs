//! What programs do over time.
//!
//! # Approach
//! A [`SimProgram`] is a profile and a [`Shape`]: how many threads carry it out,
//! and when. Each thread goes through the profile's phases as recorded, then on
//! by the rule of [`symbiont_profile::Continuation`]; its phases advance with its own
//! instructions. Where in an interval of the recording a phase really ended is not in the profile,
//! so an end may be taken 2 % of an interval early or late, that those of several threads come
//! together. That does not add up: the next end is as long after the recorded one.
//!
//! [`Shape::Alternating`] is the synthetic benchmark of Morad et al., Fig. 3: a
//! parallel phase is a pot of instructions from which all threads take small
//! portions until it is empty; then the first thread does the serial part
//! alone while the others sleep.

use symbiont_profile::{Continuation, Profile, Span};

/// Part of an interval by which the end of a phase may come early or late.
const SLACK: f64 = 0.02;
/// Instructions of an interval of a recording: no end is known better than that.
const INTERVAL: f64 = 50e6;

/// A program that can be launched.
#[derive(Debug, Clone)]
pub struct SimProgram<'p> {
    /// Its name.
    pub name: String,
    /// What its threads do.
    pub profile: &'p Profile,
    /// How many threads there are, and when they run.
    pub shape: Shape,
    /// Instructions of all its threads after which it has completed; none: it
    /// runs for ever.
    pub target: Option<u64>,
}

/// How many threads carry out a program, and when.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Shape {
    /// One thread: the one that the profile has first.
    Single,
    /// As many threads as the profile has, each through its own phases, all
    /// the time.
    Recorded,
    /// Serial and parallel phases in turn.
    Alternating(Alternating),
}

/// Serial and parallel phases in turn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Alternating {
    /// Threads of a parallel phase; at least 1.
    pub threads: u32,
    /// Fewest and most instructions of a parallel phase, all threads together;
    /// drawn evenly.
    pub parallel: (f64, f64),
    /// Serial instructions for each parallel one. 0: never serial; infinite:
    /// never parallel.
    pub serial: f64,
}

impl SimProgram<'_> {
    /// Threads that it starts.
    #[must_use]
    pub fn threads(&self) -> usize {
        match self.shape {
            Shape::Single => 1,
            Shape::Recorded => self.profile.threads.len().max(1),
            Shape::Alternating(phases) => phases.threads.max(1) as usize,
        }
    }
}

/// One thread's way through the phases of its profile.
#[derive(Debug, Clone)]
pub(crate) struct Course<'p> {
    spans: Continuation<'p>,
    now: Option<Span>,
    /// Instructions until its phase ends as recorded.
    left: f64,
    /// By how many that may be early or late.
    slack: f64,
}

impl<'p> Course<'p> {
    /// From the start of the `thread`-th thread of the profile; the first one's
    /// where there are not so many.
    ///
    /// A program that is run again does the same again, past the end of the recording
    /// too, whatever else runs and wherever it was launched: only so can the same
    /// instructions be compared, alone and with co-runners.
    pub(crate) fn new(profile: &'p Profile, thread: usize) -> Self {
        let recorded = profile.threads.get(thread).or(profile.threads.first());
        let name = profile.program.bytes().chain(profile.digest.bytes());
        // FNV-1a: the same on all machines.
        let step = |sum: u64, byte: u8| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        let seed = name.fold(0xcbf2_9ce4_8422_2325 ^ thread as u64, step);
        let spans = Continuation::new(recorded.map_or(&[] as &[Span], |t| &t.sequence), seed);
        let mut course = Self { spans, now: None, left: 0.0, slack: 0.0 };
        course.turn();
        course
    }

    fn turn(&mut self) {
        self.now = self.spans.next();
        // An empty profile is one phase without end.
        let long = self.now.map_or(f64::INFINITY, |span| span.instructions.max(1) as f64);
        self.left += long;
        self.slack = SLACK * long.min(INTERVAL);
    }

    /// The phase that it is in, by its number in the profile.
    pub(crate) fn phase(&self) -> usize {
        self.now.map_or(0, |span| usize::from(span.phase))
    }

    /// Instructions until the phase has ended at the latest.
    pub(crate) fn left(&self) -> f64 {
        self.left + self.slack
    }

    /// Goes on by some instructions.
    pub(crate) fn go(&mut self, instructions: f64) {
        self.left -= instructions;
    }

    /// Must it be in its next phase by now?
    pub(crate) fn is_late(&self) -> bool {
        // A fraction of an instruction is a matter of rounding.
        self.left() <= 0.5
    }

    /// Enters the next phase if that may be; is it another?
    pub(crate) fn enter_next(&mut self) -> bool {
        let before = self.phase();
        while self.left <= self.slack.max(0.5) {
            self.turn();
        }
        self.phase() != before
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use symbiont_profile::test_support::{branchy, phased, streaming};

    proptest! {
        /// However far it goes from question to question, each end comes within its slack.
        #[test]
        fn early_and_late_ends_do_not_add_up(
            lengths in prop::collection::vec(1_u64..200_000_000, 1..8),
            steps in prop::collection::vec((0.0_f64..1.0, any::<bool>()), 1..200),
        ) {
            let mut profile = phased(&streaming(), &branchy());
            let span = |(at, instructions): (usize, &u64)| {
                Span { phase: (at % 2) as u16, instructions: *instructions }
            };
            profile.threads[0].sequence = lengths.iter().enumerate().map(span).collect();
            let (mut course, mut exact) = (Course::new(&profile, 0), Course::new(&profile, 0));
            for (share, may) in steps {
                let step = share * course.left();
                course.go(step);
                exact.go(step);
                if may || course.is_late() {
                    course.enter_next();
                }
                while exact.left <= 0.5 {
                    exact.turn();
                }
                let ahead = course.left - exact.left;
                prop_assert!(!course.is_late());
                prop_assert!(
                    course.phase() == exact.phase()
                        || (ahead > 0.0 && exact.left <= SLACK * INTERVAL + 1.0)
                        || (ahead < 0.0 && course.left >= -SLACK * INTERVAL - 1.0)
                );
            }
        }
    }

    #[test]
    fn an_end_is_known_no_better_than_an_interval() {
        let mut profile = phased(&streaming(), &branchy());
        let long = 10 * INTERVAL as u64;
        profile.threads[0].sequence =
            vec![Span { phase: 0, instructions: long }, Span { phase: 1, instructions: long }];
        let mut course = Course::new(&profile, 0);
        course.go(long as f64 - SLACK * INTERVAL - 1.0);
        assert!(!course.enter_next() && !course.is_late(), "too early");
        course.go(1.0);
        assert!(course.clone().enter_next() && !course.is_late(), "early enough");
        course.go(2.0 * SLACK * INTERVAL);
        assert!(course.is_late() && course.enter_next());
        assert!((course.left - (long as f64 - SLACK * INTERVAL)).abs() < 1.0);
    }
}
