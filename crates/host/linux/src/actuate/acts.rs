//! Setting a mask and setting a priority: each checks, announces, acts, and checks again.

use std::sync::Arc;

use symbiont_machine::{Outcome, Priority, Target};
use symbiont_topology::CpuSet;

use super::ability::MOST_URGENT;
use super::applied_state::Entry;
use super::restoring::check_after;
use super::settings::{AppliedSettings, Mask, chosen_nice, comes_from, is_saved};
use super::state::{State, allowed_of};
use super::thread::Present;
use super::thread::{Class, ThreadError, ThreadKey};

/// Why an act ended early.
pub(super) struct Ended(pub Outcome);

impl From<ThreadError> for Ended {
    fn from(error: ThreadError) -> Self {
        Self(match error {
            ThreadError::Gone(_) => Outcome::Gone,
            error @ ThreadError::Kernel { .. } => Outcome::Refused(error.to_string()),
        })
    }
}

pub(super) fn refused(why: impl Into<String>) -> Ended {
    Ended(Outcome::Refused(why.into()))
}

impl State {
    pub fn set_affinity(&mut self, key: ThreadKey, target: &Target) -> Outcome {
        match self.try_affinity(key, target) {
            Ok(()) => Outcome::Done,
            Err(Ended(outcome)) => {
                let stays = |entry: &Entry| entry.applied().mask.is_some();
                if *target == Target::Os
                    && matches!(outcome, Outcome::Refused(_))
                    && self.applied.get(&key).is_some_and(stays)
                {
                    self.note_stuck(key);
                }
                outcome
            }
        }
    }

    pub fn set_priority(&mut self, key: ThreadKey, priority: Priority) -> Outcome {
        match self.try_priority(key, priority) {
            Ok(()) => Outcome::Done,
            Err(Ended(outcome)) => outcome,
        }
    }

    /// Has a `sched_ext` scheduler decide on the thread, or no longer.
    pub fn set_class_ext(&mut self, key: ThreadKey, on: bool) -> Outcome {
        match self.try_class_ext(key, on) {
            Ok(()) => Outcome::Done,
            Err(Ended(outcome)) => outcome,
        }
    }

    pub(super) fn entry(&mut self, key: ThreadKey) -> Result<&mut Entry, Ended> {
        self.applied.get_mut(&key).ok_or_else(|| refused("it was never enrolled"))
    }

    fn try_affinity(&mut self, key: ThreadKey, target: &Target) -> Result<(), Ended> {
        self.entry(key)?;
        let now = self.kernel.present(key)?;
        self.check_exec(key, &now)?;
        self.note_others(key, &now)?;
        let now = now.mask;
        let cpuset = self.check_foreign_mask(key, &now)?;

        let entry = self.entry(key)?;
        let wanted = within_allowed(target, &entry.allowed)?;
        let expected = wanted.clone().unwrap_or_else(|| CpuSet::clone(&entry.allowed));
        let before = entry.applied().clone();
        if wanted == before.mask && wanted.as_ref().is_none_or(|set| now == *set) {
            return Ok(());
        }
        let applied = AppliedSettings { mask: wanted, ..before.clone() };
        self.announce(key, Some(&applied)).map_err(|error| refused(error.to_string()))?;
        let saved = self.entry(key)?.saved.mask.clone();
        let write = match &applied.mask {
            Some(set) => Some(set),
            None => saved.to_write(&cpuset),
        };
        let tick = self.kernel.now_ticks();
        if let Err(error) = self.kernel.set_mask(key, write) {
            self.retract(key, &before);
            self.read_cpuset(key.process);
            return Err(error.into());
        }
        self.applied.set_applied(&key, applied, tick);
        check_after(&*self.kernel, key, |other| self.kernel.set_mask(other, Some(&now)))?;
        if self.kernel.mask(key)? != expected {
            // The cpuset changed, and the kernel narrowed what was asked.
            self.read_cpuset(key.process);
        }
        Ok(())
    }

    /// Nice value and class that are not ours are the thread's own now, also where its user changed
    /// them since it was adopted: they distinguish it from other threads.
    pub(super) fn note_others(&mut self, key: ThreadKey, now: &Present) -> Result<(), Ended> {
        let tick = self.kernel.now_ticks();
        let entry = self.entry(key)?;
        let (mut saved, mut applied) = (entry.saved.clone(), entry.applied().clone());
        if applied.nice != Some(now.nice) {
            let chosen = chosen_nice(saved.nice, applied.nice, now.nice);
            if chosen != now.nice {
                self.kernel.set_nice(key, chosen)?;
            }
            (saved.nice, applied.nice) = (chosen, None);
        }
        if applied.class != Some(now.class) {
            (saved.class, saved.reset_on_fork) = (now.class, now.reset_on_fork);
            applied.class = None;
        }
        let entry = self.entry(key)?;
        if saved != entry.saved {
            entry.saved = saved;
            entry.journaled = false;
        }
        if applied != *entry.applied() {
            self.applied.set_applied(&key, applied, tick);
        }
        Ok(())
    }

    /// Answers the cpuset, or ends the act if another process changed the mask,
    /// which then becomes the thread's own.
    pub(super) fn check_foreign_mask(
        &mut self,
        key: ThreadKey,
        now: &CpuSet,
    ) -> Result<Arc<CpuSet>, Ended> {
        let mut cpuset = self.known_cpuset(key.process);
        if !mask_is_ours(self.entry(key)?, now, &cpuset) {
            self.read_cpuset(key.process);
            cpuset = self.cpuset_of(key.process, now);
        }
        if mask_is_ours(self.entry(key)?, now, &cpuset) {
            return Ok(cpuset);
        }
        // What is listed is read again last: a CPU that is listed no more by then, or that was on its
        // way before, is left out either way.
        let leaving = self.kernel.leaving();
        self.read_cpuset(key.process);
        cpuset = Arc::new(self.cpuset_of(key.process, now).difference(&leaving));
        if mask_is_ours(self.entry(key)?, now, &cpuset) {
            return Ok(cpuset);
        }
        if self.undo_suspect(key, now, &cpuset) {
            return Ok(cpuset);
        }
        self.doubt(key, now, &cpuset);
        let tick = self.kernel.now_ticks();
        let entry = self.entry(key)?;
        entry.chosen = Some(tick);
        entry.saved.mask = Mask::classify(now.clone(), &cpuset);
        entry.allowed = allowed_of(&entry.saved, &cpuset);
        let applied = AppliedSettings { mask: None, ..entry.applied().clone() };
        self.accept_foreign(key, &applied)
    }

    fn try_priority(&mut self, key: ThreadKey, priority: Priority) -> Result<(), Ended> {
        self.entry(key)?;
        let now = self.kernel.present(key)?;
        self.check_exec(key, &now)?;
        self.check_foreign_priority(key, &now)?;
        let most_urgent = self.privilege.most_urgent(key.process);
        let entry = self.entry(key)?;
        let wanted = wanted(entry, priority, most_urgent)?;
        self.set_class_and_nice(key, &now, &wanted)
    }

    /// Whether a `sched_ext` scheduler decides on the thread.
    fn try_class_ext(&mut self, key: ThreadKey, on: bool) -> Result<(), Ended> {
        self.entry(key)?;
        let now = self.kernel.present(key)?;
        self.check_exec(key, &now)?;
        self.check_foreign_priority(key, &now)?;
        let entry = self.entry(key)?;
        let applied = entry.applied().clone();
        let class = match entry.saved.class {
            _ if !on => applied.class.filter(|class| *class != Class::Ext),
            Class::Other | Class::Batch => Some(Class::Ext),
            Class::Idle | Class::Ext | Class::Special => {
                return Err(refused("threads that are of a class of their own stay in it"));
            }
        };
        self.set_class_and_nice(key, &now, &AppliedSettings { class, ..applied })
    }

    fn set_class_and_nice(
        &mut self,
        key: ThreadKey,
        now: &Present,
        wanted: &AppliedSettings,
    ) -> Result<(), Ended> {
        let entry = self.entry(key)?;
        let before = entry.applied().clone();
        let (nice, class) = (entry.saved.nice, entry.saved.class);
        let reset = entry.saved.reset_on_fork;
        if *wanted == before {
            return Ok(());
        }
        let is_idle = wanted.class == Some(Class::Idle);
        if is_idle || (wanted.nice.is_some() && wanted.nice != before.nice) {
            self.priorities_act(Some(key.process)).map_err(refused)?;
        }
        if is_idle && !self.privilege.can_end_idle_class(key.process, nice) {
            return Err(refused(
                "it could not be taken out of SCHED_IDLE again without CAP_SYS_NICE \
                 or a higher RLIMIT_NICE",
            ));
        }
        self.announce(key, Some(wanted)).map_err(|error| refused(error.to_string()))?;
        let tick = self.kernel.now_ticks();
        let mut done = before.clone();
        let acted = (|| -> Result<(), ThreadError> {
            if wanted.class != before.class {
                self.kernel.set_class(key, wanted.class.unwrap_or(class), reset)?;
                done.class = wanted.class;
            }
            if wanted.nice != before.nice {
                self.kernel.set_nice(key, wanted.nice.unwrap_or(nice))?;
                done.nice = wanted.nice;
            }
            Ok(())
        })();
        if acted.is_err() {
            self.retract(key, &done);
        }
        self.applied.set_applied(&key, done, tick);
        check_after(&*self.kernel, key, |other| {
            self.kernel.set_class(other, now.class, reset)?;
            self.kernel.set_nice(other, now.nice)
        })?;
        Ok(acted?)
    }

    /// Ends the act if the thread is a leader that another one has replaced: what is known moves
    /// with the report, which is still to come.
    pub(super) fn check_exec(&mut self, key: ThreadKey, now: &Present) -> Result<(), Ended> {
        if self.may_have_execed(key, now) { Err(Ended(Outcome::Gone)) } else { Ok(()) }
    }

    fn check_foreign_priority(&mut self, key: ThreadKey, now: &Present) -> Result<(), Ended> {
        let entry = self.entry(key)?;
        let mut applied = entry.applied().clone();
        let nice_is_ours = now.nice == applied.nice.unwrap_or(entry.saved.nice);
        let class_is_ours = now.class == applied.class.unwrap_or(entry.saved.class);
        if nice_is_ours && class_is_ours {
            return Ok(());
        }
        let mut chosen = entry.saved.nice;
        if !nice_is_ours {
            chosen = chosen_nice(entry.saved.nice, applied.nice, now.nice);
            applied.nice = None;
        }
        if !nice_is_ours && chosen != now.nice {
            self.kernel.set_nice(key, chosen)?;
        }
        let entry = self.entry(key)?;
        entry.saved.nice = chosen;
        if !class_is_ours {
            entry.saved.class = now.class;
            applied.class = None;
        }
        self.accept_foreign(key, &applied)
    }

    /// Takes what another process set as the thread's own, and says so.
    pub(super) fn accept_foreign<T>(
        &mut self,
        key: ThreadKey,
        applied: &AppliedSettings,
    ) -> Result<T, Ended> {
        let tick = self.kernel.now_ticks();
        if self.entry(key)?.applied() != applied {
            self.applied.set_applied(&key, applied.clone(), tick);
        }
        let entry = self.entry(key)?;
        // What was saved is written anew, or for the first time: after a crash it
        // must not pass for what the thread inherited.
        entry.journaled = false;
        self.announce(key, Some(applied)).map_err(|error| refused(error.to_string()))?;
        Err(Ended(Outcome::ExternallyChanged))
    }

    /// An act that was announced failed: says what is applied instead.
    fn retract(&mut self, key: ThreadKey, applied: &AppliedSettings) {
        // If this fails the journal is full, and what is announced next fails as well.
        let _ = self.announce(key, Some(applied));
    }
}

pub(super) fn mask_is_ours(entry: &Entry, now: &CpuSet, cpuset: &CpuSet) -> bool {
    match &entry.applied().mask {
        Some(set) => comes_from(now, set, &entry.saved.mask, cpuset),
        None => is_saved(now, &entry.saved.mask, cpuset),
    }
}

/// The mask to have applied; none if all allowed CPUs are wanted.
fn within_allowed(target: &Target, allowed: &CpuSet) -> Result<Option<CpuSet>, Ended> {
    let Target::Cpus(cpus) = target else { return Ok(None) };
    let inside = cpus.intersection(allowed);
    if inside.is_empty() {
        return Err(refused(format!("the thread may run on {allowed} only, not on {cpus}")));
    }
    Ok((inside != *allowed).then_some(inside))
}

/// What is to be applied on a thread for a priority.
fn wanted(entry: &Entry, priority: Priority, most_urgent: i8) -> Result<AppliedSettings, Ended> {
    let class = entry.applied().class.filter(|class| *class == Class::Ext);
    let own = AppliedSettings { nice: None, class, ..entry.applied().clone() };
    match (priority, entry.saved.class) {
        (Priority::Normal, _) => Ok(own),
        (Priority::Idle, _) if class.is_some() => {
            Err(refused("the scheduler in the kernel knows its class"))
        }
        (_, Class::Special) => Err(refused("real-time and deadline threads are never touched")),
        (_, Class::Ext) => Err(refused("its user has given it to a sched_ext scheduler")),
        (Priority::Idle, Class::Idle) => Ok(own),
        (Priority::Idle, _) => Ok(AppliedSettings { class: Some(Class::Idle), ..own }),
        (Priority::Boosted(_), Class::Idle) => {
            Err(refused("the user lets it run only when no other thread is ready (SCHED_IDLE)"))
        }
        (Priority::Boosted(levels), _) => {
            let levels = i8::try_from(levels).unwrap_or(i8::MAX);
            let nice = entry.saved.nice.saturating_sub(levels).max(MOST_URGENT);
            // What may not be given whole is given in part. What may not be given
            // at all is asked for whole, so that the kernel's refusal gives the reason.
            let nice = if most_urgent < entry.saved.nice { nice.max(most_urgent) } else { nice };
            Ok(AppliedSettings { nice: (nice != entry.saved.nice).then_some(nice), ..own })
        }
    }
}
