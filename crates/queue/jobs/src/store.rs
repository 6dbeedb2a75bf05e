//! Observations in a file.
//!
//! # Approach
//! One JSON file, which names the version of its format, is replaced as a whole: a draft is written, flushed to the
//! disk and renamed, so that a crash leaves either the old file or the new one. Writers take turns by a lock on a file
//! next to it, and each adds to what the others wrote. [`Observations`] bounds what is kept; a file that is longer than
//! any that was written here is refused unread.
//!
//! ```text
//! update(add): lock ─▶ read the file ─▶ add ─▶ write and flush a draft ─▶ rename it ─▶ unlock
//! ```
//!
//! # Properties
//! - What was written is read (`what_was_written_is_read`).
//! - Updates by several writers are all kept (`updates_by_several_writers_are_all_kept`).
//! - A damaged file is named and stays as it is (`a_damaged_file_is_refused_and_kept`).

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use symbiont_safe_open::output;

use crate::{Observations, ProgramKey, ProgramRecord};

/// The version of the format.
const VERSION: u32 = 1;
/// A longer file was not written here.
const MOST_BYTES: u64 = 256 << 20;

/// Why observations cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The file system refuses.
    #[error("cannot {what} {path}: {source}")]
    Io {
        /// What was tried.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The kernel's reason.
        source: io::Error,
    },
    /// It does not hold what was written.
    #[error("{path} holds no observations of programs: {why}; remove it, and they are learnt anew")]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// It was written by another version.
    #[error(
        "{path} has version {version} of the format, this symbiont reads version {VERSION}; remove it, \
         and observations are learnt anew"
    )]
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        version: u32,
    },
}

#[derive(Deserialize)]
struct Head {
    version: u32,
}

#[derive(Serialize, Deserialize)]
struct Contents<R> {
    version: u32,
    programs: R,
}

/// The file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Store {
    path: PathBuf,
}

impl Store {
    /// In this file, which need not exist yet.
    #[must_use]
    pub fn new(path: &Path) -> Self {
        Self { path: path.to_owned() }
    }

    /// The file's path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What is kept; nothing if there is no file.
    ///
    /// # Errors
    /// [`StoreError`] when the file cannot be read, or was not written by this version.
    pub fn read(&self) -> Result<Observations, StoreError> {
        let mut text = Vec::new();
        match symbiont_safe_open::open(&self.path) {
            Ok(file) => file.take(MOST_BYTES + 1).read_to_end(&mut text),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Observations::default());
            }
            Err(error) => Err(error),
        }
        .map_err(|source| self.io("read", &self.path, source))?;
        if text.len() as u64 > MOST_BYTES {
            return Err(self.malformed(&"it is too long"));
        }
        self.parse(&text)
    }

    fn parse(&self, text: &[u8]) -> Result<Observations, StoreError> {
        let head: Head = serde_json::from_slice(text).map_err(|error| self.malformed(&error))?;
        if head.version != VERSION {
            return Err(StoreError::Version { path: self.path.clone(), version: head.version });
        }
        let contents: Contents<BTreeMap<ProgramKey, ProgramRecord>> =
            serde_json::from_slice(text).map_err(|error| self.malformed(&error))?;
        Ok(Observations::from_records(contents.programs))
    }

    /// Adds to what is kept, and gives all that is kept then.
    ///
    /// # Errors
    /// As [`Store::read`], and when the file cannot be written.
    pub fn update(&self, add: impl FnOnce(&mut Observations)) -> Result<Observations, StoreError> {
        if let Some(folder) = self.path.parent() {
            fs::create_dir_all(folder).map_err(|source| self.io("create", folder, source))?;
        }
        let lock_path = self.path.with_extension("lock");
        let mut options = OpenOptions::new();
        let lock = options.write(true).create(true).truncate(false).mode(0o600).open(&lock_path);
        let lock = lock.map_err(|source| self.io("open", &lock_path, source))?;
        flock(&lock, FlockOperation::LockExclusive)
            .map_err(|error| self.io("lock", &lock_path, error.into()))?;
        let mut observations = self.read()?;
        add(&mut observations);
        let contents = Contents { version: VERSION, programs: observations.records() };
        let text = serde_json::to_vec(&contents).map_err(io::Error::from);
        let written = text.and_then(|text| {
            output::replace(&self.path, 0o600, |file| {
                file.write_all(&text)?;
                file.sync_all()
            })
        });
        written.map_err(|source| self.io("write", &self.path, source))?;
        Ok(observations)
    }

    fn io(&self, what: &'static str, path: &Path, source: io::Error) -> StoreError {
        StoreError::Io { what, path: path.to_owned(), source }
    }

    fn malformed(&self, why: &dyn std::fmt::Display) -> StoreError {
        StoreError::Malformed { path: self.path.clone(), why: why.to_string() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observed::{CompletedRun, Stack};

    fn key(digest: &str) -> ProgramKey {
        ProgramKey { user: 1000, digest: digest.to_owned() }
    }

    fn add(observations: &mut Observations, digest: &str, at: u64) {
        let co_runners = vec![(key("ff"), 0.5)];
        let (work, elapsed_s, error_s) = (u64::MAX, 1.25, 1.0);
        let run = CompletedRun { ended_s: at, work, elapsed_s, error_s, cpu_s: None, co_runners };
        observations.add_run(&key(digest), "x", run);
        let components = [("base".to_owned(), 0.3)].into();
        let stack = Stack { processor: "A processor".to_owned(), components, counted_s: 2.0 };
        observations.add_stack(&key(digest), "x", at, &stack);
    }

    #[test]
    fn what_was_written_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::new(&folder.path().join("deeper/jobs.json"));
        assert_eq!(store.read().unwrap(), Observations::default());
        let written = store.update(|all| add(all, "ab", 5)).unwrap();
        assert_eq!(store.read().unwrap(), written);
        assert_eq!(written.records().len(), 1);
    }

    #[test]
    fn updates_by_several_writers_are_all_kept() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::new(&folder.path().join("jobs.json"));
        let write = |writer: u64| {
            let store = store.clone();
            move || {
                for at in 0..8 {
                    store.update(|all| add(all, &format!("{writer}{at}"), at)).unwrap();
                }
            }
        };
        let writers: Vec<_> = (0..4).map(|writer| std::thread::spawn(write(writer))).collect();
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        assert_eq!(store.read().unwrap().records().len(), 32);
    }

    #[test]
    fn a_damaged_file_is_refused_and_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("jobs.json");
        let store = Store::new(&path);
        for (text, part) in [
            ("{\"version\":1,", "jobs.json holds no observations"),
            ("{\"version\":1,\"programs\":{\"me\":{}}}", "'me' is not a user's number"),
            ("{\"version\":9,\"programs\":[]}", "version 9"),
        ] {
            fs::write(&path, text).unwrap();
            let refused = store.update(|all| add(all, "ab", 1)).unwrap_err().to_string();
            assert!(refused.contains(part), "{refused}");
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
    }

    #[test]
    fn a_draft_that_a_crash_left_is_no_trouble() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::new(&folder.path().join("jobs.json"));
        store.update(|all| add(all, "ab", 1)).unwrap();
        fs::write(folder.path().join("jobs.draft"), "{\"vers").unwrap();
        assert_eq!(store.read().unwrap().records().len(), 1);
        assert_eq!(store.update(|all| add(all, "cd", 1)).unwrap().records().len(), 2);
    }
}
