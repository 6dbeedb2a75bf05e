//! Queue and nodes as Slurm's commands write them.
//!
//! # Approach
//! Users write the names of jobs, their comments and much else, with newlines and `|` as they like. So
//!
//! - the queue is read as JSON ([`parse_jobs`]), where a text cannot become a field or another job;
//! - of a single job only fields are asked for that no user writes, times in seconds since 1970
//!   (`SLURM_TIME_FORMAT=%s`): whether it still waits for Symbiont before anything is done to it ([`CONFIRM_FORMAT`]),
//!   and how it ended ([`END_FORMAT`]);
//! - nodes, partitions and reservations are read from `scontrol show --oneliner` ([`Layout`]), which administrators
//!   write, and settings from `scontrol show config` ([`config_value`]).
//!
//! A job or a line that is not understood is reported, and the others count.
//!
//! # Properties
//! - Whatever the text, it is read or refused (`any_text_is_read_or_refused`).
//! - What users write changes nothing but the name (`what_users_write_changes_nothing_but_the_name`).

mod hosts;
mod layout;
mod needs;
mod queue;
#[cfg(test)]
mod tests;

pub use hosts::{MOST_HOSTS, hosts};
pub use layout::{Layout, NodeState, Partition, Reservation, Selection};
pub use needs::{Memory, Needs};
pub use queue::{JobsError, parse_jobs};

/// What squeue is asked for of one job before something is done to it (`-O`): no field that a user writes.
pub const CONFIRM_FORMAT: &str =
    "JobID:20|,UserID:20|,SubmitTime:24|,EligibleTime:24|,StateCompact:8|,admin_comment:128|";
/// What squeue is asked for of a job that has ended (`-O`): no field that a user writes.
pub const END_FORMAT: &str = "JobID:20|,StateCompact:8|,StartTime:24|,EndTime:24|";
/// What squeue is asked for to know the priority of a job (`-O`).
pub const PRIORITY_FORMAT: &str = "JobID:20|,PriorityLong:20|";
/// The mark in the AdminComment of jobs whose start is left to Symbiont.
pub const MARK: &str = "symbiont:waits";
/// How long a requeued job waits for Slurm at most; it counts as submitted when it was requeued.
const REQUEUE_S: f64 = 180.0;

/// A line that is not understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line} of {command} is not understood: {why}")]
pub struct LineError {
    /// Its number, from 1.
    pub line: usize,
    /// The command that wrote it.
    pub command: &'static str,
    /// What is wrong.
    pub why: String,
}

/// The state of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It waits.
    Pending,
    /// It runs, or its processes are being ended.
    Running,
    /// Anything else.
    Other,
}

/// A job of the queue.
#[derive(Debug, Clone, PartialEq)]
pub struct QueuedJob {
    /// Its number.
    pub id: u64,
    /// Whether it waits or runs.
    pub state: State,
    /// Why it waits, in Slurm's words.
    pub reason: String,
    /// Jobs of higher priority come first.
    pub priority: u64,
    /// Its partition, or several, separated by commas.
    pub partition: String,
    /// Its QOS; empty where there is none.
    pub qos: String,
    /// Its user.
    pub user: u32,
    /// How many CPUs it asks for or has.
    pub cpus: usize,
    /// How many nodes it asks for or has.
    pub nodes: usize,
    /// When it was submitted.
    pub submitted_s: f64,
    /// When it started, or will start at the earliest.
    pub start_s: Option<f64>,
    /// The time before which it may not start, if there is one.
    pub eligible_s: Option<f64>,
    /// How often it has been requeued.
    pub restarts: u64,
    /// When it ends by its time limit, if it runs and has one.
    pub ends_s: Option<f64>,
    /// Its time limit; none: not known.
    pub limit_s: Option<f64>,
    /// The nodes where it runs.
    pub runs_on: Vec<String>,
    /// The nodes that it asks for by name; empty where it does not.
    pub asked: String,
    /// What it needs of a node.
    pub needs: Needs,
    /// Is its start left to Symbiont?
    pub is_marked: bool,
    /// Until when, by its mark. With another start time than this, it waits for that time, and not for Symbiont.
    pub marked_until_s: Option<f64>,
    /// Does it have a script?
    pub is_batch: bool,
    /// Its name.
    pub name: String,
}

impl QueuedJob {
    /// Does it wait for Symbiont?
    #[must_use]
    pub fn waits_for_us(&self) -> bool {
        self.state == State::Pending
            && self.is_marked
            && self.reason == "BeginTime"
            && self.asked.is_empty()
            && self.waits_as_marked()
    }

    /// Does it wait for the time of its mark, or for Slurm's own after a requeue?
    fn waits_as_marked(&self) -> bool {
        let same = |(until, eligible): (f64, f64)| {
            let of_requeue = self.restarts > 0 && eligible - self.submitted_s <= REQUEUE_S;
            of_requeue || (until - eligible).abs() <= 1.0
        };
        self.marked_until_s.zip(self.eligible_s).is_none_or(same)
    }
}

/// How a job ended.
#[derive(Debug, Clone, PartialEq)]
pub struct EndedJob {
    /// Did it end with exit code 0?
    pub ended_well: bool,
    /// How long it ran, seconds.
    pub elapsed_s: f64,
}

/// The names of QOS that `scontrol show assoc_mgr flags=qos` wrote; none: Slurm has no accounting database.
#[must_use]
pub fn parse_qos(text: &str) -> Vec<String> {
    let named = text.lines().filter_map(|line| line.trim().strip_prefix("QOS="));
    // A number follows the name.
    let name = |named: &str| named.rsplit_once('(').map_or(named, |(name, _)| name).to_owned();
    let mut names: Vec<String> = named.map(name).filter(|name| !name.is_empty()).collect();
    names.sort();
    names.dedup();
    names
}

/// The value of a setting in what `scontrol show config` wrote; none: it is not there, or not set.
#[must_use]
pub fn config_value<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let mut pairs = text.lines().filter_map(|line| line.split_once('='));
    let (_, value) = pairs.find(|(key, _)| key.trim() == name)?;
    Some(value.trim()).filter(|value| !matches!(*value, "" | "(null)"))
}

/// Confirms that a job is still the one that was read, waits, and is marked, by what squeue wrote of it in
/// [`CONFIRM_FORMAT`].
///
/// # Errors
/// The reason if it is not so.
pub fn confirm(text: &str, job: &QueuedJob) -> Result<(), String> {
    let [user, submitted, eligible, state, comment] = line_of(text, job.id)?;
    if user.parse() != Ok(job.user) || time(submitted) != Some(job.submitted_s) {
        return Err("it is another job by now".to_owned());
    }
    if state != "PD" {
        return Err("it does not wait any more".to_owned());
    }
    if mark(comment).is_none() {
        return Err("its start is not left to Symbiont".to_owned());
    }
    let is_other = |(read, now): (f64, f64)| (read - now).abs() > 1.0;
    if job.waits_for_us() && job.eligible_s.zip(time(eligible)).is_some_and(is_other) {
        return Err("it has got another start time".to_owned());
    }
    Ok(())
}

/// Reads what squeue wrote of a job in [`END_FORMAT`]; none: it has not ended.
///
/// # Errors
/// When it is no line of this job, or a field is no time.
pub fn parse_ended(text: &str, job: u64) -> Result<Option<EndedJob>, String> {
    let [state, start, end] = line_of(text, job)?;
    if matches!(state, "PD" | "R" | "CG" | "CF" | "S" | "RQ" | "SO" | "ST" | "RD" | "RH" | "RF") {
        return Ok(None);
    }
    let ended_well = state == "CD";
    let elapsed_s = match (time(start), time(end)) {
        (Some(start), Some(end)) => (end - start).max(0.0),
        // It never started.
        (None, _) if !ended_well => 0.0,
        _ => return Err("its start or end is no time".to_owned()),
    };
    Ok(Some(EndedJob { ended_well, elapsed_s }))
}

/// Reads the priority of a job that squeue wrote in [`PRIORITY_FORMAT`].
///
/// # Errors
/// When it is no line of this job, or no number.
pub fn parse_priority(text: &str, job: u64) -> Result<u64, String> {
    let [priority] = line_of(text, job)?;
    priority.parse().map_err(|_| format!("'{}' is no priority", priority.escape_debug()))
}

/// The fields of a job's line, each of which ends with `|`, without the first, its number. A job of several parts has a
/// line for each of them, with a number of its own.
fn line_of<const FIELDS: usize>(text: &str, job: u64) -> Result<[&str; FIELDS], String> {
    let mut of_job = text.lines().filter_map(|line| match line.split_once('|') {
        Some((id, fields)) if id.trim().parse() == Ok(job) => Some(fields),
        _ => None,
    });
    let (Some(fields), None) = (of_job.next(), of_job.next()) else {
        return Err("squeue does not show it on one line".to_owned());
    };
    let mut fields: Vec<&str> = fields.split('|').map(str::trim).collect();
    // Nothing follows the last.
    if fields.pop() != Some("") {
        return Err("its line does not end as it should".to_owned());
    }
    let count = fields.len();
    fields.try_into().map_err(|_| format!("{count} fields, {FIELDS} expected"))
}

/// A mark in an administrator's comment.
struct Mark {
    /// Until when the start is left to Symbiont, where it says so.
    until_s: Option<f64>,
}

/// [`MARK`], or `MARK=SECONDS` since 1970.
fn mark(comment: &str) -> Option<Mark> {
    comment.split_whitespace().find_map(|word| match word.strip_prefix(MARK)? {
        "" => Some(Mark { until_s: None }),
        time => {
            let until = time.strip_prefix('=')?.parse::<u64>().ok()?;
            Some(Mark { until_s: Some(until as f64) })
        }
    })
}

fn parse<T>(
    text: &str,
    command: &'static str,
    read: impl Fn(&str) -> Result<T, String>,
) -> (Vec<T>, Vec<LineError>) {
    let (mut all, mut errors) = (Vec::new(), Vec::new());
    for (line, words) in (1..).zip(text.lines()).filter(|(_, words)| !words.trim().is_empty()) {
        match read(words) {
            Ok(one) => all.push(one),
            Err(why) => errors.push(LineError { line, command, why }),
        }
    }
    (all, errors)
}

/// A count of CPUs or nodes; Slurm has 32 bits for them, so that sums fit here.
fn size(count: u64) -> Option<usize> {
    u32::try_from(count).ok().and_then(|count| usize::try_from(count).ok())
}

/// Seconds since 1970; none: not known.
fn time(text: &str) -> Option<f64> {
    text.parse::<u64>().ok().map(|seconds| seconds as f64)
}
