//! `learned`: learns from the speeds of threads which of them suit each other on a core, and groups them by that.
//!
//! # Problem
//! What two programs do to each other on a core shows in no signal of one of them well enough: models that
//! predict it from what each does alone choose pairs little better than chance. What the machine itself shows, pair
//! by pair, says it; but there are many pairs, each measurement is noisy, and a policy that only uses what it knows
//! never sees the others.
//!
//! # Approach
//! ```text
//! each quantum: ln IPC(i) = b(i) + Σ over co-runners j: share of time × r(i, j) + noise
//!     b(i) walks at random, r(i, j) is normal about what j takes from all others   (row, knowledge, scale)
//!     groups that have the largest Σ r, with lots drawn for what is not known        (scores; symbiont_matching)
//! ```
//! IPC is all it needs: no speeds alone, no training, no model. What matters is the sum of both r of a pair: what
//! adds up from victim and aggressor is the same for every matching. A sum of ln IPC is judged, not throughput: it
//! needs no speeds alone, and chooses nearly the same pairs. Threads of one program are learned as one
//! ([`Learned::BY`]), so that much fewer pairs have to be tried. Of more than two threads of a core what co-runners
//! take adds up. A quantum in which more threads ran on a core than it has hardware threads teaches nothing.
//!
//! # Terms and units
//! *Kind*: threads that are learned as one. r and b are natural logarithms; -0.1 is a tenth slower.
//!
//! # Properties
//! - Threads of one program are learned as one (`threads_of_one_program_are_learned_as_one`), those of two users apart
//!   (`programs_of_two_users_are_learned_apart`), and what was learned is there the next time
//!   (`what_was_learned_is_there_the_next_time`). Reports say what is expected (`reports_say_what_is_expected`).
//! - Pairs that suit each other are found (`good_pairs_are_found`), of many threads, which are grouped in slices, too
//!   (`good_pairs_of_many_threads_are_found`), of four threads a core (`good_groups_of_four_are_found`), and found
//!   again in a new phase (`a_new_phase_is_followed`).
//! - Where co-runners make no difference it hardly moves threads (`without_interaction_threads_hardly_move`), and with
//!   measurements shuffled between threads it gains little (`shuffled_measurements_gain_little`): just the sum
//!   over all threads still says something.
//! - Idle cores are used (`idle_cores_are_used`); whatever is measured, each thread is assigned
//!   (`whatever_is_measured_every_thread_is_assigned`).

use std::collections::BTreeMap;
use std::time::Duration;

use rand::SeedableRng;
use rand_pcg::Pcg64Mcg;
use symbiont_machine::{Assignment, Placement, Signal, ThreadId};
use symbiont_matching::{Request, group_by};
use symbiont_topology::{CoreId, CoreKind};

use crate::core_slots::{CoreSlots, Group, Pool, pools};
use crate::parameter::{Kind as Form, Parameter, Parameters, Typed, Value};
use crate::symbiotic::{Part, parts, ran, together};
use crate::{Entry, Finding, Policy, Requirements, Settings, ThreadView, View};
pub use before::{LearnedPairs, LearnedProgram, NextTo};
use chance::ByChance;
use knowledge::{Knowledge, Ran};
use row::Origin;
use scores::{Member, Scores};
use slices::{Slice, slices};

mod before;
mod chance;
mod knowledge;
mod row;
mod scale;
mod scores;
mod slices;
#[cfg(test)]
mod tests;

pub(crate) const ENTRY: Entry = Entry {
    name: "learned",
    summary: "learns from IPC alone which threads suit each other on a core, and groups them by that",
    paper: None,
    quantum: Duration::from_millis(100),
    boosts: false,
    parameters: PARAMETERS,
    make: |settings| Box::new(Learned::new(settings)),
};

pub(crate) const PARAMETERS: Parameters = &[&Learned::EXPLORE, &Learned::BY];

/// Threads that ran for less of a quantum are not learned from.
const LEAST_SHARE: f64 = 0.5;

/// What is learned as one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// Threads of programs of one identity, or else one name, and user.
    Program,
    /// Each thread by itself.
    Thread,
}

impl By {
    const fn name(self) -> &'static str {
        match self {
            Self::Program => "program",
            Self::Thread => "thread",
        }
    }
}

impl Typed for By {
    fn of(value: &Value) -> Option<Self> {
        let text = String::of(value)?;
        [Self::Program, Self::Thread].into_iter().find(|by| by.name().eq_ignore_ascii_case(&text))
    }

    fn to_value(&self) -> Option<Value> {
        Some(Value::Text(self.name().to_owned()))
    }
}

/// The policy.
#[derive(Debug, Clone)]
pub struct Learned {
    explore: bool,
    by: By,
    known: Knowledge,
    random: Pcg64Mcg,
    tally: Tally,
}

/// What was decided so far.
#[derive(Debug, Clone, Copy, Default)]
struct Tally {
    /// Threads that were grouped, summed over decisions.
    grouped: f64,
    /// By how much more ln IPC is expected of them than with co-runners by chance, summed.
    gained: f64,
}

impl Learned {
    /// Are groups tried that are not known well?
    pub const EXPLORE: Parameter<bool> = Parameter::new(
        "explore",
        Form::Choice(&["on", "off"]),
        true,
        "tries groups that are not known well, in proportion to what may be learned of them",
    );
    /// What is learned as one.
    pub const BY: Parameter<By> = Parameter::new(
        "by",
        Form::Choice(&[By::Program.name(), By::Thread.name()]),
        By::Program,
        "learns threads of programs of one name as one, or each thread by itself",
    );

    /// With these settings.
    #[must_use]
    pub fn new(settings: &Settings) -> Self {
        Self {
            explore: settings.get(&Self::EXPLORE),
            by: settings.get(&Self::BY),
            known: Knowledge::new(settings.learned.clone().unwrap_or_default()),
            random: Pcg64Mcg::seed_from_u64(settings.seed),
            tally: Tally::default(),
        }
    }

    /// Takes note of the quantum that has passed.
    fn learn(&mut self, view: &View<'_>) {
        let origin = |thread: &ThreadView<'_>| -> Origin {
            let name = match self.by {
                By::Program => match (view.identity(thread), view.user(thread)) {
                    (name, Some(user)) => format!("{name} of user {user}"),
                    (name, None) => name.to_owned(),
                },
                By::Thread => format!("{} born {}", thread.id, thread.id.born),
            };
            let core = thread.cpu.and_then(|cpu| view.topology.core_of(cpu));
            (name, core.map_or_else(CoreKind::default, |core| core.kind))
        };
        let here: Vec<(ThreadId, Origin)> =
            view.threads.iter().map(|thread| (thread.id, origin(thread))).collect();
        self.known.enter(&here);
        let mut cores: BTreeMap<CoreId, Vec<Ran>> = BTreeMap::new();
        for thread in &view.threads {
            let share = thread.did.map_or(0.0, |did| did.running).clamp(0.0, 1.0);
            let core = thread.cpu.and_then(|cpu| view.topology.core_of(cpu));
            if let Some(core) = core.filter(|_| share > 0.0) {
                let ln_ipc = ln_ipc(thread).filter(|_| share >= LEAST_SHARE);
                cores.entry(core.id).or_default().push(Ran { thread: thread.id, share, ln_ipc });
            }
        }
        let places = |id: &CoreId| {
            view.topology.cores().get(id.0 as usize).map_or(0, |core| core.cpus.len())
        };
        let at_once = |(id, ran): (CoreId, Vec<Ran>)| (ran.len() <= places(&id)).then_some(ran);
        let cores: Vec<Vec<Ran>> = cores.into_iter().filter_map(at_once).collect();
        self.known.learn(&cores);
    }

    /// The threads of a pool, by position in it.
    fn members(&self, view: &View<'_>, pool: &Pool, present: &[Vec<usize>]) -> Option<Vec<Member>> {
        let member = |index: &usize| {
            let id = view.threads.get(*index)?.id;
            Some(Member {
                kind: self.known.kind(id)?,
                noise: self.known.noise(id),
                with: Vec::new(),
            })
        };
        let mut members = pool.threads.iter().map(member).collect::<Option<Vec<_>>>()?;
        for group in present {
            for &at in group {
                members[at].with = group.iter().copied().filter(|other| *other != at).collect();
            }
        }
        Some(members)
    }

    /// Groups the threads of a pool.
    fn group(
        &mut self,
        view: &View<'_>,
        pool: &Pool,
        (cores, places): (usize, usize),
    ) -> Result<Vec<Group>, String> {
        let present = together(view, pool);
        let threads = pool.threads.len();
        let wanted = threads.div_ceil(cores.max(1)).next_power_of_two();
        let width = wanted.max(floor_power_of_two(places));
        let cores = cores.max(threads.div_ceil(width));
        let mut groups = Vec::with_capacity(cores);
        for slice in slices(threads, cores, &present, &mut self.random) {
            groups.extend(self.group_slice(view, pool, &slice, width)?);
        }
        Ok(groups)
    }

    fn group_slice(
        &mut self,
        view: &View<'_>,
        pool: &Pool,
        slice: &Slice,
        width: usize,
    ) -> Result<Vec<Group>, String> {
        let Slice { threads, cores } = slice;
        let here = Pool {
            allowed: pool.allowed.clone(),
            threads: threads.iter().filter_map(|at| pool.threads.get(*at).copied()).collect(),
        };
        let present = together(view, &here);
        let members = self.members(view, &here, &present).ok_or("not seen yet")?;
        let scores = Scores::draw(&self.known, &members, self.explore, &mut self.random);
        let request = Request { previous: &present, ..Request::new(members.len(), *cores, width) };
        let grouping = group_by(&request, scores).map_err(|error| error.to_string())?;
        let by_chance = ByChance::of(&self.known, &members);
        let group = |group: Vec<usize>| {
            let learned = by_chance.compare(&self.known, &members, &group);
            self.tally.grouped += group.len() as f64;
            self.tally.gained += learned.gain;
            let at = |at: usize| here.threads.get(at).copied();
            Group {
                members: group.into_iter().filter_map(at).collect(),
                reason: learned.to_string().into(),
            }
        };
        Ok(grouping.groups.into_iter().map(group).collect())
    }
}

/// The largest power of two that is no larger; 1 of 0.
fn floor_power_of_two(number: usize) -> usize {
    number.checked_ilog2().map_or(1, |bits| 1 << bits)
}

/// Logarithm of the instructions per cycle of the last quantum, if they were measured in it.
fn ln_ipc(thread: &ThreadView<'_>) -> Option<f64> {
    let ipc = thread.measured?.get("ipc").ok().filter(|ipc| ipc.age == 0)?;
    Some(ipc.value.ln()).filter(|ln| ln.is_finite())
}

impl Policy for Learned {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn requirements(&self) -> Requirements {
        Requirements::of([Signal::RunStates, Signal::Ipc])
    }

    fn place(&mut self, view: &View<'_>) -> Placement {
        self.learn(view);
        let (pools, mut placement) =
            pools(view, |_, thread| (!ran(thread)).then(|| "asleep".into()));
        let mut slots = CoreSlots::new(view.topology);
        for Part { pool, .. } in pools.into_iter().flat_map(|pool| parts(view, pool)) {
            match self.group(view, &pool, (slots.cores(&pool), slots.width(&pool))) {
                Ok(groups) => slots.assign(view, &pool, &groups, &mut placement),
                Err(why) => {
                    let left = pool.threads.iter().filter_map(|index| view.threads.get(*index));
                    placement.extend(left.map(|thread| (thread.id, Assignment::os(why.clone()))));
                }
            }
        }
        placement
    }

    fn learned(&self) -> Option<LearnedPairs> {
        // Threads by themselves do not run again.
        (self.by == By::Program).then(|| self.known.learned())
    }

    fn learned_of(&self, thread: ThreadId, co_runner: ThreadId) -> Option<f64> {
        let (kind, other) = (self.known.kind(thread)?, self.known.kind(co_runner)?);
        let (belief, was_seen) = self.known.next_to(kind, other);
        was_seen.then_some(belief.mean)
    }

    fn gain_over_chance(&self) -> Option<f64> {
        let Tally { grouped, gained } = self.tally;
        (grouped > 0.0).then(|| (gained / grouped).exp() - 1.0)
    }

    fn findings(&self) -> Vec<Finding> {
        let Some(gain) = self.gain_over_chance() else { return Vec::new() };
        let changes = self.known.changes() as f64;
        vec![
            Finding::new("speed expected above that with co-runners by chance", gain * 100.0, "%"),
            Finding::new("changes of phase that were found", changes, "changes"),
        ]
    }
}
