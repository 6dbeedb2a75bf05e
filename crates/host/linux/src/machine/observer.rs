//! This host as a [`Machine`] that is only watched.
//!
//! # Problem
//! What would a policy do? That can be asked on any machine, for the programs of any user that may be watched,
//! and also while another manager places them. [`LinuxMachine`] does not fit: it takes a lock and a journal,
//! which one manager at a time may have.
//!
//! # Approach
//! [`Observer`] reads threads and counters as [`LinuxMachine`] does, but has no actuator: it answers each move
//! with [`Outcome::NotEnforced`]. It says what could be enforced on this machine, so that a policy decides as it
//! would for a manager. A thread's allowed CPUs are the mask that it has, read each 0.75 s.
//!
//! # Properties
//! - Nothing is written and nothing is changed (`an_observer_changes_nothing`).
//! - A thread that ends is in no further sample (`an_observer_samples_threads_until_they_end`).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use rustix::process::Pid;
use symbiont_machine::{
    Lifecycle, Machine, Move, Outcome, Program, ProgramId, Sample, Signal, Signals, Support,
    ThreadId, ThreadSample, Timestamp,
};
use symbiont_topology::{CpuSet, HostTopology, Topology};

use super::counter::Counter;
use super::quantum_timer::{Early, QuantumTimer, Woken};
use super::start::Starts;
use super::{CountOptions, LinuxError, LinuxMachine, REFRESH, Wait, settling};
use crate::actuate::{Abilities, Cgroups, Privilege, affinity, loaded_scheduler};
use crate::cookies::Cookies;
use crate::launch::Wake;
use crate::observe::{Haste, Observed, Scheduling, WatchError, WatchOptions, Watcher};
use crate::online::Online;

/// This host, watched.
pub struct Observer<W> {
    host: HostTopology,
    support: Support,
    watcher: Watcher,
    counter: Counter,
    kept_open: Option<usize>,
    waiter: W,
    timer: QuantumTimer,
    online: Online,
    programs: Vec<Program>,
    allowed: BTreeMap<ThreadId, Arc<CpuSet>>,
    refreshed: Timestamp,
    starts: Starts,
    cookies: Cookies,
    ended: bool,
}

impl<W: Wait> Observer<W> {
    /// Starts to watch; nothing is enrolled yet. `waiter` lets time pass.
    ///
    /// # Errors
    /// When threads cannot be watched.
    pub fn new(
        host: HostTopology,
        watch: WatchOptions,
        counting: CountOptions,
        waiter: W,
    ) -> Result<Self, WatchError> {
        let kept_open = watch.kept_open;
        let watcher = Watcher::start(watch, Box::new(()))?;
        // No child inherits anything that would have to be undone.
        watcher.hurry(Haste::None);
        let grouping = Cgroups::discover(&host).grouping();
        let (privilege, scheduler) = (Privilege::current(), loaded_scheduler());
        let abilities =
            Abilities::new(host.cpus().len(), privilege, grouping, scheduler.as_deref());
        let support = Support {
            signals: BTreeMap::from([(Signal::RunStates, watcher.run_states())]),
            affinity: abilities.affinity,
            boost: abilities.boost,
            idle_class: abilities.idle_class,
            scheduler: Support::no_scheduler(),
            enrolment: watcher.enrolment(),
        };
        Ok(Self {
            host,
            support,
            watcher,
            counter: Counter::new(counting),
            kept_open,
            waiter,
            timer: QuantumTimer::default(),
            online: Online::open(),
            programs: Vec::new(),
            allowed: BTreeMap::new(),
            refreshed: Timestamp::default(),
            starts: Starts::default(),
            cookies: Cookies::new(),
            ended: false,
        })
    }

    /// Begins a program without processes.
    pub fn add_program(&mut self, name: &str) -> ProgramId {
        let next = self.programs.last().map_or(0, |last| last.id.0 + 1);
        self.programs.push(Program::new(ProgramId(next), name));
        ProgramId(next)
    }

    /// Watches a process with all its threads and descendants as part of a program.
    ///
    /// # Errors
    /// When there is no such process, or it belongs to another program.
    pub fn enrol_in(&mut self, program: ProgramId, process: u32) -> Result<(), WatchError> {
        self.watcher.enrol(program, process)
    }

    /// The program in which a process is watched.
    #[must_use]
    pub fn program_of(&self, process: u32) -> Option<ProgramId> {
        self.watcher.program_of(process)
    }

    fn follow_topology(&mut self) {
        if self.online.now().is_some_and(|online| online != self.host.cpus()) {
            // A tree that changes while it is read makes no sense: the next sample reads it again.
            if let Ok(host) = self.host.read_again() {
                self.host = host;
            }
        }
    }

    fn allowed(&mut self, thread: ThreadId) -> Option<Arc<CpuSet>> {
        if let Some(known) = self.allowed.get(&thread) {
            return Some(Arc::clone(known));
        }
        let number = i32::try_from(thread.thread).ok().and_then(Pid::from_raw)?;
        let cpus = Arc::new(affinity::get(Some(number)).ok()?);
        self.allowed.insert(thread, Arc::clone(&cpus));
        Some(cpus)
    }

    /// None of a thread that has ended meanwhile.
    fn thread(&mut self, thread: &Observed) -> Option<ThreadSample> {
        let allowed = self.allowed(thread.id)?;
        let method = self.watcher.method();
        let lifecycle = match thread.scheduling {
            Scheduling::Usual => {
                settling::lifecycle(thread, false, &self.timer, method, &self.starts)
            }
            Scheduling::Idle | Scheduling::Ext | Scheduling::Special => Lifecycle::Special,
        };
        Some(ThreadSample {
            kept: false,
            id: thread.id,
            program: thread.program,
            state: thread.state,
            run_time: thread.run_time,
            wait_time: thread.wait_time,
            switches: thread.switches,
            cpu: thread.cpu,
            allowed,
            lifecycle,
            cookie: self.cookies.of(thread.id),
            counts: Vec::new(),
        })
    }
}

impl<W: Wait> Machine for Observer<W> {
    type Error = LinuxError;

    fn topology(&self) -> &Topology {
        &self.host
    }

    fn support(&self) -> &Support {
        &self.support
    }

    fn measure(&mut self, signals: &Signals) {
        let now = LinuxMachine::<W>::now();
        self.support.signals.extend(self.counter.measure(signals, now));
        let files = [self.kept_open, self.counter.files()];
        self.watcher.keep_open(files.into_iter().flatten().min());
    }

    fn sample(&mut self) -> Result<Sample, LinuxError> {
        let observed = self.watcher.read()?;
        let at = LinuxMachine::<W>::now();
        self.starts.note(at, &observed);
        self.cookies.begin(at);
        self.follow_topology();
        if at.since(self.refreshed) >= REFRESH {
            self.allowed.clear();
            self.refreshed = at;
        }
        self.timer.sampled(at, std::iter::empty());
        let mut threads: Vec<ThreadSample> =
            observed.iter().filter_map(|thread| self.thread(thread)).collect();
        let (counting, ended) = self.counter.take(at, &mut threads);
        Ok(Sample { at, threads, programs: self.programs.clone(), counting, ended })
    }

    fn acts(&self) -> bool {
        false
    }

    fn apply(&mut self, moves: &[Move]) -> Result<Vec<Outcome>, LinuxError> {
        Ok(vec![Outcome::NotEnforced; moves.len()])
    }

    fn wait(&mut self, quantum: Duration) -> Result<(), LinuxError> {
        let woken = self.timer.wait(&mut self.waiter, quantum, Early::default());
        if let Woken::By(Wake::Finish | Wake::Terminate) = woken.map_err(LinuxError::Wait)? {
            self.ended = true;
        }
        Ok(())
    }

    fn ended(&self) -> bool {
        self.ended
    }
}
