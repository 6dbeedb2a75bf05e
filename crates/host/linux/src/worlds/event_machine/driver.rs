//! A manager on the simulated kernel, step by step, and what must hold at the end.
//!
//! With the real tree of threads and the real actuator, it does what the watcher and the machine do: reports go
//! through the tree to the actuator; a sample adopts what it finds and forgets what is gone.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};

use symbiont_machine::{Change, Move, Outcome, Priority, ProgramId, Target, ThreadId};
use symbiont_topology::{CpuSet, PuId};

use super::super::ability::Privilege;
use super::super::actuator::Actuator;
use super::super::restore::restore_over;
use super::super::thread::ThreadKey;
use super::handle::Handle;
use super::step::{Action, Ask, CPUS, Pick};
use super::world::{ROOT, SHELL, World};
use crate::machine::Hook;
use crate::observe::{Event, Live, Seen, Tree};

/// No more moves than this: of each thread just the last changes are remembered for its children
/// ([`super::super::applied_state`]).
const MOVES: usize = 14;

/// A manager, its kernel, and what it knows.
pub struct Driver {
    handle: Handle,
    actuator: Option<Actuator>,
    hook: Hook,
    tree: Tree,
    dir: PathBuf,
    /// The threads of the last sample.
    known: Vec<ThreadId>,
    /// Serials of threads that could not be found at the last sample.
    missing: BTreeSet<u64>,
    moves: usize,
}

impl Driver {
    /// A manager that has just enrolled the program.
    pub fn new(dir: PathBuf) -> Result<Self, String> {
        let cpus: CpuSet = (0..CPUS).map(PuId).collect();
        let world = Arc::new(Mutex::new(World::new(dir.clone(), &cpus)));
        let handle = Handle { world, manager: 0 };
        let actuator = Actuator::over(Box::new(handle.clone()), Privilege::all(), cpus.len(), &dir);
        let actuator = actuator.map_err(|error| error.to_string())?;
        let mut driver = Self {
            handle,
            hook: Hook(actuator.clone()),
            actuator: Some(actuator),
            tree: Tree::new(1),
            dir,
            known: Vec::new(),
            missing: BTreeSet::new(),
            moves: 0,
        };
        let root = Seen { process: ROOT, parent: SHELL, session: SHELL, born: 10, stack: 0 };
        driver.tree.enrol(ProgramId(0), &root, &[root], &mut driver.hook);
        driver.tree.set_threads(ROOT, &[ROOT], &mut driver.hook);
        driver.tree.caught_up();
        Ok(driver)
    }

    pub(super) fn world(&self) -> MutexGuard<'_, World> {
        self.handle.world()
    }

    /// Is a thread enrolled, as far as the tree knows?
    #[cfg(test)]
    pub fn enrols(&self, process: u32, thread: u32) -> bool {
        self.tree.live().any(|live| (live.process, live.thread) == (process, thread))
    }

    /// Does what comes next.
    pub fn act(&mut self, action: Action) {
        self.world().blur_what_reading_loses();
        if self.world().died {
            if let Action::World(step) = action {
                self.world().step(&step);
            }
            return;
        }
        match action {
            Action::World(step) => self.world().step(&step),
            Action::Report => self.report(),
            Action::Sample => self.sample(),
            Action::Move(pick, ask) => self.apply(pick, ask),
            Action::Refresh => {
                // Without a journal every act is refused.
                let _ = self.actuator.as_ref().map(Actuator::refresh);
                // What became of masks is reported to a loop, which this driver is not.
                let _ = self.actuator.as_ref().map(Actuator::lapsed);
            }
            Action::Kill(fuse) => {
                self.world().fuse.get_or_insert(fuse);
            }
        }
        self.world().interrupted = false;
    }

    /// One report reaches the tree.
    fn report(&mut self) {
        let Some(event) = self.world().reports.pop_front() else { return };
        self.tree.apply(event, &mut self.hook);
        let mut world = self.world();
        let Event::Fork { child_process, child_thread, .. } = event else { return };
        let is_seen = child_process == child_thread && !world.died;
        if let Some(process) = world.processes.get_mut(&child_process).filter(|_| is_seen) {
            process.reported = true;
        }
    }

    fn drain(&mut self) {
        while !self.world().reports.is_empty() && !self.world().died {
            self.report();
        }
    }

    /// As `Watcher::read` and then `LinuxMachine::sample`.
    fn sample(&mut self) {
        self.drain();
        let live: Vec<Live> = self.tree.live().collect();
        let (mut there, mut gone) = (Vec::new(), Vec::new());
        for live in live {
            let facts = self.world().facts(live.process, live.thread);
            match facts.filter(|facts| !facts.zombie) {
                Some(facts) => there.push((live, facts.key.born)),
                None => gone.push(live),
            }
        }
        if !gone.is_empty() {
            self.drain();
        }
        for gone in gone.iter().filter(|gone| self.missing.contains(&gone.serial)) {
            // As the watcher's `lives_on`.
            let leader = self.world().facts(gone.process, gone.process);
            let lives_on = leader.is_some_and(|leader| !leader.zombie);
            match lives_on && self.tree.is_last(gone) {
                true => self.tree.set_threads(gone.process, &[gone.process], &mut self.hook),
                false => self.tree.vanished(gone, &mut self.hook),
            }
        }
        self.missing = gone.iter().map(|gone| gone.serial).collect();
        there.retain_mut(|(live, _)| self.tree.refresh(live));
        self.tree.next_epoch();
        let observed: Vec<ThreadId> = there
            .iter()
            .map(|(live, born)| ThreadId {
                process: live.process,
                thread: live.thread,
                born: *born,
                generation: live.generation,
            })
            .collect();
        let Some(actuator) = self.actuator.clone() else { return };
        let all_allowed = actuator.all_allowed(&observed);
        let mut alive = Vec::new();
        for (thread, allowed) in observed.iter().zip(all_allowed) {
            if allowed.is_some() || actuator.adopt(thread).is_ok() {
                alive.push(*thread);
                self.adopted(&thread.into());
            }
        }
        let keys: Vec<ThreadKey> = alive.iter().map(ThreadKey::from).collect();
        for gone in self.known.iter().map(ThreadKey::from).filter(|known| !keys.contains(known)) {
            actuator.forget(&gone);
        }
        self.known = alive;
    }

    fn adopted(&self, key: &ThreadKey) {
        let mut world = self.world();
        let task = world.tasks.get_mut(&key.thread).filter(|task| task.born == key.born);
        if let Some(task) = task.filter(|task| !task.adopted) {
            (task.adopted, task.unread) = (true, false);
        }
    }

    fn apply(&mut self, Pick(pick): Pick, ask: Ask) {
        self.moves += 1;
        let thread = self.known.get(usize::from(pick) % self.known.len().max(1)).copied();
        let (Some(thread), Some(actuator)) = (thread, &self.actuator) else { return };
        if self.moves > MOVES {
            return;
        }
        // A manager that dies may have announced it and not done it.
        match &ask {
            Ask::Cpus(cpus) | Ask::Nudge(cpus) => {
                self.world().applied.insert(cpus.clone());
            }
            Ask::Wait => self.world().idled = true,
            _ => {}
        }
        let change = match ask {
            Ask::Cpus(cpus) => Change::Affinity(Target::Cpus(cpus)),
            Ask::Nudge(cpus) => Change::Nudge(cpus),
            Ask::Os => Change::Affinity(Target::Os),
            Ask::Boost(levels) => Change::Priority(Priority::Boosted(levels)),
            Ask::Wait => Change::Priority(Priority::Idle),
            Ask::Normal => Change::Priority(Priority::Normal),
            Ask::Ext(on) => {
                let _ = actuator.set_class_ext(&thread, on);
                return;
            }
        };
        let is_affinity = matches!(change, Change::Affinity(_) | Change::Nudge(_));
        let outcome = actuator.apply(&Move { thread, change });
        if outcome == Outcome::ExternallyChanged && is_affinity {
            let mut world = self.world();
            if let Some(task) = world.tasks.get_mut(&thread.thread) {
                task.unread = false;
            }
        }
    }

    /// Ends the manager, in order or not, and compares what every thread has with what it would
    /// have had without one.
    ///
    /// # Errors
    /// Says what differs.
    pub fn finish(mut self, drain: bool) -> Result<(), String> {
        if drain && !self.world().died {
            self.drain();
        }
        self.world().blur_what_reading_loses();
        let failed = match self.actuator.take() {
            Some(actuator) => actuator.restore_all().failed,
            None => Vec::new(),
        };
        self.world().interrupted = false;
        // What did not come until the end comes no more: a dead manager drops nothing.
        self.world().fuse = None;
        let died = self.world().died;
        let refuses = self.world().processes.values().any(|process| process.refuses);
        if !died && !failed.is_empty() && !refuses {
            return Err(format!("not restored: {failed:?}"));
        }
        let journals = self.journals();
        if !died && failed.is_empty() && !journals.is_empty() {
            return Err(format!("all is restored, and a journal is left: {journals:?}"));
        }
        if !died && !failed.is_empty() && journals.is_empty() {
            return Err(format!("the journal is gone, and not restored: {failed:?}"));
        }
        let Self { handle, hook, dir, .. } = self;
        drop(hook);
        let mut journal = Vec::new();
        if died || !failed.is_empty() {
            let left = handle.world().left.take();
            if let Some(left) = left.filter(|_| died) {
                std::fs::write(dir.join("journal-left"), &left).map_err(|e| e.to_string())?;
                journal = left;
            }
            restore_as_root(&handle, &dir)?;
        }
        let fault = compare(&handle.world(), died);
        fault.map_err(|fault| format!("{fault}\n{}", String::from_utf8_lossy(&journal)))
    }

    fn journals(&self) -> Vec<PathBuf> {
        let files = std::fs::read_dir(&self.dir).into_iter().flatten().flatten();
        let paths = files.map(|file| file.path());
        paths.filter(|p| p.to_string_lossy().contains("/journal-")).collect()
    }
}

fn restore_as_root(handle: &Handle, dir: &std::path::Path) -> Result<(), String> {
    {
        let mut world = handle.world();
        world.manager += 1;
        world.interrupts.clear();
        // The manager's death, if it did not come until its end, does not meet root's restore.
        world.fuse = None;
        world.processes.values_mut().for_each(|process| process.refuses = false);
    }
    let manager = handle.world().manager;
    let kernel = Handle { manager, ..handle.clone() };
    let restored = restore_over(&kernel, dir).map_err(|error| error.to_string())?;
    if !restored.unusable.is_empty() || !restored.report.failed.is_empty() {
        return Err(format!("a journal was not used: {restored:?}"));
    }
    Ok(())
}

fn compare(world: &World, died: bool) -> Result<(), String> {
    if let Some(violation) = world.violations.first() {
        return Err(violation.clone());
    }
    for (number, task) in world.tasks.iter().filter(|(_, task)| !task.zombie) {
        let Some(process) = world.processes.get(&task.process) else { continue };
        let cpuset = world.cpuset_of(task.process);
        let orphan = world.is_lost(task.process) && !(process.reported && task.adopted);
        if task.blurred.is_some() || orphan {
            continue;
        }
        let has = (task.real.mask(cpuset), task.real.nice, task.real.class);
        let wants = (task.ideal.mask(cpuset), task.ideal.nice, task.ideal.class);
        if has != wants {
            let after = if died { "after a crash" } else { "at the end" };
            return Err(format!(
                "thread {number} of process {} has {has:?} {after} and should have {wants:?}",
                task.process
            ));
        }
    }
    Ok(())
}
