//! The CPUs on which a manager itself runs.
//!
//! A manager that wakes up on the core of a program that is being measured disturbs it. So a manager keeps off
//! such cores while they are in use; otherwise it stays where its user started it.

use std::io;

use rustix::io::Errno;
use rustix::process::Pid;
use symbiont_topology::CpuSet;

use crate::actuate::affinity;

/// The hardware threads that this process may use, and those that are off limits to it.
#[derive(Debug, Default)]
pub struct OwnCpus {
    /// What its user allowed, while any are off limits.
    user: Option<CpuSet>,
    off_limits: CpuSet,
}

impl OwnCpus {
    /// Keeps all threads of this process, and those that they make later, off these hardware threads and off no
    /// others: where none are off limits, they have all that the user allowed, and so they do where no other
    /// hardware thread would be left.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn set_off_limits(&mut self, cpus: &CpuSet) -> io::Result<()> {
        if *cpus == self.off_limits {
            return Ok(());
        }
        // Tried once for each change, and what the user allowed is kept whatever fails.
        self.off_limits = cpus.clone();
        let user = match &self.user {
            Some(user) => user.clone(),
            None => affinity::get(None)?,
        };
        self.user = Some(user.clone());
        let rest = user.difference(cpus);
        let mask = if rest.is_empty() { &user } else { &rest };
        for thread in std::fs::read_dir("/proc/self/task")? {
            let number = thread?.file_name().to_str().and_then(|name| name.parse().ok());
            let Some(number) = number.and_then(Pid::from_raw) else { continue };
            match affinity::set(Some(number), Some(mask)) {
                // It has ended meanwhile.
                Err(Errno::SRCH) => {}
                other => other?,
            }
        }
        if cpus.is_empty() {
            self.user = None;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_keeps_off_and_comes_back() {
        // In a process of its own: all threads of this one are the test runner's.
        const MARK: &str = "SYMBIONT_TEST_KEEPS_OFF";
        if std::env::var_os(MARK).is_none() {
            let name = "launch::own_cpus::tests::a_process_keeps_off_and_comes_back";
            let mut own = std::process::Command::new(std::env::current_exe().unwrap());
            let ended = own.args([name, "--exact", "--test-threads=1"]).env(MARK, "1").output();
            let ended = ended.unwrap();
            assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stdout));
            return;
        }
        let before = affinity::get(None).unwrap();
        let first: CpuSet = before.first().into_iter().collect();
        let mut own = OwnCpus::default();
        own.set_off_limits(&first).unwrap();
        let rest = before.difference(&first);
        let expected = if rest.is_empty() { before.clone() } else { rest };
        assert_eq!(affinity::get(None).unwrap(), expected);
        std::thread::spawn(move || assert_eq!(affinity::get(None).unwrap(), expected))
            .join()
            .unwrap();
        own.set_off_limits(&before).unwrap();
        assert_eq!(affinity::get(None).unwrap(), before, "no other is left");
        own.set_off_limits(&CpuSet::new()).unwrap();
        assert_eq!(affinity::get(None).unwrap(), before);
    }
}
