//! Which waiting jobs start, and where.
//!
//! ```text
//! for each job that waits, unless Slurm has refused it twice:
//!     its needs are not understood, or Slurm took no node for it  →  it starts where Slurm wants
//! for each pool of nodes (see pools):
//!     nodes := as they will be when all that are on their way have started (see capacity)
//!     choose jobs for these nodes by predicted slowdowns; drop those for which the memory does not suffice
//!     write all assignments to the journal, then ask Slurm for each
//! ```
//!
//! What is chosen is counted in units of CPUs, and in memory, as Slurm gives them.
//!
//! # Properties
//! - A job goes only to nodes that have what it asks for (`a_job_is_assigned_only_nodes_that_have_what_it_asks_for`,
//!   `no_job_is_assigned_a_node_that_is_reserved_before_it_ends`); where that is not understood, Slurm chooses
//!   (`a_job_whose_needs_are_not_understood_starts_where_slurm_wants`).
//! - Whole cores are counted as such (`jobs_take_whole_cores_where_slurm_gives_them`).
//! - A job that Slurm refuses stops no other (`a_job_that_slurm_refuses_is_a_line_and_stops_no_other`).
//! - What users write decides on no job (`what_users_write_changes_not_which_jobs_are_acted_on`).

use std::collections::{BTreeMap, BTreeSet};

use symbiont_jobs::slurm::{Layout, NodeState, QueuedJob};
use symbiont_jobs::{Choice, Flat, Job, Node, Release, choose_among};

use super::Releaser;
use super::capacity::{ChoiceInput, Claims, ClusterView, MemoryLeft};
use super::pools::{Pool, groups, name_of, pools};
use super::reasons::label;
use crate::assignments::{Assignment, Assignments};
use crate::cluster::Cluster;
use crate::knowledge::{NodeKind, Predictor};
use crate::nodes::NodeDaemons;
use crate::{Decision, SlurmError};

/// How often a job may be refused by Slurm, before it is left alone as long as it is in the queue: once with a node,
/// once without.
const MOST_REFUSALS: u32 = 2;

impl<C: Cluster> Releaser<C> {
    /// Lets jobs start.
    pub(super) fn release(
        &mut self,
        queue: &[QueuedJob],
        layout: &Layout,
        now_s: f64,
    ) -> Result<Vec<Decision>, SlurmError> {
        let view = ClusterView { queue, layout, now_s };
        let (mut decisions, mut claims, mut chosen) = (Vec::new(), Claims::default(), Vec::new());
        let mut left = Vec::new();
        for job in self.options.waiting(queue) {
            let refusals = self.jobs.refusals(job.id);
            let refused = (refusals > 0).then(|| "Slurm takes no node for it".to_owned());
            match layout.trouble(job).or(refused) {
                _ if refusals >= MOST_REFUSALS => {}
                Some(why) => left.push((job, why)),
                None => chosen.push(job),
            }
        }
        for (job, why) in left {
            if let Some(decision) = self.leave(job, &why, now_s)? {
                claims.add(job, layout);
                decisions.push(decision);
            }
        }
        for group in groups(&chosen, layout) {
            decisions.extend(self.release_of_group(view, &chosen, &claims, &group)?);
        }
        Ok(decisions)
    }

    /// Lets a job start where Slurm wants; none: Slurm refused.
    fn leave(
        &mut self,
        job: &QueuedJob,
        why: &str,
        now_s: f64,
    ) -> Result<Option<Decision>, SlurmError> {
        if !self.start(job, None)? {
            return Ok(None);
        }
        *self.metrics.released.entry("slurm").or_default() += 1;
        let program = self.jobs.program_name(job.id);
        Ok(Some(Decision {
            is_left: true,
            waited_s: now_s - job.submitted_s,
            ..Decision::of(job.id, program, now_s, why.to_owned())
        }))
    }

    /// Starts a job; false: Slurm refused, which is remembered.
    fn start(&mut self, job: &QueuedJob, node: Option<&str>) -> Result<bool, SlurmError> {
        if self.options.dry_run {
            return Ok(true);
        }
        match self.cluster.release(job, node) {
            Ok(()) => Ok(true),
            Err(error) if error.is_of_all() => Err(error),
            Err(error) => {
                if !error.is_passing() {
                    self.jobs.track(job.id).refusals += 1;
                }
                self.troubles.push(format!("job {} is not released: {error}", job.id));
                Ok(false)
            }
        }
    }

    /// Lets jobs of partitions start that share nodes.
    fn release_of_group(
        &mut self,
        view: ClusterView<'_>,
        chosen: &[&QueuedJob],
        claims: &Claims,
        group: &BTreeSet<String>,
    ) -> Result<Vec<Decision>, SlurmError> {
        let pools = pools(group, view.layout);
        if let Some(daemons) = &mut self.daemons {
            let nodes: Vec<NodeState> =
                pools.iter().flat_map(|pool| &pool.nodes).cloned().collect();
            daemons.ask(&name_of(group), &nodes);
        }
        let mut decisions = Vec::new();
        for pool in pools {
            if pool.unit > 1 && !self.has_reported_whole {
                self.has_reported_whole = true;
                self.troubles.push(format!(
                    "Slurm gives jobs {} CPUs at least (SelectTypeParameters, and the nodes' cores): \
                     which jobs share these is not to be chosen",
                    pool.unit
                ));
            }
            let of_group = chosen.iter().filter(|job| group.contains(&job.partition));
            let waiting = of_group.filter(|job| !is_started_by(&decisions, job.id));
            let waiting: Vec<&QueuedJob> = waiting.copied().collect();
            decisions.extend(self.release_to_pool(view, &waiting, claims, &pool)?);
        }
        Ok(decisions)
    }

    /// Lets jobs start on the nodes of a pool.
    fn release_to_pool(
        &mut self,
        view: ClusterView<'_>,
        waiting: &[&QueuedJob],
        claims: &Claims,
        pool: &Pool,
    ) -> Result<Vec<Decision>, SlurmError> {
        let mut predictor = self.take_predictor(&pool.nodes);
        // Where no job may start, none has to be kept off either.
        let open: BTreeMap<&str, &NodeState> = pool
            .nodes
            .iter()
            .filter(|node| node.takes_jobs)
            .map(|node| (node.name.as_str(), node))
            .collect();
        let by_id: BTreeMap<u64, &QueuedJob> = waiting.iter().map(|job| (job.id, *job)).collect();
        let (unit, ahead) = (pool.unit, self.options.ahead);
        let input = ChoiceInput { view, tracked: &self.jobs, claims, unit, ahead };
        let numbering = &mut predictor.numbering;
        let nodes: Vec<Node> = open.values().map(|node| input.node(node, numbering)).collect();
        let queue: Vec<Job> = waiting.iter().map(|job| input.job(job, numbering)).collect();
        let places = Places { view, jobs: &by_id, nodes: &open };
        let Choice { mut releases, kept } = self.choose(&queue, &nodes, places, &predictor);
        if view.layout.selection.with_memory {
            // One after the other they have to fit in the memory, too.
            let mut memory = MemoryLeft::of(open.values().copied(), view, &self.jobs);
            releases.retain(|release| {
                places
                    .of(release.job, &release.node)
                    .is_none_or(|(job, node)| memory.take(job, node, view.layout))
            });
        }
        let mut decisions = self.carry_out(&releases, &by_id, view.now_s, &predictor)?;
        let before = self.kept.insert(pool.name.clone(), kept.clone()).unwrap_or_default();
        let new = kept.into_iter().filter(|one| !before.contains(one));
        decisions.extend(new.map(|(id, node)| self.keeps(id, node, &queue, view.now_s)));
        self.knowledge.keep_predictor(predictor);
        Ok(decisions)
    }

    fn take_predictor(&mut self, nodes: &[NodeState]) -> Predictor {
        let daemons = self.daemons.as_ref();
        let kind = daemons.map_or_else(|| NodeKind::of(nodes), |daemons| daemons.kind(nodes));
        self.knowledge.take_predictor(daemons.and_then(NodeDaemons::model), kind)
    }

    fn choose(
        &self,
        queue: &[Job],
        nodes: &[Node],
        places: Places<'_>,
        predictor: &Predictor,
    ) -> Choice {
        let Places { view, .. } = places;
        let admits = |job: &Job, node: &str| {
            places.of(job.id, node).is_some_and(|(job, node)| {
                view.layout.could_take(job, node) && view.layout.takes_now(job, node, view.now_s)
            })
        };
        let (rules, now_s) = (&self.options.rules, view.now_s);
        match self.options.first_come {
            true => choose_among(queue, nodes, now_s, rules, &Flat, Some(&admits)),
            false => choose_among(queue, nodes, now_s, rules, &predictor.combined, Some(&admits)),
        }
    }

    /// Releases jobs to their nodes; where that cannot be noted in the journal, to any.
    fn carry_out(
        &mut self,
        releases: &[Release],
        jobs: &BTreeMap<u64, &QueuedJob>,
        now_s: f64,
        predictor: &Predictor,
    ) -> Result<Vec<Decision>, SlurmError> {
        let noted = self.note(releases, jobs, now_s);
        let mut decisions = Vec::new();
        for release in releases {
            let Some(job) = jobs.get(&release.job) else { continue };
            if let Err(why) = &noted {
                decisions.extend(self.leave(job, why, now_s)?);
                continue;
            }
            // Slurm may have done what it refuses: the assignment stays until the next look.
            if !self.start(job, Some(&release.node))? {
                continue;
            }
            *self.metrics.released.entry(label(&release.reason)).or_default() += 1;
            let waited_s = now_s - job.submitted_s;
            decisions.push(self.released(release, waited_s, now_s, predictor));
        }
        Ok(decisions)
    }

    /// Notes assignments in the journal, before Slurm is asked for them.
    ///
    /// # Errors
    /// Why they cannot be noted: then there are none.
    fn note(
        &mut self,
        releases: &[Release],
        jobs: &BTreeMap<u64, &QueuedJob>,
        now_s: f64,
    ) -> Result<(), String> {
        let assignment = |release: &Release| {
            let job = jobs.get(&release.job)?;
            Some((release.job, Assignment::new(job, &release.node, now_s)))
        };
        let new: Assignments = releases.iter().filter_map(assignment).collect();
        if !new.is_empty() && !self.options.dry_run {
            let mut all = self.jobs.assignments();
            all.extend(new.clone());
            self.journal.write(&all).map_err(|why| format!("its node cannot be noted: {why}"))?;
        }
        self.jobs.assign(new);
        Ok(())
    }
}

/// Jobs and nodes among which is chosen.
#[derive(Clone, Copy)]
struct Places<'a> {
    view: ClusterView<'a>,
    jobs: &'a BTreeMap<u64, &'a QueuedJob>,
    nodes: &'a BTreeMap<&'a str, &'a NodeState>,
}

impl<'a> Places<'a> {
    /// A job and a node, if both are among them.
    fn of(self, job: u64, node: &str) -> Option<(&'a QueuedJob, &'a NodeState)> {
        let (job, node) = self.jobs.get(&job).zip(self.nodes.get(node))?;
        Some((*job, *node))
    }
}

/// Do these decisions let a job start?
pub(super) fn is_started_by(decisions: &[Decision], job: u64) -> bool {
    decisions.iter().any(|decision| decision.job == job && !decision.is_kept)
}
