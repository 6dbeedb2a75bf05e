//! This host as a [`Machine`]: it watches by [`crate::observe`] and acts by [`crate::actuate`].
//!
//! # Problem
//! The control loop needs one machine that it can both sample and steer. Watching and acting must agree on which
//! threads exist, even in the middle of a quantum, when a newborn has just inherited its parent's settings.
//!
//! # Approach
//! [`LinuxMachine`] adopts each thread when it first reads it, and forgets it once it is gone. Its hook runs on
//! the reader's thread and informs the actuator of births and execs at once. Samples are stamped with
//! `CLOCK_MONOTONIC`. Waiting goes through [`Wait`], so that the loop also wakes when the programs end or when it
//! is asked to stop. [`crate::perf`] counts events only for signals that are needed. Threads' files and counters
//! share one budget of descriptors, so that as many threads as possible have both. CPUs that go offline or come
//! online change the topology at the next sample.
//!
//! # Terms and units
//! *Fresh*: a thread is fresh if it did not exist at the end of an earlier quantum, or until [`SETTLE`] and
//! several quanta have passed since it last forked a process or its process last exec'd (2 s for a fork where
//! births are found by scanning); for an ordinary user also while its process makes others, or has run its
//! program for less than 2 s. *Starting*: not fresh, but its process has neither run for some 200 ms since it was
//! made or exec'd, nor existed for 2 s not counting wait time. *Settled*: all others. *Lateness*: from the
//! planned moment to the wake-up of the loop.
//!
//! # Properties
//! - Needed events are counted, and no others (`only_what_is_needed_is_counted`,
//!   `touched_pages_are_faults_of_their_thread`, `an_ended_thread_is_reported_once_with_its_last_counts`).
//! - What cannot be counted is absent with the reason (`a_missing_signal_is_reported_with_its_reason`,
//!   `a_new_thread_says_why_it_is_not_counted_yet`).
//! - Files and counters share 8,192 descriptors at most (`files_and_counters_share_the_descriptors`), and few
//!   are enough (`with_few_descriptors_threads_take_turns`).
//! - Samples come ordered, cumulative, with the allowed CPUs (`threads_of_a_program_are_sampled`).
//! - What was applied is restored (`what_was_applied_is_restored`).
//! - Unsettled threads are found (`a_thread_that_forked_of_late_is_not_settled`,
//!   `a_start_is_over_after_a_time_of_running`,
//!   `a_sleeper_is_past_its_start_after_a_while_and_a_waiter_is_not`).
//! - After an exec a placed thread is restored (`a_placed_thread_that_execs_is_restored_and_still_known`).

mod cost;
mod counter;
mod hook;
mod hotplug;
mod insisting;
mod kept;
mod observer;
mod options;
mod own_cpus;
mod programs;
mod quantum_timer;
mod release;
mod settling;
mod shortages;
mod start;
mod survivors;
mod ticker;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::time::Duration;

use rustix::fd::BorrowedFd;
use rustix::process::Pid;
use symbiont_machine::{
    Lifecycle, Machine, Move, Outcome, Placement, Program, ProgramId, RunState, Sample, Signal,
    Signals, Support, ThreadId, ThreadSample, Timestamp,
};
use symbiont_topology::{CpuSet, HostTopology, Topology};

pub use cost::Cost;
pub use counter::CountOptions;
use counter::Counter;
pub(crate) use hook::Hook;
use insisting::{Insisting, runs_on, sleeps};
use kept::Kept;
pub use observer::Observer;
pub use options::{Keeping, LinuxError, MachineOptions};
use own_cpus::OwnCpus;
use quantum_timer::{Early, QuantumTimer, Woken};
pub use release::Living;
use release::Releases;
pub use settling::SETTLE;
use start::Starts;
use survivors::Survivors;
pub use ticker::Lateness;

pub use symbiont_ext::Statistics;

use crate::actuate::{
    Actuator, Privilege, RestoreReport, Suspect, ThreadError, ThreadKey, affinity,
};
use crate::cookies::Cookies;
use crate::launch::{Manager, Wake};
use crate::observe::{Ages, Haste, Losses, Method, Observed, PAUSE, Scheduling, Watcher};
use crate::online::Online;
use crate::switches::{Alarm, Member, SwitchError};

/// How long a process of an ordinary user has to be there, without making another one, before
/// it is placed: most that make processes do so early, and the first child can become another
/// user's before it is restored.
const UNFORKED: Duration = Duration::from_secs(2);
/// The longest pause where the kernel cannot wait.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// How often cpusets, scheduling groups and applied masks are read again: with a quantum of 100 ms, a changed cpuset
/// is followed within a second.
const REFRESH: Duration = Duration::from_millis(750);

/// Lets time pass, and reports when the loop should end.
pub trait Wait {
    /// Sleeps for this long, or until something happens.
    ///
    /// # Errors
    /// When the kernel cannot wait.
    fn wait(&mut self, timeout: Duration) -> io::Result<Wake>;

    /// The same, but also until one of `bells` is readable ([`Wake::Bell`]). An implementation that cannot listen
    /// to them just sleeps on.
    ///
    /// # Errors
    /// When the kernel cannot wait.
    fn wait_or(&mut self, timeout: Duration, bells: &[BorrowedFd<'_>]) -> io::Result<Wake> {
        let _ = bells;
        self.wait(timeout)
    }
}

impl Wait for Manager {
    fn wait(&mut self, timeout: Duration) -> io::Result<Wake> {
        Self::wait(self, timeout)
    }

    fn wait_or(&mut self, timeout: Duration, bells: &[BorrowedFd<'_>]) -> io::Result<Wake> {
        Self::wait_or(self, timeout, bells)
    }
}

/// This host as a machine that can be sampled and steered.
pub struct LinuxMachine<W> {
    host: HostTopology,
    support: Support,
    watcher: Watcher,
    actuator: Actuator,
    counter: Counter,
    /// Most threads whose files the user wants kept open.
    kept_open: Option<usize>,
    waiter: W,
    timer: QuantumTimer,
    online: Online,
    /// Masks that are applied no more; the loop has not asked for them yet.
    lapsed: Vec<(Move, Outcome)>,
    programs: Vec<Program>,
    /// The number of the next program.
    next_program: u32,
    /// The threads of the last sample, in order.
    known: Vec<ThreadKey>,
    /// Those of them that may be placed.
    settled: BTreeMap<ThreadId, ProgramId>,
    /// What each process had run at the last sample, in order.
    last_ran: Vec<(u32, Duration)>,
    starts: Starts,
    cookies: Cookies,
    /// May it place threads that became another user's?
    places_all: bool,
    refreshed: Timestamp,
    /// Time from one sample to the next, as far as that is known.
    quantum: Option<Duration>,
    thread_quanta: u64,
    unreadable: u64,
    survivors: Survivors,
    insisting: Insisting,
    kept: Kept,
    own_cpus: OwnCpus,
    releases: Releases,
    roots_ended: bool,
    terminated: bool,
    ended: bool,
}

impl<W: Wait> LinuxMachine<W> {
    /// Begins a journal and starts to watch; nothing is enrolled yet. `waiter`
    /// lets time pass.
    ///
    /// # Errors
    /// When no journal can be kept or threads cannot be watched; `waiter` is
    /// given back.
    pub fn new(
        host: HostTopology,
        options: MachineOptions,
        waiter: W,
    ) -> Result<Self, (LinuxError, W)> {
        let (kept_open, counter) = (options.watch.kept_open, Counter::new(options.counting));
        let started = Actuator::new(&host, &options.state_dir).map_err(LinuxError::from).and_then(
            |actuator| {
                let hook = Box::new(Hook(actuator.clone()));
                Ok((Watcher::start(options.watch, hook)?, actuator))
            },
        );
        let (watcher, actuator) = match started {
            Ok(started) => started,
            Err(error) => return Err((error, waiter)),
        };
        let kept = Kept::start(options.keeping);
        let abilities = actuator.abilities();
        let support = Support {
            signals: BTreeMap::from([(Signal::RunStates, watcher.run_states())]),
            affinity: abilities.affinity,
            boost: abilities.boost,
            idle_class: abilities.idle_class,
            enrolment: watcher.enrolment(),
            scheduler: kept.ability(),
        };
        Ok(Self {
            host,
            support,
            watcher,
            actuator,
            counter,
            kept_open,
            waiter,
            timer: QuantumTimer::default(),
            online: Online::open(),
            lapsed: Vec::new(),
            programs: Vec::new(),
            next_program: 0,
            known: Vec::new(),
            settled: BTreeMap::new(),
            last_ran: Vec::new(),
            starts: Starts::default(),
            cookies: Cookies::new(),
            places_all: Privilege::current().may_place_all(),
            refreshed: Timestamp::default(),
            quantum: None,
            thread_quanta: 0,
            unreadable: 0,
            survivors: Survivors::default(),
            insisting: Insisting::default(),
            kept,
            own_cpus: OwnCpus::default(),
            releases: Releases::default(),
            roots_ended: false,
            terminated: false,
            ended: false,
        })
    }

    /// Enrols a process with all its threads and descendants, as a program of
    /// its own.
    ///
    /// # Errors
    /// When there is no such process, or it is enrolled already.
    pub fn enrol(&mut self, name: &str, process: u32) -> Result<ProgramId, LinuxError> {
        let id = self.add_program(name);
        if let Err(error) = self.enrol_in(id, process) {
            self.programs.pop();
            return Err(error);
        }
        Ok(id)
    }

    /// The enrolled programs.
    #[must_use]
    pub fn programs(&self) -> &[Program] {
        &self.programs
    }

    /// How births are found.
    #[must_use]
    pub fn method(&self) -> &Method {
        self.watcher.method()
    }

    /// What was lost in watching, and made good.
    #[must_use]
    pub fn losses(&self) -> Losses {
        self.watcher.losses()
    }

    /// How many threads could not be adopted although they were alive.
    #[must_use]
    pub fn unreadable(&self) -> u64 {
        self.unreadable
    }

    /// How many threads could not be restored when they should have been, because they had become another user's.
    #[must_use]
    pub fn slipped(&self) -> u64 {
        self.actuator.slipped()
    }

    /// Masks that programs took over from us, undone since the last call.
    #[must_use]
    pub fn suspects(&self) -> Vec<Suspect> {
        self.actuator.suspects()
    }

    /// Masks since the last call that stay, although their programs may have read them during a nudge.
    #[must_use]
    pub fn doubts(&self) -> Vec<Suspect> {
        self.actuator.doubts()
    }

    /// How late the loop woke so far.
    #[must_use]
    pub fn lateness(&self) -> &Lateness {
        self.timer.lateness()
    }

    /// From now on wakes not only at the end of a quantum, but soon after a
    /// program's number of ready threads crosses the threshold.
    ///
    /// # Errors
    /// When the scheduler's tracepoints cannot be read; nothing has changed then.
    pub fn set_alarm(&mut self, threshold: f64) -> Result<(), SwitchError> {
        self.timer.set_alarm(Alarm::start(&self.host.cpus(), threshold)?);
        Ok(())
    }

    /// The hardware threads that these processes may use now; all that are online if none of them lives.
    #[must_use]
    pub fn reach(&self, processes: &[u32]) -> CpuSet {
        let number = |process: &u32| i32::try_from(*process).ok().and_then(Pid::from_raw);
        let all_allowed =
            processes.iter().filter_map(number).filter_map(|pid| affinity::get(Some(pid)).ok());
        let reach = all_allowed.fold(CpuSet::new(), |reach, allowed| reach.union(&allowed));
        let online = self.host.cpus();
        let reach = reach.intersection(&online);
        if reach.is_empty() { online } else { reach }
    }

    /// How often the alarm was heard; none if there is no alarm.
    #[must_use]
    pub fn alarms(&self) -> Option<u64> {
        self.timer.heard()
    }

    /// Did managing end while programs still lived: by a signal, or to stay within the limit of CPU time?
    #[must_use]
    pub fn was_terminated(&self) -> bool {
        self.terminated
    }

    /// What managing cost so far.
    #[must_use]
    pub fn cost(&self) -> Cost {
        Cost::now(self.thread_quanta)
    }

    /// The clock that lets time pass.
    pub fn waiter_mut(&mut self) -> &mut W {
        &mut self.waiter
    }

    /// Restores everything that is still changed; gives back the waiter.
    pub fn restore_all(mut self) -> (RestoreReport, W) {
        self.keep_off(&Placement::new());
        // No newborn may be given anything while things are restored.
        drop(self.watcher);
        let report = self.actuator.restore_all();
        // No thread is left to it: it can go.
        drop(self.kept);
        (report, self.waiter)
    }

    fn now() -> Timestamp {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        let seconds = u64::try_from(now.tv_sec).unwrap_or_default();
        Timestamp(seconds * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap_or_default())
    }

    /// What of a thread may be set without surprise.
    fn lifecycle(&self, at: Timestamp, thread: &Observed, parents: &BTreeSet<u32>) -> Lifecycle {
        let is_idle = || self.actuator.has_set_idle(&thread.id);
        match thread.scheduling {
            Scheduling::Usual => {}
            Scheduling::Idle if is_idle() => {}
            Scheduling::Ext if self.actuator.has_set_ext(&thread.id) => {}
            Scheduling::Idle | Scheduling::Ext | Scheduling::Special => return Lifecycle::Special,
        }
        let process = thread.id.process;
        let may_fork = parents.contains(&process)
            || !(self.places_all || self.starts.lasts(process, at, UNFORKED));
        settling::lifecycle(thread, may_fork, &self.timer, self.watcher.method(), &self.starts)
    }

    /// Looks at the threads that are insisted on.
    fn look(&mut self) {
        let away = self.insisting.away(runs_on, sleeps);
        if !away.is_empty() {
            self.watcher.hurry(Haste::AtOnce);
            self.insisting.count(&self.actuator.apply_all(&away));
        }
    }

    /// Reports to the actuator which processes compete: processes that run or ran since the
    /// last sample.
    fn report_contenders(&mut self, observed: &[Observed]) {
        let mut ran = Vec::with_capacity(self.last_ran.len());
        let mut busy = BTreeSet::new();
        for threads in observed.chunk_by(|a, b| a.id.process == b.id.process) {
            let Some(process) = threads.first().map(|thread| thread.id.process) else { continue };
            let sum: Duration = threads.iter().map(|thread| thread.run_time).sum();
            let last = self.last_ran.binary_search_by_key(&process, |(process, _)| *process);
            let before = last.ok().and_then(|at| self.last_ran.get(at));
            // A process too young to compare may compete as well.
            let grew = before.is_none_or(|(_, before)| *before < sum);
            if grew || threads.iter().any(|thread| thread.state == RunState::Runnable) {
                busy.insert(process);
            }
            ran.push((process, sum));
        }
        self.actuator.contend(busy);
        self.last_ran = ran;
    }
}

/// Since the last read but one, and not before an exec.
fn has_just_forked(ages: &Ages) -> bool {
    ages.forked.is_some_and(|forked| forked <= 1 && ages.execed.is_none_or(|exec| forked < exec))
}

impl<W: Wait> Machine for LinuxMachine<W> {
    type Error = LinuxError;

    fn topology(&self) -> &Topology {
        &self.host
    }

    fn support(&self) -> &Support {
        &self.support
    }

    /// What is needed beyond run states is counted, and reported in
    /// [`support`](Machine::support), from now on.
    fn measure(&mut self, signals: &Signals) {
        self.support.signals.extend(self.counter.measure(signals, Self::now()));
        let files = [self.kept_open, self.counter.files()];
        self.watcher.keep_open(files.into_iter().flatten().min());
    }

    fn sample(&mut self) -> Result<Sample, LinuxError> {
        if self.roots_ended {
            self.survivors.expect();
        }
        let mut observed = self.watcher.read()?;
        let at = Self::now();
        self.take_released(&mut observed);
        self.starts.note(at, &observed);
        self.cookies.begin(at);
        let is_changed = self.follow_topology();
        if is_changed || at.since(self.refreshed) >= REFRESH {
            self.actuator.refresh()?;
            self.refreshed = at;
            self.lapsed.extend(self.actuator.lapsed());
        }
        if is_changed {
            self.support.affinity = self.actuator.abilities().affinity;
        }
        let members = observed.iter().map(|thread| Member {
            thread: thread.id.thread,
            program: thread.program,
            ready: thread.state == RunState::Runnable,
        });
        self.timer.sampled(at, members);
        let mut threads = Vec::with_capacity(observed.len());
        for thread in observed.iter().filter(|thread| has_just_forked(&thread.ages)) {
            self.actuator.forked(thread.id.process);
        }
        let parents = self.actuator.parents();
        let all_allowed = self.actuator.all_allowed(observed.iter().map(|thread| &thread.id));
        for (thread, allowed) in observed.iter().zip(all_allowed) {
            let allowed = match allowed {
                Some(allowed) => allowed,
                None => match self.actuator.adopt(&thread.id) {
                    Ok(allowed) => allowed,
                    Err(error) => {
                        self.unreadable += u64::from(!matches!(error, ThreadError::Gone(_)));
                        continue;
                    }
                },
            };
            if thread.scheduling != Scheduling::Ext {
                self.kept.found_outside(&thread.id, &self.actuator);
            }
            threads.push(ThreadSample {
                id: thread.id,
                program: thread.program,
                state: thread.state,
                run_time: thread.run_time,
                wait_time: thread.wait_time,
                switches: thread.switches,
                cpu: thread.cpu,
                allowed,
                lifecycle: self.lifecycle(at, thread, &parents),
                kept: self.kept.takes(&thread.id),
                cookie: self.cookies.of(thread.id),
                counts: Vec::new(),
            });
        }
        self.kept.retain(&threads);
        self.report_contenders(&observed);
        // They act or not depending on which processes compete now.
        let abilities = self.actuator.abilities();
        (self.support.boost, self.support.idle_class) = (abilities.boost, abilities.idle_class);
        // A thread that replaced its program has another id and the same key.
        let alive: Vec<ThreadKey> = threads.iter().map(|thread| (&thread.id).into()).collect();
        for gone in self.known.iter().filter(|known| alive.binary_search(known).is_err()) {
            self.actuator.forget(gone);
        }
        self.known = alive;
        if !self.actuator.is_anything_applied() {
            let soon = self.quantum.is_some_and(|quantum| quantum <= PAUSE);
            self.watcher.hurry(if soon { Haste::None } else { Haste::Soon });
        }
        self.thread_quanta += threads.len() as u64;
        if self.roots_ended {
            let processes = observed.chunk_by(|a, b| a.id.process == b.id.process);
            self.survivors.note(processes.filter_map(|threads| Some(threads.first()?.id.process)));
            self.ended |= observed.is_empty();
        }
        let settled = threads.iter().filter(|thread| thread.lifecycle.is_settled());
        self.settled = settled.map(|thread| (thread.id, thread.program)).collect();
        let (counting, ended) = self.counter.take(at, &mut threads);
        Ok(Sample { at, threads, programs: self.programs.clone(), counting, ended })
    }

    fn lapsed(&mut self) -> Vec<(Move, Outcome)> {
        std::mem::take(&mut self.lapsed)
    }

    fn apply(&mut self, moves: &[Move]) -> Result<Vec<Outcome>, LinuxError> {
        // From here on newborns may inherit what is not meant for them.
        self.watcher.hurry(Haste::AtOnce);
        Ok(self.actuator.apply_all(moves))
    }

    fn keep(&mut self, placement: &Placement) {
        let Self { kept, actuator, programs, .. } = self;
        kept.keep(placement, &self.settled, programs, actuator);
        self.support.scheduler = kept.ability();
        self.keep_off(placement);
    }

    fn insist(&mut self, on: Vec<(ThreadId, CpuSet)>) -> u64 {
        self.insisting.begin(on)
    }

    fn wait(&mut self, quantum: Duration) -> Result<(), LinuxError> {
        self.quantum = Some(quantum);
        if self.timer.begins_quantum() {
            self.survivors.quantum();
        }
        let wake = loop {
            let within = self.survivors.within();
            let look = self.insisting.within();
            let early = Early { bell: self.survivors.bell(), within, look };
            let woken = self.timer.wait(&mut self.waiter, quantum, early).inspect_err(|_| {
                // Or else a loop that goes on would not pause at all.
                std::thread::sleep(quantum.min(LONGEST_PAUSE));
            });
            match woken.map_err(LinuxError::Wait)? {
                Woken::By(wake) => break wake,
                Woken::Early if self.survivors.all_ended() => return Ok(()),
                // The rest of the quantum.
                Woken::Early => {}
                Woken::Look => self.look(),
            }
        };
        match wake {
            Wake::Timeout | Wake::Bell(_) | Wake::Request => {}
            Wake::RootsEnded => self.roots_ended = true,
            Wake::Finish => self.ended = true,
            Wake::Terminate => (self.ended, self.terminated) = (true, true),
            // Its jobs live on, and so does their management.
            Wake::SupervisorGone => {}
        }
        Ok(())
    }

    fn ended(&self) -> bool {
        self.ended
    }
}
