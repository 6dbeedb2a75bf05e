//! The CPUs on which a manager itself runs.
//!
//! A manager that wakes up on the core of a program that is being measured, or that answers requests, disturbs it.
//! The kernel even prefers such a core where all others are busy: it looks idle. So a manager keeps off the cores that
//! programs have for themselves, and with it the processes that it has started; otherwise it stays where its user
//! started it. A thread whose mask is not the one that was written last, or that its process had before, got it from
//! another process, and it stays as that one set it.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use rustix::io::Errno;
use rustix::process::Pid;
use symbiont_machine::{Placement, ProgramId, ThreadId};
use symbiont_topology::{CpuSet, Topology};

use super::{LinuxMachine, Wait};
use crate::actuate::{Mask, affinity};

/// The hardware threads that this process may use, and those that are off limits to it.
#[derive(Debug, Default)]
pub(super) struct OwnCpus {
    off_limits: CpuSet,
    narrowed: Option<Narrowed>,
    /// Why it could not be as wanted, at the last change.
    trouble: Option<String>,
}

/// A mask that is narrower than the user's.
#[derive(Debug)]
struct Narrowed {
    user: Mask,
    written: CpuSet,
    /// Threads that had masks of their own.
    others: BTreeSet<i32>,
}

impl OwnCpus {
    /// Keeps all threads of this process and of those that it has started, and those that they make later, off
    /// these hardware threads and off no others: where none are off limits, they have all that the user allowed,
    /// and so they do where no other hardware thread would be left. `cpuset` is asked for what the cpuset of this
    /// process allows.
    pub fn set_off_limits(
        &mut self,
        cpus: &CpuSet,
        started: impl Iterator<Item = u32>,
        cpuset: impl FnOnce() -> CpuSet,
    ) {
        // Tried once for each change.
        if *cpus != self.off_limits {
            self.off_limits = cpus.clone();
            let done = self.keep_off(cpus, started, &cpuset());
            self.trouble = done.err().map(|error| error.to_string());
        }
    }

    fn keep_off(
        &mut self,
        cpus: &CpuSet,
        started: impl Iterator<Item = u32>,
        cpuset: &CpuSet,
    ) -> io::Result<()> {
        let now = affinity::get(None)?;
        let known = self.narrowed.take();
        let known = known.filter(|known| Mask::Cpus(known.written.clone()).within(cpuset) == now);
        let (user, mut others) = match known {
            Some(known) => (known.user, known.others),
            None => (Mask::classify(now.clone(), cpuset), BTreeSet::new()),
        };
        let allowed = user.within(cpuset);
        let rest = allowed.difference(cpus);
        let is_narrow = !rest.is_empty() && rest != allowed;
        let mask = if is_narrow { Some(&rest) } else { user.to_write(cpuset) };
        let processes = [std::process::id()].into_iter().chain(started);
        let done: Vec<_> =
            processes.map(|process| confine(process, &now, mask, &mut others)).collect();
        self.narrowed = is_narrow.then_some(Narrowed { user, written: rest, others });
        done.into_iter().collect()
    }
}

/// Gives all threads of a process that have one mask another one; all that the cpuset allows, if it is none. The
/// others, and those that have other masks, stay as they are.
fn confine(
    process: u32,
    before: &CpuSet,
    mask: Option<&CpuSet>,
    others: &mut BTreeSet<i32>,
) -> io::Result<()> {
    let tasks = match std::fs::read_dir(format!("/proc/{process}/task")) {
        // It has ended meanwhile.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        tasks => tasks?,
    };
    let mut all_done = Ok(());
    for thread in tasks {
        let number = thread?.file_name().to_str().and_then(|name| name.parse().ok());
        let Some(thread) = number.and_then(Pid::from_raw) else { continue };
        let number = thread.as_raw_nonzero().get();
        let done = match affinity::get(Some(thread)) {
            Ok(_) if others.contains(&number) => Ok(()),
            Ok(now) if now == *before => affinity::set(Some(thread), mask),
            Ok(_) => {
                others.insert(number);
                Ok(())
            }
            Err(why) => Err(why),
        };
        if let Err(error) = done.or_else(|why| if why == Errno::SRCH { Ok(()) } else { Err(why) }) {
            all_done = Err(error.into());
        }
    }
    all_done
}

impl<W: Wait> LinuxMachine<W> {
    /// Keeps off the cores that programs have for themselves.
    pub(super) fn keep_off(&mut self, placement: &Placement) {
        let cores = own_cores(&self.host, placement, &self.settled);
        let cpuset = || CpuSet::clone(&self.actuator.cpuset(std::process::id()));
        self.own_cpus.set_off_limits(&cores, self.kept.loaders(), cpuset);
    }

    /// That this process may run on cores that are kept for a program, or not on all that it might, and why.
    pub(super) fn misplaced(&self) -> Option<String> {
        let why = self.own_cpus.trouble.as_ref()?;
        Some(format!(
            "the manager's own threads cannot be kept off programs' cores, or set back: {why}"
        ))
    }
}

/// All hardware threads of the cores that programs have for themselves, where threads of them are placed.
fn own_cores(
    topology: &Topology,
    placement: &Placement,
    settled: &BTreeMap<ThreadId, ProgramId>,
) -> CpuSet {
    let placed = placement.iter().filter(|(id, one)| one.own_cores && settled.contains_key(id));
    let cpus = placed.filter_map(|(_, one)| one.target.cpus()).flat_map(CpuSet::iter);
    let cores = cpus.filter_map(|cpu| topology.core_of(cpu));
    cores.fold(CpuSet::new(), |all, core| all.union(&core.cpus))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a test in a process of its own: all threads of this one are the test runner's. Is it that one?
    fn is_apart(name: &str) -> bool {
        const MARK: &str = "SYMBIONT_TEST_KEEPS_OFF";
        if std::env::var_os(MARK).is_some() {
            return true;
        }
        let name = format!("machine::own_cpus::tests::{name}");
        let mut own = std::process::Command::new(std::env::current_exe().unwrap());
        let ended = own.args([&name, "--exact", "--test-threads=1"]).env(MARK, "1").output();
        let ended = ended.unwrap();
        assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stdout));
        false
    }

    fn own_mask() -> CpuSet {
        affinity::get(None).unwrap()
    }

    #[test]
    fn a_process_keeps_off_and_comes_back() {
        if !is_apart("a_process_keeps_off_and_comes_back") {
            return;
        }
        let mut child = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        let mut gone = std::process::Command::new("true").spawn().unwrap();
        gone.wait().unwrap();
        let started = [gone.id(), child.id()];
        let of_child = || affinity::get(Some(Pid::from_child(&child))).unwrap();
        let before = own_mask();
        let first: CpuSet = before.first().into_iter().collect();
        let mut own = OwnCpus::default();
        let mut off = |cpus: &CpuSet| {
            own.set_off_limits(cpus, started.into_iter(), || before.clone());
            assert_eq!(own.trouble, None);
            (own_mask(), of_child())
        };
        let rest = before.difference(&first);
        let expected = if rest.is_empty() { before.clone() } else { rest };
        assert_eq!(off(&first), (expected.clone(), expected.clone()));
        std::thread::spawn(move || assert_eq!(own_mask(), expected)).join().unwrap();
        assert_eq!(off(&before), (before.clone(), before.clone()), "no other is left");
        off(&first);
        assert_eq!(off(&CpuSet::new()), (before.clone(), before.clone()));
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn masks_that_others_set_stay() {
        if !is_apart("masks_that_others_set_stay") {
            return;
        }
        let before = own_mask();
        let [first, second] = [0, 1].map(|nth| before.iter().nth(nth).map(CpuSet::from));
        let (Some(first), Some(second)) = (first, second) else { return };
        let mut own = OwnCpus::default();
        let mut off = |cpus: &CpuSet| {
            own.set_off_limits(cpus, std::iter::empty(), || before.clone());
            assert_eq!(own.trouble, None);
        };
        let (ask, asked) = std::sync::mpsc::channel::<()>();
        let (say, said) = std::sync::mpsc::channel();
        let pinned = second.clone();
        std::thread::spawn(move || {
            affinity::set(None, Some(&pinned)).unwrap();
            say.send(own_mask()).unwrap();
            asked.iter().for_each(|()| say.send(own_mask()).unwrap());
        });
        said.recv().unwrap();
        off(&first);
        off(&CpuSet::new());
        ask.send(()).unwrap();
        assert_eq!(said.recv().unwrap(), second, "it was the thread's own");
        assert_eq!(own_mask(), before);

        off(&first);
        affinity::set(None, Some(&first)).unwrap();
        off(&CpuSet::new());
        assert_eq!(own_mask(), first, "it was set meanwhile");
        off(&second);
        off(&first);
        assert_eq!(own_mask(), first, "no other is left");
    }
}
