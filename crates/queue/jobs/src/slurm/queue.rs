//! The queue as `squeue --json` writes it.
//!
//! Releases of Slurm differ: a number is a JSON number, or an object that says whether it is set; a word is a string,
//! or the first of a list. A field that is missing counts as not set; a job without number, user, state and time of
//! submission is not understood.

use serde_json::Value;

use super::{Needs, QueuedJob, State, hosts, mark, size};

/// Why there is no queue.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JobsError {
    /// It is no JSON.
    #[error(
        "squeue --json writes no JSON ({0}): it takes Slurm 21.08 or newer with its JSON serializer"
    )]
    NoJson(String),
    /// It is JSON without a list of jobs.
    #[error("squeue --json names no jobs")]
    NoJobs,
}

/// Reads what `squeue --json` wrote: the jobs, and a line for each that is not understood.
///
/// # Errors
/// [`JobsError`] when there is no list of jobs.
pub fn parse_jobs(text: &str) -> Result<(Vec<QueuedJob>, Vec<String>), JobsError> {
    let all: Value =
        serde_json::from_str(text).map_err(|error| JobsError::NoJson(error.to_string()))?;
    let all = all.get("jobs").and_then(Value::as_array).ok_or(JobsError::NoJobs)?;
    let (mut jobs, mut errors) = (Vec::new(), Vec::new());
    for one in all {
        match job(one) {
            Ok(job) => jobs.push(job),
            Err(why) => {
                let id = number(one, "job_id").map_or_else(String::new, |id| format!(" {id}"));
                errors.push(format!("squeue: a job{id} is not understood: {why}"));
            }
        }
    }
    Ok((jobs, errors))
}

fn job(one: &Value) -> Result<QueuedJob, String> {
    let need = |name: &str| number(one, name).ok_or_else(|| format!("it has no {name}"));
    let count = |name: &str| {
        let count = number(one, name).unwrap_or(1);
        size(count).map(|count| count.max(1)).ok_or_else(|| format!("{count} {name} are too many"))
    };
    // Slurm has 0 for a time that is not known.
    let time = |name: &str| number(one, name).filter(|time| *time > 0).map(|time| time as f64);
    let nodes = word(one, "nodes");
    let mark = mark(word(one, "admin_comment"));
    Ok(QueuedJob {
        id: need("job_id")?,
        state: state(one)?,
        reason: word(one, "state_reason").to_owned(),
        priority: number(one, "priority").unwrap_or(0),
        partition: word(one, "partition").to_owned(),
        qos: word(one, "qos").to_owned(),
        user: u32::try_from(need("user_id")?).map_err(|error| error.to_string())?,
        cpus: count("cpus")?,
        nodes: count("node_count")?,
        submitted_s: time("submit_time").ok_or("it has no submit_time")?,
        start_s: time("start_time"),
        eligible_s: time("eligible_time"),
        restarts: number(one, "restart_cnt").unwrap_or(0),
        ends_s: time("end_time"),
        // Minutes.
        limit_s: number(one, "time_limit").map(|minutes| minutes as f64 * 60.0),
        runs_on: if nodes.is_empty() { Vec::new() } else { hosts(nodes)? },
        asked: word(one, "required_nodes").to_owned(),
        needs: Needs::of(one),
        is_marked: mark.is_some(),
        marked_until_s: mark.and_then(|mark| mark.until_s),
        is_batch: one.get("batch_flag").is_some_and(|flag| flag == &Value::Bool(true)),
        name: word(one, "name").to_owned(),
    })
}

/// The state; newer releases write a list, the first of which others qualify.
fn state(one: &Value) -> Result<State, String> {
    let is = |name: &str| match one.get("job_state") {
        Some(Value::Array(words)) => words.iter().any(|word| word == name),
        Some(word) => word == name,
        None => false,
    };
    if word(one, "job_state").is_empty() {
        return Err("it has no job_state".to_owned());
    }
    // One that completes has its CPUs still, also where its end is named first.
    if ["RUNNING", "COMPLETING", "CONFIGURING", "SUSPENDED"].into_iter().any(is) {
        return Ok(State::Running);
    }
    Ok(if is("PENDING") { State::Pending } else { State::Other })
}

/// A number that is set and finite.
pub(super) fn number(one: &Value, name: &str) -> Option<u64> {
    let value = one.get(name)?;
    let Some(fields) = value.as_object() else { return value.as_u64() };
    let is = |name: &str| fields.get(name).and_then(Value::as_bool);
    (is("set") != Some(false) && is("infinite") != Some(true))
        .then(|| fields.get("number")?.as_u64())
        .flatten()
}

/// A word, or the first of several; empty where there is none.
pub(super) fn word<'a>(one: &'a Value, name: &str) -> &'a str {
    let value = one.get(name);
    let first = value.and_then(Value::as_array).map_or(value, |words| words.first());
    first.and_then(Value::as_str).unwrap_or_default()
}
