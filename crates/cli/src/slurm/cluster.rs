//! Slurm, by its commands.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use symbiont_jobs::slurm::{
    CONFIRM_FORMAT, END_FORMAT, EndedJob, Layout, LineError, PRIORITY_FORMAT, QueuedJob, Selection,
    confirm, parse_ended, parse_jobs, parse_priority, parse_qos,
};

use super::command::{TIMEOUT, Wait, run};

/// Why Slurm was not asked, or did not do it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SlurmError {
    /// The command cannot be run.
    #[error("cannot run {command}: {why}; Slurm's commands have to be in PATH")]
    NotRun {
        /// Which.
        command: String,
        /// What the kernel said.
        why: String,
    },
    /// It took too long.
    #[error("{command} did not answer within {} s", TIMEOUT.as_secs())]
    Silent {
        /// Which.
        command: String,
    },
    /// It was to end before it did.
    #[error("{command} was not waited for, since symbiont ends")]
    Ended {
        /// Which.
        command: String,
    },
    /// It says why not.
    #[error("{command}: {why}")]
    Refused {
        /// Which.
        command: String,
        /// In its words.
        why: String,
    },
}

impl SlurmError {
    /// Is it Slurm as a whole that does not answer, and not this job that is refused?
    pub fn is_of_all(&self) -> bool {
        match self {
            Self::NotRun { .. } | Self::Silent { .. } | Self::Ended { .. } => true,
            Self::Refused { why, .. } => {
                let why = why.to_ascii_lowercase();
                ["contact", "timed out", "zero bytes"].iter().any(|word| why.contains(word))
            }
        }
    }

    /// May it be different at the next look, as while backfilling considers the job?
    pub fn is_passing(&self) -> bool {
        matches!(self, Self::Refused { why, .. } if why.contains("temporarily unavailable"))
    }
}

/// What is asked of a cluster.
pub trait Cluster {
    /// All jobs of the queue.
    fn jobs(&mut self) -> Result<Vec<QueuedJob>, SlurmError>;
    /// Nodes, partitions and reservations.
    fn layout(&mut self) -> Result<Layout, SlurmError>;
    /// The script of a batch job.
    fn script(&mut self, job: u64) -> Result<String, SlurmError>;
    /// How a job ended; none while it has not, or is forgotten.
    fn ended(&mut self, job: u64) -> Result<Option<EndedJob>, SlurmError>;
    /// Lets a job start, on this node or where Slurm wants, if Slurm confirms by its number that it waits for
    /// Symbiont.
    fn release(&mut self, job: &QueuedJob, node: Option<&str>) -> Result<(), SlurmError>;
    /// Lets a released job start on any node, with this priority or a higher one (0: as Slurm has it), if Slurm confirms
    /// by its number that it waited for Symbiont.
    fn give_back(&mut self, job: &QueuedJob, least_priority: u64) -> Result<(), SlurmError>;
    /// From now on nothing is waited for long: the releaser ends.
    fn end_soon(&mut self);
    /// What was not understood since the last call.
    fn take_line_errors(&mut self) -> Vec<String>;
}

/// How long the last commands may take, all together.
const LAST: Duration = Duration::from_millis(700);

/// The cluster that Slurm's commands reach from here.
#[derive(Debug, Default)]
pub struct Commands {
    errors: Vec<String>,
    wait: Wait,
}

impl Commands {
    /// Waits for commands only until this is set.
    pub fn until(ends: Arc<AtomicBool>) -> Self {
        Self { errors: Vec::new(), wait: Wait::until(ends) }
    }

    /// Waits for commands no longer than this, all together.
    pub fn within(time: Duration) -> Self {
        let mut wait = Wait::default();
        wait.end_in(time);
        Self { errors: Vec::new(), wait }
    }

    fn run(&self, command: &str, arguments: &[&str]) -> Result<String, SlurmError> {
        run(command, arguments, &self.wait)
    }

    /// What squeue writes of one job, by its number, in whatever state.
    fn of_job(&self, job: u64, format: &str) -> Result<String, SlurmError> {
        let job = job.to_string();
        let command = ["--noheader", "--all", "--states=all", "--jobs", &job, "-O", format];
        self.run("squeue", &command)
    }

    fn parsed<T>(&mut self, (all, errors): (Vec<T>, Vec<LineError>)) -> Vec<T> {
        self.errors.extend(errors.iter().map(ToString::to_string));
        all
    }

    /// The partitions that there are.
    pub fn partitions(&mut self) -> Result<Vec<String>, SlurmError> {
        let text = self.run("sinfo", &["--noheader", "--format=%R"])?;
        let mut names: Vec<String> = text.lines().map(|line| line.trim().to_owned()).collect();
        names.sort();
        names.dedup();
        Ok(names)
    }

    /// The QOS that there are; none: Slurm has no accounting database, and cannot say.
    pub fn qos(&mut self) -> Result<Vec<String>, SlurmError> {
        self.run("scontrol", &["show", "assoc_mgr", "flags=qos"]).map(|text| parse_qos(&text))
    }

    /// Asks for a job by its number: is it still this one, does it wait, and is it marked? What the queue says of
    /// it is not enough to act.
    fn confirm(&self, job: &QueuedJob) -> Result<(), SlurmError> {
        let text = self.of_job(job.id, CONFIRM_FORMAT)?;
        confirm(&text, job).map_err(refused("squeue"))
    }
}

impl Cluster for Commands {
    fn jobs(&mut self) -> Result<Vec<QueuedJob>, SlurmError> {
        let text = self.run("squeue", &["--all", "--json"])?;
        let (jobs, errors) =
            parse_jobs(&text).map_err(|error| refused("squeue")(error.to_string()))?;
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
            reserved: self.parsed(Layout::parse_reserved(&reserved)),
        })
    }

    fn script(&mut self, job: u64) -> Result<String, SlurmError> {
        self.run("scontrol", &["write", "batch_script", &job.to_string(), "-"])
    }

    fn ended(&mut self, job: u64) -> Result<Option<EndedJob>, SlurmError> {
        parse_ended(&self.of_job(job, END_FORMAT)?, job).map_err(refused("squeue"))
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

fn refused(command: &str) -> impl Fn(String) -> SlurmError {
    let command = command.to_owned();
    move |why| SlurmError::Refused { command: command.clone(), why }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_passing_refusal_is_none_of_the_job() {
        let refused = |why: &str| refused("scontrol")(why.to_owned());
        let passing = refused("Resource temporarily unavailable for job 400");
        assert!(passing.is_passing() && !passing.is_of_all());
        let of_job = refused("Job resizing not supported for job arrays");
        assert!(!of_job.is_passing() && !of_job.is_of_all());
        for why in [
            "Unable to contact slurm controller (connect failure)",
            "Socket timed out on send/recv operation",
            "Zero Bytes were transmitted or received",
        ] {
            assert!(refused(why).is_of_all());
        }
    }
}
