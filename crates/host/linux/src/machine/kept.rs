//! Has a scheduler in the kernel keep threads on their targets.
//!
//! # Problem
//! A nudged thread stays where the kernel's own scheduler agrees, and a core that is kept free for a class by masks
//! is free for good. A `sched_ext` scheduler that knows the targets needs neither nudges nor masks.
//!
//! # Approach
//!
//! ```text
//! each quantum, after the moves:
//!     of each settled thread that is to be on a target, not held there by a mask, and not exempt:
//!         say where it belongs, with which partners, of which class, if that has changed;  put it into the class SCHED_EXT
//!     of each other one that was said:  take it back
//! ```
//!
//! Exempt are threads under a quota of CPU time, to which the kernel holds no thread of `SCHED_EXT`; for a while
//! those that could not be put into the class; and for good those that were taken out of it, by others or by
//! themselves. They are nudged.
//!
//! The class is a setting like others: in the journal, undone at the end, after a crash, for children and at an
//! exec. When the scheduler ends, all threads get their class back and are nudged from then on; it is loaded again
//! where it ended because CPUs came or went.
//!
//! # Properties
//! In the guests of the lab (`crates/cli/tests/lab`): threads are on their targets, no mask changes, nothing is left
//! after a kill of either side.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use symbiont_ext::{
    Ended, Placed, Report, Request, Scheduler, SchedulerError, Statistics, loader, obstacle,
};
use symbiont_machine::{
    Ability, Outcome, Placement, Program, ProgramId, Support, ThreadId, ThreadSample,
};

use super::{Keeping, LinuxMachine, Wait};
use crate::actuate::{Actuator, CpuQuotas};

/// How often what the scheduler counted is asked for.
const ASK: Duration = Duration::from_secs(1);
/// A scheduler that leaves a thread waiting for so long is given up: the kernel would end it after 30 s.
const LONGEST_WAIT: Duration = Duration::from_secs(8);
/// A loader that has not answered for so long is given up.
const LONGEST_SILENCE: Duration = Duration::from_secs(20);
/// It is loaded again at most once in this time.
const PAUSE: Duration = Duration::from_secs(5);
/// So often it is tried, as CPUs may come or go for a while.
const TRIES: u32 = 12;
/// A thread that could not be put into the class is tried again after this time.
const RETRY: Duration = Duration::from_secs(5);

/// The scheduler, and what was said to it.
#[derive(Debug)]
pub(super) struct Kept {
    keeping: Keeping,
    scheduler: Option<Scheduler>,
    /// One that is about to be loaded again.
    coming: Option<Scheduler>,
    said: BTreeMap<ThreadId, Placed>,
    /// Threads that could not be put into the class, and when.
    refused: BTreeMap<ThreadId, Instant>,
    /// Threads that were taken out of the class, by others or by themselves.
    left: BTreeSet<ThreadId>,
    statistics: Statistics,
    asked: Option<Instant>,
    answered: Instant,
    began: Instant,
    lost: Option<String>,
    again: bool,
    /// How often it was tried in vain to load it again.
    tries: u32,
    limits: Limits,
}

/// Which processes are under a quota of CPU time, as read of late.
#[derive(Debug)]
struct Limits {
    quotas: CpuQuotas,
    read: BTreeMap<u32, bool>,
    at: Instant,
}

impl Limits {
    fn new() -> Self {
        Self { quotas: CpuQuotas::discover(), read: BTreeMap::new(), at: Instant::now() }
    }

    /// The kernel holds no thread of `SCHED_EXT` to a quota.
    fn apply_to(&mut self, process: u32) -> bool {
        if self.at.elapsed() >= ASK {
            self.at = Instant::now();
            self.read.clear();
        }
        *self.read.entry(process).or_insert_with(|| !self.quotas.of(process).is_empty())
    }
}

impl Kept {
    /// Loads it, where it is wanted; where it cannot be had, threads are nudged.
    pub fn start(keeping: Keeping) -> Self {
        let (scheduler, lost) = match load(keeping) {
            Ok(scheduler) => (scheduler, None),
            Err(error) => (None, Some(error.to_string())),
        };
        Self {
            keeping,
            scheduler,
            coming: None,
            said: BTreeMap::new(),
            refused: BTreeMap::new(),
            left: BTreeSet::new(),
            statistics: Statistics::default(),
            asked: None,
            answered: Instant::now(),
            began: Instant::now(),
            lost,
            again: false,
            tries: 0,
            limits: Limits::new(),
        }
    }

    /// Does it keep threads?
    pub fn ability(&self) -> Ability {
        match (&self.scheduler, &self.lost) {
            (Some(_), _) => Ability::Full,
            (None, Some(why)) => Ability::Absent(why.clone()),
            (None, None) => Support::no_scheduler(),
        }
    }

    /// Why it is loaded no more.
    pub fn lost(&self) -> Option<&str> {
        self.lost.as_deref()
    }

    /// The processes that have loaded it, or are about to.
    pub fn loaders(&self) -> impl Iterator<Item = u32> {
        self.scheduler.iter().chain(&self.coming).map(Scheduler::process)
    }

    /// What it did so far.
    pub fn statistics(&self) -> Option<&Statistics> {
        self.scheduler.is_some().then_some(&self.statistics)
    }

    /// Would it keep the thread on its target, once it has one?
    pub fn takes(&mut self, thread: &ThreadId) -> bool {
        self.scheduler.is_some()
            && !self.left.contains(thread)
            && !self.refused.contains_key(thread)
            // In full mode all are scheduled by it anyway.
            && (self.keeping == Keeping::SchedExtFull || !self.limits.apply_to(thread.process))
    }

    /// A thread was seen in another class, perhaps before it was put into this one: if it was, it was taken out.
    pub fn found_outside(&mut self, thread: &ThreadId, actuator: &Actuator) {
        let is_partial = self.keeping == Keeping::SchedExt;
        if is_partial && self.said.contains_key(thread) && !actuator.is_of_ext(thread) {
            self.left.insert(*thread);
        }
    }

    /// Forgets what is known of threads that are gone; these live.
    pub fn retain(&mut self, living: &[ThreadSample]) {
        if !self.left.is_empty() {
            let living: BTreeSet<ThreadId> = living.iter().map(|thread| thread.id).collect();
            self.left.retain(|id| living.contains(id));
        }
    }

    /// Says where threads belong now.
    pub fn keep(
        &mut self,
        placement: &Placement,
        settled: &BTreeMap<ThreadId, ProgramId>,
        programs: &[Program],
        actuator: &Actuator,
    ) {
        if self.coming.is_some() {
            self.look_whether_loaded();
        } else if self.scheduler.is_none() && self.again && self.began.elapsed() >= PAUSE {
            self.load_again();
        }
        if self.scheduler.is_none() {
            return;
        }
        self.refused.retain(|id, at| settled.contains_key(id) && at.elapsed() < RETRY);
        if let Err(error) = self.say(placement, settled, programs, actuator) {
            self.lose(&error, actuator);
        }
    }

    fn say(
        &mut self,
        placement: &Placement,
        settled: &BTreeMap<ThreadId, ProgramId>,
        programs: &[Program],
        actuator: &Actuator,
    ) -> Result<(), SchedulerError> {
        self.listen()?;
        let class = |id: ProgramId| programs.iter().find(|known| known.id == id).map(|p| p.class);
        let mut wanted = BTreeMap::new();
        for (id, assignment) in placement.iter().filter(|(_, assignment)| !assignment.is_held()) {
            let (Some(cpus), Some(program)) = (assignment.target.cpus(), settled.get(id)) else {
                continue;
            };
            if !self.takes(id) {
                continue;
            }
            let class = class(*program).unwrap_or_default();
            // 0 is the group of threads of which nothing is said.
            let group = program.0.wrapping_add(1);
            wanted.insert(*id, Placed { thread: id.thread, cpus: cpus.clone(), group, class });
        }
        for id in
            self.said.keys().filter(|id| !wanted.contains_key(id)).copied().collect::<Vec<_>>()
        {
            self.said.remove(&id);
            // One that cannot be given back now is tried again at the end.
            let _ = actuator.set_class_ext(&id, false);
            self.ask(Request::Release(id.thread))?;
        }
        wanted.retain(|id, placed| self.said.get(id) != Some(placed));
        // At once: until all of them are known, two threads may belong on the same CPU.
        self.ask_all(wanted.values().cloned().map(Request::Place))?;
        for (id, placed) in wanted {
            // It is in the class, or it is found outside.
            if let Some(said) = self.said.get_mut(&id) {
                *said = placed;
                continue;
            }
            match actuator.set_class_ext(&id, true) {
                Outcome::Done => {
                    self.said.insert(id, placed);
                }
                // It may not be kept, or it is gone.
                outcome => {
                    self.said.remove(&id);
                    if outcome == Outcome::ExternallyChanged {
                        self.left.insert(id);
                    } else {
                        self.refused.insert(id, Instant::now());
                    }
                    self.ask(Request::Release(id.thread))?;
                }
            }
        }
        if self.asked.is_none_or(|asked| asked.elapsed() >= ASK) {
            self.asked = Some(Instant::now());
            self.ask(Request::Statistics)?;
        }
        Ok(())
    }

    fn ask(&mut self, request: Request) -> Result<(), SchedulerError> {
        self.ask_all([request].into_iter())
    }

    fn ask_all(&mut self, requests: impl Iterator<Item = Request>) -> Result<(), SchedulerError> {
        self.scheduler.as_mut().map_or(Ok(()), |scheduler| scheduler.ask(requests))
    }

    /// Takes what the scheduler reported.
    fn listen(&mut self) -> Result<(), SchedulerError> {
        let Some(scheduler) = &mut self.scheduler else { return Ok(()) };
        while let Some(report) = scheduler.report()? {
            if let Report::Statistics(statistics) = report {
                (self.statistics, self.answered) = (statistics, Instant::now());
            }
        }
        let why = if Duration::from_nanos(self.statistics.longest_wait_ns) >= LONGEST_WAIT {
            "threads that it does not schedule leave it no CPU"
        } else if self.asked.is_some() && self.answered.elapsed() >= LONGEST_SILENCE {
            "symbiont-scx does not answer"
        } else {
            return Ok(());
        };
        Err(SchedulerError::Ended(Ended { why: why.to_owned(), again: false }))
    }

    /// All threads are the kernel's own scheduler's again.
    fn lose(&mut self, error: &SchedulerError, actuator: &Actuator) {
        self.again = matches!(error, SchedulerError::Ended(ended) if ended.again);
        self.lost = Some(error.to_string());
        self.scheduler = None;
        self.statistics = Statistics::default();
        for id in std::mem::take(&mut self.said).into_keys() {
            let _ = actuator.set_class_ext(&id, false);
        }
    }

    /// Begins to load it again: threads are nudged until it is loaded.
    fn load_again(&mut self) {
        self.began = Instant::now();
        self.tries += 1;
        self.again = self.tries < TRIES;
        match begin(self.keeping) {
            Ok(scheduler) => self.coming = scheduler,
            Err(error) => self.lost = Some(error.to_string()),
        }
    }

    fn look_whether_loaded(&mut self) {
        let loaded = self.coming.as_mut().map_or(Ok(false), Scheduler::is_loaded);
        match loaded {
            Ok(false) => {}
            Ok(true) => {
                self.scheduler = self.coming.take();
                (self.lost, self.asked, self.answered) = (None, None, Instant::now());
                self.refused.clear();
                self.tries = 0;
            }
            Err(error) => {
                self.coming = None;
                self.lost = Some(error.to_string());
            }
        }
    }
}

impl<W: Wait> LinuxMachine<W> {
    /// That the scheduler in the kernel that was asked for is not loaded, and why.
    #[must_use]
    pub fn scheduler_lost(&self) -> Option<String> {
        let why = self.kept.lost()?;
        Some(format!("threads are nudged, not kept by a scheduler in the kernel: {why}"))
    }

    /// What the scheduler in the kernel did so far; none where there is none.
    #[must_use]
    pub fn scheduled(&self) -> Option<&Statistics> {
        self.kept.statistics()
    }
}

/// The scheduler, where one is wanted; this waits until it is loaded.
fn load(keeping: Keeping) -> Result<Option<Scheduler>, SchedulerError> {
    begin(keeping)?.map(Scheduler::wait).transpose()
}

/// The same, which may not be loaded yet.
fn begin(keeping: Keeping) -> Result<Option<Scheduler>, SchedulerError> {
    let arguments: &[&str] = match keeping {
        Keeping::Nudges => return Ok(None),
        Keeping::SchedExt => &[],
        Keeping::SchedExtFull => &["--full"],
    };
    let cannot = |why| SchedulerError::Ended(Ended { why, again: false });
    if let Some(why) = obstacle() {
        return Err(cannot(why));
    }
    let loader = loader().ok_or_else(|| {
        cannot("the program symbiont-scx, which loads it, is not installed".to_owned())
    })?;
    Scheduler::begin(&loader, arguments).map(Some)
}
