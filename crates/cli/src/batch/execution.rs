//! The jobs as they run.

use std::collections::BTreeMap;
use std::io;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::Context;
use symbiont_jobs::{Account, Ran, Run, Store};

use super::Job;
use super::progress::Progress;
use super::record::{Begun, Ended};
use super::resume::Survivor;
use super::room::{self, Room};
use super::runner::{Event, Runner, Surroundings};
use super::schedule::{Schedule, Start, Waiting};
use super::summary::{self, JobSummary, Summary};
use crate::identity::Identity;

/// How long a job may take to start, seconds.
const START_S: f64 = 0.02;

/// A job that runs.
#[derive(Debug)]
struct Running {
    /// When it started, seconds from the begin.
    started_s: f64,
    /// Why then.
    reason: String,
    /// Is it known next to what it ran, all its time?
    is_watched: bool,
}

/// The jobs as they run.
#[derive(Debug)]
pub struct Execution {
    jobs: BTreeMap<usize, Job>,
    store: Store,
    schedule: Schedule,
    surroundings: Surroundings,
    runner: Runner,
    progress: Progress,
    room: Room,
    account: Account,
    running: BTreeMap<usize, Running>,
    begin: Instant,
    summary: Summary,
    /// Was it said that the store cannot be written?
    is_store_lost: bool,
}

impl Execution {
    /// Runs nothing yet.
    pub fn new(
        jobs: BTreeMap<usize, Job>,
        store: Store,
        schedule: Schedule,
        surroundings: Surroundings,
        runner: Runner,
        progress: Progress,
        skipped: usize,
    ) -> Self {
        let summary = Summary { skipped, total: jobs.len(), ..Summary::default() };
        Self {
            jobs,
            store,
            schedule,
            surroundings,
            runner,
            progress,
            room: Room::default(),
            account: Account::default(),
            running: BTreeMap::new(),
            begin: Instant::now(),
            summary,
            is_store_lost: false,
        }
    }

    /// Waits also for a job that an earlier batch has started.
    pub fn join(&mut self, number: usize, survivor: Survivor) {
        let Some(job) = self.jobs.get(&number) else { return };
        let (pid, command) = (survivor.process.pid, &job.line.command);
        note!("symbiont: line {number} still runs (process {pid}): {command}");
        let now_s = self.begin.elapsed().as_secs_f64();
        self.account.start(number as u64, &job.identity.key, now_s);
        let started_s = (survivor.begun.began_s - since_1970().as_secs_f64()).min(0.0) + now_s;
        let reason = "an earlier batch started it".to_owned();
        self.running.insert(number, Running { started_s, reason, is_watched: false });
        self.runner.join(number, survivor);
    }

    /// Until all have ended, or the end was asked for.
    pub fn run(mut self, mut waiting: Vec<Waiting>) -> anyhow::Result<Summary> {
        let total = waiting.len();
        loop {
            if self.runner.interrupted().is_none() {
                self.start_next(&mut waiting, total);
            }
            let is_idle = self.runner.is_idle();
            let is_over = waiting.is_empty() || self.runner.interrupted().is_some();
            if is_idle && (is_over || self.room.gives_up(is_idle, Instant::now())) {
                break;
            }
            let event = self.runner.wait(&self.progress, self.room.pause());
            if let Event::Ended(number, ended) = event.context("cannot wait for the jobs")? {
                self.end(number, &ended);
            }
        }
        self.summary.makespan_s = self.begin.elapsed().as_secs_f64();
        self.summary.not_started = waiting.len();
        self.summary.interrupted = self.runner.interrupted();
        self.summary.missing = self.room.missing().map(str::to_owned);
        self.summary.jobs.sort_by_key(|job| job.line);
        Ok(self.summary)
    }

    fn start_next(&mut self, waiting: &mut Vec<Waiting>, total: usize) {
        let of = |number: &usize| Some(self.jobs.get(number)?.identity.key.clone());
        let running: Vec<_> = self.running.keys().filter_map(of).collect();
        for start in self.schedule.next(waiting, &running) {
            let place = total - waiting.len() + 1;
            match self.start(&start, place, total) {
                Ok(()) => waiting.retain(|job| job.number != start.number),
                // There is none for another one either.
                Err(_) => break,
            }
        }
    }

    /// Starts a job; an error: there is no room to record it.
    fn start(&mut self, start: &Start, place: usize, total: usize) -> io::Result<()> {
        let Some(job) = self.jobs.get(&start.number) else { return Ok(()) };
        let (line, now_s) = (&job.line, self.begin.elapsed().as_secs_f64());
        let Start { number, reason, .. } = start;
        let begun = Begun {
            job: job.digest.clone(),
            name: self.surroundings.name(*number),
            began_s: (since_1970().as_secs_f64() * 1e3).round() / 1e3,
        };
        let started = match self.surroundings.output(line) {
            Ok(output) => match self.progress.begin(&begun) {
                Ok(at) => {
                    let keeper = self.surroundings.keeper(line, output, at);
                    keeper.and_then(|keeper| self.runner.start(*number, keeper, &self.progress, at))
                }
                Err(error) => return Err(self.is_out_of_room(error, true)),
            },
            Err(error) if room::is_missing(&error) => {
                return Err(self.is_out_of_room(error, false));
            }
            Err(error) => Err(error),
        };
        self.room.is_there();
        if let Err(error) = started {
            note!("symbiont: line {number} cannot be started: {error}");
            self.summary.jobs.push(JobSummary {
                line: *number,
                command: line.command.clone(),
                exit_code: Some(126),
                started_s: now_s,
                elapsed_s: 0.0,
                cpu_s: 0.0,
                reason: reason.clone(),
            });
            return Ok(());
        }
        note!("symbiont: [{place}/{total}] starts line {number}: {}: {reason}", line.command);
        self.account.start(*number as u64, &job.identity.key, now_s);
        let (started_s, reason) = (now_s, reason.clone());
        self.running.insert(*number, Running { started_s, reason, is_watched: true });
        Ok(())
    }

    fn is_out_of_room(&mut self, error: io::Error, of_progress: bool) -> io::Error {
        let path = if of_progress { self.progress.name() } else { "the folder of --output".into() };
        if let Some(said) = self.room.is_out(&error, &path) {
            note!("symbiont: {said}");
        }
        error
    }

    fn end(&mut self, number: usize, ended: &Ended) {
        let ran = self.account.end(number as u64, self.begin.elapsed().as_secs_f64());
        let (Some(job), Some(ran), Some(running)) =
            (self.jobs.get(&number), ran, self.running.remove(&number))
        else {
            return;
        };
        let Ran { co_runners, .. } = ran;
        // As its keeper measured it.
        let &Ended { exit_code, elapsed_s, cpu_s, .. } = ended;
        note!("symbiont: line {number} {} after {elapsed_s:.1} s", summary::words(exit_code));
        self.summary.cpu_s += cpu_s;
        self.summary.jobs.push(JobSummary {
            line: number,
            command: job.line.command.clone(),
            exit_code,
            started_s: running.started_s,
            elapsed_s,
            cpu_s,
            reason: running.reason,
        });
        // One that failed or was stopped did not do its work; what ran next to one that another batch
        // started is not known.
        if ended.is_well() && running.is_watched {
            let ended_s = since_1970().as_secs();
            let (work, error_s, cpu_s) = (job.work, START_S, Some(cpu_s));
            let run = Run { ended_s, work, elapsed_s, error_s, cpu_s, co_runners };
            let Identity { key, name } = &job.identity;
            match self.store.update(|known| known.add_run(key, name, run)) {
                Ok(known) => self.schedule.learn(known),
                Err(error) if !self.is_store_lost => {
                    self.is_store_lost = true;
                    note!("symbiont: what line {number} has shown is lost: {error}");
                }
                Err(_) => {}
            }
        }
    }
}

fn since_1970() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}
