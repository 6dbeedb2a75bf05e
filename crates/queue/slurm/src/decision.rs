//! What was decided on a job, and why.

use serde::{Deserialize, Serialize};

/// A decision on a job. Field names are those of the log, and of `symbiont slurm why --json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Decision {
    /// When, seconds since 1970.
    pub at_s: f64,
    /// The job.
    pub job: u64,
    /// The name of its program; empty: not known.
    pub program: String,
    /// The node; none: Slurm chooses it.
    pub node: Option<String>,
    /// Is the node only kept for it, until it has room there?
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_kept: bool,
    /// Was it let start where Slurm wants? Without a node and this, it was given back to Slurm.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_left: bool,
    /// How long it had waited, seconds.
    pub waited_s: f64,
    /// The names of the programs next to which it was to run.
    pub co_runners: Vec<String>,
    /// Its predicted slowdown.
    pub slowdown: f64,
    /// What the slowdown was predicted from, where there is a choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub predicted_from: Option<String>,
    /// How many runs of its program were known.
    pub known_runs: usize,
    /// Why this job, and why then.
    pub reason: String,
}

impl Decision {
    /// Slurm chooses the node of a job.
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

    /// The line for people.
    pub fn text(&self) -> String {
        let Self { job, waited_s, reason, .. } = self;
        let program = match self.program.as_str() {
            // A releaser that has just begun has not read its script yet.
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
pub(crate) mod tests {
    use super::*;

    pub(crate) fn decision(job: u64, node: Option<&str>) -> Decision {
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
