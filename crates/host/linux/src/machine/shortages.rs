//! What a machine cannot have, or has only in a costlier way, in words for its user.

use symbiont_topology::counted;

use super::{LinuxMachine, Wait};

impl<W: Wait> LinuxMachine<W> {
    /// What is done in a costlier way or less often because descriptors are limited, one line for each.
    #[must_use]
    pub fn shortages(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let opened = self.watcher.not_kept_open();
        if opened > 0 {
            lines.push(format!(
                "the files of {} are opened at each sample",
                counted(opened, "thread")
            ));
        }
        let (at_once, waiting) = self.counter.turns();
        if waiting > 0 {
            let all = counted(at_once + waiting, "thread");
            lines.push(format!("{at_once} of {all} are counted at a time, in turns"));
        }
        lines
    }

    /// What was wanted and cannot be had now, one line for each.
    #[must_use]
    pub fn troubles(&self) -> Vec<String> {
        self.scheduler_lost().into_iter().chain(self.misplaced()).collect()
    }
}
