//! Slowdowns of pairs on one core of a simulated machine.

use std::collections::BTreeMap;

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64Mcg;
use symbiont_jobs::{Predict, ProgramNumber};
use symbiont_profile::Profile;
use symbiont_sim_fast::PrepareError;
use symbiont_sim_fast::description::Description;

use crate::steady::Steady;

/// Why slowdowns are no table.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum TableError {
    /// It is empty, not square, or a slowdown is not finite and positive.
    #[error("a table of slowdowns has one finite positive number for each program next to each")]
    Values,
    /// The machine cannot run a program.
    #[error(transparent)]
    Prepare(#[from] PrepareError),
}

/// Slowdown of each program (row) next to each (column), against running alone on the core.
#[derive(Debug, Clone, PartialEq)]
pub struct PairTable {
    programs: usize,
    slowdowns: Vec<f64>,
}

impl PairTable {
    /// From slowdowns, victim by co-runner.
    ///
    /// # Errors
    /// [`TableError::Values`].
    pub fn new(rows: &[Vec<f64>]) -> Result<Self, TableError> {
        let programs = rows.len();
        let sound = |slowdown: &f64| slowdown.is_finite() && *slowdown > 0.0;
        let square = rows.iter().all(|row| row.len() == programs && row.iter().all(sound));
        if programs == 0 || !square {
            return Err(TableError::Values);
        }
        Ok(Self { programs, slowdowns: rows.concat() })
    }

    /// Of programs, each in its heaviest phase, by name.
    ///
    /// # Errors
    /// When the machine cannot run one of them.
    pub fn simulated(
        machine: &Description,
        profiles: &BTreeMap<String, Profile>,
    ) -> Result<Self, TableError> {
        let steady = Steady::new(machine, profiles)?;
        let heaviest = steady.programs.iter().map(|program| program.phases.first());
        let phases: Vec<_> = heaviest
            .map(|phase| phase.map(|phase| &phase.phase))
            .collect::<Option<_>>()
            .ok_or(TableError::Values)?;
        let cpi = |mode, threads: &[usize]| -> Vec<f64> {
            let core = threads.iter().map(|&at| phases[at]).collect();
            steady.together(mode, &[core]).iter().map(|rates| rates.cpi).collect()
        };
        let alone: Vec<f64> = (0..phases.len()).flat_map(|at| cpi(1, &[at])).collect();
        let mut rows = vec![vec![1.0; phases.len()]; phases.len()];
        for one in 0..phases.len() {
            for other in one..phases.len() {
                let [first, second] = cpi(2, &[one, other])[..] else {
                    return Err(TableError::Values);
                };
                rows[one][other] = first / alone[one];
                rows[other][one] = second / alone[other];
            }
        }
        Self::new(&rows)
    }

    /// How many programs it knows.
    #[must_use]
    pub fn programs(&self) -> usize {
        self.programs
    }

    /// Slowdown of a program next to another, or alone; 1 for one that it does not know.
    #[must_use]
    pub fn slowdown_of(&self, victim: ProgramNumber, co_runner: Option<ProgramNumber>) -> f64 {
        let [victim, other] =
            [Some(victim), co_runner].map(|program| program.map(|it| it.0 as usize));
        let known = victim.zip(other).filter(|&(a, b)| a.max(b) < self.programs);
        known.and_then(|(a, b)| self.slowdowns.get(a * self.programs + b)).copied().unwrap_or(1.0)
    }

    /// The table of other programs: a negative control.
    #[must_use]
    pub fn shuffled(&self, seed: u64) -> Self {
        let mut order: Vec<usize> = (0..self.programs).collect();
        order.shuffle(&mut Pcg64Mcg::seed_from_u64(seed));
        let at =
            |row: usize, column: usize| self.slowdowns[order[row] * self.programs + order[column]];
        let cells =
            (0..self.programs).flat_map(|row| (0..self.programs).map(move |column| (row, column)));
        Self {
            programs: self.programs,
            slowdowns: cells.map(|(row, column)| at(row, column)).collect(),
        }
    }
}

impl Predict for PairTable {
    fn slowdown(&self, victim: ProgramNumber, co_runners: &[ProgramNumber]) -> f64 {
        self.slowdown_of(victim, co_runners.first().copied())
    }
}
