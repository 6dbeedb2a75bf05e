//! `activity`: threads run together whose cache activity vectors overlap least (Settle et al., section 4.3).
//!
//! # Problem
//! As on the module [`activity`](super). No processor counts by super-set, so vectors are known beforehand
//! ([`KnownActivity`]): a program's vectors are those of the interval in which it is by its retired instructions, or
//! by its CPU time and an assumed rate ([`Activity::RATE`]) where those are not counted.
//!
//! # Approach
//! - As many ready threads as hardware threads, or fewer: threads are matched so that those of a core overlap least.
//! - More: hardware threads that share caches (a core's; without SMT those of a last-level cache) run the jobs that
//!   [`choose`](super::choose) chooses, one exchange a quantum. The others are in the idle class, and run only where the chosen
//!   ones leave time. Where a machine puts no thread in the idle class, all are left to the OS.
//!
//! Where the paper is silent: residence of a thread that arrives or wakes counts from the mean of the others,
//! so that neither it nor they wait for long; each set of hardware threads that share caches has jobs of its own, about
//! equally many. Threads with other allowed CPUs are decided by themselves. All threads of a program have the
//! vectors of the one that executed most.
//!
//! # Terms and units
//! *Quantum*: the paper's sample. *Overlap*: super-sets that are active in both, each times the weight of its vector,
//! over all vectors; a program without vectors overlaps with none. The paper leaves the weights open and names the
//! intersection of L2 vectors as an example (Fig. 5). The default is ours: the L2's count alone, as where our
//! experiments set out ([`OVERLAP`]); [`Activity::OVERLAP`] sets others. A quantum of residence
//! weighs [`Activity::RESIDENCE`].
//!
//! # Properties
//! - Threads that use the same super-sets do not share a core (`threads_that_overlap_are_parted`): of the L2, unless
//!   weights are set (`vectors_count_by_their_weights`).
//! - Each of many jobs runs within [`longest_wait`](super::longest_wait) quanta (`each_job_runs_within_the_bound`),
//!   also when others arrive all the time (`arriving_jobs_starve_no_other`).
//! - Two jobs of one program are each where they are (`two_jobs_of_one_program_have_places_of_their_own`).
//! - Where the machine refuses the idle class all is left to the OS (`a_machine_without_the_idle_class_schedules_itself`).
//! - Shuffled vectors part threads no better than chance (`shuffled_vectors_part_threads_by_chance`).

mod together;
mod turns;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use symbiont_machine::{
    Ability, Placement, Priority, ProgramId, RunState, Signal, Support, ThreadId,
};
use symbiont_topology::{PuId, Topology};

use super::known::Course;
use super::{Job, KnownActivity, OVERLAP, VECTORS, Vector, Weights, score};
use crate::core_slots::{CoreSlots, Pool, pools};
use crate::{
    Entry, Kind, MissingInput, Parameter, Policy, Requirements, Settings, ThreadView, View,
};

pub(crate) const ENTRY: Entry = Entry {
    name: "activity",
    summary: "runs threads together that use different regions of their caches",
    paper: Some(
        "Settle et al., architectural support for enhanced SMT job scheduling, section 4.3",
    ),
    quantum: Duration::from_millis(100),
    boosts: false,
    parameters: &[
        &Activity::SUPER_SETS,
        &Activity::THRESHOLD,
        &Activity::OVERLAP[0],
        &Activity::OVERLAP[1],
        &Activity::OVERLAP[2],
        &Activity::OVERLAP[3],
        &Activity::OVERLAP[4],
        &Activity::OVERLAP[5],
        &Activity::RESIDENCE,
        &Activity::RATE,
    ],
    make: |settings| Box::new(Activity::new(settings)),
};

const INPUT: MissingInput = MissingInput {
    what: "activity vectors of its programs",
    option: "--vectors",
    made_by: "symbiont profile --vectors",
};

/// The policy.
#[derive(Debug, Clone)]
pub struct Activity {
    /// By program; none was given.
    courses: Option<BTreeMap<String, Course>>,
    weights: Weights,
    rate: f64,
    /// Why no thread can be put in the idle class, if so.
    no_idle_class: Option<String>,
    threads: BTreeMap<ThreadId, State>,
    quantum: u64,
    /// Quanta in a row in which no thread was in the idle class that should have been.
    unheeded: u32,
    programs: BTreeSet<ProgramId>,
}

/// A thread.
#[derive(Debug, Clone, Default)]
struct State {
    /// Instructions that it has retired, about.
    place: f64,
    /// Instructions in a second of CPU time, where they were counted.
    rate: Option<f64>,
    resident: u64,
    /// The quantum since which it runs, or waits.
    since: u64,
    /// The quantum in which it was last ready.
    ready: Option<u64>,
    /// Where it runs in turn with others.
    turn: Option<Turn>,
}

/// Its part in a set of hardware threads that more jobs than hardware threads share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Turn {
    /// The first of them, by which they are found again.
    domain: PuId,
    /// The one that it has; none: it waits.
    runs_on: Option<PuId>,
}

/// The weight of a vector.
const fn weight(vector: usize, name: &'static str, help: &'static str) -> Parameter<f64> {
    Parameter::new(name, Kind::Share, OVERLAP[vector], help)
}

impl Activity {
    /// What an overlapping super-set weighs, by vector.
    pub const OVERLAP: [Parameter<f64>; VECTORS] = [
        weight(0, "l1d-use", "Weight of a region of the L1 data cache that both of two jobs use"),
        weight(
            1,
            "l1d-miss",
            "Weight of a region of the L1 data cache that both of two jobs miss in",
        ),
        weight(
            2,
            "l1i-use",
            "Weight of a region of the L1 instruction cache that both of two jobs use",
        ),
        weight(
            3,
            "l1i-miss",
            "Weight of a region of the L1 instruction cache that both of two jobs miss in",
        ),
        weight(4, "l2-use", "Weight of a region of the L2 that both of two jobs use"),
        weight(5, "l2-miss", "Weight of a region of the L2 that both of two jobs miss in"),
    ];
    /// Super-sets of each cache.
    pub const SUPER_SETS: Parameter<usize> = Parameter::new(
        "super-sets",
        Kind::Count { least: 1, most: 128 },
        32,
        "Contiguous regions that each cache is divided into",
    );
    /// Threshold of a vector's bits.
    pub const THRESHOLD: Parameter<f64> = Parameter::new(
        "activity-threshold",
        Kind::Positive,
        1.0,
        "Uses or misses of a region above which it counts as active, over the mean of all programs",
    );
    /// What a quantum of residence weighs.
    pub const RESIDENCE: Parameter<f64> = Parameter::new(
        "residence",
        Kind::Positive,
        4.0,
        "Weight of a quantum in which a job ran, in overlapping regions; more: turns are shared more evenly",
    );
    /// Instructions of CPU time.
    pub const RATE: Parameter<f64> = Parameter::new(
        "instructions-per-second",
        Kind::Positive,
        2e9,
        "Instructions that programs are assumed to execute in a second of CPU time where they are not counted",
    );

    /// With these settings; without vectors everything is left to the OS.
    #[must_use]
    pub fn new(settings: &Settings) -> Self {
        let (super_sets, threshold) =
            (settings.get(&Self::SUPER_SETS), settings.get(&Self::THRESHOLD));
        let courses = |known: &Arc<KnownActivity>| known.vectors(super_sets, threshold);
        let courses = settings.activity.as_ref().map(courses);
        Self {
            weights: Weights {
                overlap: Self::OVERLAP.iter().map(|weight| settings.get(weight)).collect(),
                misses: 0.0,
                resident: settings.get(&Self::RESIDENCE),
            },
            courses,
            rate: settings.get(&Self::RATE),
            no_idle_class: None,
            threads: BTreeMap::new(),
            quantum: 0,
            unheeded: 0,
            programs: BTreeSet::new(),
        }
    }

    /// Takes note of what threads did in the last quantum.
    fn follow(&mut self, view: &View<'_>) {
        self.heed(view);
        self.quantum += 1;
        let there: BTreeSet<ThreadId> = view.threads.iter().map(|thread| thread.id).collect();
        self.threads.retain(|id, _| there.contains(id));
        let before = Some(self.quantum - 1);
        let went_on: Vec<u64> = self
            .threads
            .values()
            .filter(|state| state.ready == before)
            .map(|state| state.resident)
            .collect();
        let mean = went_on.iter().sum::<u64>() / went_on.len().max(1) as u64;
        for thread in &view.threads {
            let state = self.threads.entry(thread.id).or_default();
            state.proceed(thread, self.rate);
            if thread.state == RunState::Runnable {
                if state.ready != before {
                    state.resident = state.resident.max(mean);
                    state.since = self.quantum;
                }
                state.ready = Some(self.quantum);
            }
        }
    }

    /// Does the machine put threads in the idle class? Asked anew when programs come or go.
    fn heed(&mut self, view: &View<'_>) {
        let waits = |id: &ThreadId| {
            let turn = self.threads.get(id).and_then(|state| state.turn);
            turn.is_some_and(|turn| turn.runs_on.is_none())
        };
        let mut asked = view.threads.iter().filter(|thread| waits(&thread.id)).peekable();
        if asked.peek().is_some() {
            let idle = |thread: &ThreadView<'_>| {
                thread.applied.is_some_and(|it| it.priority == Priority::Idle)
            };
            self.unheeded = if asked.any(idle) { 0 } else { self.unheeded + 1 };
        }
        let programs = view.programs.iter().map(|program| program.id).collect();
        if programs != self.programs {
            (self.programs, self.unheeded) = (programs, 0);
        }
    }

    /// The job of a thread, for the scores.
    fn job(&self, thread: &ThreadView<'_>, program: &str) -> Job {
        let state = self.threads.get(&thread.id);
        let course = self.courses.as_ref().and_then(|courses| courses.get(program));
        let place = state.map_or(0.0, |state| state.place);
        Job {
            vectors: course.and_then(|course| course.at(place as u64)).map(<[Vector]>::to_vec),
            resident: state.map_or(0, |state| state.resident),
            since: state.map_or(0, |state| state.since),
            ..Job::default()
        }
    }

    /// Super-sets in which a job overlaps with its co-runners, by weight.
    fn overlap(&self, job: &Job, co_runners: &[&Job]) -> f64 {
        score(job, co_runners, &Weights { resident: 0.0, ..self.weights.clone() })
    }
}

impl State {
    /// Takes note of what its thread did in the last quantum.
    fn proceed(&mut self, thread: &ThreadView<'_>, usual: f64) {
        let cpu_time = thread.did.map_or(0.0, |did| did.running * did.over.as_secs_f64());
        let counted = thread.measured.and_then(|measured| measured.get("instructions").ok());
        let fresh = counted.filter(|it| it.age == 0 && it.value.is_finite() && it.value >= 0.0);
        match fresh {
            Some(counted) => {
                self.place += counted.value;
                self.rate = (cpu_time > 0.0).then(|| counted.value / cpu_time).or(self.rate);
            }
            None => self.place += cpu_time * self.rate.unwrap_or(usual),
        }
    }
}

/// The threads of a pool as jobs, in its order.
struct Jobs<'v> {
    ids: Vec<ThreadId>,
    names: Vec<&'v str>,
    jobs: Vec<Job>,
}

impl Jobs<'_> {
    /// How a job overlaps with others, in words.
    fn words(&self, policy: &Activity, at: usize, others: &[usize]) -> String {
        let Some(job) = self.jobs.get(at) else { return String::new() };
        let name = self.names.get(at).copied().unwrap_or_default();
        if job.vectors.is_none() {
            return format!("no activity vectors of program '{name}'");
        }
        let co_runners: Vec<&Job> = others.iter().filter_map(|at| self.jobs.get(*at)).collect();
        let overlap = policy.overlap(job, &co_runners);
        let super_sets = if overlap == 1.0 { "super-set" } else { "super-sets" };
        let names: Vec<&str> =
            others.iter().filter_map(|at| self.names.get(*at)).copied().collect();
        match names[..] {
            [] => "no co-runner".to_owned(),
            _ => format!("overlaps with {} in {overlap} {super_sets}", names.join(", ")),
        }
    }
}

impl Activity {
    fn jobs<'v>(&self, view: &'v View<'_>, pool: &Pool) -> Jobs<'v> {
        let names: BTreeMap<ProgramId, &str> =
            view.programs.iter().map(|program| (program.id, program.name.as_str())).collect();
        let threads = || pool.threads.iter().filter_map(|&at| view.threads.get(at));
        let name = |thread: &ThreadView<'_>| names.get(&thread.program).copied().unwrap_or("");
        Jobs {
            ids: threads().map(|thread| thread.id).collect(),
            names: threads().map(name).collect(),
            jobs: threads().map(|thread| self.job(thread, name(thread))).collect(),
        }
    }
}

impl Policy for Activity {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn requirements(&self) -> Requirements {
        Requirements {
            optional: [Signal::Ipc].into(),
            missing_input: self.courses.is_none().then_some(INPUT),
            ..Requirements::of([Signal::RunStates])
        }
    }

    fn offer(&mut self, offered: &Support, _: &Topology) -> Option<String> {
        self.no_idle_class = match &offered.idle_class {
            Ability::Absent(why) => Some(why.clone()),
            Ability::Full | Ability::Partial(_) => None,
        };
        let why = self.no_idle_class.as_ref()?;
        Some(format!("more threads than hardware threads are left to the OS: {why}"))
    }

    fn place(&mut self, view: &View<'_>) -> Placement {
        if self.courses.is_none() {
            return pools(view, |_, _| Some(INPUT.to_string().into())).1;
        }
        self.follow(view);
        let asleep = |thread: &ThreadView<'_>| thread.state != RunState::Runnable;
        let (pools, mut placement) =
            pools(view, |_, thread| asleep(thread).then(|| "asleep".into()));
        let mut slots = CoreSlots::new(view.topology);
        for pool in &pools {
            if pool.threads.len() <= pool.allowed.len() {
                self.together(view, pool, &mut slots, &mut placement);
            } else {
                self.in_turn(view, pool, &mut placement);
            }
        }
        placement
    }
}

#[cfg(test)]
mod tests;
