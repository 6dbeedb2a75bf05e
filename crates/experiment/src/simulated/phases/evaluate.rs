//! From finished runs to figures.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use symbiont_policy::Phases;
use symbiont_synth::Ratio;

use super::carry_out::{Record, Timed, cycle_s};
use super::plan::{CORES, MACHINES, Part, Size, What};
use crate::harness::Error;
use crate::metrics;
use crate::orders::{self, Compared, Took, Under};
use crate::phases::plan::POLICIES;
use crate::stats::{self, Estimate, StatsError, mean};
use crate::theory::phases as theory;

/// All figures of the experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Evaluation {
    /// Fig. 6 and 7.
    pub points: Vec<Point>,
    /// Tables 4 and 5 and Fig. 8, by machine.
    pub matrices: Vec<Matrix>,
    /// Fig. 5, by machine and pair.
    pub ordered: Vec<Ordered>,
}

/// A serial program beside a parallel one on some cores.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// By its place in [`super::MACHINES`].
    pub machine: usize,
    /// Cores.
    pub cores: u32,
    /// The serial program's performance, in threads on a small core.
    pub performance: Under<Estimate>,
    /// The least and the most that a run brought.
    pub range: Under<(f64, f64)>,
    /// Least, average and most that section 5 and Table 3 say.
    pub model: Under<(f64, f64, f64)>,
    /// Jitter of its times.
    pub jitter: Under<f64>,
}

/// All pairs on one machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Matrix {
    /// By its place in [`super::MACHINES`].
    pub machine: usize,
    /// Each pair.
    pub cells: Vec<Cell>,
    /// Mean over the pairs.
    pub mean: Figures,
}

/// Two programs side by side.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// Which.
    pub ratios: [Ratio; 2],
    /// What came out.
    pub figures: Figures,
    /// What the chain of joint states predicts from Tables 1 and 3.
    pub model: Option<Predicted>,
}

/// What Tables 1 and 3 say of a pair, by the chain of joint states
/// ([`crate::theory::phases::predict`]), and what they say with the seniority boost, which
/// they do not know ([`crate::theory::phases::predict_with_seniority`]).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Predicted {
    /// Gain in throughput.
    pub gain: f64,
    /// Fairness (eq. 4) of the performances that they say against what each program
    /// reached alone here: the simulated OS gives a lone thread the large core, which the
    /// tables' reference does by chance only.
    pub fairness: Under<f64>,
    /// The same by Table 3 and seniority, as the policy grants it.
    pub with_seniority: f64,
    /// On cores that are all alike: how often a serial thread shared its core under `stay`, and
    /// fairness by Table 1 with that; none where none was seen beside a parallel program.
    pub sharing: Option<Shared>,
}

/// What serial threads that share their cores more or less often than by chance make of Table 1
/// ([`crate::theory::phases::predict_with_sharing`]).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Shared {
    /// Of the looks at a serial thread beside a parallel program under `stay`, the share in which
    /// it shared its core.
    pub share: f64,
    /// Fairness of the performances that Table 1 says with that.
    pub fairness: f64,
}

/// By how much a pair's fairness departs from what is predicted for it: measured less
/// predicted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Departures {
    /// Under `stay` from Table 1.
    pub stay: f64,
    /// Under `stay` from Table 1 with serial threads sharing their cores as they did.
    pub with_sharing: Option<f64>,
    /// Under `phases` from Table 3.
    pub phases: f64,
    /// Under `phases` from Table 3 and seniority.
    pub with_seniority: f64,
}

impl Departures {
    /// Those of a pair for which something is predicted.
    pub(super) fn of(cell: &Cell) -> Option<Self> {
        let model = cell.model?;
        let [stay, phases] = cell.figures.fairness.map(|fairness| fairness.value);
        Some(Self {
            stay: stay - model.fairness[0],
            with_sharing: model.sharing.map(|sharing| stay - sharing.fairness),
            phases: phases - model.fairness[1],
            with_seniority: phases - model.with_seniority,
        })
    }
}

/// What a pair, or the mean pair, brings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// Gain in throughput.
    pub gain: Estimate,
    /// Fairness of the mean speedups.
    pub fairness: Under<Estimate>,
    /// By how much it rises.
    pub fairness_change: Estimate,
    /// Mean fairness of the single runs: lower, as chance favours one program in each.
    pub run_fairness: Under<Estimate>,
    /// Jitter of the times per work, mean of both programs.
    pub jitter: Under<Estimate>,
    /// Share of the cores' time in which they ran nobody.
    pub idle: Under<Estimate>,
}

/// Two programs in both orders (Fig. 5).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ordered {
    /// By its place in [`super::MACHINES`].
    pub machine: usize,
    /// Which.
    pub ratios: [Ratio; 2],
    /// What came out.
    pub compared: Compared,
}

/// A run of a pair.
#[derive(Debug, Clone, Copy)]
struct Pair {
    performance: [f64; 2],
    idle: f64,
    sharing: Option<f64>,
}

/// Evaluates finished runs; `factors` are the a of each machine, `seed` that of
/// the bootstraps.
///
/// # Errors
/// When runs are missing.
pub fn evaluate(
    records: &[Record],
    size: &Size,
    factors: &[f64],
    seed: u64,
) -> Result<Evaluation, Error> {
    let all = Runs { records, factors, seed };
    let machines = 0..factors.len();
    let mut points = Vec::new();
    for machine in machines.clone() {
        for &cores in &size.cores {
            points.push(all.point(machine, cores)?);
        }
    }
    let matrices = machines.clone().map(|machine| all.matrix(machine, &size.matrix_ratios));
    let pairs = pairs(&size.orders_ratios);
    let ordered = machines.flat_map(|machine| pairs.iter().map(move |pair| (machine, *pair)));
    Ok(Evaluation {
        points,
        matrices: matrices.collect::<Result<_, _>>()?,
        ordered: ordered.map(|(machine, p)| all.ordered(machine, p)).collect::<Result<_, _>>()?,
    })
}

/// All unordered pairs, each program with itself too.
fn pairs(ratios: &[Ratio]) -> Vec<[Ratio; 2]> {
    let beside =
        |(i, a): (usize, &Ratio)| ratios.iter().skip(i).map(|b| [*a, *b]).collect::<Vec<_>>();
    ratios.iter().enumerate().flat_map(beside).collect()
}

struct Runs<'r> {
    records: &'r [Record],
    factors: &'r [f64],
    seed: u64,
}

fn no_estimate(error: StatsError) -> Error {
    Error::Evaluation(error.to_string())
}

fn under<T>(of: impl FnMut(&str) -> Result<T, Error>) -> Result<Under<T>, Error> {
    let all: Vec<T> = POLICIES.into_iter().map(of).collect::<Result<_, _>>()?;
    all.try_into().map_err(|_| Error::Evaluation("two policies are compared".to_owned()))
}

impl<'r> Runs<'r> {
    /// Records of a part, by round.
    fn of(
        &self,
        (part, machine, cores): (Part, usize, u32),
        what: &What,
    ) -> Result<Vec<&'r Record>, Error> {
        let is = |record: &&Record| {
            let run = &record.run;
            (run.part, run.machine, run.cores) == (part, machine, cores) && run.what == *what
        };
        let by_round: BTreeMap<u32, &Record> =
            self.records.iter().filter(is).map(|record| (record.run.round, record)).collect();
        match by_round.is_empty() {
            true => Err(Error::Evaluation(format!("no run of {what} has finished"))),
            false => Ok(by_round.into_values().collect()),
        }
    }

    fn rounds(
        &self,
        rounds: usize,
        statistic: impl Fn(&[usize]) -> f64,
    ) -> Result<Estimate, Error> {
        stats::over_rounds(rounds, self.seed, statistic).map_err(no_estimate)
    }

    /// Where cores are alike by description, what was measured of them is not asked.
    fn model(&self, machine: usize, cores: u32) -> Option<theory::Multiprocessor> {
        let (_, faster) = MACHINES.get(machine)?;
        let measured = self.factors.get(machine)?.max(1.0);
        let factor = if *faster > 1.0 { measured } else { 1.0 };
        theory::Multiprocessor::new(cores, factor).ok()
    }

    fn point(&self, machine: usize, cores: u32) -> Result<Point, Error> {
        let ratios = [Ratio::PARALLEL, Ratio::SERIAL];
        let performances = under(|policy| {
            let what = What::Together { ratios, policy: policy.to_owned() };
            let runs = self.of((Part::Cores, machine, cores), &what)?;
            Ok(runs.iter().filter_map(|run| run.performance.get(1).copied()).collect::<Vec<_>>())
        })?;
        let model = self.model(machine, cores);
        let predicted = |scheduler| {
            let machine = model?;
            let alone = machine.performance_alone(theory::Phase::Serial);
            let of = theory::speedups(scheduler, machine, theory::JointState::SP);
            Some((of.min * alone, of.avg * alone, of.max * alone))
        };
        let schedulers = [theory::Scheduler::Baseline, theory::Scheduler::Proposed];
        let jitter = |performances: &[f64]| {
            let times: Vec<f64> = performances.iter().map(|p| p.recip()).collect();
            metrics::jitter(&times).unwrap_or_default()
        };
        let [stay, phases] = &performances;
        let estimate = |values: &[f64]| stats::mean_estimate(values).map_err(no_estimate);
        let range = |values: &[f64]| {
            let least = values.iter().copied().fold(f64::INFINITY, f64::min);
            (least, values.iter().copied().fold(0.0, f64::max))
        };
        Ok(Point {
            machine,
            cores,
            performance: [estimate(stay)?, estimate(phases)?],
            range: [range(stay), range(phases)],
            model: schedulers.map(|scheduler| predicted(scheduler).unwrap_or_default()),
            jitter: [jitter(stay), jitter(phases)],
        })
    }

    fn matrix(&self, machine: usize, ratios: &[Ratio]) -> Result<Matrix, Error> {
        let place = (Part::Matrix, machine, CORES);
        let mut table = Vec::new();
        for pair in pairs(ratios) {
            let mut alone = [0.0; 2];
            for (mean_alone, ratio) in alone.iter_mut().zip(pair) {
                let runs = self.of(place, &What::Alone { ratio })?;
                let all: Vec<f64> =
                    runs.iter().filter_map(|run| run.performance.first().copied()).collect();
                *mean_alone = mean(&all).unwrap_or_default();
            }
            let runs = under(|policy| {
                let what = What::Together { ratios: pair, policy: policy.to_owned() };
                let of = |run: &&Record| {
                    let performance = run.performance.as_slice().try_into().ok()?;
                    Some(Pair { performance, idle: run.idle?, sharing: run.sharing })
                };
                Ok(self.of(place, &what)?.iter().filter_map(of).collect::<Vec<Pair>>())
            })?;
            table.push(Beside { pair, alone, runs });
        }
        let of = |cells: &[Beside]| self.figures(cells);
        let cell = |runs: &Beside| {
            let model = self.model(machine, CORES).and_then(|m| predicted(m, runs));
            let figures = of(std::slice::from_ref(runs))?;
            Ok(Cell { ratios: runs.pair, figures, model })
        };
        let cells = table.iter().map(cell).collect::<Result<_, Error>>()?;
        Ok(Matrix { machine, cells, mean: of(&table)? })
    }

    /// Means over some cells.
    fn figures(&self, cells: &[Beside]) -> Result<Figures, Error> {
        let rounds = cells.iter().flat_map(|cell| cell.runs.iter().map(Vec::len)).min();
        let rounds = rounds.unwrap_or_default();
        let over = |figure: &dyn Fn(&Beside, &[usize]) -> f64| {
            self.rounds(rounds, |drawn| {
                let values: Vec<f64> = cells.iter().map(|cell| figure(cell, drawn)).collect();
                mean(&values).unwrap_or(f64::NAN)
            })
        };
        let each = |figure: fn(&Beside, usize, &[usize]) -> f64| -> Result<Under<Estimate>, Error> {
            Ok([
                over(&|cell, drawn| figure(cell, 0, drawn))?,
                over(&|cell, drawn| figure(cell, 1, drawn))?,
            ])
        };
        Ok(Figures {
            gain: over(&|cell, drawn| cell.throughput(1, drawn) / cell.throughput(0, drawn) - 1.0)?,
            fairness: each(Beside::fairness)?,
            fairness_change: over(&|cell, drawn| {
                cell.fairness(1, drawn) - cell.fairness(0, drawn)
            })?,
            run_fairness: each(Beside::run_fairness)?,
            jitter: each(Beside::jitter)?,
            idle: each(Beside::idle)?,
        })
    }

    fn ordered(&self, machine: usize, ratios: [Ratio; 2]) -> Result<Ordered, Error> {
        let place = (Part::Orders, machine, CORES);
        let alone = |ratio: Ratio| -> Result<Vec<f64>, Error> {
            let runs = self.of(place, &What::Alone { ratio })?;
            Ok(runs.iter().flat_map(|run| run.times.iter().map(|t| t.seconds)).collect())
        };
        let alone = [alone(ratios[0])?, alone(ratios[1])?];
        let runs =
            under(|policy| self.of(place, &What::Together { ratios, policy: policy.to_owned() }))?;
        let took = |run: &&Record| {
            let of = |program: usize, slot: usize| {
                let is = |t: &&Timed| (t.program, t.slot) == (program, slot);
                run.times.iter().find(is).map_or(f64::NAN, |t| t.seconds)
            };
            let programs = [0, 1].map(|program| [of(program, 0), of(program, 1)]);
            let completion = run.times.iter().map(|t| t.ended).fold(0.0, f64::max);
            Took { programs, completion }
        };
        let [stay, phases] = runs.map(|runs| runs.iter().map(took).collect::<Vec<_>>());
        let alone = alone.each_ref().map(Vec::as_slice);
        let compared = orders::compare(alone, [&stay, &phases]).map_err(no_estimate)?;
        Ok(Ordered { machine, ratios, compared })
    }
}

/// Runs of a cell, by policy and round.
struct Beside {
    pair: [Ratio; 2],
    /// Mean performance alone.
    alone: [f64; 2],
    runs: Under<Vec<Pair>>,
}

impl Beside {
    fn drawn<'a>(
        &'a self,
        policy: usize,
        drawn: &'a [usize],
        of: impl Fn(&Pair) -> f64 + 'a,
    ) -> Vec<f64> {
        drawn.iter().filter_map(|round| self.runs[policy].get(*round)).map(of).collect()
    }

    fn throughput(&self, policy: usize, drawn: &[usize]) -> f64 {
        let values = self.drawn(policy, drawn, |pair| pair.performance.iter().sum());
        mean(&values).unwrap_or(f64::NAN)
    }

    fn fairness(&self, policy: usize, drawn: &[usize]) -> f64 {
        let speedup = |slot: usize| {
            let values = self.drawn(policy, drawn, move |pair| pair.performance[slot]);
            mean(&values).unwrap_or(f64::NAN) / self.alone[slot]
        };
        metrics::fairness(&[speedup(0), speedup(1)]).unwrap_or(f64::NAN)
    }

    fn run_fairness(&self, policy: usize, drawn: &[usize]) -> f64 {
        let of = |pair: &Pair| {
            let speedups = [0, 1].map(|slot| pair.performance[slot] / self.alone[slot]);
            metrics::fairness(&speedups).unwrap_or(f64::NAN)
        };
        mean(&self.drawn(policy, drawn, of)).unwrap_or(f64::NAN)
    }

    fn jitter(&self, policy: usize, drawn: &[usize]) -> f64 {
        let of = |slot: usize| {
            let times = self.drawn(policy, drawn, move |pair| pair.performance[slot].recip());
            metrics::jitter(&times).unwrap_or(f64::NAN)
        };
        (of(0) + of(1)) / 2.0
    }

    /// How often a serial thread shared its core under `stay`.
    fn sharing(&self) -> Option<f64> {
        let seen: Vec<f64> = self.runs[0].iter().filter_map(|pair| pair.sharing).collect();
        mean(&seen)
    }

    fn idle(&self, policy: usize, drawn: &[usize]) -> f64 {
        mean(&self.drawn(policy, drawn, |pair| pair.idle)).unwrap_or(f64::NAN)
    }
}

fn predicted(machine: theory::Multiprocessor, runs: &Beside) -> Option<Predicted> {
    let (pair, alone) = (runs.pair, runs.alone);
    let cycle = cycle_s(machine);
    let program = |ratio: Ratio| {
        let share = ratio.parallel_share();
        theory::Program::new(cycle * share, cycle * (1.0 - share)).ok()
    };
    let (a, b) = (program(pair[0])?, program(pair[1])?);
    let boost = theory::Seniority::by_levels(Phases::LEVELS, Phases::TIMEOUT.as_secs_f64()).ok()?;
    let senior = theory::predict_with_seniority(boost, machine, a, b)?;
    let [stay, phases] = [theory::Scheduler::Baseline, theory::Scheduler::Proposed]
        .map(|scheduler| theory::predict(scheduler, machine, a, b));
    let fairness = |of: &theory::Prediction| {
        let [a, b] = of.performance;
        metrics::fairness(&[a / alone[0], b / alone[1]])
    };
    let shared = |share| {
        let of = theory::predict_with_sharing(share, machine, a, b)?;
        Some(Shared { share, fairness: fairness(&of)? })
    };
    Some(Predicted {
        gain: phases.throughput / stay.throughput - 1.0,
        fairness: [fairness(&stay)?, fairness(&phases)?],
        with_seniority: fairness(&senior)?,
        sharing: runs.sharing().and_then(shared),
    })
}
