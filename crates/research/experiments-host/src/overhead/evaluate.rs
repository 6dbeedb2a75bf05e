//! From finished runs to figures.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::plan::Load;
use super::record::{Done, OverheadRecord};
use symbiont_campaign::harness::{Check, Costs, Error, Verdict};
use symbiont_report::number;
use symbiont_report::stats::{self, Estimate};

/// Cost that is allowed, in µs per thread and quantum.
pub const COST_US: f64 = 10.0;
/// Growth of the cost per thread, from 512 to 2,048 threads, that still counts
/// as linear.
pub const GROWTH: f64 = 1.25;
/// Memory that is allowed: so many KiB, and so many more for each thread.
pub const MEMORY_KB: (f64, f64) = (20.0 * 1024.0, 4.0);
/// Median lateness that is allowed co-running with busy threads, in ms.
pub const LATENESS_MS: f64 = 5.0;

/// All figures of the experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Evaluation {
    /// Each load, sleepers first, fewest threads first.
    pub rows: Vec<Row>,
    /// µs per quantum over managed threads, sleepers only.
    pub cost_line: Option<Line>,
    /// KiB over managed threads, sleepers only.
    pub memory_line: Option<Line>,
    /// What the experiment has to show, and whether it does.
    pub checks: Vec<Check>,
}

/// Figures of one load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Which load.
    pub load: Load,
    /// Threads managed per quantum, on average.
    pub threads: Estimate,
    /// µs per thread and quantum.
    pub cost_us: Estimate,
    /// µs per quantum.
    pub quantum_us: Estimate,
    /// CPU time until the loop began, in ms; not in the figures above.
    pub start_ms: Estimate,
    /// Share of one CPU that the manager takes, starting included.
    pub share: Estimate,
    /// KiB; absent where the kernel does not report it.
    pub memory_kb: Option<Estimate>,
    /// Median lateness of a run, mean over runs, in ms.
    pub lateness_median_ms: Option<Estimate>,
    /// 95th percentile of the lateness of a run, mean over runs, in ms.
    pub lateness_p95_ms: Option<Estimate>,
    /// Share of the quanta that were over before the loop came to wait.
    pub missed: f64,
    /// Largest lateness of all runs, in ms.
    pub lateness_max_ms: Option<f64>,
}

/// A straight line by least squares.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// At zero threads.
    pub fixed: f64,
    /// For each thread.
    pub per_thread: f64,
}

impl Line {
    /// The line nearest to points; absent for fewer than two different x.
    #[must_use]
    pub fn fit(points: &[(f64, f64)]) -> Option<Self> {
        let count = points.len() as f64;
        let mean_x = points.iter().map(|(x, _)| x).sum::<f64>() / count;
        let mean_y = points.iter().map(|(_, y)| y).sum::<f64>() / count;
        let spread: f64 = points.iter().map(|(x, _)| (x - mean_x).powi(2)).sum();
        let joint: f64 = points.iter().map(|(x, y)| (x - mean_x) * (y - mean_y)).sum();
        let per_thread = joint / spread;
        per_thread.is_finite().then_some(Self { fixed: mean_y - per_thread * mean_x, per_thread })
    }
}

/// Evaluates the finished runs.
///
/// # Errors
/// When there are none, or one of them managed no thread.
pub fn evaluate(done: &[Done]) -> Result<Evaluation, Error> {
    let mut by_load: BTreeMap<Load, Vec<&OverheadRecord>> = BTreeMap::new();
    for done in done {
        by_load.entry(done.run.cell).or_default().push(&done.record);
    }
    let rows =
        by_load.iter().map(|(load, runs)| row(*load, runs)).collect::<Result<Vec<_>, _>>()?;
    if rows.is_empty() {
        return Err(Error::Evaluation("no run has finished".to_owned()));
    }
    let sleepers = || rows.iter().filter(|row| matches!(row.load, Load::Sleepers(_)));
    let line = |of: fn(&Row) -> Option<Estimate>| {
        let point = |row: &Row| Some((row.threads.value, of(row)?.value));
        Line::fit(&sleepers().filter_map(point).collect::<Vec<_>>())
    };
    let checks = checks(&rows, growth(&by_load));
    Ok(Evaluation {
        cost_line: line(|row| Some(row.quantum_us)),
        memory_line: line(|row| row.memory_kb),
        checks,
        rows,
    })
}

fn row(load: Load, runs: &[&OverheadRecord]) -> Result<Row, Error> {
    let mean = |of: &dyn Fn(&OverheadRecord) -> f64| {
        let values: Vec<f64> = runs.iter().map(|record| of(record)).collect();
        stats::mean_estimate(&values).map_err(|error| Error::Evaluation(format!("{load}: {error}")))
    };
    // Absent for all runs if it is for one.
    let mean_if_reported = |of: &dyn Fn(&OverheadRecord) -> Option<f64>| {
        let values: Option<Vec<f64>> = runs.iter().map(|record| of(record)).collect();
        values.and_then(|values| stats::mean_estimate(&values).ok())
    };
    let lateness = |record: &OverheadRecord| record.managed.lateness_ms;
    let quanta = |record: &OverheadRecord| record.managed.manager.quanta as f64;
    let thread_quanta = |record: &OverheadRecord| record.managed.manager.thread_quanta as f64;
    Ok(Row {
        load,
        threads: mean(&|record| thread_quanta(record) / quanta(record))?,
        cost_us: mean(&cost_us)?,
        quantum_us: mean(&|record| cpu_us(record) / quanta(record))?,
        start_ms: mean(&|record| record.managed.manager.start_ns as f64 / 1e6)?,
        share: mean(&|record| record.managed.manager.cpu_ns as f64 / 1e9 / record.wall_s)?,
        memory_kb: mean_if_reported(&|record| Some(record.managed.manager.rss_kb? as f64)),
        lateness_median_ms: mean_if_reported(&|record| Some(lateness(record)?.median)),
        lateness_p95_ms: mean_if_reported(&|record| Some(lateness(record)?.p95)),
        missed: runs.iter().filter_map(|r| Some(lateness(r)?.missed as f64)).sum::<f64>()
            / runs.iter().map(|record| quanta(record)).sum::<f64>(),
        lateness_max_ms: runs
            .iter()
            .filter_map(|record| Some(lateness(record)?.max))
            .reduce(f64::max),
    })
}

/// Cost per thread at 2,048 sleepers over that at 512.
fn growth(by_load: &BTreeMap<Load, Vec<&OverheadRecord>>) -> Option<Estimate> {
    let costs = |load| -> Option<Vec<f64>> {
        Some(by_load.get(&load)?.iter().map(|record| cost_us(record)).collect())
    };
    let (many, few) = (costs(Load::Sleepers(2048))?, costs(Load::Sleepers(512))?);
    stats::ratio_of_means(&many, &few).ok()
}

/// From the first quantum to the last.
fn cpu_us(record: &OverheadRecord) -> f64 {
    let Costs { cpu_ns, start_ns, .. } = record.managed.manager;
    cpu_ns.saturating_sub(start_ns) as f64 / 1e3
}

/// µs per thread and quantum.
fn cost_us(record: &OverheadRecord) -> f64 {
    cpu_us(record) / record.managed.manager.thread_quanta as f64
}

fn checks(rows: &[Row], growth: Option<Estimate>) -> Vec<Check> {
    let mut checks = Vec::new();
    for row in rows.iter().filter(|row| matches!(row.load, Load::Sleepers(_))) {
        checks.push(Check {
            requirement: format!("{}: at most {COST_US} µs per thread and quantum", row.load),
            measured: Some(row.cost_us),
            reference: reference(row, rows),
            verdict: at_most(Some(row.cost_us), COST_US),
        });
    }
    if let Some(growth) = growth {
        checks.push(Check {
            requirement: format!(
                "the cost grows linearly: from 512 to 2048 threads, the cost per thread grows at \
                 most {GROWTH} times"
            ),
            measured: Some(growth),
            reference: "1 is exactly linear".to_owned(),
            verdict: at_most(Some(growth), GROWTH),
        });
    }
    for row in rows.iter().filter(|row| matches!(row.load, Load::Sleepers(_))) {
        let (fixed, per_thread) = MEMORY_KB;
        let allowed = fixed + per_thread * f64::from(row.load.threads());
        checks.push(Check {
            requirement: format!(
                "{}: memory at most 20 MiB + 4 KiB a thread = {allowed:.0} KiB",
                row.load
            ),
            measured: row.memory_kb,
            reference: "KiB".to_owned(),
            verdict: at_most(row.memory_kb, allowed),
        });
    }
    for row in rows.iter().filter(|row| matches!(row.load, Load::Busy(_))) {
        let p95 = row.lateness_p95_ms.map_or("unknown".to_owned(), |p95| number::estimate(&p95));
        let max = row.lateness_max_ms.map_or("unknown".to_owned(), number::plain);
        checks.push(Check {
            requirement: format!("{}: median lateness at most {LATENESS_MS} ms", row.load),
            measured: row.lateness_median_ms,
            reference: format!(
                "95th percentile {p95} ms, largest {max} ms; {:.1} % of the quanta were over \
                 before the loop came to wait for their end",
                100.0 * row.missed
            ),
            verdict: at_most(row.lateness_median_ms, LATENESS_MS),
        });
    }
    checks
}

/// What a bare loop costs for the same threads, where that was measured.
fn reference(row: &Row, rows: &[Row]) -> String {
    let quantum = format!("{} µs per quantum", number::estimate(&row.quantum_us));
    let bare = Load::Bare(row.load.threads());
    match rows.iter().find(|row| row.load == bare) {
        None => quantum,
        Some(bare) => format!(
            "{quantum}; a bare loop that only wakes and reads two files of each thread: {} µs \
             per thread and quantum",
            number::estimate(&bare.cost_us)
        ),
    }
}

fn at_most(measured: Option<Estimate>, allowed: f64) -> Verdict {
    measured.map_or(Verdict::Undecided, |measured| Verdict::of(measured.value <= allowed))
}
