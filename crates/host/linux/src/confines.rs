//! Where this process may run, and which CPUs the system's owner has set aside.
//!
//! # Problem
//! In a cpuset or a container a process sees all of the machine's CPUs but may use only some of them. Other CPUs
//! are isolated from the scheduler, or spared its ticks. Users should see which of these apply to them.
//!
//! # Approach
//! This reads the mask of the process (sched_getaffinity(2)); its cpuset, its quota of CPU time, and whether its
//! CPUs are an exclusive partition (cgroups(7), `Documentation/admin-guide/cgroup-v2.rst`); the kernel's lists of
//! isolated CPUs and of those without ticks (`/sys/devices/system/cpu`); and the marks that container runtimes
//! leave.
//!
//! # Terms and units
//! *Quota*: CPU time per unit of time: 1.5 is one and a half CPUs.
//!
//! # Properties
//! - What a tree of files says is read, and what is missing is left out (`a_tree_is_read_as_far_as_it_goes`).

use std::fs;
use std::path::Path;

use rustix::thread::sched_getaffinity;
use serde::Serialize;
use symbiont_topology::{CpuSet, HostTopology, PuId};

use crate::actuate::{Cgroups, Share};

/// Where this process may run, and what is set aside.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Confines {
    /// CPUs that are online.
    pub online: CpuSet,
    /// CPUs among these that this process may use.
    pub allowed: CpuSet,
    /// CPUs that its cpuset allows.
    pub cpuset: CpuSet,
    /// The cgroup of its cpuset, if it is not the topmost one.
    pub cgroup: Option<String>,
    /// May no other cpuset use these CPUs? None: not known.
    pub is_exclusive: Option<bool>,
    /// The least quota of its cgroups, as CPU time per unit of time; none: no quota.
    pub quota: Option<f64>,
    /// CPUs that the scheduler leaves out of load balancing (`isolcpus`, isolated partitions).
    pub isolated: CpuSet,
    /// CPUs without a tick while one thread runs there (`nohz_full`).
    pub tickless: CpuSet,
    /// The runtime that made the container which this process is in, as far as it left a mark.
    pub container: Option<String>,
}

impl Confines {
    /// Reads where this process may run.
    #[must_use]
    pub fn read(host: &HostTopology) -> Self {
        let me = std::process::id();
        let cgroups = Cgroups::discover(host);
        let Share { cgroup, is_exclusive, quota } = cgroups.share(me);
        let online = host.cpus();
        let cpus = Path::new("/sys/devices/system/cpu");
        Self {
            allowed: own_mask().map_or_else(|| online.clone(), |mask| mask.intersection(&online)),
            cpuset: cgroups.cpuset(me).intersection(&online),
            cgroup,
            is_exclusive,
            quota,
            isolated: list(&cpus.join("isolated")),
            tickless: list(&cpus.join("nohz_full")),
            container: container(Path::new("/")),
            online,
        }
    }
}

fn own_mask() -> Option<CpuSet> {
    let mask = sched_getaffinity(None).ok()?;
    let cpus = (0..rustix::thread::CpuSet::MAX_CPU).filter(|cpu| mask.is_set(*cpu));
    Some(cpus.filter_map(|cpu| u32::try_from(cpu).ok()).map(PuId).collect())
}

/// A list of CPUs; none where there is no such file, or "(null)" in it.
fn list(file: &Path) -> CpuSet {
    fs::read_to_string(file).ok().and_then(|text| text.trim().parse().ok()).unwrap_or_default()
}

/// What container runtimes say of themselves.
fn container(root: &Path) -> Option<String> {
    let said = fs::read_to_string(root.join("run/systemd/container")).ok();
    let said = said.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
    let marked = [("run/.containerenv", "podman"), (".dockerenv", "docker")];
    let marked = marked.into_iter().find(|(file, _)| root.join(file).exists());
    said.or_else(|| Some(marked?.1.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_is_read_as_far_as_it_goes() {
        let root = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = root.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, text).unwrap();
            path
        };
        assert_eq!(container(root.path()), None);
        file(".dockerenv", "");
        assert_eq!(container(root.path()).unwrap(), "docker");
        file("run/systemd/container", "lxc\n");
        assert_eq!(container(root.path()).unwrap(), "lxc");
        assert_eq!(list(&file("isolated", "2-3\n")).to_string(), "2-3");
        for (name, text) in [("empty", "\n"), ("null", "(null)\n")] {
            assert!(list(&file(name, text)).is_empty());
        }
        assert!(list(&root.path().join("absent")).is_empty());
    }

    #[test]
    fn this_process_may_run_somewhere_in_its_cpuset() {
        let confines = Confines::read(&HostTopology::read().unwrap());
        assert!(!confines.allowed.is_empty() && confines.allowed.is_subset(&confines.cpuset));
        assert!(confines.cpuset.is_subset(&confines.online));
        assert!(confines.quota.is_none_or(|quota| quota > 0.0));
    }
}
