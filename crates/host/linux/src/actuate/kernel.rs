//! The kernel that the actuator acts on: the running one, or a simulated one in tests.

use std::fmt;
use std::sync::Arc;

use rustix::time::{ClockId, clock_gettime};
use symbiont_topology::{CpuSet, HostTopology};

use super::cgroup::Cgroups;
use super::groups::{GroupKey, Grouping};
use super::mounts::Mounts;
use super::scheduler::loaded_scheduler;
use super::standing::Standing;
use super::syscalls;
use super::thread::{Class, Facts, Present, ThreadError, ThreadKey};
use crate::online::Online;

/// What the actuator asks of a kernel: the running one ([`Host`]), or a simulated one.
pub(super) trait Kernel: fmt::Debug + Send {
    /// A thread's facts; `None` if there is no such thread.
    fn facts(&self, process: u32, thread: u32) -> Result<Option<Facts>, ThreadError>;
    /// The hardware threads that a thread may use now.
    fn mask(&self, key: ThreadKey) -> Result<CpuSet, ThreadError>;
    /// Lets a thread use just these hardware threads; `None` is all that there are and ever will
    /// be, as for a thread that was never pinned.
    fn set_mask(&self, key: ThreadKey, cpus: Option<&CpuSet>) -> Result<(), ThreadError>;
    /// Sets the nice value of one thread.
    fn set_nice(&self, key: ThreadKey, nice: i8) -> Result<(), ThreadError>;
    /// The class, and whether children fall back to the usual one.
    fn scheduler(&self, key: ThreadKey) -> Result<(Class, bool), ThreadError>;
    /// Changes the class alone.
    fn set_class(&self, key: ThreadKey, class: Class, reset: bool) -> Result<(), ThreadError>;
    /// Now, in the unit of [`ThreadKey::born`].
    fn now_ticks(&self) -> u64;
    /// Now, on the clock of the kernel's reports of births.
    fn now_ns(&self) -> u64;
    /// All processes.
    fn processes(&self) -> Vec<u32>;
    /// The threads of a process.
    fn threads(&self, process: u32) -> Vec<u32>;
    /// The CPUs that a process's cpuset allows now.
    fn cpuset(&self, process: u32) -> Arc<CpuSet>;
    /// The scheduling group in which a process competes.
    fn group(&self, process: u32) -> Option<GroupKey>;
    /// How processes are grouped for scheduling.
    fn grouping(&self) -> Grouping;
    /// The `sched_ext` scheduler that decides now.
    fn loaded_scheduler(&self) -> Option<String>;
    /// Finds again what may have changed of the machine: online CPUs, and where cgroups are
    /// mounted. Returns how many CPUs are online, where that is known.
    fn look_again(&mut self) -> Option<usize> {
        None
    }
    /// The calling thread, for it to go to the CPUs of threads that it nudges.
    fn standing(&self) -> Option<Standing> {
        None
    }
    /// CPUs that no thread may use any more although they are listed as online and in cpusets: they
    /// are going offline just now.
    fn leaving(&self) -> CpuSet {
        CpuSet::new()
    }

    /// The facts of exactly this thread.
    fn facts_of(&self, key: ThreadKey) -> Result<Facts, ThreadError> {
        syscalls::exactly(key, self.facts(key.process, key.thread)?)
    }

    /// What a thread has now.
    fn present(&self, key: ThreadKey) -> Result<Present, ThreadError> {
        let mask = self.mask(key)?;
        let (class, reset_on_fork) = self.scheduler(key)?;
        // Last, so that what was read belongs to the thread whose birth is checked.
        let facts = self.facts_of(key)?;
        let Facts { parent, nice, on, .. } = facts;
        Ok(Present { parent, mask, nice, class, reset_on_fork, on })
    }
}

/// The running kernel.
#[derive(Debug)]
pub(super) struct Host {
    cgroups: Cgroups,
    mounts: Mounts,
    online: Online,
}

impl Host {
    pub fn new(host: &HostTopology) -> Self {
        let mounts = Mounts::watch();
        Self { cgroups: Cgroups::discover(host), mounts, online: Online::open() }
    }
}

impl Kernel for Host {
    fn facts(&self, process: u32, thread: u32) -> Result<Option<Facts>, ThreadError> {
        syscalls::facts(process, thread)
    }

    fn mask(&self, key: ThreadKey) -> Result<CpuSet, ThreadError> {
        syscalls::mask(key)
    }

    fn set_mask(&self, key: ThreadKey, cpus: Option<&CpuSet>) -> Result<(), ThreadError> {
        syscalls::set_mask(key, cpus)
    }

    fn set_nice(&self, key: ThreadKey, nice: i8) -> Result<(), ThreadError> {
        syscalls::set_nice(key, nice)
    }

    fn scheduler(&self, key: ThreadKey) -> Result<(Class, bool), ThreadError> {
        syscalls::scheduler(key)
    }

    fn set_class(&self, key: ThreadKey, class: Class, reset: bool) -> Result<(), ThreadError> {
        syscalls::set_class(key, class, reset)
    }

    fn now_ticks(&self) -> u64 {
        syscalls::now_ticks()
    }

    fn now_ns(&self) -> u64 {
        let now = clock_gettime(ClockId::Monotonic);
        let seconds = u64::try_from(now.tv_sec).unwrap_or_default();
        seconds * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap_or_default()
    }

    fn processes(&self) -> Vec<u32> {
        syscalls::numbers_in("/proc")
    }

    fn threads(&self, process: u32) -> Vec<u32> {
        syscalls::numbers_in(&format!("/proc/{process}/task"))
    }

    fn cpuset(&self, process: u32) -> Arc<CpuSet> {
        let seen = self.cgroups.seen_cpuset(process).map(Arc::new);
        let asked = || Some(Arc::new(ask_cpuset(process, &self.online.now()?)?));
        let cpuset = seen.or_else(asked).unwrap_or_else(|| self.cgroups.cpuset(process));
        // The kernel takes offline CPUs out of cpusets a moment later.
        let left = self.online.now().map(|online| online.intersection(&cpuset));
        match left {
            Some(left) if !left.is_empty() && left != *cpuset => Arc::new(left),
            _ => cpuset,
        }
    }

    fn group(&self, process: u32) -> Option<GroupKey> {
        self.cgroups.group(process)
    }

    fn grouping(&self) -> Grouping {
        self.cgroups.grouping()
    }

    fn loaded_scheduler(&self) -> Option<String> {
        loaded_scheduler()
    }

    fn look_again(&mut self) -> Option<usize> {
        let online = self.online.now()?;
        let count = online.len();
        self.cgroups.look_again(online, self.mounts.have_changed());
        Some(count)
    }

    fn standing(&self) -> Option<Standing> {
        Standing::begin(&self.cpuset(std::process::id()))
    }

    fn leaving(&self) -> CpuSet {
        // A thread that asks for all has what its cpuset allows, less what is going offline.
        let own = self.cpuset(std::process::id());
        syscalls::widest_mask().map_or_else(CpuSet::new, |left| own.difference(&left))
    }
}

/// What the cpuset of a process allows, where its cgroup cannot be read: asked by one of its threads, which may use all
/// of it for some microseconds, and then has what it had. One that may use all that is online need not be asked. None
/// where none may be asked.
///
/// A mask that equals the whole cpuset is all that was asked for, as everywhere: see
/// [`Mask::classify`](super::settings::Mask::classify).
fn ask_cpuset(process: u32, online: &CpuSet) -> Option<CpuSet> {
    let threads = syscalls::numbers_in(&format!("/proc/{process}/task"));
    let key = threads.into_iter().find_map(|thread| {
        syscalls::facts(process, thread).ok()?.filter(|facts| !facts.zombie).map(|facts| facts.key)
    })?;
    let had = syscalls::mask(key).ok()?;
    if online.is_subset(&had) {
        return Some(had);
    }
    syscalls::set_mask(key, None).ok()?;
    let whole = syscalls::mask(key).ok();
    if whole.as_ref() != Some(&had) {
        // Refused if the cpuset changed meanwhile and leaves nothing of it.
        let _ = syscalls::set_mask(key, Some(&had));
    }
    whole.filter(|whole| !whole.is_empty())
}
