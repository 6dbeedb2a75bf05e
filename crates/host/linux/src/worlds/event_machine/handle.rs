//! The simulated kernel as a manager uses it: by calls.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use symbiont_topology::CpuSet;

use super::super::groups::{GroupKey, Grouping};
use super::super::kernel::Kernel;
use super::super::thread::{Class, Facts, ThreadError, ThreadKey};
use super::world::{Settings, World};

/// One manager's way to the kernel.
#[derive(Debug, Clone)]
pub struct Handle {
    pub world: Arc<Mutex<World>>,
    /// Which manager; calls of one that died do nothing.
    pub manager: u32,
}

impl Handle {
    pub fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A call of the manager: what was to happen within it happens first. None if it is dead.
    fn call(&self) -> Option<MutexGuard<'_, World>> {
        let mut world = self.world();
        if world.manager != self.manager {
            return None;
        }
        if let Some(fuse) = &mut world.fuse {
            match fuse.checked_sub(1) {
                Some(left) => *fuse = left,
                None => {
                    world.die();
                    return None;
                }
            }
        }
        world.calls += 1;
        let interrupts = std::mem::take(&mut world.interrupts);
        for (after, step) in interrupts {
            match after.checked_sub(1) {
                Some(after) => world.interrupts.push((after, step)),
                None => {
                    world.interrupted = true;
                    world.step(&step);
                }
            }
        }
        Some(world)
    }

    /// Changes the real settings of a thread for the manager.
    fn change(
        &self,
        key: ThreadKey,
        what: &'static str,
        set: impl FnOnce(&mut Settings),
    ) -> Result<(), ThreadError> {
        let mut world = self.call().ok_or(ThreadError::Gone(key))?;
        let world = &mut *world;
        let Some(task) = world.tasks.get_mut(&key.thread) else {
            return Err(ThreadError::Gone(key));
        };
        let Some(process) = world.processes.get_mut(&task.process) else {
            return Err(ThreadError::Gone(key));
        };
        if process.refuses {
            let source = io::ErrorKind::PermissionDenied.into();
            return Err(ThreadError::Kernel { what, thread: key.thread, source });
        }
        if !process.managed && !world.interrupted {
            world.violations.push(format!("{key} was never enrolled and was changed ({what})"));
        }
        let before = task.real.asked.clone();
        process.past.push((task.real.clone(), task.ideal.clone()));
        set(&mut task.real);
        let [first, second] = &world.cpusets;
        let cpuset = if process.cpuset == 1 { second } else { first };
        let (real, ideal) = (task.real.mask(cpuset), task.ideal.mask(cpuset));
        let is_mask = task.real.asked != before;
        let (number, meant) = (task.process, task.ideal.asked.clone());
        if is_mask && task.blurred.is_none() && !real.is_subset(&ideal) && !world.interrupted {
            let widened = format!("{key} was widened to {real}; its user lets it use {ideal}");
            world.violations.push(widened);
        }
        // Which of two threads made another is unknown where both have the same mask in one tick.
        let (now, cpuset) = (world.now, cpuset.clone());
        let kin = world.descendants(number);
        let newborns = world.tasks.values_mut().filter(|task| kin.contains(&task.process));
        for newborn in newborns.filter(|task| !task.adopted && now <= task.born.saturating_add(1)) {
            if newborn.real.mask(&cpuset) == real && newborn.ideal.asked != meant {
                newborn.blurred = Some("its maker has the same mask as another thread in one tick");
            }
        }
        Ok(())
    }

    fn settings(&self, key: ThreadKey) -> Result<(Settings, CpuSet), ThreadError> {
        let world = self.call().ok_or(ThreadError::Gone(key))?;
        let task = world.tasks.get(&key.thread).ok_or(ThreadError::Gone(key))?;
        Ok((task.real.clone(), world.cpuset_of(task.process).clone()))
    }
}

impl Kernel for Handle {
    fn facts(&self, process: u32, thread: u32) -> Result<Option<Facts>, ThreadError> {
        Ok(self.call().and_then(|world| world.facts(process, thread)))
    }

    fn mask(&self, key: ThreadKey) -> Result<CpuSet, ThreadError> {
        self.settings(key).map(|(settings, cpuset)| settings.mask(&cpuset))
    }

    fn set_mask(&self, key: ThreadKey, cpus: Option<&CpuSet>) -> Result<(), ThreadError> {
        let (_, cpuset) = self.settings(key)?;
        if cpus.is_some_and(|cpus| cpus.is_disjoint(&cpuset)) {
            let (what, source) = ("change the affinity", io::ErrorKind::InvalidInput.into());
            return Err(ThreadError::Kernel { what, thread: key.thread, source });
        }
        self.change(key, "change the affinity", |settings| settings.asked = cpus.cloned())?;
        if let Some(cpus) = cpus {
            let mut world = self.world();
            world.applied.insert(cpus.clone());
            world.keep_within(key.thread, &cpus.intersection(&cpuset));
        }
        Ok(())
    }

    fn set_nice(&self, key: ThreadKey, nice: i8) -> Result<(), ThreadError> {
        self.change(key, "change the nice value", |settings| settings.nice = nice)
    }

    fn scheduler(&self, key: ThreadKey) -> Result<(Class, bool), ThreadError> {
        self.settings(key).map(|(settings, _)| (settings.class, settings.reset_on_fork))
    }

    fn set_class(&self, key: ThreadKey, class: Class, reset: bool) -> Result<(), ThreadError> {
        if class == Class::Special {
            return Ok(());
        }
        self.change(key, "change the class", |settings| {
            (settings.class, settings.reset_on_fork) = (class, reset);
        })?;
        self.world().idled |= class == Class::Idle;
        Ok(())
    }

    fn now_ticks(&self) -> u64 {
        self.world().now
    }

    fn now_ns(&self) -> u64 {
        self.world().now_ns()
    }

    fn processes(&self) -> Vec<u32> {
        self.call().map_or_else(Vec::new, |world| world.processes.keys().copied().collect())
    }

    fn threads(&self, process: u32) -> Vec<u32> {
        self.call().map_or_else(Vec::new, |world| {
            world.threads_of(process).map(|(number, _)| number).collect()
        })
    }

    fn cpuset(&self, process: u32) -> Arc<CpuSet> {
        let world = self.world();
        Arc::new(world.cpuset_of(process).clone())
    }

    fn group(&self, _: u32) -> Option<GroupKey> {
        Some(GroupKey::Root)
    }

    fn grouping(&self) -> Grouping {
        Grouping::None
    }

    fn loaded_scheduler(&self) -> Option<String> {
        None
    }
}
