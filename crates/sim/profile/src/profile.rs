//! A program's profile.

use crate::Phase;
use serde::{Deserialize, Serialize};

/// A stretch of a thread's execution that is of one phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    /// Index into [`Profile::phases`].
    pub phase: u16,
    /// Its length; above zero.
    pub instructions: u64,
}

/// What one thread of the program executed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Thread {
    /// The file name of the executable that it ran.
    pub program: String,
    /// The process that it belonged to, counted from 0 in the order of
    /// their starts.
    pub process: u32,
    /// Its phases, in order.
    pub sequence: Vec<Span>,
}

impl Thread {
    /// Instructions that it executed.
    pub fn instructions(&self) -> u64 {
        self.sequence.iter().fold(0, |sum, span| sum.saturating_add(span.instructions))
    }
}

/// What a program does, independent of any machine's caches and pipelines.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Profile {
    /// The program's name: what a workload calls it.
    pub program: String,
    /// The command that was profiled.
    pub command: Vec<String>,
    /// SHA-256 of the executable file, in hexadecimal digits.
    pub digest: String,
    /// Instructions of all threads.
    pub instructions: u64,
    /// Kinds of phases, the most frequent one first.
    pub phases: Vec<Phase>,
    /// Its threads, the one with the most instructions first; at least one.
    pub threads: Vec<Thread>,
    /// What the capture could not follow or had to leave out, in plain words.
    pub gaps: Vec<String>,
}

impl Profile {
    /// The phases, in order, of the thread that executed most.
    pub fn sequence(&self) -> &[Span] {
        self.threads.first().map_or(&[], |thread| &thread.sequence)
    }

    /// The phase that the thread that executed most is in after this many of its instructions; its last phase
    /// after its end.
    pub fn phase_at(&self, instructions: u64) -> u16 {
        let mut before = 0_u64;
        let span = self.sequence().iter().find(|span| {
            before = before.saturating_add(span.instructions);
            before > instructions
        });
        span.or(self.sequence().last()).map_or(0, |span| span.phase)
    }

    /// The share of its instructions that belongs to phases with too few micro-traces ([`Phase::is_thin`]); 0 if
    /// there are no such phases.
    pub fn thin_share(&self) -> f64 {
        let count = |phase: &Phase| phase.instructions as f64;
        let all: f64 = self.phases.iter().map(count).sum();
        let thin: f64 = self.phases.iter().filter(|phase| phase.is_thin()).map(count).sum();
        if all > 0.0 { thin / all } else { 0.0 }
    }

    /// The phase of a span; none for a span of another profile.
    pub fn phase(&self, span: Span) -> Option<&Phase> {
        self.phases.get(usize::from(span.phase))
    }
}

#[cfg(test)]
mod tests {
    use crate::FEWEST_TRACES;
    use crate::test_support::{branchy, phased, streaming};

    #[test]
    fn phases_of_few_micro_traces_are_thin() {
        let mut profile = phased(&streaming(), &branchy());
        assert!(profile.phases.iter().all(|phase| !phase.is_thin()));
        assert_eq!(profile.thin_share(), 0.0);
        profile.phases[1].traces.truncate(FEWEST_TRACES);
        assert_eq!(profile.thin_share(), 0.0);
        // Both phases count equally many instructions.
        profile.phases[1].traces.truncate(FEWEST_TRACES - 1);
        assert!(profile.phases[1].is_thin() && !profile.phases[0].is_thin());
        assert_eq!(profile.thin_share(), 0.5);
    }
}
