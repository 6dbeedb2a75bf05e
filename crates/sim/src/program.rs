//! What programs do over time.
//!
//! # Approach
//! A [`Program`] is a profile and a [`Shape`]: how many threads carry it out,
//! and when. Each thread goes through the profile's phases as recorded, then on
//! by the rule of [`symbiont_profile::Continuation`]; its phases advance with its own
//! instructions.
//!
//! [`Shape::Alternating`] is the synthetic benchmark of Morad et al., Fig. 3: a
//! parallel phase is a pot of instructions from which all threads take small
//! portions until it is empty; then the first thread does the serial part
//! alone while the others sleep.

use symbiont_profile::{Continuation, Profile, Span};

/// A program that can be launched.
#[derive(Debug, Clone)]
pub struct Program<'p> {
    /// What people call it.
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

impl Program<'_> {
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
    left: f64,
}

impl<'p> Course<'p> {
    /// From the start of the `thread`-th thread of the profile; the first one's
    /// where there are not so many.
    ///
    /// A program that is run again does the same again, past the end of the recording
    /// too, whatever else runs and wherever it was launched: only so can the same
    /// instructions be compared, alone and in company.
    pub(crate) fn new(profile: &'p Profile, thread: usize) -> Self {
        let recorded = profile.threads.get(thread).or(profile.threads.first());
        let name = profile.program.bytes().chain(profile.digest.bytes());
        // FNV-1a: the same on all machines.
        let step = |sum: u64, byte: u8| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        let seed = name.fold(0xcbf2_9ce4_8422_2325 ^ thread as u64, step);
        let spans = Continuation::new(recorded.map_or(&[] as &[Span], |t| &t.sequence), seed);
        let mut course = Self { spans, now: None, left: 0.0 };
        course.turn();
        course
    }

    fn turn(&mut self) {
        self.now = self.spans.next();
        // An empty profile is one phase without end.
        self.left += self.now.map_or(f64::INFINITY, |span| span.instructions.max(1) as f64);
    }

    /// The phase that it is in, by its number in the profile.
    pub(crate) fn phase(&self) -> usize {
        self.now.map_or(0, |span| usize::from(span.phase))
    }

    /// Instructions until the phase ends.
    pub(crate) fn left(&self) -> f64 {
        self.left
    }

    /// Goes on by some instructions; did the phase change?
    pub(crate) fn go(&mut self, instructions: f64) -> bool {
        self.left -= instructions;
        let before = self.phase();
        // A fraction of an instruction is a matter of rounding.
        while self.left <= 0.5 {
            self.turn();
        }
        self.phase() != before
    }
}
