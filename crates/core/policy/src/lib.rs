//! Scheduling policies: which threads should run where, and why.
//!
//! # Problem
//! Many published schedulers shall be compared on equal terms, on real and on
//! simulated machines. So a policy must not know on which one it runs, and
//! must not be able to act.
//!
//! # Approach
//! A [`Policy`] is a function from a [`View`] (the machine, and what each
//! thread did over the last quantum) to a placement, which is a value. It may
//! keep state between quanta; it has no clock, and randomness only from a
//! seed. One file per policy, with its parameters ([`Parameter`]) and what it
//! asks of a machine ([`Requirements`]); to add one, copy
//! `examples/first_policy.rs` and add its entry to [`policies`].
//!
//! # Terms and units
//! *Quantum*: the period of the loop. *Allowed*: the online hardware threads
//! within a thread's allowed CPUs. *Settled*: may be placed now; the placement of an
//! unsettled thread would be inherited by its children, or its program counts the
//! CPUs that it is given. *Fresh*: may not even be boosted.
//!
//! # Properties
//! Tests run each of them over every policy of the list, on random views.
//! - A placement names each thread of the view, and no other
//!   (`a_placement_names_each_thread_and_no_other`).
//! - A thread is only ever sent to a non-empty part of what it is allowed
//!   (`targets_are_allowed`).
//! - An unsettled thread is left to the OS, and a fresh one is not boosted either
//!   (`unsettled_threads_are_left_to_the_os`).
//! - Equal seeds and views give equal placements (`policies_are_deterministic`).

pub mod activity;
mod auto;
mod classes;
mod cookies;
mod core_slots;
mod fixed;
mod foresight;
mod fpu;
mod hysched;
mod l1_bandwidth;
mod learned;
mod nearest;
mod never_twice;
mod oracle;
mod parameter;
mod phases;
mod random;
mod registry;
mod requirements;
mod runnable;
mod settings;
mod stay;
mod symbiotic;
mod symbiotic_numa;
mod symbiotic_online;
mod view;

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use symbiont_machine::{Placement, Support, ThreadId};
use symbiont_topology::Topology;

pub use activity::{Activity, ActivityInterval, KnownActivity, KnownActivityError};
pub use auto::Auto;
pub use classes::{Classes, NoCore, room_for_one};
pub use core_slots::Filling;
pub use fixed::{Fixed, NoGroups, Together};
pub use foresight::{Change, Foresight, NoRunnerUp, RunnerUp, Score, runner_up};
pub use fpu::Fpu;
pub use hysched::{Hysched, UnknownVariant, Variant, dominant, pairing};
pub use l1_bandwidth::L1Bandwidth;
pub use learned::{By as LearnedBy, Learned, LearnedPairs, LearnedProgram, NextTo};
pub use never_twice::NeverTwice;
pub use oracle::{Course as PairCourse, Oracle, PairSlowdowns, PairSlowdownsError};
pub use parameter::{Declaration, Declared, Kind, Parameter, Parameters, Typed, Value};
pub use phases::{JointState, JointStates, Phase, Phases, ProgramPhase, Turns};
pub use random::Random;
pub use registry::{DEFAULT, Entry, UnknownPolicy, find, policies};
pub use requirements::Requirements;
pub use runnable::{CannotRun, MissingInput};
pub use settings::{SetError, Settings, Values};
pub use stay::Stay;
pub use symbiotic::{Models, Symbiotic};
pub use symbiotic_numa::SymbioticNuma;
pub use symbiotic_online::SymbioticOnline;
pub use view::{Placeable, ThreadView, View};

/// A way to decide which threads run where.
pub trait Policy: Send {
    /// Its name, as a user writes it.
    fn name(&self) -> &'static str;

    /// What it asks of a machine, and of its user; nothing by default.
    fn requirements(&self) -> Requirements {
        Requirements::default()
    }

    /// Takes note of a machine: of its structure, and of what it can measure of what the policy requires
    /// and of the alternatives. Called before the requirements are held against the machine. Returns
    /// what a user should know of it. By default nothing changes.
    fn offer(&mut self, offered: &Support, topology: &Topology) -> Option<String> {
        let _ = (offered, topology);
        None
    }

    /// What it chose for the machine, and why; none from a policy that chooses
    /// nothing.
    fn choice(&self) -> Option<String> {
        None
    }

    /// Decides for the next quantum: one assignment for each thread of the
    /// view.
    fn place(&mut self, view: &View<'_>) -> Placement;

    /// Slowdown of a thread over the quantum before the last decision (time together / time alone),
    /// where the policy estimates it from what was measured.
    fn achieved_slowdown(&self, thread: ThreadId) -> Option<f64> {
        let _ = thread;
        None
    }

    /// What a thread that ran in the quantum before the last decision needs when it runs alone: its CPI
    /// stack without co-runners as shares of its CPI, by the names of its components, where the policy
    /// estimates it.
    fn stack_alone(&self, thread: ThreadId) -> Option<Vec<(&str, f64)>> {
        let _ = thread;
        None
    }

    /// What it predicts of any threads that might share a core, from what it knew when it decided on
    /// this view last; none from a policy that predicts no slowdowns.
    fn foresight(&self, view: &View<'_>) -> Option<Box<dyn Foresight>> {
        let _ = view;
        None
    }

    /// What it has learned of pairs of programs, for the next time that they run ([`Settings::learned`]); none from a
    /// policy that learns no such thing.
    fn learned(&self) -> Option<LearnedPairs> {
        None
    }

    /// By how much more speed it expects, over all decisions so far, of the co-runners that it chose than of co-runners
    /// by chance: 0.03 is 3 % more; none from a policy that does not learn this.
    fn gain_over_chance(&self) -> Option<f64> {
        None
    }

    /// What a co-runner on its core adds to the natural logarithm of a thread's instructions per cycle, where it has seen
    /// them together: -0.1 is a tenth slower; none from a policy that does not learn this.
    fn learned_of(&self, thread: ThreadId, co_runner: ThreadId) -> Option<f64> {
        let _ = (thread, co_runner);
        None
    }

    /// What it found out so far, for reports.
    fn findings(&self) -> Vec<Finding> {
        Vec::new()
    }
}

/// A figure that a policy found out about its programs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// What it is, in words.
    pub name: String,
    /// How much.
    pub value: f64,
    /// Of what unit.
    pub unit: Cow<'static, str>,
}

impl Finding {
    /// A figure with its name and unit.
    #[must_use]
    pub fn new(name: impl Into<String>, value: f64, unit: impl Into<Cow<'static, str>>) -> Self {
        Self { name: name.into(), value, unit: unit.into() }
    }
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod worlds {
    pub(crate) mod stacks;
}
