//! The nodes that jobs were assigned, and the journal of them.
//!
//! A job that asks for a node by name waits for that node alone. So an assignment is written to the journal before
//! Slurm is asked for it, and stays there as long as the job is in the queue: after a requeue the job would ask for the
//! same node again. Whatever ends the releaser, the next one reads the journal and undoes what is left.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use symbiont_jobs::slurm::{QueuedJob, State};
use symbiont_safe_open::output;

use crate::FileError;

/// How long an assigned job may wait for its node, seconds.
const START_TIMEOUT_S: f64 = 60.0;

/// The node that a job was assigned. Field names are those of the journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Assignment {
    /// The node.
    pub node: String,
    /// When it was assigned, seconds since 1970.
    pub since_s: f64,
    /// The priority that the job had.
    pub priority: u64,
    /// Was the job seen to run?
    #[serde(default)]
    pub has_started: bool,
    /// How often the job had been requeued before.
    #[serde(default)]
    pub restarts: u64,
    /// Is it being undone for a job that lost its priority, which may not have it back yet?
    #[serde(default)]
    pub is_lowered: bool,
    /// Has the releaser ended, so that it is to be undone?
    #[serde(default)]
    pub is_over: bool,
}

/// Assignments by the numbers of their jobs.
pub type Assignments = BTreeMap<u64, Assignment>;

impl Assignment {
    /// Of a job that waits.
    pub fn new(job: &QueuedJob, node: &str, now_s: f64) -> Self {
        Self {
            node: node.to_owned(),
            since_s: now_s,
            priority: job.priority,
            has_started: false,
            restarts: job.restarts,
            is_lowered: false,
            is_over: false,
        }
    }

    /// Notes whether the job has started. False: the assignment no longer stands, since the job has ended or its user
    /// has changed what it asks for.
    pub fn follow(&mut self, job: &QueuedJob) -> bool {
        self.has_started |= job.state == State::Running || job.restarts > self.restarts;
        match job.state {
            State::Pending => {
                let stands = job.asked == self.node;
                job.is_marked && (stands || self.is_lowered && job.asked.is_empty())
            }
            State::Running => true,
            State::Other => false,
        }
    }

    /// Why it has to be undone for a job that waits; none: it may stand.
    pub fn why_undo(&self, job: &QueuedJob, now_s: f64) -> Option<String> {
        let node = &self.node;
        if job.reason == "BadConstraints" || self.is_lowered {
            Some(format!("Slurm can never start it on {node}"))
        } else if self.has_started {
            Some(format!("it is to run again, and on {node} no more than elsewhere"))
        } else if self.is_over {
            Some(format!("the releaser ends, and does not see it start on {node}"))
        } else if now_s - self.since_s > START_TIMEOUT_S {
            Some(format!("{node} had no room for it within {START_TIMEOUT_S} s"))
        } else {
            None
        }
    }

    /// Does the job lose its priority when this is undone? Only a job that Slurm has given up does; one that is held
    /// has none.
    pub fn loses_priority(&self, job: &QueuedJob) -> bool {
        let is_held = job.reason.starts_with("JobHeld");
        !is_held && (job.priority == 0 || self.is_lowered)
    }
}

/// The file of assignments.
#[derive(Debug, Clone)]
pub struct Journal {
    path: PathBuf,
}

impl Journal {
    /// Next to the store at this path, with its name: each store of a folder has its own.
    pub fn next_to(store: &Path) -> Self {
        Self { path: store.with_extension("released") }
    }

    /// What it holds; nothing if there is no file.
    ///
    /// # Errors
    /// [`FileError`] when it cannot be read, or is no journal.
    pub fn read(&self) -> Result<Assignments, FileError> {
        let text = match symbiont_safe_open::read_to_string(&self.path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Assignments::new()),
            text => text.map_err(FileError::io("read", &self.path))?,
        };
        serde_json::from_str(&text)
            .map_err(|why| FileError::NoJournal { path: self.path.clone(), why })
    }

    /// Replaces the file as a whole.
    ///
    /// # Errors
    /// [`FileError`] when it cannot be written.
    pub fn write(&self, assignments: &Assignments) -> Result<(), FileError> {
        let trouble = FileError::io("note released jobs in", &self.path);
        if let Some(folder) = self.path.parent() {
            std::fs::create_dir_all(folder).map_err(&trouble)?;
        }
        let text = serde_json::to_vec(assignments).map_err(|error| trouble(error.into()))?;
        output::replace_by(&self.path, 0o644, &text).map_err(&trouble)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_store_of_a_folder_has_its_own_journal() {
        let folder = tempfile::tempdir().unwrap();
        let [one, other] =
            ["one.json", "other.json"].map(|name| Journal::next_to(&folder.path().join(name)));
        let job = crate::tests::waits(3, 0.0);
        let assignments = Assignments::from([(3, Assignment::new(&job, "n1", 1.0))]);
        one.write(&assignments).unwrap();
        other.write(&Assignments::new()).unwrap();
        assert_eq!(one.read().unwrap(), assignments);
    }

    #[test]
    fn a_journal_that_is_none_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let store = folder.path().join("jobs.json");
        std::fs::write(store.with_extension("released"), "[").unwrap();
        let why = Journal::next_to(&store).read().unwrap_err().to_string();
        assert!(why.contains("jobs.released does not hold the jobs that were released"), "{why}");
    }

    #[test]
    fn an_early_journal_is_read() {
        let text = r#"{"3":{"node":"n1","since_s":1.0,"priority":7}}"#;
        let read: Assignments = serde_json::from_str(text).unwrap();
        assert_eq!((read[&3].node.as_str(), read[&3].is_over), ("n1", false));
    }
}
