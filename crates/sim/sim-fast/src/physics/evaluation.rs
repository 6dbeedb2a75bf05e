//! When the fixed point evaluates the core model for a thread, and the step that it then takes.
//!
//! # Approach
//! In each sweep a thread takes a part of the step to where its environment leads ([`Columns::sweep`]),
//! which follows from the last evaluation ([`super::linearization`], [`super::sensitivity`]) or from a
//! new one. When all has settled, evaluations in full must agree with what was extrapolated
//! ([`Columns::check`]). In between, [`Columns::wake`] finds the threads that notice what the cores leave
//! each other.

use std::ops::Range;

use super::aitken::Aitken;
use super::aitken::CLOSE;
use super::columns::Columns;
use super::core_model::CoreModel;
use super::groups::Groups;
use super::linearization::Linearization;
use super::pipeline::{Environment, GROUPS, STRUCTURES};
use super::rates::{self, Rates};
use super::response_table::Summary;
use super::sensitivity::{self, SAME};
use super::tasks::Task;

/// A thread takes no step when its IPC is off by less than this part.
const RESTS: f64 = CLOSE / 4.0;
/// Environments that differ by no more have the same misses.
const EQUAL: f64 = 2e-4;
/// Changes of CPI up to this part are extrapolated without a full evaluation that confirms them.
const TRUSTED: f64 = 1e-2;
/// What a thread takes of its core has not changed if it did by no more than this part of the core.
const TAKEN: f64 = 0.05;

impl Columns {
    /// Takes a step of each of some threads towards the CPI in its environment. Have they
    /// settled?
    pub(super) fn sweep(
        &mut self,
        model: &mut dyn CoreModel,
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
                    let before = self.summaries[index];
                    let cpi = self.look_up(model, task, index);
                    // Where the window model is run, half of each change is taken: no end.
                    let (ipc, now) = (self.ipc[index], &self.summaries[index]);
                    let otherwise = takes_otherwise(task, ipc, &before, now);
                    settled &= !(otherwise && self.is_linearized(index));
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

    /// The CPI of a thread, if it can be extrapolated from its last evaluation.
    fn follows(&self, task: &Task<'_>, index: usize) -> Option<f64> {
        let (from, linear) = self.asked[index].as_ref()?;
        let (to, cpi) = (&self.environments[index], self.summaries[index].cpi);
        match linear {
            Some(linear) => leads(task, linear, cpi, from, to).then(|| linear.cpi(from, to)),
            None => (sensitivity::change(task, self.active[index], cpi, from, to) <= SAME)
                .then_some(cpi),
        }
    }

    /// Evaluates the core model for a thread; returns the CPI.
    fn look_up(&mut self, model: &mut dyn CoreModel, task: &Task<'_>, index: usize) -> f64 {
        self.answers += 1;
        let environment = self.environments[index];
        let (new, linear) = model.linearized_summary(task, &environment);
        // Without slopes it is asked in each round.
        let often = linear.is_none() && self.asked[index].is_some();
        let half = often || self.steps[index].swings();
        let summary = &mut self.summaries[index];
        *summary = if half { new.half_way(summary) } else { new };
        self.asked[index] = Some((environment, linear));
        // What it takes of its core may be other than before, however fast it is.
        self.moved[index] = true;
        summary.cpi
    }

    /// Do full evaluations confirm what was extrapolated, and what each thread takes of its core? Those for which
    /// they do not are evaluated again; only cores that were awake are checked.
    pub(super) fn check(
        &mut self,
        model: &mut dyn CoreModel,
        tasks: &[Task<'_>],
        groups: &Groups,
    ) -> bool {
        for core in 0..groups.cores() {
            if !self.stirred[core] {
                continue;
            }
            for index in groups.tasks(core) {
                let right = self.is_right(model, &tasks[index], index);
                self.awake[core] |= !right;
            }
        }
        !self.awake.contains(&true)
    }

    /// See [`Columns::check`].
    fn is_right(&mut self, model: &mut dyn CoreModel, task: &Task<'_>, index: usize) -> bool {
        let (cpi, anew) = self.window(model, task, index);
        let right = (cpi / self.cpi[index] - 1.0).abs() <= CLOSE;
        let full = self.windows[index].as_ref().filter(|_| anew && self.is_linearized(index));
        let Some((_, window)) = full else {
            if !right {
                // Either of them may be what is wrong.
                self.asked[index] = None;
                self.windows[index] = None;
            }
            return right;
        };
        let (known, taken) = (self.summaries[index], Summary::from(window));
        if right && !takes_otherwise(task, self.ipc[index], &known, &taken) {
            return true;
        }
        let half = self.steps[index].swings();
        self.summaries[index] = if half { taken.half_way(&known) } else { taken };
        self.moved[index] = true;
        false
    }

    /// Did the last look-up of a thread give slopes?
    fn is_linearized(&self, index: usize) -> bool {
        matches!(self.asked[index], Some((_, Some(_))))
    }

    /// Sets the rates of a settled thread. Have they changed?
    pub(super) fn rate(
        &mut self,
        model: &mut dyn CoreModel,
        task: &Task<'_>,
        index: usize,
    ) -> bool {
        let (cpi, _) = self.window(model, task, index);
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

    /// The CPI of a thread by a full evaluation, and whether a new one was needed: it is not if the last
    /// one can be extrapolated to here. Slopes are then taken from here.
    fn window(&mut self, model: &mut dyn CoreModel, task: &Task<'_>, index: usize) -> (f64, bool) {
        if let Some(cpi) = self.known(task, index) {
            return (cpi, false);
        }
        let environment = self.environments[index];
        let (window, linear) = model.linearized_detail(task, &environment);
        let cpi = window.cpi;
        self.answers += 1;
        self.windows[index] = Some((environment, window));
        self.rates[index] = None;
        if linear.is_some() {
            self.asked[index] = Some((environment, linear));
            self.summaries[index].cpi = cpi;
        }
        (cpi, true)
    }

    /// The CPI extrapolated from the last full evaluation, if it reaches here.
    fn known(&self, task: &Task<'_>, index: usize) -> Option<f64> {
        let (of, window) = self.windows[index].as_ref()?;
        let environment = &self.environments[index];
        if let Some((from, Some(linear))) = &self.asked[index] {
            let cpi = self.summaries[index].cpi;
            let there = |to: &Environment| leads(task, linear, cpi, from, to);
            let same = of == from;
            if there(environment) && (same || there(of)) {
                let before = if same { linear.there(from) } else { linear.cpi(from, of) };
                let more = linear.cpi(from, environment) - before;
                let trusted = more.abs() <= TRUSTED * window.cpi;
                return trusted.then_some(window.cpi + more);
            }
        }
        let change = sensitivity::change(task, self.active[index], window.cpi, of, environment);
        (change <= SAME).then_some(window.cpi)
    }

    /// Wakes the cores of those that notice what cores leave each other by now.
    pub(super) fn wake(&mut self, tasks: &[Task<'_>], groups: &Groups) {
        for core in 0..groups.cores() {
            let range = groups.tasks(core);
            if !self.awake[core] && range.clone().any(|index| self.notices(&tasks[index], index)) {
                self.awake[core] = true;
                self.steps[range].fill(Aitken::default());
            }
        }
    }

    /// Does a thread notice what has changed beyond its core since its last step?
    fn notices(&self, task: &Task<'_>, index: usize) -> bool {
        let Some((from, linear)) = &self.asked[index] else { return true };
        let (felt, now) = (&self.felt[index], &self.environments[index]);
        let cpi = self.cpi[index];
        match linear {
            Some(linear) => {
                !linear.reaches_beyond(from, now)
                    || !is_granted(task, linear, cpi, from, now)
                    || linear.beyond(felt, now).abs() > SAME * cpi
            }
            None => sensitivity::change(task, self.active[index], cpi, from, now) > SAME,
        }
    }
}

/// Does a thread take notably more or less of its core than was reckoned with?
fn takes_otherwise(task: &Task<'_>, ipc: f64, known: &Summary, new: &Summary) -> bool {
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

/// Can the CPI be extrapolated from one environment to another? Memory's interval may be any that
/// grants the thread far more than it fetches.
fn leads(
    task: &Task<'_>,
    linear: &Linearization,
    cpi: f64,
    from: &Environment,
    to: &Environment,
) -> bool {
    linear.reaches(from, to) && is_granted(task, linear, cpi, from, to)
}

/// Is memory's interval alike, or leaves both times far more than is fetched?
fn is_granted(
    task: &Task<'_>,
    linear: &Linearization,
    cpi: f64,
    from: &Environment,
    to: &Environment,
) -> bool {
    linear.is_granted_alike(from, to)
        || sensitivity::is_granted_enough(task, from, cpi)
            && sensitivity::is_granted_enough(task, to, cpi)
}
