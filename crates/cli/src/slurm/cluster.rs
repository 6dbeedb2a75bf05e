//! Slurm, by its commands.

use std::io::{ErrorKind, Read};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use symbiont_jobs::slurm::{
    CONFIRM_FORMAT, END_FORMAT, EndedJob, NODE_FORMAT, NodeState, QueuedJob, confirm, parse_ended,
    parse_jobs, parse_nodes, parse_qos,
};

/// Why Slurm was not asked, or did not do it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SlurmError {
    /// The command cannot be run.
    #[error("cannot run {command}: {why}; Slurm's commands have to be in PATH")]
    NotRun {
        /// Which.
        command: String,
        /// What the kernel said.
        why: String,
    },
    /// It took too long.
    #[error("{command} did not answer within {} s", TIMEOUT.as_secs())]
    Silent {
        /// Which.
        command: String,
    },
    /// It says why not.
    #[error("{command}: {why}")]
    Refused {
        /// Which.
        command: String,
        /// In its words.
        why: String,
    },
}

/// What is asked of a cluster.
pub trait Cluster {
    /// All jobs of the queue.
    fn jobs(&mut self) -> Result<Vec<QueuedJob>, SlurmError>;
    /// The nodes of a partition.
    fn nodes(&mut self, partition: &str) -> Result<Vec<NodeState>, SlurmError>;
    /// The script of a batch job.
    fn script(&mut self, job: u64) -> Result<String, SlurmError>;
    /// How a job ended; none while it has not, or is forgotten.
    fn ended(&mut self, job: u64) -> Result<Option<EndedJob>, SlurmError>;
    /// Lets a job start, on this node, if Slurm confirms by its number that it waits for Symbiont.
    fn release(&mut self, job: &QueuedJob, node: &str) -> Result<(), SlurmError>;
    /// Lets a released job start on any node, if Slurm confirms by its number that it waited for Symbiont.
    fn give_back(&mut self, job: &QueuedJob) -> Result<(), SlurmError>;
    /// What was not understood since the last call.
    fn take_line_errors(&mut self) -> Vec<String>;
}

/// How long a command may take: it asks several times itself.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The cluster that Slurm's commands reach from here.
#[derive(Debug, Default)]
pub struct Commands {
    errors: Vec<String>,
}

impl Commands {
    /// The partitions that there are.
    pub fn partitions(&mut self) -> Result<Vec<String>, SlurmError> {
        let text = run("sinfo", &["--noheader", "--format=%R"])?;
        let mut names: Vec<String> = text.lines().map(|line| line.trim().to_owned()).collect();
        names.sort();
        names.dedup();
        Ok(names)
    }

    /// The QOS that there are; none: Slurm has no accounting database, and cannot say.
    pub fn qos(&mut self) -> Result<Vec<String>, SlurmError> {
        run("scontrol", &["show", "assoc_mgr", "flags=qos"]).map(|text| parse_qos(&text))
    }

    /// Asks for a job by its number: is it still this one, does it wait, and is it marked? What the queue says of
    /// it is not enough to act.
    fn confirm(job: &QueuedJob) -> Result<(), SlurmError> {
        let text = of_job(job.id, CONFIRM_FORMAT)?;
        confirm(&text, job).map_err(refused("squeue"))
    }
}

impl Cluster for Commands {
    fn jobs(&mut self) -> Result<Vec<QueuedJob>, SlurmError> {
        let text = run("squeue", &["--all", "--json"])?;
        let (jobs, errors) =
            parse_jobs(&text).map_err(|error| refused("squeue")(error.to_string()))?;
        self.errors.extend(errors);
        Ok(jobs)
    }

    fn nodes(&mut self, partition: &str) -> Result<Vec<NodeState>, SlurmError> {
        let text = run("sinfo", &["--noheader", "-N", "-p", partition, "-O", NODE_FORMAT])?;
        let (nodes, errors) = parse_nodes(&text);
        self.errors.extend(errors.iter().map(ToString::to_string));
        Ok(nodes)
    }

    fn script(&mut self, job: u64) -> Result<String, SlurmError> {
        run("scontrol", &["write", "batch_script", &job.to_string(), "-"])
    }

    fn ended(&mut self, job: u64) -> Result<Option<EndedJob>, SlurmError> {
        parse_ended(&of_job(job, END_FORMAT)?, job).map_err(refused("squeue"))
    }

    fn release(&mut self, job: &QueuedJob, node: &str) -> Result<(), SlurmError> {
        Self::confirm(job)?;
        let (job, node) = (format!("JobId={}", job.id), format!("ReqNodeList={node}"));
        run("scontrol", &["update", &job, &node, "StartTime=now"]).map(drop)
    }

    fn give_back(&mut self, job: &QueuedJob) -> Result<(), SlurmError> {
        Self::confirm(job)?;
        run("scontrol", &["update", &format!("JobId={}", job.id), "ReqNodeList="]).map(drop)
    }

    fn take_line_errors(&mut self) -> Vec<String> {
        std::mem::take(&mut self.errors)
    }
}

/// What squeue writes of one job, by its number, in whatever state.
fn of_job(job: u64, format: &str) -> Result<String, SlurmError> {
    let job = job.to_string();
    run("squeue", &["--noheader", "--all", "--states=all", "--jobs", &job, "-O", format])
}

fn refused(command: &str) -> impl Fn(String) -> SlurmError {
    let command = command.to_owned();
    move |why| SlurmError::Refused { command: command.clone(), why }
}

/// May a variable of the environment reach Slurm's commands? Those with which users set their own defaults change
/// what the commands write (`SQUEUE_STATES`, `SINFO_ALL`, `SLURM_BITSTR_LEN`); these say where Slurm is.
fn is_passed_on(name: &str) -> bool {
    let of_slurm = ["SQUEUE_", "SINFO_", "SCONTROL_", "SLURM_"];
    matches!(name, "SLURM_CONF" | "SLURM_CONF_SERVER" | "SLURM_JWT")
        || !of_slurm.iter().any(|prefix| name.starts_with(prefix))
}

/// What a command writes to its standard output.
fn run(command: &str, arguments: &[&str]) -> Result<String, SlurmError> {
    let not_run = |error: std::io::Error| SlurmError::NotRun {
        command: command.to_owned(),
        why: match error.kind() {
            ErrorKind::NotFound => "it is not there".to_owned(),
            _ => error.to_string(),
        },
    };
    let mut asked = Command::new(command);
    for (name, _) in std::env::vars_os() {
        if !is_passed_on(&name.to_string_lossy()) {
            asked.env_remove(name);
        }
    }
    let mut child = asked
        .args(arguments)
        .env("SLURM_TIME_FORMAT", "%s")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(not_run)?;
    let out = child.stdout.take().map(read_all);
    let err = child.stderr.take().map(read_all);
    let joined = |reader: Option<std::thread::JoinHandle<String>>| {
        reader.and_then(|reader| reader.join().ok()).unwrap_or_default()
    };
    let Some(status) = within(&mut child, TIMEOUT).map_err(not_run)? else {
        return Err(SlurmError::Silent { command: command.to_owned() });
    };
    let (out, err) = (joined(out), joined(err));
    if status.success() {
        return Ok(out);
    }
    let said = err.lines().chain(out.lines()).map(str::trim).rfind(|line| !line.is_empty());
    // They begin with their own names mostly.
    let said = said.map(|said| said.strip_prefix(&format!("{command}: ")).unwrap_or(said));
    let why = said.map_or_else(|| format!("{status}"), str::to_owned);
    Err(SlurmError::Refused { command: command.to_owned(), why })
}

/// How a child ends in a given time; none: it was killed.
fn within(child: &mut Child, time: Duration) -> std::io::Result<Option<std::process::ExitStatus>> {
    let begin = Instant::now();
    let mut pause = Duration::from_millis(1);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if begin.elapsed() > time {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(50));
    }
}

fn read_all(mut pipe: impl Read + Send + 'static) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        // What was read before an error is what there is.
        let _ = pipe.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_is_not_there_or_refuses_is_one_clear_line() {
        let missing = run("no-such-slurm", &[]).unwrap_err().to_string();
        assert_eq!(
            missing,
            "cannot run no-such-slurm: it is not there; Slurm's commands have to be in PATH"
        );
        let refused = run("sh", &["-c", "echo first >&2; echo why not >&2; exit 1"]).unwrap_err();
        assert_eq!(refused.to_string(), "sh: why not");
        let named = run("sh", &["-c", "echo sh: fatal: no >&2; exit 1"]).unwrap_err();
        assert_eq!(named.to_string(), "sh: fatal: no");
        assert_eq!(run("sh", &["-c", "echo $SLURM_TIME_FORMAT"]).unwrap(), "%s\n");
    }

    #[test]
    fn users_defaults_of_slurms_commands_are_not_passed_on() {
        let passed = |names: &[&str]| names.iter().filter(|name| is_passed_on(name)).count();
        assert_eq!(passed(&["SLURM_CONF", "SLURM_JWT", "PATH", "HOME", "SLURMD_X"]), 5);
        assert_eq!(
            passed(&["SQUEUE_FORMAT2", "SQUEUE_USERS", "SINFO_PARTITION", "SCONTROL_ALL"]),
            0
        );
        assert_eq!(passed(&["SLURM_CLUSTERS", "SLURM_TIME_FORMAT", "SLURM_BITSTR_LEN"]), 0);
    }

    #[test]
    fn a_command_that_hangs_is_ended() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        assert_eq!(within(&mut child, Duration::from_millis(30)).unwrap(), None);
    }
}
