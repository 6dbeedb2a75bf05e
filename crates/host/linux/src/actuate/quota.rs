//! Quotas of CPU time, and how often they stopped the processes that they apply to.
//!
//! # Problem
//! A thread whose cgroup has used up its quota of CPU time (CFS bandwidth control, `cpu.max`, `cpu.cfs_quota_us`)
//! waits until the next period begins. In the kernel's accounts that looks the same as waiting in line behind
//! other threads.
//!
//! # Approach
//! The cgroups of a process that have a quota, from its own upwards, are found once ([`CpuQuotas::of`]). After
//! that, reading what has been counted for one of them ([`Quota::count`]) takes one file, `cpu.stat` of
//! cgroups(7), in the first version as in the second.
//!
//! # Terms and units
//! *Quota*: CPU time per unit of time, so 1.5 is one and a half CPUs. *Period*: the time for which a quota is given
//! out, usually 100 ms; a period counts if the cgroup ran in it, and counts as throttled if the quota was used up.
//!
//! # Properties
//! - Quotas are found in the cgroup and above it, in both versions (`quotas_are_found_in_both_versions`).
//! - Periods are counted as the kernel says (`a_busy_cgroup_is_throttled_in_each_period`).

use std::fs;
use std::path::{Path, PathBuf};

use super::cgroup_paths::CgroupPaths;
use super::hierarchy::{CgroupMounts, Hierarchy};

/// Finds the quotas that apply to processes.
#[derive(Debug, Clone)]
pub struct CpuQuotas {
    first: Option<Hierarchy>,
    unified: Option<Hierarchy>,
    paths: CgroupPaths,
}

/// A quota that applies to a process.
#[derive(Debug, Clone, PartialEq)]
pub struct Quota {
    /// The cgroup that has it.
    pub cgroup: String,
    /// CPU time per unit of time: 1.5 is one and a half CPUs.
    pub cpus: f64,
    counts: PathBuf,
}

/// How many periods of a quota have passed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Periods {
    /// Those in which the cgroup ran.
    pub all: u64,
    /// Those in which the quota was used up.
    pub throttled: u64,
}

impl CpuQuotas {
    /// Finds out where the hierarchies are mounted.
    #[must_use]
    pub fn discover() -> Self {
        let mounts = CgroupMounts::read();
        Self::new(mounts.first_version("cpu"), mounts.unified(), mounts.paths)
    }

    /// With the hierarchy of the CPU controller of the first version, if it is mounted, and that of the second.
    pub(super) fn new(
        first: Option<Hierarchy>,
        unified: Option<Hierarchy>,
        paths: CgroupPaths,
    ) -> Self {
        Self { first, unified, paths }
    }

    /// The quotas that apply to a process, its own cgroup's first; none where it is gone or they cannot be read.
    #[must_use]
    pub fn of(&self, process: u32) -> Vec<Quota> {
        let groups = self.paths.of(process).unwrap_or_default();
        let first = groups.iter().find(|group| group.controllers.iter().any(|c| c == "cpu"));
        let unified = groups.iter().find(|group| group.hierarchy == 0);
        match (&self.first, first, &self.unified, unified) {
            (Some(v1), Some(group), ..) => quotas(v1, &group.pathname, first_version),
            (_, _, Some(v2), Some(group)) => quotas(v2, &group.pathname, second_version),
            _ => Vec::new(),
        }
    }
}

impl Quota {
    /// With the file that counts its periods.
    #[must_use]
    pub fn new(cgroup: &str, cpus: f64, counts: PathBuf) -> Self {
        Self { cgroup: cgroup.to_owned(), cpus, counts }
    }

    /// What was counted so far; none once the cgroup is gone.
    #[must_use]
    pub fn count(&self) -> Option<Periods> {
        let text = fs::read_to_string(&self.counts).ok()?;
        let number = |key: &str| {
            let mut words = text.lines().filter_map(|line| line.split_once(' '));
            words.find(|(name, _)| *name == key)?.1.trim().parse().ok()
        };
        Some(Periods { all: number("nr_periods")?, throttled: number("nr_throttled")? })
    }
}

fn quotas(hierarchy: &Hierarchy, cgroup: &str, read: impl Fn(&Path) -> Option<f64>) -> Vec<Quota> {
    hierarchy
        .upwards(cgroup)
        .filter_map(|(cgroup, directory)| {
            let cpus = read(&directory).filter(|cpus| *cpus > 0.0 && cpus.is_finite())?;
            Some(Quota::new(&cgroup, cpus, directory.join("cpu.stat")))
        })
        .collect()
}

/// As `cpu.cfs_quota_us` and `cpu.cfs_period_us` say it; −1 is none.
fn first_version(directory: &Path) -> Option<f64> {
    let number = |file| fs::read_to_string(directory.join(file)).ok()?.trim().parse::<f64>().ok();
    Some(number("cpu.cfs_quota_us")? / number("cpu.cfs_period_us")?)
}

/// As `cpu.max` says it; "max" is none.
fn second_version(directory: &Path) -> Option<f64> {
    let text = fs::read_to_string(directory.join("cpu.max")).ok()?;
    let (quota, period) = text.trim().split_once(' ')?;
    Some(quota.parse::<f64>().ok()? / period.parse::<f64>().ok()?)
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command};
    use std::time::Duration;

    use super::*;

    #[test]
    fn quotas_are_found_in_both_versions() {
        let root = tempfile::tempdir().unwrap();
        let write = |file: &str, text: &str| {
            let path = root.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("a/cpu.max", "150000 100000\n");
        write("a/cpu.stat", "usage_usec 7\nnr_periods 40\nnr_throttled 30\nthrottled_usec 9\n");
        write("a/b/cpu.max", "max 100000\n");
        write("a/b/c/cpu.cfs_quota_us", "20000\n");
        write("a/b/c/cpu.cfs_period_us", "100000\n");
        write("a/b/cpu.cfs_quota_us", "-1\n");
        write("a/b/cpu.cfs_period_us", "100000\n");
        let hierarchy = Hierarchy { root: "/".into(), point: root.path().to_owned() };
        let found = |read: fn(&Path) -> Option<f64>| {
            let found = quotas(&hierarchy, "/a/b/c", read);
            found.into_iter().map(|quota| (quota.cgroup, quota.cpus)).collect::<Vec<_>>()
        };
        assert_eq!(found(second_version), [("/a".to_owned(), 1.5)]);
        assert_eq!(found(first_version), [("/a/b/c".to_owned(), 0.2)]);
        let all = quotas(&hierarchy, "/a/b/c", second_version);
        assert_eq!(all[0].count(), Some(Periods { all: 40, throttled: 30 }));
        assert_eq!(quotas(&hierarchy, "/a/b/c", first_version)[0].count(), None, "no cpu.stat");
        assert_eq!(quotas(&hierarchy, "/../x", second_version), []);
    }

    /// Ends its process, and removes its cgroup.
    struct Group(PathBuf, Option<Child>);

    impl Drop for Group {
        fn drop(&mut self) {
            if let Some(child) = &mut self.1 {
                let _ = child.kill();
                let _ = child.wait();
            }
            let _ = fs::remove_dir(&self.0);
        }
    }

    #[test]
    fn a_busy_cgroup_is_throttled_in_each_period() {
        let quotas = CpuQuotas::discover();
        let Some(hierarchy) = quotas.first.as_ref().filter(|v1| v1.root == "/") else {
            return eprintln!(
                "skipped: the first version of the CPU controller is not mounted here"
            );
        };
        let name = format!("symbiont-quota-{}", std::process::id());
        let mut group = Group(hierarchy.point.join(&name), None);
        let set = |file: &str, text: String| fs::write(group.0.join(file), text);
        let made = fs::create_dir(&group.0).and_then(|()| set("cpu.cfs_quota_us", "5000".into()));
        if let Err(error) = made {
            return eprintln!("skipped: a cgroup cannot be made here: {error}");
        }
        let busy = Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
        let process = busy.id();
        set("cgroup.procs", process.to_string()).unwrap();
        group.1 = Some(busy);
        let found = quotas.of(process);
        let [quota, ..] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!((&*quota.cgroup, quota.cpus), (&*format!("/{name}"), 0.05));
        let before = quota.count().unwrap();
        let begin = std::time::Instant::now();
        let throttled = loop {
            std::thread::sleep(Duration::from_millis(20));
            let now = quota.count().unwrap();
            if now.throttled >= before.throttled + 3 {
                break now;
            }
            assert!(begin.elapsed() < Duration::from_secs(60), "{now:?}");
        };
        assert!(throttled.all >= throttled.throttled, "{throttled:?}");
        drop(group);
        assert_eq!(quota.count(), None);
    }
}
