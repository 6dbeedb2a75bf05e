//! The actuator's state, behind its lock, and how threads are adopted.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use symbiont_machine::ThreadId;
use symbiont_topology::CpuSet;

use super::ability::Privilege;
use super::applied_state::{AppliedState, Entry, UNKNOWN};
use super::groups::{GroupKey, share_one_group};
use super::inheritance::{Newborn, Repair};
use super::journal::{Journal, Line};
use super::journal_state::{JournalState, ThreadRecord};
use super::kernel::Kernel;
use super::past_nudges::Nudges;
use super::restoring::{RestoreReport, carry_out, restore_threads};
use super::scheduler::no_priority_under;
use super::settings::{AppliedSettings, Mask, Saved};
use super::standing::Contended;
use super::thread::{Class, Facts, Present, ThreadError, ThreadKey};
use super::trust::Trust;

/// A thread that set a mask of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suspect {
    /// The thread.
    pub thread: ThreadKey,
    /// The mask that it had set.
    pub mask: CpuSet,
}

/// Everything behind the lock.
#[derive(Debug)]
pub(super) struct State {
    pub applied: AppliedState,
    pub privilege: Privilege,
    pub journal: Journal,
    pub kernel: Box<dyn Kernel>,
    pub online: usize,
    /// Read of late; [`Actuator::refresh`](super::Actuator::refresh) forgets them.
    pub cpusets: BTreeMap<u32, Arc<CpuSet>>,
    pub groups: BTreeMap<u32, GroupKey>,
    /// The `sched_ext` scheduler that is loaded, as read of late.
    pub scheduler: Option<String>,
    /// The processes that compete, where the loop reported them.
    pub busy: Option<BTreeSet<u32>>,
    /// Processes that made others, where that matters, and whether it is harmless.
    pub parents: BTreeMap<u32, bool>,
    /// Changed threads that may not be changed any more.
    pub stuck: BTreeSet<ThreadKey>,
    /// Suspect masks that were undone and not reported yet.
    pub suspects: Vec<Suspect>,
    /// Masks that a program may have read from a nudge; they stay.
    pub doubts: Vec<Suspect>,
    /// Made lately: children that were born meanwhile may have inherited a target.
    pub nudges: Nudges,
    /// Where the caller waited for its turn when it nudged.
    pub contended: Contended,
    /// How many stuck threads there were in all, with those that ended or were restored later.
    pub slipped: u64,
    /// Some threads, perhaps such that were never adopted, could not be restored.
    is_incomplete: bool,
}

impl State {
    /// Nothing is adopted; this many hardware threads are online.
    pub fn new(
        kernel: Box<dyn Kernel>,
        privilege: Privilege,
        online: usize,
        journal: Journal,
    ) -> Self {
        Self {
            applied: AppliedState::default(),
            privilege,
            journal,
            online,
            cpusets: BTreeMap::new(),
            groups: BTreeMap::new(),
            scheduler: kernel.loaded_scheduler(),
            busy: None,
            parents: BTreeMap::new(),
            stuck: BTreeSet::new(),
            suspects: Vec::new(),
            doubts: Vec::new(),
            nudges: Nudges::default(),
            contended: Contended::default(),
            slipped: 0,
            is_incomplete: false,
            kernel,
        }
    }
}

impl Drop for State {
    fn drop(&mut self) {
        if self.is_anything_applied() || self.is_incomplete {
            self.restore_all();
        }
        // What could not be restored stays in the journal for another try.
        if !self.is_anything_applied() && !self.is_incomplete {
            let _ = self.journal.remove();
        }
    }
}

impl State {
    pub fn is_anything_applied(&self) -> bool {
        self.applied.iter().any(|(_, entry)| !entry.applied().is_nothing())
    }

    /// Did we put it into this class?
    pub fn has_set(&self, thread: &ThreadKey, class: Class) -> bool {
        self.applied.get(thread).is_some_and(|entry| entry.applied().class == Some(class))
    }

    pub fn allowed(&mut self, thread: &ThreadId) -> Option<Arc<CpuSet>> {
        let entry = self.applied.get_mut(&thread.into())?;
        entry.generation = entry.generation.max(thread.generation);
        Some(Arc::clone(&entry.allowed))
    }

    pub fn adopt(&mut self, key: ThreadKey) -> Result<Arc<CpuSet>, ThreadError> {
        if let Some(entry) = self.applied.get(&key) {
            return Ok(Arc::clone(&entry.allowed));
        }
        let mut now = self.kernel.present(key)?;
        let cpuset = self.cpuset_of(key.process, &now.mask);
        // It may only have been out of sight: then it is not as its user left it.
        if self.resume(key, &now, &cpuset).is_some() {
            let allowed = self.applied.get(&key).map(|entry| Arc::clone(&entry.allowed));
            return allowed.ok_or(ThreadError::Gone(key));
        }
        if !self.applied.was_seen_at_birth(&key) {
            let newborn = Newborn::new(key, &now);
            let makers = [key.process, now.parent].map(|process| (process, 0));
            let repair = makers
                .into_iter()
                .map(|maker| self.applied.repair(maker, &newborn, &cpuset))
                .fold(Repair::default(), Repair::or_better);
            match carry_out(&*self.kernel, key, &repair, &now, &cpuset) {
                Err(error) if error.is_denied() => {
                    return Ok(self.keep_stuck(key, &now, &repair, &cpuset));
                }
                done => done?,
            }
            self.note_carried(key, &now, &repair, &cpuset);
            after(&mut now, &repair, &cpuset);
        }
        let saved = saved_of(&now, &cpuset);
        let allowed = allowed_of(&saved, &cpuset);
        let is_chosen = saved.mask != Mask::All || saved.nice != 0 || saved.class != Class::Other;
        let tick = self.kernel.now_ticks();
        self.applied.insert_new(key, Entry::new(saved, Arc::clone(&allowed)), tick);
        if is_chosen {
            // After a crash it shall not be taken for one that inherited it from us. Should
            // this fail, so does every act, which tries it again.
            let _ = self.announce(key, None);
        }
        Ok(allowed)
    }

    pub fn newborn(&mut self, maker: (u32, u32), process: u32, thread: u32) {
        let unchecked = ThreadKey { process, thread, born: UNKNOWN };
        if !self.applied.was_changed(maker.0) {
            return;
        }
        let tick = self.kernel.now_ticks();
        let mask = match self.kernel.mask(unchecked) {
            Err(ThreadError::Gone(_)) => return self.applied.note_unseen(maker, unchecked, tick),
            mask => mask.ok(),
        };
        if !self.applied.may_carry(maker.0, mask.as_ref()) {
            return;
        }
        let facts = match self.kernel.facts(process, thread) {
            Ok(Some(facts)) if !facts.zombie && self.is_child(&facts, maker.0) => facts,
            Ok(_) => return self.applied.note_unseen(maker, unchecked, tick),
            Err(_) => return,
        };
        let key = facts.key;
        // One that was only out of sight is no newborn, nor its own maker.
        if self.applied.get(&key).is_some() || self.applied.is_departed(&key) {
            return;
        }
        let Ok(now) = self.kernel.present(key) else { return };
        // A child starts in its maker's cpuset.
        let mut cpuset = self.known_cpuset(maker.0);
        let newborn = Newborn::new(key, &now);
        let mut repair = self.applied.repair(maker, &newborn, &cpuset);
        let is_plain = repair.mask == Some(Mask::All) && repair.carried.as_ref() == Some(&now.mask);
        let is_whole = repair.mask.is_none() && now.mask == *cpuset;
        if !is_plain && !is_whole {
            // The cpuset may have changed, and with it what is left of a mask of ours; or its maker
            // has ended, and this is not its cpuset.
            cpuset = self.read_cpuset(process);
            repair = self.applied.repair(maker, &newborn, &cpuset);
        }
        match carry_out(&*self.kernel, key, &repair, &now, &cpuset) {
            Ok(()) => {
                self.applied.saw_at_birth(key);
                self.note_carried(key, &now, &repair, &cpuset);
            }
            Err(error) if error.is_denied() => {
                self.keep_stuck(key, &now, &repair, &cpuset);
            }
            // What fails here is tried again when the thread is adopted.
            Err(_) => {}
        }
    }

    /// Is it a thread of its maker's process, or a child of it? If the report came late, another
    /// process may have the number by now. A child whose parent ended has a new one.
    fn is_child(&self, newborn: &Facts, maker: u32) -> bool {
        let lives = || matches!(self.kernel.facts(maker, maker), Ok(Some(facts)) if !facts.zombie);
        newborn.key.process == maker || newborn.parent == maker || !lives()
    }

    /// A thread had what it inherited from us until now: its own children may have that too.
    fn note_carried(&mut self, key: ThreadKey, now: &Present, repair: &Repair, cpuset: &CpuSet) {
        let carried = AppliedSettings {
            mask: repair.carried.clone(),
            nice: repair.nice.map(|_| now.nice),
            class: repair.class.map(|_| now.class),
        };
        if !carried.is_nothing() {
            let mut now = now.clone();
            after(&mut now, repair, cpuset);
            let mut saved = saved_of(&now, cpuset);
            saved.mask = repair.mask.clone().unwrap_or(saved.mask);
            let times = [key.born, self.kernel.now_ticks()];
            self.applied.note_carried(key, carried, saved, times);
        }
    }

    /// Forgets what was read of cpusets and groups, and reads which scheduler runs; reports for
    /// which processes.
    pub fn forget_readings(&mut self) -> Vec<u32> {
        self.online = self.kernel.look_again().unwrap_or(self.online);
        self.groups.clear();
        self.cpusets.clear();
        self.scheduler = self.kernel.loaded_scheduler();
        self.forget_parents();
        self.retry_stuck();
        self.applied.processes().collect()
    }

    /// Reads a process's cpuset anew and sets the allowed CPUs of its threads.
    pub fn read_cpuset(&mut self, process: u32) -> Arc<CpuSet> {
        let cpuset = self.kernel.cpuset(process);
        for (_, entry) in self.applied.of_process_mut(process) {
            let allowed = entry.saved.mask.within(&cpuset);
            if *entry.allowed != allowed {
                entry.allowed = Arc::new(allowed);
            }
        }
        self.cpusets.insert(process, Arc::clone(&cpuset));
        cpuset
    }

    /// A process's cpuset, read anew if a mask seen there differs from it. No mask reaches beyond
    /// its cpuset: if that one does, a CPU came online just now, and the cpuset will have it too.
    pub fn cpuset_of(&mut self, process: u32, seen: &CpuSet) -> Arc<CpuSet> {
        let cpuset = match self.cpusets.get(&process) {
            Some(cpuset) if **cpuset == *seen => Arc::clone(cpuset),
            _ => self.read_cpuset(process),
        };
        if seen.is_subset(&cpuset) { cpuset } else { Arc::new(cpuset.union(seen)) }
    }

    /// A process's cpuset as it was lately.
    pub fn known_cpuset(&mut self, process: u32) -> Arc<CpuSet> {
        match self.cpusets.get(&process) {
            Some(cpuset) => Arc::clone(cpuset),
            None => self.read_cpuset(process),
        }
    }

    /// Do priorities act between all that compete, and this process?
    pub fn priorities_act(&mut self, process: Option<u32>) -> Result<(), String> {
        let mut contenders: BTreeSet<u32> = match &self.busy {
            Some(busy) => busy.clone(),
            None => self.applied.processes().collect(),
        };
        contenders.extend(process);
        let mut keys = BTreeMap::new();
        for process in contenders {
            let known = self.groups.get(&process).cloned();
            if let Some(key) = known.or_else(|| self.kernel.group(process)) {
                self.groups.insert(process, key.clone());
                keys.insert(process, key);
            }
        }
        if let Some(name) = &self.scheduler {
            return Err(no_priority_under(name));
        }
        share_one_group(&keys)
    }

    /// Restores what was changed on some threads, and on descendants that inherited it.
    pub fn restore_matching(&mut self, is_meant: impl Fn(&ThreadKey) -> bool) -> RestoreReport {
        let mut state = JournalState::new(self.journal.began());
        state.undone.extend(self.applied.seen_at_birth());
        // A leader that another thread replaced departed under the key that lives.
        let departed = self.applied.departed(self.kernel.now_ticks());
        for (key, entry, may_lead) in departed.filter(|(key, ..)| is_meant(key)) {
            state.records.insert(*key, ThreadRecord { may_lead, ..record_of(entry) });
        }
        for (key, entry) in self.applied.iter().filter(|(key, _)| is_meant(key)) {
            state.records.insert(*key, record_of(entry));
        }
        // A restore that is cut short shall not make a thread look like another one. Should this
        // fail, it does.
        let changed = self.applied.iter().filter(|(key, entry)| {
            is_meant(key) && entry.journaled && !entry.applied().is_nothing()
        });
        let (begun, still): (Vec<Line>, Vec<Line>) = changed
            .map(|(key, entry)| {
                let still = entry.applied().clone();
                let since = entry.since(&still).unwrap_or_default();
                (Line::Set(*key, AppliedSettings::default(), since), Line::Set(*key, still, since))
            })
            .unzip();
        let _ = self.journal.note(&begun);
        let report = restore_threads(&*self.kernel, &state, Trust::Own);
        if !report.failed.is_empty() {
            let _ = self.journal.note(&still);
        }
        report
    }

    pub fn restore_all(&mut self) -> RestoreReport {
        self.undo_suspects();
        let report = self.restore_matching(|_| true);
        self.is_incomplete = !report.failed.is_empty();
        if report.failed.is_empty() {
            self.applied.forget_changes();
            // A journal that stays says what is true: nothing is applied.
            let _ = self.journal.remove();
        }
        report
    }
}

/// What must be undone for a thread.
pub(super) fn record_of(entry: &Entry) -> ThreadRecord {
    ThreadRecord {
        saved: entry.saved.clone(),
        now: vec![entry.applied().clone()],
        ever: entry.ever().cloned().collect(),
        may_lead: true,
    }
}

pub(super) fn saved_of(now: &Present, cpuset: &CpuSet) -> Saved {
    Saved {
        mask: Mask::classify(now.mask.clone(), cpuset),
        nice: now.nice,
        class: now.class,
        reset_on_fork: now.reset_on_fork,
    }
}

/// The allowed CPUs of a thread; unpinned threads share their cpuset's.
pub(super) fn allowed_of(saved: &Saved, cpuset: &Arc<CpuSet>) -> Arc<CpuSet> {
    match saved.mask {
        Mask::All => Arc::clone(cpuset),
        Mask::Cpus(_) => Arc::new(saved.mask.within(cpuset)),
    }
}

/// What a thread has once a repair was carried out.
pub(super) fn after(now: &mut Present, repair: &Repair, cpuset: &CpuSet) {
    if let Some(mask) = &repair.mask {
        now.mask = mask.within(cpuset);
    }
    now.nice = repair.nice.unwrap_or(now.nice);
    now.class = repair.class.unwrap_or(now.class);
}
