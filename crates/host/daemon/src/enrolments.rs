//! The managed programs, for the start after a crash.
//!
//! The file lists the living processes of each program, with their time of birth, so that another
//! process with the same number is not taken for one of them.

use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{fs, mem};

use serde::{Deserialize, Serialize};
use symbiont_linux::ProcessBirth;
use symbiont_machine::{Class, Sample};

use crate::programs::Programs;

/// How often the file is written at most.
const PAUSE: Duration = Duration::from_millis(100);
/// A longer file is not one of ours.
const MOST_BYTES: u64 = 16 << 20;
const NAME: &str = "enrolments.json";

/// One program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Enrolment {
    /// Its name, for people.
    pub name: String,
    /// The user that had it managed.
    pub uid: u32,
    /// Its purpose.
    #[serde(default)]
    pub class: Class,
    /// Its job, as the job manager numbers it.
    #[serde(default)]
    pub job: Option<u64>,
    /// What it is known by from one run to the next; none: its name.
    #[serde(default)]
    pub identity: Option<String>,
    /// Is it managed as a rule wants it? Then the rules of the next start decide.
    #[serde(default)]
    pub is_ruled: bool,
    /// Its processes.
    pub processes: Vec<ProcessBirth>,
}

/// The file in a state directory.
#[derive(Debug)]
pub struct File {
    path: PathBuf,
    written: Vec<Enrolment>,
    last: Option<Instant>,
}

impl File {
    /// In this directory, which only its owner may write.
    pub fn new(state_dir: &Path) -> Self {
        Self { path: state_dir.join(NAME), written: Vec::new(), last: None }
    }

    /// What was managed when the file was last written; nothing if there is none.
    pub fn read(&self) -> Result<Vec<Enrolment>, String> {
        let trouble = |why: &dyn std::fmt::Display| {
            format!("what was managed before is not known: {}: {why}", self.path.display())
        };
        let file = match symbiont_safe_open::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(trouble(&error)),
        };
        let mut text = Vec::new();
        file.take(MOST_BYTES).read_to_end(&mut text).map_err(|error| trouble(&error))?;
        serde_json::from_slice(&text).map_err(|error| trouble(&error))
    }

    /// Writes what is managed now, if that has changed and the last time is a while ago.
    pub fn keep(&mut self, programs: &Programs, sample: &Sample, now: Instant) -> io::Result<()> {
        if self.last.is_some_and(|last| now.duration_since(last) < PAUSE) {
            return Ok(());
        }
        let enrolments: Vec<_> = programs
            .iter()
            .map(|(id, program)| {
                let leaders = sample.threads.iter().filter(|t| t.id.thread == t.id.process);
                let births = leaders.filter(|thread| thread.program == id).map(|thread| {
                    ProcessBirth { process: thread.id.process, born: thread.id.born }
                });
                let (name, uid) = (program.name.clone(), program.enrolled_by);
                let (class, job, identity) = (program.class, program.job, program.identity.clone());
                let (is_ruled, processes) = (program.is_ruled, births.collect());
                Enrolment { name, uid, class, job, identity, is_ruled, processes }
            })
            .filter(|enrolment| !enrolment.processes.is_empty())
            .collect();
        if enrolments == self.written {
            return Ok(());
        }
        self.last = Some(now);
        self.write(&enrolments)?;
        drop(mem::replace(&mut self.written, enrolments));
        Ok(())
    }

    fn write(&self, enrolments: &[Enrolment]) -> io::Result<()> {
        let draft = self.path.with_extension("draft");
        let mut options = fs::OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600);
        let mut file = options.open(&draft)?;
        file.write_all(&serde_json::to_vec(enrolments)?)?;
        fs::rename(&draft, &self.path)
    }

    /// Nothing is managed any more.
    pub fn remove(&self) {
        // If it stays, the processes that it names are managed again at the next start.
        let _ = fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let file = File::new(dir.path());
        assert_eq!(file.read().unwrap(), []);
        let processes = vec![ProcessBirth { process: 7, born: 99 }];
        let one = Enrolment {
            name: "make".to_owned(),
            uid: 1000,
            class: Class::Latency,
            job: Some(7),
            identity: Some("ab01".to_owned()),
            is_ruled: true,
            processes,
        };
        file.write(std::slice::from_ref(&one)).unwrap();
        assert_eq!(file.read().unwrap(), [one]);
        file.remove();
        assert_eq!(file.read().unwrap(), []);
    }

    #[test]
    fn a_damaged_file_is_refused_with_its_path() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join(NAME), "[{").unwrap();
        let error = File::new(dir.path()).read().unwrap_err();
        assert!(error.contains(NAME), "{error}");
    }
}
