//! The machine and its managed threads at one moment.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{KernelScheduler, ProgramStatus, Usage};

// One message holds a page of the lists.
/// The machine and its threads at one moment.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub struct Snapshot {
    /// When, on a clock of the machine that never jumps, seconds.
    pub at_s: f64,
    /// The daemon; none: no daemon runs, the threads are only watched.
    pub manager: Option<ManagerStatus>,
    /// Cores that are online.
    pub cores: Vec<CoreStatus>,
    /// Programs that the caller may see.
    pub programs: Vec<ProgramStatus>,
    /// Their threads, the busiest first.
    pub threads: Vec<ThreadStatus>,
    /// Threads beyond these, of the same programs.
    pub more_threads: u32,
    /// The last moves, the newest first.
    pub moves: Vec<MoveStatus>,
    /// What limits the daemon here, and what went wrong lately.
    pub notes: Vec<String>,
}

/// The daemon itself.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub struct ManagerStatus {
    /// Its version.
    pub version: String,
    /// Its process.
    pub pid: u32,
    /// For how long it has run, seconds.
    pub uptime_s: f64,
    /// The policy that places the programs.
    pub policy: String,
    /// Period of the loop, milliseconds.
    pub quantum_ms: f64,
    /// Moves since its start, by what became of them.
    pub moves: BTreeMap<String, u64>,
    /// Why moves were `refused`, and why they were `withheld`: how often for each reason.
    #[serde(default)]
    pub reasons: BTreeMap<String, BTreeMap<String, u64>>,
    /// What it uses.
    pub usage: Usage,
    /// What its scheduler in the kernel did so far; none where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduler: Option<KernelScheduler>,
}

/// A core.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub struct CoreStatus {
    /// Its number.
    pub core: u32,
    /// Its hardware threads, as a list (`0,4`).
    pub cpus: String,
    /// Its last-level cache domain.
    pub llc: u32,
    /// Its NUMA node.
    pub node: u32,
    /// Its package.
    pub package: u32,
    /// Its speed relative to the fastest core of the machine, which has 1024.
    pub capacity: u32,
    /// Managed threads of other users that ran here in the last quantum.
    pub others: u32,
    /// Share of the time between two snapshots for which its hardware threads were in use, by managed threads
    /// or any others, 0 to 1. The daemon leaves it out: all may read it in /proc, and `symbiont top` does.
    pub busy_share: Option<f64>,
}

/// A thread.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub struct ThreadStatus {
    /// The thread.
    pub thread: u32,
    /// Its process.
    pub process: u32,
    /// The number of its program.
    pub program: u32,
    /// Its own name. The daemon leaves it out: all may read it in /proc, and `symbiont top` does.
    pub name: Option<String>,
    /// `runnable`, `sleeping` or `stopped`.
    pub state: String,
    /// Hardware thread on which it runs or ran last, where known.
    pub cpu: Option<u32>,
    /// Hardware threads that the user and the cpuset allow, as a list.
    pub allowed: String,
    /// Hardware threads that it is kept on, as a list; none: left to the OS.
    pub placed: Option<String>,
    /// Hardware threads that its mask is held to meanwhile, as a list; none: its mask is its user's own.
    pub held: Option<String>,
    /// Why, in the policy's words; empty if the policy said nothing.
    pub reason: String,
    /// Time that it ran since it was born, seconds.
    pub run_time_s: f64,
    /// Time that it waited for a hardware thread since it was born, seconds; credited when it next runs.
    pub wait_time_s: f64,
    /// Share of the time for which it ran, 0 to 1: of the last quantum, or of the interval between two
    /// snapshots; none in its first one.
    pub ran_share: Option<f64>,
    /// Share of the same time for which it waited for a hardware thread, 0 to 1.
    pub waited_share: Option<f64>,
    /// Instructions per cycle, where measured.
    pub ipc: Option<f64>,
    /// Cycles per instruction by cause; empty where not measured.
    pub cpi_stack: BTreeMap<String, f64>,
    /// Top-Down categories, each a share of the issue slots; empty where not measured.
    pub categories: BTreeMap<String, f64>,
    /// Slowdown that the policy predicts for it (time together / time alone), where it does.
    pub predicted_slowdown: Option<f64>,
    /// Slowdown in the last quantum, where the policy estimates it from what was measured.
    pub achieved_slowdown: Option<f64>,
}

/// A move, and what became of it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub struct MoveStatus {
    /// How long ago it was made, seconds.
    pub ago_s: f64,
    /// The thread.
    pub thread: u32,
    /// Its process.
    pub process: u32,
    /// Name of its program.
    pub program: String,
    /// What was changed: `0-3` (kept on these hardware threads), `any` (left to the OS), or a priority.
    pub to: String,
    /// `done`, `thread gone`, `externally changed`, `not enforced`, or why it was refused.
    pub outcome: String,
    /// Why, in the policy's words.
    pub reason: String,
}
