//! The jobs as they run.
//!
//! # Approach
//! ```text
//! until nothing runs and nothing is to start:
//!     start what the schedule chooses, unless the end was asked for or --halt is reached
//!     wait for an end, a signal, or a second where room is missing or a bar is shown
//!     a job that ended: to be tried again, or into the summary and the job log
//! ```
//! Nothing that cannot be written ends this: what begins waits for room, all else is said and goes on.

use std::collections::BTreeMap;
use std::io;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::Context;
use symbiont_jobs::{Account, CompletedRun, Identity, Observations, Store};

use super::Job;
use super::bar::{Expected, Screen, Standing, left_s};
use super::cores::Cores;
use super::halt::{Counted, Halt};
use super::job_log::JobLog;
use super::progress::Progress;
use super::record::{Begun, Ended};
use super::resume::Survivor;
use super::room::{self, Room};
use super::runner::{Event, Runner, Surroundings};
use super::schedule::{Schedule, Start, Waiting};
use super::summary::{Halted, JobSummary, Summary, words};

/// How long a job may take to start, seconds.
const START_S: f64 = 0.02;
/// How often the bar is drawn.
const TICK: Duration = Duration::from_secs(1);
/// How long jobs that --halt ends have until they are killed.
const GRACE: Duration = Duration::from_secs(5);

/// How jobs are run.
#[derive(Debug, Clone, Copy)]
pub struct Rules {
    /// So many at a time.
    pub slots: usize,
    /// Each so often, until it ends well.
    pub retries: u16,
    /// When to end early.
    pub halt: Option<Halt>,
}

/// What runs them, and what is known and kept of them.
#[derive(Debug)]
pub struct State {
    /// What is known of programs.
    pub store: Store,
    /// Which job is next.
    pub schedule: Schedule,
    /// What jobs are given.
    pub surroundings: Surroundings,
    /// Their processes.
    pub runner: Runner,
    /// Where they are recorded.
    pub progress: Progress,
    /// What is learned of those that share cores.
    pub cores: Cores,
}

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
    rules: Rules,
    jobs: BTreeMap<usize, Job>,
    state: State,
    log: Option<JobLog>,
    screen: Screen,
    waiting: Vec<Waiting>,
    running: BTreeMap<usize, Running>,
    /// How many failed in the end.
    failed: usize,
    /// How often jobs were run.
    tries: BTreeMap<usize, u16>,
    account: Account,
    room: Room,
    /// When jobs that --halt ends are killed.
    killing: Option<Instant>,
    begin: Instant,
    summary: Summary,
    /// Was it said that the store cannot be written?
    is_store_lost: bool,
}

impl Execution {
    /// Runs nothing yet.
    pub fn new(
        rules: Rules,
        jobs: BTreeMap<usize, Job>,
        state: State,
        log: Option<JobLog>,
        screen: Screen,
        skipped: usize,
    ) -> Self {
        let is_kept = state.progress.is_kept();
        let summary = Summary { skipped, is_kept, total: jobs.len(), ..Summary::default() };
        Self {
            rules,
            jobs,
            state,
            log,
            screen,
            waiting: Vec::new(),
            running: BTreeMap::new(),
            failed: 0,
            tries: BTreeMap::new(),
            account: Account::default(),
            room: Room::default(),
            killing: None,
            begin: Instant::now(),
            summary,
            is_store_lost: false,
        }
    }

    /// Waits also for a job that an earlier batch has started.
    pub fn join(&mut self, number: usize, survivor: Survivor) {
        let Some(job) = self.jobs.get(&number) else { return };
        let (pid, command) = (survivor.process.pid, job.line.text());
        self.screen.say(&format!("symbiont: line {number} still runs (process {pid}): {command}"));
        let now_s = self.begin.elapsed().as_secs_f64();
        self.account.start(number as u64, &job.identity.key, now_s);
        let started_s = (survivor.begun.began_s - since_1970().as_secs_f64()).min(0.0) + now_s;
        let reason = "an earlier batch started it".to_owned();
        self.running.insert(number, Running { started_s, reason, is_watched: false });
        *self.tries.entry(number).or_default() += 1;
        self.state.runner.join(number, survivor);
    }

    /// Until all have ended, or the end was asked for.
    pub fn run(mut self, waiting: Vec<Waiting>) -> anyhow::Result<Summary> {
        let total = waiting.len();
        self.waiting = waiting;
        loop {
            if !self.is_ending() {
                self.start_next(total);
            }
            let is_idle = self.state.runner.is_idle();
            let is_over = self.waiting.is_empty() || self.is_ending();
            if is_idle && (is_over || self.room.gives_up(is_idle, Instant::now())) {
                break;
            }
            if self.screen.has_bar() {
                self.screen.show(&self.standing());
            }
            self.hear();
            let event = self.state.runner.wait(&self.state.progress, self.pause());
            if let Event::Ended(number, ended) = event.context("cannot wait for the jobs")? {
                self.end(number, &ended);
            }
            self.halt();
        }
        self.screen.end();
        self.summary.makespan_s = self.begin.elapsed().as_secs_f64();
        self.summary.not_started = self.waiting.len();
        self.summary.interrupted = self.state.runner.interrupted();
        self.summary.missing = self.room.missing().map(str::to_owned);
        self.summary.job_log_lost = self.log.and_then(|mut log| log.finish().err());
        self.summary.jobs.sort_by_key(|job| job.line);
        Ok(self.summary)
    }

    fn is_ending(&self) -> bool {
        self.state.runner.interrupted().is_some() || self.summary.halted.is_some()
    }

    fn pause(&self) -> Option<Duration> {
        let killing = self.killing.map(|at| at.saturating_duration_since(Instant::now()));
        let tick = self.screen.has_bar().then_some(TICK);
        [self.room.pause(), killing, tick, self.state.cores.pause()].into_iter().flatten().min()
    }

    /// Asks the daemon what it has learned of the jobs that run.
    fn hear(&mut self) {
        let Self { state: State { runner, progress, cores, .. }, jobs, .. } = self;
        cores.hear(|| {
            let identity = |(process, number)| Some((process, jobs.get(&number)?.identity.clone()));
            runner.processes(progress).filter_map(identity).collect()
        });
    }

    fn start_next(&mut self, total: usize) {
        let of = |number: &usize| Some(self.jobs.get(number)?.identity.key.clone());
        let running: Vec<_> = self.running.keys().filter_map(of).collect();
        for start in self.state.schedule.next(&self.waiting, &running) {
            let is_it = |job: &Waiting| job.number == start.number;
            let Some(at) = self.waiting.iter().position(is_it) else { continue };
            let place = total.saturating_sub(self.waiting.len()) + 1;
            let job = self.waiting.remove(at);
            if self.start(&start, place, total).is_err() {
                // There is no room for another one either.
                self.waiting.insert(at, job);
                return;
            }
        }
    }

    /// Starts a job; an error: there is no room to record it.
    fn start(&mut self, start: &Start, place: usize, total: usize) -> io::Result<()> {
        let Some(job) = self.jobs.get(&start.number) else { return Ok(()) };
        let (line, now_s) = (&job.line, self.begin.elapsed().as_secs_f64());
        let Start { number, reason, .. } = start;
        let State { surroundings, runner, progress, .. } = &mut self.state;
        let begun = Begun {
            job: job.digest.clone(),
            name: surroundings.name(*number),
            began_s: (since_1970().as_secs_f64() * 1e3).round() / 1e3,
        };
        let started = match surroundings.output(line) {
            Ok(output) => match progress.begin(&begun) {
                Ok(at) => {
                    let keeper = surroundings.keeper(line, &job.identity, output, at);
                    keeper.and_then(|keeper| runner.start(*number, keeper, progress, at))
                }
                Err(error) => {
                    let path = progress.name();
                    return Err(self.is_out_of_room(error, &path));
                }
            },
            Err(error) if room::is_missing(&error) => {
                return Err(self.is_out_of_room(error, "the folder of --output"));
            }
            Err(error) => Err(error),
        };
        self.room.is_there();
        *self.tries.entry(*number).or_default() += 1;
        self.account.start(*number as u64, &job.identity.key, now_s);
        let running = Running { started_s: now_s, reason: reason.clone(), is_watched: true };
        self.running.insert(*number, running);
        match started {
            Ok(()) if !self.screen.has_all() => {}
            Ok(()) => {
                let count = self.screen.count(place, total, self.standing().left_s);
                let command = line.text();
                let said = format!("symbiont: {count} starts line {number}: {command}: {reason}");
                self.screen.say(&said);
            }
            Err(error) => {
                self.screen
                    .say_failed(&format!("symbiont: line {number} cannot be started: {error}"));
                self.end(*number, &Ended::at_once(126));
            }
        }
        Ok(())
    }

    fn is_out_of_room(&mut self, error: io::Error, path: &str) -> io::Error {
        if let Some(said) = self.room.is_out(&error, path) {
            self.screen.say(&format!("symbiont: {said}"));
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
        // As its keeper measured it.
        let &Ended { exit_code, timed_out, elapsed_s, cpu_s, .. } = ended;
        let (tries, retries) = (self.tries.get(&number).copied().unwrap_or(1), self.rules.retries);
        let is_well = ended.is_well();
        let is_tried_again = !is_well && tries < retries && !self.is_ending();
        if !is_well || self.screen.has_all() {
            let again = match is_tried_again {
                true => format!("; it is tried again ({} of {retries})", tries + 1),
                false => String::new(),
            };
            let words = words(exit_code, timed_out);
            let line = format!("symbiont: line {number} {words} after {elapsed_s:.1} s{again}");
            match is_well {
                true => self.screen.say(&line),
                false => self.screen.say_failed(&line),
            }
        }
        self.summary.cpu_s += cpu_s;
        if is_tried_again {
            self.waiting.push(job.waiting());
            return;
        }
        if let Some(log) = &mut self.log {
            let began_s = since_1970().as_secs_f64() - elapsed_s;
            if let Some(said) = log.add(number, began_s, ended, &job.line.text()) {
                self.screen.say(&format!("symbiont: {said}"));
            }
        }
        // One that failed or was stopped did not do its work; what ran next to one that another batch
        // started is not known.
        if is_well && running.is_watched {
            let (ended_s, co_runners) = (since_1970().as_secs(), ran.co_runners);
            let (work, error_s, cpu_s) = (job.work, START_S, Some(cpu_s));
            let run = CompletedRun { ended_s, work, elapsed_s, error_s, cpu_s, co_runners };
            let Identity { key, name } = &job.identity;
            let State { store, cores, .. } = &mut self.state;
            let update = |known: &mut Observations| {
                cores.add_to(known, ended_s);
                known.add_run(key, name, run);
            };
            match store.update(update) {
                Ok(known) => self.state.schedule.learn(known),
                Err(error) if !self.is_store_lost => {
                    self.is_store_lost = true;
                    let said = format!("what line {number} has shown is lost: {error}");
                    self.screen.say(&format!("symbiont: {said}"));
                }
                Err(_) => {}
            }
        }
        self.failed += usize::from(!is_well);
        self.summary.jobs.push(JobSummary {
            line: number,
            command: job.line.text().into_owned(),
            exit_code,
            timed_out,
            tries,
            started_s: running.started_s,
            elapsed_s,
            cpu_s,
            reason: running.reason,
        });
    }

    /// Ends early if it is time for that.
    fn halt(&mut self) {
        if self.killing.is_some_and(|at| at <= Instant::now()) {
            self.killing = None;
            self.state.runner.end_all();
        }
        let well = self.summary.jobs.len() - self.failed;
        let is_reached = |halt: &Halt| halt.is_reached(self.failed, well);
        let Some(halt) = self.rules.halt.filter(is_reached) else { return };
        if self.summary.halted.is_some() {
            return;
        }
        self.summary.halted = Some(match halt.counted {
            Counted::Well => Halted::Well,
            Counted::Failed | Counted::Done => Halted::Other,
        });
        if halt.is_now {
            self.state.runner.end_all();
            self.killing = Instant::now().checked_add(GRACE);
        }
    }

    fn standing(&self) -> Standing {
        let now_s = self.begin.elapsed().as_secs_f64();
        let expected =
            |job: &Waiting, ran_s| Expected { total_s: self.state.schedule.expected_s(job), ran_s };
        let mut jobs: Vec<Expected> = self.waiting.iter().map(|job| expected(job, 0.0)).collect();
        jobs.extend(self.running.iter().filter_map(|(number, running)| {
            Some(expected(&self.jobs.get(number)?.waiting(), now_s - running.started_s))
        }));
        let done = self.summary.jobs.len();
        let took_s: f64 = self.summary.jobs.iter().map(|job| job.elapsed_s).sum();
        let mean_s = (done > 0).then(|| took_s / done as f64);
        Standing {
            total: done + jobs.len(),
            done,
            failed: self.failed,
            running: self.running.len(),
            left_s: left_s(&jobs, mean_s, self.rules.slots),
        }
    }
}

fn since_1970() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}
