//! Comparisons of contenders over workloads and repeats.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Serialize};

use super::repeats::{Decision, Repeats};
use symbiont_report::metrics;
use symbiont_report::number;
use symbiont_report::stats::{Estimate, StatsError, crossed, mean, mean_estimate};

/// What a contender reached in a repeat of a workload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The workload's name.
    pub workload: String,
    /// Its programs: workloads that share programs are not independent.
    pub programs: Vec<String>,
    /// The contender's name.
    pub contender: String,
    /// Which repeat; equal ones of a workload started alike.
    pub repeat: u32,
    /// T_alone / T_together of each program.
    pub speedups: Vec<f64>,
}

/// A figure of the speedups of a workload's programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Metric {
    /// System throughput.
    Stp,
    /// Average normalised turnaround time; lower is better.
    Antt,
    /// Least ratio of two programs' speedups.
    Fairness,
    /// Least speedup: of programs that take equally long alone, the time until all have ended is its inverse.
    Slowest,
}

impl Metric {
    /// Of all programs.
    #[must_use]
    pub fn of(self, speedups: &[f64]) -> Option<f64> {
        match self {
            Self::Stp => metrics::stp(speedups),
            Self::Antt => metrics::antt(speedups),
            Self::Fairness => metrics::fairness(speedups),
            Self::Slowest => speedups.iter().copied().reduce(f64::min),
        }
    }

    /// With programs counting as often as their weights say; of fairness and of the slowest, those with any
    /// weight count.
    fn weighted(self, speedups: &[f64], weights: &[f64]) -> Option<f64> {
        let sum: f64 = weights.iter().sum();
        let each = || speedups.iter().zip(weights);
        let drawn = || -> Vec<f64> {
            each().filter(|(_, weight)| **weight > 0.0).map(|(speedup, _)| *speedup).collect()
        };
        let figure = match self {
            Self::Stp => each().map(|(s, w)| s * w).sum::<f64>() * speedups.len() as f64 / sum,
            Self::Antt => each().map(|(s, w)| w / s).sum::<f64>() / sum,
            Self::Fairness | Self::Slowest => self.of(&drawn())?,
        };
        figure.is_finite().then_some(figure)
    }
}

/// Rows of one comparison.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rows(pub Vec<Row>);

/// A workload in which a contender is worse than the baseline, beyond the interval.
#[derive(Debug, Clone, PartialEq)]
pub struct Loser {
    /// The workload.
    pub workload: String,
    /// Its programs.
    pub programs: Vec<String>,
    /// The gain in STP, below 0.
    pub gain: Estimate,
}

impl fmt::Display for Loser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let gain = number::estimate(&self.gain.percent());
        write!(f, "{}: {gain} % ({})", self.workload, self.programs.join(" "))
    }
}

impl Rows {
    /// Those of which something holds.
    #[must_use]
    pub fn only(&self, holds: impl Fn(&Row) -> bool) -> Self {
        Self(self.0.iter().filter(|row| holds(row)).cloned().collect())
    }

    /// Names of the workloads, in order of their names.
    #[must_use]
    pub fn workloads(&self) -> Vec<&str> {
        let names: BTreeSet<&str> = self.0.iter().map(|row| row.workload.as_str()).collect();
        names.into_iter().collect()
    }

    /// Speedups of a contender in a workload, by repeat.
    fn speedups(&self, workload: &str, of: &str) -> BTreeMap<u32, &[f64]> {
        let rows = self.0.iter().filter(|row| row.workload == workload && row.contender == of);
        rows.map(|row| (row.repeat, row.speedups.as_slice())).collect()
    }

    /// Gains of a contender over another in one workload, one for each repeat that both ran.
    #[must_use]
    pub fn gains(&self, workload: &str, own: &str, other: &str, metric: Metric) -> Vec<f64> {
        let others = self.speedups(workload, other);
        let gain = |(repeat, own): (u32, &[f64])| {
            Some(metric.of(own)? / metric.of(others.get(&repeat)?)? - 1.0)
        };
        self.speedups(workload, own).into_iter().filter_map(gain).collect()
    }

    /// Mean gain over the workloads, each by the mean of the repeats that both ran. For the interval
    /// workloads and programs are drawn anew ([`crossed`]); where there is one workload, its repeats
    /// are (Student's t).
    ///
    /// # Errors
    /// When no workload was run by both.
    pub fn gain(
        &self,
        own: &str,
        other: &str,
        metric: Metric,
        seed: u64,
    ) -> Result<Estimate, StatsError> {
        if let [workload] = self.workloads()[..] {
            return mean_estimate(&self.gains(workload, own, other, metric));
        }
        let gain = |workload: &str, weights: &[f64]| {
            let others = self.speedups(workload, other);
            let each = self.speedups(workload, own).into_iter().filter_map(|(repeat, own)| {
                let other = metric.weighted(others.get(&repeat)?, weights)?;
                Some(metric.weighted(own, weights)? / other - 1.0)
            });
            Some((mean(&each.collect::<Vec<_>>())?, 1.0))
        };
        self.over_workloads(seed, gain)
    }

    /// A metric of one contender over the workloads, with its interval as in [`Self::gain`].
    ///
    /// # Errors
    /// When it ran no workload.
    pub fn level(&self, of: &str, metric: Metric, seed: u64) -> Result<Estimate, StatsError> {
        if let [workload] = self.workloads()[..] {
            return mean_estimate(&self.figures(workload, of, metric));
        }
        let level = |workload: &str, weights: &[f64]| {
            let runs = self.speedups(workload, of).into_values();
            let runs = runs.filter_map(|run| metric.weighted(run, weights));
            Some((mean(&runs.collect::<Vec<_>>())?, 1.0))
        };
        self.over_workloads(seed, level)
    }

    /// A metric of a contender in one workload, by repeat.
    #[must_use]
    pub fn figures(&self, workload: &str, of: &str, metric: Metric) -> Vec<f64> {
        self.speedups(workload, of).into_values().filter_map(|run| metric.of(run)).collect()
    }

    /// Headroom captured: Σ (STP − STP of the baseline) / Σ (STP of the bound − STP of the baseline) over
    /// the workloads that all three ran, with its interval as in [`Self::gain`]; none where the bound gains
    /// nothing.
    #[must_use]
    pub fn captured(&self, own: &str, baseline: &str, bound: &str, seed: u64) -> Option<Estimate> {
        let share = |workload: &str, weights: &[f64]| {
            let stp = |of: &str| {
                let runs = self.speedups(workload, of).into_values();
                mean(&runs.filter_map(|run| Metric::Stp.weighted(run, weights)).collect::<Vec<_>>())
            };
            let least = stp(baseline)?;
            Some((stp(own)? - least, stp(bound)? - least))
        };
        let programs = |workload: &str| vec![1.0; self.programs(workload).len()];
        let all = self.workloads().into_iter();
        let headroom: f64 = all
            .filter_map(|workload| share(workload, &programs(workload)))
            .map(|(_, most)| most)
            .sum();
        (headroom > 0.0).then(|| self.over_workloads(seed, share).ok()).flatten()
    }

    fn programs(&self, workload: &str) -> &[String] {
        let row = self.0.iter().find(|row| row.workload == workload);
        row.map_or(&[], |row| row.programs.as_slice())
    }

    /// Σ of the first over Σ of the second of what `of` makes of a workload and the weights of its
    /// programs.
    fn over_workloads(
        &self,
        seed: u64,
        of: impl Fn(&str, &[f64]) -> Option<(f64, f64)>,
    ) -> Result<Estimate, StatsError> {
        let alike = |workload: &str| vec![1.0; self.programs(workload).len()];
        let mut workloads = self.workloads();
        workloads.retain(|workload| of(workload, &alike(workload)).is_some());
        let all: BTreeSet<&String> =
            workloads.iter().flat_map(|name| self.programs(name)).collect();
        let places: BTreeMap<&String, usize> = all.iter().copied().zip(0..).collect();
        let cells: Vec<(&str, Vec<usize>)> = workloads
            .iter()
            .map(|name| {
                let own = self.programs(name).iter().filter_map(|p| places.get(p).copied());
                (*name, own.collect())
            })
            .collect();
        crossed((cells.len(), all.len()), seed, |rows, columns| {
            let (mut sum, mut whole) = (0.0, 0.0);
            for ((name, own), row) in cells.iter().zip(rows).filter(|(_, row)| **row > 0.0) {
                let columns: Vec<f64> =
                    own.iter().filter_map(|&at| columns.get(at).copied()).collect();
                let Some((value, of)) = of(name, &columns) else { continue };
                sum += row * value;
                whole += row * of;
            }
            sum / whole
        })
    }

    /// Workloads in which a contender's STP is lower than another's, beyond the interval over repeats
    /// and by more than `repeats.narrow`.
    #[must_use]
    pub fn losers(&self, own: &str, other: &str, repeats: Repeats) -> Vec<Loser> {
        let loser = |workload: &str| {
            let gains = self.gains(workload, own, other, Metric::Stp);
            let gain = mean_estimate(&gains).ok()?;
            let differs = repeats.decide(&gains) == Decision::Differs;
            let programs = self.0.iter().find(|row| row.workload == workload)?.programs.clone();
            let loses = differs && gain.value < -repeats.narrow;
            loses.then(|| Loser { workload: workload.to_owned(), programs, gain })
        };
        self.workloads().into_iter().filter_map(loser).collect()
    }
}
