//! What the managers reported of the runs.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::record::PhasesRecord;
use crate::harness::ManagerFigures;
use symbiont_report::stats::{self, Estimate};

/// The managers of all runs under one policy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Managers {
    /// The policy.
    pub policy: String,
    /// Share of one CPU that the manager took.
    pub cpu_share: Estimate,
    /// Moves applied, per second.
    pub moves_per_s: Estimate,
    /// Moves that the machine refused, in all runs.
    pub refused: u64,
    /// Why moves were refused, and how often. Of reasons that differ in
    /// numbers only, one stands for all.
    pub reasons: BTreeMap<String, u64>,
    /// Median lateness of a run, mean over runs, in ms; absent if not reported.
    pub lateness_ms: Option<Estimate>,
    /// Runs in which nothing was moved.
    pub idle_runs: u64,
    /// Runs.
    pub runs: u64,
    /// What went wrong, in words, and in how many runs.
    pub trouble: BTreeMap<String, u64>,
}

/// Summed up by policy.
#[must_use]
pub fn managers(records: &[PhasesRecord]) -> Vec<Managers> {
    let mut by_policy: BTreeMap<&str, Vec<(f64, &ManagerFigures)>> = BTreeMap::new();
    for record in records {
        if let (Some((policy, _)), Some(reported)) = (record.run.what.managed(), &record.managed) {
            by_policy.entry(policy).or_default().push((record.wall_s, reported));
        }
    }
    by_policy.into_iter().rev().filter_map(|(policy, runs)| sum_up(policy, &runs)).collect()
}

fn sum_up(policy: &str, runs: &[(f64, &ManagerFigures)]) -> Option<Managers> {
    let mean = |of: &dyn Fn(f64, &ManagerFigures) -> f64| {
        let values: Vec<f64> =
            runs.iter().map(|(wall_s, reported)| of(*wall_s, reported)).collect();
        stats::mean_estimate(&values).ok()
    };
    let lateness: Vec<f64> =
        runs.iter().filter_map(|(_, reported)| Some(reported.lateness_ms?.median)).collect();
    let mut trouble = BTreeMap::new();
    for text in runs.iter().flat_map(|(_, reported)| &reported.trouble) {
        *trouble.entry(text.clone()).or_default() += 1;
    }
    let reasons = alike(runs.iter().flat_map(|(_, reported)| &reported.moves.reasons));
    Some(Managers {
        policy: policy.to_owned(),
        cpu_share: mean(&|wall_s, reported| reported.manager.cpu_ns as f64 / 1e9 / wall_s)?,
        moves_per_s: mean(&|wall_s, reported| reported.moves.done as f64 / wall_s)?,
        refused: runs.iter().map(|(_, reported)| reported.moves.refused).sum(),
        reasons,
        lateness_ms: stats::mean_estimate(&lateness).ok(),
        idle_runs: runs.iter().filter(|(_, reported)| reported.moves.done == 0).count() as u64,
        runs: runs.len() as u64,
        trouble,
    })
}

/// Sums the counts of texts that differ in numbers only, such as those of
/// processes; the first of them stands for all.
fn alike<'a>(counted: impl Iterator<Item = (&'a String, &'a u64)>) -> BTreeMap<String, u64> {
    let mut shapes: BTreeMap<String, (&str, u64)> = BTreeMap::new();
    for (text, count) in counted {
        let shape = text.split(|c: char| c.is_ascii_digit()).filter(|part| !part.is_empty());
        let entry = shapes.entry(shape.collect::<Vec<_>>().join("#")).or_insert((text, 0));
        entry.1 += count;
    }
    shapes.into_values().map(|(text, count)| (text.to_owned(), count)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_that_differ_in_numbers_only_are_one() {
        let reported =
            [("processes 12 and 345 differ", 6), ("processes 7 and 8 differ", 4), ("no", 1)]
                .map(|(text, count)| (text.to_owned(), count));
        let summed = alike(reported.iter().map(|(text, count)| (text, count)));
        let expected = [("no".to_owned(), 1), ("processes 12 and 345 differ".to_owned(), 10)];
        assert_eq!(summed, expected.into());
    }
}
