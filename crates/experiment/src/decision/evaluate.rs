//! From finished runs to figures.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::plan::{Done, Load};
use symbiont_campaign::harness::{Check, Error, Verdict};
use symbiont_report::number;
use symbiont_report::stats::{self, Estimate};

/// Most time that a decision may take, ms, by threads and by threads of a core; none: any.
pub const LIMITS: [(u32, Option<u32>, f64); 2] = [(40, Some(4), 1.0), (1024, None, 100.0)];

/// All figures of the experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Evaluation {
    /// Each load.
    pub rows: Vec<Row>,
    /// What the experiment has to show, and whether it does.
    pub checks: Vec<Check>,
}

/// Figures of one load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Which load.
    pub load: Load,
    /// Time of the first decision, ms, mean over rounds.
    pub first_ms: Estimate,
    /// Median time of a later one, ms, mean over rounds.
    pub median_ms: Estimate,
    /// The longest of all, ms.
    pub most_ms: f64,
    /// Exponent of growth since the next smaller number of threads, by medians.
    pub growth: Option<f64>,
}

/// Evaluates the finished runs.
///
/// # Errors
/// When there are none, or one has no times.
pub fn evaluate(done: &[Done]) -> Result<Evaluation, Error> {
    let mut by_load: BTreeMap<Load, Vec<&[f64]>> = BTreeMap::new();
    for done in done {
        by_load.entry(done.run.cell).or_default().push(&done.record);
    }
    let mut rows: Vec<Row> = Vec::with_capacity(by_load.len());
    for (load, runs) in by_load {
        let mean = |each: Vec<f64>| {
            stats::mean_estimate(&each).map_err(|why| Error::Evaluation(format!("{load}: {why}")))
        };
        let first_ms = mean(runs.iter().filter_map(|times| times.first().copied()).collect())?;
        let later = |times: &&[f64]| stats::median(times.get(1..)?);
        let median_ms = mean(runs.iter().filter_map(later).collect())?;
        let kind = |load: &Load| (load.stack, load.smt);
        let before = rows.last().filter(|row| kind(&row.load) == kind(&load));
        let growth = before.map(|row| {
            let more = f64::from(load.threads) / f64::from(row.load.threads);
            (median_ms.value / row.median_ms.value).ln() / more.ln()
        });
        let later = runs.iter().flat_map(|times| times.iter().skip(1));
        let most_ms = later.copied().fold(0.0, f64::max);
        rows.push(Row { load, first_ms, median_ms, most_ms, growth });
    }
    if rows.is_empty() {
        return Err(Error::Evaluation("no run has finished".to_owned()));
    }
    Ok(Evaluation { checks: rows.iter().filter_map(check).collect(), rows })
}

fn check(row: &Row) -> Option<Check> {
    let limit = LIMITS.into_iter().find(|(threads, smt, _)| {
        *threads == row.load.threads && smt.is_none_or(|smt| smt == row.load.smt)
    });
    let (_, _, limit_ms) = limit?;
    Some(Check {
        requirement: format!("{}: a decision takes at most {limit_ms} ms", row.load),
        measured: Some(row.median_ms),
        reference: format!(
            "the longest took {} ms, the first one, before anything was grouped, {} ms",
            number::plain(row.most_ms),
            number::plain(row.first_ms.value)
        ),
        verdict: Verdict::of(row.median_ms.value <= limit_ms),
    })
}
