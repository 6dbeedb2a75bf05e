//! The lock of a run's manager, and what it publishes of the programs.

use std::collections::BTreeSet;
use std::time::Duration;

use symbiont_linux::actuate::{Lock, LockError};
use symbiont_machine::{Sample, Timestamp};

/// The lock of a run, and what is published of its programs with it.
pub(super) struct RunLock<'a> {
    lock: &'a mut Lock,
    roots: BTreeSet<u32>,
    /// When the roots were first seen to have ended.
    since: Option<Timestamp>,
    published: bool,
    /// When it was last seen to be held.
    looked: Timestamp,
}

impl<'a> RunLock<'a> {
    pub(super) fn new(lock: &'a mut Lock, roots: &[(String, u32)]) -> Self {
        let roots = roots.iter().map(|(_, process)| *process).collect();
        Self { lock, roots, since: None, published: false, looked: Timestamp::default() }
    }

    /// Once a second: takes the lock anew if its directory was removed. An error means that
    /// nothing may be managed any more.
    pub(super) fn keep(&mut self, now: Timestamp) -> Result<(), LockError> {
        const PERIOD: Duration = Duration::from_secs(1);
        if now.since(self.looked) >= PERIOD {
            self.looked = now;
            self.lock.keep()?;
        }
        Ok(())
    }

    /// Names the processes that go on when the roots have ended, after a while: until
    /// then others wait for the end of this manager.
    pub(super) fn note(&mut self, sample: &Sample) {
        const WHILE: Duration = Duration::from_secs(1);
        /// More are not named.
        const MOST: usize = 64;
        let mut processes: Vec<u32> = sample.threads.iter().map(|t| t.id.process).collect();
        processes.dedup();
        if self.published || processes.iter().any(|process| self.roots.contains(process)) {
            return;
        }
        let since = *self.since.get_or_insert(sample.at);
        if sample.at.since(since) >= WHILE && !processes.is_empty() {
            self.published = true;
            for process in processes.into_iter().take(MOST) {
                // Others wait for a while then, and run unmanaged.
                let _ = self.lock.manages(process);
            }
        }
    }
}
