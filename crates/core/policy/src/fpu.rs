//! `fpu`: spreads the most FPU-hungry threads over the cores (Peternier et al., "WorkOver").
//!
//! # Problem
//! The hardware threads of a core share its floating-point units (FPUs). A core that holds
//! FPU-hungry threads only has too few of them, while those of a core that holds none idle.
//!
//! # Approach
//! Once a period (section 4.2): the *active* threads are those that consumed the most cycles; of them the
//! *top* ones use the FPUs most (`fpu_usage` of the catalogue: equation 1 on Bulldozer, 2 on POWER7). Each
//! top thread is bound to a hardware thread; the OS places all others. By rank top threads form tiers of as
//! many as there are cores (section 5.3): the first ones are on the first hardware threads of the cores,
//! the next ones on the second, and so on ([`slots`]). A core of the topology is a set of FPUs: a
//! Bulldozer module, a POWER7 core, an SMT core of today. A thread that stays in its tier stays where it
//! was; one that enters it stays on its core if that is free in the tier, else it prefers cores of its
//! history: the periods for which it was on each hardware thread, for as long as it lives.
//!
//! The number of top threads follows from "the available FPUs, cores and the way they are distributed"
//! (section 1): one for each FPU of a core, as many as it has hardware threads at most; none that uses
//! no FPU. Where the paper is silent:
//! - Active are those that consumed at least a tenth of the cycles of the most active one: more of
//!   them than there are hardware threads take turns ([`Fpu::ACTIVE`] sets their number).
//! - A core of whose FPUs the catalogue says nothing has one for each hardware thread. [`Fpu::TOP`] sets
//!   another number of top threads.
//!
//! Ours: [`Fpu::LEAST`] leaves to the OS those that use the FPUs little, [`Fpu::MARGIN`] keeps ranks that differ by
//! noise; `auto` sets both.
//! - Ties of cycles and of usage go to the thread with the smaller identity.
//! - Cycles are replaced by CPU time where they are not measured for all threads.
//!
//! # Terms and units
//! *FPU usage*: by the catalogue; comparable between threads of one machine only (section 5.2).
//!
//! # Properties
//! - Fig. 1b and 2b: each FPU-hungry thread has a core of its own (`the_papers_optimal_allocations`).
//! - As many are bound as cores have FPUs (`one_thread_is_bound_for_each_unit_of_a_core`).
//! - Threads of a tier are on different cores, whatever the ranks were before, and one that stays in its
//!   tier does not move (`each_tier_is_spread_whatever_the_ranks_were`).
//! - Numbers of top threads on two cores differ by one at most (`top_threads_are_spread_evenly`).
//! - A hardware thread has two only where none of its core is free (`no_hardware_thread_has_two_without_need`).
//! - Shuffled usage spreads no better than chance (`shuffled_usage_spreads_by_chance`).

mod matching;
mod slots;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use symbiont_counters::Measured;
use symbiont_machine::{Assignment, Placement, RunState, Signal, ThreadId};
use symbiont_topology::{CpuSet, PuId};

use crate::parameter::Parameters;
use crate::{Entry, Kind, Parameter, Policy, Requirements, Settings, ThreadView, View};
use slots::{Request, TieredCpu, assign};

pub(crate) const ENTRY: Entry = Entry {
    name: "fpu",
    summary: "spreads the most FPU-hungry threads over the cores",
    paper: Some(
        "Peternier et al., Improving Execution Unit Occupancy on SMT-based Processors through Hardware-aware \
         Thread Scheduling (WorkOver)",
    ),
    quantum: Duration::from_secs(1),
    boosts: false,
    parameters: PARAMETERS,
    make: |settings| Box::new(Fpu::new(settings)),
};

pub(crate) const PARAMETERS: Parameters = &[&Fpu::ACTIVE, &Fpu::TOP, &Fpu::LEAST, &Fpu::MARGIN];

/// A thread is active if it consumes at least so much of the cycles of the most active one, unless the
/// number of active threads is set.
const SHARE_OF_MOST_ACTIVE: f64 = 0.1;

/// Periods of a thread on each hardware thread.
type History = BTreeMap<PuId, u64>;

/// The policy.
#[derive(Debug, Clone, Default)]
pub struct Fpu {
    active: Option<usize>,
    top: Option<usize>,
    least: f64,
    margin: f64,
    /// The top of the last period, with its tiers and hardware threads.
    before: BTreeMap<ThreadId, TieredCpu>,
    history: BTreeMap<ThreadId, History>,
}

/// A thread that ran in the last period and was measured.
struct Candidate<'a> {
    thread: &'a ThreadView<'a>,
    usage: f64,
    cpu_time: f64,
    cycles: Option<f64>,
}

/// Numbers of threads.
const THREADS: Kind = Kind::Count { least: 1, most: 1_000_000 };

impl Fpu {
    /// How many threads count as active, those that ran most.
    pub const ACTIVE: Parameter<Option<usize>> = Parameter::optional(
        "active",
        THREADS,
        "those that ran at least a tenth as much as the first one",
        "Threads whose use of the FPUs is compared, those that ran most",
    );
    /// How many of the active threads are bound, those that use the FPUs most.
    pub const TOP: Parameter<Option<usize>> = Parameter::optional(
        "top",
        THREADS,
        "one for each floating-point unit of a core, as many as it has hardware threads at most",
        "Threads to spread over the cores, those that use the FPUs most",
    );

    /// How much a thread must use the FPUs to be bound.
    pub const LEAST: Parameter<f64> = Parameter::new(
        "least-usage",
        Kind::Share,
        0.0,
        "Least use of the FPUs of a thread to spread, over that of the first one; auto: 0.5 unless set",
    );

    /// How much more a thread must use the FPUs than one of a higher tier to come before it.
    pub const MARGIN: Parameter<f64> = Parameter::new(
        "margin",
        Kind::Share,
        0.0,
        "Share by which a thread must use the FPUs more than one that was ranked higher to take its rank; \
         auto: 0.1 unless set",
    );

    /// With the numbers of active and of top threads of the settings.
    #[must_use]
    pub fn new(settings: &Settings) -> Self {
        Self {
            active: settings.get(&Self::ACTIVE),
            top: settings.get(&Self::TOP),
            least: settings.get(&Self::LEAST),
            margin: settings.get(&Self::MARGIN),
            ..Self::default()
        }
    }

    /// The top threads, the hungriest first.
    fn top<'a>(&self, view: &View<'_>, mut candidates: Vec<Candidate<'a>>) -> Vec<Candidate<'a>> {
        let by_cycles = candidates.iter().all(|candidate| candidate.cycles.is_some());
        let activity = |candidate: &Candidate<'_>| match candidate.cycles {
            Some(cycles) if by_cycles => cycles,
            _ => candidate.cpu_time,
        };
        candidates.sort_by(|a, b| {
            activity(b).total_cmp(&activity(a)).then(a.thread.id.cmp(&b.thread.id))
        });
        match (self.active, candidates.first().map(&activity)) {
            (None, Some(most)) => {
                candidates.retain(|one| activity(one) >= SHARE_OF_MOST_ACTIVE * most);
            }
            (active, _) => candidates.truncate(active.unwrap_or(0)),
        }
        // A thread of the last tier, or of none, counts for less by the margin for each tier above.
        let none = self.before.values().map(|held| held.tier + 1).max().unwrap_or(0);
        let ranked = |candidate: &Candidate<'_>| {
            let tier = self.before.get(&candidate.thread.id).map_or(none, |held| held.tier);
            candidate.usage / (1.0 + self.margin).powi(tier as i32)
        };
        candidates
            .sort_by(|a, b| ranked(b).total_cmp(&ranked(a)).then(a.thread.id.cmp(&b.thread.id)));
        let least = self.least * candidates.iter().map(|one| one.usage).fold(0.0, f64::max);
        candidates.retain(|candidate| candidate.usage > 0.0 && candidate.usage >= least);
        candidates.truncate(self.top.unwrap_or_else(|| units(view, &candidates)));
        candidates
    }

    /// Forgets threads that are gone.
    fn keep(&mut self, view: &View<'_>) {
        let there: BTreeSet<ThreadId> = view.threads.iter().map(|thread| thread.id).collect();
        self.history.retain(|id, _| there.contains(id));
        self.before.retain(|id, _| there.contains(id));
    }
}

/// FPUs of the cores that some threads may use, of each core as many as it has hardware threads for them at
/// most.
fn units(view: &View<'_>, candidates: &[Candidate<'_>]) -> usize {
    let measured = candidates.iter().filter_map(|candidate| candidate.thread.measured);
    let of_a_core = measured.filter_map(Measured::floating_point_units).next();
    let most = of_a_core.map_or(usize::MAX, |units| units as usize);
    let cpus = candidates.iter().map(|candidate| view.allowed(candidate.thread));
    let cpus = cpus.fold(CpuSet::new(), |all, own| all.union(&own));
    let cores = view.topology.cores().iter();
    cores.map(|core| core.cpus.intersection(&cpus).len().min(most)).sum()
}

/// Why a thread is no candidate, or what is known of it.
fn read<'a>(view: &View<'_>, thread: &'a ThreadView<'a>) -> Result<Candidate<'a>, String> {
    view.places(thread)?;
    let cpu_time = thread.did.map_or(0.0, |did| did.running);
    if thread.state != RunState::Runnable && cpu_time <= 0.0 {
        return Err("asleep".into());
    }
    let measured = thread.measured.ok_or("not measured yet")?;
    let usage = measured.get("fpu_usage").map_err(|why| format!("not measured: {why}"))?.value;
    Ok(Candidate { thread, usage, cpu_time, cycles: measured.value("cycles") })
}

impl Policy for Fpu {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn requirements(&self) -> Requirements {
        Requirements::of([Signal::RunStates, Signal::FpuUsage])
    }

    fn place(&mut self, view: &View<'_>) -> Placement {
        self.keep(view);
        let mut placement = Placement::new();
        let mut candidates = Vec::new();
        for thread in &view.threads {
            match read(view, thread) {
                Ok(candidate) => {
                    let reason = format!("FPU usage {:.3}, not among the top", candidate.usage);
                    placement.insert(thread.id, Assignment::os(reason));
                    candidates.push(candidate);
                }
                Err(why) => {
                    placement.insert(thread.id, Assignment::os(why));
                }
            }
        }
        let top = self.top(view, candidates);
        let nothing = History::new();
        let requests: Vec<Request<'_>> = top
            .iter()
            .map(|candidate| Request {
                allowed: view.allowed(candidate.thread),
                before: self.before.get(&candidate.thread.id).copied(),
                history: self.history.get(&candidate.thread.id).unwrap_or(&nothing),
            })
            .collect();
        let given = assign(view.topology, &requests);
        self.before.clear();
        let count = top.len();
        for ((rank, candidate), slot) in (1..).zip(&top).zip(given) {
            let Some(slot) = slot else { continue };
            let id = candidate.thread.id;
            let reason = format!(
                "FPU usage {:.3}, number {rank} of {count} FPU-hungry threads, of which its core \
                 holds {}",
                candidate.usage, slot.on_core
            );
            let cpu = slot.given.cpu;
            placement.insert(id, Assignment::on(cpu.into(), reason));
            *self.history.entry(id).or_default().entry(cpu).or_default() += 1;
            self.before.insert(id, slot.given);
        }
        placement
    }
}

#[cfg(test)]
mod tests;
