//! Jobs as processes: starts them, waits for their ends, passes signals on.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::Context;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process_group};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};
use symbiont_daemon::Client;
use symbiont_linux::reap;

use super::job_file::Line;
use crate::args::Batch;
use crate::client::sockets;

/// What the jobs are given.
#[derive(Debug)]
pub struct Surroundings {
    /// Where a daemon may listen.
    sockets: Vec<PathBuf>,
    /// Options of `symbiont run` where one does.
    options: Vec<String>,
    output: Option<PathBuf>,
}

impl Surroundings {
    /// As the command line asks.
    pub fn new(args: &Batch) -> anyhow::Result<Self> {
        let mut options = Vec::new();
        if let Some(class) = args.class {
            options.extend(["--class".to_owned(), class.to_string()]);
        }
        if let Some(dir) = args.state.given()? {
            options.extend(["--state-dir".to_owned(), dir.to_string_lossy().into_owned()]);
        }
        if let Some(dir) = &args.output {
            std::fs::create_dir_all(dir)
                .with_context(|| format!("cannot create the folder {}", dir.display()))?;
        }
        Ok(Self { sockets: sockets(&args.state)?, options, output: args.output.clone() })
    }

    /// A daemon that has gone is not waited for: the job runs as it would without.
    fn is_managed(&self) -> bool {
        self.sockets.iter().any(|socket| Client::connect(socket).is_ok())
    }

    fn command(&self, line: &Line) -> io::Result<Command> {
        let mut command = match self.is_managed() {
            true => {
                let mut command = Command::new(std::env::current_exe()?);
                command.arg("run").args(&self.options).args(["--", "sh"]);
                command
            }
            false => Command::new("sh"),
        };
        command.args(["-c", &line.command]).stdin(Stdio::null()).process_group(0);
        if let Some(dir) = &self.output {
            let file = |kind: &str| File::create(dir.join(format!("{}.{kind}", line.number)));
            command.stdout(file("out")?).stderr(file("err")?);
        }
        Ok(command)
    }
}

/// A job ended.
#[derive(Debug, Clone, Copy)]
pub struct Ended {
    /// The number of its line.
    pub number: usize,
    /// How.
    pub status: ExitStatus,
    /// CPU time of all its processes, seconds.
    pub cpu_s: f64,
}

/// The jobs that run.
#[derive(Debug)]
pub struct Runner {
    surroundings: Surroundings,
    jobs: BTreeMap<u32, usize>,
    /// Rings when a child ends.
    ends: UnixStream,
    /// Rings when the end is asked for.
    asks: UnixStream,
    /// The last signal that asked.
    asked: Arc<AtomicUsize>,
    /// How often the end was asked for.
    times: usize,
}

const ENDS: [i32; 3] = [SIGINT, SIGTERM, SIGHUP];

impl Runner {
    /// Runs nothing yet. From now on signals are passed on.
    pub fn new(surroundings: Surroundings) -> io::Result<Self> {
        let ((ends, ended), (asks, ask)) = (UnixStream::pair()?, UnixStream::pair()?);
        let asked = Arc::new(AtomicUsize::new(0));
        for signal in ENDS {
            let number = usize::try_from(signal).unwrap_or_default();
            signal_hook::flag::register_usize(signal, Arc::clone(&asked), number)?;
            signal_hook::low_level::pipe::register(signal, ask.try_clone()?)?;
        }
        signal_hook::low_level::pipe::register(SIGCHLD, ended)?;
        ends.set_nonblocking(true)?;
        asks.set_nonblocking(true)?;
        Ok(Self { surroundings, jobs: BTreeMap::new(), ends, asks, asked, times: 0 })
    }

    /// Starts a job.
    pub fn start(&mut self, line: &Line) -> io::Result<()> {
        let child = self.surroundings.command(line)?.spawn()?;
        self.jobs.insert(child.id(), line.number);
        Ok(())
    }

    /// Does nothing run?
    pub fn is_idle(&self) -> bool {
        self.jobs.is_empty()
    }

    /// The signal that asked for the end, if one did.
    pub fn interrupted(&self) -> Option<i32> {
        let signal = self.asked.load(Ordering::Relaxed);
        i32::try_from(signal).ok().filter(|signal| *signal != 0)
    }

    /// Waits until a job ends or the end is asked for.
    pub fn wait(&mut self) -> io::Result<Option<Ended>> {
        loop {
            while let Some(child) = self.reaped()? {
                if let Some(number) = self.jobs.remove(&child.pid) {
                    let (status, cpu_s) = (child.status, child.cpu_time.as_secs_f64());
                    return Ok(Some(Ended { number, status, cpu_s }));
                }
            }
            if self.jobs.is_empty() {
                return Ok(None);
            }
            let mut bells = [&self.ends, &self.asks].map(|bell| PollFd::new(bell, PollFlags::IN));
            match poll(&mut bells, None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            let has_rung = |mut bell: &UnixStream| bell.read(&mut [0; 64]).is_ok_and(|got| got > 0);
            has_rung(&self.ends);
            if has_rung(&self.asks) {
                self.pass_on();
                return Ok(None);
            }
        }
    }

    fn reaped(&self) -> io::Result<Option<symbiont_linux::EndedChild>> {
        match reap() {
            Err(error) if error.raw_os_error() == Some(Errno::CHILD.raw_os_error()) => Ok(None),
            other => other,
        }
    }

    /// The second time it is no longer a question.
    fn pass_on(&mut self) {
        self.times += 1;
        let named = self.interrupted().and_then(Signal::from_named_raw);
        let signal = if self.times > 1 { Signal::KILL } else { named.unwrap_or(Signal::TERM) };
        for process in self.jobs.keys() {
            let group = i32::try_from(*process).ok().and_then(Pid::from_raw);
            // One that has just ended needs none.
            let _ = group.map(|group| kill_process_group(group, signal));
        }
    }
}
