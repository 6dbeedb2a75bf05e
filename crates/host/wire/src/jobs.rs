//! What the daemon of a node reports of its jobs over HTTP (`GET /jobs`), and how an answer is read.
//!
//! Shares are from 0 to 1, times are seconds. Counts begin with the start of the daemon, or of the job.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Of the shape.
pub const VERSION: u32 = 1;
/// A longer answer is refused.
pub const MOST_ANSWER_BYTES: usize = 4 << 20;
/// Characters of a name.
const MOST_NAME: usize = 256;
/// Components of a stack.
const MOST_COMPONENTS: usize = 64;
/// No co-runner takes or gives more, as a natural logarithm of speed.
const MOST_LN: f64 = 7.0;
/// No machine runs for longer, seconds: 100 years of 100,000 CPUs.
const MOST_TIME_S: f64 = 3.2e14;

/// A node, and the jobs that run there or ended a short time ago.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub struct NodeJobs {
    /// Version of this shape.
    pub version: u32,
    /// The processor, as the firmware names it; none: it does not.
    pub processor: Option<String>,
    /// The policy that places the jobs' threads.
    pub policy: String,
    /// The core types of the node.
    pub core_types: Vec<CoreType>,
    /// The jobs, by number.
    pub jobs: Vec<Job>,
}

/// A core type.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub struct CoreType {
    /// `performance` or `efficiency`.
    pub core: String,
    /// Hardware threads of its widest core.
    pub hardware_threads_per_core: u32,
}

/// A job.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub struct Job {
    /// Its number, as the job manager numbers it.
    pub job: u64,
    /// The user that its processes run as.
    pub user: u32,
    /// Have all its processes ended?
    pub ended: bool,
    /// CPU time of its threads, as far as it was seen.
    pub run_time_s: f64,
    /// Its stacks; none where the policy does not estimate them.
    pub stacks: Vec<JobStack>,
    /// The jobs that it shared cores with, by number; none where the policy does not learn from them.
    #[serde(default)]
    pub next_to: Vec<NextToJob>,
}

/// A job that another one shared cores with.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub struct NextToJob {
    /// Its number.
    pub job: u64,
    /// What it adds to the natural logarithm of the other's instructions per cycle, as the policy has learned; to be
    /// compared with other jobs next to the same one.
    pub ln: f64,
    /// CPU time of the other one next to it, seconds.
    pub together_s: f64,
}

/// What a job needs when it runs alone on cores of a type.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub struct JobStack {
    /// The core type.
    pub core: String,
    /// CPU time that was counted.
    pub counted_s: f64,
    /// Cycles per instruction by cause, as shares of their sum; averaged over the CPU time that was counted.
    pub components: BTreeMap<String, f64>,
}

/// Why an answer is not used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AnswerError {
    /// It is not an HTTP response.
    #[error("its answer is not an HTTP response")]
    NotHttp,
    /// The request was refused.
    #[error("it answers {0}; is [metrics] jobs set in its configuration?")]
    Status(String),
    /// It is longer than any of ours.
    #[error("its answer is longer than {MOST_ANSWER_BYTES} bytes")]
    TooLong,
    /// It is not what a daemon writes.
    #[error("its answer is not understood: {0}")]
    Malformed(String),
    /// Another version of Symbiont runs there.
    #[error("its answer has version {0}, this symbiont reads version {VERSION}")]
    Version(u32),
}

#[derive(Deserialize)]
struct Head {
    version: u32,
}

impl NodeJobs {
    /// Reads a whole HTTP response.
    ///
    /// # Errors
    /// [`AnswerError`] when it is not a response of this version within the bounds.
    pub fn of_response(response: &[u8]) -> Result<Self, AnswerError> {
        if response.len() > MOST_ANSWER_BYTES {
            return Err(AnswerError::TooLong);
        }
        let end = response.windows(4).position(|end| end == b"\r\n\r\n");
        let (head, body) = response.split_at(end.ok_or(AnswerError::NotHttp)?);
        let head = std::str::from_utf8(head).map_err(|_| AnswerError::NotHttp)?;
        let status = head.lines().next().and_then(|line| line.strip_prefix("HTTP/1."));
        let (_, status) = status.and_then(|s| s.split_once(' ')).ok_or(AnswerError::NotHttp)?;
        if !status.starts_with("200") {
            let printable = status.chars().filter(|c| !c.is_control()).take(40).collect();
            return Err(AnswerError::Status(printable));
        }
        Self::of_json(body.get(4..).unwrap_or_default())
    }

    fn of_json(text: &[u8]) -> Result<Self, AnswerError> {
        let wrong = |error: serde_json::Error| AnswerError::Malformed(error.to_string());
        let Head { version } = serde_json::from_slice(text).map_err(wrong)?;
        if version != VERSION {
            return Err(AnswerError::Version(version));
        }
        let read: Self = serde_json::from_slice(text).map_err(wrong)?;
        read.check().map_err(|why| AnswerError::Malformed(why.to_owned()))?;
        Ok(read)
    }

    /// Is every value one that a daemon could have written?
    fn check(&self) -> Result<(), &'static str> {
        let is_time = |time: f64| (0.0..=MOST_TIME_S).contains(&time);
        let is_name = |name: &str| name.len() <= MOST_NAME && !name.contains(char::is_control);
        let names = self.processor.iter().chain([&self.policy]);
        let cores = self.core_types.iter().map(|of| &of.core);
        if !names.chain(cores).all(|name| is_name(name)) {
            return Err("a name is too long");
        }
        if self.jobs.windows(2).any(|two| matches!(two, [a, b] if a.job >= b.job)) {
            return Err("a job is there twice, or out of order");
        }
        if !self.jobs.iter().all(|job| is_time(job.run_time_s)) {
            return Err("a time is none");
        }
        for next in self.jobs.iter().flat_map(|job| &job.next_to) {
            if !is_time(next.together_s) || !(-MOST_LN..=MOST_LN).contains(&next.ln) {
                return Err("what a job takes from another one is no number, or has no time");
            }
        }
        for stack in self.jobs.iter().flat_map(|job| &job.stacks) {
            let components = &stack.components;
            if !is_time(stack.counted_s) || !is_name(&stack.core) {
                return Err("a stack has no time or core type");
            }
            let few = (1..=MOST_COMPONENTS).contains(&components.len());
            if !few || !components.keys().all(|name| is_name(name)) {
                return Err("a stack has no components, or too many or too long ones");
            }
            // Shares of a sum; rounding aside.
            if !components.values().all(|share| (0.0..=1.001).contains(share)) {
                return Err("a component is no share");
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node() -> NodeJobs {
        let components = [("base".to_owned(), 0.25), ("memory".to_owned(), 0.75)].into();
        let stack = JobStack { core: "performance".to_owned(), counted_s: 2.5, components };
        let next_to = vec![NextToJob { job: 8, ln: -0.2, together_s: 1.5 }];
        let stacks = vec![stack];
        let job = Job { job: 7, user: 1000, ended: true, run_time_s: 3.0, stacks, next_to };
        NodeJobs {
            version: VERSION,
            processor: Some("A processor".to_owned()),
            policy: "auto".to_owned(),
            core_types: vec![CoreType {
                core: "performance".to_owned(),
                hardware_threads_per_core: 2,
            }],
            jobs: vec![job.clone(), Job { job: 8, stacks: Vec::new(), ..job }],
        }
    }

    fn response(body: &str) -> Vec<u8> {
        format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{body}").into_bytes()
    }

    fn refused(node: &NodeJobs) -> String {
        let text = serde_json::to_string(node).unwrap();
        NodeJobs::of_response(&response(&text)).unwrap_err().to_string()
    }

    #[test]
    fn a_node_survives_the_wire() {
        let text = serde_json::to_string(&node()).unwrap();
        assert_eq!(NodeJobs::of_response(&response(&text)), Ok(node()));
        // One that says nothing of other jobs is of an earlier release.
        let mut earlier: serde_json::Value = serde_json::from_str(&text).unwrap();
        for job in earlier["jobs"].as_array_mut().unwrap() {
            job.as_object_mut().unwrap().remove("next_to").unwrap();
        }
        let read = NodeJobs::of_response(&response(&earlier.to_string())).unwrap();
        assert!(read.jobs.iter().all(|job| job.next_to.is_empty()));
    }

    #[test]
    fn answers_that_no_daemon_gives_are_refused_with_the_reason() {
        let of = |bytes: &[u8]| NodeJobs::of_response(bytes).unwrap_err().to_string();
        assert!(of(b"SSH-2.0-OpenSSH_9.9\r\n").contains("not an HTTP response"));
        assert!(of(b"HTTP/1.1 404 Not Found\r\n\r\n").contains("404 Not Found; is [metrics] jobs"));
        assert!(of(&response("{\"version\":1")).contains("not understood"));
        assert!(of(&response("{\"version\":9}")).contains("version 9, this symbiont reads"));
        assert!(of(&vec![b' '; MOST_ANSWER_BYTES + 1]).contains("longer than"));
    }

    #[test]
    fn values_out_of_bounds_are_refused() {
        let changed = |change: fn(&mut NodeJobs)| {
            let mut node = node();
            change(&mut node);
            refused(&node)
        };
        let twice = changed(|node| node.jobs[1].job = 7);
        assert!(twice.contains("there twice"), "{twice}");
        let negative = changed(|node| node.jobs[0].run_time_s = -1.0);
        assert!(negative.contains("a time is none"), "{negative}");
        let empty = changed(|node| node.jobs[0].stacks[0].components.clear());
        assert!(empty.contains("no components"), "{empty}");
        let large = changed(|node| {
            node.jobs[0].stacks[0].components.insert("base".to_owned(), 1e300);
        });
        assert!(large.contains("no share"), "{large}");
        for ln in [f64::NAN, 1e9] {
            let mut node = node();
            node.jobs[0].next_to[0].ln = ln;
            let odd = refused(&node);
            assert!(odd.contains("no number") || odd.contains("null"), "{odd}");
        }
        let long = changed(|node| node.policy = "x".repeat(MOST_NAME + 1));
        assert!(long.contains("too long"), "{long}");
    }
}
