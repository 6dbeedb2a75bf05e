//! Starts supervised jobs, each held back at a gate until it is enrolled.
//!
//! The gate is a socket pair:
//!
//! ```text
//! child                                         supervisor
//! enters its session, says SET_UP
//! waits for GO at the gate                      enrols it, says GO
//! exec: the gate closes                         the gate closed without a word: it runs
//! exec fails: says ENTER or EXEC, and errno     the program could not be run
//! the gate closes before GO: ends at once       (died)
//! ```

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::Pid;

use super::raw::{self, ForkError, Side};
use super::signals::Signals;
use super::{Command, ExecError, Job, JobStatus, LaunchError, Session, Status, inherited};

const SET_UP: u8 = b's';
const GO: u8 = b'g';
const ENTER: u8 = b'd';
const EXEC: u8 = b'x';

/// How long a child may take to be set up; longer only if it is stopped.
const TIMEOUT: Duration = Duration::from_secs(1);

/// A job whose files are open.
#[derive(Debug)]
pub(super) struct Prepared<'a> {
    job: &'a Job,
    directory: Option<OwnedFd>,
    stdin: Option<OwnedFd>,
    stdout: Option<OwnedFd>,
    stderr: Option<OwnedFd>,
}

impl<'a> Prepared<'a> {
    /// Opens the job's files; existing output files are emptied.
    pub(super) fn open(job: &'a Job) -> Result<Self, LaunchError> {
        let open = |role, path: Option<&Path>, options: &OpenOptions| {
            path.map(|path| {
                options.open(path).map(OwnedFd::from).map_err(|source| LaunchError::Open {
                    job: job.name(),
                    role,
                    path: path.display().to_string(),
                    source,
                })
            })
            .transpose()
        };
        let mut read = File::options();
        read.read(true);
        let mut write = File::options();
        write.write(true).create(true).truncate(true);
        let mut enter = read.clone();
        enter.custom_flags(libc::O_DIRECTORY | libc::O_PATH);

        let directory = open("directory", job.directory.as_deref(), &enter)?;
        let stdin = open("stdin", job.stdin.as_deref(), &read)?;
        let stdout = open("stdout", job.stdout.as_deref(), &write)?;
        let stderr = match &stdout {
            Some(shared) if job.stdout == job.stderr => {
                Some(shared.try_clone().map_err(LaunchError::system("duplicate a descriptor"))?)
            }
            _ => open("stderr", job.stderr.as_deref(), &write)?,
        };
        Ok(Self { job, directory, stdin, stdout, stderr })
    }

    /// Makes this process the job's program; comes back only with what failed.
    fn become_program(&self) -> (u8, io::Error) {
        inherited::give_back();
        let redirected = self
            .stdin
            .as_ref()
            .map_or(Ok(()), rustix::stdio::dup2_stdin)
            .and_then(|()| self.stdout.as_ref().map_or(Ok(()), rustix::stdio::dup2_stdout))
            .and_then(|()| self.stderr.as_ref().map_or(Ok(()), rustix::stdio::dup2_stderr));
        if let Err(error) = redirected {
            return (EXEC, error.into());
        }
        if let Some(Err(error)) = self.directory.as_ref().map(rustix::process::fchdir) {
            return (ENTER, error.into());
        }
        raw::add_environment(self.job.env.iter());
        (EXEC, self.job.command.failed_to_run(raw::exec(self.job.command.words())).source)
    }

    /// The life of a child.
    fn live(&self, mut gate: UnixStream, signals: &Signals) -> ! {
        signals.give_back();
        if self.job.session == Session::Own {
            // Cannot fail: a process that was just forked leads no group.
            let _ = rustix::process::setsid();
        }
        let mut go = [0];
        let released = gate.write_all(&[SET_UP]).and_then(|()| gate.read_exact(&mut go));
        if released.is_err() {
            raw::end(125);
        }
        let (stage, error) = self.become_program();
        let mut said = vec![stage];
        said.extend_from_slice(&error.raw_os_error().unwrap_or(libc::EIO).to_le_bytes());
        // If the supervisor is gone, no report is needed.
        let _ = gate.write_all(&said);
        // The supervisor makes its own status of what was said.
        raw::end(126);
    }
}

/// A job that was started.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) name: String,
    pub(super) command: Command,
    pub(super) session: Session,
    pub(super) pid: Pid,
    gate: UnixStream,
    pub(super) released: Instant,
    /// Stopped by a signal, as far as is known.
    pub(super) stopped: bool,
    /// How it ended, and how long after its release.
    pub(super) ended: Option<(Status, Duration)>,
}

impl Running {
    /// Lets the job run.
    pub(super) fn release(&mut self) {
        self.released = Instant::now();
        // Fails only if the child is dead, which will be seen.
        let _ = self.gate.write_all(&[GO]);
    }

    /// The line for the user if the job never ran.
    pub(super) fn failure(&self) -> Option<String> {
        match &self.ended {
            Some((status @ Status::NotRun(_), _)) => Some(status.to_string()),
            Some((status @ Status::NotEntered(_), _)) => {
                Some(format!("job '{}': {status}", self.name))
            }
            _ => None,
        }
    }

    /// What became of it, if it has ended.
    pub(super) fn into_status(self) -> Option<JobStatus> {
        let Self { name, ended, .. } = self;
        ended.map(|(status, wall)| JobStatus { name, status, wall })
    }

    /// After the child's end: what it said instead of running its program.
    pub(super) fn exec_failure(&mut self) -> Option<Status> {
        self.gate.set_nonblocking(true).ok()?;
        let mut said = Vec::new();
        // What was read before an error counts.
        let _ = self.gate.read_to_end(&mut said);
        // Still there if it came after our deadline.
        let said = said.strip_prefix(&[SET_UP]).unwrap_or(&said);
        let [stage, number @ ..]: [u8; 5] = said.try_into().ok()?;
        let source = io::Error::from_raw_os_error(i32::from_le_bytes(number));
        match stage {
            ENTER => Some(Status::NotEntered(source)),
            EXEC => Some(Status::NotRun(ExecError { program: self.command.program(), source })),
            _ => None,
        }
    }
}

/// Forks a held-back child for each job, in their order.
pub(super) fn start(
    prepared: &[Prepared<'_>],
    signals: &Signals,
) -> Result<Vec<Running>, LaunchError> {
    let mut running: Vec<Running> = Vec::with_capacity(prepared.len());
    for ready in prepared {
        let (mut ours, theirs) =
            UnixStream::pair().map_err(LaunchError::system("make a socket pair"))?;
        let pid = match raw::fork().map_err(fork_failed)? {
            Side::Child => {
                // Or else the gates of its elder siblings would never close.
                drop((ours, running));
                ready.live(theirs, signals);
            }
            Side::Parent(pid) => pid,
        };
        drop(theirs);
        // What is not said in time, or not at all by a dead child, shows later.
        let _ = ours.set_read_timeout(Some(TIMEOUT)).and_then(|()| ours.read_exact(&mut [0]));
        running.push(Running {
            name: ready.job.name(),
            command: ready.job.command.clone(),
            session: ready.job.session,
            pid,
            gate: ours,
            released: Instant::now(),
            stopped: false,
            ended: None,
        });
    }
    Ok(running)
}

fn fork_failed(error: ForkError) -> LaunchError {
    match error {
        ForkError::Threads(count) => LaunchError::Threads(count),
        ForkError::Io(source) => LaunchError::System { what: "fork a job", source },
    }
}
