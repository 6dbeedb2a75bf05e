//! The handle that the loop and the event reader share.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use symbiont_machine::{Ability, Change, Move, Outcome, Priority, Target, ThreadId};
use symbiont_topology::{CpuSet, HostTopology};

use super::ability::{Abilities, Privilege};
use super::book::{Book, Present, Record};
use super::cgroup::Cgroups;
use super::groups::{GroupKey, share_one_group};
use super::journal::{Journal, Line};
use super::kernel::{self, ThreadError, ThreadKey};
use super::ledger::{Entry, Ledger, Newborn, Repair};
use super::putback::{RestoreReport, carry_out, present, put_back};
use super::scheduler::{loaded_scheduler, no_priority_under};
use super::settings::{InForce, Mask, Saved};
use super::state_dir::{StateDir, StateDirError};
use crate::inheriting::{Guard, Inheriting};

/// Trouble with an actuator as a whole.
#[derive(Debug, thiserror::Error)]
#[error("cannot keep a journal, so nothing would be put back after a crash: {0}")]
pub struct ActuatorError(#[from] StateDirError);

/// Changes threads and puts them back. Clones share one state; dropping the
/// last one puts back what is still in force.
#[derive(Debug, Clone)]
pub struct Actuator {
    state: Arc<Inheriting<State>>,
}

/// Everything behind the lock.
#[derive(Debug)]
pub(super) struct State {
    pub ledger: Ledger,
    pub privilege: Privilege,
    journal: Journal,
    cgroups: Cgroups,
    online: usize,
    /// Read of late; [`Actuator::refresh`] forgets them.
    cpusets: BTreeMap<u32, Arc<CpuSet>>,
    groups: BTreeMap<u32, GroupKey>,
    /// The same of the scheduler that is loaded.
    scheduler: Option<String>,
    /// The processes that compete, where the loop told them.
    busy: Option<BTreeSet<u32>>,
}

impl Actuator {
    /// Begins a journal in the state directory, which is made if missing.
    ///
    /// # Errors
    /// When the journal cannot be written.
    pub fn new(host: &HostTopology, state_dir: &Path) -> Result<Self, ActuatorError> {
        let state = State {
            ledger: Ledger::default(),
            privilege: Privilege::current(),
            journal: Journal::begin(StateDir::create(state_dir)?)?,
            online: host.cpus().len(),
            cgroups: Cgroups::discover(host),
            cpusets: BTreeMap::new(),
            groups: BTreeMap::new(),
            scheduler: loaded_scheduler(),
            busy: None,
        };
        Ok(Self { state: Arc::new(Inheriting::new(state)) })
    }

    fn state(&self) -> Guard<'_, State> {
        // Every change of the state is complete before anything can panic.
        self.state.lock()
    }

    /// What this process may change here and could put back. Whether
    /// priorities act is told for the processes that compete now.
    #[must_use]
    pub fn abilities(&self) -> Abilities {
        let mut state = self.state();
        let grouping = state.cgroups.grouping();
        let between = state.priorities_act(None);
        let now = |ability: Ability| match &between {
            Err(why) if ability.exists() => Ability::Absent(why.clone()),
            _ => ability,
        };
        let scheduler = state.scheduler.as_deref();
        let all = Abilities::new(state.online, state.privilege, grouping, scheduler);
        Abilities { boost: now(all.boost), waiting: now(all.waiting), ..all }
    }

    /// Saves what a thread has, when the loop first sees it, and tells its
    /// limit. What it inherited from a thread that we had changed is undone
    /// first. A thread that is adopted already keeps what was saved.
    ///
    /// # Errors
    /// When it is gone or cannot be read.
    pub fn adopt(&self, thread: &ThreadId) -> Result<Arc<CpuSet>, ThreadError> {
        self.state().adopt(thread.into())?;
        self.limit(thread).ok_or(ThreadError::Gone(thread.into()))
    }

    /// Where the user and the cpuset let an adopted thread run.
    #[must_use]
    pub fn limit(&self, thread: &ThreadId) -> Option<Arc<CpuSet>> {
        self.state().limit(thread)
    }

    /// The limits of several threads, in their order; none for a thread that
    /// is not adopted.
    #[must_use]
    pub fn limits<'a>(
        &self,
        threads: impl IntoIterator<Item = &'a ThreadId>,
    ) -> Vec<Option<Arc<CpuSet>>> {
        let mut state = self.state();
        threads.into_iter().map(|thread| state.limit(thread)).collect()
    }

    /// Is anything of ours in force on any adopted thread?
    #[must_use]
    pub fn anything_in_force(&self) -> bool {
        self.state().anything_in_force()
    }

    /// Carries out one move.
    #[must_use]
    pub fn apply(&self, mv: &Move) -> Outcome {
        let key = ThreadKey::from(&mv.thread);
        let mut state = self.state();
        if state.ledger.get(&key).is_some_and(|entry| entry.generation > mv.thread.generation) {
            // The move was meant for the program that an exec replaced.
            return Outcome::Gone;
        }
        match &mv.change {
            Change::Affinity(target) => state.set_affinity(key, target),
            Change::Priority(priority) => state.set_priority(key, *priority),
        }
    }

    /// Undoes at once what a newborn inherited from a thread that we had
    /// changed. Costs no system call if its maker's process was never changed.
    /// The parent is what the fork event names: for a new thread of a process
    /// that is not its maker, which then may be any thread of the process.
    pub fn newborn(&self, parent_process: u32, parent_thread: u32, process: u32, thread: u32) {
        let maker = if process == thread { (parent_process, parent_thread) } else { (process, 0) };
        self.state().newborn(maker, process, thread);
    }

    /// A process replaced its program. Its leader may now be the thread that
    /// called exec, with that one's settings; the others are gone. What of ours
    /// is in force is put back at once: programs count the CPUs when they start.
    pub fn execed(&self, process: u32) {
        self.state().execed(process);
    }

    /// A thread exited. (One that only replaced its program keeps its key.)
    pub fn forget(&self, thread: &ThreadKey) {
        let mut state = self.state();
        state.ledger.depart(thread);
        if state.ledger.of_process(thread.process).next().is_none() {
            state.cpusets.remove(&thread.process);
            state.groups.remove(&thread.process);
        }
    }

    /// Tells which processes compete for the machine: a nice value acts only
    /// if all of these share a scheduling group. Until told, all adopted ones.
    pub fn contend(&self, busy: BTreeSet<u32>) {
        self.state().busy = Some(busy);
    }

    /// Reads cpusets, scheduling groups and the loaded scheduler again, since all can change
    /// at any time. Costs some 20 µs a process; once a second is often enough.
    pub fn refresh(&self) {
        let processes = self.state().forget_readings();
        for process in processes {
            // One at a time: the event reader must not wait for all of them.
            self.state().read_cpuset(process);
        }
    }

    /// Puts everything back, also on descendants that were never adopted, and
    /// removes the journal. May be called again.
    pub fn restore_all(&self) -> RestoreReport {
        self.state().restore_all()
    }
}

impl Drop for State {
    fn drop(&mut self) {
        if self.anything_in_force() {
            self.restore_all();
        }
        // What could not be put back stays in the journal for another try.
        if !self.anything_in_force() {
            let _ = self.journal.remove();
        }
    }
}

impl State {
    fn anything_in_force(&self) -> bool {
        self.ledger.iter().any(|(_, entry)| !entry.in_force().is_nothing())
    }

    fn limit(&mut self, thread: &ThreadId) -> Option<Arc<CpuSet>> {
        let entry = self.ledger.get_mut(&thread.into())?;
        entry.generation = entry.generation.max(thread.generation);
        Some(Arc::clone(&entry.limit))
    }

    fn adopt(&mut self, key: ThreadKey) -> Result<Arc<CpuSet>, ThreadError> {
        if let Some(entry) = self.ledger.get(&key) {
            return Ok(Arc::clone(&entry.limit));
        }
        let mut now = present(key)?;
        let cpuset = self.cpuset_of(key.process, &now.mask);
        // It may only have been out of sight: then it is not as its user left it.
        if let Some(mut entry) = self.ledger.take_departed(&key) {
            if record_of(&entry).fits(&now, &cpuset) {
                entry.limit = limit_of(&entry.saved, &cpuset);
                let limit = Arc::clone(&entry.limit);
                self.ledger.insert(key, entry);
                return Ok(limit);
            }
            self.ledger.remember_departed(key, entry);
        }
        if !self.ledger.was_seen_at_birth(&key) {
            let newborn = newborn_of(key, &now);
            let makers = [key.process, now.parent].map(|process| (process, 0));
            let repair = makers
                .into_iter()
                .map(|maker| self.ledger.repair(maker, &newborn, &cpuset))
                .fold(Repair::default(), Repair::or_better);
            carry_out(key, &repair, now.reset_on_fork, &cpuset)?;
            after(&mut now, &repair, &cpuset);
        }
        let saved = saved_of(&now, &cpuset);
        let limit = limit_of(&saved, &cpuset);
        let is_chosen = saved.mask != Mask::All;
        self.ledger.insert(key, Entry::new(saved, Arc::clone(&limit)));
        if is_chosen {
            // After a crash it shall not be taken for one that inherited a mask of ours. Should
            // this fail, so does every act, which tries it again.
            let _ = self.announce(key, None);
        }
        Ok(limit)
    }

    fn newborn(&mut self, maker: (u32, u32), process: u32, thread: u32) {
        let unchecked = ThreadKey { process, thread, born: 0 };
        if !self.ledger.may_carry(maker.0, &|| kernel::mask(unchecked).ok()) {
            return;
        }
        let Ok(Some(facts)) = kernel::facts(process, thread) else { return };
        let key = facts.key;
        if self.ledger.get(&key).is_some() {
            return;
        }
        let Ok(now) = present(key) else { return };
        // A child starts in its maker's cpuset.
        let cpuset = self.known_cpuset(maker.0);
        let repair = self.ledger.repair(maker, &newborn_of(key, &now), &cpuset);
        // What fails here is tried again when the thread is adopted.
        if carry_out(key, &repair, now.reset_on_fork, &cpuset).is_ok() {
            self.ledger.saw_at_birth(key);
        }
    }

    fn execed(&mut self, process: u32) {
        self.groups.remove(&process);
        self.cpusets.remove(&process);
        if self.ledger.of_process(process).next().is_none() {
            return;
        }
        let leader = kernel::facts(process, process).ok().flatten().map(|facts| facts.key);
        let now = leader.and_then(|key| present(key).ok());
        let mut threads = self.ledger.take_process(process);
        if let (Some(leader), Some(now)) = (leader, now) {
            let cpuset = self.cpuset_of(process, &now.mask);
            // The leader itself is by far the likeliest.
            threads.sort_by_key(|(key, _)| *key != leader);
            let fits = |(_, entry): &(ThreadKey, Entry)| record_of(entry).fits(&now, &cpuset);
            if let Some(position) = threads.iter().position(fits) {
                let (key, mut entry) = threads.remove(position);
                entry.generation += 1;
                entry.limit = limit_of(&entry.saved, &cpuset);
                entry.journaled &= key == leader;
                let in_force = entry.in_force().clone();
                self.ledger.insert(leader, entry);
                if key != leader {
                    // The journal may know another leader. On failure the next act tries it again.
                    let _ = self.announce(leader, Some(&in_force));
                }
                if !in_force.is_nothing() {
                    // What fails here is put back at the end.
                    let _ = self.set_affinity(leader, &Target::Os);
                    let _ = self.set_priority(leader, Priority::Normal);
                }
            }
        }
        for (key, entry) in threads {
            self.ledger.remember_departed(key, entry);
        }
    }

    /// Forgets what was read of cpusets and groups, and looks who schedules; tells for
    /// which processes.
    fn forget_readings(&mut self) -> Vec<u32> {
        self.groups.clear();
        self.cpusets.clear();
        self.scheduler = loaded_scheduler();
        self.ledger.processes().collect()
    }

    /// Reads a process's cpuset anew and sets the limits of its threads.
    pub fn read_cpuset(&mut self, process: u32) -> Arc<CpuSet> {
        let cpuset = self.cgroups.cpuset(process);
        for (_, entry) in self.ledger.of_process_mut(process) {
            let limit = entry.saved.mask.within(&cpuset);
            if *entry.limit != limit {
                entry.limit = Arc::new(limit);
            }
        }
        self.cpusets.insert(process, Arc::clone(&cpuset));
        cpuset
    }

    /// A process's cpuset, read anew if a mask seen there differs from it.
    pub fn cpuset_of(&mut self, process: u32, seen: &CpuSet) -> Arc<CpuSet> {
        match self.cpusets.get(&process) {
            Some(cpuset) if **cpuset == *seen => Arc::clone(cpuset),
            _ => self.read_cpuset(process),
        }
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
            None => self.ledger.processes().collect(),
        };
        contenders.extend(process);
        let mut keys = BTreeMap::new();
        for process in contenders {
            let known = self.groups.get(&process).cloned();
            if let Some(key) = known.or_else(|| self.cgroups.group(process)) {
                self.groups.insert(process, key.clone());
                keys.insert(process, key);
            }
        }
        if let Some(name) = &self.scheduler {
            return Err(no_priority_under(name));
        }
        share_one_group(&keys)
    }

    /// Writes to the journal what a thread had, unless that is there, and what
    /// is about to be in force on it.
    pub fn announce(
        &mut self,
        key: ThreadKey,
        in_force: Option<&InForce>,
    ) -> Result<(), StateDirError> {
        let Some(entry) = self.ledger.get_mut(&key) else { return Ok(()) };
        let mut lines = Vec::with_capacity(2);
        if !entry.journaled {
            lines.push(Line::Saved(key, entry.saved.clone()));
        }
        lines.extend(in_force.map(|in_force| Line::Set(key, in_force.clone())));
        self.journal.note(&lines)?;
        entry.journaled = true;
        if self.journal.is_bloated(self.ledger.len()) {
            // The ledger learns of what is announced only after the act.
            let mut lines = self.journal_lines();
            lines.extend(in_force.map(|in_force| Line::Set(key, in_force.clone())));
            // The long journal stays valid if this fails.
            let _ = self.journal.rewrite(&lines);
        }
        Ok(())
    }

    /// The shortest journal that says the same.
    fn journal_lines(&self) -> Vec<Line> {
        let journaled = self.ledger.iter().filter(|(_, entry)| entry.journaled);
        journaled
            .flat_map(|(key, entry)| {
                let saved = Line::Saved(*key, entry.saved.clone());
                let sets = entry.latest().map(|in_force| Line::Set(*key, in_force.clone()));
                std::iter::once(saved).chain(sets)
            })
            .collect()
    }

    fn restore_all(&mut self) -> RestoreReport {
        let mut book = Book::new(self.journal.began());
        // A leader that another thread replaced departed under the key that lives.
        for (key, entry) in self.ledger.departed().chain(self.ledger.iter()) {
            book.records.insert(*key, record_of(entry));
        }
        let report = put_back(&book, &self.cgroups);
        if report.failed.is_empty() {
            self.ledger.forget_changes();
            // A journal that stays says what is true: nothing is in force.
            let _ = self.journal.remove();
        }
        report
    }
}

fn record_of(entry: &Entry) -> Record {
    Record {
        saved: entry.saved.clone(),
        now: vec![entry.in_force().clone()],
        ever: entry.ever().cloned().collect(),
    }
}

fn newborn_of(key: ThreadKey, now: &Present) -> Newborn {
    Newborn { mask: now.mask.clone(), nice: now.nice, class: now.class, born: key.born }
}

fn saved_of(now: &Present, cpuset: &CpuSet) -> Saved {
    Saved {
        mask: Mask::classify(now.mask.clone(), cpuset),
        nice: now.nice,
        class: now.class,
        reset_on_fork: now.reset_on_fork,
    }
}

/// The limit of a thread; threads that nobody pinned share their cpuset's.
pub(super) fn limit_of(saved: &Saved, cpuset: &Arc<CpuSet>) -> Arc<CpuSet> {
    match saved.mask {
        Mask::All => Arc::clone(cpuset),
        Mask::Cpus(_) => Arc::new(saved.mask.within(cpuset)),
    }
}

/// What a thread has once a repair was carried out.
fn after(now: &mut Present, repair: &Repair, cpuset: &CpuSet) {
    if let Some(mask) = &repair.mask {
        now.mask = mask.within(cpuset);
    }
    now.nice = repair.nice.unwrap_or(now.nice);
    now.class = repair.class.unwrap_or(now.class);
}
