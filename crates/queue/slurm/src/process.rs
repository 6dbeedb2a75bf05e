//! Slurm's commands, run as processes.
//!
//! Each has a bounded time, and is killed, with what it has started, when symbiont is to end. A command may leave a child behind that holds its
//! output open: that child is not waited for. Variables by which users set their own defaults do not reach commands.
//!
//! ```text
//! start the command with an empty input, read both outputs in threads
//! wait until it ends, its time is over, or symbiont is to end; kill it in the last two cases
//! take what was read, waiting at most HELD for more
//! status 0  →  its output, else  →  an error with the last line that it wrote
//! ```
//!
//! # Properties
//! - A failure is one clear line (`a_command_that_is_not_there_or_refuses_is_one_clear_line`).
//! - Waiting is bounded (`a_command_that_hangs_is_ended`, `a_command_is_not_waited_for_once_symbiont_ends`,
//!   `a_command_whose_child_holds_the_pipe_has_what_it_wrote`); nothing is left of a command that hangs
//!   (`what_a_wrapper_has_started_ends_with_it`).
//! - Users' defaults stay outside (`users_defaults_of_slurms_commands_are_not_passed_on`).

use std::io::{ErrorKind, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::SlurmError;

/// How long a command may take, unless it is given less: it retries by itself.
const TIMEOUT: Duration = Duration::from_secs(60);
/// After which time it is said that a command is waited for.
const SLOW: Duration = Duration::from_secs(1);
/// How long the output of a command that has ended may be held open by another process.
const HELD: Duration = Duration::from_millis(500);

/// Is a variable of the environment passed on to Slurm's commands? Those that say where Slurm is are; users' own
/// defaults, which change what the commands write (`SQUEUE_STATES`, `SINFO_ALL`, `SLURM_BITSTR_LEN`), are not.
fn is_passed_on(name: &str) -> bool {
    let of_slurm = ["SQUEUE_", "SINFO_", "SCONTROL_", "SLURM_"];
    matches!(name, "SLURM_CONF" | "SLURM_CONF_SERVER" | "SLURM_JWT")
        || !of_slurm.iter().any(|prefix| name.starts_with(prefix))
}

/// How long commands are waited for.
#[derive(Debug, Clone)]
pub struct Wait {
    /// Symbiont is to end.
    ends: Arc<AtomicBool>,
    /// When all waiting ends, whatever `ends` says.
    deadline: Option<Instant>,
    /// How long each command is waited for.
    limit: Duration,
    /// Takes the name of a command that has not answered for a while, and how long it is waited for.
    slow: Option<fn(&str, Duration)>,
}

impl Default for Wait {
    fn default() -> Self {
        Self { ends: Arc::default(), deadline: None, limit: TIMEOUT, slow: None }
    }
}

impl Wait {
    /// Until this is set.
    pub fn until(ends: Arc<AtomicBool>) -> Self {
        Self { ends, ..Self::default() }
    }

    /// For this long at most, each command.
    pub fn each_within(limit: Duration) -> Self {
        Self { limit, ..Self::default() }
    }

    /// Each command for this long at most; one that has not answered after a second is named.
    pub fn named(&mut self, limit: Duration, slow: fn(&str, Duration)) {
        (self.limit, self.slow) = (limit, Some(slow));
    }

    /// From now on for this long, all commands together.
    pub fn end_in(&mut self, time: Duration) {
        self.deadline = Some(Instant::now() + time);
    }

    fn is_over(&self) -> bool {
        match self.deadline {
            Some(deadline) => Instant::now() >= deadline,
            None => self.ends.load(Ordering::Relaxed),
        }
    }
}

/// A command with an empty input.
fn prepared(command: &str, arguments: &[&str]) -> Command {
    let mut prepared = Command::new(command);
    for (name, _) in std::env::vars_os() {
        if !is_passed_on(&name.to_string_lossy()) {
            prepared.env_remove(name);
        }
    }
    prepared.args(arguments).env("SLURM_TIME_FORMAT", "%s");
    // A group of its own: what a wrapper has started is ended with it.
    prepared.stdin(Stdio::null()).process_group(0);
    prepared
}

/// What a command writes to its standard output.
pub fn run(command: &str, arguments: &[&str], wait: &Wait) -> Result<String, SlurmError> {
    let not_run = |error: std::io::Error| SlurmError::NotRun {
        command: command.to_owned(),
        why: match error.kind() {
            ErrorKind::NotFound => "it is not there".to_owned(),
            _ => error.to_string(),
        },
    };
    let name = command.to_owned();
    if wait.is_over() {
        return Err(SlurmError::Ended { command: name });
    }
    let mut prepared = prepared(command, arguments);
    let mut child =
        prepared.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().map_err(not_run)?;
    let (out, err) = (child.stdout.take().map(Pipe::of), child.stderr.take().map(Pipe::of));
    let slow = || wait.slow.iter().for_each(|slow| slow(command, wait.limit));
    let Some(status) = within(&mut child, wait.limit, wait, slow).map_err(not_run)? else {
        return Err(match wait.is_over() {
            true => SlurmError::Ended { command: name },
            false => SlurmError::Silent { command: name, limit: wait.limit },
        });
    };
    let text = |pipe: Option<Pipe>| pipe.map_or_else(String::new, |pipe| pipe.text(HELD));
    let (out, err) = (text(out), text(err));
    if status.success() {
        return Ok(out);
    }
    let said = err.lines().chain(out.lines()).map(str::trim).rfind(|line| !line.is_empty());
    // Most begin their lines with their own names.
    let said = said.map(|said| said.strip_prefix(&format!("{command}: ")).unwrap_or(said));
    let why = said.map_or_else(|| format!("{status}"), str::to_owned);
    Err(SlurmError::Refused { command: command.to_owned(), why })
}

/// How a child ended within a time; none: it did not, and was killed. `slow` is called once if it takes a while.
fn within(
    child: &mut Child,
    time: Duration,
    wait: &Wait,
    slow: impl FnOnce(),
) -> std::io::Result<Option<std::process::ExitStatus>> {
    let begin = Instant::now();
    let mut pause = Duration::from_millis(1);
    let mut slow = Some(slow);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if begin.elapsed() > time || wait.is_over() {
            if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
                let _ = kill_process_group(group, Signal::KILL);
            }
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        if begin.elapsed() >= SLOW {
            slow.take().into_iter().for_each(|slow| slow());
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(50));
    }
}

/// The output of a process, read in a thread as it is written.
struct Pipe(Receiver<Vec<u8>>);

impl Pipe {
    fn of(mut pipe: impl Read + Send + 'static) -> Self {
        let (writer, reader) = channel();
        // It ends with the last process that holds the other end.
        std::thread::spawn(move || {
            let mut bytes = vec![0; 1 << 16];
            loop {
                match pipe.read(&mut bytes) {
                    Ok(0) => return,
                    Ok(count) => {
                        if writer.send(bytes.get(..count).unwrap_or_default().to_vec()).is_err() {
                            return;
                        }
                    }
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    // What was read before an error is what there is.
                    Err(_) => return,
                }
            }
        });
        Self(reader)
    }

    /// All that was written; a process that still holds the pipe is waited for no longer than `held`.
    fn text(self, held: Duration) -> String {
        let mut all = Vec::new();
        let end = Instant::now() + held;
        while let Ok(bytes) = self.0.recv_timeout(end.saturating_duration_since(Instant::now())) {
            all.extend(bytes);
        }
        String::from_utf8_lossy(&all).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(command: &str, arguments: &[&str]) -> Result<String, SlurmError> {
        run(command, arguments, &Wait::default())
    }

    #[test]
    fn a_command_that_is_not_there_or_refuses_is_one_clear_line() {
        let missing = ask("no-such-slurm", &[]).unwrap_err().to_string();
        assert_eq!(
            missing,
            "cannot run no-such-slurm: it is not there; Slurm's commands have to be in PATH"
        );
        let refused = ask("sh", &["-c", "echo first >&2; echo why not >&2; exit 1"]).unwrap_err();
        assert_eq!(refused.to_string(), "sh: why not");
        let named = ask("sh", &["-c", "echo sh: fatal: no >&2; exit 1"]).unwrap_err();
        assert_eq!(named.to_string(), "sh: fatal: no");
        assert_eq!(ask("sh", &["-c", "echo $SLURM_TIME_FORMAT"]).unwrap(), "%s\n");
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
        let time = Duration::from_millis(30);
        assert_eq!(within(&mut child, time, &Wait::default(), || ()).unwrap(), None);
    }

    #[test]
    fn a_command_is_not_waited_for_once_symbiont_ends() {
        let ends = Arc::new(AtomicBool::new(false));
        let mut wait = Wait::until(Arc::clone(&ends));
        let same = wait.clone();
        let waits = std::thread::spawn(move || run("sleep", &["60"], &same));
        std::thread::sleep(Duration::from_millis(50));
        ends.store(true, Ordering::Relaxed);
        let ended = waits.join().unwrap().unwrap_err();
        assert_eq!(ended, SlurmError::Ended { command: "sleep".to_owned() });
        assert!(run("sleep", &["60"], &wait).is_err());
        // The last ones have a time of their own.
        wait.end_in(Duration::from_secs(60));
        assert_eq!(run("echo", &["x"], &wait).unwrap(), "x\n");
        wait.end_in(Duration::from_millis(30));
        assert!(run("sleep", &["60"], &wait).is_err());
    }

    #[test]
    fn what_a_wrapper_has_started_ends_with_it() {
        let wait = Wait::each_within(Duration::from_millis(300));
        let folder = tempfile::tempdir().unwrap();
        let number = folder.path().join("number");
        let wrapper = format!("sleep 60 & echo $! >{}; wait", number.display());
        assert!(matches!(run("sh", &["-c", &wrapper], &wait), Err(SlurmError::Silent { .. })));
        let number = std::fs::read_to_string(number).unwrap();
        let lives = || {
            let stat = std::fs::read_to_string(format!("/proc/{}/stat", number.trim()));
            stat.is_ok_and(|stat| !stat.contains(") Z "))
        };
        let begin = Instant::now();
        while lives() && begin.elapsed() < TIMEOUT {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(!lives());
    }

    #[test]
    fn a_command_whose_child_holds_the_pipe_has_what_it_wrote() {
        // The child would be waited for until it ends.
        let text = ask("sh", &["-c", "echo all; exec 2>&-; sleep 60 & echo of it"]).unwrap();
        assert_eq!(text, "all\nof it\n");
        // Nor for one that goes on writing.
        let writes = "exec 2>&-; (while echo more 2>/dev/null; do sleep 0.1; done) & echo all";
        assert!(ask("sh", &["-c", writes]).unwrap().contains("all\n"));
    }
}
