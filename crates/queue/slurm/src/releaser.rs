//! Looks at the queue again and again: learns from jobs that ended, lets jobs start, undoes what did not work out.
//!
//! ```text
//! each look:
//!     ask Slurm for the queue
//!     find the programs of new jobs; forget jobs that are gone
//!     learn from runs that ended, and from what the nodes report      (learning)
//!     give back assigned jobs that do not start                       (undoing)
//!     if jobs wait: ask Slurm for the nodes, and let jobs start       (releasing)
//! ```

mod capacity;
mod learning;
mod pools;
mod reasons;
mod releasing;
mod undoing;

use std::collections::{BTreeMap, BTreeSet};

use symbiont_jobs::slurm::QueuedJob;
use symbiont_jobs::{Account, Identities, Observations, Rules, Store};

use self::releasing::is_started_by;
use crate::assignments::{Assignments, Journal};
use crate::cluster::Cluster;
use crate::knowledge::Knowledge;
use crate::metrics::Metrics;
use crate::nodes::NodeDaemons;
use crate::programs::find_programs;
use crate::tracked::TrackedJobs;
use crate::{Decision, SlurmError};

/// How long a job that is gone is tracked where nodes are asked, seconds: they report jobs for ten minutes after their
/// end.
const REMEMBERED_S: f64 = 900.0;

/// What the releaser is to do.
#[derive(Debug, Clone)]
pub struct ReleaseOptions {
    /// Jobs of this partition only.
    pub partition: Option<String>,
    /// Jobs of this QOS only.
    pub qos: Option<String>,
    /// Bounds of the choice.
    pub rules: Rules,
    /// For how many CPUs of each node jobs are released before they are free.
    pub ahead: usize,
    /// Are jobs released in the order of the queue?
    pub first_come: bool,
    /// Is only decided, and nothing released?
    pub dry_run: bool,
}

impl ReleaseOptions {
    /// The jobs that wait for this releaser.
    fn waiting<'q>(&self, queue: &'q [QueuedJob]) -> Vec<&'q QueuedJob> {
        let is_in = |job: &&QueuedJob| {
            let partition = self.partition.as_ref();
            partition.is_none_or(|name| job.partition.split(',').any(|one| one == name))
                && self.qos.as_ref().is_none_or(|name| job.qos == *name)
        };
        queue.iter().filter(|job| job.waits_for_us()).filter(is_in).collect()
    }
}

/// The releaser.
#[derive(Debug)]
pub struct Releaser<C> {
    cluster: C,
    options: ReleaseOptions,
    knowledge: Knowledge,
    identities: Identities,
    daemons: Option<NodeDaemons>,
    /// What is known of each job.
    jobs: TrackedJobs,
    /// The assignments of these jobs, as the next releaser finds them.
    journal: Journal,
    /// What runs next to what, by node.
    accounts: BTreeMap<String, Account>,
    /// Jobs for which a node is kept, and the node, by pool.
    kept: BTreeMap<String, Vec<(u64, String)>>,
    /// Was it reported that Slurm gives whole cores?
    has_reported_whole: bool,
    /// What is counted.
    pub metrics: Metrics,
    /// What went wrong since these lines were last taken.
    pub troubles: Vec<String>,
}

impl<C: Cluster> Releaser<C> {
    /// Knows what the store holds, and what an earlier releaser has assigned.
    pub fn new(
        cluster: C,
        options: ReleaseOptions,
        store: Store,
        known: Observations,
        (journal, assignments): (Journal, Assignments),
    ) -> Self {
        Self {
            cluster,
            options,
            knowledge: Knowledge::new(store, known),
            identities: Identities::new(&std::env::var("PATH").unwrap_or_default()),
            daemons: None,
            jobs: TrackedJobs::of(assignments),
            journal,
            accounts: BTreeMap::new(),
            kept: BTreeMap::new(),
            has_reported_whole: false,
            metrics: Metrics::default(),
            troubles: Vec::new(),
        }
    }

    /// Also learns from the daemons of the nodes what programs need.
    #[must_use]
    pub fn with_daemons(mut self, daemons: NodeDaemons) -> Self {
        self.daemons = Some(daemons.presuming(self.knowledge.observations()));
        self
    }

    /// Looks at the queue once, and does what is to be done; gives what was decided.
    ///
    /// # Errors
    /// [`SlurmError`] when Slurm as a whole does not answer.
    pub fn step(&mut self, now_s: f64) -> Result<Vec<Decision>, SlurmError> {
        let queue = self.cluster.jobs()?;
        self.take_line_errors();
        self.track(&queue, now_s);
        self.learn_from_ended(&queue, now_s);
        let lines = self.learn_from_nodes(now_s);
        let mut decisions = self.undo(&queue, now_s)?;
        if !self.options.waiting(&queue).is_empty() {
            let layout = self.cluster.layout()?;
            decisions.extend(self.release(&queue, &layout, now_s)?);
        }
        self.take_line_errors();
        self.metrics.errors += self.troubles.len() as u64;
        // A node that does not answer is no error of Slurm.
        self.troubles.extend(lines);
        let waiting = self.options.waiting(&queue).into_iter();
        let waiting = waiting.filter(|job| !is_started_by(&decisions, job.id));
        let waits: Vec<f64> = waiting.map(|job| now_s - job.submitted_s).collect();
        self.metrics.waiting = waits.len();
        self.metrics.longest_wait_s = waits.into_iter().fold(0.0, f64::max);
        Ok(decisions)
    }

    fn take_line_errors(&mut self) {
        let errors = self.cluster.take_line_errors();
        self.troubles.extend(errors);
    }

    /// Finds the programs of new jobs, and forgets jobs that are gone.
    fn track(&mut self, queue: &[QueuedJob], now_s: f64) {
        let ids: BTreeSet<u64> = queue.iter().map(|job| job.id).collect();
        let running: BTreeSet<u64> = self.accounts.values().flat_map(Account::running).collect();
        let remembered_s = if self.daemons.is_some() { REMEMBERED_S } else { 0.0 };
        self.jobs.forget(&ids, &running, now_s, remembered_s);
        find_programs(queue, &mut self.jobs, &mut self.identities, &mut self.cluster);
    }

    /// The name of the program of a job whose script was read.
    #[cfg(test)]
    pub fn program_name(&self, job: u64) -> Option<&str> {
        self.jobs.identity(job).map(|one| one.name.as_str())
    }
}
