//! The fixed point of all threads of a machine.
//!
//! # Problem
//! How fast a thread runs depends on what others leave it, which depends on how fast they run.
//!
//! # Approach
//! Two nested fixed points.
//!
//! ```text
//! repeat at most ROUNDS times                                     between cores
//!     for each core that is awake, at most SWEEPS times           within a core
//!         shares of slots, ports, queues; reach of private caches     coupling, caches
//!         CPI of each thread in its environment                       core_model
//!         a step of each IPC towards 1/CPI                            aitken
//!     reach of caches of several cores; queueing at memory, links caches, memory
//!     a step of the speeds that cores show each other             anderson
//! until no IPC changes by more than CLOSE
//! ```
//!
//! A core is awake if one of its threads is in another phase or notices what the cores now leave each
//! other; the others sleep. So a change of phase costs rounds of its own core, and of those threads that
//! notice it in shared caches and at memory.
//!
//! The core model is evaluated only where an environment has moved far; nearby its linearization is used
//! ([`super::linearization`]). Once all has settled, full evaluations must confirm it wherever they may
//! differ. What does not settle within [`ROUNDS`] is used as it is and reported ([`Solution::settled`]).
//!
//! # Terms and units
//! *Speed*: log₂ of instructions per ns. *Sweep*: one evaluation of all threads of a core. *Round*:
//! sweeps of each core that is awake, then of what cores share.
//!
//! # Properties
//! - A machine solved on from its last state is as if solved anew, over many changes of phase, and takes
//!   fewer evaluations (`what_changed_alone_is_solved_again`), whether cores share memory alone or
//!   caches too (`cores_that_meet_in_caches_are_solved_on_as_anew`).
//! - A thread that shares nothing is not disturbed by others (`a_thread_that_notices_nothing_sleeps`).
//! - A phase that returns takes few evaluations (`a_phase_that_comes_again_takes_few_answers`).

use std::collections::BTreeMap;
use std::ops::Range;

use super::anderson::Anderson;
use super::caches::{self, Span};
pub(crate) use super::columns::Moment;
use super::columns::{Columns, Memo, Phases};
use super::coupling;
use super::domains::Physics;
use super::groups::Groups;
use super::memory::Memory;
use super::pipeline::{CacheLevel, FIRST_REACH};
use super::rates::Rates;
use super::tasks::{self, CoreLoad, Switches, Task};

pub use super::core_model::{CoreModel, Direct, Tables};

/// Most rounds.
pub const ROUNDS: u32 = 16;
/// Most sweeps of a core in a round.
const SWEEPS: u32 = 6;
/// Change of a speed, in octaves, below which caches are not solved again.
const STILL: f64 = 2e-3;

/// What is kept from one call to the next: warm starts and cache occupancies.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct State {
    /// Of threads that do not run now.
    memos: BTreeMap<u64, Memo>,
    phases: Phases,
    columns: Columns,
    groups: Groups,
    memory: Memory,
    anderson: Anderson,
    switches: Switches,
    /// How long the span of the last call was, ns.
    spanned: f64,
    /// Calls that did not settle.
    pub unsettled: u64,
    /// Rounds of all calls.
    pub rounds: u64,
    /// Sweeps of all cores in all calls.
    pub sweeps: u64,
    /// Calls.
    pub calls: u64,
    /// Evaluations of the core model in all calls.
    pub answers: u64,
}

impl State {
    /// Of all threads of the last call, in the order of the loads and their threads: the thread, its
    /// rates, and whether they are others than those of the call before.
    pub(crate) fn rates(&self) -> impl Iterator<Item = (u64, &Rates, bool)> {
        let Columns { core_slots, rates, renewed, .. } = &self.columns;
        let known = core_slots.iter().zip(rates).zip(renewed);
        known.filter_map(|((core_slot, rates), renewed)| {
            rates.as_ref().map(|(_, rates)| (core_slot.thread, rates, *renewed))
        })
    }

    /// Does it matter if the last span has another length? A shorter one does where
    /// what threads hold of their caches changes notably over it, a longer one where that still changes
    /// at its end.
    pub(crate) fn minds(&self, ns: f64) -> bool {
        if ns > self.spanned { self.columns.fills() } else { self.columns.shifts() }
    }

    /// Is there a thread that does not hold yet what it will in the long run?
    pub(crate) fn fills(&self) -> bool {
        self.columns.fills()
    }

    /// The span of the last call lasted so many ns instead: nothing changed meanwhile.
    pub(crate) fn lasted(&mut self, ns: f64) {
        self.spanned = ns;
    }

    /// A thread that does not run loses what others bring into its caches meanwhile.
    fn wear(&mut self, physics: &Physics) {
        if !self.memos.is_empty() && !self.switches.private_caches {
            let brought = self.columns.brought(physics);
            let memos = self.memos.values_mut();
            memos.for_each(|memo| memo.wear(physics, &brought, self.spanned));
        }
    }

    /// Forgets a thread.
    pub fn forget(&mut self, thread: u64) {
        self.memos.remove(&thread);
        if self.columns.core_slots.iter().any(|core_slot| core_slot.thread == thread) {
            let columns = std::mem::take(&mut self.columns);
            self.memos.extend(columns.memos().filter(|(other, _)| *other != thread));
        }
    }
}

/// Rates of all threads.
#[derive(Debug, Clone, PartialEq)]
pub struct Solution {
    /// Thread and rates, in the order of the loads and their threads.
    pub rates: Vec<(u64, Rates)>,
    /// Rounds it took.
    pub rounds: u32,
    /// Did all IPCs settle?
    pub settled: bool,
}

impl Physics {
    /// Solves for all threads that run together. `span`: over how many ns they do, for what
    /// caches hold meanwhile; none: in the long run.
    pub fn solve(
        &self,
        model: &mut dyn CoreModel,
        switches: Switches,
        loads: &[CoreLoad<'_>],
        span: Option<f64>,
        state: &mut State,
    ) -> Solution {
        let span = (span, Moment::Next);
        let Convergence { rounds, settled } = self.settle(model, switches, loads, span, state);
        let rates = state.rates().map(|(thread, rates, _)| (thread, *rates)).collect();
        Solution { rates, rounds, settled }
    }

    /// The same, perhaps for a span from the moment at which that of the call before began; threads
    /// and their phases are the same then. What came out is in [`State::rates`].
    pub(crate) fn settle(
        &self,
        model: &mut dyn CoreModel,
        switches: Switches,
        loads: &[CoreLoad<'_>],
        (span, moment): (Option<f64>, Moment),
        state: &mut State,
    ) -> Convergence {
        let tasks = tasks::flatten(self, loads, switches);
        state.groups.update(self, &tasks, switches.private_caches);
        if moment == Moment::Next {
            state.wear(self);
        }
        state.spanned = span.unwrap_or(f64::INFINITY);
        let fits = state.columns.fit(&tasks);
        let all = !fits || state.switches != switches;
        // Has what cores share followed from what threads do now?
        let mut followed = false;
        if fits {
            let columns = &mut state.columns;
            followed = columns.resume(model, &tasks, (all, moment), &mut state.phases) && !all;
        } else {
            let columns = std::mem::take(&mut state.columns);
            state.memos.extend(columns.memos());
            let memos = &state.memos;
            let memo = |thread| memos.get(&thread);
            state.columns = Columns::new(self, model, &tasks, switches, memo);
            for task in &tasks {
                state.memos.remove(&task.thread);
            }
        }
        state.switches = switches;
        if all {
            state.memory.lay_out(self, &tasks, switches.private_bandwidth);
        } else {
            let changed = tasks.iter().enumerate().filter(|(index, _)| state.columns.moved[*index]);
            changed.for_each(|(index, task)| state.memory.change(self, index, task));
        }
        let State { columns, groups, memory, anderson, .. } = state;
        let groups = &*groups;
        let call = Call { tasks: &tasks, groups, switches, span };
        anderson.begin();
        columns.rouse(groups);
        if fits {
            call.spread(columns);
            columns.wake(&tasks, groups);
        } else {
            // Nothing is known of memory yet.
            call.between(memory, columns);
            followed = true;
        }
        let (mut rounds, mut settled) = (0, tasks.is_empty());
        while !settled && rounds < ROUNDS {
            rounds += 1;
            let stirs = columns.awake.contains(&true);
            settled = call.within(model, columns)
                && followed
                && columns.agrees(&tasks, groups)
                && columns.check(model, &tasks, groups);
            if settled {
                break;
            }
            // What follows from a change of phase is no answer to what was shown before.
            if !followed || !stirs {
                anderson.begin();
                columns.show(None);
            } else {
                columns.show(Some(&mut *anderson));
            }
            call.between(memory, columns);
            followed = true;
        }
        call.finish(model, columns);
        state.answers += std::mem::take(&mut columns.answers);
        state.sweeps += std::mem::take(&mut columns.sweeps);
        state.calls += 1;
        state.rounds += u64::from(rounds);
        state.unsettled += u64::from(!settled);
        Convergence { rounds, settled }
    }
}

/// How a fixed point was found.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Convergence {
    /// Rounds it took.
    rounds: u32,
    /// Did all IPCs settle?
    settled: bool,
}

/// What does not change while a machine is solved.
#[derive(Clone, Copy)]
struct Call<'a> {
    tasks: &'a [Task<'a>],
    groups: &'a Groups,
    switches: Switches,
    span: Option<f64>,
}

impl Call<'_> {
    /// Settles each core that is awake by itself. Have all of them settled?
    fn within(&self, model: &mut dyn CoreModel, columns: &mut Columns) -> bool {
        for core in 0..self.groups.cores() {
            if columns.awake[core] {
                columns.stirred[core] = true;
                columns.awake[core] = !self.settle(model, core, columns);
            }
        }
        !columns.awake.contains(&true)
    }

    fn settle(&self, model: &mut dyn CoreModel, core: usize, columns: &mut Columns) -> bool {
        (0..SWEEPS).any(|_| {
            self.surroundings(core, columns);
            columns.sweep(model, self.tasks, self.groups.tasks(core))
        })
    }

    /// The environments of the threads of a core.
    fn surroundings(&self, core: usize, columns: &mut Columns) {
        let (tasks, range) = (self.tasks, self.groups.tasks(core));
        for index in range.clone() {
            let speed = columns.fast[index];
            if columns.moved[index] || (speed - columns.speeds[index]).abs() > STILL {
                columns.moved[index] = true;
                columns.speeds[index] = speed;
            }
        }
        let moves = columns.moved[range.clone()].contains(&true);
        let fills = columns.filling[range.clone()].iter().any(|slots| slots.contains(&true));
        if !moves && !fills {
            return;
        }
        let Columns { moved, filling, active, speeds, reaches, after, held, .. } = columns;
        let wanted = |level: CacheLevel, members: &[usize]| {
            let fills =
                |member: usize| level.occupancy_index().is_some_and(|at| filling[member][at]);
            members.iter().any(|&member| moved[member] || fills(member))
                && matters(active, level, members)
        };
        let span = Span { ns: self.span, held };
        caches::set(self.groups.of_core(core), tasks, speeds, span, wanted, reaches, after);
        for index in range.clone() {
            caches::hand_over(&columns.reaches[index], &mut columns.environments[index]);
        }
        if moves {
            self.share_out(range.clone(), columns);
        }
        columns.moved[range.clone()].fill(false);
        columns.filling[range].fill([false; 2]);
    }

    /// Front end, ports and queues of a core.
    fn share_out(&self, range: Range<usize>, columns: &mut Columns) {
        let active = columns.active[range.clone()].iter().fold(0, |all, own| all | own);
        let (ipc, summaries) = (&columns.ipc[range.clone()], &columns.summaries[range.clone()]);
        let environments = &mut columns.environments[range.clone()];
        coupling::set(&self.tasks[range], ipc, summaries, self.switches, active, environments);
    }

    /// The effect of cores on each other, by what they show; those that notice it wake.
    fn between(&self, memory: &mut Memory, columns: &mut Columns) {
        self.spread(columns);
        let Columns { bytes, shown, traffic, used, environments, .. } = columns;
        let pairs = bytes.iter().zip(&*shown);
        traffic.clear();
        traffic.extend(pairs.map(|(bytes, speed)| *bytes * speed.exp2()));
        memory.set(self.tasks, traffic, used, environments);
        columns.wake(self.tasks, self.groups);
    }

    /// Caches that several cores share.
    fn spread(&self, columns: &mut Columns) {
        if self.groups.of_several().next().is_none() {
            return;
        }
        let Columns { shown, spread, filling, active, reaches, after, held, .. } = &mut *columns;
        let wanted = |level: CacheLevel, members: &[usize]| {
            let new = |member: usize| {
                let fills = level.occupancy_index().is_some_and(|at| filling[member][at]);
                fills || (shown[member] - spread[member]).abs() > STILL
            };
            members.iter().any(|&member| new(member)) && matters(active, level, members)
        };
        let span = Span { ns: self.span, held };
        let groups = self.groups.of_several();
        caches::set(groups, self.tasks, shown, span, wanted, reaches, after);
        for (spread, shown) in spread.iter_mut().zip(&*shown) {
            if (*shown - *spread).abs() > STILL {
                *spread = *shown;
            }
        }
        for (index, task) in self.tasks.iter().enumerate() {
            let environment = &mut columns.environments[index];
            let before = environment.reach[CacheLevel::Last as usize];
            caches::hand_over(&columns.reaches[index], environment);
            if environment.reach[CacheLevel::Last as usize] != before {
                columns.fetches(task, index);
            }
        }
    }

    /// Sets the reaches that affect no speed, and the rates.
    fn finish(&self, model: &mut dyn CoreModel, columns: &mut Columns) {
        let Columns { active, speeds, reported, filling, reaches, after, held, stirred, .. } =
            &mut *columns;
        filling.iter_mut().zip(&*after).for_each(|(filling, after)| *filling = after.changing);
        let left = |level: CacheLevel, members: &[usize]| {
            let new = |member: usize| {
                let fills = level.occupancy_index().is_some_and(|at| filling[member][at]);
                fills || is_new(reported[member], speeds[member])
            };
            !matters(active, level, members) && members.iter().any(|&member| new(member))
        };
        let span = Span { ns: self.span, held };
        for core in (0..self.groups.cores()).filter(|core| stirred[*core]) {
            let groups = self.groups.of_core(core);
            caches::set(groups, self.tasks, speeds, span, left, reaches, after);
        }
        caches::set(self.groups.of_several(), self.tasks, speeds, span, left, reaches, after);
        for (reported, speed) in reported.iter_mut().zip(&*speeds) {
            if is_new(*reported, *speed) {
                *reported = *speed;
            }
        }
        for core in 0..self.groups.cores() {
            for index in self.groups.tasks(core) {
                let known = columns.rates[index].is_some() && !columns.stirred[core];
                columns.renewed[index] = !known && {
                    caches::hand_over(&columns.reaches[index], &mut columns.environments[index]);
                    columns.rate(model, &self.tasks[index], index)
                };
            }
        }
    }
}

/// Is a speed another than was reported last, or was none reported?
fn is_new(reported: f64, speed: f64) -> bool {
    reported.is_nan() || (reported - speed).abs() > STILL
}

/// Does the reach at a level affect the speed of any of these threads? Misses of the last level
/// are traffic, and how old lines are there follows from the levels above, so caches always do.
fn matters(active: &[u32], level: CacheLevel, members: &[usize]) -> bool {
    let bit = FIRST_REACH + level as usize;
    matches!(level, CacheLevel::L1d | CacheLevel::L1i | CacheLevel::L2 | CacheLevel::Last)
        || members.iter().any(|&member| active[member] >> bit & 1 == 1)
}
