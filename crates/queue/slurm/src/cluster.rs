//! A Slurm cluster: what the releaser asks of one ([`Cluster`]), and the one that Slurm's commands reach from here
//! ([`Commands`]).
//!
//! Before anything is changed for a job, Slurm is asked for that job by its number: what the queue says of it is not
//! enough, since it may have changed, or another one may have its number by now.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use symbiont_jobs::slurm::{
    CONFIRM_FORMAT, END_FORMAT, EndedJob, Layout, LineError, PRIORITY_FORMAT, QueuedJob, Selection,
    confirm, parse_ended, parse_jobs, parse_priority, parse_qos,
};

use crate::SlurmError;
use crate::process::{Wait, run};

/// What the releaser asks of a cluster.
pub trait Cluster {
    /// All jobs of the queue.
    fn jobs(&mut self) -> Result<Vec<QueuedJob>, SlurmError>;
    /// Nodes, partitions and reservations.
    fn layout(&mut self) -> Result<Layout, SlurmError>;
    /// The script of a batch job.
    fn script(&mut self, job: u64) -> Result<String, SlurmError>;
    /// How a job ended; none while it has not, or is forgotten.
    fn ended(&mut self, job: u64) -> Result<Option<EndedJob>, SlurmError>;
    /// Lets a job start, on this node or where Slurm wants, provided that it still waits for Symbiont.
    fn release(&mut self, job: &QueuedJob, node: Option<&str>) -> Result<(), SlurmError>;
    /// Lets a job that was assigned a node start on any, with at least this priority (0: whatever Slurm gives it),
    /// provided that it waited for Symbiont.
    fn give_back(&mut self, job: &QueuedJob, least_priority: u64) -> Result<(), SlurmError>;
    /// The releaser ends: from now on no command is waited for long.
    fn end_soon(&mut self);
    /// Jobs and lines that were not understood since the last call.
    fn take_line_errors(&mut self) -> Vec<String>;
}

/// How long the commands at the end of the releaser may take, all together.
const LAST: Duration = Duration::from_millis(700);

/// The cluster that Slurm's commands (squeue, sinfo, scontrol) reach from here.
#[derive(Debug, Default)]
pub struct Commands {
    errors: Vec<String>,
    wait: Wait,
}

impl Commands {
    /// Commands are waited for until this is set.
    pub fn until(ends: Arc<AtomicBool>) -> Self {
        Self { errors: Vec::new(), wait: Wait::until(ends) }
    }

    /// Commands are waited for no longer than this, all together.
    pub fn within(time: Duration) -> Self {
        let mut wait = Wait::default();
        wait.end_in(time);
        Self { errors: Vec::new(), wait }
    }

    /// Each command is waited for no longer than this.
    pub fn each_within(limit: Duration) -> Self {
        Self { errors: Vec::new(), wait: Wait::each_within(limit) }
    }

    /// Each command is waited for no longer than this, and named by `slow` when it has not answered for a second.
    #[must_use]
    pub fn named(mut self, limit: Duration, slow: fn(&str, Duration)) -> Self {
        self.wait.named(limit, slow);
        self
    }

    fn run(&self, command: &str, arguments: &[&str]) -> Result<String, SlurmError> {
        run(command, arguments, &self.wait)
    }

    /// What squeue writes of one job, by its number, whatever its state.
    fn of_job(&self, job: u64, format: &str) -> Result<String, SlurmError> {
        let job = job.to_string();
        let command = ["--noheader", "--all", "--states=all", "--jobs", &job, "-O", format];
        self.run("squeue", &command)
    }

    fn parsed<T>(&mut self, (all, errors): (Vec<T>, Vec<LineError>)) -> Vec<T> {
        self.errors.extend(errors.iter().map(ToString::to_string));
        all
    }

    /// The names of all partitions.
    pub fn partitions(&mut self) -> Result<Vec<String>, SlurmError> {
        let text = self.run("sinfo", &["--noheader", "--format=%R"])?;
        let mut names: Vec<String> = text.lines().map(|line| line.trim().to_owned()).collect();
        names.sort();
        names.dedup();
        Ok(names)
    }

    /// The names of all QOS; none: Slurm has no accounting database, and cannot say.
    pub fn qos(&mut self) -> Result<Vec<String>, SlurmError> {
        self.run("scontrol", &["show", "assoc_mgr", "flags=qos"]).map(|text| parse_qos(&text))
    }

    /// The configuration, as `scontrol show config` writes it.
    pub fn config(&self) -> Result<String, SlurmError> {
        self.run("scontrol", &["show", "config"])
    }

    /// The version of Slurm's commands, as they print it.
    ///
    /// # Errors
    /// As [`Self::config`].
    pub fn version(&self) -> Result<String, SlurmError> {
        self.run("sinfo", &["--version"])
    }

    /// Asks for a job by its number: is it still this one, does it wait, and is it marked?
    fn confirm(&self, job: &QueuedJob) -> Result<(), SlurmError> {
        let text = self.of_job(job.id, CONFIRM_FORMAT)?;
        confirm(&text, job).map_err(SlurmError::refused("squeue"))
    }
}

impl Cluster for Commands {
    fn jobs(&mut self) -> Result<Vec<QueuedJob>, SlurmError> {
        let text = self.run("squeue", &["--all", "--json"])?;
        let (jobs, errors) =
            parse_jobs(&text).map_err(|error| SlurmError::refused("squeue")(error.to_string()))?;
        self.errors.extend(errors);
        Ok(jobs)
    }

    fn layout(&mut self) -> Result<Layout, SlurmError> {
        let show = |what: &str| self.run("scontrol", &["--all", "--oneliner", "show", what]);
        let (nodes, partitions) = (show("node")?, show("partition")?);
        let (reserved, config) = (show("reservation")?, show("config")?);
        Ok(Layout {
            selection: Selection::parse(&config),
            partitions: self.parsed(Layout::parse_partitions(&partitions)),
            nodes: self.parsed(Layout::parse_nodes(&nodes)),
            reservations: self.parsed(Layout::parse_reservations(&reserved)),
        })
    }

    fn script(&mut self, job: u64) -> Result<String, SlurmError> {
        self.run("scontrol", &["write", "batch_script", &job.to_string(), "-"])
    }

    fn ended(&mut self, job: u64) -> Result<Option<EndedJob>, SlurmError> {
        parse_ended(&self.of_job(job, END_FORMAT)?, job).map_err(SlurmError::refused("squeue"))
    }

    fn release(&mut self, job: &QueuedJob, node: Option<&str>) -> Result<(), SlurmError> {
        self.confirm(job)?;
        let (job, node) = (job_id(job), node.map(|node| format!("ReqNodeList={node}")));
        let mut command = vec!["update", job.as_str(), "StartTime=now"];
        command.extend(node.as_deref());
        self.run("scontrol", &command).map(drop)
    }

    fn give_back(&mut self, job: &QueuedJob, least_priority: u64) -> Result<(), SlurmError> {
        self.confirm(job)?;
        let id = job_id(job);
        self.run("scontrol", &["update", &id, "ReqNodeList="])?;
        if least_priority == 0 {
            return Ok(());
        }
        // Slurm gives a job that it had given up a new priority, the lowest of all with priority/basic.
        let now = self.of_job(job.id, PRIORITY_FORMAT)?;
        if parse_priority(&now, job.id).is_ok_and(|now| now < least_priority) {
            self.run("scontrol", &["update", &id, &format!("Priority={least_priority}")])?;
        }
        Ok(())
    }

    fn end_soon(&mut self) {
        self.wait.end_in(LAST);
    }

    fn take_line_errors(&mut self) -> Vec<String> {
        std::mem::take(&mut self.errors)
    }
}

fn job_id(job: &QueuedJob) -> String {
    format!("JobId={}", job.id)
}
