//! The handle to the actuator, shared by the control loop and the reader of process events.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use symbiont_machine::{Ability, Change, Move, Outcome, Priority, Target, ThreadId};
use symbiont_topology::{CpuSet, HostTopology};

use super::ability::{Abilities, Privilege};
use super::journal::Journal;
use super::kernel::{Host, Kernel};
use super::parents::NOT_PLACED;
use super::restoring::RestoreReport;
use super::state::State;
use super::state_dir::{StateDir, StateDirError};
use super::thread::{Class, ThreadError, ThreadKey};
use crate::inheriting::{Guard, Inheriting};

/// An error of the actuator as a whole, not of a single thread.
#[derive(Debug, thiserror::Error)]
#[error("cannot keep a journal, so nothing would be restored after a crash: {0}")]
pub struct ActuatorError(#[from] StateDirError);

/// Changes threads and restores them. Clones share one state; dropping the
/// last one restores what is still applied.
#[derive(Debug, Clone)]
pub struct Actuator {
    state: Arc<Inheriting<State>>,
}

impl Actuator {
    /// Begins a journal in the state directory, which is made if missing.
    ///
    /// # Errors
    /// When the journal cannot be written.
    pub fn new(host: &HostTopology, state_dir: &Path) -> Result<Self, ActuatorError> {
        Self::over(Box::new(Host::new(host)), Privilege::current(), host.cpus().len(), state_dir)
    }

    /// The same over any kernel, with this many hardware threads online.
    pub(super) fn over(
        kernel: Box<dyn Kernel>,
        privilege: Privilege,
        online: usize,
        state_dir: &Path,
    ) -> Result<Self, ActuatorError> {
        let journal = Journal::begin(StateDir::create(state_dir)?, kernel.now_ticks())?;
        let state = State::new(kernel, privilege, online, journal);
        Ok(Self { state: Arc::new(Inheriting::new(state)) })
    }

    pub(super) fn state(&self) -> Guard<'_, State> {
        // Every change of the state is complete before anything can panic.
        self.state.lock()
    }

    /// What this process may change here, and could restore. Whether priorities have an effect is judged for the
    /// processes that compete now.
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
        Abilities { boost: now(all.boost), idle_class: now(all.idle_class), ..all }
    }

    /// To be called when the loop first sees a thread: saves what the thread has, and returns its allowed CPUs.
    /// What it inherited from a thread that we had changed is undone first. A thread that was adopted before
    /// keeps what was saved then.
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

    /// Did this actuator put the thread into the idle class, in which it runs only when no other thread is ready?
    #[must_use]
    pub fn has_set_idle(&self, thread: &ThreadId) -> bool {
        self.state().has_set(&thread.into(), Class::Idle)
    }

    /// Did this actuator put the thread into the class of `sched_ext`?
    #[must_use]
    pub fn has_set_ext(&self, thread: &ThreadId) -> bool {
        self.state().has_set(&thread.into(), Class::Ext)
    }

    /// Is the thread of the class of `sched_ext` now, as far as the kernel says?
    #[must_use]
    pub fn is_of_ext(&self, thread: &ThreadId) -> bool {
        self.state().kernel.present(thread.into()).is_ok_and(|now| now.class == Class::Ext)
    }

    /// Has a `sched_ext` scheduler decide on the thread (its class is `SCHED_EXT`), or no longer. One that is of
    /// another class than the usual ones is refused.
    #[must_use]
    pub fn set_class_ext(&self, thread: &ThreadId, on: bool) -> Outcome {
        let key = ThreadKey::from(thread);
        let mut state = self.state();
        if on && state.is_parent(key.process) {
            return Outcome::Refused(NOT_PLACED.to_owned());
        }
        state.set_class_ext(key, on)
    }

    /// The hardware threads that the cpuset of a process allows, whether it is managed or not.
    #[must_use]
    pub(crate) fn cpuset(&self, process: u32) -> Arc<CpuSet> {
        self.state().kernel.cpuset(process)
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

    /// Undoes at once what a newborn inherited from a thread that we had changed. Costs no system call if its
    /// maker's process was never changed. The parent is the one that the fork event names: for a new thread, that
    /// is not its maker, which can be any thread of its process.
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

    /// How many threads could not be restored when they should have been, because they had become another user's.
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

    /// A process replaced its program. Its leader may now be the thread that called exec, with the settings of that
    /// thread; all others are gone. What of ours is applied is restored at once: programs count the CPUs when they
    /// start. `candidates` are its threads that were not reported ended before; none where that is not known.
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

    /// Says which processes compete for the machine: a nice value acts only if all of these share a scheduling group.
    /// If it is never said, all adopted ones do.
    pub fn contend(&self, busy: BTreeSet<u32>) {
        self.state().busy = Some(busy);
    }

    /// Reads online CPUs, mounts of cgroups, cpusets, scheduling groups and the loaded scheduler
    /// again, since all can change at any time, and begins the journal again if it was removed. Costs
    /// some 20 µs a process; once in 0.75 s is often enough.
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

    /// Restores everything, also on descendants that were never adopted, and removes the journal. May be called again.
    pub fn restore_all(&self) -> RestoreReport {
        self.state().restore_all()
    }
}
