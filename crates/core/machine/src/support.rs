//! What a machine can measure and enforce, with the reasons for what it cannot.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Serialize};

/// A measurement of threads that a policy may need.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Signal {
    /// Which threads are ready, and for what share of a quantum.
    RunStates,
    /// Instructions, cycles and their quotient.
    Ipc,
    /// Cycles per instruction, split by cause.
    CpiStack,
    /// The same with stalls split by unit and memory level, and with the lines that move,
    /// where a catalogue has it. Takes more groups of events, whose counts are older.
    CpiStackFine,
    /// Top-Down categories of the first level (Navarro et al., section 5,
    /// variant `TopL`).
    #[serde(rename = "top_l")]
    TopL,
    /// The same with the back end split in two (`TopB2L`).
    #[serde(rename = "top_b2l")]
    TopB2L,
    /// The same with memory split in its levels (`TopB2M3L`).
    #[serde(rename = "top_b2m3l")]
    TopB2M3L,
    /// Top-Down categories of the third level (`All3L`).
    #[serde(rename = "all3l")]
    All3L,
    /// How much of its time a thread uses the floating-point units.
    FpuUsage,
    /// Accesses to the first-level data cache in each cycle.
    L1dBandwidth,
    /// Requests to main memory.
    MemoryRequests,
    /// Misses of the second-level and of the last-level cache.
    CacheMisses,
}

impl Signal {
    /// All signals.
    pub const ALL: [Self; 12] = [
        Self::RunStates,
        Self::Ipc,
        Self::CpiStack,
        Self::CpiStackFine,
        Self::TopL,
        Self::TopB2L,
        Self::TopB2M3L,
        Self::All3L,
        Self::FpuUsage,
        Self::L1dBandwidth,
        Self::MemoryRequests,
        Self::CacheMisses,
    ];

    /// Is it derived from counts of events?
    #[must_use]
    pub fn is_counted(self) -> bool {
        self != Self::RunStates
    }
}

impl fmt::Display for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::RunStates => "run states",
            Self::Ipc => "IPC",
            Self::CpiStack => "CPI stacks",
            Self::CpiStackFine => "fine CPI stacks",
            Self::TopL => "Top-Down categories of level 1 (TopL)",
            Self::TopB2L => "Top-Down categories with the back end split (TopB2L)",
            Self::TopB2M3L => "Top-Down categories with memory split (TopB2M3L)",
            Self::All3L => "Top-Down categories of level 3 (All3L)",
            Self::FpuUsage => "FPU usage",
            Self::L1dBandwidth => "L1D bandwidth",
            Self::MemoryRequests => "memory requests",
            Self::CacheMisses => "cache misses",
        })
    }
}

/// The signals that a policy needs.
pub type Signals = BTreeSet<Signal>;

/// Can the machine do it?
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "ability", content = "why")]
pub enum Ability {
    /// Yes, for every enrolled thread.
    Full,
    /// For some threads, or not always; the text says which and why.
    Partial(String),
    /// No; the text says why.
    Absent(String),
}

impl Ability {
    /// Is it there at all?
    #[must_use]
    pub fn exists(&self) -> bool {
        !matches!(self, Self::Absent(_))
    }

    /// Why it is not there in full.
    #[must_use]
    pub fn why(&self) -> Option<&str> {
        match self {
            Self::Full => None,
            Self::Partial(why) | Self::Absent(why) => Some(why),
        }
    }
}

/// What a machine offers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Support {
    /// Signals it can or cannot measure; one not listed is absent.
    pub signals: BTreeMap<Signal, Ability>,
    /// Can threads be kept on chosen hardware threads?
    pub affinity: Ability,
    /// Can a thread be made more urgent, and can that be undone?
    pub boost: Ability,
    /// Can a thread be put in the idle class, and can that be undone?
    #[serde(rename = "waiting")]
    pub idle_class: Ability,
    /// Are threads kept on their targets by a scheduler in the kernel? It needs no masks, and keeps other programs
    /// off a core only while a thread of a class that has cores of its own runs there.
    #[serde(default = "Support::no_scheduler", skip_serializing_if = "is_not_asked_for")]
    pub scheduler: Ability,
    /// Are all threads of a program found, and how soon?
    pub enrolment: Ability,
}

fn is_not_asked_for(scheduler: &Ability) -> bool {
    *scheduler == Support::no_scheduler()
}

impl Support {
    /// The kernel's own scheduler decides.
    #[must_use]
    pub fn no_scheduler() -> Ability {
        Ability::Absent("it was not asked for".to_owned())
    }

    /// The first signal that is needed and missing, with the reason.
    #[must_use]
    pub fn missing(&self, needs: &Signals) -> Option<(Signal, String)> {
        needs.iter().find_map(|signal| match self.signals.get(signal) {
            None => Some((*signal, "this machine does not measure it".to_owned())),
            Some(Ability::Absent(why)) => Some((*signal, why.clone())),
            Some(_) => None,
        })
    }
}
