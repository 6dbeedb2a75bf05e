//! Learns from jobs that have ended, and from what the nodes report.
//!
//! # Properties
//! - A run counts with what ran next to it (`jobs_that_ended_well_are_learnt_with_what_ran_next_to_them`), and with its
//!   CPU time (`cpu_times_of_jobs_that_ended_are_kept_with_their_runs`).

use std::collections::{BTreeMap, BTreeSet};

use symbiont_jobs::slurm::{QueuedJob, State};
use symbiont_jobs::{CompletedRun, Observations, ObservedRun};

use super::Releaser;
use crate::cluster::Cluster;
use crate::metrics::NodeMetrics;
use crate::nodes::JobUpdate;
use crate::tracked::{JobProgram, StoredRun};

/// Slurm gives times in whole seconds.
const TIME_ERROR_S: f64 = 1.0;

impl<C: Cluster> Releaser<C> {
    /// Follows what runs next to what, and learns from what has ended.
    pub(super) fn learn_from_ended(&mut self, queue: &[QueuedJob], now_s: f64) {
        let running = || queue.iter().filter(|job| job.state == State::Running);
        let mut ended: BTreeMap<u64, ObservedRun> = BTreeMap::new();
        for (node, account) in &mut self.accounts {
            let here: BTreeSet<u64> =
                running().filter(|job| job.runs_on.contains(node)).map(|job| job.id).collect();
            let gone: Vec<u64> = account.running().filter(|id| !here.contains(id)).collect();
            for id in gone {
                let run = account.end(id, now_s);
                // A run on several nodes says nothing of any of them.
                match (run, ended.contains_key(&id)) {
                    (Some(run), false) => drop(ended.insert(id, run)),
                    _ => drop(ended.remove(&id)),
                }
            }
        }
        for job in running() {
            let Some(identity) = self.jobs.identity(job.id) else { continue };
            for node in &job.runs_on {
                let account = self.accounts.entry(node.clone()).or_default();
                if !account.runs(job.id) {
                    account.start(job.id, &identity.key, now_s);
                }
            }
        }
        for (id, run) in ended {
            self.learn_from_run(id, run, now_s);
        }
    }

    fn learn_from_run(&mut self, id: u64, observed: ObservedRun, now_s: f64) {
        let Some(JobProgram { identity, work }) = self.jobs.program(id).cloned() else { return };
        let ended = match self.cluster.ended(id) {
            Ok(Some(ended)) if ended.ended_well && ended.elapsed_s > 0.0 => ended,
            // It failed, or Slurm has forgotten it: nothing is learnt.
            Ok(_) | Err(_) => return,
        };
        let stored = StoredRun { ended_s: now_s.max(0.0) as u64, work };
        let run = CompletedRun {
            ended_s: stored.ended_s,
            work,
            elapsed_s: ended.elapsed_s,
            error_s: TIME_ERROR_S,
            cpu_s: self.jobs.get(id).and_then(|job| job.cpu_s),
            co_runners: observed.co_runners,
        };
        if self.update(|known| known.add_run(&identity.key, &identity.name, run)) {
            self.metrics.learnt += 1;
            self.jobs.track(id).stored_run = Some(stored);
        }
    }

    /// Learns what nodes have answered; gives a line for each that is of no use.
    pub(super) fn learn_from_nodes(&mut self, now_s: f64) -> Vec<String> {
        let Some(daemons) = &mut self.daemons else { return Vec::new() };
        let (updates, lines) = daemons.take_updates(&mut self.jobs, now_s);
        let records = self.knowledge.observations().records();
        self.metrics.nodes = Some(NodeMetrics {
            answering: daemons.answering(),
            programs: records.values().filter(|one| one.stack.is_some()).count(),
            pairs: records.values().map(|one| one.next_to.len()).sum(),
        });
        if updates.is_empty() {
            return lines;
        }
        let mut stored_runs: BTreeMap<u64, StoredRun> = BTreeMap::new();
        for JobUpdate { job: id, cpu_s, .. } in &updates {
            let job = self.jobs.track(*id);
            job.cpu_s = cpu_s.or(job.cpu_s);
            stored_runs.extend(job.stored_run.map(|run| (*id, run)));
        }
        self.update(|known| {
            for update in updates {
                let run = stored_runs.get(&update.job).copied();
                add_update(known, update, run, now_s);
            }
        });
        lines
    }

    /// Adds to what is known, here and in the store. Was that possible?
    fn update(&mut self, add: impl FnOnce(&mut Observations)) -> bool {
        let updated = self.knowledge.update(add).map_err(|error| error.to_string());
        self.troubles.extend(updated.as_ref().err().cloned());
        updated.is_ok()
    }
}

/// Adds what a node's answer adds on a job; its CPU time belongs to its run, where the store has that.
fn add_update(known: &mut Observations, update: JobUpdate, run: Option<StoredRun>, now_s: f64) {
    let JobUpdate { program, stack, next_to, cpu_s, .. } = update;
    let (key, name, at_s) = (&program.key, program.name.as_str(), now_s.max(0.0) as u64);
    for (other, next) in &next_to {
        known.add_next_to((key, name), other, at_s, next);
    }
    if let Some(stack) = stack {
        known.add_stack(key, name, at_s, &stack);
    }
    if let Some((StoredRun { ended_s, work }, cpu_s)) = run.zip(cpu_s) {
        known.add_cpu_time(key, ended_s, work, cpu_s);
    }
}
