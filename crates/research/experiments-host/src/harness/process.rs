//! Runs one program within bounds.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use symbiont_campaign::Error;

/// How often cancellation is looked for while a program runs.
const SLICE: Duration = Duration::from_millis(250);

/// Time to end in good order after SIGTERM.
const GRACE: Duration = Duration::from_secs(3);

/// Runs `words` in a session of its own, standard output and error to
/// `stdout` and `stderr`, for at most `limit`; gives how long it took.
///
/// The session is made by setsid(1), which executes the program in the same
/// process, so that its status is the program's.
///
/// # Errors
/// When it cannot be started, fails, or does not end (it is ended then, with
/// all its descendants), and when `cancelled` says so.
pub fn run(
    words: &[String],
    stdout: &Path,
    stderr: &Path,
    limit: Duration,
    cancelled: &dyn Fn() -> bool,
) -> Result<Duration, Error> {
    let create = |path: &Path| File::create(path).map_err(Error::io(path));
    let begin = Instant::now();
    let mut child = Command::new("setsid")
        .args(words)
        // What is said on standard error goes into an error of ours.
        .env("RUST_BACKTRACE", "0")
        .stdin(Stdio::null())
        .stdout(create(stdout)?)
        .stderr(create(stderr)?)
        .spawn()
        .map_err(|source| Error::Start { program: "setsid".to_owned(), source })?;
    let program = || words.join(" ");
    let status = loop {
        let left = limit.saturating_sub(begin.elapsed());
        if let Some(status) = wait(&mut child, left.min(SLICE)) {
            break status;
        }
        let over = begin.elapsed() >= limit;
        if over || cancelled() {
            end(&mut child);
            let timed_out = || Error::TimedOut { program: program(), limit };
            return Err(if over { timed_out() } else { Error::Cancelled });
        }
    };
    let wall = begin.elapsed();
    if status.success() {
        return Ok(wall);
    }
    let said = fs::read_to_string(stderr).unwrap_or_default();
    Err(Error::Failed { program: program(), status, stderr: tail(&said) })
}

/// The last lines of a text.
fn tail(text: &str) -> String {
    let lines: Vec<&str> = text.lines().rev().take(5).collect();
    lines.into_iter().rev().collect::<Vec<_>>().join("\n")
}

/// Waits for a child without spinning; nothing if it still runs after `time`.
fn wait(child: &mut Child, time: Duration) -> Option<ExitStatus> {
    match handle(child.id()) {
        Some(handle) => wait_for(&handle, time),
        // Kernels without pidfd (before 5.3): sleep instead.
        None => std::thread::sleep(time.min(Duration::from_millis(20))),
    }
    child.try_wait().ok().flatten()
}

fn wait_for(handle: &OwnedFd, time: Duration) {
    let timeout = Timespec::try_from(time).ok();
    // An interrupted wait is a short one.
    let _ = poll(&mut [PollFd::new(handle, PollFlags::IN)], timeout.as_ref());
}

fn handle(pid: u32) -> Option<OwnedFd> {
    let pid = Pid::from_raw(pid.try_into().ok()?)?;
    pidfd_open(pid, PidfdFlags::empty()).ok()
}

/// Ends a child and all that it started: first SIGTERM to the child, which
/// lets `symbiont` put everything back, then SIGKILL to what is left.
fn end(child: &mut Child) {
    // Handles, not numbers, so that no other process is hit if a number is used again.
    let held = |root| started(root, &processes()).into_iter().filter_map(handle);
    let mut all: Vec<OwnedFd> = held(child.id()).collect();
    if let Some(child) = handle(child.id()) {
        let _ = pidfd_send_signal(&child, Signal::TERM);
    }
    let begin = Instant::now();
    while wait(child, GRACE.saturating_sub(begin.elapsed())).is_none() && begin.elapsed() < GRACE {}
    // Fails for those that are gone. A stopped process starts nothing more in place of what is
    // killed.
    let send = |signal, all: &[OwnedFd]| {
        for one in all {
            let _ = pidfd_send_signal(one, signal);
        }
    };
    all.extend(handle(child.id()));
    send(Signal::STOP, &all);
    all.extend(held(child.id()));
    send(Signal::KILL, &all);
    let _ = child.wait();
}

/// Where a process comes from.
#[derive(Debug, Clone, Copy)]
struct Origin {
    parent: u32,
    session: u32,
}

/// All processes.
fn processes() -> BTreeMap<u32, Origin> {
    let Ok(processes) = fs::read_dir("/proc") else { return BTreeMap::new() };
    processes
        .flatten()
        .filter_map(|entry| {
            let pid = entry.file_name().to_str()?.parse().ok()?;
            let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
            // After the name, which may contain anything: state, parent, group, session.
            let mut fields = stat.rsplit_once(") ")?.1.split(' ');
            let (parent, session) = (fields.nth(1)?, fields.nth(1)?);
            Some((pid, Origin { parent: parent.parse().ok()?, session: session.parse().ok()? }))
        })
        .collect()
}

/// All processes below `root`, and those in its session, whose parents may have ended; children
/// before grandchildren.
fn started(root: u32, processes: &BTreeMap<u32, Origin>) -> Vec<u32> {
    let mut found = vec![root];
    let mut next = 0;
    while let Some(&parent) = found.get(next) {
        let children = processes.iter().filter(|(pid, origin)| {
            let related = origin.parent == parent || origin.session == root;
            related && !found.contains(pid)
        });
        let children: Vec<u32> = children.map(|(pid, _)| *pid).collect();
        found.extend(children);
        next += 1;
    }
    found.split_off(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &[&str]) -> Vec<String> {
        text.iter().map(|&word| word.to_owned()).collect()
    }

    fn in_folder(
        command: &[&str],
        limit: Duration,
        cancelled: &dyn Fn() -> bool,
    ) -> (Result<Duration, Error>, String) {
        let folder = tempfile::tempdir().unwrap();
        let (out, err) = (folder.path().join("out"), folder.path().join("err"));
        let result = run(&words(command), &out, &err, limit, cancelled);
        (result, fs::read_to_string(out).unwrap())
    }

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn output_and_success_come_back() {
        let (result, out) = in_folder(&["echo", "hello"], LONG, &|| false);
        assert!(result.is_ok());
        assert_eq!(out, "hello\n");
    }

    #[test]
    fn a_failure_reports_status_and_reason() {
        let (result, _) = in_folder(&["sh", "-c", "echo broken >&2; exit 3"], LONG, &|| false);
        let text = result.unwrap_err().to_string();
        assert!(text.contains("exit status: 3") && text.contains("broken"), "{text}");
    }

    #[test]
    fn a_program_that_does_not_end_is_ended_with_its_children() {
        // Whichever of these is killed, another one comes while the shell lives.
        let script = "(sleep 1000 &); echo $$; trap '' TERM; while :; do sleep 1000; done";
        let limit = Duration::from_millis(500);
        let (result, out) = in_folder(&["sh", "-c", script], limit, &|| false);
        assert!(matches!(result, Err(Error::TimedOut { .. })), "{result:?}");
        let shell = out.trim().parse().unwrap();
        let begin = Instant::now();
        // Dead ones are there until some process has waited for them.
        let lives = |pid: &u32| {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat"));
            stat.is_ok_and(|stat| !stat.contains(") Z "))
        };
        while started(shell, &processes()).iter().any(lives) {
            assert!(begin.elapsed() < LONG, "a process still lives");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    #[test]
    fn cancelling_ends_the_run() {
        let (result, _) = in_folder(&["sleep", "1000"], LONG * 10, &|| true);
        assert!(matches!(result, Err(Error::Cancelled)));
    }

    #[test]
    fn descendants_are_found_at_any_depth() {
        let all = [(2, 1), (3, 2), (4, 2), (5, 4), (6, 1), (7, 6)];
        let origin = |parent| Origin { parent, session: 1 };
        let mut all: BTreeMap<u32, _> = all.map(|(pid, parent)| (pid, origin(parent))).into();
        assert_eq!(started(2, &all), [3, 4, 5]);
        assert!(started(7, &all).is_empty());
        // Its parent has ended.
        all.insert(8, Origin { parent: 1, session: 7 });
        all.insert(9, Origin { parent: 8, session: 9 });
        assert_eq!(started(7, &all), [8, 9]);
    }
}
