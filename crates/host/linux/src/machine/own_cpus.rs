//! The CPUs on which a manager itself runs.
//!
//! A manager that wakes up on the core of a program that is being measured, or that answers requests, disturbs it.
//! The kernel even prefers such a core where all others are busy: it looks idle. So a manager keeps off these cores
//! while their programs are placed there, and with it the processes that it has started; otherwise it stays where
//! its user started it.

use std::collections::BTreeMap;
use std::io;

use rustix::io::Errno;
use rustix::process::Pid;
use symbiont_machine::{Placement, Program, ProgramId, ThreadId};
use symbiont_topology::{CpuSet, Topology};

use super::{LinuxMachine, Wait};
use crate::actuate::affinity;

/// The hardware threads that this process may use, and those that are off limits to it.
#[derive(Debug, Default)]
pub(super) struct OwnCpus {
    /// What its user allowed, while any are off limits.
    user: Option<CpuSet>,
    off_limits: CpuSet,
    /// Why it does not keep off them.
    trouble: Option<String>,
}

impl OwnCpus {
    /// Keeps all threads of this process and of those that it has started, and those that they make later, off
    /// these hardware threads and off no others: where none are off limits, they have all that the user allowed,
    /// and so they do where no other hardware thread would be left.
    pub fn set_off_limits(&mut self, cpus: &CpuSet, started: impl Iterator<Item = u32>) {
        if *cpus == self.off_limits {
            return;
        }
        // Tried once for each change, and what the user allowed is kept whatever fails.
        self.off_limits = cpus.clone();
        self.trouble = self.keep_off(cpus, started).err().map(|error| error.to_string());
    }

    fn keep_off(&mut self, cpus: &CpuSet, started: impl Iterator<Item = u32>) -> io::Result<()> {
        let user = match &self.user {
            Some(user) => user.clone(),
            None => affinity::get(None)?,
        };
        let rest = user.difference(cpus);
        let mask = if rest.is_empty() { &user } else { &rest };
        self.user = (!cpus.is_empty()).then(|| user.clone());
        for process in started.chain([std::process::id()]) {
            match confine(process, mask) {
                // It has ended meanwhile.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                other => other?,
            }
        }
        Ok(())
    }
}

/// Gives all threads of a process this mask.
fn confine(process: u32, mask: &CpuSet) -> io::Result<()> {
    for thread in std::fs::read_dir(format!("/proc/{process}/task"))? {
        let number = thread?.file_name().to_str().and_then(|name| name.parse().ok());
        let Some(number) = number.and_then(Pid::from_raw) else { continue };
        match affinity::set(Some(number), Some(mask)) {
            // It has ended meanwhile.
            Err(Errno::SRCH) => {}
            other => other?,
        }
    }
    Ok(())
}

impl<W: Wait> LinuxMachine<W> {
    /// Keeps off the cores of programs that have cores for themselves.
    pub(super) fn keep_off(&mut self, placement: &Placement) {
        let cores = kept_cores(&self.host, placement, &self.settled, &self.programs);
        self.own_cpus.set_off_limits(&cores, self.kept.loaders());
    }

    /// That this process runs on cores that are kept for a program, and why.
    pub(super) fn disturbs(&self) -> Option<String> {
        let why = self.own_cpus.trouble.as_ref()?;
        Some(format!("the manager itself stays on cores that are kept for a program: {why}"))
    }
}

/// All hardware threads of the cores on which threads of programs are placed that have cores for themselves.
fn kept_cores(
    topology: &Topology,
    placement: &Placement,
    settled: &BTreeMap<ThreadId, ProgramId>,
    programs: &[Program],
) -> CpuSet {
    let keeps = |id: &ProgramId| {
        programs.iter().any(|program| program.id == *id && program.class.keeps_cores())
    };
    if !programs.iter().any(|program| program.class.keeps_cores()) {
        return CpuSet::new();
    }
    let placed = placement.iter().filter(|(id, _)| settled.get(id).is_some_and(keeps));
    let cpus = placed.filter_map(|(_, assignment)| assignment.target.cpus()).flat_map(CpuSet::iter);
    let cores = cpus.filter_map(|cpu| topology.core_of(cpu));
    cores.fold(CpuSet::new(), |all, core| all.union(&core.cpus))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_keeps_off_and_comes_back() {
        // In a process of its own: all threads of this one are the test runner's.
        const MARK: &str = "SYMBIONT_TEST_KEEPS_OFF";
        if std::env::var_os(MARK).is_none() {
            let name = "machine::own_cpus::tests::a_process_keeps_off_and_comes_back";
            let mut own = std::process::Command::new(std::env::current_exe().unwrap());
            let ended = own.args([name, "--exact", "--test-threads=1"]).env(MARK, "1").output();
            let ended = ended.unwrap();
            assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stdout));
            return;
        }
        let mut child = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        let mut gone = std::process::Command::new("true").spawn().unwrap();
        gone.wait().unwrap();
        let started = [gone.id(), child.id()];
        let of_child = || affinity::get(Some(Pid::from_child(&child))).unwrap();
        let before = affinity::get(None).unwrap();
        let first: CpuSet = before.first().into_iter().collect();
        let mut own = OwnCpus::default();
        own.set_off_limits(&first, started.into_iter());
        assert_eq!(own.trouble, None);
        let rest = before.difference(&first);
        let expected = if rest.is_empty() { before.clone() } else { rest };
        assert_eq!(
            (affinity::get(None).unwrap(), of_child()),
            (expected.clone(), expected.clone())
        );
        std::thread::spawn(move || assert_eq!(affinity::get(None).unwrap(), expected))
            .join()
            .unwrap();
        own.set_off_limits(&before, started.into_iter());
        assert_eq!((affinity::get(None).unwrap(), of_child()), (before.clone(), before.clone()));
        own.set_off_limits(&CpuSet::new(), started.into_iter());
        assert_eq!((affinity::get(None).unwrap(), of_child()), (before.clone(), before));
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
