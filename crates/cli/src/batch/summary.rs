//! What became of all jobs.

use serde::Serialize;
use symbiont_topology::counted;

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
    /// Can another batch go on with them?
    #[serde(skip)]
    pub is_kept: bool,
    /// All jobs of the file.
    pub total: usize,
    /// Why those were not started that could not be recorded.
    pub missing: Option<String>,
    /// What --halt counted, if that ended it early.
    pub halted: Option<Halted>,
    /// Why the job log is not complete.
    pub job_log_lost: Option<String>,
    /// The signal that ended it early.
    pub interrupted: Option<i32>,
    /// Those that ran, in the order of the file.
    pub jobs: Vec<JobSummary>,
}

/// What ended a batch early.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Halted {
    /// Jobs that ended well.
    Well,
    /// Jobs that failed, or that ended in any way.
    Other,
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
    /// Was it ended because it took too long?
    pub timed_out: bool,
    /// How often it was run.
    pub tries: u16,
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
pub fn words(exit_code: Option<i32>, timed_out: bool) -> String {
    match exit_code {
        _ if timed_out => "took too long and was ended".to_owned(),
        None => "ended, but how is not known, as its keeper was killed".to_owned(),
        Some(0) => "ended well".to_owned(),
        Some(code) if code > 128 && code < 193 => format!("killed by signal {}", code - 128),
        Some(code) => format!("ended with exit code {code}"),
    }
}

impl JobSummary {
    /// Has it done what it was to do?
    pub fn is_well(&self) -> bool {
        self.exit_code == Some(0) && !self.timed_out
    }
}

impl Summary {
    /// Jobs that did not end with 0.
    pub fn failed(&self) -> impl Iterator<Item = &JobSummary> {
        self.jobs.iter().filter(|job| !job.is_well())
    }

    /// The exit code of all.
    pub fn exit_code(&self) -> i32 {
        match self.interrupted {
            Some(signal) => 128 + signal,
            None if self.halted == Some(Halted::Well) => i32::from(self.job_log_lost.is_some()),
            None => {
                let is_left = self.not_started > 0 && self.halted.is_none();
                let is_failed = self.failed().next().is_some() || self.job_log_lost.is_some();
                i32::from(is_left || is_failed)
            }
        }
    }

    /// For people.
    pub fn text(&self) -> String {
        let failed = self.failed().count();
        let mut text = format!(
            "{} of {} ended well in {:.1} s ({:.1} s of CPU time)",
            self.jobs.len() - failed,
            counted(self.total, "job"),
            self.makespan_s,
            self.cpu_s,
        );
        let not_started = match self.is_kept {
            true => "not started (--resume goes on with them)",
            false => "not started",
        };
        for (count, what) in
            [(failed, "failed"), (self.skipped, "done earlier"), (self.not_started, not_started)]
        {
            if count > 0 {
                text += &format!(", {count} {what}");
            }
        }
        if self.halted.is_some() {
            text += ", ended early by --halt";
        }
        if let Some(lost) = &self.job_log_lost {
            text += &format!("\n  the job log is not complete: {lost}");
        }
        if let Some(missing) = &self.missing {
            text += &format!("\n  no room for what is to be noted: {missing}");
        }
        for job in self.failed() {
            let words = words(job.exit_code, job.timed_out);
            text += &format!("\n  line {}: {words}: {}", job.line, job.command);
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
            timed_out: false,
            tries: 1,
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
        let halted = |halted, codes| Summary { halted, not_started: 1, ..summary(codes, None) };
        assert_eq!(halted(Some(Halted::Well), &[0, 143]).exit_code(), 0);
        assert_eq!(halted(Some(Halted::Other), &[0, 3]).exit_code(), 1);
        assert_eq!(halted(Some(Halted::Other), &[0]).exit_code(), 0);
        let lost = Some("full".to_owned());
        assert_eq!(Summary { job_log_lost: lost, ..summary(&[0], None) }.exit_code(), 1);
        let left = |is_kept| Summary { not_started: 1, is_kept, ..summary(&[0], None) };
        assert_eq!(left(true).exit_code(), 1);
        assert_eq!([true, false].map(|kept| left(kept).text().contains("--resume")), [true, false]);
        assert_eq!(
            (words(Some(137), false).as_str(), words(Some(3), false).as_str()),
            ("killed by signal 9", "ended with exit code 3")
        );
    }
}
