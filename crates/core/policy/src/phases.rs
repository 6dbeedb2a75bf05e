//! `phases`: threads in a serial phase before threads in a parallel one, and one parallel program at a time
//! before the others (Morad, Kolodny and Weiser, "Multiple multithread applications on asymmetric and symmetric
//! chip multiprocessors", 2008, section 6).
//!
//! # Problem
//! A thread that runs alone in its program holds up all of the program; with a parallel co-runner the OS gives
//! it a mere share of a hardware thread. And two programs that both want all of the machine only take it from
//! each other.
//!
//! # Approach
//! Once per quantum each program is put in a phase by its mean number of ready threads. *Parallel*: above the
//! threshold (two; 1.1 where there are only one or two hardware threads). *Serial*: not above it, with a busy
//! thread (ready for at least half of the quantum). *Idle*: without one.
//!
//! - Each busy thread of a serial program gets a core of its own and more priority (`levels`): the fastest that
//!   is free, else the core that it had last, or the one that others kept least busy; the one that became serial
//!   first chooses first. Where it has none it is boosted only, as is one whose program starts, and a single one
//!   with no thread to keep away where all cores are alike.
//! - All threads of parallel programs share the rest, or keep their allowed CPUs if nothing of it is among them.
//! - *Seniority*: where each of several parallel programs has at least as many ready threads as there are
//!   hardware threads, the one that entered its phase first is boosted, until the next one's turn comes.
//! - All others are left to the OS. Programs that Symbiont does not manage are not reckoned with, and a thread
//!   that polls while it waits looks as if it worked (`OMP_WAIT_POLICY=passive`).
//!
//! Unlike the paper, a program is all processes of a command, and the count is a mean over a quantum; the half
//! quantum of a busy thread, the order of serial ones, the timeout and a third program's seniority are ours.
//! `phases-online` adds turns (`turns`) and learned speeds (`speeds`), and raises priority less (`levels`).
//!
//! # Properties
//! - Two threads never get the same core, and no parallel thread is sent to a core that was given away unless
//!   nothing else is allowed (`cores_given_away_are_kept_free`); where a mask confines programs, that part is
//!   the machine (`programs_confined_to_a_part_of_a_machine_are_placed_as_on_one_of_that_size`).
//! - A thread keeps its core as long as nothing changes (`the_same_view_gives_the_same_placement_again`), the
//!   first the fastest (`the_first_serial_thread_keeps_the_fast_core`).
//! - At most one parallel program is boosted (`at_most_one_parallel_program_is_boosted`), and none starves
//!   (`each_of_many_parallel_programs_gets_its_turn`, `others_progress_with_an_endless_serial_program`).

mod levels;
mod seniority;
mod serial;
mod speeds;
mod states;
mod turns;

use std::collections::BTreeMap;
use std::time::Duration;

use symbiont_machine::{
    Assignment, Lifecycle, Placement, Priority, ProgramId, Signal, Support, Target, ThreadId,
};
use symbiont_topology::{Core, CpuSet, Topology};

use crate::parameter::Parameters;
use crate::view::SPECIAL;
use crate::{Entry, Finding, Kind, Parameter, Policy, Requirements, Settings, ThreadView, View};
use levels::Levels;
use seniority::Seniority;
use serial::SerialThreads;
use speeds::Speeds;

pub use seniority::Turns;
pub use states::{JointState, JointStates};

/// What a senior program gains.
const BOOST: Priority = Priority::Boosted(Phases::LEVELS);
/// Share of a quantum from which a ready thread counts as busy.
const BUSY: f64 = 0.5;

pub(crate) const ENTRY: Entry = Entry {
    name: "phases",
    summary: "gives a thread that runs alone in its program a core of its own, parallel ones the rest",
    paper: Some("Morad, Kolodny and Weiser 2008, section 6"),
    // The paper acts at each change of a thread's state; this comes close.
    quantum: Duration::from_millis(20),
    boosts: true,
    parameters: PARAMETERS,
    make: |settings| Box::new(Phases::with(settings)),
};

pub(crate) const ONLINE: Entry = Entry {
    name: "phases-online",
    summary: "as phases, and serial threads take turns on the fastest cores, with no more priority than it takes",
    paper: None,
    make: |settings| Box::new(Phases::online(settings)),
    ..ENTRY
};

pub(crate) const PARAMETERS: Parameters =
    &[&Phases::THRESHOLD, &Phases::SENIORITY, &Phases::GAINED];

/// What a program is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// More threads are ready than the threshold.
    Parallel,
    /// Not more, and at least one is busy.
    Serial,
    /// No thread is busy.
    Idle,
    /// None of its threads has been measured yet.
    Unknown,
}

/// A program's phase and the number that decided.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ProgramPhase {
    /// Its phase.
    pub phase: Phase,
    /// Its mean number of ready threads over the quantum.
    pub ready: f64,
}

/// Serial phases first.
#[derive(Debug, Clone)]
pub struct Phases {
    threshold: Option<f64>,
    /// Do serial threads take turns on the fastest cores?
    online: bool,
    /// Has the machine cores of several speeds?
    cores_differ: bool,
    serial: SerialThreads,
    levels: Levels,
    seniority: Seniority,
    states: JointStates,
    speeds: Speeds,
    /// Threads that got a core of their own at the last decision, with its hardware threads.
    owned: BTreeMap<ThreadId, CpuSet>,
}

impl Phases {
    /// Priority levels that a senior program gains and, in the paper, a serial thread.
    pub const LEVELS: u8 = 10;
    /// How long the boost stays with one of several parallel programs at most, unless
    /// [`Phases::SENIORITY`] is set.
    pub const TIMEOUT: Duration = seniority::TIMEOUT;
    /// Ready threads above which a program is parallel.
    pub const THRESHOLD: Parameter<Option<f64>> = Parameter::optional(
        "threshold",
        Kind::Positive,
        "2 where the programs may use more than two hardware threads, else 1.1",
        "Ready threads above which a program counts as parallel",
    );
    /// How long one of several parallel programs stays boosted before the next one's turn comes; with 0
    /// none is boosted.
    pub const SENIORITY: Parameter<Duration> = Parameter::new(
        "seniority",
        Kind::Duration { least: Duration::ZERO, most: Duration::from_secs(3600) },
        Self::TIMEOUT,
        "Time for which one of several parallel programs stays boosted until it is the next one's turn; \
         0s: none is boosted",
    );
    /// Priority levels that a serial thread gains.
    pub const GAINED: Parameter<Option<usize>> = Parameter::optional(
        "levels",
        Kind::Count { least: 1, most: 20 },
        "10 for phases; for others as many as make it weigh what the others have on each hardware thread, 3 to 10",
        "Priority levels (of nice) that a serial thread gains, where priorities may be raised",
    );

    /// `threshold`: ready threads above which a program is parallel; none for
    /// two, or 1.1 on machines of one or two hardware threads.
    #[must_use]
    pub fn new(threshold: Option<f64>) -> Self {
        Self::of(threshold, Self::TIMEOUT, false)
    }

    /// As published, with these settings.
    #[must_use]
    pub fn with(settings: &Settings) -> Self {
        Self::set(settings, false)
    }

    /// With turns on the fastest cores, and no more priority than it takes.
    #[must_use]
    pub fn online(settings: &Settings) -> Self {
        Self::set(settings, true)
    }

    fn set(settings: &Settings, online: bool) -> Self {
        let mut phases =
            Self::of(settings.get(&Self::THRESHOLD), settings.get(&Self::SENIORITY), online);
        if let Some(levels) = settings.get(&Self::GAINED) {
            phases.levels = Levels::new(u8::try_from(levels).ok());
        }
        phases
    }

    fn of(threshold: Option<f64>, timeout: Duration, online: bool) -> Self {
        // Serial threads take turns where no parallel program is boosted, too.
        let turns = if timeout.is_zero() { Self::TIMEOUT } else { timeout };
        Self {
            threshold,
            online,
            cores_differ: false,
            serial: SerialThreads::new(online.then_some(turns)),
            levels: Levels::new((!online).then_some(Self::LEVELS)),
            seniority: Seniority::new(timeout),
            states: JointStates::default(),
            speeds: Speeds::default(),
            owned: BTreeMap::new(),
        }
    }

    /// Threads that got a core of their own at the last decision, with its hardware threads.
    pub(crate) fn owned(&self) -> &BTreeMap<ThreadId, CpuSet> {
        &self.owned
    }

    /// Time in each joint state so far.
    #[must_use]
    pub fn joint_states(&self) -> &JointStates {
        &self.states
    }

    /// What became of the seniority boost so far.
    #[must_use]
    pub fn turns(&self) -> &Turns {
        self.seniority.turns()
    }

    /// The threshold where threads can reach these hardware threads.
    #[must_use]
    pub fn threshold(&self, reach: &CpuSet) -> f64 {
        let usual = if reach.len() > 2 { 2.0 } else { 1.1 };
        self.threshold.unwrap_or(usual)
    }

    /// The phase of each program that has threads.
    #[must_use]
    pub fn programs(&self, view: &View<'_>) -> BTreeMap<ProgramId, ProgramPhase> {
        let threshold = self.threshold(&reach(view));
        let mut programs = BTreeMap::new();
        for thread in &view.threads {
            let unknown = ProgramPhase { phase: Phase::Unknown, ready: 0.0 };
            let program = programs.entry(thread.program).or_insert(unknown);
            let Some(did) = thread.did else { continue };
            program.ready += did.ready;
            program.phase = match program.phase {
                _ if program.ready > threshold => Phase::Parallel,
                Phase::Idle | Phase::Unknown if did.ready < BUSY => Phase::Idle,
                _ => Phase::Serial,
            };
        }
        programs
    }

    /// Learns from a view, and decides about programs.
    pub fn decide<'v>(&mut self, view: &'v View<'_>) -> Decision<'v> {
        let reach = reach(view);
        let over = (view.threads.iter()).filter_map(|t| t.did).map(|did| did.over).max();
        let over = over.unwrap_or_default();
        let programs = self.programs(view);
        self.states.add(JointState::of(&programs), over);
        if self.online {
            self.speeds.learn(view, &programs);
        }
        let queue = self.serial.queue(view, &programs, &self.speeds, over);
        let given = self.serial.give_cores(view, &queue, &programs);
        self.owned = given.iter().map(|(id, core)| (*id, core.cpus.clone())).collect();

        let is_parallel = |p: &&ProgramPhase| p.phase == Phase::Parallel;
        let parallel: Vec<ProgramId> =
            programs.iter().filter(|(_, p)| is_parallel(p)).map(|(id, _)| *id).collect();
        let crowded = queue.iter().any(|t| !given.contains_key(&t.id));
        let contended =
            !crowded && programs.values().filter(is_parallel).all(|p| wants_all(p, &reach));
        let rest = given.values().fold(view.online.clone(), |rest, c| rest.difference(&c.cpus));
        let others = view.threads.iter().filter(|t| !given.contains_key(&t.id));
        let ready: f64 = others.filter_map(|t| t.did).map(|did| did.ready).sum();
        Decision {
            threshold: self.threshold(&reach),
            levels: self.levels.against(ready / rest.intersection(&reach).len().max(1) as f64),
            rest,
            serial: queue.len(),
            senior: self.seniority.turn(&parallel, contended, over),
            programs,
            given,
        }
    }
}

/// All that was decided about programs, before single threads.
pub struct Decision<'v> {
    programs: BTreeMap<ProgramId, ProgramPhase>,
    threshold: f64,
    /// Serial threads and the cores that they got.
    given: BTreeMap<ThreadId, &'v Core>,
    /// Settled serial threads, with a core or without.
    serial: usize,
    /// What is left of the machine.
    rest: CpuSet,
    senior: Option<ProgramId>,
    /// Priority levels of serial threads.
    levels: u8,
}

impl Decision<'_> {
    /// A place for each thread of the view that this was decided from.
    pub fn placement(&self, view: &View<'_>) -> Placement {
        view.threads.iter().map(|thread| (thread.id, self.assign(view, thread))).collect()
    }

    fn assign(&self, view: &View<'_>, thread: &ThreadView<'_>) -> Assignment {
        if thread.lifecycle == Lifecycle::Special {
            return Assignment::os(SPECIAL);
        }
        if thread.lifecycle == Lifecycle::Fresh {
            return Assignment::os("not settled yet: its children would inherit its urgency");
        }
        let Some(ProgramPhase { phase, ready }) = self.programs.get(&thread.program).copied()
        else {
            return Assignment::os("its program is not known");
        };
        let threshold = self.threshold;
        let why = |phase: &str, then: &str| {
            format!("{phase} phase: {ready:.2} ready threads (threshold {threshold}); {then}")
        };
        let allowed = view.allowed(thread);
        let starts = !thread.lifecycle.is_settled();
        match phase {
            Phase::Unknown => Assignment::os("not measured yet"),
            Phase::Idle => Assignment::os(format!("idle: {ready:.2} ready threads")),
            Phase::Serial if !is_busy(thread) => {
                Assignment::os(why("serial", "not busy itself, it may wake anywhere"))
            }
            Phase::Serial => {
                let (target, then) = match self.given.get(&thread.id) {
                    Some(core) => {
                        (Target::Cpus(core.cpus.intersection(&allowed)), "a core of its own")
                    }
                    None if starts => (Target::Os, "boosted; its program starts, no core yet"),
                    None if self.serial == 1 => (Target::Os, "boosted"),
                    None => (Target::Os, "no core left for it, only boosted"),
                };
                let priority = Priority::Boosted(self.levels);
                Assignment { target, priority, ..Assignment::os(why("serial", then)) }
            }
            Phase::Parallel => {
                let is_senior = self.senior == Some(thread.program);
                let (priority, turn) = match is_senior {
                    true => (BOOST, "; the senior, its turn"),
                    false => (Priority::Normal, ""),
                };
                let (target, then) = if self.given.is_empty() {
                    (Target::Os, "no core is given away".to_owned())
                } else if starts {
                    (Target::Os, "its program starts and may count its CPUs".to_owned())
                } else {
                    match allowed.intersection(&self.rest) {
                        none if none.is_empty() => {
                            (Target::Os, "no other core is allowed".to_owned())
                        }
                        rest => {
                            let then =
                                format!("shares CPU {rest}; serial threads have the other cores");
                            (Target::Cpus(rest), then)
                        }
                    }
                };
                let reason = why("parallel", &then) + turn;
                Assignment { target, priority, ..Assignment::os(reason) }
            }
        }
    }
}

impl Policy for Phases {
    fn name(&self) -> &'static str {
        if self.online { ONLINE.name } else { ENTRY.name }
    }

    /// Speeds are compared where cores differ and threads take turns on them.
    fn requirements(&self) -> Requirements {
        let compares = self.online && self.cores_differ;
        Requirements {
            optional: compares.then_some(Signal::Ipc).into_iter().collect(),
            ..Requirements::of([Signal::RunStates])
        }
    }

    fn offer(&mut self, _: &Support, topology: &Topology) -> Option<String> {
        self.cores_differ = speeds::is_asymmetric(topology);
        None
    }

    fn place(&mut self, view: &View<'_>) -> Placement {
        self.decide(view).placement(view)
    }

    fn findings(&self) -> Vec<Finding> {
        let seconds = |name: String, time: Duration| Finding::new(name, time.as_secs_f64(), "s");
        let count = |name: &str, count: u64| Finding::new(name, count as f64, "times");
        let mut findings: Vec<Finding> = (self.states.time.iter())
            .filter(|(_, time)| !time.is_zero())
            .map(|(state, time)| seconds(format!("joint state {state}"), *time))
            .collect();
        if !self.states.beyond.is_zero() {
            findings.push(seconds("other joint states".to_owned(), self.states.beyond));
        }
        findings.push(count("changes of joint state", self.states.changes));
        let turns = self.turns();
        if turns.begun > 0 {
            findings.push(count("seniority boosts", turns.begun));
            findings.push(count("seniority timeouts", turns.timed_out));
            findings.push(seconds("longest seniority boost".to_owned(), turns.longest));
        }
        for (ProgramId(program), capacity, speed) in self.speeds.iter() {
            let name = format!("serial speed of program {program} on cores of capacity {capacity}");
            findings.push(Finding::new(name, speed, "instructions/s"));
        }
        findings
    }
}

/// The hardware threads that at least one thread of the view may use.
pub(crate) fn reach(view: &View<'_>) -> CpuSet {
    let mut limits = CpuSet::new();
    // Most threads share the allowed CPUs, which are no news then.
    for thread in &view.threads {
        if !thread.allowed.is_subset(&limits) {
            limits = limits.union(thread.allowed);
        }
    }
    limits.intersection(&view.online)
}

/// Has the program a thread for each hardware thread? Its number of ready
/// threads is a mean over the quantum, so it is rounded.
fn wants_all(program: &ProgramPhase, reach: &CpuSet) -> bool {
    program.ready + 0.5 >= reach.len() as f64
}

fn is_busy(thread: &ThreadView<'_>) -> bool {
    thread.did.is_some_and(|did| did.ready >= BUSY)
}

#[cfg(test)]
mod progress_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod turns_tests;
