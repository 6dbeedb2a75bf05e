//! What jobs were assigned, and is undone.
//!
//! A job that asks for a node by name, as it was assigned, is given back, so that Slurm starts it where it wants:
//! - at once when Slurm holds it for good (`BadConstraints`: the node has changed since), with the priority that it had;
//! - at once after a requeue: the node may have failed;
//! - when it did not start within [`START_TIMEOUT_S`];
//! - when the releaser ends.
//!
//! Only what was noted is undone, and only while the job asks for that node: a user may ask for others.
//!
//! # Properties
//! - `a_job_that_slurm_can_never_start_where_it_was_sent_is_given_back_at_once`, with its priority.
//! - `a_job_that_is_requeued_does_not_wait_for_its_node_again`.
//! - `a_job_that_cannot_start_where_it_was_sent_is_given_back`, also by a releaser that has just begun.
//! - `a_job_that_slurm_assigned_but_reported_as_refused_is_given_back`; what was done in part is done again
//!   (`a_job_that_was_given_back_in_part_gets_its_priority_at_the_next_look`).
//! - `what_has_not_started_is_given_back_at_the_end`, with its priority; after a kill by the guard
//!   (`what_a_killed_releaser_has_assigned_is_undone`).
//! - `nodes_that_a_user_asks_for_later_are_left_to_the_user`.

use std::collections::BTreeMap;

use symbiont_jobs::slurm::{QueuedJob, State};

use super::Releaser;
use crate::slurm::cluster::{Cluster, SlurmError};
use crate::slurm::decisions::Decision;

/// How long a released job may wait for its node, seconds.
const START_TIMEOUT_S: f64 = 60.0;

impl<C: Cluster> Releaser<C> {
    /// Gives back the jobs that do not start where they were sent to, and forgets those that are gone.
    pub(super) fn undo(
        &mut self,
        jobs: &[QueuedJob],
        now_s: f64,
    ) -> Result<Vec<Decision>, SlurmError> {
        let by_id: BTreeMap<u64, &QueuedJob> = jobs.iter().map(|job| (job.id, job)).collect();
        let before = self.released.clone();
        self.released.retain(|id, one| {
            let Some(job) = by_id.get(id) else { return false };
            one.has_started |= job.state == State::Running || job.restarts > one.restarts;
            match job.state {
                State::Pending => {
                    let is_assigned = job.asked == one.node;
                    job.is_marked && (is_assigned || one.is_lowered && job.asked.is_empty())
                }
                State::Running => true,
                State::Other => false,
            }
        });
        let mut decisions = Vec::new();
        let released = self.released.clone();
        for (id, one) in &released {
            let Some(job) = by_id.get(id).filter(|job| job.state == State::Pending) else {
                continue;
            };
            let node = &one.node;
            let why = if job.reason == "BadConstraints" || one.is_lowered {
                format!("Slurm can never start it on {node}")
            } else if one.has_started {
                format!("it is to run again, and on {node} no more than elsewhere")
            } else if one.is_over {
                format!("the releaser ends, and does not see it start on {node}")
            } else if now_s - one.since_s > START_TIMEOUT_S {
                format!("{node} had no room for it within {START_TIMEOUT_S} s")
            } else {
                continue;
            };
            if !self.options.dry_run {
                // Only one that Slurm has given up gets another priority from it; a held one has none.
                let is_held = job.reason.starts_with("JobHeld");
                let is_lowered = !is_held && (job.priority == 0 || one.is_lowered);
                let least_priority = if is_lowered { one.priority } else { 0 };
                if is_lowered && !one.is_lowered {
                    // Giving back is several commands, of which the last may not come to pass.
                    self.released.entry(*id).and_modify(|one| one.is_lowered = true);
                    self.note_released();
                }
                match self.cluster.give_back(job, least_priority) {
                    Ok(()) => {}
                    Err(error) if error.is_of_all() => return Err(error),
                    Err(error) => {
                        self.troubles.push(format!("job {id} is not given back: {error}"));
                        continue;
                    }
                }
            }
            self.released.remove(id);
            self.metrics.given_back += 1;
            let waited_s = now_s - job.submitted_s;
            decisions
                .push(Decision { waited_s, ..Decision::of(*id, self.program_of(*id), now_s, why) });
        }
        if self.released != before {
            self.note_released();
        }
        Ok(decisions)
    }

    /// Looks whether released jobs have started, and gives back those that do not; releases none.
    pub fn settle(&mut self, now_s: f64) -> Result<Vec<Decision>, SlurmError> {
        let jobs = self.cluster.jobs()?;
        self.undo(&jobs, now_s)
    }

    /// Jobs that were assigned their node, and do not run yet.
    pub fn on_their_way(&self) -> Vec<u64> {
        let all = self.released.iter().filter(|(_, one)| !one.has_started);
        all.map(|(id, _)| *id).collect()
    }

    /// Gives back all jobs that have not started, since no releaser looks after them any more. What this does not
    /// reach in its short time is for the guard, or the next releaser.
    pub fn finish(&mut self, now_s: f64) -> Vec<Decision> {
        if self.on_their_way().is_empty() || self.options.dry_run {
            return Vec::new();
        }
        self.cluster.end_soon();
        self.released.values_mut().for_each(|one| one.is_over = !one.has_started);
        self.note_released();
        self.settle(now_s).unwrap_or_default()
    }

    fn note_released(&mut self) {
        if self.options.dry_run {
            return;
        }
        if let Err(error) = self.journal.write(&self.released) {
            self.troubles.push(format!("{error:#}"));
        }
    }

    /// The program of a job, as people call it.
    pub(super) fn program_of(&self, job: u64) -> String {
        self.programs.get(&job).map(|(one, _)| one.name.clone()).unwrap_or_default()
    }
}
