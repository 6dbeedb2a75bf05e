//! The log of decisions, a line of JSON for each, so that `symbiont slurm why` can explain them later.
//!
//! # Properties
//! - What a crash left half written hides no other decision
//!   (`decisions_on_a_job_are_found_also_behind_a_half_written_line`).

use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use symbiont_safe_open::output;

use crate::{Decision, FileError};

/// A longer file becomes `FILE.1`, and a new one begins.
const MOST_BYTES: u64 = 8 << 20;

/// The file of decisions.
#[derive(Debug)]
pub struct DecisionLog {
    path: PathBuf,
}

impl DecisionLog {
    /// In this file.
    pub fn new(path: &Path) -> Self {
        Self { path: path.to_owned() }
    }

    /// It.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Appends a decision.
    ///
    /// # Errors
    /// [`FileError`] when it cannot be written.
    pub fn append(&self, decision: &Decision) -> Result<(), FileError> {
        let trouble = FileError::io("note decisions in", &self.path);
        if let Some(folder) = self.path.parent() {
            std::fs::create_dir_all(folder).map_err(&trouble)?;
        }
        if std::fs::metadata(&self.path).is_ok_and(|data| data.len() > MOST_BYTES) {
            std::fs::rename(&self.path, self.older()).map_err(&trouble)?;
        }
        let mut line = serde_json::to_vec(decision).map_err(|error| trouble(error.into()))?;
        line.push(b'\n');
        let mut append = || -> std::io::Result<()> {
            let mut file = output::append(&self.path)?;
            // After a line that a crash left half written, a new line begins.
            if !ends_a_line(&mut file)? {
                line.insert(0, b'\n');
            }
            let before = file.metadata()?;
            let written = file.write_all(&line);
            if written.is_err() && before.is_file() {
                // No half line is left; the first error is the one that counts.
                let _ = file.set_len(before.len());
            }
            written
        };
        append().map_err(&trouble)
    }

    fn older(&self) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        name.push(".1");
        PathBuf::from(name)
    }

    /// The decisions on a job, oldest first.
    ///
    /// # Errors
    /// [`FileError`] when a file is there and cannot be read.
    pub fn of(&self, job: u64) -> Result<Vec<Decision>, FileError> {
        let mut all = Vec::new();
        for path in [self.older(), self.path.clone()] {
            let text = match symbiont_safe_open::read_to_string(&path) {
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                text => text.map_err(FileError::io("read", &path))?,
            };
            // A line that a crash left half written is passed over.
            let lines = text.lines().filter_map(|line| serde_json::from_str::<Decision>(line).ok());
            all.extend(lines.filter(|decision| decision.job == job));
        }
        Ok(all)
    }
}

/// Is a file empty, or does it end with an end of line?
fn ends_a_line(file: &mut File) -> std::io::Result<bool> {
    // A pipe or a device has no end.
    if !file.metadata()?.is_file() || file.seek(SeekFrom::End(0))? == 0 {
        return Ok(true);
    }
    file.seek(SeekFrom::End(-1))?;
    let mut last = [0];
    file.read_exact(&mut last)?;
    Ok(last == *b"\n")
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;

    use super::*;
    use crate::decision::tests::decision;

    #[test]
    fn decisions_on_a_job_are_found_also_behind_a_half_written_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deeper/slurm.jsonl");
        let decisions = DecisionLog::new(&path);
        assert_eq!(decisions.of(3).unwrap(), []);
        decisions.append(&decision(3, Some("n1"))).unwrap();
        OpenOptions::new().append(true).open(&path).unwrap().write_all(b"{\"at").unwrap();
        decisions.append(&decision(4, Some("n1"))).unwrap();
        decisions.append(&decision(3, None)).unwrap();
        assert_eq!(decisions.of(3).unwrap(), [decision(3, Some("n1")), decision(3, None)]);
    }
}
