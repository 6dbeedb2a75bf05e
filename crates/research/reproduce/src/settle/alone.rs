//! Each program alone: its activity over time, how well it is predicted, and its speed.

use std::collections::BTreeMap;

use symbiont_sim_cycle::SuperSetIndexing;

use super::play::{FINEST, Sampled, Schedule, ScheduleRun, Turn};
use super::scheduler::Intervals;
use super::scoring::{Scoring, VECTORS, grouped, vectors};
use super::{Players, Size};
use crate::figure::Point;
use symbiont_campaign::FinishedRunOf;
use symbiont_report::published::settle::{PREDICTABLE, VECTORS as NAMES};
use symbiont_report::stats::{Estimate, mean, mean_estimate};

/// Programs of Fig. 2, by its figures here.
const MAPS: [(&str, &str); 4] = [
    ("settle-fig2a", "gzip"),
    ("settle-fig2b", "perl"),
    ("settle-fig2c", "network"),
    ("settle-fig2d", "povray"),
];
/// Super-sets of the heat maps.
const ROWS: usize = 32;

/// A run of each of these programs.
pub fn runs<'n>(programs: impl IntoIterator<Item = &'n str>, size: &Size) -> Vec<ScheduleRun> {
    let run = |ours: &str| ScheduleRun {
        jobs: vec![ours.to_owned()],
        schedule: Schedule::Together,
        called: "alone".to_owned(),
        samples: (size.pairs.0, size.sample),
        targets: Vec::new(),
        private: false,
    };
    programs.into_iter().map(run).collect()
}

/// What programs do alone.
#[derive(Debug)]
pub struct Alone {
    /// Samples after those that warm up, by program.
    samples: BTreeMap<String, Vec<Sampled>>,
}

impl Alone {
    /// From the runs.
    pub fn of(done: &[FinishedRunOf<Players<'_>>], size: &Size) -> Self {
        let warm = size.pairs.1 as usize;
        let one = |done: &FinishedRunOf<Players<'_>>| {
            let program = done.run.jobs.first()?.clone();
            Some((program, done.record.samples.iter().skip(warm).cloned().collect()))
        };
        Self { samples: done.iter().filter_map(one).collect() }
    }

    fn turns(&self) -> impl Iterator<Item = &Turn> {
        self.samples.values().flatten().flat_map(|sample| &sample.turns)
    }

    /// Instructions per cycle of a program alone.
    pub fn ipc(&self, program: &str) -> Option<f64> {
        mean(&self.samples.get(program)?.iter().map(Sampled::ipc).collect::<Vec<_>>())
    }

    /// What each program did, sample by sample, with the instructions after which each ends.
    pub fn intervals(&self) -> Intervals {
        let of = |samples: &Vec<Sampled>| {
            let mut end = 0;
            let turns = samples.iter().filter_map(|sample| sample.turns.first());
            turns
                .map(|turn| {
                    end += turn.instructions;
                    (end, turn.caches.clone())
                })
                .collect()
        };
        self.samples.iter().map(|(program, samples)| (program.clone(), of(samples))).collect()
    }

    /// Misses of the L2 per instruction, of the average program.
    pub fn misses(&self) -> f64 {
        let rate = |turn: &Turn| {
            let misses = turn.caches.last().map_or(0, |l2| l2.misses.iter().sum::<u32>());
            f64::from(misses) / turn.instructions.max(1) as f64
        };
        mean(&self.turns().map(rate).collect::<Vec<_>>()).unwrap_or(0.0)
    }

    /// So many times the mean count of a super-set in a sample, over all programs, by vector; of samples that
    /// are so many times as long.
    pub fn thresholds(&self, super_sets: usize, times: f64, longer: f64) -> [u64; VECTORS] {
        let sums = |turn: &Turn| -> Vec<f64> {
            let counts = turn.caches.iter().flat_map(|cache| [&cache.uses, &cache.misses]);
            counts.map(|counts| counts.iter().map(|count| f64::from(*count)).sum()).collect()
        };
        let all: Vec<Vec<f64>> = self.turns().map(sums).collect();
        std::array::from_fn(|vector| {
            let of: Vec<f64> = all.iter().filter_map(|sums| sums.get(vector).copied()).collect();
            let each = mean(&of).unwrap_or(0.0) / super_sets.max(1) as f64;
            (times * longer * each) as u64
        })
    }

    /// Table 2 and the heat maps.
    pub fn points(&self, scoring: &Scoring) -> Vec<(&'static str, Vec<Point>)> {
        let mut points: Vec<_> = MAPS.iter().map(|(id, name)| (*id, self.map(name))).collect();
        points.push(("settle-tab2", self.predictability(scoring)));
        points
    }

    fn map(&self, program: &str) -> Vec<Point> {
        let mut points = Vec::new();
        let samples = self.samples.get(program).map_or(&[][..], Vec::as_slice);
        for (at, turn) in samples.iter().filter_map(|it| it.turns.first()).enumerate() {
            let Some(l1d) = turn.caches.first() else { continue };
            let mean = l1d.uses.iter().map(|n| f64::from(*n)).sum::<f64>() / ROWS as f64;
            for (row, count) in
                grouped(&l1d.uses, ROWS, SuperSetIndexing::Contiguous).into_iter().enumerate()
            {
                let value = Estimate::exact(count as f64 / mean.max(1.0));
                points.push(Point::new(row.to_string(), at.to_string(), value));
            }
        }
        points
    }

    fn predictability(&self, scoring: &Scoring) -> Vec<Point> {
        let mut by_vector = vec![Vec::new(); VECTORS];
        for samples in self.samples.values() {
            let turns: Vec<&Turn> = samples.iter().filter_map(|it| it.turns.first()).collect();
            let of = |turn: &Turn| {
                vectors(&turn.caches, scoring.super_sets.min(FINEST), &scoring.thresholds)
            };
            let mut agreed = vec![Vec::new(); VECTORS];
            for pair in turns.windows(2) {
                let [before, now] = [of(pair[0]), of(pair[1])];
                for (at, (before, now)) in before.iter().zip(&now).enumerate() {
                    agreed[at].extend(before.agreement(now));
                }
            }
            // Programs are what is drawn; samples of one are much alike.
            for (all, own) in by_vector.iter_mut().zip(&agreed) {
                all.extend(mean(own));
            }
        }
        let point = |(at, shares): (usize, &Vec<f64>)| {
            let ours = mean_estimate(shares).ok()?.times(100.0);
            Some(Point::new(NAMES[at], "all programs", ours).published(Some(PREDICTABLE[at])))
        };
        by_vector.iter().enumerate().filter_map(point).collect()
    }
}
