//! Queue and nodes as Slurm's commands write them.
//!
//! # Approach
//! squeue and sinfo are asked for stated fields ([`JOB_FORMAT`], [`NODE_FORMAT`]), each with a width and
//! followed by `|`, times in seconds since 1970 (`SLURM_TIME_FORMAT=%s`). The job's name comes last, since a
//! user may write `|` in it. `scontrol show job --oneliner` gives the end of a job. A line that is not
//! understood is reported, and the others count.
//!
//! # Properties
//! - Whatever the text, it is read or refused (`any_text_is_read_or_refused`).

mod hosts;
#[cfg(test)]
mod tests;

pub use hosts::{MOST_HOSTS, hosts};

/// What squeue is asked for (`-O`).
pub const JOB_FORMAT: &str = "JobID:20|,StateCompact:8|,Reason:64|,PriorityLong:20|,Partition:128|,\
    QOS:128|,UserID:20|,NumCPUs:16|,NumNodes:16|,SubmitTime:24|,StartTime:24|,EndTime:24|,TimeLimit:24|,NodeList:4096|,\
    ReqNodes:4096|,admin_comment:256|,Name:64";
/// What sinfo is asked for (`-N -O`).
pub const NODE_FORMAT: &str = "NodeList:256|,CPUsState:64|,StateCompact:32|,NodeAddr:256";
/// The mark of jobs whose start is left to Symbiont, in their AdminComment.
pub const MARK: &str = "symbiont:waits";

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

/// Whether a job waits or runs.
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
    /// Does it run?
    pub state: State,
    /// Why it waits, in Slurm's word.
    pub reason: String,
    /// The higher, the earlier.
    pub priority: u64,
    /// Its partition, or several, separated by commas.
    pub partition: String,
    /// Its QOS; empty where there is none.
    pub qos: String,
    /// Its user.
    pub user: u32,
    /// CPUs that it asks for or has.
    pub cpus: usize,
    /// Nodes that it asks for or has.
    pub nodes: usize,
    /// When it was submitted.
    pub submitted_s: f64,
    /// When it started, or will at the earliest.
    pub start_s: Option<f64>,
    /// When it ends by its time limit, if it runs and has one.
    pub ends_s: Option<f64>,
    /// The longest that it may run; none: no limit is known.
    pub limit_s: Option<f64>,
    /// The nodes where it runs.
    pub runs_on: Vec<String>,
    /// Does it ask for nodes by name?
    pub asks_for_nodes: bool,
    /// Is its start left to Symbiont?
    pub is_marked: bool,
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
            && !self.asks_for_nodes
    }
}

/// A node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeState {
    /// Its name.
    pub name: String,
    /// Where it is reached, by name or number.
    pub address: String,
    /// CPUs in all.
    pub cpus: usize,
    /// CPUs that no job has; none where no job may start.
    pub idle: usize,
    /// May jobs start there?
    pub takes_jobs: bool,
}

/// How a job ended.
#[derive(Debug, Clone, PartialEq)]
pub struct EndedJob {
    /// Did it end with exit code 0?
    pub ended_well: bool,
    /// How long it ran, seconds.
    pub elapsed_s: f64,
}

/// Reads what squeue wrote in [`JOB_FORMAT`].
#[must_use]
pub fn parse_jobs(text: &str) -> (Vec<QueuedJob>, Vec<LineError>) {
    parse(text, "squeue", job)
}

/// Reads what sinfo wrote in [`NODE_FORMAT`]; a node that is in several partitions counts once.
#[must_use]
pub fn parse_nodes(text: &str) -> (Vec<NodeState>, Vec<LineError>) {
    let (mut nodes, errors) = parse(text, "sinfo", node);
    nodes.sort_by(|a, b| a.name.cmp(&b.name));
    nodes.dedup_by(|a, b| a.name == b.name);
    (nodes, errors)
}

/// The names that `scontrol show assoc_mgr flags=qos` wrote; none: Slurm has no accounting database.
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

/// Reads what `scontrol show job --oneliner` wrote of one job; none while it has not ended.
///
/// # Errors
/// When a field is missing or no number.
pub fn parse_ended(text: &str) -> Result<Option<EndedJob>, String> {
    let field = |name: &str| {
        let mut words = text.split_whitespace();
        words.find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
    };
    let need = |name: &str| field(name).ok_or_else(|| format!("no field {name}"));
    match need("JobState")? {
        "PENDING" | "RUNNING" | "COMPLETING" | "CONFIGURING" | "SUSPENDED" | "REQUEUED" => {
            return Ok(None);
        }
        _ => {}
    }
    let time = |name| time(need(name)?).ok_or_else(|| format!("{name} is no time"));
    let ended_well = need("JobState")? == "COMPLETED" && need("ExitCode")? == "0:0";
    let elapsed_s = match (time("StartTime"), time("EndTime")) {
        (Ok(start), Ok(end)) => (end - start).max(0.0),
        // It never started.
        (Err(_), _) if !ended_well => 0.0,
        (Err(why), _) | (_, Err(why)) => return Err(why),
    };
    Ok(Some(EndedJob { ended_well, elapsed_s }))
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

fn job(line: &str) -> Result<QueuedJob, String> {
    const FIELDS: usize = 17;
    let fields: Vec<&str> = line.splitn(FIELDS, '|').map(str::trim).collect();
    let [
        id,
        state,
        reason,
        priority,
        partition,
        qos,
        user,
        cpus,
        nodes,
        submitted,
        start,
        ends,
        limit,
        runs_on,
        asked,
        comment,
        name,
    ] = fields[..]
    else {
        return Err(format!("{} fields, {FIELDS} expected", fields.len()));
    };
    let number = |what: &str, text: &str| {
        text.parse::<u64>().map_err(|_| format!("{what} '{}' is no number", text.escape_debug()))
    };
    // A range of nodes (1-2) asks for its first number.
    let count = |what: &str, text: &str| {
        let first = text.split('-').next().unwrap_or_default();
        number(what, first).and_then(|n| size(n).ok_or_else(|| format!("{n} {what} are too many")))
    };
    let present = |text: &str| !matches!(text, "" | "N/A" | "(null)" | "None");
    Ok(QueuedJob {
        id: number("job", id)?,
        state: match state {
            "PD" => State::Pending,
            "R" | "CG" | "CF" | "S" => State::Running,
            _ => State::Other,
        },
        reason: reason.to_owned(),
        priority: number("priority", priority)?,
        partition: partition.to_owned(),
        qos: if present(qos) { qos.to_owned() } else { String::new() },
        user: u32::try_from(number("user", user)?).map_err(|error| error.to_string())?,
        cpus: count("CPUs", cpus)?.max(1),
        nodes: count("nodes", nodes)?.max(1),
        submitted_s: time(submitted).ok_or_else(|| format!("'{submitted}' is no time"))?,
        start_s: time(start),
        ends_s: time(ends),
        limit_s: span(limit),
        runs_on: if present(runs_on) { hosts(runs_on)? } else { Vec::new() },
        asks_for_nodes: present(asked),
        is_marked: comment.split_whitespace().any(|word| word == MARK),
        name: name.to_owned(),
    })
}

fn node(line: &str) -> Result<NodeState, String> {
    let fields: Vec<&str> = line.split('|').map(str::trim).collect();
    let [name, cpus, state, address] = fields[..] else {
        return Err(format!("{} fields, 4 expected", fields.len()));
    };
    if name.is_empty() {
        return Err("a node without a name".to_owned());
    }
    let counts: Option<Vec<usize>> =
        cpus.split('/').map(|count| size(count.parse().ok()?)).collect();
    let Some([_, idle, _, all]) = counts.as_deref() else {
        return Err(format!("CPUs '{}' are no four counts", cpus.escape_debug()));
    };
    // A suffix says more: `*` does not respond, `~` powered down, `$` reserved, ...
    let takes_jobs = matches!(state, "idle" | "mix" | "alloc");
    let idle = if takes_jobs { (*idle).min(*all) } else { 0 };
    let address = if address.is_empty() { name } else { address };
    let (name, address) = (name.to_owned(), address.to_owned());
    Ok(NodeState { name, address, cpus: *all, idle, takes_jobs })
}

/// Slurm counts CPUs and nodes in 32 bits, so that sums of them fit here.
fn size(count: u64) -> Option<usize> {
    u32::try_from(count).ok().and_then(|count| usize::try_from(count).ok())
}

/// Seconds since 1970; none: not known.
fn time(text: &str) -> Option<f64> {
    text.parse::<u64>().ok().map(|seconds| seconds as f64)
}

/// Seconds of `days-hours:minutes:seconds`, with the greater of them left out where they are 0; none: `UNLIMITED`,
/// `NOT_SET` and the like.
fn span(text: &str) -> Option<f64> {
    let (days, rest) = text.split_once('-').unwrap_or(("0", text));
    let units: Option<Vec<u32>> = rest.split(':').map(|unit| unit.parse().ok()).collect();
    let (days, units) = (f64::from(days.parse::<u32>().ok()?), units?);
    let seconds = units.iter().fold(0.0, |sum, unit| sum * 60.0 + f64::from(*unit));
    (2..=3).contains(&units.len()).then_some(days * 86_400.0 + seconds)
}
