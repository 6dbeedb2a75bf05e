//! The interface between the machine and its physics.

use std::sync::Arc;

use symbiont_profile::Phase;
use symbiont_topology::{CoreId, NodeId};

use crate::activity::Activity;
use crate::description::Description;
use crate::physics::prepared::PrepareError;
pub use crate::physics::tasks::Switches;

/// A thread that runs at this moment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Runner {
    /// Which thread: the same number means the same thread as before.
    pub thread: u64,
    /// Its core.
    pub core: CoreId,
    /// The phase that it is in, as numbered by [`Contention::prepare`].
    pub phase: usize,
    /// The node that holds its memory.
    pub home: NodeId,
    /// Hardware threads that its core is set up for.
    pub mode: u32,
}

/// How fast a thread runs with its co-runners.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ThreadRate {
    /// Instructions per nanosecond.
    pub speed: f64,
    /// What it does per instruction.
    pub activity: Activity,
    /// Cycles of its core per nanosecond.
    pub ghz: f64,
    /// Micro-ops that its core dispatches per cycle.
    pub width: f64,
}

/// The physics: how fast threads run that run at the same time.
///
/// The machine asks whenever a thread starts or stops running or changes its
/// phase, and at the start of each quantum for as long as answers change (caches
/// that fill). What was asked about last has passed when it asks again, but for [`Contention::instead`].
/// Answers must depend on nothing but what was asked so far.
pub trait Contention<'p> {
    /// What makes a phase impossible to simulate.
    type Error: std::error::Error + Send + Sync + 'static;

    /// Registers a phase; returns its number.
    ///
    /// # Errors
    /// When the phase cannot be simulated.
    fn prepare(&mut self, phase: &'p Phase) -> Result<usize, Self::Error>;

    /// How fast each runs on average over the next `span_ns` nanoseconds, in
    /// the order of `runners`, which is that of their hardware threads. A rate that is as
    /// before may be the very one that was returned before.
    fn thread_rates(&mut self, runners: &[Runner], span_ns: f64) -> Vec<Arc<ThreadRate>>;

    /// The same from the moment that was asked about last, over another span: something happens sooner
    /// or later than was thought. None if the answer is the same, as nothing changes meanwhile.
    fn instead(&mut self, runners: &[Runner], span_ns: f64) -> Option<Vec<Arc<ThreadRate>>> {
        let _ = (runners, span_ns);
        None
    }

    /// What was asked about last went on for so long, as nothing changed meanwhile.
    fn lasted(&mut self, ns: f64) {
        let _ = ns;
    }

    /// Will the answer be another when it is asked for again, as caches still fill, even where that
    /// changes nothing notable so soon?
    fn fills(&self) -> bool {
        false
    }

    /// A thread has ended.
    fn forget(&mut self, thread: u64) {
        let _ = thread;
    }

    /// Share of the calls so far in which no fixed point was found.
    fn unsettled(&self) -> f64 {
        0.0
    }
}

/// A fidelity of the simulated machine: fast or cycle level.
pub trait Fidelity<'p> {
    /// The physics of one run.
    type Run<'a>: Contention<'p, Error = PrepareError>
    where
        Self: 'a;

    /// Its name in reports.
    const NAME: &'static str;

    /// The machine.
    fn description(&self) -> &Description;

    /// The physics of a run in which each thread has these resources for itself; none if this level
    /// cannot give them.
    fn begin(&self, private: Switches) -> Option<Self::Run<'_>>;
}
