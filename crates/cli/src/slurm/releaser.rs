//! Looks at the queue, lets jobs start, learns from those that ended.
//!
//! A job whose needs are understood is assigned a node that has all of them ([`releasing`]); any other is started without
//! a node, for Slurm to choose. What a job was assigned is noted before, and undone where it does not start
//! ([`undoing`]): so no job waits for a node that has gone.

mod releasing;
mod undoing;

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use symbiont_jobs::slurm::{NodeState, QueuedJob, State};
use symbiont_jobs::{Account, Observations, Rules, Run, Store, digest_of_text, work};

use super::cluster::{Cluster, SlurmError};
use super::daemons::Daemons;
use super::decisions::Decision;
use super::metrics::{Metrics, NodeMetrics};
use super::predicting::Predicting;
use super::released::{Journal, ReleasedJobs};
use super::stacks::Gained;
use crate::identity::{Identities, Identity};

/// Slurm gives times in whole seconds.
const TIME_ERROR_S: f64 = 1.0;
/// Scripts that are read at each look; programs of further jobs are taken for average meanwhile.
const MOST_SCRIPTS: usize = 500;
/// How long scripts are read at each look, at least one: a slow controller holds up no release.
const SCRIPTS: Duration = Duration::from_secs(2);
/// How long the program of a job that is gone is remembered where nodes are asked, seconds: they report jobs for
/// ten minutes after their end.
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
    /// CPUs of a node that jobs are released for before they are free.
    pub ahead: usize,
    /// In the order of the queue?
    pub first_come: bool,
    /// Decides only?
    pub dry_run: bool,
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
    journal: Journal,
    /// Jobs that were assigned their node, as the journal has them.
    released: ReleasedJobs,
    /// How often Slurm refused to let a job of the queue start.
    refusals: BTreeMap<u64, u32>,
    /// By nodes: CPUs of jobs that were left to Slurm at this look, where it may start them.
    claimed: BTreeMap<String, usize>,
    /// Was it said that Slurm gives whole cores?
    said_whole: bool,
    /// By partitions: jobs for which a node is kept, and which.
    kept: BTreeMap<String, Vec<(u64, String)>>,
    /// What is counted.
    pub metrics: Metrics,
    /// What went wrong since the last look.
    pub troubles: Vec<String>,
}

impl<C: Cluster> Releaser<C> {
    /// Knows what the store holds, and what an earlier releaser has assigned.
    pub fn new(
        cluster: C,
        options: ReleaseOptions,
        store: Store,
        known: Observations,
        (journal, released): (Journal, ReleasedJobs),
    ) -> Self {
        let identities = Identities::new(&std::env::var("PATH").unwrap_or_default());
        let (programs, accounts, refusals) = Default::default();
        let (metrics, troubles, predicting) = Default::default();
        let (gone_s, learnt, cpu_s, kept, claimed) = Default::default();
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
            journal,
            released,
            refusals,
            said_whole: false,
            kept,
            claimed,
            metrics,
            troubles,
        }
    }

    /// Learns what programs need from the daemons of the nodes too.
    #[must_use]
    pub fn with_daemons(mut self, daemons: Daemons) -> Self {
        self.daemons = Some(daemons.presuming(&self.known));
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
        self.refusals.retain(|id, _| jobs.iter().any(|job| job.id == *id));
        let mut decisions = self.undo(&jobs, now_s)?;
        if !self.waiting(&jobs).is_empty() {
            let layout = self.cluster.layout()?;
            decisions.extend(self.release(&jobs, &layout, now_s)?);
        }
        let errors = self.cluster.take_line_errors();
        self.troubles.extend(errors);
        self.metrics.errors += self.troubles.len() as u64;
        // A node that does not answer is no error of Slurm.
        self.troubles.extend(lines);
        let started = |job: &QueuedJob| releasing::decisions_on(&decisions, job.id);
        let left = self.waiting(&jobs).into_iter().filter(|job| !started(job));
        let left: Vec<f64> = left.map(|job| now_s - job.submitted_s).collect();
        self.metrics.waiting = left.len();
        self.metrics.longest_wait_s = left.into_iter().fold(0.0, f64::max);
        Ok(decisions)
    }

    fn waiting<'a>(&self, jobs: &'a [QueuedJob]) -> Vec<&'a QueuedJob> {
        let ReleaseOptions { partition, qos, .. } = &self.options;
        let is_in = |job: &&QueuedJob| {
            partition.as_ref().is_none_or(|name| job.partition.split(',').any(|one| one == name))
                && qos.as_ref().is_none_or(|name| job.qos == *name)
        };
        jobs.iter().filter(|job| job.waits_for_us()).filter(is_in).collect()
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
        let begin = Instant::now();
        for job in new {
            if begin.elapsed() > SCRIPTS {
                return;
            }
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
        let shown = |c: char| if c.is_control() { '?' } else { c };
        Some((Identity { key, name: job.name.chars().map(shown).collect() }, work(&script)))
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
            pairs: self.known.records().values().map(|one| one.next_to.len()).sum(),
        });
        if gained.is_empty() {
            return lines;
        }
        self.cpu_s.extend(gained.iter().filter_map(|one| Some((one.job, one.cpu_s?))));
        let learnt = self.learnt.clone();
        self.update(|known| {
            let at_s = now_s.max(0.0) as u64;
            for Gained { job, program, stack, next_to, cpu_s } in gained {
                let (key, name) = (&program.key, &program.name);
                for (other, next) in &next_to {
                    known.add_next_to((key, name), other, at_s, next);
                }
                if let Some(stack) = stack {
                    known.add_stack(key, name, at_s, &stack);
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
        let model = self.daemons.as_ref().and_then(Daemons::model);
        let processor = self.daemons.as_ref().and_then(Daemons::processor);
        match self.predicting.take() {
            Some(made) if made.is_for(processor, (cpus, width)) => made,
            _ => Predicting::new(&self.known, model, processor, (cpus, width)),
        }
    }
}
