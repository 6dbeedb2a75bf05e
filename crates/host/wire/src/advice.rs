//! What Symbiont would do with the programs that run, and what that should gain.
//!
//! Shares are from 0 to 1. Slowdowns are time together / time alone (1 or more as a rule).

use serde::{Deserialize, Serialize};

/// What was seen, and what would be done.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub struct Advice {
    /// Version of Symbiont.
    pub version: String,
    /// For how long programs were watched, seconds.
    pub watched_s: f64,
    /// Decisions in that time.
    pub quanta: u64,
    /// The machine.
    pub machine: Machine,
    /// The policy that decided.
    pub policy: Policy,
    /// CPU time over time watched from which on a program counts as busy.
    pub busy_from: f64,
    /// Programs that were busy, the busiest first.
    pub programs: Vec<AdvisedProgram>,
    /// The other programs.
    pub others: Others,
    /// Would anything be changed?
    pub changes: bool,
    /// What there is to gain on this machine, in words.
    pub prospects: String,
    /// What would be done on the whole, in words.
    pub conclusion: String,
    /// What that should gain; none where nothing is predicted, or nothing would be changed.
    pub gain: Option<Gain>,
    /// The daemon that runs; none: no daemon runs.
    pub daemon: Option<Daemon>,
    /// Commands that apply it, in order; empty where there is nothing to apply.
    pub apply: Vec<String>,
    /// What limits this advice.
    pub notes: Vec<String>,
}

/// A machine.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub struct Machine {
    /// Hardware threads that are online.
    pub hardware_threads: u32,
    /// Of these, those that what was watched may use: fewer in a cpuset, or with a mask.
    pub allowed: u32,
    /// Cores that are online.
    pub cores: u32,
    /// Hardware threads of the widest core. Where it is 1, threads that share a core take turns.
    pub hardware_threads_per_core: u32,
}

/// A policy.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub struct Policy {
    /// Its name.
    pub name: String,
    /// What it does, in a line.
    pub summary: String,
    /// What it chose for this machine, and why; none from a policy that chooses nothing.
    pub choice: Option<String>,
    /// Period of its decisions, milliseconds.
    pub quantum_ms: f64,
    /// Did it predict slowdowns?
    pub predicts: bool,
}

/// A job that was busy: a command with the processes that it made.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(deny_unknown_fields, rename = "Program"))]
pub struct AdvisedProgram {
    /// The name of its command.
    pub name: String,
    /// Its first process.
    pub process: u32,
    /// Is it a shell that came while programs were watched? Such a one has ended soon, as a rule.
    pub is_passing: bool,
    /// Did it end while it was watched?
    pub ended: bool,
    /// The process of Symbiont that manages it already.
    pub managed_by: Option<u32>,
    /// Its threads that lived at once, at most.
    pub threads: u64,
    /// CPU time, seconds.
    pub run_time_s: f64,
    /// CPU time over time watched: 2 is two CPUs all the time.
    pub cpus_used: f64,
    /// Time for which its threads were ready and waited for a CPU, seconds.
    pub wait_time_s: f64,
    /// The same as a share of the time for which they were ready.
    pub wait_share: f64,
    /// CPUs on which it ran, the largest share first.
    pub ran_on: Vec<CpuShare>,
    /// What ran on the same cores meanwhile.
    pub co_runners: CoRunners,
    /// What would be done with it, the largest share first.
    pub plans: Vec<Plan>,
    /// Mean slowdown that the policy predicts for how it ran.
    pub slowdown_now: Option<f64>,
    /// Mean slowdown that the policy predicts for what it would do, of the same times.
    pub slowdown_planned: Option<f64>,
}

/// A CPU's share of a run time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub struct CpuShare {
    /// The CPU.
    pub cpu: u32,
    /// Its core, where the topology has it.
    pub core: Option<u32>,
    /// Share of the run time.
    pub share: f64,
}

/// Watched programs on the same cores.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub struct CoRunners {
    /// Share of the quanta in which no other watched thread ran on its core.
    pub alone: f64,
    /// Shares with threads of a program, the largest first. There may be several at once.
    pub with: Vec<CoRunner>,
}

/// A program on the same core.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub struct CoRunner {
    /// The name of its command; it may be the program itself, with another thread.
    pub name: String,
    /// Its first process.
    pub process: u32,
    /// Share of the quanta.
    pub share: f64,
}

/// What would be done with threads of a program.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub struct Plan {
    /// CPUs on which they would be kept, as a list (`0-3,8`); none: left to the OS.
    pub cpus: Option<String>,
    /// `boosted` or `idle class`; none: as the user set it.
    pub priority: Option<String>,
    /// Share of the time for which its threads were ready.
    pub share: f64,
    /// The last reason, in the policy's words.
    pub reason: String,
}

/// Programs that were not busy.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub struct Others {
    /// How many.
    pub programs: u64,
    /// Their CPU time over time watched.
    pub cpus_used: f64,
}

/// Speeds, each 1 / slowdown, summed over the threads that ran: a mean over time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub struct Gain {
    /// As predicted for how they ran.
    pub speed_now: f64,
    /// As predicted for what would be done.
    pub speed_planned: f64,
}

/// The daemon.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub struct Daemon {
    /// Its process.
    pub process: u32,
    /// The policy that places its programs.
    pub policy: String,
}
