//! A batch of jobs on one core of a simulated machine, two at a time.
//!
//! # Problem
//! What choosing partners saves of a batch's time depends on how much there is to save, which no run shows.
//!
//! # Approach
//! All jobs wait from the start, and two run at a time, as fast as a table of pairs says ([`PairTable`]). A batch
//! is played in a given order ([`Batch::in_order`]) or as `symbiont batch` chooses ([`Batch::chosen`]). The best
//! order is looked for by swaps of two jobs, from several orders, until none saves time ([`Batch::best_found`]):
//! not always the very best, so the headroom is at least what is found.
//!
//! # Terms and units
//! Times in seconds. *Makespan*: from the start to the last end.
//!
//! # Properties
//! - Jobs take as long as their slowdowns say (`a_pair_takes_as_long_as_its_slowdowns_say`), and no order takes less
//!   than half of the time of all alone where programs only disturb each other
//!   (`no_order_takes_less_than_half_of_all_alone`).
//! - The search is near what trying all orders finds (`the_search_is_near_the_best_of_all_orders`).
//! - Partners that disturb each other less are chosen (`partners_save_time`).

use rand::seq::{SliceRandom, index};
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use symbiont_jobs::{BatchJob, Predict, ProgramNumber, choose_of_batch};

use crate::cluster::PairTable;

/// Jobs that run at a time.
const SLOTS: usize = 2;
/// Shortest and longest time alone that is drawn, s.
const ALONE_S: (f64, f64) = (30.0, 120.0);
/// Random orders that the search begins with.
const STARTS: usize = 8;

/// Jobs of a batch.
#[derive(Debug, Clone, PartialEq)]
pub struct Batch {
    /// The program and the time alone of each, s.
    pub jobs: Vec<(ProgramNumber, f64)>,
}

impl Batch {
    /// Draws so many different programs of a table, with times alone that are spread evenly by logarithm.
    #[must_use]
    pub fn drawn(count: usize, table: &PairTable, seed: u64) -> Self {
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let programs = index::sample(&mut random, table.programs(), count.min(table.programs()));
        let (least, most) = (ALONE_S.0.ln(), ALONE_S.1.ln());
        let job = |at: usize| (ProgramNumber(at as u32), random.random_range(least..most).exp());
        Self { jobs: programs.into_iter().map(job).collect() }
    }

    /// The makespan when jobs start in this order.
    #[must_use]
    pub fn in_order(&self, order: &[usize], table: &PairTable) -> f64 {
        let mut next = order.iter().copied();
        self.play(table, |_, running| next.by_ref().take(SLOTS - running.len()).collect())
    }

    /// The makespan when jobs start as `symbiont batch` chooses by this prediction, with times alone known.
    #[must_use]
    pub fn chosen(&self, predict: &impl Predict, by_length: bool, table: &PairTable) -> f64 {
        self.play(table, |waiting, running| {
            let job = |&at: &usize| {
                let (program, alone_s) = self.jobs[at];
                BatchJob { id: at as u64, program, expected_s: Some(alone_s) }
            };
            let waiting: Vec<BatchJob> = waiting.iter().map(job).collect();
            let running = running.iter().map(|&at| self.jobs[at].0).collect();
            let releases = choose_of_batch(&waiting, running, SLOTS, by_length, predict);
            releases.iter().map(|release| release.job as usize).collect()
        })
    }

    /// The least makespan that a search over orders finds.
    #[must_use]
    pub fn best_found(&self, table: &PairTable, seed: u64) -> f64 {
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let mut order: Vec<usize> = (0..self.jobs.len()).collect();
        order.sort_by(|&a, &b| self.jobs[b].1.total_cmp(&self.jobs[a].1));
        let mut best = self.improved(&mut order, table);
        for _ in 0..STARTS {
            order.shuffle(&mut random);
            best = best.min(self.improved(&mut order, table));
        }
        best
    }

    /// Swaps jobs of an order as long as that saves time.
    fn improved(&self, order: &mut [usize], table: &PairTable) -> f64 {
        let mut best = self.in_order(order, table);
        let mut better = true;
        while better {
            better = false;
            for a in 0..order.len() {
                for b in a + 1..order.len() {
                    order.swap(a, b);
                    let makespan = self.in_order(order, table);
                    if makespan < best * (1.0 - 1e-9) {
                        (best, better) = (makespan, true);
                    } else {
                        order.swap(a, b);
                    }
                }
            }
        }
        best
    }

    /// Plays the batch; `next` is asked for jobs to start whenever one has ended, and ends the run where it has none
    /// while nothing runs.
    fn play(
        &self,
        table: &PairTable,
        mut next: impl FnMut(&[usize], &[usize]) -> Vec<usize>,
    ) -> f64 {
        let mut waiting: Vec<usize> = (0..self.jobs.len()).collect();
        let mut running: Vec<usize> = Vec::new();
        let mut left_s: Vec<f64> = self.jobs.iter().map(|(_, alone_s)| *alone_s).collect();
        let mut now_s = 0.0;
        loop {
            for job in next(&waiting, &running) {
                waiting.retain(|&other| other != job);
                running.push(job);
            }
            let needs = |at: usize| {
                let other = running.iter().find(|&&other| other != running[at]);
                let other = other.map(|&other| self.jobs[other].0);
                table.slowdown_of(self.jobs[running[at]].0, other)
            };
            let slowdowns: Vec<f64> = (0..running.len()).map(needs).collect();
            let ends = running.iter().zip(&slowdowns).map(|(&job, slow)| left_s[job] * slow);
            let Some(first) = ends.reduce(f64::min) else { return now_s };
            now_s += first;
            for (&job, slowdown) in running.iter().zip(&slowdowns) {
                left_s[job] -= first / slowdown;
            }
            running.retain(|&job| left_s[job] > 1e-9 * self.jobs[job].1);
        }
    }
}

#[cfg(test)]
mod tests {
    use symbiont_jobs::Flat;

    use super::*;

    /// Programs of one half disturb each other.
    fn halves(programs: usize) -> PairTable {
        let slow =
            |a: usize, b: usize| if a * 2 / programs == b * 2 / programs { 1.8 } else { 1.1 };
        let row = |a: usize| (0..programs).map(|b| slow(a, b)).collect();
        PairTable::new(&(0..programs).map(row).collect::<Vec<_>>()).unwrap()
    }

    fn batch(jobs: &[(u32, f64)]) -> Batch {
        Batch {
            jobs: jobs
                .iter()
                .map(|&(program, alone_s)| (ProgramNumber(program), alone_s))
                .collect(),
        }
    }

    #[test]
    fn a_pair_takes_as_long_as_its_slowdowns_say() {
        let table = PairTable::new(&[vec![1.0, 2.0], vec![1.25, 1.0]]).unwrap();
        // The second ends after 12.5 s, when the first has 13.75 s to go.
        let makespan = batch(&[(0, 20.0), (1, 10.0)]).in_order(&[0, 1], &table);
        assert!((makespan - 26.25).abs() < 1e-9, "{makespan}");
    }

    #[test]
    fn no_order_takes_less_than_half_of_all_alone() {
        let table = halves(8);
        for seed in 0..20 {
            let drawn = Batch::drawn(8, &table, seed);
            let alone: f64 = drawn.jobs.iter().map(|(_, alone_s)| alone_s).sum();
            let best = drawn.best_found(&table, seed);
            assert!(best >= alone * 1.1 / 2.0 - 1e-9);
            assert!(best <= drawn.chosen(&table, true, &table) + 1e-9);
            assert!(best <= drawn.chosen(&Flat, false, &table) + 1e-9);
            assert_eq!(drawn, Batch::drawn(8, &table, seed));
        }
    }

    #[test]
    fn the_search_is_near_the_best_of_all_orders() {
        let table = halves(6);
        for seed in 0..10 {
            let drawn = Batch::drawn(6, &table, seed);
            let mut best = f64::INFINITY;
            let mut order: Vec<usize> = (0..6).collect();
            every_order(&mut order, 0, &mut |order| best = best.min(drawn.in_order(order, &table)));
            let found = drawn.best_found(&table, seed);
            assert!((best - 1e-9..1.01 * best).contains(&found), "{found} {best}");
        }
    }

    fn every_order(order: &mut Vec<usize>, from: usize, visit: &mut impl FnMut(&[usize])) {
        if from == order.len() {
            return visit(order);
        }
        for at in from..order.len() {
            order.swap(from, at);
            every_order(order, from + 1, visit);
            order.swap(from, at);
        }
    }

    #[test]
    fn partners_save_time() {
        let table = halves(8);
        let jobs: Vec<(u32, f64)> = (0..8).map(|program| (program, 60.0)).collect();
        let alike = batch(&jobs);
        let (by_table, by_none) =
            (alike.chosen(&table, true, &table), alike.chosen(&Flat, true, &table));
        assert!((by_table - 4.0 * 66.0).abs() < 1e-6, "{by_table}");
        assert!((by_none - 4.0 * 108.0).abs() < 1e-6, "{by_none}");
    }
}
