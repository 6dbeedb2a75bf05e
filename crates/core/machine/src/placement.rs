//! The decision of a policy: where each thread shall run, how it is kept there, how urgently, and why.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use symbiont_topology::CpuSet;

use crate::ThreadId;

/// Where a thread shall run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Target {
    /// Wherever the OS puts it within its allowed CPUs: no restriction of ours is applied.
    #[default]
    Os,
    /// On one of these hardware threads.
    Cpus(CpuSet),
}

impl Target {
    /// Is it left to the OS?
    #[must_use]
    pub fn is_os(&self) -> bool {
        *self == Self::Os
    }

    /// The hardware threads that it names; none if it is left to the OS.
    #[must_use]
    pub fn cpus(&self) -> Option<&CpuSet> {
        match self {
            Self::Cpus(cpus) => Some(cpus),
            Self::Os => None,
        }
    }
}

/// How urgent a thread is, compared with the other enrolled threads.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Priority {
    /// As the user set it.
    #[default]
    Normal,
    /// This many priority levels (nice values) above what the user set.
    Boosted(u8),
    /// The idle class: runs when no other thread is ready.
    #[serde(rename = "waiting")]
    Idle,
}

/// The decision for one thread, and the reason.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Assignment {
    /// Where it shall run.
    pub target: Target,
    /// The mask that it keeps meanwhile; [`Target::Os`]: its user's own. A thread whose mask leaves more
    /// than its target is *nudged*: narrowed to the target for microseconds, and the OS lets it stay. One
    /// whose mask is its target is *held*.
    #[serde(default, skip_serializing_if = "Target::is_os")]
    pub mask: Target,
    /// Has its program the cores of the target for itself, so that all others keep off them?
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub own_cores: bool,
    /// How urgent it is.
    pub priority: Priority,
    /// Why, in words that a user can read.
    pub reason: Cow<'static, str>,
    /// Slowdown that the policy predicts for it there, where the policy
    /// predicts: time together / time alone (≥ 1 as a rule).
    pub predicted_slowdown: Option<f64>,
}

impl Assignment {
    /// Leaves the thread to the OS.
    #[must_use]
    pub fn os(reason: impl Into<Cow<'static, str>>) -> Self {
        Self { reason: reason.into(), ..Self::default() }
    }

    /// Nudges the thread to some hardware threads, at normal priority: its mask stays its user's own.
    #[must_use]
    pub fn on(cpus: CpuSet, reason: impl Into<Cow<'static, str>>) -> Self {
        Self { target: Target::Cpus(cpus), reason: reason.into(), ..Self::default() }
    }

    /// The same with a mask that stays as narrow as the target.
    #[must_use]
    pub fn held(self) -> Self {
        Self { mask: self.target.clone(), ..self }
    }

    /// Does a mask of ours stay on the thread?
    #[must_use]
    pub fn is_held(&self) -> bool {
        !self.mask.is_os()
    }

    /// Is nothing of ours wanted or applied?
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        self.target.is_os() && self.mask.is_os() && self.priority == Priority::Normal
    }
}

/// A policy's decision for one quantum: an assignment for each enrolled thread.
pub type Placement = BTreeMap<ThreadId, Assignment>;
