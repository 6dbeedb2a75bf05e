//! From finished runs to figures.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::kernels::Kernel;
use super::plan::{OpenmpSize, RunKind, pairs};
use super::record::{KernelsRun, TimeSpent};
use crate::orders::{self, OrderComparison, OrderTimes, Under};
use crate::phases::plan::{BASELINE, TRIED};
use crate::phases::{Cpus, Grouping};
use symbiont_campaign::Error;
use symbiont_report::stats::{self, Estimate, StatsError};
use symbiont_report::theory;

/// All figures of the experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Evaluation {
    /// The CPUs.
    pub cpus: Cpus,
    /// Each kernel, and its time alone.
    pub alone: Vec<(Kernel, Estimate)>,
    /// Each pair in each grouping.
    pub cells: Vec<OpenmpCell>,
    /// Mean over all pairs of completion under the baseline over that under the policy, by grouping.
    pub completion: Vec<(Grouping, Estimate)>,
}

/// Two kernels in both orders in one grouping.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OpenmpCell {
    /// The kernels.
    pub kernels: [String; 2],
    /// In whose sessions.
    pub grouping: Grouping,
    /// The result.
    pub compared: OrderComparison,
    /// Where the time went, means.
    pub spent: Under<TimeSpent>,
    /// What the chain of joint states says: gain in throughput, and fairness under each.
    pub model: Option<(f64, Under<f64>)>,
}

/// Evaluates the finished runs.
///
/// # Errors
/// When runs are missing: each kernel must have run alone, and each pair under each policy.
pub(super) fn evaluate(
    done: &[KernelsRun],
    size: &OpenmpSize,
    kernels: &[Kernel],
    cpus: Cpus,
) -> Result<Evaluation, Error> {
    let mut alone = Vec::new();
    let mut known = BTreeMap::new();
    for kernel in kernels {
        let is = |run: &&KernelsRun| matches!(&run.run.cell, RunKind::Alone { kernel: name } if *name == kernel.name);
        let runs = done.iter().filter(is).filter_map(|run| run.record.outcomes.first());
        let times: Vec<f64> = runs.map(|outcome| outcome.end - outcome.begin).collect();
        let time = stats::mean_estimate(&times)?;
        known.insert(kernel.name.clone(), (times, kernel.parallel));
        alone.push((kernel.clone(), time));
    }
    let mut cells = Vec::new();
    let mut tooks: BTreeMap<Grouping, Vec<Under<Vec<OrderTimes>>>> = BTreeMap::new();
    for kernels in pairs(&size.kernels) {
        for &grouping in &size.groupings {
            let runs = |policy: &str| -> Vec<&KernelsRun> {
                let wanted =
                    RunKind::Both { kernels: kernels.clone(), policy: policy.to_owned(), grouping };
                done.iter().filter(|run| run.run.cell == wanted).collect()
            };
            let both = [runs(BASELINE), runs(TRIED)];
            let took = |runs: &Vec<&KernelsRun>| -> Vec<OrderTimes> {
                runs.iter().filter_map(|run| run.record.took()).collect()
            };
            let [stay, phases] = both.each_ref().map(took);
            let [Some(a), Some(b)] = kernels.each_ref().map(|name| known.get(name)) else {
                return Err(Error::evaluation("a kernel has not run alone"));
            };
            let compared = orders::compare([&a.0, &b.0], [&stay, &phases])?;
            let model = model(cpus, [a.1, b.1]);
            tooks.entry(grouping).or_default().push([stay, phases]);
            let (kernels, spent) = (kernels.clone(), both.each_ref().map(|runs| spent(runs)));
            cells.push(OpenmpCell { kernels, grouping, compared, spent, model });
        }
    }
    let completion = tooks.into_iter().map(|(grouping, pairs)| Ok((grouping, over_pairs(&pairs)?)));
    let completion = completion.collect::<Result<_, StatsError>>()?;
    Ok(Evaluation { cpus, alone, cells, completion })
}

/// Each round holds each pair once, so whole rounds are left out.
fn over_pairs(pairs: &[Under<Vec<OrderTimes>>]) -> Result<Estimate, StatsError> {
    let rounds = pairs.iter().flatten().map(Vec::len).min().unwrap_or_default();
    stats::jackknife(&[rounds], |taken| {
        let Some(taken) = taken.first() else { return f64::NAN };
        let of = |pair: &Under<Vec<OrderTimes>>| {
            orders::completion(pair.each_ref().map(Vec::as_slice), taken)
        };
        stats::mean(&pairs.iter().map(of).collect::<Vec<_>>()).unwrap_or(f64::NAN)
    })
}

fn spent(runs: &[&KernelsRun]) -> TimeSpent {
    let all: Vec<TimeSpent> = runs.iter().filter_map(|run| run.record.spent()).collect();
    let mean = |of: fn(&TimeSpent) -> f64| stats::mean(&all.iter().map(of).collect::<Vec<_>>());
    TimeSpent {
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
