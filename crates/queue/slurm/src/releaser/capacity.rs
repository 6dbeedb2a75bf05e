//! Jobs and nodes as the choice takes them: with the room that a node has when all that are on their way have started.
//!
//! Slurm shows a node as it is now. Jobs that were assigned it and have not started yet take CPUs and memory; so do,
//! on the nodes where Slurm is likely to start them, jobs that were left to Slurm at this look ([`Claims`]).

use std::collections::BTreeMap;

use symbiont_jobs::slurm::{Layout, NodeState, QueuedJob, State};
use symbiont_jobs::{Job, Node, Numbering, ProgramNumber, Running};

use crate::tracked::TrackedJobs;

/// What one look knows of the cluster.
#[derive(Clone, Copy)]
pub struct ClusterView<'a> {
    /// The jobs of the queue.
    pub queue: &'a [QueuedJob],
    /// The nodes.
    pub layout: &'a Layout,
    /// When it is, seconds since 1970.
    pub now_s: f64,
}

/// CPUs that jobs take which were left to Slurm at this look, by node.
#[derive(Debug, Default)]
pub struct Claims(BTreeMap<String, usize>);

impl Claims {
    /// Counts the CPUs of a job of one node where Slurm is likely to start it: on the fullest node with room.
    pub fn add(&mut self, job: &QueuedJob, layout: &Layout) {
        let free = |node: &&NodeState| node.idle.saturating_sub(self.of(&node.name));
        let could =
            layout.nodes.iter().filter(|node| node.takes_jobs && layout.could_take(job, node));
        let fullest = could.filter(|node| free(node) >= job.cpus).min_by_key(free);
        if let Some(node) = fullest.filter(|_| job.nodes <= 1) {
            *self.0.entry(node.name.clone()).or_default() += job.cpus;
        }
    }

    fn of(&self, node: &str) -> usize {
        self.0.get(node).copied().unwrap_or(0)
    }
}

/// Jobs that were assigned a node, and do not run yet.
fn coming<'a>(
    view: ClusterView<'a>,
    tracked: &'a TrackedJobs,
    node: &'a str,
) -> impl Iterator<Item = &'a QueuedJob> {
    let comes = move |job: &&QueuedJob| {
        let assignment = tracked.get(job.id).and_then(|job| job.assignment.as_ref());
        assignment.is_some_and(|assignment| !assignment.has_started && assignment.node == node)
    };
    view.queue.iter().filter(|job| job.state == State::Pending).filter(comes)
}

/// Makes jobs and nodes as the choice takes them, in units of CPUs.
pub struct ChoiceInput<'a> {
    /// The cluster now.
    pub view: ClusterView<'a>,
    /// What is known of each job.
    pub tracked: &'a TrackedJobs,
    /// What jobs take that were left to Slurm.
    pub claims: &'a Claims,
    /// CPUs of a unit.
    pub unit: usize,
    /// Units that are given before they are free.
    pub ahead: usize,
}

impl ChoiceInput<'_> {
    /// A job that waits.
    pub fn job(&self, job: &QueuedJob, numbering: &mut Numbering) -> Job {
        Job {
            id: job.id,
            program: self.number(job.id, numbering),
            priority: job.priority,
            submitted_s: job.submitted_s,
            slots: job.needs.units(job.cpus, self.unit),
            // A job that is released before its CPU is free starts later, and when is not known.
            limit_s: job.limit_s.filter(|_| self.ahead == 0).unwrap_or(f64::INFINITY),
        }
    }

    /// A node as it will be when all that are on their way have started.
    pub fn node(&self, state: &NodeState, numbering: &mut Numbering) -> Node {
        let Self { view, unit, ahead, .. } = *self;
        let coming: Vec<&QueuedJob> = coming(view, self.tracked, &state.name).collect();
        let claimed = self.claims.of(&state.name).div_ceil(unit);
        let coming_units = coming.iter().map(|job| job.needs.units(job.cpus, unit));
        let taken = coming_units.sum::<usize>() + claimed;
        let runs =
            |job: &&QueuedJob| job.state == State::Running && job.runs_on.contains(&state.name);
        let here = view.queue.iter().filter(runs).chain(coming);
        Node {
            name: state.name.clone(),
            slots: state.cpus / unit + ahead,
            free: (state.idle / unit + ahead).saturating_sub(taken),
            running: here.map(|job| self.running(job, numbering)).collect(),
        }
    }

    /// A job that runs, or will soon.
    fn running(&self, job: &QueuedJob, numbering: &mut Numbering) -> Running {
        let comes_s = job.limit_s.filter(|_| job.state == State::Pending);
        let ends_s = job.ends_s.or_else(|| Some(self.view.now_s + comes_s?));
        // A job of several nodes has as many CPUs of each.
        let cpus = job.cpus.div_ceil(job.runs_on.len().max(1));
        Running {
            program: self.number(job.id, numbering),
            slots: job.needs.units(cpus, self.unit),
            ends_s: ends_s.unwrap_or(f64::INFINITY),
        }
    }

    /// The number of the program of a job; one that is not known yet is average.
    fn number(&self, job: u64, numbering: &mut Numbering) -> ProgramNumber {
        let known = self.tracked.identity(job);
        known.map_or(UNKNOWN, |identity| numbering.number(&identity.key))
    }
}

/// The number of a program that is not known.
pub const UNKNOWN: ProgramNumber = ProgramNumber(u32::MAX);

/// Memory that is left of each node for the jobs of one look, MB.
#[derive(Debug, Default)]
pub struct MemoryLeft(BTreeMap<String, u64>);

impl MemoryLeft {
    /// What jobs leave that are on their way.
    pub fn of<'n>(
        nodes: impl Iterator<Item = &'n NodeState>,
        view: ClusterView<'_>,
        tracked: &TrackedJobs,
    ) -> Self {
        let left = |node: &NodeState| {
            let coming = coming(view, tracked, &node.name);
            let taken: u64 = coming.map(|job| view.layout.memory_mb(job, node)).sum();
            node.memory_free_mb.saturating_sub(taken)
        };
        Self(nodes.map(|node| (node.name.clone(), left(node))).collect())
    }

    /// Takes a job's memory of a node, if there is enough of it.
    pub fn take(&mut self, job: &QueuedJob, node: &NodeState, layout: &Layout) -> bool {
        let need_mb = layout.memory_mb(job, node);
        let Some(left_mb) = self.0.get_mut(&node.name) else { return false };
        match left_mb.checked_sub(need_mb) {
            Some(rest_mb) => *left_mb = rest_mb,
            None => return false,
        }
        true
    }
}
