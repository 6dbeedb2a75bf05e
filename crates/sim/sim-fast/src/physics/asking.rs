//! How each thread of the fixed point answers to its surroundings.
//!
//! # Approach
//! A thread takes a part of the step to where its environment leads ([`Columns::ask`]). Where that is
//! follows from the last look-up, or is looked up again. When all has settled, full answers must
//! be what followed ([`Columns::check`]). Between, [`Columns::wake`] reports which threads are affected by what cores
//! leave each other.

use std::ops::Range;

use super::columns::Columns;
use super::groups::Groups;
use super::local::Local;
use super::near::{self, SAME};
use super::pipeline::{Environment, GROUPS, STRUCTURES};
use super::rates::{self, Rates};
use super::respond::Respond;
use super::response::Response;
use super::step::CLOSE;
use super::step::Step;
use super::tasks::Task;

/// A thread whose surroundings are the same as before rests when its IPC is so near.
const RESTS: f64 = CLOSE / 4.0;
/// Environments that differ by no more have the same misses.
const EQUAL: f64 = 2e-4;
/// So far slopes give the CPI without a full answer that confirms it.
const TRUSTED: f64 = 1e-2;
/// What a thread takes of its core by no more of all of it is taken as before.
const TAKEN: f64 = 0.05;

impl Columns {
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
                    // Where the window model is run, half of each change is taken: no end.
                    let (ipc, now) = (self.ipc[index], &self.responses[index]);
                    let otherwise = takes_otherwise(task, ipc, &before, now);
                    settled &= !(otherwise && self.is_local(index));
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
                self.note_speed(task, index);
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

    /// Asks for the response of a thread; returns its CPI.
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

    /// Is what followed as full answers are, and what each takes of its core? Those for which it is not
    /// are asked again; only awake ones are checked.
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
        let (cpi, anew) = self.window(respond, task, index);
        let right = (cpi / self.cpi[index] - 1.0).abs() <= CLOSE;
        let full = self.windows[index].as_ref().filter(|_| anew && self.is_local(index));
        let Some((_, window)) = full else {
            if !right {
                // Either of them may be what is wrong.
                self.asked[index] = None;
                self.windows[index] = None;
            }
            return right;
        };
        let (known, taken) = (self.responses[index], Response::from(window));
        if right && !takes_otherwise(task, self.ipc[index], &known, &taken) {
            return true;
        }
        let half = self.steps[index].swings();
        self.responses[index] = if half { taken.half_way(&known) } else { taken };
        self.moved[index] = true;
        false
    }

    /// Did the last look-up of a thread give slopes?
    fn is_local(&self, index: usize) -> bool {
        matches!(self.asked[index], Some((_, Some(_))))
    }

    /// Sets the rates of a thread, all of it settled. Are they others than before?
    pub(super) fn rate(
        &mut self,
        respond: &mut dyn Respond,
        task: &Task<'_>,
        index: usize,
    ) -> bool {
        let (cpi, _) = self.window(respond, task, index);
        let environment = &self.environments[index];
        let right = |(of, rates): &(Environment, Rates)| {
            of.is_near(environment, EQUAL) && (rates.cpi / cpi - 1.0).abs() <= EQUAL
        };
        let full = self.windows[index].as_ref();
        let full = full.filter(|_| !self.rates[index].as_ref().is_some_and(right));
        let Some((_, window)) = full else { return false };
        let rates = Rates::new(task, environment, rates::with_cpi(window, cpi));
        self.rates[index] = Some((*environment, rates));
        true
    }

    /// The CPI that the window model says of a thread here, in full. It is asked only if the last
    /// answer does not lead here; was it? Slopes then lead on from here.
    fn window(&mut self, respond: &mut dyn Respond, task: &Task<'_>, index: usize) -> (f64, bool) {
        if let Some(cpi) = self.known(task, index) {
            return (cpi, false);
        }
        let environment = self.environments[index];
        let (window, local) = respond.detail_around(task, &environment);
        let cpi = window.cpi;
        self.answers += 1;
        self.windows[index] = Some((environment, window));
        self.rates[index] = None;
        if local.is_some() {
            self.asked[index] = Some((environment, local));
            self.responses[index].cpi = cpi;
        }
        (cpi, true)
    }

    /// The CPI that the last full answer says of a thread here, if it leads here.
    fn known(&self, task: &Task<'_>, index: usize) -> Option<f64> {
        let (of, window) = self.windows[index].as_ref()?;
        let environment = &self.environments[index];
        if let Some((from, Some(local))) = &self.asked[index] {
            let cpi = self.responses[index].cpi;
            let there = |to: &Environment| leads(task, local, cpi, from, to);
            let same = of == from;
            if there(environment) && (same || there(of)) {
                let before = if same { local.there(from) } else { local.cpi(from, of) };
                let more = local.cpi(from, environment) - before;
                let trusted = more.abs() <= TRUSTED * window.cpi;
                return trusted.then_some(window.cpi + more);
            }
        }
        let change = near::change(task, self.cares[index], window.cpi, of, environment);
        (change <= SAME).then_some(window.cpi)
    }

    /// Wakes the cores of those that notice what cores leave each other by now.
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
                    || local.beyond(felt, now).abs() > SAME * cpi
            }
            None => near::change(task, self.cares[index], cpi, from, now) > SAME,
        }
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
