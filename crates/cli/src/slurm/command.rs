//! Commands of Slurm, as processes.
//!
//! Each has a bounded time, and ends at once when symbiont is to end; a process that holds its output open longer than
//! it lives is not waited for. What users set for themselves in the environment does not reach it.

use std::io::{ErrorKind, Read};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use super::cluster::SlurmError;

/// How long a command may take: it asks several times itself.
pub const TIMEOUT: Duration = Duration::from_secs(60);
/// How long a command that has ended may have its output held open by another process.
const HELD: Duration = Duration::from_millis(500);

/// May a variable of the environment reach Slurm's commands? Those with which users set their own defaults change
/// what the commands write (`SQUEUE_STATES`, `SINFO_ALL`, `SLURM_BITSTR_LEN`); these say where Slurm is.
fn is_passed_on(name: &str) -> bool {
    let of_slurm = ["SQUEUE_", "SINFO_", "SCONTROL_", "SLURM_"];
    matches!(name, "SLURM_CONF" | "SLURM_CONF_SERVER" | "SLURM_JWT")
        || !of_slurm.iter().any(|prefix| name.starts_with(prefix))
}

/// For how long commands are waited for.
#[derive(Debug, Clone, Default)]
pub struct Wait {
    ends: Arc<AtomicBool>,
    last: Option<Instant>,
}

impl Wait {
    /// Until this is set.
    pub fn until(ends: Arc<AtomicBool>) -> Self {
        Self { ends, last: None }
    }

    /// From now on for this long, all together.
    pub fn end_in(&mut self, time: Duration) {
        self.last = Some(Instant::now() + time);
    }

    fn is_over(&self) -> bool {
        match self.last {
            Some(last) => Instant::now() >= last,
            None => self.ends.load(Ordering::Relaxed),
        }
    }
}

/// A command of Slurm with an empty input.
fn asked(command: &str, arguments: &[&str]) -> Command {
    let mut asked = Command::new(command);
    for (name, _) in std::env::vars_os() {
        if !is_passed_on(&name.to_string_lossy()) {
            asked.env_remove(name);
        }
    }
    asked.args(arguments).env("SLURM_TIME_FORMAT", "%s");
    asked.stdin(Stdio::null()).stderr(Stdio::null());
    asked
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
    let mut asked = asked(command, arguments);
    let mut child = asked.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().map_err(not_run)?;
    let (out, err) = (child.stdout.take().map(Pipe::of), child.stderr.take().map(Pipe::of));
    let Some(status) = within(&mut child, TIMEOUT, wait).map_err(not_run)? else {
        return Err(match wait.is_over() {
            true => SlurmError::Ended { command: name },
            false => SlurmError::Silent { command: name },
        });
    };
    let text = |pipe: Option<Pipe>| pipe.map_or_else(String::new, |pipe| pipe.text(HELD));
    let (out, err) = (text(out), text(err));
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
fn within(
    child: &mut Child,
    time: Duration,
    wait: &Wait,
) -> std::io::Result<Option<std::process::ExitStatus>> {
    let begin = Instant::now();
    let mut pause = Duration::from_millis(1);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if begin.elapsed() > time || wait.is_over() {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(50));
    }
}

/// What a process writes, as it comes.
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

    /// All that a process that has ended wrote: another one that holds its output is waited for no longer than this.
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
        assert_eq!(within(&mut child, time, &Wait::default()).unwrap(), None);
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
    fn a_command_whose_child_holds_the_pipe_has_what_it_wrote() {
        // The child would be waited for until it ends.
        let text = ask("sh", &["-c", "echo all; exec 2>&-; sleep 60 & echo of it"]).unwrap();
        assert_eq!(text, "all\nof it\n");
        // Nor for one that goes on writing.
        let writes = "exec 2>&-; (while echo more 2>/dev/null; do sleep 0.1; done) & echo all";
        assert!(ask("sh", &["-c", writes]).unwrap().contains("all\n"));
    }
}
