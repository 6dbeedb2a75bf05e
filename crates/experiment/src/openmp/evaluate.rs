//! From finished runs to figures.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::campaign::{Record, Spent};
use super::kernels::Kernel;
use super::plan::{Size, What, pairs};
use crate::harness::Error;
use crate::orders::{self, Compared, Took, Under};
use crate::phases::plan::{BASELINE, TRIED};
use crate::phases::{Cpus, Grouping};
use crate::stats::{self, Estimate, StatsError};
use crate::theory::phases as theory;

/// All figures of a campaign.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Evaluation {
    /// The CPUs.
    pub cpus: Cpus,
    /// Each kernel, and its time alone.
    pub alone: Vec<(Kernel, Estimate)>,
    /// Each pair in each grouping.
    pub cells: Vec<Cell>,
}

/// Two kernels in both orders in one grouping.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// Which.
    pub kernels: [String; 2],
    /// In whose sessions.
    pub grouping: Grouping,
    /// What came out.
    pub compared: Compared,
    /// Where the time went, means.
    pub spent: Under<Spent>,
    /// What the chain of joint states says: gain in throughput, and fairness under each.
    pub model: Option<(f64, Under<f64>)>,
}

/// Evaluates the finished runs of a campaign; `seed` is that of the bootstraps.
///
/// # Errors
/// When runs are missing: each kernel must have run alone, and each pair under each policy.
pub fn evaluate(
    records: &[Record],
    size: &Size,
    kernels: &[Kernel],
    cpus: Cpus,
    seed: u64,
) -> Result<Evaluation, Error> {
    let no_estimate = |error: StatsError| Error::Evaluation(error.to_string());
    let mut alone = Vec::new();
    let mut means = BTreeMap::new();
    for kernel in kernels {
        let is = |record: &&Record| matches!(&record.run.what, What::Alone { kernel: name } if *name == kernel.name);
        let runs = records.iter().filter(is).filter_map(|record| record.told.first());
        let times: Vec<f64> = runs.map(|told| told.end - told.begin).collect();
        let time = stats::mean_estimate(&times).map_err(no_estimate)?;
        means.insert(kernel.name.clone(), (time.value, kernel.parallel));
        alone.push((kernel.clone(), time));
    }
    let mut cells = Vec::new();
    for kernels in pairs(&size.kernels) {
        for &grouping in &size.groupings {
            let runs = |policy: &str| -> Vec<&Record> {
                let wanted =
                    What::Both { kernels: kernels.clone(), policy: policy.to_owned(), grouping };
                let mut runs: Vec<&Record> =
                    records.iter().filter(|record| record.run.what == wanted).collect();
                runs.sort_by_key(|record| record.run.round);
                runs
            };
            let both = [runs(BASELINE), runs(TRIED)];
            let took = |runs: &Vec<&Record>| -> Vec<Took> {
                runs.iter().filter_map(|record| record.took()).collect()
            };
            let [stay, phases] = both.each_ref().map(took);
            let known = kernels.each_ref().map(|name| means.get(name).copied());
            let [Some(a), Some(b)] = known else {
                return Err(Error::Evaluation("a kernel has not run alone".to_owned()));
            };
            let compared =
                orders::compare([a.0, b.0], [&stay, &phases], seed).map_err(no_estimate)?;
            let model = model(cpus, [a.1, b.1]);
            let (kernels, spent) = (kernels.clone(), both.each_ref().map(|runs| spent(runs)));
            cells.push(Cell { kernels, grouping, compared, spent, model });
        }
    }
    Ok(Evaluation { cpus, alone, cells })
}

fn spent(runs: &[&Record]) -> Spent {
    let all: Vec<Spent> = runs.iter().filter_map(|record| record.spent()).collect();
    let mean = |of: fn(&Spent) -> f64| stats::mean(&all.iter().map(of).collect::<Vec<_>>());
    Spent {
        cpu_s: mean(|spent| spent.cpu_s).unwrap_or_default(),
        alone_s: mean(|spent| spent.alone_s).unwrap_or_default(),
    }
}

fn model(cpus: Cpus, parallel: [f64; 2]) -> Option<(f64, Under<f64>)> {
    let machine = cpus.model()?;
    let program = |share: f64| theory::Program::new(share, 1.0 - share).ok();
    let (a, b) = (program(parallel[0])?, program(parallel[1])?);
    let [stay, phases] = [theory::Scheduler::Baseline, theory::Scheduler::Proposed]
        .map(|scheduler| theory::predict(scheduler, machine, a, b));
    let gain = phases.throughput / stay.throughput - 1.0;
    Some((gain, [stay.fairness(), phases.fairness()]))
}
