//! The state of the fixed point: one column for each quantity, one row for each running thread.
//!
//! # Approach
//! Columns live from one call to the next. As long as the same threads run on the same cores, only what
//! changed is computed again; otherwise each thread's row is kept as a [`Memo`] and the columns are laid
//! out anew.
//!
//! A core *sleeps* while nothing that its threads notice has changed: it takes no part in rounds, and its
//! threads go on as before.
//!
//! Programs return to their phases: a thread that enters one starts where the last thread was that left
//! it ([`PhaseMemo`]). That is a starting point only; whatever follows from it is checked against the thread's
//! environment now.
//!
//! A thread that waits keeps its lines in the caches, less what others bring in ([`FillRates`]): each line
//! that is brought in evicts a line of all threads alike.

use std::collections::BTreeMap;

use super::aitken::Aitken;
use super::aitken::CLOSE;
use super::anderson::Anderson;
use super::caches::{self, After, Occupancy, Reaches};
use super::core_model::CoreModel;
use super::domains::Physics;
use super::groups::Groups;
use super::linearization::Linearization;
use super::memory;
use super::pipeline::{CacheLevel, CoreSharing, Environment};
use super::rates::{Rates, misses};
use super::response_table::Summary;
use super::tasks::{self, Switches, Task};
use super::window::Outcome;

/// Levels whose occupancy is kept.
const KEPT: [CacheLevel; 2] = [CacheLevel::L2, CacheLevel::Last];

/// The part of all traffic by which a thread's traffic may change without effect on others.
const LITTLE: f64 = 2e-4;

/// When a call begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moment {
    /// At the end of the span of the call before.
    Next,
    /// At its beginning: the span is another one.
    Same,
}

/// What is kept of a thread from one call to the next.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Memo {
    core: usize,
    reaches: Reaches,
    held: Occupancy,
    key: Key,
    left: PhaseMemo,
}

/// What is kept of a phase from when a thread left it last.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct PhaseMemo {
    ipc: f64,
    summary: Summary,
    used: f64,
    asked: Option<(Environment, Option<Linearization>)>,
    /// The last full evaluation, and its environment.
    window: Option<(Environment, Outcome)>,
}

/// Lines that come in per ns and per line that there is room for, by where occupancy is kept
/// ([`CacheLevel::occupancy_index`]) and the cache.
pub(super) type FillRates = BTreeMap<(usize, usize), f64>;

/// The cache of a core at a level, where its threads share one, and the lines it holds.
fn cache(physics: &Physics, core: usize, level: CacheLevel) -> Option<(usize, f64)> {
    let cache = physics.cores.get(core)?.caches[level as usize];
    Some((cache.shared?, cache.lines))
}

impl Memo {
    /// Others have brought in lines for some ns.
    pub(super) fn wear(&mut self, physics: &Physics, brought: &FillRates, ns: f64) {
        for level in KEPT {
            let Some(slot) = level.occupancy_index() else { continue };
            let Some((cache, _)) = cache(physics, self.core, level) else { continue };
            if let (Some(held), Some(rate)) = (&mut self.held[slot], brought.get(&(slot, cache))) {
                *held *= (-rate * ns).exp();
            }
        }
    }
}

/// A phase on a core type in a mode, alone there or not: fingerprint, core type, mode, sharing.
type Key = (u64, usize, u32, CoreSharing);

fn key(task: &Task<'_>) -> Key {
    (task.phase.fingerprint, task.core_type, task.mode, task.pipeline.sharing)
}

/// Phases that were left.
pub(super) type Phases = BTreeMap<Key, PhaseMemo>;

/// The hardware thread's core, as far as a thread's row depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CoreSlot {
    pub thread: u64,
    pub core: usize,
    core_type: usize,
    mode: u32,
    sharing: CoreSharing,
    peers: usize,
    /// Distinguishes where its pages lie from elsewhere.
    pages: u64,
}

impl CoreSlot {
    pub(super) fn of(task: &Task<'_>) -> Self {
        let Task { thread, core, core_type, mode, peers, .. } = *task;
        let mark = |mark: u64, part: &f64| mark.rotate_left(9) ^ part.to_bits();
        let (sharing, pages) = (task.pipeline.sharing, task.pages.iter().fold(0, mark));
        Self { thread, core, core_type, mode, sharing, peers, pages }
    }
}

/// One entry for each task in each column.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Columns {
    pub core_slots: Vec<CoreSlot>,
    /// Fingerprints of the phases.
    pub phases: Vec<u64>,
    pub ipc: Vec<f64>,
    /// log₂ of each thread's instructions per ns.
    pub fast: Vec<f64>,
    /// The CPIs that follow from the environments.
    pub cpi: Vec<f64>,
    pub steps: Vec<Aitken>,
    pub summaries: Vec<Summary>,
    pub environments: Vec<Environment>,
    /// The environments at which the summaries were evaluated, with their linearizations.
    pub asked: Vec<Option<(Environment, Option<Linearization>)>>,
    /// The environments of their last steps.
    pub felt: Vec<Environment>,
    /// The speeds to which the reaches in caches of one core belong.
    pub speeds: Vec<f64>,
    /// The speeds that other cores assume.
    pub shown: Vec<f64>,
    /// The speeds to which the reaches in caches of several cores belong.
    pub spread: Vec<f64>,
    /// The speeds to which the reaches belong that matter to no speed; none yet: not a number.
    pub reported: Vec<f64>,
    /// Is there reason to solve its caches and its core again?
    pub moved: Vec<bool>,
    /// Does what it holds of its L2 and its last level still change?
    pub filling: Vec<[bool; 2]>,
    /// Did it when the call began?
    filled: Vec<[bool; 2]>,
    pub reaches: Vec<Reaches>,
    /// Bytes that each fetches per instruction.
    pub bytes: Vec<f64>,
    /// The traffic that memory assumes, 10⁹ bytes per second.
    pub traffic: Vec<f64>,
    /// The share that each takes of what memory offers it, at its last step.
    pub used: Vec<f64>,
    pub active: Vec<u32>,
    pub held: Vec<Occupancy>,
    pub after: Vec<After>,
    /// The last full evaluations, and their environments.
    pub windows: Vec<Option<(Environment, Outcome)>>,
    /// The last rates, and the environments to which they belong.
    pub rates: Vec<Option<(Environment, Rates)>>,
    /// Have these changed since the end of the last call?
    pub renewed: Vec<bool>,
    /// By core: is it awake, and was it in this call?
    pub awake: Vec<bool>,
    pub stirred: Vec<bool>,
    /// Evaluations of the core model.
    pub answers: u64,
    /// Rounds of cores.
    pub sweeps: u64,
}

impl Columns {
    /// Are the same threads in the same core slots?
    pub(super) fn fit(&self, tasks: &[Task<'_>]) -> bool {
        self.core_slots.iter().copied().eq(tasks.iter().map(CoreSlot::of))
    }

    /// What the threads of the last call brought in.
    pub(super) fn brought(&self, physics: &Physics) -> FillRates {
        let mut brought = FillRates::new();
        for (core_slot, rates) in self.core_slots.iter().zip(&self.rates) {
            let Some((_, rates)) = rates else { continue };
            let misses = [rates.l2_misses, rates.llc_misses];
            for level in KEPT {
                let Some(slot) = level.occupancy_index() else { continue };
                let Some((cache, lines)) = cache(physics, core_slot.core, level) else { continue };
                let rate = misses[slot] * rates.instructions_per_second() / 1e9 / lines;
                if rate > 0.0 {
                    *brought.entry((slot, cache)).or_default() += rate;
                }
            }
        }
        brought
    }

    /// What is known of each thread.
    pub(super) fn memos(&self) -> impl Iterator<Item = (u64, Memo)> {
        self.core_slots.iter().enumerate().map(|(index, core_slot)| {
            let memo = Memo {
                core: core_slot.core,
                reaches: self.reaches[index],
                held: self.after[index].held,
                key: (self.phases[index], core_slot.core_type, core_slot.mode, core_slot.sharing),
                left: self.left(index),
            };
            (core_slot.thread, memo)
        })
    }

    /// Laid out anew: each thread begins where it was, or as if alone with an
    /// equal share of its core.
    pub(super) fn new<'m>(
        physics: &Physics,
        model: &mut dyn CoreModel,
        tasks: &[Task<'_>],
        switches: Switches,
        memo: impl Fn(u64) -> Option<&'m Memo>,
    ) -> Self {
        let count = tasks.len();
        let mut columns = Self {
            core_slots: tasks.iter().map(CoreSlot::of).collect(),
            phases: tasks.iter().map(|task| task.phase.fingerprint).collect(),
            steps: vec![Aitken::default(); count],
            asked: vec![None; count],
            cpi: vec![1.0; count],
            speeds: vec![0.0; count],
            spread: vec![f64::INFINITY; count],
            reported: vec![f64::NAN; count],
            moved: vec![true; count],
            filling: vec![[false; 2]; count],
            filled: vec![[false; 2]; count],
            bytes: vec![0.0; count],
            traffic: vec![0.0; count],
            active: tasks.iter().map(|task| model.inputs(task)).collect(),
            after: vec![After::default(); count],
            windows: vec![None; count],
            rates: vec![None; count],
            renewed: vec![true; count],
            ..Self::default()
        };
        for (index, task) in tasks.iter().enumerate() {
            let Some(memo) = memo(task.thread) else {
                let mut alone = tasks::alone(physics, task);
                let (latency, interval) = memory::alone(physics, task);
                alone.memory_latency = latency * task.ghz;
                alone.memory_interval = interval * task.ghz;
                let summary = model.summary(task, &alone);
                columns.used.push(0.0);
                columns.held.push([None; 2]);
                columns.reaches.push(alone.reach);
                columns.environments.push(alone);
                columns.ipc.push(1.0 / summary.cpi.max(1e-9) / task.peers as f64);
                columns.summaries.push(summary);
                continue;
            };
            let mut environment = task.pipeline.alone(memo.reaches, 1.0, 1.0);
            caches::hand_over(&memo.reaches, &mut environment);
            columns.used.push(memo.left.used);
            columns.held.push(still_held(physics, task, switches, memo));
            columns.reaches.push(memo.reaches);
            columns.environments.push(environment);
            columns.ipc.push(memo.left.ipc);
            columns.summaries.push(memo.left.summary);
            if memo.key == key(task) {
                columns.asked[index] = memo.left.asked;
                columns.windows[index] = memo.left.window;
            }
        }
        columns.felt.clone_from(&columns.environments);
        columns.fast.resize(count, 0.0);
        for (index, task) in tasks.iter().enumerate() {
            columns.note_speed(task, index);
            columns.fetches(task, index);
        }
        columns.shown.clone_from(&columns.fast);
        columns
    }

    /// Does any thread hold notably more or less of a cache at the end of the span?
    pub(super) fn shifts(&self) -> bool {
        self.after.iter().any(|after| after.shifted.contains(&true))
    }

    /// Is there a thread that does not hold yet what it will in the long run?
    pub(super) fn fills(&self) -> bool {
        self.after.iter().any(|after| after.changing.contains(&true))
    }

    /// Takes up again where the last call ended, or where it began. `all`: everything may have
    /// changed. Is each thread in the same phase as then?
    pub(super) fn resume(
        &mut self,
        model: &mut dyn CoreModel,
        tasks: &[Task<'_>],
        (all, moment): (bool, Moment),
        phases: &mut Phases,
    ) -> bool {
        let mut same = true;
        for (index, task) in tasks.iter().enumerate() {
            let other = self.phases[index] != task.phase.fingerprint;
            same &= !other;
            if other {
                let before = (self.phases[index], task.core_type, task.mode, task.pipeline.sharing);
                phases.insert(before, self.left(index));
                self.phases[index] = task.phase.fingerprint;
                self.active[index] = model.inputs(task);
                self.enter(index, phases.get(&key(task)));
                self.note_speed(task, index);
            }
            self.steps[index] = Aitken::default();
            let after = &mut self.after[index];
            let shifted = std::mem::take(&mut after.shifted).contains(&true);
            let changes = shifted || after.changing.contains(&true);
            let again = moment == Moment::Same && changes;
            if moment == Moment::Next {
                self.held[index] = after.held;
                self.filled[index] = after.changing;
            }
            self.moved[index] = all || other || again;
            if self.moved[index] {
                self.reported[index] = f64::NAN;
                self.spread[index] = f64::INFINITY;
            }
            self.filling[index] = self.filled[index];
        }
        same
    }

    /// What is known of the phase that a thread is in.
    fn left(&self, index: usize) -> PhaseMemo {
        PhaseMemo {
            ipc: self.ipc[index],
            summary: self.summaries[index],
            used: self.used[index],
            asked: self.asked[index],
            window: self.windows[index],
        }
    }

    /// Enters a phase, of which so much is known.
    fn enter(&mut self, index: usize, known: Option<&PhaseMemo>) {
        self.rates[index] = None;
        let Some(left) = known else {
            self.asked[index] = None;
            self.windows[index] = None;
            return;
        };
        self.ipc[index] = left.ipc;
        self.summaries[index] = left.summary;
        self.used[index] = left.used;
        self.asked[index] = left.asked;
        self.windows[index] = left.window;
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

    /// Notes how fast a thread is, whose IPC is another.
    pub(super) fn note_speed(&mut self, task: &Task<'_>, index: usize) {
        self.fast[index] = (self.ipc[index] * task.ghz).log2();
    }

    /// Notes what a thread fetches with what it reaches now; returns its misses of the last level.
    pub(super) fn fetches(&mut self, task: &Task<'_>, index: usize) -> f64 {
        let missed = misses(task, &self.environments[index], CacheLevel::Last);
        self.bytes[index] = missed * f64::from(task.pipeline.line);
        missed
    }

    /// Do the speed and the traffic that other cores assume agree with those of each thread?
    pub(super) fn agrees(&self, tasks: &[Task<'_>], groups: &Groups) -> bool {
        let alone = groups.of_several().next().is_none();
        let little = LITTLE * self.traffic.iter().sum::<f64>();
        tasks.iter().enumerate().all(|(index, task)| {
            let known = self.traffic[index];
            let now = self.bytes[index] * self.ipc[index] * task.ghz;
            let near = alone || (self.fast[index] - self.shown[index]).abs() <= 1.5 * CLOSE;
            near && (now - known).abs() <= CLOSE * known + little
        })
    }

    /// Shows other cores what each thread does, extrapolated by `anderson`.
    pub(super) fn show(&mut self, anderson: Option<&mut Anderson>) {
        match anderson {
            None => self.shown.clone_from(&self.fast),
            Some(anderson) => {
                let missing = self.fast.iter().zip(&self.shown).map(|(now, shown)| now - shown);
                let missing: Vec<f64> = missing.collect();
                anderson.step(&mut self.shown, &missing);
            }
        }
    }
}

/// The lines that a thread still has in its caches. One that migrated has
/// none, unless its caches are private.
fn still_held(physics: &Physics, task: &Task<'_>, switches: Switches, memo: &Memo) -> Occupancy {
    let place =
        |core: usize, level: CacheLevel| cache(physics, core, level).map(|(cache, _)| cache);
    KEPT.map(|level| {
        let (from, to) = (place(memo.core, level), place(task.core, level));
        let stays =
            switches.private_caches || memo.core == task.core || (from.is_some() && from == to);
        let held = memo.held[level.occupancy_index()?]?;
        Some(if stays { held } else { 0.0 })
    })
}
