//! Which waiting jobs start, and where.
//!
//! Partitions that share nodes are looked at together, so that a node that is kept for a job of one is not filled by the
//! other's; nodes whose units of CPUs differ in size (cores of one or two threads) one kind after the other. What is
//! chosen is counted in these units, and in memory, as Slurm gives them.
//!
//! # Properties
//! - A job goes only to nodes that have what it asks for (`a_job_is_assigned_only_nodes_that_have_what_it_asks_for`,
//!   `no_job_is_assigned_a_node_that_is_reserved_before_it_ends`); where that is not understood, Slurm chooses
//!   (`a_job_whose_needs_are_not_understood_starts_where_slurm_wants`).
//! - Whole cores are counted as such (`jobs_take_whole_cores_where_slurm_gives_them`).
//! - What is refused of one job stops no other (`a_job_that_slurm_refuses_is_a_line_and_stops_no_other`).
//! - What users write decides on no job (`what_users_write_changes_not_which_jobs_are_acted_on`).

use std::collections::{BTreeMap, BTreeSet};

use symbiont_jobs::slurm::{Layout, NodeState, QueuedJob, State};
use symbiont_jobs::{
    Basis, Choice, Flat, Job, Node, Numbering, Program, Reason, Release, Running, choose_among,
};

use super::Releaser;
use crate::slurm::cluster::{Cluster, SlurmError};
use crate::slurm::decisions::Decision;
use crate::slurm::predicting::Predicting;
use crate::slurm::released::Released;

/// A job that Slurm refused to let start so often is left alone as long as it is in the queue: once with a node, once
/// without.
const MOST_REFUSALS: u32 = 2;

impl<C: Cluster> Releaser<C> {
    /// Lets jobs start.
    pub(super) fn release(
        &mut self,
        jobs: &[QueuedJob],
        layout: &Layout,
        now_s: f64,
    ) -> Result<Vec<Decision>, SlurmError> {
        let refusals = |job: &QueuedJob| self.refusals.get(&job.id).copied().unwrap_or(0);
        let mut waiting = self.waiting(jobs);
        waiting.retain(|job| refusals(job) < MOST_REFUSALS);
        let (mut decisions, mut chosen) = (Vec::new(), Vec::new());
        let left: Vec<Option<String>> = waiting
            .iter()
            .map(|job| {
                let refused =
                    || (refusals(job) > 0).then(|| "Slurm takes no node for it".to_owned());
                layout.trouble(job).or_else(refused)
            })
            .collect();
        self.claimed.clear();
        for (job, why) in waiting.into_iter().zip(left) {
            let Some(why) = why else {
                chosen.push(job);
                continue;
            };
            if let Some(decision) = self.leave(job, &why, now_s)? {
                self.claim(job, layout);
                decisions.push(decision);
            }
        }
        for group in groups(&chosen, layout) {
            decisions.extend(self.release_of_group(jobs, &chosen, layout, &group, now_s)?);
        }
        Ok(decisions)
    }

    /// Counts the CPUs that a job of one node takes where Slurm is likely to start it: on nodes that are full first.
    fn claim(&mut self, job: &QueuedJob, layout: &Layout) {
        let left = |node: &&NodeState| {
            node.idle.saturating_sub(self.claimed.get(&node.name).copied().unwrap_or(0))
        };
        let could =
            layout.nodes.iter().filter(|node| node.takes_jobs && layout.could_take(job, node));
        let fullest = could.filter(|node| left(node) >= job.cpus).min_by_key(left);
        if let Some(node) = fullest.filter(|_| job.nodes <= 1) {
            *self.claimed.entry(node.name.clone()).or_default() += job.cpus;
        }
    }

    /// Lets a job start where Slurm wants.
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
        let waited_s = now_s - job.submitted_s;
        let reason = why.to_owned();
        let program = self.program_of(job.id);
        Ok(Some(Decision {
            is_left: true,
            waited_s,
            ..Decision::of(job.id, program, now_s, reason)
        }))
    }

    /// Starts a job; false: Slurm refused it, which is remembered.
    fn start(&mut self, job: &QueuedJob, node: Option<&str>) -> Result<bool, SlurmError> {
        if self.options.dry_run {
            return Ok(true);
        }
        match self.cluster.release(job, node) {
            Ok(()) => Ok(true),
            Err(error) if error.is_of_all() => Err(error),
            Err(error) => {
                if !error.is_passing() {
                    *self.refusals.entry(job.id).or_default() += 1;
                }
                self.troubles.push(format!("job {} is not released: {error}", job.id));
                Ok(false)
            }
        }
    }

    fn release_of_group(
        &mut self,
        jobs: &[QueuedJob],
        chosen: &[&QueuedJob],
        layout: &Layout,
        group: &BTreeSet<String>,
        now_s: f64,
    ) -> Result<Vec<Decision>, SlurmError> {
        let is_in = |node: &&NodeState| node.partitions.iter().any(|name| group.contains(name));
        let mut by_unit: BTreeMap<usize, Vec<NodeState>> = BTreeMap::new();
        for node in layout.nodes.iter().filter(is_in) {
            by_unit.entry(layout.selection.unit(node)).or_default().push(node.clone());
        }
        let name = group.iter().cloned().collect::<Vec<_>>().join(",");
        if let Some(daemons) = &mut self.daemons {
            let nodes: Vec<NodeState> = by_unit.values().flatten().cloned().collect();
            daemons.ask(&name, &nodes);
        }
        let mut decisions = Vec::new();
        for (unit, nodes) in by_unit {
            if unit > 1 && !self.said_whole {
                self.said_whole = true;
                self.troubles.push(format!(
                    "Slurm gives jobs {unit} CPUs at least (SelectTypeParameters, and the nodes' cores): \
                     which jobs share these is not to be chosen"
                ));
            }
            let left = |job: &&&QueuedJob| !decisions_on(&decisions, job.id);
            let of_group = chosen.iter().filter(|job| group.contains(&job.partition));
            let of_group: Vec<&QueuedJob> = of_group.filter(left).copied().collect();
            let kind = Kind { name: format!("{name} {unit}"), unit, nodes };
            decisions.extend(self.release_of_kind(jobs, &of_group, layout, &kind, now_s)?);
        }
        Ok(decisions)
    }

    fn release_of_kind(
        &mut self,
        jobs: &[QueuedJob],
        chosen: &[&QueuedJob],
        layout: &Layout,
        kind: &Kind,
        now_s: f64,
    ) -> Result<Vec<Decision>, SlurmError> {
        let mut predicting = self.predicting(&kind.nodes);
        let Predicting { numbering, combined, .. } = &mut predicting;
        // Where no job may start, none has to be kept off either.
        let open: Vec<&NodeState> = kind.nodes.iter().filter(|node| node.takes_jobs).collect();
        let nodes: Vec<Node> =
            open.iter().map(|node| self.node(node, jobs, kind.unit, numbering, now_s)).collect();
        let queue: Vec<Job> = chosen
            .iter()
            .map(|job| Job {
                id: job.id,
                program: self.number(job.id, numbering),
                priority: job.priority,
                submitted_s: job.submitted_s,
                slots: job.needs.units(job.cpus, kind.unit),
                // One that is released before its CPU is free starts later, and when is not known.
                limit_s: job.limit_s.filter(|_| self.options.ahead == 0).unwrap_or(f64::INFINITY),
            })
            .collect();
        let by_id: BTreeMap<u64, &QueuedJob> = chosen.iter().map(|job| (job.id, *job)).collect();
        let by_name: BTreeMap<&str, &NodeState> =
            open.iter().map(|node| (node.name.as_str(), *node)).collect();
        let admits = |job: &Job, node: &str| {
            let both = by_id.get(&job.id).zip(by_name.get(node));
            both.is_some_and(|(job, node)| {
                layout.could_take(job, node) && layout.takes_now(job, node, now_s)
            })
        };
        let rules = &self.options.rules;
        let Choice { releases, kept } = match self.options.first_come {
            true => choose_among(&queue, &nodes, now_s, rules, &Flat, Some(&admits)),
            false => choose_among(&queue, &nodes, now_s, rules, combined, Some(&admits)),
        };
        // One after the other they have to fit in the memory, too.
        let mut memory_mb: BTreeMap<&str, u64> = BTreeMap::new();
        for node in &open {
            let coming = self.coming(jobs, &node.name).map(|job| layout.memory_mb(job, node));
            let taken: u64 = coming.sum();
            memory_mb.insert(&node.name, node.memory_free_mb.saturating_sub(taken));
        }
        let mut fits = |release: &Release| {
            let both = by_id.get(&release.job).zip(by_name.get(release.node.as_str()));
            let Some((job, node)) = both.filter(|_| layout.selection.with_memory) else {
                return true;
            };
            let need_mb = layout.memory_mb(job, node);
            let Some(free_mb) = memory_mb.get_mut(release.node.as_str()) else { return false };
            let fits = need_mb <= *free_mb;
            *free_mb = if fits { *free_mb - need_mb } else { *free_mb };
            fits
        };
        let releases: Vec<Release> = releases.into_iter().filter(|one| fits(one)).collect();
        let noted = self.note(&releases, &by_id, now_s);
        let mut decisions = Vec::new();
        for release in releases {
            let Some(job) = by_id.get(&release.job) else { continue };
            if let Err(why) = &noted {
                decisions.extend(self.leave(job, why, now_s)?);
                continue;
            }
            // Slurm may have done what it refuses: it stays noted until the next look.
            if !self.start(job, Some(&release.node))? {
                continue;
            }
            let waited_s = now_s - job.submitted_s;
            decisions.push(self.decision(&release, waited_s, now_s, &predicting));
        }
        let before = self.kept.insert(kind.name.clone(), kept.clone()).unwrap_or_default();
        let new = kept.into_iter().filter(|one| !before.contains(one));
        decisions.extend(new.map(|(id, node)| self.keeps(id, node, &queue, now_s)));
        self.predicting = Some(predicting);
        Ok(decisions)
    }

    /// Notes which nodes jobs will be assigned, before they are.
    fn note(
        &mut self,
        releases: &[Release],
        jobs: &BTreeMap<u64, &QueuedJob>,
        now_s: f64,
    ) -> Result<(), String> {
        if releases.is_empty() {
            return Ok(());
        }
        let before = self.released.clone();
        for release in releases {
            let Some(job) = jobs.get(&release.job) else { continue };
            let released = Released {
                node: release.node.clone(),
                since_s: now_s,
                priority: job.priority,
                has_started: false,
                restarts: job.restarts,
                is_lowered: false,
                is_over: false,
            };
            self.released.insert(release.job, released);
        }
        if self.options.dry_run {
            return Ok(());
        }
        self.journal.write(&self.released).map_err(|error| {
            self.released = before;
            format!("its node cannot be noted: {error:#}")
        })
    }

    /// Jobs that were assigned this node, and do not run yet.
    fn coming<'a>(
        &'a self,
        jobs: &'a [QueuedJob],
        node: &'a str,
    ) -> impl Iterator<Item = &'a QueuedJob> {
        let comes = move |job: &&QueuedJob| {
            let released = self.released.get(&job.id);
            released.is_some_and(|released| !released.has_started && released.node == node)
        };
        jobs.iter().filter(|job| job.state == State::Pending).filter(comes)
    }

    /// A node is kept for a job.
    fn keeps(&self, id: u64, node: String, queue: &[Job], now_s: f64) -> Decision {
        let reason = "its turn has come, and it has room nowhere yet".to_owned();
        Decision {
            node: Some(node),
            is_kept: true,
            waited_s: queue.iter().find(|job| job.id == id).map_or(0.0, |job| job.waited_s(now_s)),
            ..Decision::of(id, self.program_of(id), now_s, reason)
        }
    }

    /// A node as it will be when the jobs that were released have started, in units of CPUs.
    fn node(
        &self,
        state: &NodeState,
        jobs: &[QueuedJob],
        unit: usize,
        numbering: &mut Numbering,
        now_s: f64,
    ) -> Node {
        let coming: Vec<&QueuedJob> = self.coming(jobs, &state.name).collect();
        let claimed = self.claimed.get(&state.name).copied().unwrap_or(0).div_ceil(unit);
        let coming_units = coming.iter().map(|job| job.needs.units(job.cpus, unit));
        let taken = coming_units.sum::<usize>() + claimed;
        let runs =
            |job: &&QueuedJob| job.state == State::Running && job.runs_on.contains(&state.name);
        let here: Vec<&QueuedJob> = jobs.iter().filter(runs).chain(coming).collect();
        let mut running = |job: &&QueuedJob| {
            let comes = job.limit_s.filter(|_| job.state == State::Pending);
            let ends_s = job.ends_s.or_else(|| Some(now_s + comes?)).unwrap_or(f64::INFINITY);
            // Of several nodes it has as many CPUs of each.
            let cpus = job.cpus.div_ceil(job.runs_on.len().max(1));
            let slots = job.needs.units(cpus, unit);
            Running { program: self.number(job.id, numbering), slots, ends_s }
        };
        let ahead = self.options.ahead;
        Node {
            name: state.name.clone(),
            slots: state.cpus / unit + ahead,
            free: (state.idle / unit + ahead).saturating_sub(taken),
            running: here.iter().map(&mut running).collect(),
        }
    }

    fn number(&self, job: u64, numbering: &mut Numbering) -> Program {
        match self.programs.get(&job) {
            Some((identity, _)) => numbering.number(&identity.key),
            // Not looked at yet: average.
            None => Program(u32::MAX),
        }
    }

    fn decision(
        &mut self,
        release: &Release,
        waited_s: f64,
        now_s: f64,
        predicting: &Predicting,
    ) -> Decision {
        let Predicting { numbering, combined, .. } = predicting;
        let record = |key| self.known.records().get(key);
        let named: BTreeMap<_, _> =
            self.programs.values().map(|(one, _)| (&one.key, one.name.as_str())).collect();
        let name = |program: &Program| {
            let key = numbering.key(*program);
            key.and_then(|key| named.get(key)).map_or("another program", |name| name).to_owned()
        };
        let own = self.programs.get(&release.job).map(|(identity, _)| identity);
        let (kind, reason) = match &release.reason {
            Reason::Overdue { waited_s } => {
                let most = self.options.rules.most_wait_s;
                ("overdue", format!("it waited for {waited_s:.0} s, of {most:.0} s at most"))
            }
            Reason::First => ("first", "first of the queue that fits there".to_owned()),
            Reason::Partner { first, first_cost, cost, overtaken } => (
                "partner",
                format!(
                    "it suits what runs there: costs {cost:+.2} against its average, job {first} \
                     before it {first_cost:+.2}; starts before {overtaken} others"
                ),
            ),
        };
        let victim = own.and_then(|one| numbering.get(&one.key));
        let reason = match release.kept_for {
            Some(wide) => format!(
                "{reason}; by the time limits job {wide}, for which {} is kept, starts no later",
                release.node
            ),
            None => reason,
        };
        let basis = match combined.basis(victim.unwrap_or(Program(u32::MAX)), &release.co_runners) {
            Basis::Stacks => "CPI stacks",
            Basis::SharedCores => "shared cores",
            Basis::RunTimes => "run times",
        };
        // Alone there is nothing to predict, and without a model but one way to do so.
        let is_predicted = self.daemons.is_some() && !release.co_runners.is_empty();
        let decision = Decision {
            at_s: now_s,
            job: release.job,
            program: own.map(|one| one.name.clone()).unwrap_or_default(),
            node: Some(release.node.clone()),
            is_kept: false,
            is_left: false,
            waited_s,
            co_runners: release.co_runners.iter().map(name).collect(),
            slowdown: release.slowdown,
            predicted_from: is_predicted.then(|| basis.to_owned()),
            known_runs: own.and_then(|one| record(&one.key)).map_or(0, |one| one.runs.len()),
            reason,
        };
        *self.metrics.released.entry(kind).or_default() += 1;
        decision
    }
}

/// Nodes whose units of CPUs are of one size.
struct Kind {
    name: String,
    unit: usize,
    nodes: Vec<NodeState>,
}

/// May this job start, by one of these?
pub(super) fn decisions_on(decisions: &[Decision], job: u64) -> bool {
    decisions.iter().any(|decision| decision.job == job && !decision.is_kept)
}

/// The partitions of some jobs, those that share nodes together.
fn groups(jobs: &[&QueuedJob], layout: &Layout) -> Vec<BTreeSet<String>> {
    let names: BTreeSet<&str> = jobs.iter().map(|job| job.partition.as_str()).collect();
    let mut groups: Vec<BTreeSet<String>> =
        names.iter().map(|name| BTreeSet::from([(*name).to_owned()])).collect();
    for node in &layout.nodes {
        let (with, mut without): (Vec<_>, Vec<_>) = groups
            .into_iter()
            .partition(|group| node.partitions.iter().any(|name| group.contains(name)));
        let with: BTreeSet<String> = with.into_iter().flatten().collect();
        without.extend((!with.is_empty()).then_some(with));
        groups = without;
    }
    groups
}
