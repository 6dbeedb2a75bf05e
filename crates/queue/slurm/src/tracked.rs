//! What is known of each job that the releaser has to do with, by its number.
//!
//! A job is tracked from the moment that something is known of it until it has left the queue; where nodes report
//! jobs, for some time more, since they report a job after its end, too.

use std::collections::{BTreeMap, BTreeSet};

use symbiont_jobs::{Identity, ProgramKey};

use crate::assignments::{Assignment, Assignments};
use crate::progress::JobProgress;

/// The program of a job.
#[derive(Debug, Clone, PartialEq)]
pub struct JobProgram {
    /// The program.
    pub identity: Identity,
    /// What it was asked to do: the number of its script.
    pub work: u64,
}

/// The run of a job, by what identifies it in the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredRun {
    /// When it ended, seconds since 1970.
    pub ended_s: u64,
    /// The number of its script.
    pub work: u64,
}

/// What is known of one job.
#[derive(Debug, Default)]
pub struct TrackedJob {
    /// Its program; none: its script has not been read yet.
    pub program: Option<JobProgram>,
    /// The node that it was assigned, until that is undone or the job has ended.
    pub assignment: Option<Assignment>,
    /// How often Slurm refused to let it start.
    pub refusals: u32,
    /// How much of it the store has already, of what its node reports.
    pub progress: Option<JobProgress>,
    /// CPU time of all of it, seconds, once its node has reported its end.
    pub cpu_s: Option<f64>,
    /// Its run, once the store has it.
    pub stored_run: Option<StoredRun>,
    /// Since when it is neither in the queue nor known to run.
    gone_since_s: Option<f64>,
}

impl TrackedJob {
    /// Was it assigned a node where it has not started yet?
    pub fn is_on_its_way(&self) -> bool {
        self.assignment.as_ref().is_some_and(|one| !one.has_started)
    }

    fn identity(&self) -> Option<&Identity> {
        self.program.as_ref().map(|program| &program.identity)
    }
}

/// All of them.
#[derive(Debug, Default)]
pub struct TrackedJobs(BTreeMap<u64, TrackedJob>);

impl TrackedJobs {
    /// What an earlier releaser has assigned.
    pub fn of(assignments: Assignments) -> Self {
        let mut all = Self::default();
        all.assign(assignments);
        all
    }

    /// What is known of a job.
    pub fn get(&self, id: u64) -> Option<&TrackedJob> {
        self.0.get(&id)
    }

    /// A job, from now on if it was not tracked before.
    pub fn track(&mut self, id: u64) -> &mut TrackedJob {
        self.0.entry(id).or_default()
    }

    /// Stops tracking jobs that are neither in the queue nor running, some time after they are gone. Assignments stay
    /// until they are undone.
    pub fn forget(
        &mut self,
        queue: &BTreeSet<u64>,
        running: &BTreeSet<u64>,
        now_s: f64,
        remembered_s: f64,
    ) {
        self.0.retain(|id, job| {
            if !queue.contains(id) {
                job.refusals = 0;
            }
            if queue.contains(id) || running.contains(id) {
                job.gone_since_s = None;
                return true;
            }
            let since_s = *job.gone_since_s.get_or_insert(now_s);
            job.assignment.is_some() || now_s - since_s < remembered_s
        });
    }

    /// The program of a job and the number of its script.
    pub fn program(&self, id: u64) -> Option<&JobProgram> {
        self.get(id)?.program.as_ref()
    }

    /// The program of a job.
    pub fn identity(&self, id: u64) -> Option<&Identity> {
        self.get(id)?.identity()
    }

    /// The name of the program of a job; empty: not known.
    pub fn program_name(&self, id: u64) -> String {
        self.identity(id).map(|one| one.name.clone()).unwrap_or_default()
    }

    /// The names of all programs of tracked jobs.
    pub fn names(&self) -> BTreeMap<&ProgramKey, &str> {
        let all = self.0.values().filter_map(TrackedJob::identity);
        all.map(|one| (&one.key, one.name.as_str())).collect()
    }

    /// How often Slurm refused to let a job start.
    pub fn refusals(&self, id: u64) -> u32 {
        self.get(id).map_or(0, |job| job.refusals)
    }

    /// All assignments, as the journal has them.
    pub fn assignments(&self) -> Assignments {
        let all = self.0.iter();
        all.filter_map(|(id, job)| Some((*id, job.assignment.clone()?))).collect()
    }

    /// The assignments, to be changed.
    pub fn assignments_mut(&mut self) -> impl Iterator<Item = (u64, &mut Option<Assignment>)> {
        self.0.iter_mut().map(|(id, job)| (*id, &mut job.assignment))
    }

    /// Adds assignments.
    pub fn assign(&mut self, assignments: Assignments) {
        for (id, assignment) in assignments {
            self.track(id).assignment = Some(assignment);
        }
    }

    /// Jobs that were assigned a node, and have not started yet.
    pub fn on_their_way(&self) -> Vec<u64> {
        let all = self.0.iter().filter(|(_, job)| job.is_on_its_way());
        all.map(|(id, _)| *id).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{key, waits};

    fn tracked(id: u64) -> TrackedJobs {
        let mut jobs = TrackedJobs::default();
        let identity = Identity { key: key("x"), name: "x".to_owned() };
        jobs.track(id).program = Some(JobProgram { identity, work: 1 });
        jobs
    }

    #[test]
    fn a_job_is_tracked_as_long_as_it_is_remembered_after_its_end() {
        let mut jobs = tracked(1);
        let (queue, none) = ([1].into(), BTreeSet::new());
        for (queue, running, now_s) in
            [(&queue, &none, 0.0), (&none, &queue, 500.0), (&none, &none, 600.0)]
        {
            jobs.forget(queue, running, now_s, 60.0);
            assert_eq!(jobs.program_name(1), "x");
        }
        jobs.forget(&none, &none, 659.0, 60.0);
        assert_eq!(jobs.names().len(), 1);
        jobs.forget(&none, &none, 660.0, 60.0);
        assert!(jobs.get(1).is_none());
    }

    #[test]
    fn an_assignment_outlives_the_job_until_it_is_undone() {
        let mut jobs = tracked(1);
        jobs.track(1).refusals = 1;
        jobs.assign([(1, Assignment::new(&waits(1, 0.0), "a", 0.0))].into());
        let none = BTreeSet::new();
        jobs.forget(&none, &none, 5.0, 0.0);
        assert_eq!((jobs.refusals(1), jobs.on_their_way()), (0, vec![1]));
        jobs.assignments_mut().for_each(|(_, assignment)| *assignment = None);
        jobs.forget(&none, &none, 5.0, 0.0);
        assert!(jobs.get(1).is_none());
    }
}
