//! Clusters for tests.

use std::collections::BTreeMap;
use std::time::Duration;

use symbiont_jobs::slurm::{
    EndedJob, Layout, NodeState, Partition, QueuedJob, Reservation, Selection,
};

use crate::{Cluster, SlurmError};

/// A cluster that does what it is asked for at once.
#[derive(Debug, Default)]
pub struct Fake {
    pub jobs: Vec<QueuedJob>,
    pub nodes: Vec<NodeState>,
    pub scripts: BTreeMap<u64, String>,
    pub ended: BTreeMap<u64, EndedJob>,
    pub calls: Vec<String>,
    pub refuses: Vec<u64>,
    /// Does what it refuses all the same.
    pub does_refused: bool,
    pub fails_to_give_back: bool,
    pub selection: Selection,
    pub reservations: Vec<Reservation>,
    /// Scripts that cannot be read before the others can.
    pub unread: usize,
}

impl Cluster for &mut Fake {
    fn jobs(&mut self) -> Result<Vec<QueuedJob>, SlurmError> {
        Ok(self.jobs.clone())
    }

    fn layout(&mut self) -> Result<Layout, SlurmError> {
        let partition = |name: &str| Partition { name: name.to_owned(), ..Partition::default() };
        Ok(Layout {
            selection: self.selection.clone(),
            partitions: ["p", "q"].map(partition).into(),
            nodes: self.nodes.clone(),
            reservations: self.reservations.clone(),
        })
    }

    fn script(&mut self, job: u64) -> Result<String, SlurmError> {
        if self.unread > 0 {
            self.unread -= 1;
            let (command, limit) = ("scontrol".to_owned(), Duration::from_secs(1));
            return Err(SlurmError::Silent { command, limit });
        }
        Ok(self.scripts.get(&job).cloned().unwrap_or_default())
    }

    fn ended(&mut self, job: u64) -> Result<Option<EndedJob>, SlurmError> {
        Ok(self.ended.get(&job).cloned())
    }

    fn release(&mut self, job: &QueuedJob, node: Option<&str>) -> Result<(), SlurmError> {
        self.calls.push(format!("release {} {}", job.id, node.unwrap_or("anywhere")));
        if self.refuses.contains(&job.id) && !self.does_refused {
            let (command, why) = ("scontrol".to_owned(), "Invalid job id specified".to_owned());
            return Err(SlurmError::Refused { command, why });
        }
        let id = job.id;
        let mut jobs = self.jobs.iter_mut().filter(|one| one.id == id);
        if let Some(job) = jobs.next() {
            job.reason = "None".to_owned();
            job.asked = node.unwrap_or_default().to_owned();
        }
        if self.refuses.contains(&id) {
            let (command, why) = ("scontrol".to_owned(), "An odd answer".to_owned());
            return Err(SlurmError::Refused { command, why });
        }
        Ok(())
    }

    fn give_back(&mut self, job: &QueuedJob, least_priority: u64) -> Result<(), SlurmError> {
        self.calls.push(format!("give back {} {least_priority}", job.id));
        self.jobs.iter_mut().filter(|one| one.id == job.id).for_each(|job| job.asked.clear());
        if self.fails_to_give_back {
            let (command, why) = ("scontrol".to_owned(), "An odd answer".to_owned());
            return Err(SlurmError::Refused { command, why });
        }
        Ok(())
    }

    fn end_soon(&mut self) {
        self.calls.push("ends soon".to_owned());
    }

    fn take_line_errors(&mut self) -> Vec<String> {
        Vec::new()
    }
}

/// A cluster whose queue holds other jobs at the first look.
pub struct TwoQueues<'a> {
    pub fake: &'a mut Fake,
    pub first: Option<Vec<QueuedJob>>,
}

impl Cluster for &mut TwoQueues<'_> {
    fn jobs(&mut self) -> Result<Vec<QueuedJob>, SlurmError> {
        Ok(self.first.take().unwrap_or_else(|| self.fake.jobs.clone()))
    }

    fn layout(&mut self) -> Result<Layout, SlurmError> {
        (&mut *self.fake).layout()
    }

    fn script(&mut self, job: u64) -> Result<String, SlurmError> {
        (&mut *self.fake).script(job)
    }

    fn ended(&mut self, job: u64) -> Result<Option<EndedJob>, SlurmError> {
        (&mut *self.fake).ended(job)
    }

    fn release(&mut self, job: &QueuedJob, node: Option<&str>) -> Result<(), SlurmError> {
        (&mut *self.fake).release(job, node)
    }

    fn give_back(&mut self, job: &QueuedJob, least_priority: u64) -> Result<(), SlurmError> {
        (&mut *self.fake).give_back(job, least_priority)
    }

    fn end_soon(&mut self) {
        (&mut *self.fake).end_soon();
    }

    fn take_line_errors(&mut self) -> Vec<String> {
        Vec::new()
    }
}
