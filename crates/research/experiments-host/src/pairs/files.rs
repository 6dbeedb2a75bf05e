//! The files for others: the matrix as CSV, and all figures as JSON. Neither has command lines in it.

use std::fs;
use std::path::Path;

use crate::harness::Machine;
use serde::Serialize;
use symbiont_campaign::Error;
use symbiont_topology::PuId;

use super::machine::Method;
use super::sharing::{Verdict, are_siblings};
use super::{Cited, CpuChoice, Found};

/// Raised when a reader of the old form would fail.
const FORMAT: u32 = 1;

#[derive(Serialize)]
struct Data<'a> {
    format: u32,
    version: &'static str,
    processor: Option<&'a String>,
    virtual_machine: bool,
    kernel: Option<&'a String>,
    cpus: [PuId; 2],
    chosen: CpuChoice,
    speeds: Method,
    rounds: u32,
    rounds_planned: u32,
    window_ms: u128,
    programs: &'a [String],
    /// Victim by co-runner.
    slowdowns: Vec<Vec<Cited>>,
    /// What sums predict of each cell from all others.
    predicted: &'a [Vec<Option<f64>>],
    sharing: Vec<Shared>,
}

#[derive(Serialize)]
struct Shared {
    cpus: [PuId; 2],
    slowdown: Cited,
    measured: Verdict,
    siblings_by_sys: bool,
}

/// Writes `pairs.csv` and `pairs.json`.
pub(super) fn write(folder: &Path, machine: &Machine, found: &Found) -> Result<(), Error> {
    let Found { sharing, cores, cpus, chosen, method, plan, even, matrix } = found;
    let row = |row: &Vec<_>| row.iter().map(|it| Cited::from(*it)).collect();
    let shared = sharing.iter().flat_map(|sharing| &sharing.pairs).map(|pair| Shared {
        cpus: [pair.cpus.0, pair.cpus.1],
        slowdown: pair.slowdown.into(),
        measured: pair.verdict,
        siblings_by_sys: are_siblings(pair.cpus, cores),
    });
    let data = Data {
        format: FORMAT,
        version: env!("CARGO_PKG_VERSION"),
        processor: machine.processor.as_ref(),
        virtual_machine: machine.virtual_machine,
        kernel: machine.kernel.as_ref(),
        cpus: [cpus.0, cpus.1],
        chosen: *chosen,
        speeds: *method,
        rounds: even.rounds,
        rounds_planned: even.planned,
        window_ms: plan.window.as_millis(),
        programs: &matrix.programs,
        slowdowns: matrix.slowdowns.iter().map(row).collect(),
        predicted: &matrix.predicted,
        sharing: shared.collect(),
    };
    let path = folder.join("pairs.json");
    let text = serde_json::to_string_pretty(&data).map_err(Error::json(&path))?;
    fs::write(&path, text + "\n").map_err(Error::io(&path))?;
    let path = folder.join("pairs.csv");
    fs::write(&path, matrix.csv()).map_err(Error::io(&path))
}
