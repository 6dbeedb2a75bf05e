//! What became of all jobs.

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use serde::Serialize;

use super::job_file::Line;

/// All jobs.
#[derive(Debug, Default, Serialize)]
pub struct Summary {
    /// From the first start to the last end, seconds.
    pub makespan_s: f64,
    /// CPU time of all jobs, seconds.
    pub cpu_s: f64,
    /// Jobs that an earlier run has done.
    pub skipped: usize,
    /// Jobs that were not started.
    pub not_started: usize,
    /// The signal that ended it early.
    pub interrupted: Option<i32>,
    /// Those that ran, in the order of the file.
    pub jobs: Vec<JobSummary>,
}

/// A job that ran.
#[derive(Debug, Serialize)]
pub struct JobSummary {
    /// The number of its line.
    pub line: usize,
    /// What was run.
    pub command: String,
    /// As a shell reports it: 128 and the signal's number, if one killed it.
    pub exit_code: i32,
    /// When it started, seconds from the first start.
    pub started_s: f64,
    /// How long it took, seconds.
    pub elapsed_s: f64,
    /// CPU time of all its processes, seconds.
    pub cpu_s: f64,
    /// Why it started then.
    pub reason: String,
}

/// The exit code by which a shell reports it.
pub fn exit_code(status: ExitStatus) -> i32 {
    status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1)
}

/// How it ended, in words.
pub fn words(exit_code: i32) -> String {
    match exit_code {
        0 => "ended well".to_owned(),
        code if code > 128 && code < 193 => format!("killed by signal {}", code - 128),
        code => format!("ended with exit code {code}"),
    }
}

impl Summary {
    /// Jobs that did not end with 0.
    pub fn failed(&self) -> impl Iterator<Item = &JobSummary> {
        self.jobs.iter().filter(|job| job.exit_code != 0)
    }

    /// The exit code of all.
    pub fn exit_code(&self) -> i32 {
        match self.interrupted {
            Some(signal) => 128 + signal,
            None => i32::from(self.failed().next().is_some()),
        }
    }

    /// For people.
    pub fn text(&self, lines: &BTreeMap<usize, Line>) -> String {
        let failed = self.failed().count();
        let mut text = format!(
            "{} of {} jobs ended well in {:.1} s ({:.1} s of CPU time)",
            self.jobs.len() - failed,
            lines.len(),
            self.makespan_s,
            self.cpu_s,
        );
        for (count, what) in [
            (failed, "failed"),
            (self.skipped, "done earlier"),
            (self.not_started, "not started (--resume goes on with them)"),
        ] {
            if count > 0 {
                text += &format!(", {count} {what}");
            }
        }
        for job in self.failed() {
            text += &format!("\n  line {}: {}: {}", job.line, words(job.exit_code), job.command);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exit_code_is_that_of_a_signal_or_says_whether_all_went_well() {
        let job = |exit_code| JobSummary {
            line: 1,
            command: "x".to_owned(),
            exit_code,
            started_s: 0.0,
            elapsed_s: 1.0,
            cpu_s: 1.0,
            reason: String::new(),
        };
        let summary = |codes: &[i32], interrupted| Summary {
            jobs: codes.iter().copied().map(job).collect(),
            interrupted,
            ..Summary::default()
        };
        assert_eq!(summary(&[0, 0], None).exit_code(), 0);
        assert_eq!(summary(&[0, 3], None).exit_code(), 1);
        assert_eq!(summary(&[130], Some(2)).exit_code(), 130);
        assert_eq!(exit_code(ExitStatus::from_raw(9)), 137);
        assert_eq!(
            (words(137).as_str(), words(3).as_str()),
            ("killed by signal 9", "ended with exit code 3")
        );
    }
}
