//! Jobs as processes: starts a keeper for each, waits for their ends, passes signals on.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process, pidfd_send_signal};
use symbiont_daemon::Client;
use symbiont_jobs::Identity;
use symbiont_linux::launch::by_fork;
use symbiont_linux::{has_ended, reap};
use symbiont_safe_open::output;

use super::bells::Bells;
use super::line::Line;
use super::progress::Progress;
use super::record::{Ended, JobRecord};
use super::resume::{Process, Survivor, process_of};
use crate::args::Batch;
use crate::client::{silent, sockets};

/// What the jobs are given.
#[derive(Debug)]
pub struct Surroundings {
    /// Where a daemon may listen.
    sockets: Vec<PathBuf>,
    /// Options of `symbiont run` where one does.
    options: Vec<OsString>,
    output: Option<PathBuf>,
    timeout: Option<Duration>,
    /// Names of output files that are kept as they are.
    names: BTreeSet<String>,
    /// When a daemon did not answer, unless it has since.
    silent: Option<Instant>,
}

/// When a daemon that did not answer is asked again.
const ASKED_AGAIN: Duration = Duration::from_secs(60);

impl Surroundings {
    /// As the command line asks.
    pub fn new(args: &Batch, names: BTreeSet<String>) -> anyhow::Result<Self> {
        let mut options = Vec::new();
        if let Some(class) = args.class {
            options.extend(["--class".into(), class.to_string().into()]);
        }
        if let Some(dir) = args.state.given()? {
            options.extend(["--state-dir".into(), dir.into_os_string()]);
        }
        if let Some(dir) = &args.output {
            std::fs::create_dir_all(dir)
                .with_context(|| format!("cannot create the folder {}", dir.display()))?;
        }
        let (sockets, output) = (sockets(&args.state)?, args.output.clone());
        Ok(Self { sockets, options, output, timeout: args.timeout, names, silent: None })
    }

    /// A daemon that has gone is not waited for, and one that does not answer for a moment only: the job runs as it would
    /// without.
    fn is_managed(&mut self) -> bool {
        if self.silent.is_some_and(|since| since.elapsed() < ASKED_AGAIN) {
            return false;
        }
        let Some(socket) = self.sockets.iter().find(|socket| Client::connect(socket).is_ok())
        else {
            return false;
        };
        let why = silent(socket, None);
        if let (Some(why), None) = (&why, self.silent) {
            note!("symbiont: {why}; jobs run without it");
        }
        self.silent = why.is_some().then(Instant::now);
        self.silent.is_none()
    }

    /// What the output files of a job are called: by its line, where no job of an earlier batch has left such.
    pub fn name(&self, line: usize) -> String {
        let names = (2..).map(|copy| format!("{line}.{copy}"));
        let mut names = std::iter::once(line.to_string()).chain(names);
        names.find(|name| !self.names.contains(name)).unwrap_or_default()
    }

    /// The files for what a job writes, where it is kept: standard output and standard error.
    pub fn output(&self, line: &Line) -> io::Result<Option<[File; 2]>> {
        let Some(dir) = &self.output else { return Ok(None) };
        let name = self.name(line.number);
        let file = |kind: &str| output::create(&dir.join(format!("{name}.{kind}")));
        Ok(Some([file("out")?, file("err")?]))
    }

    /// The command of the keeper of a job whose block is there.
    pub fn keeper(
        &mut self,
        line: &Line,
        program: &Identity,
        output: Option<[File; 2]>,
        at: u64,
    ) -> io::Result<Command> {
        let symbiont = std::env::current_exe()?;
        let mut keeper = Command::new("/proc/self/exe");
        keeper.arg0("symbiont").process_group(0).args(["keep-job", "--at", &at.to_string()]);
        if let Some([out, err]) = output {
            keeper.stdout(out).stderr(err);
        }
        if let Some(timeout) = self.timeout {
            keeper.args(["--timeout", &humantime::format_duration(timeout).to_string()]);
        }
        keeper.arg("--");
        if self.is_managed() {
            keeper.arg(symbiont).arg("run").args(&self.options);
            if !program.name.is_empty() {
                keeper.arg(format!("--called={}", program.name));
            }
            keeper.arg(format!("--identity={}", program.key.digest)).arg("--");
        }
        keeper.args(["sh", "-c"]).arg(&line.command);
        Ok(keeper)
    }
}

/// What ends when a job ends.
#[derive(Debug)]
enum Holder {
    /// A child: the job's keeper.
    Child(u32),
    /// No child: the keeper of a batch that was killed, or a job without a keeper.
    Other(Process),
}

#[derive(Debug)]
struct Running {
    holder: Holder,
    /// Where the job's block is.
    at: u64,
}

/// Why waiting is over.
#[derive(Debug, PartialEq)]
pub enum Event {
    /// The job with this number ended.
    Ended(usize, Ended),
    /// A signal was passed on, or the time is over.
    Nothing,
}

/// The jobs that run.
#[derive(Debug)]
pub struct Runner {
    jobs: BTreeMap<usize, Running>,
    bells: Bells,
    /// Jobs whose holders have ended.
    over: VecDeque<usize>,
    /// How often the end was asked for.
    times: usize,
}

impl Runner {
    /// Runs nothing yet.
    pub fn new(bells: Bells) -> Self {
        Self { jobs: BTreeMap::new(), bells, over: VecDeque::new(), times: 0 }
    }

    /// Starts the keeper of a job whose block is there.
    pub fn start(
        &mut self,
        number: usize,
        mut keeper: Command,
        progress: &Progress,
        at: u64,
    ) -> io::Result<()> {
        let child = by_fork(&mut keeper).stdin(Stdio::from(progress.share()?)).spawn()?;
        self.jobs.insert(number, Running { holder: Holder::Child(child.id()), at });
        Ok(())
    }

    /// Waits also for a job that an earlier batch has started.
    pub fn join(&mut self, number: usize, survivor: Survivor) {
        let Survivor { at, process, .. } = survivor;
        self.jobs.insert(number, Running { holder: Holder::Other(process), at });
    }

    /// Does nothing run?
    pub fn is_idle(&self) -> bool {
        self.jobs.is_empty()
    }

    /// The first processes of the jobs that run, each with the job's number.
    pub fn processes(&self, progress: &Progress) -> impl Iterator<Item = (u32, usize)> {
        let process = |(number, job): (&usize, &Running)| {
            let held = progress.read(job.at).ok().flatten()?.held?;
            Some((held.job?.process, *number))
        };
        self.jobs.iter().filter_map(process)
    }

    /// The signal that asked for the end, if one did.
    pub fn interrupted(&self) -> Option<i32> {
        self.bells.asked()
    }

    /// Waits until a job ends, the end is asked for, or the time is over.
    pub fn wait(&mut self, progress: &Progress, timeout: Option<Duration>) -> io::Result<Event> {
        loop {
            let ended = self.ended()?;
            self.over.extend(ended);
            while let Some(number) = self.over.pop_front() {
                if let Some(ended) = self.what_became(number, progress) {
                    self.jobs.remove(&number);
                    return Ok(Event::Ended(number, ended));
                }
            }
            let holders = self.jobs.values().filter_map(|job| match &job.holder {
                Holder::Other(process) => Some(process.pidfd.as_fd()),
                Holder::Child(_) => None,
            });
            let holders: Vec<_> = holders.collect();
            let is_asked = self.bells.wait(&holders, timeout)?;
            if is_asked {
                self.end_all();
            }
            if is_asked || timeout.is_some() {
                // Ends are found at the next call.
                return Ok(Event::Nothing);
            }
        }
    }

    /// The jobs whose holders have ended.
    fn ended(&self) -> io::Result<Vec<usize>> {
        let mut ended = Vec::new();
        while let Some(child) = reaped()? {
            let is_it = |job: &Running| matches!(job.holder, Holder::Child(pid) if pid == child);
            ended.extend(self.jobs.iter().find(|(_, job)| is_it(job)).map(|(number, _)| *number));
        }
        for (number, job) in &self.jobs {
            if let Holder::Other(process) = &job.holder {
                if has_ended(&process.pidfd) {
                    ended.push(*number);
                }
            }
        }
        Ok(ended)
    }

    /// The end of a job whose holder has ended; none: the job runs on without a keeper.
    fn what_became(&mut self, number: usize, progress: &Progress) -> Option<Ended> {
        let job = self.jobs.get_mut(&number)?;
        let record = progress.read(job.at).unwrap_or_else(|error| {
            note!("symbiont: cannot read the progress in {}: {error}", progress.name());
            None
        });
        let held = match record {
            Some(JobRecord { ended: Some(ended), .. }) => return Some(ended),
            record => record.and_then(|record| record.held),
        };
        let ended = match held {
            Some(held) => match process_of(&held) {
                Some(process) => {
                    job.holder = Holder::Other(process);
                    return None;
                }
                None => Ended::unknown(),
            },
            None => Ended::at_once(126),
        };
        if let Err(error) = progress.end(job.at, &ended) {
            note!("symbiont: cannot note progress in {}: {error}", progress.name());
        }
        Some(ended)
    }

    /// Asks all jobs to end; the second time they are killed.
    pub fn end_all(&mut self) {
        self.times += 1;
        self.pass_on();
    }

    /// To the keepers, which pass it on to the jobs and kill them the second time.
    fn pass_on(&self) {
        let named = self.interrupted().and_then(Signal::from_named_raw).unwrap_or(Signal::TERM);
        for job in self.jobs.values() {
            let kills = self.times > 1 && job.holder.is_job();
            for signal in [if kills { Signal::KILL } else { named }, Signal::CONT] {
                // One that has just ended needs none.
                let _ = job.holder.signal(signal);
            }
        }
    }
}

impl Holder {
    /// Is it a job without a keeper?
    fn is_job(&self) -> bool {
        matches!(self, Self::Other(Process { is_keeper: false, .. }))
    }

    fn signal(&self, signal: Signal) -> rustix::io::Result<()> {
        match self {
            Self::Other(process) => pidfd_send_signal(&process.pidfd, signal),
            // Its number is its own until it is waited for.
            Self::Child(child) => match i32::try_from(*child).ok().and_then(Pid::from_raw) {
                Some(child) => kill_process(child, signal),
                None => Ok(()),
            },
        }
    }
}

/// A child that has ended.
fn reaped() -> io::Result<Option<u32>> {
    match reap() {
        Err(error) if error.raw_os_error() == Some(Errno::CHILD.raw_os_error()) => Ok(None),
        other => Ok(other?.map(|child| child.pid)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_files_of_earlier_jobs_are_kept() {
        let names = ["7".to_owned(), "7.2".to_owned()].into();
        let surroundings = Surroundings {
            sockets: vec![],
            options: vec![],
            output: None,
            timeout: None,
            names,
            silent: None,
        };
        assert_eq!(surroundings.name(7), "7.3");
        assert_eq!(surroundings.name(8), "8");
    }
}
