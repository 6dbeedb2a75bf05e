//! A cpuset of a test's own, of either version of cgroups.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use symbiont_topology::CpuSet;

use crate::support::skip;

/// Removed with its value.
pub struct Cpuset(PathBuf);

/// The top of the hierarchy.
fn top() -> &'static Path {
    let first_version = Path::new("/sys/fs/cgroup/cpuset");
    if first_version.is_dir() { first_version } else { Path::new("/sys/fs/cgroup") }
}

impl Cpuset {
    pub fn make(cpus: &CpuSet) -> Option<Self> {
        Self::make_in(top(), cpus)
    }

    /// One within this one.
    pub fn inner(&self, cpus: &CpuSet) -> Option<Self> {
        // The first version has no such file.
        let _ = std::fs::write(self.0.join("cgroup.subtree_control"), "+cpuset");
        Self::make_in(&self.0, cpus)
    }

    fn make_in(folder: &Path, cpus: &CpuSet) -> Option<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = folder.join(format!("symbiont-test-{}-{count}", std::process::id()));
        let make = || {
            std::fs::create_dir(&path)?;
            if let Ok(memory) = std::fs::read(folder.join("cpuset.effective_mems")) {
                std::fs::write(path.join("cpuset.mems"), memory)?;
            }
            // Version 2 has the file only where the controller is enabled.
            std::fs::OpenOptions::new().write(true).open(path.join("cpuset.cpus"))?;
            std::fs::write(path.join("cpuset.cpus"), cpus.to_string())
        };
        match make() {
            Ok(()) => Some(Self(path)),
            Err(error) => {
                let _ = std::fs::remove_dir(&path);
                skip(&format!("cannot make a cpuset here: {error}"));
                None
            }
        }
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn admit(&self, process: u32) {
        std::fs::write(self.0.join("cgroup.procs"), process.to_string()).unwrap();
    }

    pub fn resize(&self, cpus: &CpuSet) {
        resize(&self.0, cpus);
    }
}

pub fn resize(folder: &Path, cpus: &CpuSet) {
    std::fs::write(folder.join("cpuset.cpus"), cpus.to_string()).unwrap();
}

impl Drop for Cpuset {
    fn drop(&mut self) {
        let members = std::fs::read_to_string(self.0.join("cgroup.procs")).unwrap_or_default();
        for process in members.lines() {
            let _ = std::fs::write(top().join("cgroup.procs"), process);
        }
        let _ = std::fs::remove_dir(&self.0);
    }
}
