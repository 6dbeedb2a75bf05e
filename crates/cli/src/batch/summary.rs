//! What became of all jobs.

use serde::Serialize;

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
    /// All jobs of the file.
    pub total: usize,
    /// Why those were not started that could not be recorded.
    pub missing: Option<String>,
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
    /// As a shell reports it: 128 and the signal's number, if one killed it; none: it is not known.
    pub exit_code: Option<i32>,
    /// When it started, seconds from the start of the batch; of one that an earlier batch started, before it.
    pub started_s: f64,
    /// How long it took, seconds.
    pub elapsed_s: f64,
    /// CPU time of all its processes, seconds.
    pub cpu_s: f64,
    /// Why it started then.
    pub reason: String,
}

/// How it ended, in words.
pub fn words(exit_code: Option<i32>) -> String {
    match exit_code {
        None => "ended, but how is not known, as its keeper was killed".to_owned(),
        Some(0) => "ended well".to_owned(),
        Some(code) if code > 128 && code < 193 => format!("killed by signal {}", code - 128),
        Some(code) => format!("ended with exit code {code}"),
    }
}

impl Summary {
    /// Jobs that did not end with 0.
    pub fn failed(&self) -> impl Iterator<Item = &JobSummary> {
        self.jobs.iter().filter(|job| job.exit_code != Some(0))
    }

    /// The exit code of all.
    pub fn exit_code(&self) -> i32 {
        match self.interrupted {
            Some(signal) => 128 + signal,
            None => i32::from(self.not_started > 0 || self.failed().next().is_some()),
        }
    }

    /// For people.
    pub fn text(&self) -> String {
        let failed = self.failed().count();
        let mut text = format!(
            "{} of {} jobs ended well in {:.1} s ({:.1} s of CPU time)",
            self.jobs.len() - failed,
            self.total,
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
        if let Some(missing) = &self.missing {
            text += &format!("\n  no room for what is to be noted: {missing}");
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
            exit_code: Some(exit_code),
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
        assert_eq!(Summary { not_started: 1, ..summary(&[0], None) }.exit_code(), 1);
        assert_eq!(
            (words(Some(137)).as_str(), words(Some(3)).as_str()),
            ("killed by signal 9", "ended with exit code 3")
        );
    }
}
