//! What would start when: the schedule over expected times.

use std::collections::BTreeMap;
use std::fmt::Write;

use symbiont_jobs::ProgramKey;
use symbiont_topology::counted;

use super::Job;
use super::schedule::{Schedule, Waiting};

/// A line for each start. Jobs that never ran are taken for as long as the average of those that did.
pub fn text(schedule: &Schedule, jobs: &BTreeMap<usize, Job>, mut waiting: Vec<Waiting>) -> String {
    let known: Vec<f64> = waiting.iter().filter_map(|job| schedule.expected_s(job)).collect();
    let average =
        if known.is_empty() { 1.0 } else { known.iter().sum::<f64>() / known.len() as f64 };
    let mut text = match known.len() {
        0 => "No job ran before: times are not known, and each is taken for one unit.\n".to_owned(),
        count if count < waiting.len() => {
            let jobs = counted(waiting.len(), "job");
            format!("{count} of {jobs} ran before; others are taken for average.\n")
        }
        _ => String::new(),
    };
    // Of those that run: when they end, and what they are.
    let mut running: Vec<(f64, ProgramKey)> = Vec::new();
    let mut now_s = 0.0;
    while !waiting.is_empty() {
        let keys: Vec<ProgramKey> = running.iter().map(|(_, key)| key.clone()).collect();
        for start in schedule.next(&waiting, &keys) {
            let Some(place) = waiting.iter().position(|job| job.number == start.number) else {
                continue;
            };
            let job = waiting.remove(place);
            let length_s = schedule.expected_s(&job).unwrap_or(average) * start.slowdown;
            let command = jobs.get(&job.number).map_or("".into(), |job| job.line.text());
            // Writing to a string does not fail.
            let _ = writeln!(
                text,
                "{now_s:9.1} s  line {}: {command}: {} (slowdown {:.2})",
                job.number, start.reason, start.slowdown
            );
            running.push((now_s + length_s, job.key));
        }
        running.sort_by(|a, b| a.0.total_cmp(&b.0));
        if running.is_empty() {
            break;
        }
        now_s = running.remove(0).0;
    }
    let last = running.iter().map(|(end, _)| *end).fold(now_s, f64::max);
    let _ = writeln!(text, "{last:9.1} s  all have ended");
    text
}
