//! The report of a run at its end, for people and for programs.

use std::fmt::Write;

use serde::Serialize;
use symbiont_daemon::{ManagerReport, Moves};
use symbiont_linux::launch::{JobStatus, Status};
use symbiont_policy::Finding;
use symbiont_topology::counted;

use crate::doctor::text::hanging;
use crate::explain;
use crate::stat::short;
use crate::top::clean::clean;

/// A program's end.
#[derive(Debug, Serialize)]
pub struct JobReport {
    pub name: String,
    /// In words.
    pub end: String,
    /// As a shell reports it.
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
            let usable = match m.usable {
                0 => String::new(),
                usable if usable >= m.hardware_threads => String::new(),
                usable => format!(" of which it may use {usable}"),
            };
            writeln!(
                text,
                "symbiont: policy {}, quantum {} ms, {} hardware threads{usable}{dry}",
                m.policy, m.quantum_ms, m.hardware_threads
            )?;
        }
        for job in &self.jobs {
            writeln!(text, "  {}: {} after {:.2} s", job.name, job.end, job.wall_s)?;
        }
        if let Some(why) = &self.unmanaged {
            writeln!(text, "  not managed by this run: {why}")?;
        }
        self.managed.as_ref().map_or(Ok(()), |managed| write_managed(managed, text))
    }
}

fn write_managed(managed: &ManagerReport, text: &mut String) -> std::fmt::Result {
    let found = format!(
        "{}, {}; new threads found by {}",
        counted(managed.quanta, "quantum"),
        counted(managed.threads, "thread"),
        managed.enrolment
    );
    // In a container the reason is long.
    text.push_str(&hanging("", &found, 2));
    if let Some(alarms) = managed.alarms {
        writeln!(text, "  woke {} within a quantum, as a phase changed", counted(alarms, "time"))?;
    }
    write_moves(&managed.moves, managed.dry_run, text)?;
    if let Some(late) = &managed.lateness_ms {
        writeln!(
            text,
            "  woke late by {:.2} ms (median), {:.2} ms (95 %), {:.2} ms (most)",
            late.median, late.p95, late.max
        )?;
    }
    let cost = &managed.manager;
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
        [("left alone", &managed.restored.left_alone), ("not restored", &managed.restored.failed)]
    {
        for thread in list {
            writeln!(text, "  {what}: {thread}")?;
        }
    }
    if let Some(quiet) = &managed.quiet {
        text.push_str(&hanging("", &clean(&symbiont_daemon::quiet_words(quiet)), 2));
    }
    for finding in &managed.findings {
        writeln!(text, "  {}", in_words(finding))?;
    }
    for trouble in &managed.trouble {
        writeln!(text, "  trouble: {trouble}")?;
    }
    text.push_str(&explain::text(&managed.summary));
    Ok(())
}

/// A finding with its unit; what is counted is whole.
fn in_words(Finding { name, value, unit }: &Finding) -> String {
    match unit.as_ref() {
        "times" => format!("{name}: {}", counted(format!("{value:.0}"), "time")),
        "domains" => format!("{name}: {value:.0}"),
        "1" => format!("{name}: {}", short(*value)),
        unit => format!("{name}: {} {unit}", short(*value)),
    }
}

fn write_moves(moves: &Moves, dry_run: bool, text: &mut String) -> std::fmt::Result {
    let not_enforced = if dry_run { "would have been made" } else { "not enforced" };
    let nudges = match moves.nudges {
        0 => String::new(),
        1 => " (a nudge)".to_owned(),
        nudges => format!(" ({nudges} of them nudges)"),
    };
    let done = format!("done{nudges}");
    let counts = [
        (moves.done, done.as_str()),
        (moves.gone, "too late (thread gone)"),
        (moves.externally_changed, "left alone (changed by its program or another process)"),
        (moves.refused, "refused"),
        (moves.not_enforced, not_enforced),
        (moves.withheld, "withheld"),
    ];
    let listed: Vec<String> = counts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    let listed = if listed.is_empty() { "none".to_owned() } else { listed.join(", ") };
    writeln!(text, "  moves: {listed}")?;
    for (why, count) in &moves.reasons {
        writeln!(text, "    refused {}: {why}", counted(count, "time"))?;
    }
    for (why, count) in &moves.withheld_reasons {
        writeln!(text, "    withheld {count} (each quantum counts): {why}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_counted_is_whole() {
        let shown = |value, unit: &'static str| in_words(&Finding::new("it", value, unit));
        assert_eq!(shown(2.0, "times"), "it: 2 times");
        assert_eq!(shown(1234.0, "domains"), "it: 1234");
        assert_eq!(shown(0.25, "1"), "it: 0.250");
        assert_eq!(shown(5.9, "s"), "it: 5.90 s");
    }
}
