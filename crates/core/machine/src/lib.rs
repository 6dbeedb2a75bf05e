//! The seam between Symbiont's decisions and any machine.
//!
//! # Problem
//! A policy must run unchanged on a real Linux machine, on a simulated one and
//! over a recording, and must be testable without any of them.
//!
//! # Approach
//! Everything that crosses the seam is a plain value. A [`Machine`] gives a
//! cumulative [`Sample`] that it stamped itself, and carries out [`Move`]s,
//! each of which may fail ([`Outcome`]). A [`Placement`] is what a policy
//! wants; it acts on nothing.
//!
//! # Terms and units
//! *Cumulative*: counted since the thread was born (or first seen), so that a
//! rate is the difference of two samples and a lost sample loses nothing.
//! Times are nanoseconds on the machine's own clock ([`Timestamp`]), which
//! starts anywhere and never runs backwards. *Program*: one enrolled command
//! with all its processes and threads. *Allowed CPUs*: the hardware threads that the
//! user's mask and the cpuset leave to a thread; no placement goes beyond them.
//! *Counts* of events are cumulative since their group was opened, raw, and
//! travel with the times in which the group was to count and did
//! ([`GroupReading`]). What was not counted is absent with a reason, never zero.
//!
//! # Properties
//! - A sample survives being written and read back (`samples_round_trip`).

mod class;
mod counting;
mod dry;
mod identity;
mod outcome;
mod placement;
mod sample;
mod support;
#[cfg(feature = "test-support")]
pub mod test_support;

use std::time::Duration;

pub use class::{Class, UnknownClass};
pub use counting::{CountedGroup, Counting, Ended, GroupCounts, GroupReading};
pub use dry::DryRun;
pub use identity::{ProgramId, ThreadId, Timestamp};
pub use outcome::{Change, Move, Outcome};
pub use placement::{Assignment, Placement, Priority, Target};
pub use sample::{CoreCookie, Lifecycle, Program, RunState, Sample, ThreadSample};
pub use support::{Ability, Signal, Signals, Support};
use symbiont_topology::{CpuSet, Topology};

/// Something with hardware threads that can be watched and perhaps steered.
pub trait Machine {
    /// What can go wrong with the machine as a whole. Trouble with a single
    /// thread is an [`Outcome`] or a thread missing from the sample.
    type Error: std::error::Error + Send + Sync + 'static;

    /// The machine's structure. It may change with a sample: CPUs go offline and come online.
    fn topology(&self) -> &Topology;

    /// What can be measured and enforced here, and why not more.
    fn support(&self) -> &Support;

    /// Specifies the signals that are needed. The machine measures just that, from
    /// the next sample on; before the first call it counts nothing, and need not
    /// know what it could count. From then on [`support`](Self::support) says of
    /// each of these signals whether it is there.
    fn measure(&mut self, signals: &Signals) {
        // A recording, for one, has what it has.
        let _ = signals;
    }

    /// All enrolled threads as they are now, with cumulative counts, stamped
    /// by the machine and ordered by [`ThreadId`].
    ///
    /// # Errors
    /// When the machine can no longer be watched at all.
    fn sample(&mut self) -> Result<Sample, Self::Error>;

    /// Settings that are no longer applied although no move undid them, since the last call: each
    /// with the move to the user's own setting and what became of it ([`Outcome::ExternallyChanged`]: another
    /// process changed it; [`Outcome::Done`]: the kernel undid it). Asked after each sample.
    fn lapsed(&mut self) -> Vec<(Move, Outcome)> {
        Vec::new()
    }

    /// Carries out moves in order; gives one outcome for each.
    ///
    /// # Errors
    /// When the machine can no longer be steered at all.
    fn apply(&mut self, moves: &[Move]) -> Result<Vec<Outcome>, Self::Error>;

    /// Gives the whole decision of a quantum, after its moves, to a machine that keeps threads on their targets by
    /// itself ([`Support::scheduler`]). Others have no use for it.
    fn keep(&mut self, placement: &Placement) {
        let _ = placement;
    }

    /// Has the machine look between two samples whether these threads are where they were nudged, and nudge
    /// those that run elsewhere, until the next call. Gives how many nudges that took since the last one.
    /// A machine that cannot look in between does nothing.
    fn insist(&mut self, on: Vec<(ThreadId, CpuSet)>) -> u64 {
        let _ = on;
        0
    }

    /// Does it carry out moves at all? One that does not answers each with [`Outcome::NotEnforced`].
    fn acts(&self) -> bool {
        true
    }

    /// Lets one quantum pass: sleeps, or advances virtual time.
    ///
    /// # Errors
    /// When the machine's clock fails.
    fn wait(&mut self, quantum: Duration) -> Result<(), Self::Error>;

    /// Has the machine nothing more to give, as a recording at its end?
    /// A loop asks this before each sample. Most machines never end.
    fn ended(&self) -> bool {
        false
    }
}
