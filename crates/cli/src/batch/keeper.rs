//! The process that keeps a job: starts it, waits for it, and records its end.
//!
//! # Approach
//! It outlives the batch, so that the end of a job is recorded whatever becomes of the batch
//! ([`super::progress`]). The job is held back at a gate, a shell that waits for a line, until its process
//! is recorded; a keeper that dies before leaves a shell that reads the end of its input and ends.
//!
//! A signal that asks for the end is passed on to the job's process group; the second one kills the
//! group. A group that is stopped is continued, so that the signal has an effect. A job that takes too long is
//! asked to end, and killed some time later.
//!
//! An end that cannot be recorded is tried again until it can, or until the end is asked for.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context;
use rustix::process::{Pid, Signal, kill_process_group};
use symbiont_linux::launch::by_fork;
use symbiont_linux::{EndedChild, ProcessBirth, reap};

use super::bells::Bells;
use super::progress::Slot;
use super::record::{Ended, JobProcesses};
use crate::args::KeepJob;

/// Waits for the word to start, then becomes the job.
const GATE: &str = r#"IFS= read -r _ || exit 125; exec "$@" </dev/null"#;
/// How long a job that took too long has to end.
const GRACE: Duration = Duration::from_secs(5);
/// After what time it is tried again to record an end.
const AGAIN: Duration = Duration::from_secs(1);

/// Keeps a job whose block is in the file that is standard input.
pub fn keep(args: &KeepJob) -> anyhow::Result<()> {
    let bells = Bells::new().context("cannot take over signals")?;
    // Opened anew, since the lock belongs to what was inherited.
    let file = File::options().read(true).write(true).open("/proc/self/fd/0");
    let slot = Slot { file: file.context("cannot open the progress file")?, at: args.at };
    let mut held = JobProcesses::by_this_process().context("cannot read /proc")?;
    slot.hold(&held).context("cannot note progress")?;
    // Only what is recorded lets go of the lock.
    let null = File::open("/dev/null").context("cannot open /dev/null")?;
    rustix::stdio::dup2_stdin(&null).context("cannot let go of the lock")?;
    let ended = match start(args, &slot, &mut held, &bells) {
        Ok(child) => wait(&child, &bells, args.timeout).context("cannot wait for the job")?,
        Err(error) => {
            note!("symbiont: a job cannot be started: {error}");
            Ended::at_once(126)
        }
    };
    record(&slot, &ended, &bells)
}

fn start(args: &KeepJob, slot: &Slot, held: &mut JobProcesses, bells: &Bells) -> io::Result<Child> {
    let mut command = Command::new("sh");
    command.args(["-c", GATE, "sh"]).args(&args.command).stdin(Stdio::piped()).process_group(0);
    let mut child = by_fork(&mut command).spawn()?;
    held.job = ProcessBirth::of(child.id());
    let recorded = slot.hold(held);
    let gate = child.stdin.take();
    match (recorded, gate, bells.asked()) {
        (Ok(()), Some(mut gate), None) => {
            gate.write_all(b"\n")?;
            Ok(child)
        }
        // The gate is closed, and nothing has run.
        (recorded, ..) => {
            child.wait()?;
            recorded.and(Err(io::Error::other("the end was asked for")))
        }
    }
}

fn wait(child: &Child, bells: &Bells, timeout: Option<Duration>) -> io::Result<Ended> {
    let begin = Instant::now();
    let (mut times, mut timed_out) = (0, false);
    let mut deadline = timeout.and_then(|timeout| begin.checked_add(timeout));
    loop {
        if let Some(EndedChild { status, cpu_time, .. }) = reaped(child)? {
            let elapsed_s = begin.elapsed().as_secs_f64();
            let (exit_code, cpu_s) = (Some(exit_code(status)), cpu_time.as_secs_f64());
            return Ok(Ended { exit_code, signal: status.signal(), timed_out, elapsed_s, cpu_s });
        }
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        if bells.wait(&[], left)? {
            times += 1;
            let named = bells.asked().and_then(Signal::from_named_raw).unwrap_or(Signal::TERM);
            signal_group(child, if times > 1 { Signal::KILL } else { named });
        }
        if deadline.is_some_and(|deadline| deadline <= Instant::now()) {
            signal_group(child, if timed_out { Signal::KILL } else { Signal::TERM });
            deadline = Instant::now().checked_add(GRACE);
            timed_out = true;
        }
    }
}

/// The job, if it has ended. A process that it left to this one is no matter.
fn reaped(child: &Child) -> io::Result<Option<EndedChild>> {
    while let Some(ended) = reap()? {
        if ended.pid == child.id() {
            return Ok(Some(ended));
        }
    }
    Ok(None)
}

fn signal_group(child: &Child, signal: Signal) {
    let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) else { return };
    // One that has just ended needs none. A stopped one acts on it only once it goes on.
    let _ = kill_process_group(group, signal);
    let _ = kill_process_group(group, Signal::CONT);
}

/// The exit code by which a shell reports it.
fn exit_code(status: ExitStatus) -> i32 {
    status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1)
}

fn record(slot: &Slot, ended: &Ended, bells: &Bells) -> anyhow::Result<()> {
    let mut is_first = true;
    while let Err(error) = slot.end(ended) {
        if is_first {
            note!("symbiont: the end of a job cannot be noted, which is tried again: {error}");
        }
        is_first = false;
        if bells.wait(&[], Some(AGAIN)).is_ok_and(|asked| asked) {
            return Err(error).context("the end of a job is not noted");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exit_code_is_that_of_a_shell() {
        assert_eq!(exit_code(ExitStatus::from_raw(9)), 137);
        assert_eq!(exit_code(ExitStatus::from_raw(3 << 8)), 3);
    }
}
