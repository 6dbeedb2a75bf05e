//! What all threads of a machine do to each other: a fixed point.
//!
//! # Problem
//! How fast a thread runs depends on what others leave it, which depends on how
//! fast they run.
//!
//! # Approach
//! Guess all IPCs (the last ones of the thread, where known); from them follow the
//! shares of slots, ports and queues inside each core, the reach of each shared
//! cache, and queueing at memory and links; from these, by the window model, new
//! IPCs. A part of each step is taken ([`Step`]), until none exceeds [`CLOSE`]. Only where
//! surroundings have moved far is a table looked up again; nearby, its slopes tell the CPI
//! ([`local`]). Once all has settled, full answers are asked for where they may differ notably from
//! the last ones, and must be what followed from slopes. So when one thread enters another phase,
//! that costs answers for itself and for whoever notices it on its core, in shared caches and at
//! memory. What does not settle within [`ROUNDS`] is used as it is and told
//! ([`Solution::settled`]).
//!
//! # Terms and units
//! *Speed*: log₂ of instructions per ns. *Round*: one evaluation of all threads that
//! moved.
//!
//! [`Step`]: super::step::Step
//! [`local`]: super::local

use std::collections::BTreeMap;

use super::caches::{self, Span};
use super::columns::{Columns, Memo};
use super::coupling;
use super::domains::Physics;
use super::memory::Memory;
use super::pipeline::{FIRST_REACH, Level};
use super::rates::{Rates, misses};
use super::tasks::{self, Groups, Load, Switches, Task};

pub use super::respond::{Direct, Respond, Tables};

/// Largest relative change of an IPC that counts as none.
pub const CLOSE: f64 = 2e-3;
/// Most rounds.
pub const ROUNDS: u32 = 40;
/// Change of a speed, in octaves, below which caches are not solved again.
const STILL: f64 = 2e-3;

/// What is remembered from one call to the next: warm starts and what caches hold.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct State {
    /// Of threads that do not run now.
    memos: BTreeMap<u64, Memo>,
    columns: Columns,
    groups: Groups,
    memory: Memory,
    switches: Switches,
    /// Calls that did not settle.
    pub unsettled: u64,
    /// Rounds of all calls.
    pub rounds: u64,
    /// Calls.
    pub calls: u64,
    /// Answers that were asked for in all calls.
    pub answers: u64,
}

impl State {
    /// Nothing is known any more of a thread.
    pub fn forget(&mut self, thread: u64) {
        self.memos.remove(&thread);
        if self.columns.seats.iter().any(|seat| seat.thread == thread) {
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
        respond: &mut dyn Respond,
        switches: Switches,
        loads: &[Load<'_>],
        span: Option<f64>,
        state: &mut State,
    ) -> Solution {
        let tasks = tasks::flatten(self, loads);
        state.groups.update(self, &tasks, switches.private_caches);
        if state.columns.fit(&tasks) {
            let all = state.switches != switches;
            state.columns.resume(respond, &tasks, all);
        } else {
            let columns = std::mem::take(&mut state.columns);
            state.memos.extend(columns.memos());
            let memos = &state.memos;
            state.columns = Columns::new(self, respond, &tasks, |thread| memos.get(&thread));
        }
        state.switches = switches;
        state.memory.lay_out(self, &tasks, switches.private_bandwidth);
        let State { columns, groups, memory, .. } = state;
        let (mut rounds, mut settled) = (0, tasks.is_empty());
        while !settled && rounds < ROUNDS {
            rounds += 1;
            self.surroundings(&tasks, groups, memory, switches, span, columns);
            settled = columns.ask(respond, &tasks) && columns.check(respond, &tasks);
        }
        let rates = self.finish(respond, &tasks, groups, span, columns);
        state.answers += std::mem::take(&mut columns.answers);
        state.calls += 1;
        state.rounds += u64::from(rounds);
        state.unsettled += u64::from(!settled);
        Solution { rates, rounds, settled }
    }

    /// Environments that follow from the IPCs.
    fn surroundings(
        &self,
        tasks: &[Task<'_>],
        groups: &Groups,
        memory: &mut Memory,
        switches: Switches,
        span: Option<f64>,
        columns: &mut Columns,
    ) {
        for (index, task) in tasks.iter().enumerate() {
            let speed = (columns.ipc[index] * task.ghz).log2();
            if columns.moved[index] || (speed - columns.speeds[index]).abs() > STILL {
                columns.moved[index] = true;
                columns.speeds[index] = speed;
            }
        }
        let Columns { moved, filling, cares, speeds, reaches, after, held, .. } = columns;
        let wanted = |level: Level, members: &[usize]| {
            let fills = |member: usize| caches::kept(level).is_some_and(|at| filling[member][at]);
            members.iter().any(|&member| moved[member] || fills(member))
                && matters(cares, level, members)
        };
        caches::set(groups, tasks, speeds, Span { ns: span, held }, wanted, reaches, after);
        for (index, task) in tasks.iter().enumerate() {
            let environment = &mut columns.environments[index];
            caches::hand_over(&columns.reaches[index], environment);
            columns.traffic[index] = misses(task, environment, Level::Last)
                * f64::from(task.pipeline.line)
                * columns.ipc[index]
                * task.ghz;
        }
        memory.set(tasks, &columns.traffic, &columns.used, &mut columns.environments);
        for range in tasks::by_core(tasks) {
            if !columns.moved[range.clone()].contains(&true) {
                continue;
            }
            let cares = columns.cares[range.clone()].iter().fold(0, |all, own| all | own);
            let (ipc, responses) = (&columns.ipc[range.clone()], &columns.responses[range.clone()]);
            let environments = &mut columns.environments[range.clone()];
            coupling::set(&tasks[range], ipc, responses, switches, cares, environments);
        }
        columns.moved.fill(false);
        columns.filling.fill([false; 2]);
    }

    /// Reaches that mattered to no speed, and rates.
    fn finish(
        &self,
        respond: &mut dyn Respond,
        tasks: &[Task<'_>],
        groups: &Groups,
        span: Option<f64>,
        columns: &mut Columns,
    ) -> Vec<(u64, Rates)> {
        let Columns { cares, speeds, told, filling, reaches, after, held, .. } = columns;
        filling.iter_mut().zip(&*after).for_each(|(filling, after)| *filling = after.changing);
        let left = |level: Level, members: &[usize]| {
            let new = |member: usize| {
                let fills = caches::kept(level).is_some_and(|at| filling[member][at]);
                fills || is_new(told[member], speeds[member])
            };
            !matters(cares, level, members) && members.iter().any(|&member| new(member))
        };
        caches::set(groups, tasks, speeds, Span { ns: span, held }, left, reaches, after);
        for (told, speed) in told.iter_mut().zip(&*speeds) {
            if is_new(*told, *speed) {
                *told = *speed;
            }
        }
        let mut rates = Vec::with_capacity(tasks.len());
        for (index, task) in tasks.iter().enumerate() {
            caches::hand_over(&columns.reaches[index], &mut columns.environments[index]);
            rates.push((task.thread, *columns.rated(respond, task, index)));
        }
        rates
    }
}

/// Is a speed another than was told last, or none was told?
fn is_new(told: f64, speed: f64) -> bool {
    told.is_nan() || (told - speed).abs() > STILL
}

/// Does the reach at a level do anything to the speed of any of these? Misses of the last level
/// are traffic, so they always do.
fn matters(cares: &[u32], level: Level, members: &[usize]) -> bool {
    let bit = FIRST_REACH + level as usize;
    level == Level::Last || members.iter().any(|&member| cares[member] >> bit & 1 == 1)
}
