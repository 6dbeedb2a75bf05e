//! From finished runs to figures.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::measure::Costs;
use super::measure::Done;
use super::plan::Load;
use symbiont_campaign::harness::{Check, Error, Verdict};
use symbiont_report::number;
use symbiont_report::stats::{self, Estimate};

/// Cost of reading that is allowed, in µs for each thread and quantum.
pub const READ_US: f64 = 10.0;
/// The quantum to which a share is related.
pub const QUANTUM: Duration = Duration::from_millis(100);

/// All figures of the experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Evaluation {
    /// Each load, quiet ones first, fewest threads first.
    pub rows: Vec<Row>,
    /// What the experiment has to show, and whether it does.
    pub checks: Vec<Check>,
}

/// Figures of one load; costs in µs of CPU time for each counted thread.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Which load.
    pub load: Load,
    /// Threads that were counted, the fewest of all runs.
    pub counted: u32,
    /// Opening.
    pub open_us: Estimate,
    /// Reading, each quantum.
    pub read_us: Estimate,
    /// Turning to the other group, each quantum.
    pub turn_us: Estimate,
    /// Closing.
    pub close_us: Estimate,
    /// Share of one CPU that reading all threads takes, at [`QUANTUM`].
    pub share: Estimate,
    /// Memory of the kernel, bytes for each event.
    pub event_bytes: Option<Estimate>,
}

/// Evaluates the finished runs.
///
/// # Errors
/// When there are none.
pub fn evaluate(done: &[Done]) -> Result<Evaluation, Error> {
    let mut by_load: BTreeMap<Load, Vec<Costs>> = BTreeMap::new();
    for done in done {
        by_load.entry(done.run.cell).or_default().push(done.record);
    }
    let rows =
        by_load.iter().map(|(load, costs)| row(*load, costs)).collect::<Result<Vec<_>, _>>()?;
    if rows.is_empty() {
        return Err(Error::Evaluation("no run has finished".to_owned()));
    }
    Ok(Evaluation { checks: rows.iter().map(check).collect(), rows })
}

fn row(load: Load, costs: &[Costs]) -> Result<Row, Error> {
    let mean = |of: &dyn Fn(&Costs) -> f64| {
        let values: Vec<f64> = costs.iter().map(of).collect();
        stats::mean_estimate(&values).map_err(|error| Error::Evaluation(format!("{load}: {error}")))
    };
    let quantum_us = QUANTUM.as_secs_f64() * 1e6;
    let bytes: Option<Vec<f64>> = costs.iter().map(|costs| costs.event_bytes).collect();
    Ok(Row {
        load,
        counted: costs.iter().map(|costs| costs.counted).min().unwrap_or(0),
        open_us: mean(&|costs| costs.open_us)?,
        read_us: mean(&|costs| costs.read_us)?,
        turn_us: mean(&|costs| costs.turn_us)?,
        close_us: mean(&|costs| costs.close_us)?,
        share: mean(&|costs| costs.read_us * f64::from(costs.counted) / quantum_us)?,
        event_bytes: bytes.and_then(|bytes| stats::mean_estimate(&bytes).ok()),
    })
}

fn check(row: &Row) -> Check {
    let percent = number::plain(100.0 * row.share.value);
    Check {
        requirement: format!(
            "{}: reading 6 events takes at most {READ_US} µs per thread and quantum",
            row.load
        ),
        measured: Some(row.read_us),
        reference: format!("{percent} % of one CPU at {} ms", QUANTUM.as_millis()),
        verdict: Verdict::of(row.read_us.value <= READ_US && row.counted == row.load.threads),
    }
}
