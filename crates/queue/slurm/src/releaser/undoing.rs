//! Undoes assignments that did not work out.
//!
//! A job that was assigned a node asks for it by name. It is given back, so that Slurm starts it where it wants:
//! - at once when Slurm holds it for good (`BadConstraints`: the node has changed since), with the priority that it
//!   had;
//! - at once after a requeue: the node may have failed;
//! - when it did not start in time;
//! - when the releaser ends.
//!
//! Only what is in the journal is undone, and only while the job asks for that node: its user may ask for others.
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
use crate::assignments::Assignment;
use crate::cluster::Cluster;
use crate::{Decision, SlurmError};

impl<C: Cluster> Releaser<C> {
    /// Gives back jobs that do not start where they were sent, and drops assignments that no longer stand.
    pub(super) fn undo(
        &mut self,
        queue: &[QueuedJob],
        now_s: f64,
    ) -> Result<Vec<Decision>, SlurmError> {
        let by_id: BTreeMap<u64, &QueuedJob> = queue.iter().map(|job| (job.id, job)).collect();
        let before = self.jobs.assignments();
        for (id, assignment) in self.jobs.assignments_mut() {
            let stands = |one: &mut Assignment| by_id.get(&id).is_some_and(|job| one.follow(job));
            if !assignment.as_mut().is_some_and(stands) {
                *assignment = None;
            }
        }
        let mut decisions = Vec::new();
        for (id, assignment) in self.jobs.assignments() {
            let Some(job) = by_id.get(&id).filter(|job| job.state == State::Pending) else {
                continue;
            };
            let Some(why) = assignment.why_undo(job, now_s) else { continue };
            if !self.options.dry_run && !self.give_back(job, &assignment)? {
                continue;
            }
            self.jobs.track(id).assignment = None;
            self.metrics.given_back += 1;
            let program = self.jobs.program_name(id);
            let waited_s = now_s - job.submitted_s;
            decisions.push(Decision { waited_s, ..Decision::of(id, program, now_s, why) });
        }
        if self.jobs.assignments() != before {
            self.write_journal();
        }
        Ok(decisions)
    }

    /// Gives a job back to Slurm; false: Slurm refused.
    fn give_back(&mut self, job: &QueuedJob, assignment: &Assignment) -> Result<bool, SlurmError> {
        let loses_priority = assignment.loses_priority(job);
        if loses_priority && !assignment.is_lowered {
            // Giving back takes several commands, of which the last may not happen.
            let lowered = Assignment { is_lowered: true, ..assignment.clone() };
            self.jobs.track(job.id).assignment = Some(lowered);
            self.write_journal();
        }
        let least_priority = if loses_priority { assignment.priority } else { 0 };
        match self.cluster.give_back(job, least_priority) {
            Ok(()) => Ok(true),
            Err(error) if error.is_of_all() => Err(error),
            Err(error) => {
                self.troubles.push(format!("job {} is not given back: {error}", job.id));
                Ok(false)
            }
        }
    }

    /// Gives back assigned jobs that do not start; releases none.
    ///
    /// # Errors
    /// [`SlurmError`] when Slurm as a whole does not answer.
    pub fn settle(&mut self, now_s: f64) -> Result<Vec<Decision>, SlurmError> {
        let queue = self.cluster.jobs()?;
        self.undo(&queue, now_s)
    }

    /// Jobs that were assigned a node, and have not started yet.
    pub fn on_their_way(&self) -> Vec<u64> {
        self.jobs.on_their_way()
    }

    /// Gives back all jobs that have not started, since this releaser looks after them no more. It takes a short time
    /// at most: what is left then is for the guard, or for the next releaser.
    pub fn finish(&mut self, now_s: f64) -> Vec<Decision> {
        if self.on_their_way().is_empty() || self.options.dry_run {
            return Vec::new();
        }
        self.cluster.end_soon();
        let assignments = self.jobs.assignments_mut();
        for assignment in assignments.filter_map(|(_, assignment)| assignment.as_mut()) {
            assignment.is_over = !assignment.has_started;
        }
        self.write_journal();
        self.settle(now_s).unwrap_or_default()
    }

    fn write_journal(&mut self) {
        if self.options.dry_run {
            return;
        }
        if let Err(error) = self.journal.write(&self.jobs.assignments()) {
            self.troubles.push(error.to_string());
        }
    }
}
