//! Which jobs were assigned a node, so that the next releaser can undo it.
//!
//! A job that asks for a node by name waits for that node alone. So it is noted before, in a file next to
//! the store that is replaced as a whole, and stays there as long as the job is in the queue: after a requeue it would
//! ask for the same node again. A releaser that was killed is followed by one that reads the file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::{Deserialize, Serialize};
use symbiont_safe_open::output;

/// A job that was assigned its node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Released {
    /// The node.
    pub node: String,
    /// When, seconds since 1970.
    pub since_s: f64,
    /// The priority that it had.
    pub priority: u64,
    /// Was it seen to run?
    #[serde(default)]
    pub has_started: bool,
    /// How often it had been requeued before.
    #[serde(default)]
    pub restarts: u64,
    /// It is given back, but may not have its priority again.
    #[serde(default)]
    pub is_lowered: bool,
    /// The releaser has ended, and it is to be given back.
    #[serde(default)]
    pub is_over: bool,
}

/// All of them, by number.
pub type ReleasedJobs = BTreeMap<u64, Released>;

/// The file.
#[derive(Debug, Clone)]
pub struct Journal {
    path: PathBuf,
}

impl Journal {
    /// Next to the store at this path, with its name: another one in the folder has its own.
    pub fn next_to(store: &Path) -> Self {
        Self { path: store.with_extension("released") }
    }

    /// What it holds; nothing if there is no file.
    pub fn read(&self) -> anyhow::Result<ReleasedJobs> {
        let text = match symbiont_safe_open::read_to_string(&self.path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(ReleasedJobs::new());
            }
            text => text.with_context(|| format!("cannot read {}", self.path.display()))?,
        };
        serde_json::from_str(&text).with_context(|| {
            format!("{} does not hold the jobs that were released; remove it", self.path.display())
        })
    }

    /// Replaces the file.
    pub fn write(&self, jobs: &ReleasedJobs) -> anyhow::Result<()> {
        let trouble = || format!("cannot note released jobs in {}", self.path.display());
        if let Some(folder) = self.path.parent() {
            std::fs::create_dir_all(folder).with_context(trouble)?;
        }
        output::replace_by(&self.path, 0o644, &serde_json::to_vec(jobs)?).with_context(trouble)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_store_of_a_folder_has_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let [one, other] =
            ["one.json", "other.json"].map(|name| Journal::next_to(&folder.path().join(name)));
        let released = Released {
            node: "n1".to_owned(),
            since_s: 1.0,
            priority: 7,
            has_started: false,
            restarts: 0,
            is_lowered: false,
            is_over: false,
        };
        let released = ReleasedJobs::from([(3, released)]);
        one.write(&released).unwrap();
        other.write(&ReleasedJobs::new()).unwrap();
        assert_eq!(one.read().unwrap(), released);
    }
}
