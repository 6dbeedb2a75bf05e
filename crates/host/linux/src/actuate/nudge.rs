//! Moves threads without leaving their masks narrow.
//!
//! # Problem
//! A thread whose mask stays narrow runs where it should. But its program counts the CPUs of that mask: a thread
//! pool, a runtime or a library sizes itself by it, often for life, or sets it again later as if it were its own.
//!
//! # Approach
//! Narrowing a mask moves a running or queued thread that is not within it; widening it moves none. So a nudge is
//! two calls:
//!
//! ```text
//! check each thread (as before any act), announce all nudges in the journal
//! for each thread that runs elsewhere, in the order of super::order, kept from running by super::standing:
//!     narrow its mask to the target           from ──┐ children that are born in between may inherit the target:
//!     give it back the mask that it had       to   ──┘ they get their maker's mask when their birth is reported
//! once more for those that an idle CPU has pulled away meanwhile
//! announce that all nudges are over
//! ```
//!
//! A thread that sets a mask of its own meanwhile keeps that. A sleeping thread would not move, and is left
//! alone. The caller should run at real-time priority: if it is preempted between the two calls, a thread stays
//! narrow for milliseconds.
//!
//! A child that pinned itself to a target must not be taken for one that inherited it. The proc connector says
//! when a thread was born, and where its maker ran: only children born during the nudge are given another mask.
//! Where births are found by scanning that is unknown, and all children keep what they have.
//!
//! # Properties
//! - A nudged thread has the mask that it had (`a_nudged_thread_has_the_mask_that_it_had`), is moved
//!   (`a_nudge_moves_a_running_thread`), and keeps a mask of its own (`a_nudge_keeps_within_a_mask_of_the_users`).
//! - It is moved from where it runs (`a_nudge_is_made_from_where_the_thread_runs`); one that sleeps is never narrow
//!   (`a_sleeping_thread_is_not_narrowed`).
//! - After a crash in between nothing stays narrow, whatever else happens
//!   (`any_order_of_events_is_undone`, in `event_machine`).

use std::time::Duration;

use symbiont_machine::{Change, Move, Outcome};
use symbiont_topology::{CpuSet, PuId};

use super::acts::{Ended, refused};
use super::actuator::Actuator;
use super::applied_state::UNKNOWN;
use super::journal::Line;
use super::order::{Mover, order};
use super::parents::NOT_PLACED;
use super::past_nudges::{Past, When};
use super::restoring::check_after;
use super::settings::{AppliedSettings, Saved, comes_from};
use super::standing::Standing;
use super::state::State;
use super::thread::{ThreadError, ThreadKey};
use crate::observe::Moment;

/// For how long a thread whose mask was changed is left alone, in clock ticks: it may be trying one CPU after the
/// other, and reads in between what it will go back to.
const CHOOSES: u64 = 100;

/// How often a thread is displaced for one nudge.
const TRIES: u32 = 3;

/// A nudge that may be made.
struct Ready {
    key: ThreadKey,
    /// Its move's place among the others.
    at: usize,
    /// The mask that it has.
    now: CpuSet,
    narrow: CpuSet,
    /// The mask to write afterwards; none: all ones.
    wide: Option<CpuSet>,
    applied: AppliedSettings,
    /// Where it runs; none: it sleeps.
    on: Option<PuId>,
}

/// How it went.
#[derive(Debug)]
enum Went {
    /// It sleeps, or runs where it should: nothing was done.
    Needless,
    /// Its mask is no longer what was read, and was left alone.
    Changed,
    /// It was narrow.
    Nudged(When),
    /// The same, or it was to be, and it ended so.
    Failed(When, ThreadError),
}

impl Actuator {
    /// Carries out moves in order, consecutive nudges together; returns one outcome for each move.
    #[must_use]
    pub fn apply_all(&self, moves: &[Move]) -> Vec<Outcome> {
        let is_nudge = |asked: &Move| matches!(asked.change, Change::Nudge(_));
        let runs = moves.chunk_by(|a, b| is_nudge(a) && is_nudge(b));
        let each = |run: &[Move]| match run {
            [asked] if !is_nudge(asked) => vec![self.apply(asked)],
            nudges => self.state().nudge(nudges),
        };
        runs.flat_map(each).collect()
    }

    /// A thread was born, as the kernel reports it: gives it its maker's mask if it inherited a nudge's.
    /// `maker`: the process that made it.
    pub fn born_at(&self, maker: u32, process: u32, thread: u32, at: Moment) {
        self.state().born_while_nudged(maker, process, thread, at);
    }
}

impl State {
    /// Nudges threads, each at most once.
    pub fn nudge(&mut self, moves: &[Move]) -> Vec<Outcome> {
        let mut outcomes = vec![Outcome::Done; moves.len()];
        let mut ready: Vec<Ready> = Vec::with_capacity(moves.len());
        for (at, (asked, outcome)) in moves.iter().zip(&mut outcomes).enumerate() {
            let Change::Nudge(cpus) = &asked.change else { continue };
            match self.prepare(asked, cpus) {
                Ok(Some(nudge)) => ready.push(Ready { at, ..nudge }),
                Ok(None) => {}
                Err(Ended(why)) => *outcome = why,
            }
        }
        if ready.is_empty() {
            return outcomes;
        }
        let begun = ready.iter().map(|nudge| {
            let mask = Some(nudge.narrow.clone());
            (nudge.key, AppliedSettings { mask, ..nudge.applied.clone() })
        });
        if let Err(error) = self.announce_all(&begun.collect::<Vec<_>>()) {
            for nudge in &ready {
                outcomes[nudge.at] = Outcome::Refused(error.to_string());
            }
            return outcomes;
        }
        let mut over = Vec::with_capacity(ready.len());
        for (nudge, went) in ready.iter().zip(self.in_order(&ready)) {
            let Some(entry) = self.applied.get(&nudge.key) else { continue };
            let (when, error) = match went {
                Went::Needless => {
                    over.push(Line::Is(nudge.key, nudge.applied.clone()));
                    continue;
                }
                Went::Changed => {
                    over.push(Line::Is(nudge.key, nudge.applied.clone()));
                    outcomes[nudge.at] = Outcome::ExternallyChanged;
                    continue;
                }
                Went::Nudged(when) => (when, None),
                Went::Failed(when, error) => (when, Some(error)),
            };
            let (process, narrow) = (nudge.key.process, nudge.narrow.clone());
            let saved = entry.saved.clone();
            self.nudges.remember(Past { process, narrow, saved, when });
            let Some(error) = error else {
                over.push(Line::Is(nudge.key, nudge.applied.clone()));
                continue;
            };
            if error.is_denied() && self.kernel.mask(nudge.key).is_ok_and(|now| now == nudge.narrow)
            {
                // It became another user's in between.
                let mask = Some(nudge.narrow.clone());
                let (tick, before) = (self.kernel.now_ticks(), nudge.applied.clone());
                self.applied.set_applied(&nudge.key, AppliedSettings { mask, ..before }, tick);
                self.note_stuck(nudge.key);
            } else {
                over.push(Line::Is(nudge.key, nudge.applied.clone()));
            }
            outcomes[nudge.at] = Ended::from(error).0;
        }
        // If this fails the journal says more than there is to undo.
        let _ = self.journal.note(&over);
        outcomes
    }

    /// Nudges each; in the order that they were given in.
    fn in_order(&mut self, ready: &[Ready]) -> Vec<Went> {
        let mover = |nudge: &Ready| Mover { from: nudge.on, to: nudge.narrow.clone() };
        let movers: Vec<Mover> = ready.iter().map(mover).collect();
        let mut all: Vec<Went> = ready.iter().map(|_| Went::Needless).collect();
        let known = std::mem::take(&mut self.contended);
        let mut standing = self.kernel.standing().map(|standing| standing.knowing(known));
        let turns = order(&movers);
        for at in &turns {
            all[*at] = self.go(&ready[*at], &mut standing);
        }
        // A CPU that was left idle for a moment may have pulled one.
        for at in turns {
            if let Went::Nudged(first) = all[at] {
                match self.go(&ready[at], &mut standing) {
                    Went::Needless => {}
                    Went::Nudged(again) => all[at] = Went::Nudged(first.and(again)),
                    other => all[at] = other,
                }
            }
        }
        self.contended = standing.map(Standing::knows).unwrap_or_default();
        all
    }

    /// Nudges a thread, if it runs elsewhere and has the mask that it had.
    fn go(&self, nudge: &Ready, standing: &mut Option<Standing>) -> Went {
        let begun = self.kernel.now_ns();
        let went = match self.displace(nudge, standing.as_mut()) {
            Ok(Some(from)) => match self.narrow_and_widen(nudge) {
                Some((from_ns, how)) => {
                    // A blocker may have given up meanwhile.
                    let keeps = |standing: &Standing| standing.keeps(from, &nudge.narrow);
                    let took = Duration::from_nanos(self.kernel.now_ns().saturating_sub(from_ns));
                    standing.iter_mut().for_each(|standing| standing.took(took));
                    self.ended(from_ns, standing.as_ref().is_some_and(keeps), how)
                }
                None => Went::Changed,
            },
            Ok(None) => Went::Needless,
            Err(error) => self.ended(begun, false, Err(error)),
        };
        standing.iter_mut().for_each(Standing::let_go_in_time);
        went
    }

    /// Keeps a thread from running until it is nudged, where it can be; from which CPU? None: it need not be nudged.
    fn displace(
        &self,
        nudge: &Ready,
        mut standing: Option<&mut Standing>,
    ) -> Result<Option<PuId>, ThreadError> {
        let mut displaced = None;
        for _ in 0..TRIES {
            let on = self.kernel.facts_of(nudge.key)?.on;
            let Some(cpu) = on.filter(|cpu| !nudge.narrow.contains(*cpu)) else { return Ok(None) };
            let is_kept = standing.as_ref().is_some_and(|all| all.keeps(cpu, &nudge.narrow));
            if is_kept || displaced == Some(cpu) {
                return Ok(Some(cpu));
            }
            if let Some(standing) = &mut standing {
                standing.displace(cpu, &nudge.narrow);
            }
            // An idle CPU may pull it just then.
            displaced = Some(cpu);
        }
        Ok(displaced)
    }

    /// Since when, and how it went; none: its mask is not what it was, and stays.
    fn narrow_and_widen(&self, nudge: &Ready) -> Option<(u64, Result<(), ThreadError>)> {
        let from_ns = self.kernel.now_ns();
        let narrowed = match self.kernel.mask(nudge.key) {
            Ok(now) if now != nudge.now => return None,
            Ok(_) => self.kernel.set_mask(nudge.key, Some(&nudge.narrow)),
            Err(error) => Err(error),
        };
        Some((from_ns, narrowed.and_then(|()| self.widen(nudge))))
    }

    /// What was begun at a moment ended just now.
    fn ended(&self, from_ns: u64, is_kept: bool, how: Result<(), ThreadError>) -> Went {
        let when = When::new(from_ns, self.kernel.now_ns(), is_kept);
        match how {
            Ok(()) => Went::Nudged(when),
            Err(error) => Went::Failed(when, error),
        }
    }

    /// Checks as before any act; none if the thread runs or may run on its target only, or sleeps.
    fn prepare(&mut self, asked: &Move, cpus: &CpuSet) -> Result<Option<Ready>, Ended> {
        let key = ThreadKey::from(&asked.thread);
        let entry = self.entry(key)?;
        if entry.generation > asked.thread.generation {
            return Err(Ended(Outcome::Gone));
        }
        if self.is_parent(key.process) {
            return Err(refused(NOT_PLACED));
        }
        let now = self.kernel.present(key)?;
        self.check_exec(key, &now)?;
        self.note_others(key, &now)?;
        let was_suspected = self.entry(key)?.suspected;
        let cpuset = self.check_foreign_mask(key, &now.mask)?;
        // It may have got back what it had just now.
        let is_back = self.entry(key)?.suspected != was_suspected;
        let mask = if is_back { self.kernel.mask(key)? } else { now.mask };
        let since = self.kernel.now_ticks().saturating_sub(CHOOSES);
        let entry = self.entry(key)?;
        let narrow = cpus.intersection(&entry.allowed).intersection(&mask);
        if narrow == mask {
            return Ok(None);
        }
        if entry.chose_since(since) {
            return Err(Ended(Outcome::ExternallyChanged));
        }
        if narrow.is_empty() {
            return Err(refused(format!("the thread may run on {mask} only, not on {cpus}")));
        }
        if now.on.is_none_or(|cpu| narrow.contains(cpu)) {
            return Ok(None);
        }
        let applied = entry.applied().clone();
        let wide = match &applied.mask {
            Some(held) if !held.is_disjoint(&cpuset) => Some(held.clone()),
            _ => entry.saved.mask.to_write(&cpuset).cloned(),
        };
        Ok(Some(Ready { key, at: 0, now: mask, narrow, wide, applied, on: now.on }))
    }

    /// Gives a narrowed thread the mask that it had.
    fn widen(&self, nudge: &Ready) -> Result<(), ThreadError> {
        // What it set itself in between stays. (The kernel may have cut what was set at a cpuset that
        // changed just now: then that is widened as well.)
        let now = self.kernel.mask(nudge.key)?;
        if !now.is_subset(&nudge.narrow) && now != nudge.now {
            return Ok(());
        }
        match self.kernel.set_mask(nudge.key, nudge.wide.as_ref()) {
            // The cpuset changed just now and leaves nothing of it: the kernel gives all of the cpuset then.
            Err(error @ ThreadError::Kernel { .. })
                if !error.is_denied() && nudge.wide.is_some() =>
            {
                self.kernel.set_mask(nudge.key, None)?;
            }
            done => done?,
        }
        check_after(&*self.kernel, nudge.key, |other| self.kernel.set_mask(other, Some(&nudge.now)))
    }

    fn born_while_nudged(&mut self, maker: u32, process: u32, thread: u32, at: Moment) {
        let Some(last) = self.nudges.during(maker, at).next() else { return };
        let key = match self.kernel.facts(process, thread) {
            Ok(Some(facts)) => facts.key,
            // It may have had children before it ended.
            Ok(None) => {
                let (narrow, saved) = (last.narrow.clone(), last.saved.clone());
                let gone = ThreadKey { process, thread, born: UNKNOWN };
                return self.carried_target(gone, narrow, saved);
            }
            Err(_) => return,
        };
        let Ok(now) = self.kernel.mask(key) else { return };
        let cpuset = self.kernel.cpuset(process);
        let carries = |past: &&Past| {
            now != past.saved.mask.within(&cpuset)
                && comes_from(&now, &past.narrow, &past.saved.mask, &cpuset)
        };
        let Some(past) = self.nudges.during(maker, at).find(carries) else { return };
        let (narrow, saved) = (past.narrow.clone(), past.saved.clone());
        let done = self.kernel.set_mask(key, saved.mask.to_write(&cpuset)).and_then(|()| {
            check_after(&*self.kernel, key, |other| self.kernel.set_mask(other, Some(&now)))
        });
        if done.is_ok() {
            if let Some(entry) = self.applied.get_mut(&key) {
                // It was adopted before it was reported.
                entry.saved.mask.clone_from(&saved.mask);
                self.read_cpuset(process);
            }
            self.carried_target(key, narrow, saved);
            self.applied.saw_at_birth(key);
        }
    }

    /// A thread had the target that it inherited until now: its own children may have that too.
    fn carried_target(&mut self, key: ThreadKey, narrow: CpuSet, saved: Saved) {
        let carried = AppliedSettings { mask: Some(narrow), ..AppliedSettings::default() };
        let times = [key.born, self.kernel.now_ticks()];
        self.applied.note_carried(key, carried, saved, times);
    }
}
