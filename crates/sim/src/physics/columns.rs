//! What the fixed point works on: one entry for each task in each column.
//!
//! # Approach
//! Columns live from one call to the next. As long as the same threads run
//! on the same cores, only what changed is computed again; otherwise what is known of
//! each thread is kept as a [`Memo`] and the columns are laid out anew.
//!
//! A core *sleeps* while nothing that its threads notice has changed: it takes no part in rounds,
//! and what its threads do is as before.

use std::ops::Range;

use super::caches::{self, After, Held, Reaches};
use super::domains::Physics;
use super::groups::Groups;
use super::local::Local;
use super::memory;
use super::mixing::Mixing;
use super::near::{self, SAME};
use super::pipeline::{Environment, GROUPS, Level, STRUCTURES};
use super::rates::{Rates, misses};
use super::respond::Respond;
use super::response::Response;
use super::solve::CLOSE;
use super::step::Step;
use super::tasks::{self, Task};

/// A thread whose surroundings are the same as before rests when its IPC is so near; who is so near
/// does not notice what changed.
const RESTS: f64 = CLOSE / 4.0;
/// Of all traffic, what a thread may fetch more or less without anybody minding.
const LITTLE: f64 = 2e-4;
/// Environments that differ by no more have the same misses.
const EQUAL: f64 = 2e-4;
/// What a thread takes of its core by no more of all of it is taken as before.
const TAKEN: f64 = 0.05;

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
    /// Tells where its pages lie from elsewhere.
    pages: u64,
}

impl Seat {
    pub(super) fn of(task: &Task<'_>) -> Self {
        let Task { thread, core, mode, peers, .. } = *task;
        let mark = |mark: u64, part: &f64| mark.rotate_left(9) ^ part.to_bits();
        Self { thread, core, mode, peers, pages: task.pages.iter().fold(0, mark) }
    }
}

/// One entry for each task in each column.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Columns {
    pub seats: Vec<Seat>,
    /// Fingerprints of the phases.
    pub phases: Vec<u64>,
    pub ipc: Vec<f64>,
    /// What the environments make of the CPI.
    pub cpi: Vec<f64>,
    pub steps: Vec<Step>,
    pub responses: Vec<Response>,
    pub environments: Vec<Environment>,
    /// The environments to which the responses belong, and what follows nearby.
    pub asked: Vec<Option<(Environment, Option<Local>)>>,
    /// The environments in which they were when they took their last steps.
    pub felt: Vec<Environment>,
    /// The speeds to which the reaches in caches of one core belong.
    pub speeds: Vec<f64>,
    /// The speeds that other cores reckon with.
    pub shown: Vec<f64>,
    /// The speeds to which the reaches in caches of several cores belong.
    pub spread: Vec<f64>,
    /// The speeds to which the reaches belong that matter to no speed; none yet: not a number.
    pub told: Vec<f64>,
    /// Is there reason to solve its caches and its core again?
    pub moved: Vec<bool>,
    /// Does what it holds of its L2 and its last level still change?
    pub filling: Vec<[bool; 2]>,
    pub reaches: Vec<Reaches>,
    /// Bytes that each fetches per instruction.
    pub bytes: Vec<f64>,
    /// What memory reckons with, 10⁹ bytes per second.
    pub traffic: Vec<f64>,
    /// What each takes of what memory offers it, when it was asked for last.
    pub used: Vec<f64>,
    pub cares: Vec<u32>,
    pub held: Vec<Held>,
    pub after: Vec<After>,
    /// The last rates; the environments to which what the window model says and the rest of them
    /// belong.
    pub rates: Vec<Option<([Environment; 2], Rates)>>,
    /// By core: is it awake, and was it in this call?
    pub awake: Vec<bool>,
    pub stirred: Vec<bool>,
    /// Answers that were asked for.
    pub answers: u64,
    /// Rounds of cores.
    pub sweeps: u64,
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
            cpi: vec![1.0; count],
            speeds: vec![0.0; count],
            spread: vec![f64::INFINITY; count],
            told: vec![f64::NAN; count],
            moved: vec![true; count],
            filling: vec![[false; 2]; count],
            bytes: vec![0.0; count],
            traffic: vec![0.0; count],
            cares: tasks.iter().map(|task| respond.cares(task)).collect(),
            after: vec![After::default(); count],
            rates: vec![None; count],
            ..Self::default()
        };
        for task in tasks {
            let Some(memo) = memo(task.thread) else {
                let mut alone = tasks::alone(physics, task);
                let (latency, interval) = memory::alone(physics, task);
                alone.memory_latency = latency * task.ghz;
                alone.memory_interval = interval * task.ghz;
                let response = respond.respond(task, &alone);
                columns.used.push(0.0);
                columns.held.push([None; 2]);
                columns.reaches.push(alone.reach);
                columns.environments.push(alone);
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
        columns.felt.clone_from(&columns.environments);
        columns.shown = (0..count).map(|index| columns.speed(&tasks[index], index)).collect();
        for (index, task) in tasks.iter().enumerate() {
            columns.fetches(task, index);
        }
        columns
    }

    /// Takes up again where the last call ended. `all`: everything may have
    /// changed. Is everyone in the same phase as then?
    pub(super) fn resume(
        &mut self,
        respond: &mut dyn Respond,
        tasks: &[Task<'_>],
        all: bool,
    ) -> bool {
        let mut same = true;
        for (index, task) in tasks.iter().enumerate() {
            let other = self.phases[index] != task.phase.fingerprint;
            same &= !other;
            if other {
                self.phases[index] = task.phase.fingerprint;
                self.cares[index] = respond.cares(task);
                self.asked[index] = None;
                self.rates[index] = None;
            }
            self.steps[index] = Step::default();
            self.held[index] = self.after[index].held;
            self.moved[index] = all || other;
            if self.moved[index] {
                self.told[index] = f64::NAN;
                self.spread[index] = f64::INFINITY;
            }
            self.filling[index] = self.after[index].changing;
        }
        same
    }

    /// Cores are awake that were left so, or whose threads have reason to be.
    pub(super) fn rouse(&mut self, groups: &Groups) {
        self.awake.resize(groups.cores(), false);
        for (core, awake) in self.awake.iter_mut().enumerate() {
            let tasks = groups.tasks(core);
            let fills = |slots: &[bool; 2]| slots.contains(&true);
            *awake |=
                self.moved[tasks.clone()].contains(&true) || self.filling[tasks].iter().any(fills);
        }
        self.stirred.clear();
        self.stirred.resize(groups.cores(), false);
    }

    /// Wakes the cores of those who notice what cores leave each other by now.
    pub(super) fn wake(&mut self, tasks: &[Task<'_>], groups: &Groups) {
        for core in 0..groups.cores() {
            let range = groups.tasks(core);
            if !self.awake[core] && range.clone().any(|index| self.notices(&tasks[index], index)) {
                self.awake[core] = true;
                self.steps[range].fill(Step::default());
            }
        }
    }

    /// Does a thread notice what has changed beyond its core since its last step?
    fn notices(&self, task: &Task<'_>, index: usize) -> bool {
        let Some((from, local)) = &self.asked[index] else { return true };
        let (felt, now) = (&self.felt[index], &self.environments[index]);
        let cpi = self.cpi[index];
        match local {
            Some(local) => {
                !local.reaches_beyond(from, now)
                    || !is_granted(task, local, cpi, from, now)
                    || local.beyond(felt, now).abs() > RESTS * cpi
            }
            None => near::change(task, self.cares[index], cpi, from, now) > SAME,
        }
    }

    /// log₂ of a thread's instructions per ns.
    pub(super) fn speed(&self, task: &Task<'_>, index: usize) -> f64 {
        (self.ipc[index] * task.ghz).log2()
    }

    /// Notes what a thread fetches with what it reaches now; tells its misses of the last level.
    pub(super) fn fetches(&mut self, task: &Task<'_>, index: usize) -> f64 {
        let missed = misses(task, &self.environments[index], Level::Last);
        self.bytes[index] = missed * f64::from(task.pipeline.line);
        missed
    }

    /// Do other cores reckon with about the speed and the traffic that each thread has?
    pub(super) fn agrees(&self, tasks: &[Task<'_>], groups: &Groups) -> bool {
        let alone = groups.of_several().next().is_none();
        let little = LITTLE * self.traffic.iter().sum::<f64>();
        tasks.iter().enumerate().all(|(index, task)| {
            let known = self.traffic[index];
            let now = self.bytes[index] * self.ipc[index] * task.ghz;
            let near = alone || (self.speed(task, index) - self.shown[index]).abs() <= 1.5 * CLOSE;
            near && (now - known).abs() <= CLOSE * known + little
        })
    }

    /// Shows other cores what each thread does; by `mixing` they are to expect what will be.
    pub(super) fn show(&mut self, tasks: &[Task<'_>], mixing: Option<&mut Mixing>) {
        let speeds = tasks.iter().enumerate().map(|(index, task)| self.speed(task, index));
        match mixing {
            None => self.shown = speeds.collect(),
            Some(mixing) => {
                let missing = speeds.zip(&self.shown).map(|(now, shown)| now - shown);
                let missing: Vec<f64> = missing.collect();
                mixing.step(&mut self.shown, &missing);
            }
        }
    }

    /// Takes a step towards what the environment of each of some threads makes of it. Have they
    /// settled?
    pub(super) fn ask(
        &mut self,
        respond: &mut dyn Respond,
        tasks: &[Task<'_>],
        some: Range<usize>,
    ) -> bool {
        let mut settled = true;
        self.sweeps += 1;
        for index in some {
            let task = &tasks[index];
            let cpi = match self.follows(task, index) {
                Some(cpi) => cpi,
                None => {
                    let before = self.responses[index];
                    let cpi = self.look_up(respond, task, index);
                    let now = &self.responses[index];
                    settled &= !takes_otherwise(task, self.ipc[index], &before, now);
                    cpi
                }
            };
            let cpi = cpi.max(1e-9);
            self.cpi[index] = cpi;
            self.felt[index] = self.environments[index];
            // Of one and the same environment: what is taken now, of what was offered before,
            // would swing.
            let granted = self.fetches(task, index) * self.environments[index].memory_interval;
            self.used[index] = granted / cpi;
            let missing = 1.0 / cpi - self.ipc[index];
            if missing.abs() > RESTS * self.ipc[index] {
                settled &= missing.abs() <= CLOSE * self.ipc[index];
                self.ipc[index] += self.steps[index].next(missing, self.ipc[index]);
            }
        }
        settled
    }

    /// The CPI of a thread, if it follows from where an answer was asked for last.
    fn follows(&self, task: &Task<'_>, index: usize) -> Option<f64> {
        let (from, local) = self.asked[index].as_ref()?;
        let (to, cpi) = (&self.environments[index], self.responses[index].cpi);
        match local {
            Some(local) => leads(task, local, cpi, from, to).then(|| local.cpi(from, to)),
            None => (near::change(task, self.cares[index], cpi, from, to) <= SAME).then_some(cpi),
        }
    }

    /// Asks for the response of a thread; tells its CPI.
    fn look_up(&mut self, respond: &mut dyn Respond, task: &Task<'_>, index: usize) -> f64 {
        self.answers += 1;
        let environment = self.environments[index];
        let (new, local) = respond.around(task, &environment);
        // Without slopes it is asked in each round.
        let often = local.is_none() && self.asked[index].is_some();
        let half = often || self.steps[index].swings();
        let response = &mut self.responses[index];
        *response = if half { new.half_way(response) } else { new };
        self.asked[index] = Some((environment, local));
        // What it takes of its core may be other than before, however fast it is.
        self.moved[index] = true;
        response.cpi
    }

    /// Is what followed as full answers are, and what each takes of its core? Those for whom it is not
    /// are asked again; only those are looked at who were awake.
    pub(super) fn check(
        &mut self,
        respond: &mut dyn Respond,
        tasks: &[Task<'_>],
        groups: &Groups,
    ) -> bool {
        for core in 0..groups.cores() {
            if !self.stirred[core] {
                continue;
            }
            for index in groups.tasks(core) {
                let right = self.is_right(respond, &tasks[index], index);
                self.awake[core] |= !right;
            }
        }
        !self.awake.contains(&true)
    }

    /// See [`Columns::check`].
    fn is_right(&mut self, respond: &mut dyn Respond, task: &Task<'_>, index: usize) -> bool {
        let rates = self.rated(respond, task, index);
        let (full, taken) = (rates.cpi, Response::from(&rates.window));
        let response = &mut self.responses[index];
        if (full / self.cpi[index] - 1.0).abs() > CLOSE {
            // Either of them may be what is wrong.
            self.asked[index] = None;
            self.rates[index] = None;
            return false;
        }
        if matches!(self.asked[index], Some((_, Some(_))))
            && takes_otherwise(task, self.ipc[index], response, &taken)
        {
            let taken = Response { cpi: response.cpi, ..taken };
            let half = self.steps[index].swings();
            *response = if half { taken.half_way(response) } else { taken };
            self.moved[index] = true;
            return false;
        }
        true
    }

    /// The rates of a thread, all of it settled. What the window model says is asked for
    /// only if the environment differs enough.
    pub(super) fn rated(
        &mut self,
        respond: &mut dyn Respond,
        task: &Task<'_>,
        index: usize,
    ) -> &Rates {
        let environment = self.environments[index];
        let known = self.is_rated(task, index);
        let answers = &mut self.answers;
        let mut anew = || {
            *answers += 1;
            let window = respond.detail(task, &environment);
            ([environment; 2], Rates::new(task, &environment, window))
        };
        let rated = &mut self.rates[index];
        if !known {
            *rated = Some(anew());
        }
        let (of, rates) = rated.get_or_insert_with(anew);
        if !of[1].is_near(&environment, EQUAL) {
            of[1] = environment;
            *rates = Rates::new(task, &environment, rates.window);
        }
        rates
    }

    /// Is what the window model said of a thread still right?
    fn is_rated(&self, task: &Task<'_>, index: usize) -> bool {
        let Some(([window, _], rates)) = &self.rates[index] else { return false };
        let environment = &self.environments[index];
        if let Some((from, Some(local))) = &self.asked[index] {
            let cpi = self.responses[index].cpi;
            let here = |from: &Environment| leads(task, local, cpi, from, environment);
            if here(from) && here(window) {
                return (local.cpi(from, environment) / rates.cpi - 1.0).abs() <= SAME;
            }
        }
        near::change(task, self.cares[index], rates.cpi, window, environment) <= SAME
    }
}

/// Does a thread take notably more or less of its core than was reckoned with?
fn takes_otherwise(task: &Task<'_>, ipc: f64, known: &Response, new: &Response) -> bool {
    let core = task.pipeline;
    let notable = |known: f64, new: f64, all: f64| (known - new).abs() * ipc > TAKEN * all;
    notable(known.front, new.front, 1.0)
        || (0..GROUPS).any(|group| {
            let ports = core.group_size(group);
            ports > 0.0 && notable(known.port_cycles[group], new.port_cycles[group], ports)
        })
        || (0..STRUCTURES).any(|queue| {
            let room = core.rooms[queue];
            room.shared && notable(known.held[queue], new.held[queue], room.total)
        })
}

/// Does what was looked up in one environment lead to another? Memory's interval may be any that
/// leaves the thread far more than it fetches.
fn leads(task: &Task<'_>, local: &Local, cpi: f64, from: &Environment, to: &Environment) -> bool {
    local.reaches(from, to) && is_granted(task, local, cpi, from, to)
}

/// Is memory's interval alike, or leaves both times far more than is fetched?
fn is_granted(
    task: &Task<'_>,
    local: &Local,
    cpi: f64,
    from: &Environment,
    to: &Environment,
) -> bool {
    local.is_granted_alike(from, to)
        || near::is_granted_enough(task, from, cpi) && near::is_granted_enough(task, to, cpi)
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
