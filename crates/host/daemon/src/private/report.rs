//! What the manager of a run reports at its end.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use symbiont_control::SummaryReport;
use symbiont_linux::actuate::{NotRestored, RestoreReport};
use symbiont_linux::machine::{LinuxMachine, Wait};
use symbiont_policy::Finding;
use symbiont_wire::Quiet;

/// The manager's part.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct ManagerReport {
    /// Name of the policy.
    pub policy: String,
    /// The quantum, in milliseconds.
    pub quantum_ms: f64,
    /// Hardware threads of the machine.
    pub hardware_threads: usize,
    /// Of these, those that the program might use by its mask and cpuset at its begin.
    #[serde(default)]
    pub usable: usize,
    /// Was nothing changed?
    pub dry_run: bool,
    /// How new threads were found.
    pub enrolment: String,
    /// Times that reports of births were lost and made good by a scan.
    pub rescans: u64,
    /// Steps of the loop.
    pub quanta: u64,
    /// Changes of phases at which the loop woke within a quantum; none if they
    /// were not looked for.
    #[serde(default)]
    pub alarms: Option<u64>,
    /// Threads that were seen.
    pub threads: u64,
    /// Moves by outcome.
    pub moves: Moves,
    /// How late the loop woke.
    pub lateness_ms: Option<LatenessMs>,
    /// What managing cost.
    pub manager: ManagerCost,
    /// What was restored at the end.
    #[serde(rename = "put_back")]
    pub restored: RestoreOutcome,
    /// What the policy found out.
    #[serde(default)]
    pub findings: Vec<Finding>,
    /// Where each program ran, with which co-runners, and why.
    #[serde(default)]
    pub summary: SummaryReport,
    /// Of programs that are measured: other threads that ran on their cores.
    #[serde(default)]
    pub quiet: Option<Quiet>,
    /// What went wrong, in words.
    pub trouble: Vec<String>,
}

/// Moves by outcome.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Moves {
    /// Done.
    pub done: u64,
    /// Of these, nudges: they left the thread its mask.
    pub nudges: u64,
    /// Too late: the thread was gone.
    pub gone: u64,
    /// Another process had changed the thread.
    #[serde(rename = "foreign")]
    pub externally_changed: u64,
    /// Refused by the kernel.
    pub refused: u64,
    /// Not enforced, or a dry run.
    pub not_enforced: u64,
    /// Withheld by the planner.
    pub withheld: u64,
    /// Why moves were refused, and how often.
    pub reasons: BTreeMap<String, u64>,
    /// Why moves were withheld, and how often: once for each quantum in which one was wanted.
    #[serde(default)]
    pub withheld_reasons: BTreeMap<String, u64>,
}

/// How late the loop woke.
#[derive(Debug, Serialize, Deserialize)]
pub struct LatenessMs {
    /// Half of the quanta were later.
    pub median: f64,
    /// One in twenty was later.
    pub p95: f64,
    /// The latest.
    pub max: f64,
    /// Quanta that were over before the loop came to wait for their end.
    pub missed: u64,
}

/// What managing cost.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct ManagerCost {
    /// CPU time, in nanoseconds.
    pub cpu_ns: u64,
    /// The part of it before the loop began.
    pub start_ns: u64,
    /// Steps of the loop.
    pub quanta: u64,
    /// Threads, summed over the quanta.
    pub thread_quanta: u64,
    /// Most memory that was ever resident.
    pub rss_kb: Option<u64>,
}

/// The outcome of restoring what was changed.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct RestoreOutcome {
    /// Threads that were restored.
    pub restored: usize,
    /// Threads that another process changed.
    pub left_alone: Vec<String>,
    /// Threads that could not be restored.
    pub failed: Vec<String>,
}

impl From<RestoreReport> for RestoreOutcome {
    fn from(report: RestoreReport) -> Self {
        let lines = |list: Vec<NotRestored>| list.iter().map(ToString::to_string).collect();
        Self {
            restored: report.restored,
            left_alone: lines(report.left_alone),
            failed: lines(report.failed),
        }
    }
}

impl ManagerReport {
    /// Fills in what the machine knows of the run.
    pub(super) fn describe<W: Wait>(
        &mut self,
        machine: &LinuxMachine<W>,
        enrolment: String,
        start: Duration,
    ) {
        let cost = machine.cost();
        let lateness = machine.lateness();
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        self.enrolment = enrolment;
        self.rescans = machine.losses().rescans;
        self.alarms = machine.alarms();
        self.lateness_ms =
            lateness.quantile(0.5).zip(lateness.quantile(0.95)).map(|(median, p95)| LatenessMs {
                median: ms(median),
                p95: ms(p95),
                max: ms(lateness.max()),
                missed: lateness.missed,
            });
        self.manager = ManagerCost {
            cpu_ns: nanos(cost.cpu),
            start_ns: nanos(start),
            quanta: self.quanta,
            thread_quanta: cost.thread_quanta,
            rss_kb: cost.memory_bytes.map(|bytes| bytes / 1024),
        };
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
