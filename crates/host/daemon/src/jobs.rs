//! What jobs of a job manager use and need, summed up for whatever chooses which jobs run together.
//!
//! # Problem
//! Which queued jobs suit each other shows in what their programs did before, on any node. A job is over
//! when its node is asked next, and its threads are many.
//!
//! # Approach
//! [`JobAccounts::observe`] adds, after each step of the loop and for each thread of a job, the stack that the
//! policy estimates for the thread alone ([`Policy::stack_alone`]), weighted by the time for which it ran. Sums
//! are kept by job and core type; of a thread only for how long it has run. A job that has ended is kept for [`KEPT`].
//! For jobs that share a core, what the policy has learned of the pair is kept ([`Together`]).
//!
//! # Terms and units
//! *Job*: all programs with one number of the job manager. Shares are of the stack's sum; times in seconds.
//!
//! # Properties
//! - Stacks are means over run time, by core type (`stacks_are_means_over_run_time_by_core_type`).
//! - A job that has ended is reported for a while, and no more than a bounded number
//!   (`jobs_that_ended_are_kept_for_a_while_and_are_bounded`).
//! - All time of a thread counts, and once, also over an exec (`time_before_an_exec_counts_once`).
//! - What the policy does not estimate is absent (`a_policy_without_stacks_gives_run_times_only`).
//! - What the policy has learned of jobs that shared a core is reported, also after their end
//!   (`what_was_learned_of_jobs_that_shared_a_core_is_reported`).

use std::collections::BTreeMap;
use std::time::Duration;

use symbiont_control::Step;
use symbiont_machine::{ProgramId, Timestamp};
use symbiont_policy::Policy;
use symbiont_topology::{CoreKind, Topology};
use symbiont_wire::jobs::{CoreType, Job, JobStack, NextToJob, NodeJobs, VERSION};

use crate::together::Together;

/// How long a job is reported after its end.
const KEPT: Duration = Duration::from_secs(600);
/// Jobs that are kept; of those that have ended, the oldest go first.
const MOST_JOBS: usize = 2048;

/// The job of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JobOf {
    /// Its number.
    pub job: u64,
    /// Its user.
    pub user: u32,
}

/// The jobs of a node.
#[derive(Debug, Default)]
pub struct JobAccounts {
    jobs: BTreeMap<u64, Account>,
    /// How long the threads of jobs had run at the last step, by process, number and birth: an exec changes none
    /// of these.
    run_times: BTreeMap<(u32, u32, u64), Duration>,
    together: Together<u64>,
}

#[derive(Debug, Default)]
struct Account {
    user: u32,
    run_time: Duration,
    stacks: BTreeMap<CoreKind, Counted>,
    ended: Option<Timestamp>,
}

/// Sums of shares, weighted by time.
#[derive(Debug, Default)]
struct Counted {
    seconds: f64,
    parts: BTreeMap<String, f64>,
}

impl JobAccounts {
    /// Adds a step of the loop; `programs`: the programs of jobs that are managed now.
    pub fn observe(
        &mut self,
        step: &Step,
        topology: &Topology,
        policy: &dyn Policy,
        programs: &BTreeMap<ProgramId, JobOf>,
    ) {
        let now = step.sample.at;
        self.keep(now, programs);
        let job = |program| programs.get(&program).map(|of: &JobOf| of.job);
        self.together.observe(step, topology, policy, job);
        let jobs = &self.jobs;
        self.together.retain(|job| jobs.contains_key(&job));
        let before = std::mem::take(&mut self.run_times);
        for thread in &step.sample.threads {
            let Some(of) = programs.get(&thread.program) else { continue };
            let Some(account) = self.jobs.get_mut(&of.job) else { continue };
            let key = (thread.id.process, thread.id.thread, thread.id.born);
            let known = before.get(&key).copied().unwrap_or_default();
            let ran = thread.run_time.saturating_sub(known);
            self.run_times.insert(key, thread.run_time);
            account.run_time += ran;
            // Of a thread that is new nothing was measured yet.
            if !step.characterizations.contains_key(&thread.id) {
                continue;
            }
            let core = thread.cpu.and_then(|cpu| topology.core_of(cpu));
            let Some((core, stack)) = core.zip(policy.stack_alone(thread.id)) else { continue };
            account.stacks.entry(core.kind).or_default().add(&stack, ran.as_secs_f64());
        }
    }

    /// Begins accounts of new jobs, and ends those of jobs that are gone.
    fn keep(&mut self, now: Timestamp, programs: &BTreeMap<ProgramId, JobOf>) {
        let alive: BTreeMap<u64, u32> = programs.values().map(|of| (of.job, of.user)).collect();
        for (job, account) in &mut self.jobs {
            account.ended = match alive.contains_key(job) {
                true => None,
                false => account.ended.or(Some(now)),
            };
        }
        self.jobs.retain(|_, account| account.ended.is_none_or(|ended| now.since(ended) <= KEPT));
        for (job, user) in alive {
            if self.jobs.get(&job).is_some_and(|account| account.user != user) {
                // Another job of the same number: numbers start over.
                self.jobs.remove(&job);
            }
            if !self.jobs.contains_key(&job) && self.make_room() {
                self.jobs.insert(job, Account { user, ..Account::default() });
            }
        }
    }

    /// Is there room for one more, without the one that ended first if need be?
    fn make_room(&mut self) -> bool {
        if self.jobs.len() < MOST_JOBS {
            return true;
        }
        let ended = self.jobs.iter().filter_map(|(job, account)| Some((account.ended?, *job)));
        let oldest = ended.min();
        oldest.is_some_and(|(_, job)| self.jobs.remove(&job).is_some())
    }

    /// All jobs, for a node with this processor, policy and topology.
    #[must_use]
    pub fn report(&self, processor: Option<&str>, policy: &str, topology: &Topology) -> NodeJobs {
        let mut widths: BTreeMap<CoreKind, usize> = BTreeMap::new();
        for core in topology.cores() {
            let width = widths.entry(core.kind).or_default();
            *width = (*width).max(core.cpus.len());
        }
        let core_type = |(kind, width): (CoreKind, usize)| CoreType {
            core: kind.name().to_owned(),
            hardware_threads_per_core: u32::try_from(width).unwrap_or(u32::MAX),
        };
        NodeJobs {
            version: VERSION,
            processor: processor.map(str::to_owned),
            policy: policy.to_owned(),
            core_types: widths.into_iter().map(core_type).collect(),
            jobs: self.jobs.iter().map(|(job, account)| self.job(*job, account)).collect(),
        }
    }

    fn job(&self, job: u64, account: &Account) -> Job {
        let next_to = self.together.of(job);
        let next_to = next_to.map(|(job, next)| NextToJob {
            job,
            ln: next.ln,
            together_s: next.together.as_secs_f64(),
        });
        Job { next_to: next_to.collect(), ..account.report(job) }
    }
}

impl Account {
    fn report(&self, job: u64) -> Job {
        let stack = |(core, counted): (&CoreKind, &Counted)| {
            let mean = |(name, sum): (&String, &f64)| (name.clone(), sum / counted.seconds);
            (counted.seconds > 0.0).then(|| JobStack {
                core: core.name().to_owned(),
                counted_s: counted.seconds,
                components: counted.parts.iter().map(mean).collect(),
            })
        };
        Job {
            job,
            user: self.user,
            ended: self.ended.is_some(),
            run_time_s: self.run_time.as_secs_f64(),
            stacks: self.stacks.iter().filter_map(stack).collect(),
            next_to: Vec::new(),
        }
    }
}

impl Counted {
    fn add(&mut self, stack: &[(&str, f64)], seconds: f64) {
        let is_usable = stack.iter().all(|(_, share)| share.is_finite() && *share >= 0.0);
        if seconds <= 0.0 || stack.is_empty() || !is_usable {
            return;
        }
        let is_same = self.parts.len() == stack.len()
            && stack.iter().all(|(name, _)| self.parts.contains_key(*name));
        if !is_same {
            // Another model has other components, which cannot be averaged with these.
            *self = Self::default();
            self.parts = stack.iter().map(|(name, _)| ((*name).to_owned(), 0.0)).collect();
        }
        self.seconds += seconds;
        for (name, share) in stack {
            if let Some(sum) = self.parts.get_mut(*name) {
                *sum += share * seconds;
            }
        }
    }
}

#[cfg(test)]
mod tests;
