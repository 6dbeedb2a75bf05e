//! Which jobs have ended, for `--resume`: a line for each, appended as it ends.
//!
//! A line names its job by number and by a digest of its command, so that an edited job file resumes those
//! that are still the same. What a crash left half written is no line.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::Path;

use anyhow::Context;
use serde::{Deserialize, Serialize};
use symbiont_jobs::digest_of_text;

use super::job_file::Line;

#[derive(Debug, Serialize, Deserialize)]
struct Ended {
    line: usize,
    command: String,
    exit_code: i32,
    elapsed_s: f64,
}

/// The file, open for appending.
#[derive(Debug)]
pub struct Progress {
    file: File,
}

impl Progress {
    /// Opens the file; empties it, unless what was noted is gone on from.
    pub fn open(path: &Path, resume: bool) -> anyhow::Result<Self> {
        let mut options = OpenOptions::new();
        options.create(true).append(true).read(true);
        let other = "name another file by --progress";
        let file = options
            .open(path)
            .with_context(|| format!("cannot note progress in {}; {other}", path.display()))?;
        let is_file = file.metadata().is_ok_and(|data| data.is_file());
        anyhow::ensure!(is_file, "cannot note progress in {}: not a file; {other}", path.display());
        if !resume {
            file.set_len(0).with_context(|| format!("cannot empty {}", path.display()))?;
        }
        let mut progress = Self { file };
        // What a crash left half written ends here.
        progress.file.write_all(b"\n").context("cannot note progress")?;
        Ok(progress)
    }

    /// Notes that a job ended.
    pub fn note(&mut self, line: &Line, exit_code: i32, elapsed_s: f64) -> anyhow::Result<()> {
        let command = digest_of_text(&line.command);
        let ended = Ended { line: line.number, command, exit_code, elapsed_s };
        let mut text = serde_json::to_vec(&ended)?;
        text.push(b'\n');
        self.file
            .write_all(&text)
            .and_then(|()| self.file.sync_data())
            .context("cannot note progress")
    }
}

/// The jobs that ended with 0, as noted in a file; none if there is no file.
pub fn done(path: &Path, lines: &[Line]) -> anyhow::Result<BTreeSet<usize>> {
    let text = match symbiont_input::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(BTreeSet::new()),
        Err(error) => {
            return Err(error)
                .with_context(|| format!("cannot read the progress in {}", path.display()));
        }
    };
    let noted = text.lines().filter_map(|line| serde_json::from_str::<Ended>(line).ok());
    let succeeded: BTreeSet<(usize, String)> = noted
        .filter(|ended| ended.exit_code == 0)
        .map(|ended| (ended.line, ended.command))
        .collect();
    let is_done = |line: &&Line| succeeded.contains(&(line.number, digest_of_text(&line.command)));
    Ok(lines.iter().filter(is_done).map(|line| line.number).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(number: usize, command: &str) -> Line {
        Line { number, command: command.to_owned() }
    }

    #[test]
    fn jobs_that_ended_with_0_and_are_still_the_same_are_done() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("jobs.progress");
        let lines = [line(1, "a"), line(2, "b"), line(3, "c")];
        assert_eq!(done(&path, &lines).unwrap(), BTreeSet::new());
        let mut progress = Progress::open(&path, false).unwrap();
        for (line, code) in lines.iter().zip([0, 3, 0]) {
            progress.note(line, code, 1.0).unwrap();
        }
        // A crash in the middle of a line.
        OpenOptions::new().append(true).open(&path).unwrap().write_all(b"{\"li").unwrap();
        let edited = [line(1, "a"), line(2, "b"), line(3, "other")];
        assert_eq!(done(&path, &edited).unwrap(), BTreeSet::from([1]));
        Progress::open(&path, true).unwrap().note(&lines[1], 0, 1.0).unwrap();
        assert_eq!(done(&path, &lines).unwrap(), BTreeSet::from([1, 2, 3]));
        Progress::open(&path, false).unwrap();
        assert_eq!(done(&path, &lines).unwrap(), BTreeSet::new());
    }
}
