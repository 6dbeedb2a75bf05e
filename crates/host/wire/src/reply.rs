//! What a client is given.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What this service is, as every varlink service says it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Info {
    /// The program that provides it.
    pub vendor: String,
    /// Its name.
    pub product: String,
    /// Its version.
    pub version: String,
    /// Where to read about it.
    pub url: String,
    /// Its interfaces.
    pub interfaces: Vec<String>,
}

/// A program was enrolled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Enrolled {
    /// Number of the program, for as long as it is managed.
    pub program: u32,
    /// What the user should know; as a rule nothing.
    pub notes: Vec<String>,
}

/// Processes that already ran are managed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attached {
    /// Number of the program, for as long as it is managed.
    pub program: u32,
    /// Its name.
    #[serde(default)]
    pub name: String,
    /// Processes that are managed now.
    pub processes: u32,
    /// Their threads.
    pub threads: u32,
    /// What the user should know; as a rule nothing.
    pub notes: Vec<String>,
}

/// Programs are no longer managed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Released {
    /// Processes that were released.
    pub processes: u32,
    /// Threads whose settings were restored.
    pub restored: u32,
    /// Threads that could not be restored, and why.
    pub failed: Vec<String>,
    /// What was asked for and not released, and why.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// The configuration was read again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reloaded {
    /// What holds now.
    pub notes: Vec<String>,
    /// Files of rules that cannot be used, and threads that could not be restored, with the reasons.
    #[serde(default)]
    pub failed: Vec<String>,
}

// One message holds a page of the programs.
/// What the daemon does now.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub struct Status {
    /// The daemon's version.
    pub version: String,
    /// Its process.
    pub pid: u32,
    /// For how long it has run, seconds.
    pub uptime_s: f64,
    /// The policy that places the programs.
    pub policy: String,
    /// Period of the loop, milliseconds.
    pub quantum_ms: f64,
    /// Hardware threads of the machine that are online.
    pub hardware_threads: u32,
    /// Programs that the caller may see.
    pub programs: Vec<ProgramStatus>,
    /// Moves since the start, by what became of them.
    pub moves: BTreeMap<String, u64>,
    /// Why moves were `refused`, and why they were `withheld` (once for each quantum in which one was wanted): how
    /// often for each reason.
    #[serde(default)]
    pub reasons: BTreeMap<String, BTreeMap<String, u64>>,
    /// What the daemon itself uses.
    pub usage: Usage,
    /// By how much more speed it expects, over all decisions so far, of the co-runners that it chose than of co-runners
    /// by chance: 0.03 is 3 % more; none where that is not learned.
    #[serde(default)]
    pub gain_over_chance: Option<f64>,
    /// What its scheduler in the kernel did so far; none where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduler: Option<KernelScheduler>,
    /// What limits it here, and what went wrong lately.
    pub notes: Vec<String>,
}

/// What a scheduler in the kernel did since it was loaded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub struct KernelScheduler {
    /// How often a placed thread was put on a CPU.
    pub dispatches: u64,
    /// How often a CPU was taken from a thread for another one.
    pub preemptions: u64,
    /// How often a thread ran since it had waited too long, against its class or its neighbour's.
    pub starved: u64,
    /// Running time of placed threads on the CPUs where they belong, seconds.
    pub own_s: f64,
    /// The same elsewhere, where a CPU was idle, seconds.
    pub lent_s: f64,
    /// While threads of class latency ran, how much of the time of their siblings was idle, 0 to 1; none: none ran.
    #[serde(default)]
    pub latency_siblings_idle: Option<f64>,
    /// The same of class alone.
    #[serde(default)]
    pub alone_siblings_idle: Option<f64>,
}

/// What the daemon itself uses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub struct Usage {
    /// CPU time since its start, seconds.
    pub cpu_s: f64,
    /// Quanta since its start.
    pub quanta: u64,
    /// Quanta that began after the end of the next one.
    pub quanta_missed: u64,
    /// Most memory that was ever resident, bytes, where known.
    pub memory_bytes: Option<u64>,
    /// Times that reports of births were lost and made good by a scan.
    pub rescans: u64,
}

/// A managed program.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub struct ProgramStatus {
    /// Its number, for as long as it is managed.
    pub program: u32,
    /// What people call it.
    pub name: String,
    /// What it is run for: `normal`, `latency`, `batch` or `alone`.
    pub class: String,
    /// The user whose processes all of them are; root, 0, where they are several users'.
    pub uid: u32,
    /// Its job, as the job manager numbers it; none where no job manager enrolled it.
    #[serde(default)]
    pub job: Option<u64>,
    /// Its first processes.
    pub roots: Vec<u32>,
    /// For how long it is managed, seconds.
    pub managed_s: f64,
    /// Living processes.
    pub processes: u32,
    /// Living threads.
    pub threads: u32,
    /// Threads that are kept on chosen hardware threads.
    pub placed: u32,
    /// These hardware threads, as a list (`0-3,8`); empty if none is placed.
    pub cpus: String,
    /// The last reason for a placement; empty if there was none.
    pub reason: String,
    /// Mean of the slowdowns that the policy predicts for its threads, where it predicts.
    pub predicted_slowdown: Option<f64>,
    /// Of a program of class `alone`: other threads that ran on its cores.
    #[serde(default)]
    pub quiet: Option<Quiet>,
    /// Of a program of class `latency` that waits for its CPUs: how long, and what else uses them; none while it hardly
    /// waits.
    #[serde(default)]
    pub waits: Option<Waits>,
    /// The quota of CPU time that makes it wait; none while none does.
    #[serde(default)]
    pub throttled: Option<Throttled>,
    /// The container that its first process is in; none where it is in none.
    #[serde(default)]
    pub container: Option<Container>,
    /// The programs that it shared cores with; none where the policy does not learn from them.
    #[serde(default)]
    pub next_to: Vec<NextToProgram>,
}

/// A container, as its makers call it. Two may have the same names; the id is the runtime's own.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub struct Container {
    /// Namespace of its pod.
    #[serde(default)]
    pub namespace: Option<String>,
    /// Its pod.
    #[serde(default)]
    pub pod: Option<String>,
    /// Its name.
    #[serde(default)]
    pub container: Option<String>,
    /// Its image.
    #[serde(default)]
    pub image: Option<String>,
    /// The runtime's id of it.
    pub id: String,
    /// `containerd`, `cri-o`, `cri` (one of kubelet's; the path does not say which), `docker`, `podman`, `nspawn`, or
    /// `oci` for runc and crun alone.
    pub runtime: String,
    /// Class of service of its pod, as kubelet calls it: `guaranteed`, `burstable` or `besteffort`.
    #[serde(default)]
    pub qos: Option<String>,
    /// What rules by `label` look at: its labels, then annotations of other keys, at most 32; of keys and values the
    /// first 128 characters. Only `symbiont status` has them.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
}

impl Container {
    /// `NAMESPACE/POD/CONTAINER`, as far as there are names; else the runtime and the start of the id.
    #[must_use]
    pub fn display(&self) -> String {
        let parts = [&self.namespace, &self.pod, &self.container].into_iter().flatten();
        let parts: Vec<&str> = parts.map(String::as_str).collect();
        match parts[..] {
            [] => format!("{}/{}", self.runtime, self.short_id()),
            _ => parts.join("/"),
        }
    }

    /// The start of the id, as runtimes show it.
    #[must_use]
    pub fn short_id(&self) -> String {
        const SHORT: usize = 12;
        self.id.chars().take(SHORT).collect()
    }

    /// `NAMESPACE/POD`, or the pod alone where it has no namespace.
    #[must_use]
    pub fn pod_path(&self) -> Option<String> {
        let pod = self.pod.as_ref()?;
        Some(self.namespace.as_ref().map_or_else(|| pod.clone(), |of| format!("{of}/{pod}")))
    }
}

/// A program that another one shared cores with.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub struct NextToProgram {
    /// Its number.
    pub program: u32,
    /// What it adds to the natural logarithm of the other's instructions per cycle, as the policy has learned; to be
    /// compared with other programs next to the same one.
    pub ln: f64,
    /// CPU time of the other one next to it, seconds.
    pub together_s: f64,
}

/// How far a program that is measured was alone on its cores, siblings among them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub struct Quiet {
    /// Time in which its cores were watched, seconds.
    pub watched_s: f64,
    /// Time in which they were not, as it was not placed or its threads changed, seconds.
    pub unwatched_s: f64,
    /// CPU time of other threads on its cores in the watched time, seconds.
    pub others_s: f64,
    /// CPU time that a hypervisor withheld on its cores in the watched time, seconds.
    pub stolen_s: f64,
    /// Those of the other threads that are known, most CPU time first.
    pub by: Vec<Intruder>,
    /// Why its cores cannot be watched, where they cannot.
    pub trouble: Option<String>,
}

/// A program that is to answer at once waits for its CPUs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub struct Waits {
    /// Share of the time in which it was ready to run for which it waited for a CPU, 0 to 1.
    pub share: f64,
    /// Over how long that was found, seconds.
    pub over_s: f64,
    /// The hardware threads that its threads waited for, as a list.
    pub cpus: String,
    /// Threads of others that ran there meanwhile, as far as known, most CPU time first.
    pub by: Vec<Intruder>,
}

/// A quota of CPU time (`cpu.max`, `cpu.cfs_quota_us`) stops a program.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub struct Throttled {
    /// The cgroup that has the quota.
    pub cgroup: String,
    /// The quota: CPU time over time.
    pub cpus: f64,
    /// Periods of the quota in which it ran.
    pub periods: u64,
    /// Of these, those in which the quota was used up.
    pub throttled: u64,
    /// Over how long these were counted, seconds.
    pub over_s: f64,
}

/// Threads of one name that ran on the cores of another program.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub struct Intruder {
    /// Name of the threads.
    pub name: String,
    /// CPU time, seconds.
    pub s: f64,
}

/// Why threads are where they are: one thread, or all of a process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub struct Explanations {
    /// The threads.
    pub threads: Vec<Why>,
    /// Threads of the process that a message has no room for.
    pub more: u32,
}

/// Why a thread is where it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub struct Why {
    /// The thread.
    pub thread: u32,
    /// Its process.
    pub process: u32,
    /// Name of its program.
    pub program: String,
    /// The policy that decided.
    pub policy: String,
    /// Hardware threads that the user and the cpuset allow.
    pub allowed: String,
    /// Hardware threads that it is kept on; none: left to the OS.
    pub placed: Option<String>,
    /// Hardware threads that its mask is held to meanwhile, as a list; none: its mask is its user's own.
    pub held: Option<String>,
    /// Hardware thread that it last ran on, where known.
    pub last_cpu: Option<u32>,
    /// Why, in the policy's words.
    pub reason: String,
    /// Why nothing of it is applied yet, if so.
    pub withheld: Option<String>,
    /// Managed threads that are kept on the same core or last ran there.
    pub co_runners: Vec<CoRunner>,
    /// Does the policy predict slowdowns?
    pub predicts: bool,
    /// Slowdown that the policy predicts there (time together / time alone), where it does.
    pub predicted_slowdown: Option<f64>,
    /// Slowdown in the last quantum, where the policy estimates it from what was measured.
    pub achieved_slowdown: Option<f64>,
    /// The best placement that differs by one change for this thread.
    pub runner_up: Option<RunnerUp>,
    /// Why there is none, where the policy predicts.
    pub no_runner_up: Option<String>,
    /// Share of the last quantum for which it ran, 0 to 1; none in its first quantum.
    pub ran_share: Option<f64>,
    /// Share of the last quantum for which it waited for a hardware thread, 0 to 1.
    pub waited_share: Option<f64>,
    /// The quota of CPU time that makes its program wait; none while none does.
    #[serde(default)]
    pub throttled: Option<Throttled>,
    /// The container that the first process of its program is in; none where it is in none.
    #[serde(default)]
    pub container: Option<Container>,
}

/// What the policy predicts of a placement that it did not choose.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub struct RunnerUp {
    /// The thread that it would change places with; none: it would go to a free hardware thread.
    pub exchange_with: Option<CoRunner>,
    /// Hardware threads that it would be kept on.
    pub cpus: String,
    /// What would be predicted.
    pub score: Score,
    /// What is predicted of the placement that is applied.
    pub applied: Score,
    /// Placed threads that both scores are over.
    pub threads: u32,
}

/// How good a placement is predicted to be. Slowdowns are time together / time alone.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub struct Score {
    /// Slowdown of the thread itself.
    pub slowdown: f64,
    /// Mean slowdown of all placed threads.
    pub mean_slowdown: f64,
    /// Sum of 1/slowdown over all placed threads (STP).
    pub throughput: f64,
}

/// A thread on the same core.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub struct CoRunner {
    /// The thread.
    pub thread: u32,
    /// Name of its program; empty where the caller may not know.
    pub program: String,
}
