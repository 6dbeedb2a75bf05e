//! What is told about a run at its end.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use symbiont_linux::actuate::{NotRestored, RestoreReport};
use symbiont_linux::launch::{JobStatus, Status};
use symbiont_linux::machine::{LinuxMachine, Wait};
use symbiont_policy::Finding;

use crate::stat::short;

/// The manager's part.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct ManagerReport {
    pub policy: String,
    pub quantum_ms: f64,
    pub hardware_threads: usize,
    pub dry_run: bool,
    /// How new threads were found.
    pub enrolment: String,
    /// Times that reports of births were lost and made good by a scan.
    pub rescans: u64,
    pub quanta: u64,
    /// Changes of phases at which the loop woke within a quantum; none if they
    /// were not looked for.
    #[serde(default)]
    pub alarms: Option<u64>,
    pub threads: u64,
    pub moves: Moves,
    pub lateness_ms: Option<LatenessMs>,
    pub manager: ManagerCost,
    pub put_back: PutBack,
    /// What the policy found out.
    #[serde(default)]
    pub findings: Vec<Finding>,
    /// What went wrong, in words.
    pub trouble: Vec<String>,
}

/// Moves by what became of them.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Moves {
    pub done: u64,
    pub gone: u64,
    pub foreign: u64,
    pub refused: u64,
    pub not_enforced: u64,
    pub withheld: u64,
    /// Why moves were refused, and how often.
    pub reasons: BTreeMap<String, u64>,
}

/// How late the loop woke.
#[derive(Debug, Serialize, Deserialize)]
pub struct LatenessMs {
    pub median: f64,
    pub p95: f64,
    pub max: f64,
    /// Quanta that were over before the loop came to wait for their end.
    pub missed: u64,
}

/// What managing cost.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct ManagerCost {
    pub cpu_ns: u64,
    /// Of it, until the loop began.
    pub start_ns: u64,
    pub quanta: u64,
    pub thread_quanta: u64,
    /// Most memory that was ever resident.
    pub rss_kb: Option<u64>,
}

/// What became of what was changed.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct PutBack {
    pub restored: usize,
    pub left_alone: Vec<String>,
    pub failed: Vec<String>,
}

impl From<RestoreReport> for PutBack {
    fn from(report: RestoreReport) -> Self {
        let told = |list: Vec<NotRestored>| list.iter().map(ToString::to_string).collect();
        Self {
            restored: report.restored,
            left_alone: told(report.left_alone),
            failed: told(report.failed),
        }
    }
}

impl ManagerReport {
    /// Fills in what the machine knows of the run.
    pub fn describe<W: Wait>(
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

/// A program's end.
#[derive(Debug, Serialize)]
pub struct JobReport {
    pub name: String,
    /// In words.
    pub end: String,
    /// As a shell tells it.
    pub exit_code: i32,
    pub signal: Option<i32>,
    pub wall_s: f64,
}

impl From<&JobStatus> for JobReport {
    fn from(job: &JobStatus) -> Self {
        let signal = match job.status {
            Status::Killed { signal, .. } => Some(signal),
            _ => None,
        };
        Self {
            name: job.name.clone(),
            end: job.status.to_string(),
            exit_code: job.status.exit_code(),
            signal,
            wall_s: job.wall.as_secs_f64(),
        }
    }
}

/// The whole report.
#[derive(Debug, Serialize)]
pub struct RunReport {
    pub symbiont: &'static str,
    pub jobs: Vec<JobReport>,
    /// None if the programs ran unmanaged.
    #[serde(flatten)]
    pub managed: Option<ManagerReport>,
    /// Why they did, or why nothing is known of their management.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unmanaged: Option<String>,
}

impl RunReport {
    /// The report for people.
    pub fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = self.write(&mut text);
        text
    }

    fn write(&self, text: &mut String) -> std::fmt::Result {
        if let Some(m) = &self.managed {
            let dry = if m.dry_run { ", dry run: nothing was changed" } else { "" };
            writeln!(
                text,
                "symbiont: policy {}, quantum {} ms, {} hardware threads{dry}",
                m.policy, m.quantum_ms, m.hardware_threads
            )?;
        }
        for job in &self.jobs {
            writeln!(text, "  {}: {} after {:.2} s", job.name, job.end, job.wall_s)?;
        }
        if let Some(why) = &self.unmanaged {
            writeln!(text, "  unmanaged: {why}")?;
        }
        self.managed.as_ref().map_or(Ok(()), |managed| managed.write(text))
    }
}

impl ManagerReport {
    fn write(&self, text: &mut String) -> std::fmt::Result {
        writeln!(
            text,
            "  {} quanta, {} threads; new threads found by {}",
            self.quanta, self.threads, self.enrolment
        )?;
        if let Some(alarms) = self.alarms {
            writeln!(text, "  woke {alarms} times within a quantum, as a phase changed")?;
        }
        self.moves.write(text, self.dry_run)?;
        if let Some(late) = &self.lateness_ms {
            writeln!(
                text,
                "  woke late by {:.2} ms (median), {:.2} ms (95 %), {:.2} ms (most)",
                late.median, late.p95, late.max
            )?;
        }
        let cost = &self.manager;
        if cost.thread_quanta > 0 {
            #[expect(clippy::cast_precision_loss, reason = "shown with two digits")]
            let (seconds, micros) =
                (cost.cpu_ns as f64 / 1e9, cost.cpu_ns as f64 / 1e3 / cost.thread_quanta as f64);
            writeln!(
                text,
                "  management took {seconds:.2} s of CPU time, {micros:.1} µs per thread and quantum"
            )?;
        }
        for (what, list) in
            [("left alone", &self.put_back.left_alone), ("not put back", &self.put_back.failed)]
        {
            for thread in list {
                writeln!(text, "  {what}: {thread}")?;
            }
        }
        for Finding { name, value, unit } in &self.findings {
            writeln!(text, "  {name}: {} {unit}", short(*value))?;
        }
        for trouble in &self.trouble {
            writeln!(text, "  trouble: {trouble}")?;
        }
        Ok(())
    }
}

impl Moves {
    fn write(&self, text: &mut String, dry_run: bool) -> std::fmt::Result {
        let not_enforced = if dry_run { "would have been made" } else { "not enforced" };
        let counts = [
            (self.done, "done"),
            (self.gone, "too late (thread gone)"),
            (self.foreign, "left alone (changed by somebody else)"),
            (self.refused, "refused"),
            (self.not_enforced, not_enforced),
            (self.withheld, "withheld"),
        ];
        let told: Vec<String> = counts
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!("{count} {what}"))
            .collect();
        let told = if told.is_empty() { "none".to_owned() } else { told.join(", ") };
        writeln!(text, "  moves: {told}")?;
        for (why, count) in &self.reasons {
            writeln!(text, "    refused {count} times: {why}")?;
        }
        Ok(())
    }
}
