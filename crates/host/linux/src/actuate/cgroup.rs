//! Where the cgroup hierarchies are mounted, and what is read there: the CPUs that a process's cpuset allows, and
//! the scheduling group that the process is in.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use symbiont_topology::{CpuSet, HostTopology};

use super::cgroup_paths::CgroupPaths;
use super::groups::{GroupKey, Grouping};
use super::hierarchy::{CgroupMounts, Hierarchy};
use super::quota::CpuQuotas;

/// The name that the kernel gives to its first cgroup namespace.
const FIRST_NAMESPACE: &str = "cgroup:[4026531835]";

/// The host's cgroup hierarchies that matter for scheduling.
#[derive(Debug, Clone, Default)]
pub struct Cgroups {
    unified: Option<Hierarchy>,
    cpuset: Option<Hierarchy>,
    cpu: Option<Hierarchy>,
    paths: CgroupPaths,
    autogroup: bool,
    /// Is the path "/" the machine's own root?
    has_root: bool,
    /// This process's cpuset, by its path, and what it allows.
    own: (String, CpuSet),
    online: CpuSet,
}

impl Cgroups {
    /// Finds out where they are mounted. Where no cpuset is mounted or readable, all of the host's hardware threads
    /// count as allowed.
    #[must_use]
    pub fn discover(host: &HostTopology) -> Self {
        Self::find(host.cpus(), &CgroupPaths::default())
    }

    /// Looks again after mounts or the online CPUs have changed. Where this process's cgroup cannot be read, what
    /// its cpuset allows is asked anew each time.
    pub(super) fn look_again(&mut self, online: CpuSet, mounts_changed: bool) {
        if mounts_changed || online != self.online {
            *self = Self::find(online, &self.paths);
        } else if self.read_cpuset(&self.own.0).is_none() {
            self.own.1 = super::syscalls::widest_mask().unwrap_or_default();
        }
    }

    fn find(online: CpuSet, paths: &CgroupPaths) -> Self {
        let mounts = CgroupMounts::read_again(paths);
        let (unified, cpu) = (mounts.unified(), mounts.first_version("cpu"));
        let is_first = fs::read_link("/proc/self/ns/cgroup")
            .is_ok_and(|name| name == Path::new(FIRST_NAMESPACE));
        Self {
            has_root: is_first
                || cpu.as_ref().or(unified.as_ref()).is_some_and(Hierarchy::is_whole),
            unified,
            cpuset: mounts.first_version("cpuset"),
            cpu,
            autogroup: fs::read_to_string("/proc/sys/kernel/sched_autogroup_enabled")
                .is_ok_and(|text| text.trim() == "1"),
            own: (
                mounts.paths.of_cpuset(std::process::id()).unwrap_or_default(),
                super::syscalls::widest_mask().unwrap_or_default(),
            ),
            paths: mounts.paths,
            online,
        }
    }

    /// The CPUs that a process's cpuset allows now. Where that cannot be read, all that are online.
    #[must_use]
    pub fn cpuset(&self, process: u32) -> Arc<CpuSet> {
        Arc::new(self.seen_cpuset(process).unwrap_or_else(|| self.online.clone()))
    }

    /// The CPUs that a process's cpuset allows now, if that can be seen. Where the hierarchy is not
    /// mounted (in many containers) a process that shares our cpuset has what we have.
    pub(super) fn seen_cpuset(&self, process: u32) -> Option<CpuSet> {
        let path = self.paths.of_cpuset(process).unwrap_or_default();
        let same_as_ours =
            || (path == self.own.0 && !self.own.1.is_empty()).then(|| self.own.1.clone());
        self.read_cpuset(&path).or_else(same_as_ours)
    }

    fn read_cpuset(&self, path: &str) -> Option<CpuSet> {
        let list = |dir: &Path, file: &str| {
            let cpus = fs::read_to_string(dir.join(file)).ok()?.parse::<CpuSet>().ok()?;
            (!cpus.is_empty()).then_some(cpus)
        };
        match (&self.cpuset, &self.unified) {
            (Some(v1), _) => v1.nearest(path, |dir| {
                list(dir, "cpuset.effective_cpus").or_else(|| list(dir, "cpuset.cpus"))
            }),
            (None, Some(v2)) => v2.nearest(path, |dir| list(dir, "cpuset.cpus.effective")),
            (None, None) => None,
        }
    }

    /// The scheduling group in which a process competes; `None` if it is gone
    /// or cannot be determined. Threads that were put into cgroups of their own
    /// (threaded cgroups) are taken to be where their process is.
    #[must_use]
    pub fn group(&self, process: u32) -> Option<GroupKey> {
        let groups = self.paths.of(process)?;
        let v1 = |name: &str| {
            groups.iter().find(|g| g.controllers.iter().any(|c| c == name)).map(|g| &g.pathname)
        };
        let v2 = || groups.iter().find(|g| g.hierarchy == 0).map(|g| &g.pathname);
        let path = match (v1("cpu"), &self.unified) {
            (Some(path), _) => path.clone(),
            (None, Some(unified)) => self.weighted(unified, v2()?),
            (None, None) => "/".to_owned(),
        };
        if path != "/" || !self.has_root {
            return Some(GroupKey::Cgroup(path));
        }
        if !self.autogroup {
            return Some(GroupKey::Root);
        }
        let text = fs::read_to_string(format!("/proc/{process}/autogroup")).ok()?;
        Some(autogroup(&text))
    }

    /// The nearest cgroup that the CPU controller weighs: only those have the file.
    fn weighted(&self, unified: &Hierarchy, path: &str) -> String {
        let dir =
            unified.nearest(path, |dir| dir.join("cpu.weight").exists().then(|| dir.to_owned()));
        match dir.as_deref().and_then(|d| d.strip_prefix(&unified.point).ok()) {
            None => "/".to_owned(),
            Some(below) => Path::new("/").join(below).to_string_lossy().into_owned(),
        }
    }

    /// How this host groups processes for scheduling, as far as it can be said
    /// before any process is known.
    #[must_use]
    pub fn grouping(&self) -> Grouping {
        match (self.autogroup, &self.cpu, &self.unified) {
            (true, _, _) => Grouping::BySession,
            (false, None, None) => Grouping::None,
            (false, _, _) => Grouping::ByCgroup,
        }
    }
}

/// What the cgroups of a process let it use.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Share {
    /// The cgroup of its cpuset, if it is not the topmost one.
    pub cgroup: Option<String>,
    /// May no other cpuset use its CPUs? None: not known.
    pub is_exclusive: Option<bool>,
    /// The least quota of its cgroup and those above it: CPU time per unit of time. None: no quota.
    pub quota: Option<f64>,
}

impl Cgroups {
    /// What the cgroups of a process let it use.
    #[must_use]
    pub fn share(&self, process: u32) -> Share {
        let path = self.paths.of_cpuset(process).unwrap_or_default();
        let read = |dir: &Path, file: &str| fs::read_to_string(dir.join(file)).ok();
        let is_exclusive = match (&self.cpuset, &self.unified) {
            (Some(v1), _) => v1
                .nearest(&path, |dir| read(dir, "cpuset.cpu_exclusive"))
                .map(|text| text.trim() == "1"),
            (None, Some(v2)) => v2
                .nearest(&path, |dir| read(dir, "cpuset.cpus.partition"))
                .map(|text| matches!(text.trim(), "root" | "isolated")),
            (None, None) => None,
        };
        let quotas = CpuQuotas::new(self.cpu.clone(), self.unified.clone(), self.paths.clone());
        let quotas = quotas.of(process);
        let quota = quotas.iter().map(|quota| quota.cpus).reduce(f64::min);
        let cgroup = (path.len() > 1).then_some(path);
        // The topmost cpuset has all CPUs, and shares them with those below.
        Share { is_exclusive: is_exclusive.filter(|_| cgroup.is_some()), cgroup, quota }
    }
}

/// The group that `/proc/PID/autogroup` names. It is empty for a process none
/// of whose ancestors made a session (kernel threads and what they or init
/// started): those compete in the root group.
fn autogroup(text: &str) -> GroupKey {
    match text.split_whitespace().next() {
        Some(name) => GroupKey::Session(name.trim_start_matches('/').to_owned()),
        None => GroupKey::Root,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_controller_is_read_from_the_nearest_ancestor_that_has_it() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("a/b/c")).unwrap();
        fs::write(dir.path().join("a/cpu.weight"), "100").unwrap();
        fs::write(dir.path().join("cpuset.cpus.effective"), "0-7").unwrap();
        let unified = Hierarchy { root: "/".into(), point: dir.path().to_owned() };
        let cgroups = Cgroups::default();
        assert_eq!(cgroups.weighted(&unified, "/a/b/c"), "/a");
        assert_eq!(cgroups.weighted(&unified, "/x"), "/");
        let read = |dir: &Path| fs::read_to_string(dir.join("cpuset.cpus.effective")).ok();
        assert_eq!(unified.nearest("/a/b/c", read).unwrap(), "0-7");
    }

    #[test]
    fn the_cpuset_of_this_process_holds_its_mask() {
        let cgroups = Cgroups::discover(&HostTopology::read().unwrap());
        let me = std::process::id();
        let key = super::super::syscalls::facts(me, me).unwrap().unwrap().key;
        let mask = super::super::syscalls::mask(key).unwrap();
        assert!(mask.is_subset(&cgroups.cpuset(me)));
        assert!(cgroups.group(me).is_some());
    }

    #[test]
    fn without_a_session_of_its_own_a_process_competes_in_the_root_group() {
        let session = GroupKey::Session("autogroup-12".to_owned());
        assert_eq!(autogroup("/autogroup-12 nice 0\n"), session);
        assert_eq!(autogroup(""), GroupKey::Root);
    }

    #[test]
    fn the_cgroups_of_a_process_lead_to_its_cpuset_too() {
        let cgroups = Cgroups::discover(&HostTopology::read().unwrap());
        let (me, paths) = (std::process::id(), &cgroups.paths);
        let (Some(own), Some(found)) = (paths.of_cpuset(me), paths.of_cpuset_by_cgroups(me)) else {
            return eprintln!("skipped: no cgroups here");
        };
        assert_eq!(cgroups.read_cpuset(&found), cgroups.read_cpuset(&own), "{own}, {found}");
    }

    #[test]
    fn what_changed_is_found_when_it_is_looked_for_again() {
        let discovered = Cgroups::discover(&HostTopology::read().unwrap());
        let (me, online) = (std::process::id(), discovered.online.clone());
        let old = CpuSet::from(symbiont_topology::PuId(8000));
        let stale = |cpuset, unified, online| {
            let own = (discovered.own.0.clone(), old.clone());
            Cgroups { cpuset, unified, online, own, ..discovered.clone() }
        };
        // Nothing is mounted where it was; mounts changed, or other CPUs are online.
        let gone = || Some(Hierarchy { root: "/".into(), point: "/nowhere".into() });
        for (before, mounts_changed) in [(online.clone(), true), (old.clone(), false)] {
            let mut cgroups = stale(gone(), gone(), before);
            cgroups.look_again(online.clone(), mounts_changed);
            assert_eq!(cgroups.cpuset(me), discovered.cpuset(me));
            assert_eq!((&cgroups.online, &cgroups.own), (&online, &discovered.own));
        }
        // Where cgroups are not seen, this process's cpuset may have changed all the same.
        let mut blind = stale(None, None, online.clone());
        assert_eq!(*blind.cpuset(me), old);
        blind.look_again(online, false);
        assert_eq!(blind.own, discovered.own);
    }

    #[test]
    fn where_no_cpuset_is_mounted_our_own_is_found_by_asking() {
        let discovered = Cgroups::discover(&HostTopology::read().unwrap());
        let blind = Cgroups { cpuset: None, unified: None, ..discovered.clone() };
        let me = std::process::id();
        assert_eq!(blind.cpuset(me), discovered.cpuset(me));
        assert!(!blind.own.1.is_empty());
    }
}
