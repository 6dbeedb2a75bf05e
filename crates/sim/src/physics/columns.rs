//! What the fixed point works on: one entry for each task in each column.
//!
//! # Approach
//! Columns live from one call to the next. As long as the same threads run
//! on the same cores, only what changed is computed again; otherwise what is known of
//! each thread is kept as a [`Memo`] and the columns are laid out anew.

use super::caches::{self, After, Held, Reaches};
use super::domains::Physics;
use super::memory;
use super::near::{self, SAME};
use super::pipeline::{Environment, Level};
use super::rates::{Rates, misses};
use super::respond::Respond;
use super::response::Response;
use super::solve::CLOSE;
use super::step::Step;
use super::tasks::{self, Task};

/// A thread whose surroundings are the same as before rests when its IPC is so near.
const RESTS: f64 = CLOSE / 4.0;
/// Environments that differ by no more have the same misses.
const EQUAL: f64 = 2e-4;

/// What is remembered of a thread.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Memo {
    core: usize,
    ipc: f64,
    reaches: Reaches,
    response: Response,
    used: f64,
    held: Held,
}

/// A thread's place and what it does there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Seat {
    pub thread: u64,
    pub core: usize,
    mode: u32,
    peers: usize,
}

impl Seat {
    pub(super) fn of(task: &Task<'_>) -> Self {
        Self { thread: task.thread, core: task.core, mode: task.mode, peers: task.peers }
    }
}

/// One entry for each task in each column.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Columns {
    pub seats: Vec<Seat>,
    /// Fingerprints of the phases.
    pub phases: Vec<u64>,
    pub ipc: Vec<f64>,
    pub steps: Vec<Step>,
    pub responses: Vec<Response>,
    pub environments: Vec<Environment>,
    /// The environments to which the responses belong.
    pub asked: Vec<Option<Environment>>,
    /// The speeds to which the reaches belong.
    pub speeds: Vec<f64>,
    /// Is there reason to solve its caches and its core again?
    pub moved: Vec<bool>,
    /// Does what it holds of its L2 and its last level still change?
    pub filling: Vec<[bool; 2]>,
    pub reaches: Vec<Reaches>,
    pub traffic: Vec<f64>,
    /// What each takes of what memory offers it, when it was asked for last.
    pub used: Vec<f64>,
    pub cares: Vec<u32>,
    pub held: Vec<Held>,
    pub after: Vec<After>,
    /// The last rates; the environments to which what the window model says and the rest of them
    /// belong.
    pub rates: Vec<Option<([Environment; 2], Rates)>>,
    /// Answers that were asked for.
    pub answers: u64,
}

impl Columns {
    /// Do the same threads sit on the same seats?
    pub(super) fn fit(&self, tasks: &[Task<'_>]) -> bool {
        self.seats.iter().copied().eq(tasks.iter().map(Seat::of))
    }

    /// What is known of each thread.
    pub(super) fn memos(&self) -> impl Iterator<Item = (u64, Memo)> {
        self.seats.iter().enumerate().map(|(index, seat)| {
            let memo = Memo {
                core: seat.core,
                ipc: self.ipc[index],
                reaches: self.reaches[index],
                response: self.responses[index],
                used: self.used[index],
                held: self.after[index].held,
            };
            (seat.thread, memo)
        })
    }

    /// Laid out anew: each thread begins where it was, or as if alone with an
    /// equal share of its core.
    pub(super) fn new<'m>(
        physics: &Physics,
        respond: &mut dyn Respond,
        tasks: &[Task<'_>],
        memo: impl Fn(u64) -> Option<&'m Memo>,
    ) -> Self {
        let count = tasks.len();
        let mut columns = Self {
            seats: tasks.iter().map(Seat::of).collect(),
            phases: tasks.iter().map(|task| task.phase.fingerprint).collect(),
            steps: vec![Step::default(); count],
            asked: vec![None; count],
            speeds: vec![0.0; count],
            moved: vec![true; count],
            filling: vec![[false; 2]; count],
            traffic: vec![0.0; count],
            cares: tasks.iter().map(|task| respond.cares(task)).collect(),
            after: vec![After::default(); count],
            rates: vec![None; count],
            ..Self::default()
        };
        for task in tasks {
            let Some(memo) = memo(task.thread) else {
                let mut alone = [tasks::alone(physics, task)];
                let nothing = [0.0];
                let one = std::slice::from_ref(task);
                memory::set(physics, one, &nothing, &nothing, true, &mut alone);
                let response = respond.respond(task, &alone[0]);
                columns.used.push(0.0);
                columns.held.push([None; 2]);
                columns.reaches.push(alone[0].reach);
                columns.environments.push(alone[0]);
                columns.ipc.push(1.0 / response.cpi.max(1e-9) / task.peers as f64);
                columns.responses.push(response);
                continue;
            };
            let mut environment = task.pipeline.alone(memo.reaches, 1.0, 1.0);
            caches::hand_over(&memo.reaches, &mut environment);
            columns.used.push(memo.used);
            columns.held.push(still_held(physics, task, memo));
            columns.reaches.push(memo.reaches);
            columns.environments.push(environment);
            columns.ipc.push(memo.ipc);
            columns.responses.push(memo.response);
        }
        columns
    }

    /// Takes up again where the last call ended. `all`: everything may have
    /// changed.
    pub(super) fn resume(&mut self, respond: &mut dyn Respond, tasks: &[Task<'_>], all: bool) {
        for (index, task) in tasks.iter().enumerate() {
            let other = self.phases[index] != task.phase.fingerprint;
            if other {
                self.phases[index] = task.phase.fingerprint;
                self.cares[index] = respond.cares(task);
                self.asked[index] = None;
                self.rates[index] = None;
            }
            self.steps[index] = Step::default();
            self.held[index] = self.after[index].held;
            self.moved[index] = all || other;
            self.filling[index] = self.after[index].changing;
        }
    }

    /// Asks for the response of each thread whose environment moved and takes a step.
    /// Has all settled?
    pub(super) fn ask(&mut self, respond: &mut dyn Respond, tasks: &[Task<'_>]) -> bool {
        let mut settled = true;
        for (index, task) in tasks.iter().enumerate() {
            let environment = &self.environments[index];
            let response = &mut self.responses[index];
            let same = self.asked[index].as_ref().is_some_and(|last| {
                near::change(task, self.cares[index], response.cpi, last, environment) <= SAME
            });
            if !same {
                self.answers += 1;
                let new = respond.respond(task, environment);
                // What was before is of another phase or place, if it was never asked for here.
                let anew = self.asked[index].is_none();
                *response = if anew { new } else { new.half_way(response) };
                self.asked[index] = Some(*environment);
                // Of one and the same environment: what is taken now, of what was offered before,
                // would swing.
                self.used[index] = misses(task, environment, Level::Last)
                    * environment.memory_interval
                    / response.cpi.max(1e-9);
            }
            let wanted = 1.0 / response.cpi.max(1e-9);
            let missing = wanted - self.ipc[index];
            if same && missing.abs() <= RESTS * self.ipc[index] {
                continue;
            }
            settled &= missing.abs() <= CLOSE * self.ipc[index];
            self.ipc[index] += self.steps[index].next(missing, self.ipc[index]);
        }
        settled
    }

    /// The rates of a thread, all of it settled. What the window model says is asked for
    /// only if the environment differs enough.
    pub(super) fn rated(
        &mut self,
        respond: &mut dyn Respond,
        task: &Task<'_>,
        index: usize,
    ) -> Rates {
        let environment = &self.environments[index];
        let known = self.rates[index].take().filter(|([window, _], rates)| {
            near::change(task, self.cares[index], rates.cpi, window, environment) <= SAME
        });
        let (of, rates) = match known {
            Some((of, rates)) if of[1].is_near(environment, EQUAL) => (of, rates),
            Some(([window, _], rates)) => {
                ([window, *environment], Rates::new(task, environment, rates.window))
            }
            None => {
                self.answers += 1;
                let window = respond.detail(task, environment);
                ([*environment; 2], Rates::new(task, environment, window))
            }
        };
        self.rates[index].insert((of, rates)).1
    }
}

/// What a thread still holds of its caches. One that came from elsewhere holds
/// nothing.
fn still_held(physics: &Physics, task: &Task<'_>, memo: &Memo) -> Held {
    let place = |core: usize, level: Level| {
        physics.cores.get(core).and_then(|core| core.caches[level as usize].shared)
    };
    [Level::L2, Level::Last].map(|level| {
        let (from, to) = (place(memo.core, level), place(task.core, level));
        let stays = memo.core == task.core || (from.is_some() && from == to);
        let held = memo.held[caches::kept(level)?]?;
        Some(if stays { held } else { 0.0 })
    })
}
