//! What the answers of nodes add to what is known of programs: CPI stacks, where there is a model; what was learned of
//! programs that shared cores; CPU times of jobs that have ended.
//!
//! ```text
//! an answer of a node  →  a line, once, if it is of no use: no answer, another processor, other stacks
//! each of its jobs whose program is known, and of which no other node has reported:
//!     add what the store does not have yet of its stack, and of the jobs next to it
//!     add its CPU time, once, when it has ended
//! ```
//!
//! # Properties
//! - Nothing is added twice (`each_answer_adds_what_is_new`,
//!   `a_daemon_that_began_anew_is_heard_from_its_beginning`).
//! - What does not fit is not used, and said once
//!   (`trouble_with_a_node_is_said_once_and_nothing_of_it_is_used`).
//! - A job counts for the program of its user (`jobs_that_are_not_known_or_another_users_are_left_out`).

use std::collections::BTreeMap;

use symbiont_jobs::{Identity, NextTo, ProgramKey, Stack};
use symbiont_model::Model;
use symbiont_wire::jobs::{Job, NextToJob};

use super::poller::NodeAnswer;
use super::requirements::{Requirements, Usable};
use crate::progress::JobProgress;
use crate::tracked::TrackedJobs;

/// How long a node's progress with a job is remembered without a report, seconds: longer than nodes report a job after
/// its end.
const REMEMBERED_S: f64 = 1800.0;

/// What an answer adds on a job.
#[derive(Debug, Clone, PartialEq)]
pub struct JobUpdate {
    /// The job.
    pub job: u64,
    /// Its program.
    pub program: Identity,
    /// What was counted of it.
    pub stack: Option<Stack>,
    /// What was learned of it next to other programs.
    pub next_to: Vec<(ProgramKey, NextTo)>,
    /// CPU time of all of it, seconds; once, when it has ended.
    pub cpu_s: Option<f64>,
}

/// What nodes have answered so far.
#[derive(Debug)]
pub struct NodeReports {
    /// What nodes have to be for their answers to be of use.
    requirements: Requirements,
    /// Hardware threads per core, of each node that answered when it was last asked.
    widths: BTreeMap<String, usize>,
    /// The trouble with each node that is of no use, as it was reported.
    reported: BTreeMap<String, String>,
}

impl NodeReports {
    /// Nothing yet, from nodes for which this model is, if there is one.
    pub fn of(model: Option<&Model>) -> Self {
        Self {
            requirements: Requirements::of(model),
            widths: BTreeMap::new(),
            reported: BTreeMap::new(),
        }
    }

    /// The processor of the nodes, once it is known.
    pub fn processor(&self) -> Option<&str> {
        self.requirements.processor()
    }

    /// How many nodes answered when they were last asked.
    pub fn answering(&self) -> usize {
        self.widths.len()
    }

    /// Hardware threads per core of the widest of some nodes; none: none of them has answered.
    pub fn width<'n>(&self, nodes: impl Iterator<Item = &'n str>) -> Option<usize> {
        nodes.filter_map(|node| self.widths.get(node).copied()).max()
    }

    /// Reads an answer. Trouble with the node becomes a line.
    pub fn read(
        &mut self,
        answer: NodeAnswer,
        tracked: &mut TrackedJobs,
        now_s: f64,
        lines: &mut Vec<String>,
    ) -> Vec<JobUpdate> {
        let NodeAnswer { node, jobs } = answer;
        let jobs = match jobs {
            Ok(jobs) => jobs,
            Err(why) => {
                self.widths.remove(&node);
                let trouble = format!("does not say what its jobs need: {why}");
                self.report_once(&node, Some(trouble), lines);
                return Vec::new();
            }
        };
        self.widths.insert(node.clone(), self.requirements.width(&jobs));
        let mut usable = self.requirements.check(&jobs);
        self.report_once(&node, usable.trouble.take(), lines);
        let owners: BTreeMap<u64, u32> = jobs.jobs.iter().map(|job| (job.job, job.user)).collect();
        let update = |job: &Job| {
            let program = program_of(tracked, job.job, job.user)?.clone();
            let key = |next: &NextToJob| {
                let program = program_of(tracked, next.job, *owners.get(&next.job)?)?;
                Some((next.clone(), program.key.clone()))
            };
            let partners = job.next_to.iter().filter(|_| usable.next_to).filter_map(key).collect();
            let progress = progress(tracked, job.job, &node, now_s)?;
            self.update(job, program, partners, progress, &usable)
        };
        jobs.jobs.iter().filter_map(update).collect()
    }

    /// What a report adds on a job; none: nothing.
    fn update(
        &self,
        job: &Job,
        program: Identity,
        partners: Vec<(NextToJob, ProgramKey)>,
        progress: &mut JobProgress,
        usable: &Usable,
    ) -> Option<JobUpdate> {
        let processor = || self.processor().unwrap_or_default().to_owned();
        let stack = self.requirements.stack(job).filter(|_| usable.stacks);
        let new = stack.and_then(|stack| progress.new_stack(stack, job.ended));
        let stack = new.map(|(components, counted_s)| Stack {
            processor: processor(),
            components,
            counted_s,
        });
        let next_to = partners.into_iter().filter_map(|(next, other)| {
            let together_s = progress.new_time_next_to(&next, job.ended)?;
            Some((other, NextTo { processor: processor(), ln: next.ln, together_s }))
        });
        let next_to: Vec<(ProgramKey, NextTo)> = next_to.collect();
        let cpu_s = (job.ended && !progress.is_over).then_some(job.run_time_s);
        progress.is_over = job.ended;
        let is_new = stack.is_some() || cpu_s.is_some() || !next_to.is_empty();
        is_new.then_some(JobUpdate { job: job.job, program, stack, next_to, cpu_s })
    }

    /// Reports a trouble with a node once, until it is over.
    fn report_once(&mut self, node: &str, trouble: Option<String>, lines: &mut Vec<String>) {
        match trouble {
            Some(trouble) if self.reported.get(node) == Some(&trouble) => {}
            Some(trouble) => {
                lines.push(format!("node {node} {trouble}"));
                self.reported.insert(node.to_owned(), trouble);
            }
            None => drop(self.reported.remove(node)),
        }
    }
}

/// The program of a user's job.
fn program_of(tracked: &TrackedJobs, job: u64, user: u32) -> Option<&Identity> {
    tracked.identity(job).filter(|program| program.key.user == user)
}

/// The progress of a job on this node; none: another node has reported it.
fn progress<'t>(
    tracked: &'t mut TrackedJobs,
    job: u64,
    node: &str,
    now_s: f64,
) -> Option<&'t mut JobProgress> {
    let progress = &mut tracked.track(job).progress;
    if progress.as_ref().is_some_and(|one| now_s - one.at_s >= REMEMBERED_S) {
        *progress = None;
    }
    let progress = progress.get_or_insert_with(|| JobProgress::new(node, now_s));
    if progress.node != node {
        return None;
    }
    progress.at_s = now_s;
    Some(progress)
}

#[cfg(test)]
mod tests;
