//! `symbiont batch`: many commands on this machine, a few at a time, the best partners together.

mod dry_run;
mod job_file;
mod progress;
mod runner;
mod schedule;
mod summary;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use anyhow::Context;
use symbiont_jobs::{Account, Ran, Run, Store, work};

use self::job_file::Line;
use self::progress::Progress;
use self::runner::{Ended, Runner, Surroundings};
use self::schedule::{Schedule, Start, Waiting};
use self::summary::{JobSummary, Summary};
use crate::args::Batch;
use crate::identity::{Identities, Identity};

/// How long a job may take to start, seconds.
const START_S: f64 = 0.02;

/// Runs the jobs of a file.
pub fn batch(args: &Batch) -> anyhow::Result<()> {
    let lines = job_file::read(&args.jobs)?;
    let noted = args.progress.clone().unwrap_or_else(|| {
        let mut name = args.jobs.clone().into_os_string();
        name.push(".progress");
        PathBuf::from(name)
    });
    let done = if args.resume { progress::done(&noted, &lines)? } else { Default::default() };
    let store = args.store.clone().map_or_else(crate::identity::default_store, Ok)?;
    let store = Store::new(&store);
    let known = store.read().unwrap_or_else(|error| {
        note!("symbiont: {error}");
        Default::default()
    });
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let slots = args.at_once.map_or(cpus, usize::from);
    let schedule = Schedule::new(args.order, slots, cpus as f64, known);
    let user = rustix::process::geteuid().as_raw();
    let mut identities = Identities::new(&std::env::var("PATH").unwrap_or_default());
    let here = std::env::current_dir().unwrap_or_default();
    let job = |line: Line| {
        let identity = identities.of(user, &line.command);
        let work = work(&format!("{}\0{}", here.display(), line.command));
        (line.number, Job { line, identity, work })
    };
    let jobs: BTreeMap<usize, Job> = lines.into_iter().map(job).collect();
    let name = |job: &Job| (job.identity.key.clone(), job.identity.name.clone());
    let schedule = schedule.named(jobs.values().map(name).collect());
    let left = jobs.values().filter(|job| !done.contains(&job.line.number));
    let waiting: Vec<Waiting> = left.map(Job::waiting).collect();
    if args.dry_run {
        say_all!("{}", dry_run::text(&schedule, &jobs, waiting));
        return Ok(());
    }
    let runner = Runner::new(Surroundings::new(args)?).context("cannot take over signals")?;
    let progress = Progress::open(&noted, args.resume)?;
    let lines = jobs.values().map(|job| (job.line.number, job.line.clone())).collect();
    let execution = Execution::new(jobs, store, schedule, runner, progress);
    let mut summary = execution.run(waiting)?;
    summary.skipped = done.len();
    if args.json {
        say!("{}", serde_json::to_string_pretty(&summary)?);
    }
    note!("symbiont: {}", summary.text(&lines));
    std::process::exit(summary.exit_code());
}

/// A job of the file.
#[derive(Debug)]
struct Job {
    line: Line,
    identity: Identity,
    work: u64,
}

impl Job {
    fn waiting(&self) -> Waiting {
        let (number, key) = (self.line.number, self.identity.key.clone());
        Waiting { number, key, work: self.work }
    }
}

/// The jobs as they run.
#[derive(Debug)]
struct Execution {
    jobs: BTreeMap<usize, Job>,
    store: Store,
    schedule: Schedule,
    runner: Runner,
    progress: Progress,
    account: Account,
    /// Of those that run: when they started, seconds, and why.
    running: BTreeMap<usize, (f64, String)>,
    begin: Instant,
    summary: Summary,
}

impl Execution {
    fn new(
        jobs: BTreeMap<usize, Job>,
        store: Store,
        schedule: Schedule,
        runner: Runner,
        progress: Progress,
    ) -> Self {
        let (account, running, summary) = Default::default();
        let begin = Instant::now();
        Self { jobs, store, schedule, runner, progress, account, running, begin, summary }
    }

    fn run(mut self, mut waiting: Vec<Waiting>) -> anyhow::Result<Summary> {
        let total = waiting.len();
        loop {
            if self.runner.interrupted().is_none() {
                let of = |number: &usize| Some(self.jobs.get(number)?.identity.key.clone());
                let running: Vec<_> = self.running.keys().filter_map(of).collect();
                for start in self.schedule.next(&waiting, &running) {
                    waiting.retain(|job| job.number != start.number);
                    self.start(start, total - waiting.len(), total);
                }
            }
            if self.runner.is_idle() && (waiting.is_empty() || self.runner.interrupted().is_some())
            {
                break;
            }
            if let Some(ended) = self.runner.wait().context("cannot wait for the jobs")? {
                self.end(&ended)?;
            }
        }
        self.summary.makespan_s = self.begin.elapsed().as_secs_f64();
        self.summary.not_started = waiting.len();
        self.summary.interrupted = self.runner.interrupted();
        self.summary.jobs.sort_by_key(|job| job.line);
        Ok(self.summary)
    }

    fn start(&mut self, start: Start, place: usize, total: usize) {
        let Some(job) = self.jobs.get(&start.number) else { return };
        let (line, now_s) = (&job.line, self.begin.elapsed().as_secs_f64());
        let Start { number, reason, .. } = start;
        if let Err(error) = self.runner.start(line) {
            note!("symbiont: line {number} cannot be started: {error}");
            self.summary.jobs.push(JobSummary {
                line: number,
                command: line.command.clone(),
                exit_code: 126,
                started_s: now_s,
                elapsed_s: 0.0,
                cpu_s: 0.0,
                reason,
            });
            return;
        }
        note!("symbiont: [{place}/{total}] starts line {number}: {}: {reason}", line.command);
        self.account.start(number as u64, &job.identity.key, now_s);
        self.running.insert(number, (now_s, reason));
    }

    fn end(&mut self, ended: &Ended) -> anyhow::Result<()> {
        let &Ended { number, status, cpu_s } = ended;
        let ran = self.account.end(number as u64, self.begin.elapsed().as_secs_f64());
        let (Some(job), Some(ran), Some((started_s, reason))) =
            (self.jobs.get(&number), ran, self.running.remove(&number))
        else {
            return Ok(());
        };
        let Ran { elapsed_s, co_runners } = ran;
        let (exit_code, command) = (summary::exit_code(status), job.line.command.clone());
        note!("symbiont: line {number} {} after {elapsed_s:.1} s", summary::words(exit_code));
        self.progress.note(&job.line, exit_code, elapsed_s)?;
        self.summary.cpu_s += cpu_s;
        let line =
            JobSummary { line: number, command, exit_code, started_s, elapsed_s, cpu_s, reason };
        self.summary.jobs.push(line);
        // One that failed or was stopped did not do its work.
        if exit_code == 0 {
            let ended_s =
                SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
            let (work, error_s, cpu_s) = (job.work, START_S, Some(cpu_s));
            let run = Run { ended_s, work, elapsed_s, error_s, cpu_s, co_runners };
            let Identity { key, name } = &job.identity;
            match self.store.update(|known| known.add_run(key, name, run)) {
                Ok(known) => self.schedule.learn(known),
                Err(error) => note!("symbiont: what line {number} has shown is lost: {error}"),
            }
        }
        Ok(())
    }
}
