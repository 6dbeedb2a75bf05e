//! Looks at the queue, lets jobs start, learns from those that ended.
//!
//! A released job asks for its node by name. One that could not start there within [`START_TIMEOUT_S`] is given
//! back to Slurm, which starts it where it wants: so no job waits for a node that has gone.

use std::collections::{BTreeMap, BTreeSet};

use symbiont_jobs::slurm::{NodeState, QueuedJob, State};
use symbiont_jobs::{
    Account, Basis, Choice, Flat, Job, Node, Numbering, Observations, Program, Reason, Release,
    Rules, Run, Running, Store, choose, digest_of_text, work,
};

use super::cluster::{Cluster, SlurmError};
use super::daemons::Daemons;
use super::decisions::Decision;
use super::metrics::{Metrics, NodeMetrics};
use super::predicting::Predicting;
use super::stacks::Gained;
use crate::identity::{Identities, Identity};

/// How long a released job may wait for its node, seconds.
const START_TIMEOUT_S: f64 = 60.0;
/// Slurm gives times in whole seconds.
const TIME_ERROR_S: f64 = 1.0;
/// Scripts that are read at each look; programs of further jobs are taken for average meanwhile.
const MOST_SCRIPTS: usize = 500;
/// How long the program of a job that is gone is remembered where nodes are asked, seconds: they report jobs for
/// ten minutes after their end.
const REMEMBERED_S: f64 = 900.0;
/// Calls that may fail in one look.
const MOST_ERRORS: usize = 3;

/// What the releaser is to do.
#[derive(Debug, Clone)]
pub struct ReleaseOptions {
    /// Jobs of this partition only.
    pub partition: Option<String>,
    /// Jobs of this QOS only.
    pub qos: Option<String>,
    /// Bounds of the choice.
    pub rules: Rules,
    /// CPUs of a node that jobs are released for before they are free.
    pub ahead: usize,
    /// In the order of the queue?
    pub first_come: bool,
    /// Decides only?
    pub dry_run: bool,
}

/// A job that was released and does not run yet.
#[derive(Debug, Clone, PartialEq)]
struct Released {
    node: String,
    since_s: f64,
}

/// The releaser.
#[derive(Debug)]
pub struct Releaser<C> {
    cluster: C,
    options: ReleaseOptions,
    store: Store,
    known: Observations,
    predicting: Option<Predicting>,
    daemons: Option<Daemons>,
    identities: Identities,
    /// Programs and works of the jobs in the queue.
    programs: BTreeMap<u64, (Identity, u64)>,
    /// Since when jobs are gone whose programs are remembered.
    gone_s: BTreeMap<u64, f64>,
    /// Runs of these in the store, by their ends and works.
    learnt: BTreeMap<u64, (u64, u64)>,
    /// CPU times of jobs that have ended, where known.
    cpu_s: BTreeMap<u64, f64>,
    accounts: BTreeMap<String, Account>,
    released: BTreeMap<u64, Released>,
    /// By partition: jobs for which a node is kept, and which.
    kept: BTreeMap<String, Vec<(u64, String)>>,
    /// What is counted.
    pub metrics: Metrics,
    /// What went wrong since the last look.
    pub troubles: Vec<String>,
}

impl<C: Cluster> Releaser<C> {
    /// Knows what the store holds.
    pub fn new(cluster: C, options: ReleaseOptions, store: Store, known: Observations) -> Self {
        let identities = Identities::new(&std::env::var("PATH").unwrap_or_default());
        let (programs, accounts, released) = Default::default();
        let (metrics, troubles, predicting) = Default::default();
        let (gone_s, learnt, cpu_s, kept) = Default::default();
        Self {
            cluster,
            options,
            store,
            known,
            predicting,
            daemons: None,
            identities,
            programs,
            gone_s,
            learnt,
            cpu_s,
            accounts,
            released,
            kept,
            metrics,
            troubles,
        }
    }

    /// Learns what programs need from the daemons of the nodes too.
    #[must_use]
    pub fn with_daemons(mut self, daemons: Daemons) -> Self {
        self.daemons = Some(daemons);
        self
    }

    /// Looks at the queue, and does what is to be done.
    pub fn step(&mut self, now_s: f64) -> Result<Vec<Decision>, SlurmError> {
        let jobs = self.cluster.jobs()?;
        let errors = self.cluster.take_line_errors();
        self.troubles.extend(errors);
        self.name_programs(&jobs, now_s);
        self.follow(&jobs, now_s);
        let lines = self.hear(now_s);
        let mut decisions = self.give_back(&jobs, now_s);
        let partitions: BTreeSet<&str> = self
            .waiting(&jobs)
            .map(|job| job.partition.split(',').next().unwrap_or_default())
            .collect();
        let partitions: Vec<String> = partitions.into_iter().map(str::to_owned).collect();
        for partition in partitions {
            let nodes = self.cluster.nodes(&partition)?;
            if let Some(daemons) = &mut self.daemons {
                daemons.ask(&partition, &nodes);
            }
            decisions.extend(self.release(&jobs, &partition, &nodes, now_s));
        }
        let errors = self.cluster.take_line_errors();
        self.troubles.extend(errors);
        self.metrics.errors += self.troubles.len() as u64;
        // A node that does not answer is no error of Slurm.
        self.troubles.extend(lines);
        let left: Vec<f64> = self
            .waiting(&jobs)
            .filter(|job| !self.released.contains_key(&job.id))
            .map(|job| now_s - job.submitted_s)
            .collect();
        self.metrics.waiting = left.len();
        self.metrics.longest_wait_s = left.into_iter().fold(0.0, f64::max);
        Ok(decisions)
    }

    fn waiting<'a>(&'a self, jobs: &'a [QueuedJob]) -> impl Iterator<Item = &'a QueuedJob> {
        let ReleaseOptions { partition, qos, .. } = &self.options;
        let is_in = |job: &&QueuedJob| {
            partition.as_ref().is_none_or(|name| job.partition.split(',').any(|one| one == name))
                && qos.as_ref().is_none_or(|name| job.qos == *name)
        };
        jobs.iter().filter(|job| job.waits_for_us()).filter(is_in)
    }

    /// Finds the programs of jobs that are new, and forgets those of jobs that are gone.
    fn name_programs(&mut self, jobs: &[QueuedJob], now_s: f64) {
        let ids: BTreeSet<u64> = jobs.iter().map(|job| job.id).collect();
        let tracked: BTreeSet<u64> = self.accounts.values().flat_map(Account::running).collect();
        let remembered_s = if self.daemons.is_some() { REMEMBERED_S } else { 0.0 };
        let gone_s = &mut self.gone_s;
        self.programs.retain(|id, _| {
            if ids.contains(id) || tracked.contains(id) {
                gone_s.remove(id);
                return true;
            }
            now_s - *gone_s.entry(*id).or_insert(now_s) < remembered_s
        });
        let programs = &self.programs;
        self.gone_s.retain(|id, _| programs.contains_key(id));
        self.learnt.retain(|id, _| programs.contains_key(id));
        self.cpu_s.retain(|id, _| programs.contains_key(id));
        let new = jobs.iter().filter(|job| job.waits_for_us() || job.state == State::Running);
        let new = new.filter(|job| !self.programs.contains_key(&job.id)).take(MOST_SCRIPTS);
        let new: Vec<&QueuedJob> = new.collect();
        for job in new {
            if let Some(found) = self.program(job) {
                self.programs.insert(job.id, found);
            }
        }
    }

    /// The name of the program of a job that it knows.
    #[cfg(test)]
    pub fn program_name(&self, job: u64) -> Option<&str> {
        self.programs.get(&job).map(|(one, _)| one.name.as_str())
    }

    /// The program of a job and its work; none where its script cannot be read now.
    fn program(&mut self, job: &QueuedJob) -> Option<(Identity, u64)> {
        // Interactive jobs have none.
        let script = if job.is_batch { self.cluster.script(job.id).ok()? } else { String::new() };
        if !script.trim().is_empty() {
            return Some((self.identities.of_script(job.user, &script), work(&script)));
        }
        let digest = digest_of_text(&format!("name {}", job.name));
        let key = symbiont_jobs::ProgramKey { user: job.user, digest };
        Some((Identity { key, name: job.name.clone() }, work(&script)))
    }

    /// Notes what runs next to what, and learns from what has ended.
    fn follow(&mut self, jobs: &[QueuedJob], now_s: f64) {
        let running = || jobs.iter().filter(|job| job.state == State::Running);
        let mut ended: BTreeMap<u64, symbiont_jobs::Ran> = BTreeMap::new();
        for (node, account) in &mut self.accounts {
            let here: BTreeSet<u64> =
                running().filter(|job| job.runs_on.contains(node)).map(|job| job.id).collect();
            let gone: Vec<u64> = account.running().filter(|id| !here.contains(id)).collect();
            for id in gone {
                let ran = account.end(id, now_s);
                // What ran on several nodes is one run of none of them.
                match (ran, ended.contains_key(&id)) {
                    (Some(ran), false) => drop(ended.insert(id, ran)),
                    _ => drop(ended.remove(&id)),
                }
            }
        }
        for job in running() {
            self.released.remove(&job.id);
            let Some((identity, _)) = self.programs.get(&job.id) else { continue };
            for node in &job.runs_on {
                let account = self.accounts.entry(node.clone()).or_default();
                if !account.runs(job.id) {
                    account.start(job.id, &identity.key, now_s);
                }
            }
        }
        for (id, ran) in ended {
            self.learn_from(id, ran, now_s);
        }
    }

    fn learn_from(&mut self, id: u64, ran: symbiont_jobs::Ran, now_s: f64) {
        let Some((Identity { key, name }, work)) = self.programs.get(&id).cloned() else { return };
        let ended = match self.cluster.ended(id) {
            Ok(Some(ended)) if ended.ended_well && ended.elapsed_s > 0.0 => ended,
            // It failed, or Slurm has forgotten it: nothing is learnt.
            Ok(_) | Err(_) => return,
        };
        let (ended_s, elapsed_s) = (now_s.max(0.0) as u64, ended.elapsed_s);
        let (error_s, co_runners) = (TIME_ERROR_S, ran.co_runners);
        let cpu_s = self.cpu_s.get(&id).copied();
        let run = Run { ended_s, work, elapsed_s, error_s, cpu_s, co_runners };
        if self.update(|known| known.add_run(&key, &name, run)) {
            self.metrics.learnt += 1;
            self.learnt.insert(id, (ended_s, work));
        }
    }

    /// Adds to what is known, here and in the store; was it possible?
    fn update(&mut self, add: impl FnOnce(&mut Observations)) -> bool {
        match self.store.update(add) {
            Ok(known) => {
                self.known = known;
                self.predicting = None;
                true
            }
            Err(error) => {
                self.troubles.push(error.to_string());
                false
            }
        }
    }

    /// Learns what nodes have answered; gives a line for each that is of no use.
    fn hear(&mut self, now_s: f64) -> Vec<String> {
        let Some(daemons) = &mut self.daemons else { return Vec::new() };
        let program = |job: u64, user: u32| {
            let (identity, _) = self.programs.get(&job)?;
            (identity.key.user == user).then(|| identity.clone())
        };
        let (gained, lines) = daemons.hear(now_s, program);
        self.metrics.nodes = Some(NodeMetrics {
            answering: daemons.answering(),
            programs: self.known.records().values().filter(|one| one.stack.is_some()).count(),
        });
        if gained.is_empty() {
            return lines;
        }
        self.cpu_s.extend(gained.iter().filter_map(|one| Some((one.job, one.cpu_s?))));
        let learnt = self.learnt.clone();
        self.update(|known| {
            for Gained { job, program, stack, cpu_s } in gained {
                let (key, name) = (&program.key, &program.name);
                if let Some(stack) = stack {
                    known.add_stack(key, name, now_s.max(0.0) as u64, &stack);
                }
                if let Some(((ended_s, work), cpu_s)) = learnt.get(&job).copied().zip(cpu_s) {
                    known.add_cpu_time(key, ended_s, work, cpu_s);
                }
            }
        });
        lines
    }

    /// What predicts for these nodes, made anew where more is known.
    fn predicting(&mut self, states: &[NodeState]) -> Predicting {
        let cpus = states.iter().map(|node| node.cpus).max().unwrap_or(1);
        let width = self.daemons.as_ref().map_or(1, |daemons| daemons.width(states));
        let model = self.daemons.as_ref().map(Daemons::model);
        match self.predicting.take() {
            Some(made) if made.is_for(cpus, width) => made,
            _ => Predicting::new(&self.known, model, cpus, width),
        }
    }

    /// Lets jobs go that could not start where they were sent to.
    fn give_back(&mut self, jobs: &[QueuedJob], now_s: f64) -> Vec<Decision> {
        let waiting: BTreeMap<u64, &QueuedJob> = jobs
            .iter()
            .filter(|job| job.state == State::Pending && job.is_marked)
            .map(|job| (job.id, job))
            .collect();
        self.released.retain(|id, _| waiting.contains_key(id));
        // Those of an earlier releaser.
        for job in waiting.values().filter(|job| job.asks_for_nodes && job.reason != "BeginTime") {
            let unknown = || Released { node: "its node".to_owned(), since_s: now_s };
            self.released.entry(job.id).or_insert_with(unknown);
        }
        let late = self.released.iter().filter(|(_, one)| now_s - one.since_s > START_TIMEOUT_S);
        let late: Vec<(u64, Released)> = late.map(|(id, one)| (*id, one.clone())).collect();
        let mut decisions = Vec::new();
        for (id, Released { node, .. }) in late {
            if !self.options.dry_run {
                let Some(job) = waiting.get(&id) else { continue };
                if let Err(error) = self.cluster.give_back(job) {
                    self.troubles.push(error.to_string());
                    continue;
                }
            }
            self.released.remove(&id);
            self.metrics.given_back += 1;
            let submitted_s = waiting.get(&id).map_or(now_s, |job| job.submitted_s);
            decisions.push(Decision {
                at_s: now_s,
                job: id,
                program: self
                    .programs
                    .get(&id)
                    .map(|(one, _)| one.name.clone())
                    .unwrap_or_default(),
                node: None,
                is_kept: false,
                waited_s: now_s - submitted_s,
                co_runners: Vec::new(),
                slowdown: 1.0,
                predicted_from: None,
                known_runs: 0,
                reason: format!("{node} had no room for it within {START_TIMEOUT_S} s"),
            });
        }
        decisions
    }

    fn release(
        &mut self,
        jobs: &[QueuedJob],
        partition: &str,
        states: &[NodeState],
        now_s: f64,
    ) -> Vec<Decision> {
        let mut predicting = self.predicting(states);
        let Predicting { numbering, combined, .. } = &mut predicting;
        // Where no job may start, none has to be kept off either.
        let states = states.iter().filter(|node| node.takes_jobs);
        let nodes: Vec<Node> = states.map(|node| self.node(node, jobs, numbering, now_s)).collect();
        let queue: Vec<Job> = self
            .waiting(jobs)
            .filter(|job| job.partition.split(',').next() == Some(partition))
            .filter(|job| !self.released.contains_key(&job.id))
            .map(|job| Job {
                id: job.id,
                program: self.number(job.id, numbering),
                priority: job.priority,
                submitted_s: job.submitted_s,
                slots: job.cpus,
                // One that is released before its CPU is free starts later, and when is not known.
                limit_s: job.limit_s.filter(|_| self.options.ahead == 0).unwrap_or(f64::INFINITY),
            })
            .collect();
        let rules = &self.options.rules;
        let Choice { releases, kept } = match self.options.first_come {
            true => choose(&queue, &nodes, now_s, rules, &Flat),
            false => choose(&queue, &nodes, now_s, rules, combined),
        };
        let by_id: BTreeMap<u64, &QueuedJob> = jobs.iter().map(|job| (job.id, job)).collect();
        let mut decisions = Vec::new();
        let before = self.troubles.len();
        for release in releases {
            let Some(job) = by_id.get(&release.job) else { continue };
            if !self.options.dry_run {
                if let Err(error) = self.cluster.release(job, &release.node) {
                    self.troubles.push(format!("job {} is not released: {error}", release.job));
                    if self.troubles.len() - before >= MOST_ERRORS {
                        break;
                    }
                    continue;
                }
            }
            let waited_s = now_s - job.submitted_s;
            decisions.push(self.decision(&release, waited_s, now_s, &predicting));
            let released = Released { node: release.node, since_s: now_s };
            self.released.insert(release.job, released);
        }
        let before = self.kept.insert(partition.to_owned(), kept.clone()).unwrap_or_default();
        let new = kept.into_iter().filter(|one| !before.contains(one));
        decisions.extend(new.map(|(id, node)| self.keeps(id, node, &queue, now_s)));
        self.predicting = Some(predicting);
        decisions
    }

    /// A node is kept for a job.
    fn keeps(&self, id: u64, node: String, queue: &[Job], now_s: f64) -> Decision {
        Decision {
            at_s: now_s,
            job: id,
            program: self.programs.get(&id).map(|(one, _)| one.name.clone()).unwrap_or_default(),
            node: Some(node),
            is_kept: true,
            waited_s: queue.iter().find(|job| job.id == id).map_or(0.0, |job| job.waited_s(now_s)),
            co_runners: Vec::new(),
            slowdown: 1.0,
            predicted_from: None,
            known_runs: 0,
            reason: "its turn has come, and it has room nowhere yet".to_owned(),
        }
    }

    /// A node as it will be when the jobs that were released have started.
    fn node(
        &self,
        state: &NodeState,
        jobs: &[QueuedJob],
        numbering: &mut Numbering,
        now_s: f64,
    ) -> Node {
        let comes = |job: &&QueuedJob| {
            self.released.get(&job.id).is_some_and(|released| released.node == state.name)
        };
        let coming = jobs.iter().filter(|job| job.state == State::Pending).filter(comes);
        let coming: Vec<&QueuedJob> = coming.collect();
        let taken: usize = coming.iter().map(|job| job.cpus).sum();
        let runs =
            |job: &&QueuedJob| job.state == State::Running && job.runs_on.contains(&state.name);
        let here: Vec<&QueuedJob> = jobs.iter().filter(runs).chain(coming).collect();
        let mut running = |job: &&QueuedJob| {
            let comes = job.limit_s.filter(|_| job.state == State::Pending);
            let ends_s = job.ends_s.or_else(|| Some(now_s + comes?)).unwrap_or(f64::INFINITY);
            // Of several nodes it has as many CPUs of each.
            let slots = job.cpus.div_ceil(job.runs_on.len().max(1));
            Running { program: self.number(job.id, numbering), slots, ends_s }
        };
        let ahead = self.options.ahead;
        Node {
            name: state.name.clone(),
            slots: state.cpus + ahead,
            free: (state.idle + ahead).saturating_sub(taken),
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
