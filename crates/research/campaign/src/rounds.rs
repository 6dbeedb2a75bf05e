//! Rounds of cells that are measured in turn.

use std::fmt::{self, Display};

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64;
use serde::{Deserialize, Serialize};

use super::Repeats;

/// A run: one cell of an experiment in one of its rounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct InRound<Cell> {
    /// In which round, from 0.
    pub round: u32,
    /// What is measured.
    pub cell: Cell,
}

impl<Cell: Display> Display for InRound<Cell> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "round {}: {}", self.round + 1, self.cell)
    }
}

/// Rounds, each of which measures every cell once, in random order, so that slow changes of the machine
/// affect all cells alike.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rounds {
    /// How many rounds there are.
    pub repeats: Repeats,
    /// Seed of the order of runs.
    pub seed: u64,
}

impl Rounds {
    /// The runs that follow `done` ones; none if there are enough.
    pub fn next<Cell: Clone>(
        self,
        cells: &[Cell],
        done: usize,
        decided: impl FnOnce() -> bool,
    ) -> Vec<InRound<Cell>> {
        let finished = (done / cells.len().max(1)) as u32;
        let wanted = self.repeats.wanted(finished, decided);
        (finished..wanted).flat_map(|round| self.round(cells, round)).collect()
    }

    /// The runs of one round.
    fn round<Cell: Clone>(self, cells: &[Cell], round: u32) -> Vec<InRound<Cell>> {
        let mut runs: Vec<_> =
            cells.iter().map(|cell| InRound { round, cell: cell.clone() }).collect();
        runs.shuffle(&mut Pcg64::seed_from_u64(self.seed.wrapping_add(u64::from(round))));
        runs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_measures_each_cell_once_in_an_order_of_its_own() {
        let repeats = Repeats { least: 4, most: 8, narrow: 0.0 };
        let rounds = Rounds { repeats, seed: 1 };
        let cells: Vec<u32> = (0..20).collect();
        let runs = rounds.next(&cells, 0, || true);
        assert_eq!(runs.len(), 80);
        let orders: Vec<Vec<u32>> =
            runs.chunks(20).map(|round| round.iter().map(|run| run.cell).collect()).collect();
        assert_ne!(orders[0], orders[1]);
        for (number, order) in orders.iter().enumerate() {
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, cells);
            assert!(runs[20 * number..][..20].iter().all(|run| run.round == number as u32));
        }
        assert!(rounds.next(&cells, 80, || true).is_empty());
        assert_eq!(rounds.next(&cells, 80, || false).len(), 80);
        assert!(rounds.next(&cells, 160, || false).is_empty());
    }
}
