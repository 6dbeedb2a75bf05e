//! More jobs than hardware threads: jobs are switched while the caches keep their contents.
//!
//! # Problem
//! Settle et al. schedule jobs on the hardware threads of a core, one interval of some million cycles at a
//! time. What a job finds in the caches depends on the jobs that ran before it, and the lines that it evicts
//! from others are counted.
//!
//! # Approach
//! One [`Chip`] for all intervals. A job that is switched out stops fetching; once everything in flight is done,
//! the hardware thread continues with another job. The other hardware threads run on meanwhile. In each cache a
//! job is one user, wherever it runs, so that what it finds evicted after its turn counts as *inter-thread*
//! if another job did it, and as its own if it did it itself.
//!
//! Counts by set are summed over *super-sets*, groups of equally many sets ([`SuperSetIndexing`]).
//!
//! # What this leaves out
//! What the OS itself executes at a switch (as in the paper, section 4.3); translation buffers are not flushed,
//! as buffers with address-space identifiers are not.
//!
//! # Terms and units
//! *Job*: an endless stream of operations. *Context*: a hardware thread. Times are nanoseconds.
//!
//! # Properties
//! - Sets count what an independent simulation of the caches counts
//!   (`super_sets_count_what_an_independent_model_counts`).
//! - Without a switch nothing differs from a chip (`without_an_exchange_jobs_run_as_on_a_chip`).
//! - No operation is lost or repeated by switches (`exchanges_lose_and_repeat_nothing`).
//! - Caches keep their contents, and report which job evicted a line (`a_job_finds_its_lines_again`,
//!   `a_job_that_follows_another_is_another_one`).
//! - With private caches, jobs evict nothing of each other
//!   (`jobs_with_caches_of_their_own_displace_nothing_of_others`).

#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};
use symbiont_sim_fast::description::Description;

use crate::cache::SetCounts;
pub use crate::chip::Context;
use crate::chip::{Chip, ChipError};
use crate::core::Work;
use crate::levels::Kind;
use crate::op::Stream;
use crate::{Counts, CycleOptions};

/// Time by which draining hardware threads are looked at again, ns.
const LOOK: f64 = 20.0;

/// Jobs that share hardware threads.
pub struct Jobs<'s> {
    chip: Chip<'s>,
    ns: f64,
    /// The job on each hardware thread.
    running: Vec<Option<usize>>,
    /// What those execute that do not run.
    waiting: Vec<Option<Work<'s>>>,
    /// What each did in its earlier turns, and where its present turn began.
    before: Vec<Counts>,
    began: Vec<Counts>,
}

impl<'s> Jobs<'s> {
    /// On these hardware threads; none of the jobs runs yet, and caches are cold.
    ///
    /// # Errors
    /// When the machine has no such hardware thread, or there are none, or no jobs.
    pub fn new(
        machine: &Description,
        contexts: &[Context],
        jobs: Vec<Stream<'s>>,
        options: &CycleOptions,
    ) -> Result<Self, ChipError> {
        let chip = Chip::idle(machine, contexts, jobs.len(), options)?;
        let count = jobs.len();
        let waiting = jobs.into_iter().enumerate();
        Ok(Self {
            chip,
            ns: 0.0,
            running: vec![None; contexts.len()],
            waiting: waiting.map(|(job, stream)| Some(Work::new(job, stream))).collect(),
            before: vec![Counts::default(); count],
            began: vec![Counts::default(); count],
        })
    }

    /// The job on each hardware thread.
    #[must_use]
    pub fn running(&self) -> &[Option<usize>] {
        &self.running
    }

    /// Time since the start, ns.
    #[must_use]
    pub fn ns(&self) -> f64 {
        self.ns
    }

    /// Runs these jobs from now on, each on the hardware thread at its index; a job that is there already goes on. Jobs
    /// that leave drain first. What is out of range, or named twice, is left out.
    pub fn assign(&mut self, wanted: &[Option<usize>]) {
        let mut next = vec![None; self.running.len()];
        for (at, job) in wanted.iter().enumerate().take(next.len()) {
            let free = job.filter(|job| *job < self.waiting.len() && !next.contains(&Some(*job)));
            next[at] = free;
        }
        let leaving: Vec<usize> =
            (0..next.len()).filter(|&at| next[at] != self.running[at]).collect();
        let mut left = Vec::new();
        for &at in &leaving {
            let work = self.chip.leave(at);
            left.push((at, self.running[at], work));
        }
        while leaving.iter().any(|at| !self.chip.is_drained(*at)) {
            self.run(LOOK);
        }
        for (at, job, work) in left {
            let Some(job) = job else { continue };
            self.before[job] = self.counts(job);
            self.waiting[job] = work;
            self.running[at] = None;
        }
        for at in leaving {
            let Some(job) = next[at] else { continue };
            let Some(mut work) = self.waiting[job].take() else { continue };
            work.user = self.user(at, job);
            self.running[at] = Some(job);
            self.chip.enter(at, work);
            self.began[job] = self.chip.counts(at);
        }
    }

    /// Lets those that run go on for so long.
    pub fn run(&mut self, ns: f64) {
        self.ns += ns;
        self.chip.run_until(self.ns);
    }

    /// What a job did so far; cycles are those in which it ran.
    #[must_use]
    pub fn counts(&self, job: usize) -> Counts {
        let (Some(before), Some(began)) = (self.before.get(job), self.began.get(job)) else {
            return Counts::default();
        };
        let turn = self.running.iter().position(|running| *running == Some(job));
        match turn {
            Some(at) => before.plus(&self.chip.counts(at).since(began)),
            None => *before,
        }
    }

    /// What a job did to each super-set of its caches of a kind, so far; empty without such a cache.
    #[must_use]
    pub fn super_sets(
        &self,
        job: usize,
        kind: Kind,
        (count, reading): (usize, SuperSetIndexing),
    ) -> Vec<SetCounts> {
        let levels = self.chip.levels();
        let mut seen = Vec::new();
        let mut sums: Vec<SetCounts> = Vec::new();
        for at in 0..self.running.len() {
            let user = self.user(at, job);
            let Some(cache) = levels.instance(user, kind).filter(|cache| !seen.contains(cache))
            else {
                continue;
            };
            seen.push(cache);
            let own = super_sets(levels.sets(user, kind), count, reading);
            if sums.is_empty() {
                sums = own;
            } else {
                sums.iter_mut().zip(own).for_each(|(sum, own)| sum.add(&own));
            }
        }
        sums
    }

    fn user(&self, at: usize, job: usize) -> usize {
        at * self.waiting.len() + job
    }
}

/// Which sets of a cache are a super-set: Settle et al. say both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SuperSetIndexing {
    /// Neighbours (section 2.2).
    Contiguous,
    /// Those whose numbers have the same low-order bits (section 4.2).
    LowOrderBits,
}

impl SuperSetIndexing {
    /// The group of each of so many places, for at most `most` groups of equally many; and how many groups there are.
    pub fn groups(self, places: usize, most: usize) -> (impl Fn(usize) -> usize, usize) {
        let each = places.div_ceil(most.max(1)).max(1);
        let groups = places.div_ceil(each);
        let of = move |place: usize| match self {
            Self::Contiguous => place / each,
            Self::LowOrderBits => place % groups.max(1),
        };
        (of, groups)
    }
}

/// Sums over so many groups of equally many sets; fewer groups if there are fewer sets.
#[must_use]
pub fn super_sets(sets: &[SetCounts], count: usize, reading: SuperSetIndexing) -> Vec<SetCounts> {
    let (of, groups) = reading.groups(sets.len(), count);
    let mut sums = vec![SetCounts::default(); groups];
    for (at, set) in sets.iter().enumerate() {
        if let Some(sum) = sums.get_mut(of(at)) {
            sum.add(set);
        }
    }
    sums
}
