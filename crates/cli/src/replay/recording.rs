//! What a recording holds.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use symbiont_control::SummaryReport;
use symbiont_machine::{Counting, Outcome, Timestamp};
use symbiont_trace::{Header, Quantum};

/// What a recording holds, for reports.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct RecordingReport {
    /// The policy that ran.
    pub policy: String,
    pub quantum_ms: f64,
    /// The processor, where the recording names it.
    pub processor: Option<String>,
    pub cores: usize,
    pub hardware_threads: usize,
    pub programs: Vec<String>,
    pub threads: u64,
    pub quanta: u64,
    pub duration_s: f64,
    /// Intervals between samples that are longer than two quanta, and the longest of all.
    pub late_samples: u64,
    pub longest_interval_ms: f64,
    /// The event catalogue by which events were counted; none: none were.
    pub catalogue: Option<String>,
    pub signals: Vec<String>,
    /// Readings of groups of events of threads, and those that are missing.
    pub readings: u64,
    pub missing_readings: u64,
    pub moves: RecordedMoves,
    /// The line that was left out since it ends in the middle.
    pub cut_off_line: Option<usize>,
}

/// The moves of a recording by outcome.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct RecordedMoves {
    pub done: u64,
    pub gone: u64,
    pub changed_by_others: u64,
    pub refused: u64,
    pub not_enforced: u64,
}

/// Collects it, quantum after quantum.
#[derive(Debug)]
pub struct Holdings {
    quantum: Duration,
    first: Option<Timestamp>,
    last: Option<Timestamp>,
    longest: Duration,
    signals: BTreeSet<String>,
    counting: Option<Arc<Counting>>,
    report: RecordingReport,
}

impl Holdings {
    pub fn new(header: &Header) -> Self {
        let report = RecordingReport {
            policy: header.policy.clone(),
            quantum_ms: header.quantum.as_secs_f64() * 1e3,
            processor: header.processor.clone(),
            cores: header.topology.cores().len(),
            hardware_threads: header.topology.cpus().len(),
            ..RecordingReport::default()
        };
        Self {
            quantum: header.quantum,
            first: None,
            last: None,
            longest: Duration::ZERO,
            signals: BTreeSet::new(),
            counting: None,
            report,
        }
    }

    pub fn add(&mut self, quantum: &Quantum) {
        let (sample, report) = (&quantum.sample, &mut self.report);
        report.quanta += 1;
        self.first.get_or_insert(sample.at);
        if let Some(last) = self.last.replace(sample.at) {
            let interval = sample.at.since(last);
            self.longest = self.longest.max(interval);
            report.late_samples += u64::from(interval > self.quantum * 2);
        }
        if let Some(counting) = &sample.counting {
            if !self.counting.as_ref().is_some_and(|known| Arc::ptr_eq(known, counting)) {
                report.catalogue = Some(counting.catalogue.clone());
                self.signals.extend(counting.signals.iter().map(ToString::to_string));
                self.counting = Some(Arc::clone(counting));
            }
        }
        for counts in sample.threads.iter().flat_map(|thread| &thread.counts) {
            match counts {
                Ok(_) => report.readings += 1,
                Err(_) => report.missing_readings += 1,
            }
        }
        for (_, outcome) in &quantum.moves {
            let moves = &mut report.moves;
            *match outcome {
                Outcome::Done => &mut moves.done,
                Outcome::Gone => &mut moves.gone,
                Outcome::ExternallyChanged => &mut moves.changed_by_others,
                Outcome::Refused(_) => &mut moves.refused,
                Outcome::NotEnforced => &mut moves.not_enforced,
            } += 1;
        }
    }

    /// What it all came to; programs and threads are those that a summary saw.
    pub fn report(self, seen: &SummaryReport, cut_off_line: Option<usize>) -> RecordingReport {
        let duration = self.last.zip(self.first).map(|(last, first)| last.since(first));
        RecordingReport {
            programs: seen.programs.iter().map(|program| program.name.clone()).collect(),
            threads: seen.programs.iter().map(|program| program.threads).sum(),
            duration_s: duration.unwrap_or_default().as_secs_f64(),
            longest_interval_ms: self.longest.as_secs_f64() * 1e3,
            signals: self.signals.into_iter().collect(),
            cut_off_line,
            ..self.report
        }
    }
}
