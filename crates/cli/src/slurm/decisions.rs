//! What was released, and why: a line for each, so that `symbiont slurm why` can say it later.

use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::{Deserialize, Serialize};
use symbiont_safe_open::output;

/// Of the file; then it becomes `FILE.1`, and a new one begins.
const MOST_BYTES: u64 = 8 << 20;

/// A decision.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Decision {
    /// When, seconds since 1970.
    pub at_s: f64,
    /// The job.
    pub job: u64,
    /// Its program, as people call it.
    pub program: String,
    /// The node; none: it was given back to Slurm.
    pub node: Option<String>,
    /// The node is kept for it, and it starts there once it has room.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_kept: bool,
    /// It may start, and Slurm chooses where.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_left: bool,
    /// For how long it had waited, seconds.
    pub waited_s: f64,
    /// Programs that it was to run next to.
    pub co_runners: Vec<String>,
    /// Predicted slowdown.
    pub slowdown: f64,
    /// What that was predicted from, where there is a choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub predicted_from: Option<String>,
    /// Runs of its program that were known.
    pub known_runs: usize,
    /// Why it, and then.
    pub reason: String,
}

/// The file.
#[derive(Debug)]
pub struct Decisions {
    path: PathBuf,
}

impl Decisions {
    /// In this file.
    pub fn new(path: &Path) -> Self {
        Self { path: path.to_owned() }
    }

    /// Appends a decision.
    pub fn note(&self, decision: &Decision) -> anyhow::Result<()> {
        let trouble = || format!("cannot note decisions in {}", self.path.display());
        if let Some(folder) = self.path.parent() {
            std::fs::create_dir_all(folder).with_context(trouble)?;
        }
        if std::fs::metadata(&self.path).is_ok_and(|data| data.len() > MOST_BYTES) {
            std::fs::rename(&self.path, self.before()).with_context(trouble)?;
        }
        let mut line = serde_json::to_vec(decision)?;
        line.push(b'\n');
        let mut append = || -> std::io::Result<()> {
            let mut file = output::append(&self.path)?;
            // Behind a line that a crash left half written a new one begins.
            if !ends_a_line(&mut file)? {
                line.insert(0, b'\n');
            }
            file.write_all(&line)
        };
        append().with_context(trouble)
    }

    fn before(&self) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        name.push(".1");
        PathBuf::from(name)
    }

    /// The decisions on a job, oldest first.
    pub fn of(&self, job: u64) -> anyhow::Result<Vec<Decision>> {
        let mut all = Vec::new();
        for path in [self.before(), self.path.clone()] {
            let text = match symbiont_safe_open::read_to_string(&path) {
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                text => text.with_context(|| format!("cannot read {}", path.display()))?,
            };
            // A line that a crash left half written says nothing.
            let lines = text.lines().filter_map(|line| serde_json::from_str::<Decision>(line).ok());
            all.extend(lines.filter(|decision| decision.job == job));
        }
        Ok(all)
    }
}

/// Does a file end with a line, if it has any?
fn ends_a_line(file: &mut File) -> std::io::Result<bool> {
    if file.seek(SeekFrom::End(0))? == 0 {
        return Ok(true);
    }
    file.seek(SeekFrom::End(-1))?;
    let mut last = [0];
    file.read_exact(&mut last)?;
    Ok(last == *b"\n")
}

impl Decision {
    /// On a job of which nothing else is known: it is Slurm's.
    pub fn of(job: u64, program: String, at_s: f64, reason: String) -> Self {
        Self {
            at_s,
            job,
            program,
            node: None,
            is_kept: false,
            is_left: false,
            waited_s: 0.0,
            co_runners: Vec::new(),
            slowdown: 1.0,
            predicted_from: None,
            known_runs: 0,
            reason,
        }
    }

    /// For people.
    pub fn text(&self) -> String {
        let Self { job, waited_s, reason, .. } = self;
        let program = match self.program.as_str() {
            // A releaser that has just begun does not know it yet.
            "" => "program not known",
            name => name,
        };
        let Some(node) = &self.node else {
            if self.is_left {
                return format!("job {job} ({program}) may start where Slurm wants: {reason}");
            }
            return format!("job {job} ({program}) was given back to Slurm: {reason}");
        };
        if self.is_kept {
            return format!(
                "{node} is kept for job {job} ({program}), which has waited for {waited_s:.0} s: {reason}"
            );
        }
        let others = match self.co_runners.len() {
            0 => "alone".to_owned(),
            _ => format!("next to {}", self.co_runners.join(", ")),
        };
        let known = match self.known_runs {
            0 => "its program was not known, and taken for average".to_owned(),
            1 => "1 run of its program was known".to_owned(),
            runs => format!("{runs} runs of its program were known"),
        };
        let from =
            self.predicted_from.as_ref().map_or_else(String::new, |of| format!(" from {of}"));
        format!(
            "job {job} ({program}) was released to {node} after {waited_s:.0} s, {others}: {reason} \
             (predicted slowdown {:.2}{from}; {known})",
            self.slowdown
        )
    }
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;

    use super::*;

    fn decision(job: u64, node: Option<&str>) -> Decision {
        Decision {
            at_s: 5.0,
            job,
            program: "xz".to_owned(),
            node: node.map(str::to_owned),
            is_kept: false,
            is_left: false,
            waited_s: 60.0,
            co_runners: vec!["gzip".to_owned()],
            slowdown: 1.125,
            predicted_from: None,
            known_runs: 0,
            reason: "first of the queue".to_owned(),
        }
    }

    #[test]
    fn decisions_on_a_job_are_found_also_behind_a_half_written_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deeper/slurm.jsonl");
        let decisions = Decisions::new(&path);
        assert_eq!(decisions.of(3).unwrap(), []);
        decisions.note(&decision(3, Some("n1"))).unwrap();
        OpenOptions::new().append(true).open(&path).unwrap().write_all(b"{\"at").unwrap();
        decisions.note(&decision(4, Some("n1"))).unwrap();
        decisions.note(&decision(3, None)).unwrap();
        assert_eq!(decisions.of(3).unwrap(), [decision(3, Some("n1")), decision(3, None)]);
    }

    #[test]
    fn people_read_node_partners_and_reason() {
        assert_eq!(
            decision(3, Some("n1")).text(),
            "job 3 (xz) was released to n1 after 60 s, next to gzip: first of the queue (predicted \
             slowdown 1.12; its program was not known, and taken for average)"
        );
        let from =
            Decision { predicted_from: Some("CPI stacks".to_owned()), ..decision(3, Some("n1")) };
        assert!(from.text().contains("(predicted slowdown 1.12 from CPI stacks; its program"));
        assert!(decision(3, None).text().contains("given back to Slurm"));
    }
}
