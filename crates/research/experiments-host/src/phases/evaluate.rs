//! From finished runs to figures.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use symbiont_linux::slow::SlowCpu;
use symbiont_synth::Ratio;

use super::checks::checks;
use super::managers::{Managers, managers};
use super::plan::{BASELINE, Grouping, POLICIES, Part, RunKind, TRIED};
use super::real::{self, Real};
use super::record::PhasesRecord;
use crate::harness::Check;
use symbiont_campaign::Error;
use symbiont_report::metrics;
use symbiont_report::stats::{self, Estimate};
use symbiont_report::theory;

/// The CPUs of the machine, as the model sees them.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Cpus {
    /// How many: the n of the paper.
    pub count: u32,
    /// How many times as fast as the others one of them is: the a of the paper;
    /// none if they differ in another way.
    pub large: Option<f64>,
    /// How many CPUs' time is left to programs: less where a CPU is made slow by
    /// taking it away for a part of the time.
    pub left: f64,
}

impl Cpus {
    /// CPUs that are all alike.
    #[must_use]
    pub fn alike(count: u32) -> Self {
        Self { count, large: Some(1.0), left: f64::from(count) }
    }

    /// CPUs of which these are slowed down.
    #[must_use]
    pub fn slowed(count: u32, slow: &[SlowCpu]) -> Self {
        let factor = slow.first().map_or(1.0, SlowCpu::factor);
        let which: BTreeMap<_, _> = slow.iter().map(|slow| (slow.cpu(), slow.factor())).collect();
        let alike = slow.iter().all(|slow| slow.factor() == factor);
        let all_but_one = u32::try_from(which.len() + 1) == Ok(count);
        let covered = slow.is_empty() || (alike && all_but_one);
        let taken: f64 = which.values().map(|factor| 1.0 - 1.0 / factor).sum();
        Self { count, large: covered.then_some(factor), left: f64::from(count) - taken }
    }

    /// The machine of the model; none if it does not cover it.
    #[must_use]
    pub fn model(self) -> Option<theory::Multiprocessor> {
        theory::Multiprocessor::new(self.count, self.large?).ok()
    }
}

/// All figures of a campaign.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Evaluation {
    /// The n and the a of the paper.
    pub cpus: Cpus,
    /// Each program alone, headline first.
    pub alone: Vec<Alone>,
    /// Each cell in each grouping, headline first.
    pub cells: Vec<PhasesCell>,
    /// The real programs; absent if they were left out.
    pub real: Option<Real>,
    /// What the managers reported, by policy.
    pub managers: Vec<Managers>,
    /// What the experiment has to show, and whether it does.
    pub checks: Vec<Check>,
}

/// A program alone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Alone {
    /// Of which part.
    pub part: Part,
    /// The program.
    pub ratio: Ratio,
    /// Iterations per second, in units of one thread on the idle machine.
    pub throughput: Estimate,
    /// Jitter of its times.
    pub jitter: Option<Estimate>,
}

/// Two programs side by side in one grouping.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PhasesCell {
    /// Of which part.
    pub part: Part,
    /// The programs.
    pub ratios: [Ratio; 2],
    /// In whose sessions.
    pub grouping: Grouping,
    /// Under [`BASELINE`].
    pub baseline: Outcome,
    /// Under [`TRIED`].
    pub tried: Outcome,
    /// What the tried policy changes.
    pub change: Change,
}

/// Two programs side by side under one policy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Speedup of each program (eq. 3).
    pub speedup: [Estimate; 2],
    /// Jitter of each program (eq. 6); absent for a single run.
    pub jitter: [Option<Estimate>; 2],
    /// Fairness (eq. 4) of the mean speedups.
    pub fairness: Estimate,
    /// Iterations per second of both, in units of one thread on the idle machine.
    pub throughput: Estimate,
    /// Share of the CPU time left to programs that neither of them used; absent
    /// where the kernel does not report it.
    pub idle: Option<Estimate>,
    /// What the model says; absent on machines with one CPU.
    pub prediction: Option<Prediction>,
}

/// What the model of Morad et al. says of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Prediction {
    /// Mean speedup of each program: Tables 1 and 3 for pure programs, their
    /// combination by a chain of joint states for mixed ones.
    pub speedup: [f64; 2],
    /// Least and largest speedup of each; only for pure programs.
    pub range: Option<[(f64, f64); 2]>,
    /// Fairness of the mean speedups.
    pub fairness: f64,
    /// In units of one thread on the idle machine.
    pub throughput: f64,
}

/// What the tried policy changes against the baseline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// Mean difference by round of the speedups of each program (Student's t).
    pub speedup: [Estimate; 2],
    /// Mean difference by round of the throughputs (Student's t).
    pub throughput: Estimate,
    /// Ratio of the mean throughputs.
    pub throughput_ratio: Estimate,
    /// Difference of the fairness of the mean speedups (jackknife; rounds in pairs, and runs alone).
    pub fairness: Estimate,
    /// Difference of the jitters of each program, rounds drawn anew as pairs.
    pub jitter: [Option<Estimate>; 2],
}

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

pub(super) fn prediction(
    scheduler: theory::Scheduler,
    cpus: Cpus,
    ratios: [Ratio; 2],
) -> Option<Prediction> {
    let machine = cpus.model()?;
    let program = |ratio: Ratio| {
        theory::Program::new(ratio.parallel_share(), 1.0 - ratio.parallel_share()).ok()
    };
    let predicted = theory::predict(scheduler, machine, program(ratios[0])?, program(ratios[1])?);
    let range = match ratios.map(pure) {
        [Some(own), Some(other)] => {
            let state = theory::JointState { own, other };
            let of = |state| {
                let speedups = theory::speedups(scheduler, machine, state);
                (speedups.min, speedups.max)
            };
            Some([of(state), of(state.reversed())])
        }
        _ => None,
    };
    Some(Prediction {
        speedup: predicted.speedup,
        range,
        fairness: predicted.fairness(),
        // Of the model in threads on a small CPU, here on the fastest.
        throughput: predicted.throughput / cpus.large?,
    })
}

/// The only phase of a pure program.
fn pure(ratio: Ratio) -> Option<theory::Phase> {
    match ratio {
        Ratio::PARALLEL => Some(theory::Phase::Parallel),
        Ratio::SERIAL => Some(theory::Phase::Serial),
        _ => None,
    }
}

fn progress_of(runs: &[Pair], slot: usize) -> Vec<f64> {
    runs.iter().map(|run| run.progress[slot]).collect()
}

fn mean(values: &[f64]) -> f64 {
    stats::mean(values).unwrap_or(f64::NAN)
}

impl PhasesCell {
    /// The outcomes with their policies, in the order of tables.
    #[must_use]
    pub fn outcomes(&self) -> [(&'static str, &Outcome); 2] {
        let [baseline, tried] = POLICIES;
        [(baseline, &self.baseline), (tried, &self.tried)]
    }

    /// "inf:1 co-running with 1:inf".
    #[must_use]
    pub fn name(&self) -> String {
        format!("{} co-running with {}", label(self.ratios[0]), label(self.ratios[1]))
    }
}

/// A ratio as the paper writes it.
#[must_use]
pub fn label(ratio: Ratio) -> String {
    ratio.to_string().replace("inf", "∞")
}
