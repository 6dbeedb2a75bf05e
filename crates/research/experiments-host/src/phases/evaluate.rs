//! From finished runs to figures.

use std::collections::BTreeMap;

use symbiont_synth::Ratio;

use super::checks::checks;
use super::figures::{Alone, Change, Evaluation, Outcome, PhasesCell};
use super::managers::managers;
use super::plan::{BASELINE, Grouping, Part, RunKind, TRIED};
use super::prediction::{Cpus, prediction};
use super::real;
use super::record::PhasesRecord;
use symbiont_campaign::Error;
use symbiont_report::metrics;
use symbiont_report::stats::{self, Estimate};
use symbiont_report::theory;

/// One run of a cell.
#[derive(Debug, Clone, Copy)]
struct Pair {
    round: u32,
    progress: [f64; 2],
    throughput: f64,
    /// CPU time of both per second.
    used: Option<f64>,
}

/// Runs of one program alone.
#[derive(Debug, Default)]
struct AloneRuns {
    progress: Vec<f64>,
    throughput: Vec<f64>,
}

/// Ratios have no order; their labels have.
type CellKey = (Part, [String; 2], Grouping);

#[derive(Debug, Default)]
struct Runs {
    ratios: Option<[Ratio; 2]>,
    by_policy: BTreeMap<String, Vec<Pair>>,
}

/// Evaluates the finished runs of a campaign. `rate` is that of one thread on
/// the idle machine, `seed` that of the bootstraps.
///
/// # Errors
/// When there are no runs to evaluate: for a cell that was run, each policy
/// and each program alone must have finished at least once.
pub fn evaluate(
    records: &[PhasesRecord],
    cpus: Cpus,
    rate: f64,
    seed: u64,
) -> Result<Evaluation, Error> {
    let mut alone: BTreeMap<(Part, String), AloneRuns> = BTreeMap::new();
    let mut together: BTreeMap<CellKey, Runs> = BTreeMap::new();
    let mut order: Vec<CellKey> = Vec::new();
    for record in records {
        match (&record.run.what, record.programs.as_slice()) {
            (RunKind::Alone { program }, [report]) => {
                let key = (record.run.part, program.ratio.to_string());
                let runs = alone.entry(key).or_default();
                runs.progress.push(report.progress_per_s());
                runs.throughput.push(report.iterations_per_s / rate);
            }
            (RunKind::Together { programs, policy, grouping }, [a, b]) => {
                let ratios = programs.map(|program| program.ratio);
                let key = (record.run.part, ratios.map(|r| r.to_string()), *grouping);
                if !together.contains_key(&key) {
                    order.push(key.clone());
                }
                let runs = together.entry(key).or_default();
                runs.ratios = Some(ratios);
                runs.by_policy.entry(policy.clone()).or_default().push(Pair {
                    round: record.run.round,
                    progress: [a.progress_per_s(), b.progress_per_s()],
                    throughput: (a.iterations_per_s + b.iterations_per_s) / rate,
                    used: a.cpu_s.zip(b.cpu_s).map(|(x, y)| x / a.elapsed_s + y / b.elapsed_s),
                });
            }
            (RunKind::RealAlone | RunKind::RealTogether { .. }, _) => {}
            _ => return Err(Error::evaluation(format!("{} has no results", record.run.id()))),
        }
    }
    let of_alone = |part: Part, ratio: Ratio| {
        alone
            .get(&(part, ratio.to_string()))
            .map(|runs| runs.progress.as_slice())
            .ok_or_else(|| Error::evaluation(format!("no run of {ratio} alone has finished")))
    };
    let mut cells = order
        .iter()
        .filter_map(|key| Some((key, together.get(key)?)))
        .filter_map(|(key, runs)| Some((key, runs.ratios?, &runs.by_policy)))
        .map(|((part, _, grouping), ratios, by_policy)| {
            let references = [of_alone(*part, ratios[0])?, of_alone(*part, ratios[1])?];
            let runs = [BASELINE, TRIED].map(|policy| by_policy.get(policy));
            let [Some(baseline), Some(tried)] = runs else {
                let cell = format!("{} co-running with {}", ratios[0], ratios[1]);
                return Err(Error::evaluation(format!("{cell} has not run under each policy")));
            };
            cell((*part, *grouping), ratios, references, (baseline, tried), cpus, seed)
        })
        .collect::<Result<Vec<_>, _>>()?;
    // Runs were shuffled; the report is not.
    cells.sort_by(|a, b| {
        let key = |cell: &PhasesCell| (cell.part, cell.grouping);
        let shares = |cell: &PhasesCell| cell.ratios.map(|r| -r.parallel_share());
        let [a0, a1] = shares(a);
        let [b0, b1] = shares(b);
        key(a).cmp(&key(b)).then(a0.total_cmp(&b0)).then(a1.total_cmp(&b1))
    });
    let mut alone = alone
        .iter()
        .map(|((part, ratio), runs)| {
            Ok(Alone {
                part: *part,
                ratio: ratio.parse().map_err(|error| Error::evaluation(format!("{error}")))?,
                throughput: stats::mean_estimate(&runs.throughput)?,
                jitter: jitter(&runs.progress, seed)?,
            })
        })
        .collect::<Result<Vec<_>, Error>>()?;
    alone.sort_by(|a, b| {
        let share = |alone: &Alone| -alone.ratio.parallel_share();
        a.part.cmp(&b.part).then(share(a).total_cmp(&share(b)))
    });
    let wall_s = records.iter().map(|record| record.wall_s).sum();
    let checks = checks(&cells, wall_s);
    let real = real::evaluate(records, cpus, seed)?;
    Ok(Evaluation { cpus, alone, cells, real, managers: managers(records), checks })
}

/// What the serial program of the headline cell gains by the tried policy in one session, in units of its
/// performance alone: a figure for each round that ran under both.
pub(super) fn serial_gains(records: &[PhasesRecord]) -> Vec<f64> {
    let of = |record: &PhasesRecord| {
        let serial = record.programs.iter().find(|program| program.ratio == Ratio::SERIAL)?;
        (record.run.part == Part::Headline).then(|| serial.progress_per_s())
    };
    let runs = |wanted: Option<(&str, Grouping)>| -> Vec<(u32, f64)> {
        let some = records.iter().filter(|record| record.run.what.managed() == wanted);
        some.filter_map(|record| Some((record.run.round, of(record)?))).collect()
    };
    let alone: Vec<f64> = runs(None).into_iter().map(|(_, progress)| progress).collect();
    let alone = mean(&alone);
    let [baseline, tried] =
        [BASELINE, TRIED].map(|policy| runs(Some((policy, Grouping::OneSession))));
    let gain = |(round, progress): (u32, f64)| {
        let (_, other) = baseline.iter().find(|(other, _)| *other == round)?;
        Some((progress - other) / alone)
    };
    tried.into_iter().filter_map(gain).collect()
}

fn cell(
    (part, grouping): (Part, Grouping),
    ratios: [Ratio; 2],
    alone: [&[f64]; 2],
    (baseline, tried): (&Vec<Pair>, &Vec<Pair>),
    cpus: Cpus,
    seed: u64,
) -> Result<PhasesCell, Error> {
    let of = |policy, runs| outcome(policy, runs, ratios, alone, cpus, seed);
    Ok(PhasesCell {
        part,
        ratios,
        grouping,
        baseline: of(theory::Scheduler::Baseline, baseline)?,
        tried: of(theory::Scheduler::Proposed, tried)?,
        change: change(baseline, tried, alone, seed)?,
    })
}

fn outcome(
    scheduler: theory::Scheduler,
    runs: &[Pair],
    ratios: [Ratio; 2],
    alone: [&[f64]; 2],
    cpus: Cpus,
    seed: u64,
) -> Result<Outcome, Error> {
    let progress = |slot: usize| progress_of(runs, slot);
    let speedup = |slot: usize| {
        stats::ratio_of_means(&progress(slot), alone[slot]).map_err(Error::evaluation)
    };
    let throughput: Vec<f64> = runs.iter().map(|run| run.throughput).collect();
    Ok(Outcome {
        speedup: [speedup(0)?, speedup(1)?],
        jitter: [jitter(&progress(0), seed)?, jitter(&progress(1), seed)?],
        fairness: stats::jackknife(&[runs.len(), alone[0].len(), alone[1].len()], |taken| {
            fairness(runs, alone, taken)
        })?,
        throughput: stats::mean_estimate(&throughput)?,
        idle: idle(runs, cpus)?,
        prediction: prediction(scheduler, cpus, ratios),
    })
}

/// Fairness of the mean speedups of the runs with these numbers, over those alone with these.
fn fairness(runs: &[Pair], alone: [&[f64]; 2], taken: &[Vec<usize>]) -> f64 {
    let [together, apart @ ..] = taken else { return f64::NAN };
    let speedups: Vec<f64> = (apart.iter().zip(alone).enumerate())
        .map(|(slot, (numbers, alone))| {
            let own = together.iter().filter_map(|run| Some(runs.get(*run)?.progress[slot]));
            let apart = numbers.iter().filter_map(|run| alone.get(*run).copied());
            mean(&own.collect::<Vec<_>>()) / mean(&apart.collect::<Vec<_>>())
        })
        .collect();
    metrics::fairness(&speedups).unwrap_or(f64::NAN)
}

/// Mean share of the unused CPU time; absent if a run does not report it.
fn idle(runs: &[Pair], cpus: Cpus) -> Result<Option<Estimate>, Error> {
    let used: Option<Vec<f64>> = runs.iter().map(|run| run.used).collect();
    used.map(|used| {
        let idle: Vec<f64> = used.iter().map(|used| 1.0 - used / cpus.left).collect();
        stats::mean_estimate(&idle).map_err(Error::evaluation)
    })
    .transpose()
}

fn change(
    baseline: &[Pair],
    tried: &[Pair],
    alone: [&[f64]; 2],
    seed: u64,
) -> Result<Change, Error> {
    // Within a round both policies met the same programs.
    let difference = |of: &dyn Fn(&Pair) -> f64| {
        let by_round: Vec<f64> = tried
            .iter()
            .filter_map(|run| {
                let other = baseline.iter().find(|other| other.round == run.round)?;
                Some(of(run) - of(other))
            })
            .collect();
        stats::mean_estimate(&by_round).map_err(Error::evaluation)
    };
    let speedup = |slot: usize| difference(&|run| run.progress[slot] / mean(alone[slot]));
    let throughputs =
        |runs: &[Pair]| -> Vec<f64> { runs.iter().map(|run| run.throughput).collect() };
    let (with, without) = (throughputs(tried), throughputs(baseline));
    let rounds: (Vec<Pair>, Vec<Pair>) = (tried.iter())
        .filter_map(|run| Some((*run, *baseline.iter().find(|other| other.round == run.round)?)))
        .unzip();
    let counts = [rounds.0.len(), alone[0].len(), alone[1].len()];
    let fairer = |taken: &[Vec<usize>]| {
        fairness(&rounds.0, alone, taken) - fairness(&rounds.1, alone, taken)
    };
    Ok(Change {
        fairness: stats::jackknife(&counts, fairer)?,
        speedup: [speedup(0)?, speedup(1)?],
        throughput: difference(&|run| run.throughput)?,
        throughput_ratio: stats::ratio_of_means(&with, &without)?,
        jitter: [
            jitter_change(baseline, tried, 0, seed)?,
            jitter_change(baseline, tried, 1, seed)?,
        ],
    })
}

/// Difference of jitters; whole rounds are drawn anew, so that what a round's
/// programs and the machine's mood did to both policies cancels.
fn jitter_change(
    baseline: &[Pair],
    tried: &[Pair],
    slot: usize,
    seed: u64,
) -> Result<Option<Estimate>, Error> {
    let pairs: Vec<(f64, f64)> = tried
        .iter()
        .filter_map(|run| {
            let other = baseline.iter().find(|other| other.round == run.round)?;
            Some((1.0 / run.progress[slot], 1.0 / other.progress[slot]))
        })
        .collect();
    if pairs.len() < 2 || pairs.iter().any(|(a, b)| !(a.is_finite() && b.is_finite())) {
        return Ok(None);
    }
    stats::over_rounds(pairs.len(), seed, |rounds| {
        let drawn = rounds.iter().filter_map(|round| pairs.get(*round).copied());
        let (with, without): (Vec<f64>, Vec<f64>) = drawn.unzip();
        match (metrics::jitter(&with), metrics::jitter(&without)) {
            (Some(with), Some(without)) => with - without,
            _ => f64::NAN,
        }
    })
    .map(Some)
    .map_err(Error::evaluation)
}

/// Jitter from performances: of the times per unit of progress.
fn jitter(progress: &[f64], seed: u64) -> Result<Option<Estimate>, Error> {
    let times: Vec<f64> = progress.iter().map(|progress| 1.0 / progress).collect();
    if metrics::jitter(&times).is_none() {
        return Ok(None);
    }
    stats::bootstrap(&times, |times| metrics::jitter(times).unwrap_or(f64::NAN), seed)
        .map(Some)
        .map_err(Error::evaluation)
}

fn progress_of(runs: &[Pair], slot: usize) -> Vec<f64> {
    runs.iter().map(|run| run.progress[slot]).collect()
}

fn mean(values: &[f64]) -> f64 {
    stats::mean(values).unwrap_or(f64::NAN)
}
