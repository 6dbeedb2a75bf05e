//! Threads and the programs that they carry out.

use std::sync::Arc;

use symbiont_machine::{Priority, ThreadId};
use symbiont_topology::{CpuSet, NodeId};

use super::contention::ThreadRate;
use super::meter::{Errors, Meter};
use crate::activity::Activity;
use crate::os::Task;
use crate::program::Course;

/// A thread of a launched program.
#[derive(Debug, Clone)]
pub(super) struct Thread<'p> {
    /// The same number for no two threads of a machine.
    pub number: u64,
    pub id: ThreadId,
    /// The slot of its program.
    pub slot: usize,
    pub course: Course<'p>,
    /// Ready: its queue. Asleep: where it ran last.
    pub at: usize,
    pub ready: bool,
    /// Where it was put, if it was.
    pub target: Option<CpuSet>,
    /// `target`, or else the allowed CPUs.
    pub allowed: Arc<CpuSet>,
    pub priority: Priority,
    /// Time that it ran over its weight: the thread with least is next.
    pub virtual_ns: f64,
    pub ran_ns: f64,
    /// How much it ran lately, 0 … 1.
    pub used: f64,
    pub waited_ns: f64,
    pub switches: u64,
    /// Time in which it still stands still: a switch of mode or thread.
    pub still_ns: f64,
    /// Where it ran last.
    pub warm: Option<usize>,
    /// How fast it runs; none if it does not run now.
    pub thread_rate: Option<Arc<ThreadRate>>,
    /// What is in neither of the next two yet.
    pub uncounted: PendingActivity,
    pub meter: Meter,
    /// What it really did so far.
    pub done: Activity,
}

/// What a thread did since that was counted last: all of it at one rate, with its core in one mode.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct PendingActivity {
    pub ns: f64,
    /// Of these, those in which it stood still.
    pub still_ns: f64,
    pub instructions: f64,
}

impl Thread<'_> {
    /// As the operating system sees it; its memory is at `home`.
    pub(super) fn task(&self, home: NodeId) -> Task<'_> {
        Task { at: self.at, allowed: &self.allowed, home }
    }

    /// What is not counted yet; `mode` is an index into [`Activity::modes`].
    pub(super) fn lately(&self, mode: usize) -> Activity {
        let Some(thread_rate) = &self.thread_rate else { return Activity::default() };
        let PendingActivity { still_ns, instructions, .. } = self.uncounted;
        let mut activity = thread_rate.activity.times(instructions);
        activity.stall(still_ns * thread_rate.ghz, thread_rate.width);
        activity.modes[mode] = activity.all_cycles();
        activity
    }

    /// Counts that.
    pub(super) fn count(&mut self, mode: usize, errors: &Errors) {
        if self.uncounted.ns > 0.0 {
            let activity = self.lately(mode);
            self.meter.count(self.uncounted.ns, &activity, errors);
            self.done += &activity;
            self.uncounted = PendingActivity::default();
        }
    }
}

/// What a slot's program does now.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum RunPhase {
    /// All its threads run, each through its own phases.
    Together,
    /// The first thread alone, for so many instructions; then a parallel phase.
    Serial(f64),
    /// All threads, for so many instructions together, of so many in all; then
    /// a serial phase.
    Parallel { left: f64, of: f64 },
}

/// One run of a slot's program.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct ProgramRun {
    /// How many runs were before it.
    pub number: u64,
    /// Its program, by number.
    pub program: usize,
    /// Its place in the slot's order.
    pub position: usize,
    /// Does it count, or does it only make the start uneven?
    pub counts: bool,
    pub started_ns: u64,
    /// Instructions after which it has completed.
    pub target: f64,
    pub retired: f64,
    pub stage: RunPhase,
    pub home: NodeId,
}

impl ProgramRun {
    /// Instructions until its stage ends.
    pub(super) fn left(&self) -> f64 {
        match self.stage {
            RunPhase::Together => f64::INFINITY,
            RunPhase::Serial(left) | RunPhase::Parallel { left, .. } => left,
        }
    }
}
