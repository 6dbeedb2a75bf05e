//! What the fixed point works on: one entry for each task in each column.
//!
//! # Approach
//! Columns live from one call to the next. As long as the same threads run
//! on the same cores, only what changed is computed again; otherwise what is known of
//! each thread is kept as a [`Memo`] and the columns are laid out anew.

use super::caches::{self, After, Held, Reaches};
use super::domains::Physics;
use super::memory;
use super::pipeline::{Environment, Level};
use super::rates::Rates;
use super::respond::Respond;
use super::response::Response;
use super::solve::CLOSE;
use super::step::Step;
use super::tasks::{self, Task};

/// Environments that differ by no more get the same answer.
pub(super) const SAME: f64 = 2e-4;
/// Environments that differ by no more hold as much of queues and ports.
const ALIKE: f64 = 5e-2;

/// What is remembered of a thread.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Memo {
    core: usize,
    ipc: f64,
    reaches: Reaches,
    response: Response,
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
    /// The environments to which the responses belong: the whole ones, and the CPI.
    pub asked: Vec<Option<[Environment; 2]>>,
    /// The speeds to which the reaches belong.
    pub speeds: Vec<f64>,
    /// Is there reason to solve its caches and its core again?
    pub moved: Vec<bool>,
    pub reaches: Vec<Reaches>,
    pub traffic: Vec<f64>,
    pub cares: Vec<u32>,
    pub held: Vec<Held>,
    pub after: Vec<After>,
    /// The last rates, and the environment to which they belong.
    pub rates: Vec<Option<(Environment, Rates)>>,
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
            traffic: vec![0.0; count],
            cares: tasks.iter().map(|task| respond.cares(task)).collect(),
            after: vec![After::default(); count],
            rates: vec![None; count],
            ..Self::default()
        };
        for task in tasks {
            let Some(memo) = memo(task.thread) else {
                let mut alone = [tasks::alone(physics, task)];
                memory::set(physics, std::slice::from_ref(task), &[0.0], true, &mut alone);
                let response = respond.respond(task, &alone[0]);
                columns.held.push([None; 2]);
                columns.reaches.push(alone[0].reach);
                columns.environments.push(alone[0]);
                columns.ipc.push(1.0 / response.cpi.max(1e-9) / task.peers as f64);
                columns.responses.push(response);
                continue;
            };
            let mut environment = task.pipeline.alone(memo.reaches, 1.0, 1.0);
            caches::hand_over(&memo.reaches, &mut environment);
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
            self.moved[index] = all || other || self.after[index].changing.contains(&true);
        }
    }

    /// Asks for the response of each thread whose environment moved and takes a step.
    /// Has all settled?
    pub(super) fn ask(
        &mut self,
        respond: &mut dyn Respond,
        tasks: &[Task<'_>],
        round: u32,
    ) -> bool {
        let mut settled = true;
        for (index, task) in tasks.iter().enumerate() {
            let environment = self.environments[index];
            let response = &mut self.responses[index];
            match &mut self.asked[index] {
                Some([_, last]) if last.is_near(&environment, SAME) => {}
                Some([whole, last]) if whole.is_near(&environment, ALIKE) => {
                    response.cpi = respond.cpi(task, &environment);
                    *last = environment;
                }
                asked => {
                    *response = respond.respond(task, &environment).half_way(response);
                    *asked = Some([environment; 2]);
                }
            }
            let wanted = 1.0 / self.responses[index].cpi.max(1e-9);
            let missing = wanted - self.ipc[index];
            settled &= missing.abs() <= CLOSE * self.ipc[index];
            self.ipc[index] += self.steps[index].next(missing, round);
        }
        settled
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
