//! The scheduler of Linux 2.6.0 in a run: which job of a queue runs next, and what it was chosen from.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::queues::{Queues, pick};
use super::scoring::{CacheCounts, Scoring, weighted};

/// What decides which job of a pool runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum By {
    /// The first.
    Default,
    /// Overlap of vectors.
    Vectors,
    /// Product of misses of the L2.
    Misses,
    /// A control: overlap of another job's vectors.
    OthersVectors,
}

/// A choice of the scheduler while another job ran on the other hardware thread.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Decision {
    /// Overlap of each job of the pool with the job on the other hardware thread, the default's first.
    pub overlaps: Vec<f64>,
    /// Which was chosen.
    pub chosen: usize,
}

/// Counts of a program alone by interval, each with the instructions after which it ends.
pub type Intervals = BTreeMap<String, Vec<(u64, Vec<CacheCounts>)>>;

/// The scheduler in a run.
pub struct Scheduler<'a> {
    queues: Queues,
    by: By,
    scoring: &'a Scoring,
    intervals: Vec<&'a [(u64, Vec<CacheCounts>)]>,
    /// The CPU that schedules next.
    next: usize,
    /// Choices so far.
    pub decisions: Vec<Decision>,
}

impl<'a> Scheduler<'a> {
    /// Of these jobs on this many hardware threads.
    pub fn new(
        jobs: &[String],
        cpus: usize,
        by: By,
        scoring: &'a Scoring,
        intervals: &'a Intervals,
    ) -> Self {
        let of = |job: &String| intervals.get(job).map_or(&[][..], Vec::as_slice);
        Self {
            queues: Queues::new(jobs.len(), cpus),
            by,
            scoring,
            intervals: jobs.iter().map(of).collect(),
            next: 0,
            decisions: Vec::new(),
        }
    }

    /// The jobs of the next half of a time slice; `retired` by job, `misses` of its last slice in units of the average
    /// program's.
    pub fn next(
        &mut self,
        running: &[Option<usize>],
        complete: &dyn Fn(usize) -> bool,
        retired: &[u64],
        misses: &[f64],
    ) -> Vec<Option<usize>> {
        let mut now = running.to_vec();
        let turn = self.next % now.len().max(1);
        self.next += 1;
        for cpu in 0..now.len() {
            let done = now[cpu].is_none_or(complete);
            if cpu != turn && !done {
                continue;
            }
            if let Some(job) = now[cpu].take().filter(|_| !done) {
                self.queues.expire(cpu, job);
            }
            let others: Vec<usize> = now.iter().flatten().copied().collect();
            let job = self.choose(cpu, &others, retired, misses);
            if let Some(job) = job {
                self.queues.take(cpu, job);
            }
            now[cpu] = job;
        }
        now
    }

    fn choose(
        &mut self,
        cpu: usize,
        others: &[usize],
        retired: &[u64],
        misses: &[f64],
    ) -> Option<usize> {
        let pool = self.queues.pool(cpu);
        let Some(other) = others.first().copied().filter(|_| !pool.is_empty()) else {
            return pool.first().copied();
        };
        let overlap = |shift: usize| -> Vec<f64> {
            pool.iter().map(|job| self.overlap((*job, other), retired, shift)).collect()
        };
        let of = |job: usize| misses.get(job).copied().unwrap_or(0.0);
        let overlaps = overlap(0);
        let chosen = match self.by {
            By::Default => 0,
            By::Vectors => pick(&overlaps),
            By::OthersVectors => pick(&overlap(1)),
            By::Misses => pick(&pool.iter().map(|job| of(*job) * of(other)).collect::<Vec<_>>()),
        };
        self.decisions.push(Decision { overlaps, chosen });
        pool.get(chosen).copied()
    }

    /// Overlap of two jobs where they are now; `shift`: with the vectors of the job so many places further on.
    fn overlap(&self, (one, other): (usize, usize), retired: &[u64], shift: usize) -> f64 {
        let count = self.intervals.len().max(1);
        let now = |job: usize| {
            let of = self.intervals.get((job + shift) % count)?;
            let at = retired.get(job).copied().unwrap_or(0);
            let found = of.iter().find(|(end, _)| *end > at).or(of.last())?;
            Some(self.scoring.vectors(job, &found.1))
        };
        let pair = now(one).zip(now(other));
        pair.map_or(0.0, |(one, other)| weighted(&one, &other, &self.scoring.overlap))
    }
}
