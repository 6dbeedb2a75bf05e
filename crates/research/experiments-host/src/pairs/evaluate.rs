//! From speeds to slowdowns, and what sums of victim and co-runner say of them: pure.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use symbiont_campaign::{FinishedRun, InRound};
use symbiont_report::stats::{Estimate, Interval, StatsError, mean, mean_estimate};

use super::plan::PairCell;
use crate::bench::noise::Noise;

/// What a measurement gives.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Speeds {
    /// Speed of the first program, in any unit.
    pub first: f64,
    /// Of the other one, where it was measured too.
    pub second: Option<f64>,
    /// How long it took, in seconds.
    pub seconds: f64,
    /// What disturbed it.
    pub noise: Noise,
}

/// A finished measurement of programs.
pub type MeasuredCell = FinishedRun<InRound<PairCell>, Speeds>;

/// Slowdowns of all pairs.
#[derive(Debug, Clone, PartialEq)]
pub struct Matrix {
    /// Names of programs.
    pub programs: Vec<String>,
    /// Slowdown of each program next to each co-runner, over rounds.
    pub slowdowns: Vec<Vec<Estimate>>,
    /// What the other cells say of each cell.
    pub predicted: Vec<Vec<Option<f64>>>,
}

/// Why there is no matrix.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoMatrix {
    /// A cell was not measured.
    #[error("{0} + {1} was not measured")]
    Missing(String, String),
    /// A speed is no positive number.
    #[error(transparent)]
    Stats(#[from] StatsError),
}

/// Geometric mean, with Student's interval of the logarithms.
///
/// # Errors
/// When there is no core, or a speed is no positive number.
pub fn geometric_mean(values: &[f64]) -> Result<Estimate, StatsError> {
    let logarithms: Vec<f64> = values.iter().map(|value| value.ln()).collect();
    let mean = mean_estimate(&logarithms)?;
    let interval = mean.interval.map(|i| Interval { low: i.low.exp(), high: i.high.exp() });
    Ok(Estimate { value: mean.value.exp(), interval, ..mean })
}

/// Slowdowns of rounds: in each, a program is held against itself alone in the same round.
///
/// # Errors
/// When a cell is missing, or a speed is no positive number.
pub fn matrix(programs: &[String], measured: &[MeasuredCell]) -> Result<Matrix, NoMatrix> {
    let mut alone: BTreeMap<(u32, &str), Vec<f64>> = BTreeMap::new();
    // Of each victim and co-runner, by rounds: a program next to itself has two values in each.
    let mut together: BTreeMap<(&str, &str), BTreeMap<u32, Vec<f64>>> = BTreeMap::new();
    for FinishedRun { run: InRound { round, cell }, record } in measured {
        let program = cell.program.as_str();
        let Some(co_runner) = cell.co_runner.as_deref() else {
            alone.entry((*round, program)).or_default().push(record.first);
            continue;
        };
        let mut add = |victim, other, speed: f64| {
            together.entry((victim, other)).or_default().entry(*round).or_default().push(speed);
        };
        add(program, co_runner, record.first);
        if let Some(speed) = record.second {
            add(co_runner, program, speed);
        }
    }
    let slowdown = |victim: &String, co_runner: &String| {
        let missing = || NoMatrix::Missing(victim.clone(), co_runner.clone());
        let rounds = together.get(&(victim.as_str(), co_runner.as_str())).ok_or_else(missing)?;
        let of_round = |(round, speeds): (&u32, &Vec<f64>)| {
            let alone = alone.get(&(*round, victim.as_str())).ok_or_else(missing)?;
            Ok(geometric_mean(alone)?.value / geometric_mean(speeds)?.value)
        };
        let rounds = rounds.iter().map(of_round).collect::<Result<Vec<f64>, NoMatrix>>()?;
        Ok(geometric_mean(&rounds)?)
    };
    let row = |victim: &String| programs.iter().map(|other| slowdown(victim, other)).collect();
    let slowdowns: Vec<Vec<Estimate>> =
        programs.iter().map(row).collect::<Result<_, NoMatrix>>()?;
    let values: Vec<Vec<f64>> =
        slowdowns.iter().map(|row| row.iter().map(|it| it.value).collect()).collect();
    Ok(Matrix { programs: programs.to_vec(), predicted: predicted(&values), slowdowns })
}

/// What sums of a victim's and a co-runner's part predict of each cell of a square table that have not seen that
/// cell: the least-squares sums of all others (Yates, The analysis of replicated experiments when the field results
/// are incomplete, Empire Journal of Experimental Agriculture 1, 1933). None of a table of one cell.
#[must_use]
pub fn predicted(table: &[Vec<f64>]) -> Vec<Vec<Option<f64>>> {
    let count = table.len() as f64;
    let all: f64 = table.iter().flatten().sum();
    let rows: Vec<f64> = table.iter().map(|row| row.iter().sum()).collect();
    let columns: Vec<f64> =
        (0..table.len()).map(|at| table.iter().filter_map(|row| row.get(at)).sum()).collect();
    let of = |row: &f64, column: &f64, own: &f64| {
        let (row, column, all) = (row - own, column - own, all - own);
        (count > 1.0).then(|| (count * (row + column) - all) / (count - 1.0).powi(2))
    };
    let row = |(values, row): (&Vec<f64>, &f64)| {
        values.iter().zip(&columns).map(|(own, column)| of(row, column, own)).collect()
    };
    table.iter().zip(&rows).map(row).collect()
}

impl Matrix {
    /// As `symbiont simulate --pairs` and others read it.
    #[must_use]
    pub fn csv(&self) -> String {
        let mut text = "program,co_runner,slowdown\n".to_owned();
        for (program, row) in self.programs.iter().zip(&self.slowdowns) {
            for (co_runner, slowdown) in self.programs.iter().zip(row) {
                text.push_str(&format!("{program},{co_runner},{:.5}\n", slowdown.value));
            }
        }
        text
    }

    /// Each victim, co-runner, measured and predicted slowdown.
    pub fn cells(&self) -> impl Iterator<Item = (&str, &str, Estimate, Option<f64>)> {
        let rows = self.programs.iter().zip(self.slowdowns.iter().zip(&self.predicted));
        rows.flat_map(|(program, (row, predicted))| {
            let cells = self.programs.iter().zip(row.iter().zip(predicted));
            cells.map(|(other, (slowdown, predicted))| {
                (program.as_str(), other.as_str(), *slowdown, *predicted)
            })
        })
    }

    /// Mean size of what predictions err by, and of what guessing the mean of all errs by; none without predictions.
    #[must_use]
    pub fn errors(&self) -> Option<(f64, f64)> {
        let all = mean(&self.cells().map(|cell| cell.2.value).collect::<Vec<_>>())?;
        let sizes: Option<Vec<f64>> = self
            .cells()
            .map(|(_, _, measured, predicted)| Some((predicted? - measured.value).abs()))
            .collect();
        let guess: Vec<f64> = self.cells().map(|cell| (cell.2.value - all).abs()).collect();
        Some((mean(&sizes?)?, mean(&guess)?))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::pairs::plan::{Sides, cells};

    fn names(count: usize) -> Vec<String> {
        (0..count).map(|number| format!("p{number}")).collect()
    }

    /// What a machine of these slowdowns gives, whose clock differs from round to round.
    pub fn measure(table: &[Vec<f64>], sides: Sides, rounds: u32) -> Vec<MeasuredCell> {
        let programs = names(table.len());
        let at = |name: &str| programs.iter().position(|it| it == name).unwrap();
        let mut measured = Vec::new();
        for round in 0..rounds {
            for cell in cells(&programs, sides) {
                let speed = |victim: &str, other: Option<&str>| {
                    let alone = (2.0 + at(victim) as f64) * (1.0 + 0.1 * f64::from(round));
                    alone / other.map_or(1.0, |other| table[at(victim)][at(other)])
                };
                let co_runner = cell.co_runner.as_deref();
                let first = speed(&cell.program, co_runner);
                let second = co_runner
                    .filter(|_| sides == Sides::Both)
                    .map(|other| speed(other, Some(&cell.program)));
                let record = Speeds { first, second, seconds: 1.0, noise: Noise::default() };
                measured.push(FinishedRun { run: InRound { round, cell }, record });
            }
        }
        measured
    }

    fn tables() -> impl Strategy<Value = Vec<Vec<f64>>> {
        (1_usize..7).prop_flat_map(|count| {
            prop::collection::vec(prop::collection::vec(0.9..3.0, count), count)
        })
    }

    proptest! {
        #[test]
        fn slowdowns_are_found_whatever_the_clock(table in tables(), both: bool) {
            let sides = if both { Sides::Both } else { Sides::First };
            let found = matrix(&names(table.len()), &measure(&table, sides, 3)).unwrap();
            for (row, truth) in found.slowdowns.iter().zip(&table) {
                for (slowdown, truth) in row.iter().zip(truth) {
                    prop_assert!((slowdown.value / truth - 1.0).abs() < 1e-9);
                    prop_assert_eq!(slowdown.n, 3);
                }
            }
        }

        #[test]
        fn sums_are_predicted_without_having_been_seen(
            victims in prop::collection::vec(0.5..2.0, 2..8), seed in 0.1..1.0,
        ) {
            let row = |victim: &f64| (0..victims.len()).map(|at| victim + seed * at as f64).collect();
            let table: Vec<Vec<f64>> = victims.iter().map(row).collect();
            for (row, truth) in predicted(&table).iter().zip(&table) {
                for (predicted, truth) in row.iter().zip(truth) {
                    prop_assert!((predicted.unwrap() - truth).abs() < 1e-9);
                }
            }
            // One cell does not change what is predicted of it.
            let mut other = table.clone();
            other[0][1] += 5.0;
            prop_assert!((predicted(&other)[0][1].unwrap() - table[0][1]).abs() < 1e-9);
        }

        #[cfg(feature = "hardware")]
        #[test]
        fn what_is_written_is_read_back(table in tables()) {
            use crate::hardware::{MeasuredPairs, read_pairs};
            let written = matrix(&names(table.len()), &measure(&table, Sides::Both, 2)).unwrap();
            let read = MeasuredPairs::read(&written.csv()).unwrap();
            prop_assert_eq!(&read.programs, &written.programs);
            for (row, truth) in read.slowdowns().iter().flatten().zip(table.iter().flatten()) {
                prop_assert!((row - truth).abs() < 1e-5);
            }
            prop_assert!(read_pairs(&written.csv(), "here").is_ok());
        }
    }

    #[test]
    fn a_table_of_one_cell_predicts_nothing() {
        assert_eq!(predicted(&[vec![1.5]]), [[None]]);
        let one = matrix(&names(1), &measure(&[vec![1.5]], Sides::Both, 2)).unwrap();
        assert_eq!(one.errors(), None);
        assert_eq!(one.csv(), "program,co_runner,slowdown\np0,p0,1.50000\n");
    }

    #[test]
    fn what_was_not_measured_is_said() {
        let table = vec![vec![1.5, 1.2], vec![1.1, 1.3]];
        let mut measured = measure(&table, Sides::Both, 2);
        measured.retain(|it| {
            it.run.cell.co_runner.as_deref() != Some("p1") || it.run.cell.program == "p1"
        });
        let error = matrix(&names(2), &measured).unwrap_err();
        assert_eq!(error.to_string(), "p0 + p1 was not measured");
        let mut measured = measure(&table, Sides::Both, 2);
        measured[0].record.first = f64::NAN;
        assert!(matches!(matrix(&names(2), &measured), Err(NoMatrix::Stats(_))));
    }
}
