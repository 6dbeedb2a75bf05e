//! The handle that the loop and the event reader share.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use symbiont_machine::{Ability, Change, Move, Outcome, Priority, Target, ThreadId};
use symbiont_topology::{CpuSet, HostTopology};

use super::ability::{Abilities, Privilege};
use super::applied_state::{AppliedState, Entry, Newborn, Repair, UNKNOWN};
use super::groups::{GroupKey, share_one_group};
use super::journal::{Journal, Line};
use super::journal_state::{JournalState, Present, ThreadRecord};
use super::kernel::{Class, Facts, Host, Kernel, ThreadError, ThreadKey};
use super::nudge::Nudges;
use super::parents::{NOT_PLACED, is_denied};
use super::restoring::{RestoreReport, carry_out, restore_threads};
use super::scheduler::no_priority_under;
use super::settings::{AppliedSettings, Mask, Saved};
use super::standing::Contended;
use super::state_dir::{StateDir, StateDirError};
use super::suspect::Suspect;
use super::trust::Trust;
use crate::inheriting::{Guard, Inheriting};

/// Trouble with an actuator as a whole.
#[derive(Debug, thiserror::Error)]
#[error("cannot keep a journal, so nothing would be restored after a crash: {0}")]
pub struct ActuatorError(#[from] StateDirError);

/// Changes threads and restores them. Clones share one state; dropping the
/// last one restores what is still applied.
#[derive(Debug, Clone)]
pub struct Actuator {
    state: Arc<Inheriting<State>>,
}

/// Everything behind the lock.
#[derive(Debug)]
pub(super) struct State {
    pub applied: AppliedState,
    pub privilege: Privilege,
    pub journal: Journal,
    pub kernel: Box<dyn Kernel>,
    online: usize,
    /// Read of late; [`Actuator::refresh`] forgets them.
    pub cpusets: BTreeMap<u32, Arc<CpuSet>>,
    pub groups: BTreeMap<u32, GroupKey>,
    /// The same of the scheduler that is loaded.
    scheduler: Option<String>,
    /// The processes that compete, where the loop reported them.
    busy: Option<BTreeSet<u32>>,
    /// Processes that made others, where that matters; is it harmless?
    pub parents: BTreeMap<u32, bool>,
    /// Changed threads that may not be changed any more.
    pub stuck: BTreeSet<ThreadKey>,
    /// Undone, and not asked for yet.
    pub suspects: Vec<Suspect>,
    /// Masks that a program may have read from a nudge; they stay.
    pub doubts: Vec<Suspect>,
    /// Made lately: children that were born meanwhile may have inherited a target.
    pub nudges: Nudges,
    /// Where the caller waited for its turn when it nudged.
    pub contended: Contended,
    /// How many there were, those counted that ended or were restored later.
    pub slipped: u64,
    /// Some threads, perhaps such that were never adopted, could not be restored.
    is_incomplete: bool,
}

impl Actuator {
    /// Begins a journal in the state directory, which is made if missing.
    ///
    /// # Errors
    /// When the journal cannot be written.
    pub fn new(host: &HostTopology, state_dir: &Path) -> Result<Self, ActuatorError> {
        Self::over(Box::new(Host::new(host)), Privilege::current(), host.cpus().len(), state_dir)
    }

    /// The same over any kernel, with so many hardware threads online.
    pub(super) fn over(
        kernel: Box<dyn Kernel>,
        privilege: Privilege,
        online: usize,
        state_dir: &Path,
    ) -> Result<Self, ActuatorError> {
        let state = State {
            applied: AppliedState::default(),
            privilege,
            journal: Journal::begin(StateDir::create(state_dir)?, kernel.now_ticks())?,
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
        };
        Ok(Self { state: Arc::new(Inheriting::new(state)) })
    }

    pub(super) fn state(&self) -> Guard<'_, State> {
        // Every change of the state is complete before anything can panic.
        self.state.lock()
    }

    /// What this process may change here and could restore. Whether
    /// priorities act is reported for the processes that compete now.
    #[must_use]
    pub fn abilities(&self) -> Abilities {
        let mut state = self.state();
        let grouping = state.kernel.grouping();
        let between = state.priorities_act(None);
        let now = |ability: Ability| match &between {
            Err(why) if ability.exists() => Ability::Absent(why.clone()),
            _ => ability,
        };
        let scheduler = state.scheduler.as_deref();
        let all = Abilities::new(state.online, state.privilege, grouping, scheduler);
        Abilities { boost: now(all.boost), waiting: now(all.waiting), ..all }
    }

    /// Saves what a thread has, when the loop first sees it, and returns its
    /// allowed CPUs. What it inherited from a thread that we had changed is undone
    /// first. A thread that is adopted already keeps what was saved.
    ///
    /// # Errors
    /// When it is gone or cannot be read.
    pub fn adopt(&self, thread: &ThreadId) -> Result<Arc<CpuSet>, ThreadError> {
        self.state().adopt(thread.into())?;
        self.allowed(thread).ok_or(ThreadError::Gone(thread.into()))
    }

    /// Where the user and the cpuset let an adopted thread run.
    #[must_use]
    pub fn allowed(&self, thread: &ThreadId) -> Option<Arc<CpuSet>> {
        self.state().allowed(thread)
    }

    /// The allowed CPUs of several threads, in their order; none for a thread that
    /// is not adopted.
    #[must_use]
    pub fn all_allowed<'a>(
        &self,
        threads: impl IntoIterator<Item = &'a ThreadId>,
    ) -> Vec<Option<Arc<CpuSet>>> {
        let mut state = self.state();
        threads.into_iter().map(|thread| state.allowed(thread)).collect()
    }

    /// Does a thread run when no other is ready because that was asked for here?
    #[must_use]
    pub fn has_set_idle(&self, thread: &ThreadId) -> bool {
        self.state().has_set_idle(&thread.into())
    }

    /// Is anything of ours applied on any adopted thread?
    #[must_use]
    pub fn is_anything_applied(&self) -> bool {
        self.state().is_anything_applied()
    }

    /// Carries out one move.
    #[must_use]
    pub fn apply(&self, mv: &Move) -> Outcome {
        let key = ThreadKey::from(&mv.thread);
        let mut state = self.state();
        if state.applied.get(&key).is_some_and(|entry| entry.generation > mv.thread.generation) {
            // The move was meant for the program that an exec replaced.
            return Outcome::Gone;
        }
        let is_undone =
            matches!(mv.change, Change::Affinity(Target::Os) | Change::Priority(Priority::Normal));
        if !is_undone && state.is_parent(key.process) {
            return Outcome::Refused(NOT_PLACED.to_owned());
        }
        match &mv.change {
            Change::Affinity(target) => state.set_affinity(key, target),
            Change::Nudge(_) => {
                state.nudge(std::slice::from_ref(mv)).pop().unwrap_or(Outcome::Gone)
            }
            Change::Priority(priority) => state.set_priority(key, *priority),
        }
    }

    /// Undoes at once what a newborn inherited from a thread that we had
    /// changed. Costs no system call if its maker's process was never changed.
    /// The parent is what the fork event names: for a new thread of a process
    /// that is not its maker, which then may be any thread of the process.
    pub fn newborn(&self, parent_process: u32, parent_thread: u32, process: u32, thread: u32) {
        if process == thread && parent_process == process {
            // A leader was listed again: no thread of its process made it, but one may have become
            // it by an exec, which adopting finds out.
            return;
        }
        let maker = if process == thread { (parent_process, parent_thread) } else { (process, 0) };
        let mut state = self.state();
        state.newborn(maker, process, thread);
        if process == thread {
            // The thread that had that number before is gone.
            state.parents.remove(&process);
            state.forked(parent_process);
        }
    }

    /// How many threads could not be restored when they should have been, since they had
    /// become another user's.
    #[must_use]
    pub fn slipped(&self) -> u64 {
        self.state().slipped
    }

    /// A process was found to have made another one, which was perhaps never seen.
    pub fn forked(&self, process: u32) {
        self.state().forked(process);
    }

    /// The processes whose threads may not be changed, since they make
    /// processes that could become another user's.
    #[must_use]
    pub fn parents(&self) -> BTreeSet<u32> {
        let state = self.state();
        state.parents.iter().filter(|(_, harmless)| !**harmless).map(|(p, _)| *p).collect()
    }

    /// A process replaced its program. Its leader may now be the thread that
    /// called exec, with that one's settings; the others are gone. What of ours
    /// is applied is restored at once: programs count the CPUs when they start. `candidates` are
    /// its threads that were not reported ended before; none where that is not known.
    pub fn execed(&self, process: u32, candidates: &[u32]) {
        let mut state = self.state();
        state.execed(process, candidates);
        state.parents.remove(&process);
    }

    /// A thread exited. (One that only replaced its program keeps its key.)
    pub fn forget(&self, thread: &ThreadKey) {
        let mut state = self.state();
        let tick = state.kernel.now_ticks();
        state.applied.depart(thread, tick);
        if state.applied.of_process(thread.process).next().is_none() {
            state.cpusets.remove(&thread.process);
            state.groups.remove(&thread.process);
        }
    }

    /// Finds which processes compete for the machine: a nice value acts only
    /// if all of these share a scheduling group. By default, all adopted ones.
    pub fn contend(&self, busy: BTreeSet<u32>) {
        self.state().busy = Some(busy);
    }

    /// Reads online CPUs, mounts of cgroups, cpusets, scheduling groups and the loaded scheduler
    /// again, since all can change at any time, and begins the journal again if it was removed. Costs
    /// some 20 µs a process; once a second is often enough.
    ///
    /// # Errors
    /// When there is no journal any more: nothing may be changed then.
    pub fn refresh(&self) -> Result<(), ActuatorError> {
        self.state().keep_journal()?;
        let processes = self.state().forget_readings();
        for process in processes {
            // One at a time: the event reader must not wait for all of them.
            self.state().read_cpuset(process);
        }
        Ok(())
    }

    /// Puts everything back, also on descendants that were never adopted, and
    /// removes the journal. May be called again.
    pub fn restore_all(&self) -> RestoreReport {
        self.state().restore_all()
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
    fn is_anything_applied(&self) -> bool {
        self.applied.iter().any(|(_, entry)| !entry.applied().is_nothing())
    }

    fn has_set_idle(&self, thread: &ThreadKey) -> bool {
        self.applied.get(thread).is_some_and(|entry| entry.applied().waiting)
    }

    fn allowed(&mut self, thread: &ThreadId) -> Option<Arc<CpuSet>> {
        let entry = self.applied.get_mut(&thread.into())?;
        entry.generation = entry.generation.max(thread.generation);
        Some(Arc::clone(&entry.allowed))
    }

    fn adopt(&mut self, key: ThreadKey) -> Result<Arc<CpuSet>, ThreadError> {
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
                Err(error) if is_denied(&error) => {
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

    fn newborn(&mut self, maker: (u32, u32), process: u32, thread: u32) {
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
            Err(error) if is_denied(&error) => {
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
            waiting: repair.class.is_some(),
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
    fn forget_readings(&mut self) -> Vec<u32> {
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

    fn restore_all(&mut self) -> RestoreReport {
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
