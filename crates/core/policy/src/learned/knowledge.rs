//! What is known of all threads: which are of one kind, the row of each kind, and what each kind takes from others.
//!
//! # Approach
//! Threads of programs of one name are of one kind, until one of them changes its phase: then it is of a kind of its
//! own, which nothing is known of, or of one that it had before and whose speed it has again.
//!
//! ```text
//! each quantum, for the threads that ran on one core:
//!     expect ln IPC of each; those off by more than five standard deviations are doubted, and teach nothing
//!     one that was doubted in the quantum before, too, has changed its phase: of several, the one that is off most
//!     all others: what its kind takes from others (at a first meeting), scales, row
//! ```
//!
//! What a kind takes from others is where a first meeting with it begins; it is corrected there by how far that was
//! off, in the ratio of variances. Threads on cores of different types are of different kinds.
//!
//! Properties: phases are distinguished and recognised (`a_new_phase_is_a_new_kind_and_an_old_one_is_known_again`), one
//! odd quantum is none (`one_odd_quantum_changes_nothing`), programs of many threads are learned
//! (`programs_of_many_threads_are_learned`), noise is estimated though threads run for unequal shares of the time
//! (`noise_is_estimated_though_shares_of_time_differ`), and what is known stays bounded
//! (`what_is_known_stays_bounded`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use symbiont_machine::ThreadId;

use super::before::{Index, LearnedPairs};
use super::row::{Belief, Kind, OneWay, Origin, Row};
use super::scale::{Scales, Stay};

/// ln of the share of its speed that a thread keeps next to one co-runner, before anything is known.
const CO_RUNNER: f64 = -0.35;
/// Variance of a speed alone, in squares of ln, before anything is known.
const ANY_SPEED: f64 = 1.0;
/// Squares of standard deviations from which a measurement is doubted.
const DOUBTED: f64 = 25.0;
/// Those within which a thread's speed is that of a phase that it had.
const RECOGNISED: f64 = 9.0;
/// Shares of the time that differ by less are the same.
const SAME_SHARE: f64 = 0.1;
/// Phases of a thread that are remembered.
const PHASES: usize = 4;
/// Kinds of programs that do not run that are remembered.
const MOST_ABSENT: usize = 256;

/// A thread in a quantum.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Ran {
    pub thread: ThreadId,
    /// Share of the quantum in which it ran.
    pub share: f64,
    /// Logarithm of its instructions per cycle, if that was measured.
    pub ln_ipc: Option<f64>,
}

#[derive(Debug, Clone)]
struct ThreadState {
    /// The kind of its program.
    origin: Kind,
    /// Kinds of its own, the newest last.
    own: Vec<Kind>,
    /// The one that it is of now.
    kind: Kind,
    with: Vec<(Kind, f64)>,
    stay: Stay,
    is_doubted: bool,
}

/// What is known.
#[derive(Debug, Clone, Default)]
pub(super) struct Knowledge {
    now: u64,
    next: u32,
    threads: BTreeMap<ThreadId, ThreadState>,
    programs: BTreeMap<Origin, Kind>,
    rows: BTreeMap<Kind, Row>,
    takes: BTreeMap<Kind, Belief>,
    scales: Scales,
    changes: u64,
    /// What was known when it began.
    before: Arc<LearnedPairs>,
    index: Index,
}

/// What a measurement says, before it is learned.
struct Reading {
    off: f64,
    /// Its variance, noise included.
    variance: f64,
    noise: f64,
    /// The kind that was met for the first time, if just one was, by a thread that was known.
    met: Option<Kind>,
    others: Vec<(Kind, f64)>,
    is_sure: bool,
}

impl Reading {
    fn surprise(&self) -> f64 {
        self.off.powi(2) / self.variance
    }
}

impl Knowledge {
    /// Begins with what was learned before.
    pub fn new(before: Arc<LearnedPairs>) -> Self {
        Self { index: Index::new(&before), before, ..Self::default() }
    }

    /// What is known now, for the next time.
    pub fn learned(&self) -> LearnedPairs {
        let rows = self
            .programs
            .iter()
            .filter_map(|(origin, kind)| Some((origin, *kind, self.rows.get(kind)?)));
        LearnedPairs::of(&rows.collect::<Vec<_>>(), &self.before)
    }

    /// How many programs are known.
    #[cfg(test)]
    pub fn programs(&self) -> usize {
        self.programs.len()
    }

    /// These threads are there now, each of a program; others are gone.
    pub fn enter(&mut self, here: &[(ThreadId, Origin)]) {
        let all: BTreeSet<ThreadId> = here.iter().map(|(thread, _)| *thread).collect();
        let gone: Vec<ThreadId> =
            self.threads.keys().filter(|thread| !all.contains(thread)).copied().collect();
        for thread in gone {
            if let Some(known) = self.threads.remove(&thread) {
                self.leave(thread, &known);
            }
        }
        for (thread, origin) in here {
            let kind = match self.programs.get(origin) {
                Some(kind) => *kind,
                None => self.new_program(origin),
            };
            if self.threads.get(thread).is_some_and(|known| known.origin == kind) {
                continue;
            }
            let (stay, own, with) = (self.scales.stay(), Vec::new(), Vec::new());
            let new = ThreadState { origin: kind, own, kind, with, stay, is_doubted: false };
            // One that was known went to another type of core.
            if let Some(left) = self.threads.insert(*thread, new) {
                self.leave(*thread, &left);
            }
        }
        self.forget_absent();
    }

    /// The kind that a thread is of.
    pub fn kind(&self, thread: ThreadId) -> Option<Kind> {
        self.threads.get(&thread).map(|known| known.kind)
    }

    /// What a co-runner of one kind adds to the ln IPC of another kind; was it seen?
    pub fn next_to(&self, kind: Kind, other: Kind) -> (Belief, bool) {
        match self.rows.get(&kind).and_then(|row| row.next_to(other)) {
            Some(belief) => (belief, true),
            None => (self.unmet(other), false),
        }
    }

    /// All kinds that were met by one, with what they add.
    pub fn met(&self, kind: Kind) -> impl Iterator<Item = (Kind, Belief)> + '_ {
        self.rows.get(&kind).into_iter().flat_map(Row::all)
    }

    /// What a kind adds to the ln IPC of one that has not met it.
    pub fn unmet(&self, kind: Kind) -> Belief {
        let takes = self.takes.get(&kind).copied().unwrap_or_else(|| self.anything());
        Belief { variance: takes.variance + self.scales.difference(), ..takes }
    }

    /// What each of these kinds, in order, takes from one that is next to another one now, or to none.
    pub fn one_ways(
        &self,
        kind: Kind,
        present: Option<Kind>,
        kinds: &[(Kind, Belief)],
    ) -> Vec<OneWay> {
        let present = present.map(|present| (present, self.unmet(present).variance));
        let row = self.rows.get(&kind);
        let of_present = present.map_or(0.0, |(present, unmet)| {
            row.and_then(|row| row.next_to(present)).map_or(unmet, |next| next.variance)
        });
        let unmet = |(other, belief): &(Kind, Belief)| OneWay {
            mean: belief.mean,
            contrast: match present {
                Some((present, _)) if present == *other => 0.0,
                _ => belief.variance + of_present,
            },
        };
        let mut all: Vec<OneWay> = kinds.iter().map(unmet).collect();
        for (other, one_way) in row.into_iter().flat_map(|row| row.contrasts(present)) {
            if let Ok(at) = kinds.binary_search_by_key(&other, |(kind, _)| *kind) {
                all[at] = one_way;
            }
        }
        all
    }

    /// Variance of a measurement of a thread.
    pub fn noise(&self, thread: ThreadId) -> f64 {
        let known = self.threads.get(&thread);
        known.map_or(0.0, |known| self.scales.noise(&known.stay))
    }

    /// Changes of phase so far.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// A quantum has passed, in which these ran, core by core.
    pub fn learn(&mut self, cores: &[Vec<Ran>]) {
        self.now += 1;
        for core in cores {
            let looks: Vec<Option<Reading>> =
                (0..core.len()).map(|at| self.look(core, at)).collect();
            let doubted: Vec<bool> = (looks.iter().zip(core))
                .map(|(look, ran)| {
                    look.as_ref().is_some_and(|look| self.is_doubtful(look, ran.thread))
                })
                .collect();
            let again =
                (0..core.len()).filter(|&at| doubted[at] && self.is_doubted(core[at].thread));
            let surprise = |at: &usize| looks[*at].as_ref().map_or(0.0, Reading::surprise);
            let changed = again.max_by(|a, b| surprise(a).total_cmp(&surprise(b)));
            for (at, look) in looks.iter().enumerate() {
                let (Some(look), Some(ln_ipc)) = (look, core[at].ln_ipc) else { continue };
                if !doubted[at] {
                    self.learn_one(core[at].thread, ln_ipc, look);
                }
                if let Some(known) = self.threads.get_mut(&core[at].thread) {
                    known.is_doubted = doubted[at] && changed.is_none();
                }
            }
            if let Some((ran, look)) = changed.and_then(|at| Some((&core[at], looks[at].as_ref()?)))
            {
                self.change(ran, &look.others);
            }
        }
    }

    fn is_doubted(&self, thread: ThreadId) -> bool {
        self.threads.get(&thread).is_some_and(|known| known.is_doubted)
    }

    fn is_doubtful(&self, look: &Reading, thread: ThreadId) -> bool {
        (look.is_sure || self.is_doubted(thread)) && look.surprise() > DOUBTED
    }

    /// Looks at what one of the threads of a core did.
    fn look(&mut self, core: &[Ran], at: usize) -> Option<Reading> {
        let Ran { thread, ln_ipc, .. } = core.get(at)?;
        let (ln_ipc, kind) = ((*ln_ipc)?, self.kind(*thread)?);
        let others = core.iter().enumerate().filter(|(other, _)| *other != at);
        let others: Vec<(Kind, f64)> =
            others.filter_map(|(_, ran)| Some((self.kind(ran.thread)?, ran.share))).collect();
        let (now, walk, noise) = (self.now, self.scales.walk(), self.noise(*thread));
        let unmet: BTreeSet<Kind> = others
            .iter()
            .map(|(other, _)| *other)
            .filter(|other| !self.next_to(kind, *other).1)
            .collect();
        let first: Vec<(Kind, Belief)> =
            unmet.iter().map(|other| (*other, self.unmet(*other))).collect();
        let row = self.rows.entry(kind).or_default();
        for (other, belief) in &first {
            row.add_kind(*other, *belief, now);
        }
        let knew = row.knows(*thread);
        if !knew {
            let next = |(other, share): &(Kind, f64)| {
                row.next_to(*other).map_or(0.0, |next| next.mean * share)
            };
            let mean = ln_ipc - others.iter().map(next).sum::<f64>();
            row.add_thread(*thread, Belief { mean, variance: ANY_SPEED }, now);
        }
        row.walk(*thread, walk, now);
        let expected = row.predict(&row.parts(*thread, &others)?).belief;
        let only = match first.as_slice() {
            [(other, _)] if knew => Some(*other),
            _ => None,
        };
        Some(Reading {
            off: ln_ipc - expected.mean,
            variance: expected.variance + noise,
            noise,
            met: only,
            others,
            is_sure: knew && first.is_empty(),
        })
    }

    fn learn_one(&mut self, thread: ThreadId, ln_ipc: f64, look: &Reading) {
        let Some(kind) = self.kind(thread) else { return };
        if let Some(other) = look.met {
            self.scales.met(look.off, look.variance);
            let takes = self.takes.get(&other).copied().unwrap_or_else(|| self.anything());
            let gain = takes.variance / look.variance.max(takes.variance);
            let belief = Belief {
                mean: takes.mean + gain * look.off,
                variance: takes.variance * (1.0 - gain),
            };
            self.takes.insert(other, belief);
        }
        if let Some(known) = self.threads.get_mut(&thread) {
            let is_same = are_alike(&known.with, &look.others);
            self.scales.note(&mut known.stay, ln_ipc, is_same);
            known.with.clone_from(&look.others);
        }
        let row = self.rows.entry(kind).or_default();
        if let Some(parts) = row.parts(thread, &look.others) {
            let expected = row.predict(&parts);
            row.learn(&parts, &expected, ln_ipc - expected.belief.mean, look.noise, self.now);
        }
    }

    /// A thread has changed its phase.
    fn change(&mut self, ran: &Ran, others: &[(Kind, f64)]) {
        self.changes += 1;
        let (Some(ln_ipc), Some(known)) = (ran.ln_ipc, self.threads.get(&ran.thread)) else {
            return;
        };
        let noise = self.scales.noise(&known.stay);
        let fits = |kind: &Kind| {
            let row = self.rows.get(kind)?;
            let expected = row.predict(&row.parts(ran.thread, others)?).belief;
            let surprise = (ln_ipc - expected.mean).powi(2) / (expected.variance + noise);
            (surprise < RECOGNISED).then_some((surprise, *kind))
        };
        let earlier = std::iter::once(&known.origin).chain(&known.own);
        let earlier = earlier.filter(|kind| **kind != known.kind).filter_map(fits);
        let recognised = earlier.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, kind)| kind);
        let kind = recognised.unwrap_or_else(|| self.new_kind());
        let Some(known) = self.threads.get_mut(&ran.thread) else { return };
        known.kind = kind;
        known.with.clear();
        if recognised.is_none() {
            known.own.push(kind);
        }
        if known.own.len() > PHASES {
            let forgotten = known.own.remove(0);
            self.forget(forgotten);
        }
    }

    /// A thread is gone; the kinds of its own go with it.
    fn leave(&mut self, thread: ThreadId, known: &ThreadState) {
        if let Some(row) = self.rows.get_mut(&known.origin) {
            row.remove_thread(thread);
        }
        known.own.iter().for_each(|kind| self.forget(*kind));
    }

    fn forget(&mut self, kind: Kind) {
        self.rows.remove(&kind);
        self.takes.remove(&kind);
        self.rows.values_mut().for_each(|row| row.remove_kind(kind));
    }

    /// Programs that do not run are forgotten where there are too many, those that were known first first.
    fn forget_absent(&mut self) {
        if self.programs.len() <= MOST_ABSENT {
            return;
        }
        let present: BTreeSet<Kind> = self.threads.values().map(|known| known.origin).collect();
        let is_absent = |(_, kind): &(&Origin, &Kind)| !present.contains(kind);
        let mut absent: Vec<(Kind, Origin)> = self
            .programs
            .iter()
            .filter(is_absent)
            .map(|(origin, kind)| (*kind, origin.clone()))
            .collect();
        absent.sort_unstable_by_key(|(kind, _)| *kind);
        let many = absent.len().saturating_sub(MOST_ABSENT);
        for (kind, origin) in absent.into_iter().take(many) {
            self.programs.remove(&origin);
            self.forget(kind);
        }
    }

    /// A program that was not known, but perhaps before.
    fn new_program(&mut self, origin: &Origin) -> Kind {
        let kind = self.new_kind();
        self.programs.insert(origin.clone(), kind);
        for (other, belief) in self.index.of.get(origin).into_iter().flatten() {
            if let Some(other) = self.programs.get(other) {
                self.rows.entry(kind).or_default().add_kind(*other, *belief, self.now);
            }
        }
        for (of, belief) in self.index.next_to.get(origin).into_iter().flatten() {
            if let Some(of) = self.programs.get(of).filter(|of| **of != kind) {
                self.rows.entry(*of).or_default().add_kind(kind, *belief, self.now);
            }
        }
        kind
    }

    fn new_kind(&mut self) -> Kind {
        let kind = Kind(self.next);
        self.next = self.next.wrapping_add(1);
        kind
    }

    fn anything(&self) -> Belief {
        Belief { mean: CO_RUNNER, variance: self.scales.difference() }
    }
}

/// Are these the same co-runners, for nearly the same shares of the time?
fn are_alike(some: &[(Kind, f64)], others: &[(Kind, f64)]) -> bool {
    let is_alike = |(one, other): (&(Kind, f64), &(Kind, f64))| {
        one.0 == other.0 && (one.1 - other.1).abs() < SAME_SHARE
    };
    some.len() == others.len() && some.iter().zip(others).all(is_alike)
}

#[cfg(test)]
mod tests;
