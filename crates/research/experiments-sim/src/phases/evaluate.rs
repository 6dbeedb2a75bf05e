//! From finished runs to figures.

use std::collections::BTreeMap;

use symbiont_sim_fast::machine::Generation;
use symbiont_synth::Ratio;

use super::carry_out::PhasesRecord;
use super::plan::{CORES, MACHINES, Part, RunKind, SimulatedPhasesRun};
use symbiont_campaign::{Error, FinishedRun};
use symbiont_report::metrics;
use symbiont_report::stats::{self, Estimate, mean};
use symbiont_report::theory;

/// Finished runs, with the a of each machine and the seed of the bootstraps.
#[derive(Debug, Clone, Copy)]
pub struct Runs<'r> {
    /// The runs.
    pub finished: &'r [FinishedRun<SimulatedPhasesRun, PhasesRecord>],
    /// How many times as fast as the others the large core is, by machine.
    pub factors: &'r [f64],
    /// Seed of the bootstraps.
    pub seed: u64,
}

/// Runs of two programs side by side.
#[derive(Debug, Clone, PartialEq)]
pub struct Pair {
    /// Which.
    pub ratios: [Ratio; 2],
    /// Mean performance of each alone.
    alone: [f64; 2],
    /// On the OS of these runs, by contender and round: performance of each, and idle share.
    runs: BTreeMap<String, Vec<([f64; 2], f64)>>,
}

/// A figure of a pair under a contender, over some of its rounds.
pub type Figure = fn(&Pair, &str, &[usize]) -> f64;

impl<'r> Runs<'r> {
    /// Records of a part, by round.
    fn of(
        &self,
        (part, machine, cores): (Part, usize, u32),
        what: &RunKind,
    ) -> Vec<&'r PhasesRecord> {
        let is = |finished: &&FinishedRun<SimulatedPhasesRun, PhasesRecord>| {
            let run = &finished.run;
            (run.part, run.machine, run.cores) == (part, machine, cores) && run.what == *what
        };
        let by_round: BTreeMap<u32, &PhasesRecord> =
            self.finished.iter().filter(is).map(|f| (f.run.round, &f.record)).collect();
        by_round.into_values().collect()
    }

    /// The machine as the paper's equations have it: where cores are alike by description, what was
    /// measured of them is not asked.
    #[must_use]
    pub fn model(&self, machine: usize, cores: u32) -> Option<theory::Multiprocessor> {
        let (_, faster) = MACHINES.get(machine)?;
        let measured = self.factors.get(machine)?.max(1.0);
        let factor = if *faster > 1.0 { measured } else { 1.0 };
        theory::Multiprocessor::new(cores, factor).ok()
    }

    /// Speedup of a serial program that co-runs with a parallel one on some cores.
    ///
    /// # Errors
    /// When no run of them has finished.
    pub fn serial_speedup(
        &self,
        machine: usize,
        cores: u32,
        (os, contender): (Generation, &str),
    ) -> Result<Estimate, Error> {
        let ratios = [Ratio::PARALLEL, Ratio::SERIAL];
        let what = RunKind::Together { ratios, os, contender: contender.to_owned() };
        let alone = self
            .model(machine, cores)
            .map_or(1.0, |model| model.performance_alone(theory::Phase::Serial));
        let runs = self.of((Part::Cores, machine, cores), &what);
        let speedups = runs.iter().filter_map(|run| Some(run.performance.get(1)? / alone));
        stats::mean_estimate(&speedups.collect::<Vec<_>>()).map_err(Error::evaluation)
    }

    /// All pairs of the matrix on a machine with an OS, each program with itself too.
    ///
    /// # Errors
    /// When a run is missing.
    pub fn pairs(
        &self,
        machine: usize,
        os: Generation,
        ratios: &[Ratio],
    ) -> Result<Vec<Pair>, Error> {
        let place = (Part::Matrix, machine, CORES);
        let alone = |ratio: Ratio| {
            let runs = self.of(place, &RunKind::Alone { ratio, os });
            let all: Vec<f64> =
                runs.iter().filter_map(|r| r.performance.first().copied()).collect();
            let missing = || Error::evaluation(format!("no run of {ratio} alone has finished"));
            mean(&all).ok_or_else(missing)
        };
        let mut pairs = Vec::new();
        for (at, one) in ratios.iter().enumerate() {
            for other in ratios.iter().skip(at) {
                let pair = [*one, *other];
                let mut runs = BTreeMap::new();
                for contender in super::plan::CONTENDERS {
                    let contender = contender.to_owned();
                    let what = RunKind::Together { ratios: pair, os, contender: contender.clone() };
                    let of = |run: &&PhasesRecord| {
                        Some((run.performance.get(..2)?.try_into().ok()?, run.idle))
                    };
                    runs.insert(contender, self.of(place, &what).iter().filter_map(of).collect());
                }
                pairs.push(Pair { ratios: pair, alone: [alone(*one)?, alone(*other)?], runs });
            }
        }
        Ok(pairs)
    }

    /// Change of the mean over pairs from one contender to another, as the paper's Table 5 has it.
    ///
    /// # Errors
    /// When there are no rounds.
    pub fn change(
        &self,
        pairs: &[Pair],
        of: Figure,
        (from, to): (&str, &str),
    ) -> Result<Estimate, Error> {
        let rounds = pairs.iter().flat_map(|pair| pair.runs.values().map(Vec::len)).min();
        let figure = |drawn: &[usize]| {
            let sum = |contender: &str| -> f64 {
                pairs.iter().map(|pair| of(pair, contender, drawn)).sum()
            };
            sum(to) / sum(from) - 1.0
        };
        stats::over_rounds(rounds.unwrap_or_default(), self.seed, figure).map_err(Error::evaluation)
    }

    /// Mean over pairs of what `of` makes of each and of the rounds drawn; rounds are drawn anew for the
    /// interval.
    ///
    /// # Errors
    /// When there are no rounds.
    pub fn over(
        &self,
        pairs: &[Pair],
        of: impl Fn(&Pair, &[usize]) -> f64,
    ) -> Result<Estimate, Error> {
        let rounds = pairs.iter().flat_map(|pair| pair.runs.values().map(Vec::len)).min();
        let figure = |drawn: &[usize]| {
            let values: Vec<f64> = pairs.iter().map(|pair| of(pair, drawn)).collect();
            mean(&values).unwrap_or(f64::NAN)
        };
        stats::over_rounds(rounds.unwrap_or_default(), self.seed, figure).map_err(Error::evaluation)
    }
}

impl Pair {
    fn drawn(&self, of: &str, drawn: &[usize]) -> Vec<([f64; 2], f64)> {
        let runs = self.runs.get(of).map_or(&[][..], Vec::as_slice);
        drawn.iter().filter_map(|round| runs.get(*round).copied()).collect()
    }

    /// Work of both per time.
    #[must_use]
    pub fn throughput(&self, of: &str, drawn: &[usize]) -> f64 {
        let runs = self.drawn(of, drawn);
        let sums: Vec<f64> = runs.iter().map(|([a, b], _)| a + b).collect();
        mean(&sums).unwrap_or(f64::NAN)
    }

    /// Mean performance of one of the two.
    #[must_use]
    pub fn performance(&self, slot: usize, of: &str, drawn: &[usize]) -> f64 {
        let runs = self.drawn(of, drawn);
        let own: Vec<f64> = runs.iter().filter_map(|(it, _)| it.get(slot).copied()).collect();
        mean(&own).unwrap_or(f64::NAN)
    }

    /// Fairness (eq. 4) of the mean speedups.
    #[must_use]
    pub fn fairness(&self, of: &str, drawn: &[usize]) -> f64 {
        let speedup = |slot: usize| self.performance(slot, of, drawn) / self.alone[slot];
        metrics::fairness(&[speedup(0), speedup(1)]).unwrap_or(f64::NAN)
    }

    /// Mean fairness (eq. 4) of the single runs: lower, as chance favours one program in each.
    #[must_use]
    pub fn fairness_of_runs(&self, of: &str, drawn: &[usize]) -> f64 {
        let fairness = |([a, b], _): &([f64; 2], f64)| {
            metrics::fairness(&[a / self.alone[0], b / self.alone[1]]).unwrap_or(f64::NAN)
        };
        mean(&self.drawn(of, drawn).iter().map(fairness).collect::<Vec<_>>()).unwrap_or(f64::NAN)
    }

    /// Jitter (eq. 6) of the times per work, mean of both programs.
    #[must_use]
    pub fn jitter(&self, of: &str, drawn: &[usize]) -> f64 {
        let runs = self.drawn(of, drawn);
        let of = |slot: usize| {
            let times: Vec<f64> = runs.iter().map(|(it, _)| it[slot].recip()).collect();
            metrics::jitter(&times).unwrap_or(f64::NAN)
        };
        f64::midpoint(of(0), of(1))
    }

    /// Share of the cores' time in which they ran nothing.
    #[must_use]
    pub fn idle(&self, of: &str, drawn: &[usize]) -> f64 {
        let idle: Vec<f64> = self.drawn(of, drawn).iter().map(|(_, idle)| *idle).collect();
        mean(&idle).unwrap_or(f64::NAN)
    }
}
