//! What was seen of programs, and what would have been done with them.
//!
//! # Approach
//! [`Summary`] adds up run times, CPUs and co-runners, as for the report of a run. In addition, decisions
//! are weighted by the time for which a thread was ready, so that what sleeps does not count; those
//! that left a thread alone only because it was new count where there are no others. Where the policy
//! predicts slowdowns, they are predicted for the groups that ran, and compared with those of the plan
//! for the same threads in the same quanta.
//!
//! # Properties
//! - Decisions are weighted by ready time (`decisions_are_weighted_by_ready_time`).
//! - A decision that leaves a thread where it may run anyway changes nothing
//!   (`what_is_allowed_anyway_is_no_change`).
//! - Predictions compare the same threads in the same quanta (`predictions_compare_the_same_quanta`).

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use symbiont_control::{Step, Summary};
use symbiont_machine::{
    Assignment, Placement, Priority, ProgramId, Support, Target, ThreadId, ThreadSample, Timestamp,
};
use symbiont_policy::{Policy, View};
use symbiont_topology::{CoreId, CpuSet, Topology};

/// Share of a quantum from which on a thread counts as running on its core.
const RAN: f64 = 0.1;

/// Sums over all quanta.
pub struct Account {
    /// Where programs ran, with which co-runners.
    pub summary: Summary,
    /// What was decided about each.
    pub programs: BTreeMap<ProgramId, Decided>,
    /// Predicted speeds of all threads together.
    pub speeds: Speeds,
    /// Programs of the last sample.
    pub living: BTreeSet<ProgramId>,
    /// Hardware threads that any of the threads may use.
    pub allowed: CpuSet,
    /// Decisions.
    pub quanta: u64,
    begun: Option<Timestamp>,
    last: Timestamp,
}

/// What was decided about a program.
#[derive(Debug, Default)]
pub struct Decided {
    settled: BTreeMap<Setting, Taken>,
    unsettled: BTreeMap<Setting, Taken>,
    slowdowns: Slowdowns,
}

/// What would be set of a thread.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Setting {
    /// CPUs, as a list; none: left to the OS.
    pub cpus: Option<String>,
    /// None: as the user set it.
    pub priority: Option<&'static str>,
}

/// For how long, and why.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Taken {
    /// Ready time of threads, seconds.
    pub time: f64,
    /// The last reason.
    pub reason: String,
}

/// Slowdowns weighted by run time.
#[derive(Debug, Clone, Copy, Default)]
struct Slowdowns {
    now: f64,
    planned: f64,
    time: f64,
}

/// Sums of speeds (1 / slowdown) over threads and time.
#[derive(Debug, Clone, Copy, Default)]
pub struct Speeds {
    /// As they ran.
    pub now: f64,
    /// By the plan.
    pub planned: f64,
    /// Time, seconds.
    pub time: f64,
}

impl Setting {
    /// Of an assignment of a thread that may use these CPUs.
    fn of(assignment: &Assignment, allowed: &CpuSet, support: &Support) -> Self {
        let cpus = match &assignment.target {
            Target::Cpus(cpus) if support.affinity.exists() && !allowed.is_subset(cpus) => {
                Some(cpus.to_string())
            }
            Target::Cpus(_) | Target::Os => None,
        };
        let priority = match assignment.priority {
            Priority::Boosted(_) if support.boost.exists() => Some("boosted"),
            Priority::Idle if support.idle_class.exists() => Some("idle class"),
            _ => None,
        };
        Self { cpus, priority }
    }
}

impl Decided {
    /// What would be done, with its share of the time, the largest first.
    pub fn settings(&self) -> Vec<(&Setting, f64, &str)> {
        let all = if self.settled.is_empty() { &self.unsettled } else { &self.settled };
        let whole: f64 = all.values().map(|taken| taken.time).sum();
        let mut settings: Vec<_> = all
            .iter()
            .map(|(setting, taken)| (setting, taken.time / whole, taken.reason.as_str()))
            .collect();
        settings.sort_by(|a, b| b.1.total_cmp(&a.1));
        settings
    }

    /// Mean slowdowns predicted for how it ran and for the plan.
    pub fn slowdowns(&self) -> Option<(f64, f64)> {
        let Slowdowns { now, planned, time } = self.slowdowns;
        (time > 0.0).then(|| (now / time, planned / time))
    }
}

impl Account {
    /// Of a machine.
    pub fn new(topology: &Topology) -> Self {
        Self {
            summary: Summary::new(topology),
            programs: BTreeMap::new(),
            speeds: Speeds::default(),
            living: BTreeSet::new(),
            allowed: CpuSet::new(),
            quanta: 0,
            begun: None,
            last: Timestamp::default(),
        }
    }

    /// For how long programs were watched.
    pub fn watched(&self) -> Duration {
        self.begun.map_or(Duration::ZERO, |begun| self.last.since(begun))
    }

    /// Adds a step of a policy on a machine.
    pub fn add(
        &mut self,
        step: &Step,
        policy: &dyn Policy,
        topology: &Topology,
        support: &Support,
    ) {
        let sample = &step.sample;
        self.quanta += 1;
        self.begun.get_or_insert(sample.at);
        self.last = sample.at;
        self.living = sample.threads.iter().map(|thread| thread.program).collect();
        self.summary.add(sample, &step.characterizations, &step.placement);
        for thread in &sample.threads {
            self.allowed = self.allowed.union(&thread.allowed.intersection(&topology.cpus()));
            let did = step.characterizations.get(&thread.id);
            let ready = did.map_or(0.0, |did| did.over.as_secs_f64() * did.ready);
            let Some(assignment) = step.placement.get(&thread.id).filter(|_| ready > 0.0) else {
                continue;
            };
            let program = self.programs.entry(thread.program).or_default();
            let settings = match thread.lifecycle.is_settled() {
                true => &mut program.settled,
                false => &mut program.unsettled,
            };
            let allowed = thread.allowed.intersection(&topology.cpus());
            let taken = settings.entry(Setting::of(assignment, &allowed, support)).or_default();
            taken.time += ready;
            taken.reason = assignment.reason.to_string();
        }
        self.compare(step, policy, topology);
    }

    /// Adds the predictions for the groups that ran and those for the plan.
    fn compare(&mut self, step: &Step, policy: &dyn Policy, topology: &Topology) {
        let now = slowdowns_now(step, policy, topology);
        let mut over: f64 = 0.0;
        for thread in &step.sample.threads {
            let planned = step.placement.get(&thread.id).and_then(|a| a.predicted_slowdown);
            let did = step.characterizations.get(&thread.id);
            let both = now.get(&thread.id).copied().zip(planned).zip(did);
            let Some(((now, planned), did)) = both.filter(|((now, planned), _)| {
                [now, planned].iter().all(|slowdown| slowdown.is_finite() && **slowdown > 0.0)
            }) else {
                continue;
            };
            over = over.max(did.over.as_secs_f64());
            let run_time = did.over.as_secs_f64() * did.running;
            let slowdowns = &mut self.programs.entry(thread.program).or_default().slowdowns;
            slowdowns.now += now * run_time;
            slowdowns.planned += planned * run_time;
            slowdowns.time += run_time;
            self.speeds.now += run_time / now;
            self.speeds.planned += run_time / planned;
        }
        self.speeds.time += over;
    }
}

/// The predictions for each thread with those that it shared its core with; not where more ran there
/// than the core has hardware threads, which took turns. What the policy estimates from what was
/// measured stands in where it predicts nothing of the group.
fn slowdowns_now(step: &Step, policy: &dyn Policy, topology: &Topology) -> BTreeMap<ThreadId, f64> {
    let nothing = Placement::new();
    let view = View::new(topology, &step.sample, &step.characterizations, &nothing);
    let view = view.measured(&step.measurements);
    let Some(foresight) = policy.foresight(&view) else { return BTreeMap::new() };
    let did_run = |thread: &&ThreadSample| {
        step.characterizations.get(&thread.id).is_some_and(|did| did.running >= RAN)
    };
    let mut groups: BTreeMap<CoreId, Vec<ThreadId>> = BTreeMap::new();
    for thread in step.sample.threads.iter().filter(did_run) {
        if let Some(core) = thread.cpu.and_then(|cpu| topology.core_of(cpu)) {
            groups.entry(core.id).or_default().push(thread.id);
        }
    }
    let mut slowdowns = BTreeMap::new();
    for core in topology.cores() {
        let Some(group) = groups.get(&core.id).filter(|group| group.len() <= core.cpus.len())
        else {
            continue;
        };
        let predicted = foresight.slowdowns(core.kind, group);
        let predicted = predicted.filter(|predicted| predicted.len() == group.len());
        for (at, thread) in group.iter().enumerate() {
            let slowdown = predicted.as_ref().and_then(|all| all.get(at)).copied();
            if let Some(slowdown) = slowdown.or_else(|| policy.achieved_slowdown(*thread)) {
                slowdowns.insert(*thread, slowdown);
            }
        }
    }
    slowdowns
}

#[cfg(test)]
pub mod tests;
