//! The cgroups of processes, by paths from the top of what is mounted.
//!
//! # Problem
//! Rules, names of containers, cpusets and quotas are found by the paths of cgroups. In a cgroup namespace the
//! kernel shows other paths than outside of it: see [`super::origin`].
//!
//! # Approach
//! Each hierarchy has its own root in a namespace, and its own place in the tree. All are found once
//! ([`CgroupPaths::find`]), and from then on every path that the kernel shows goes through here: those of processes, of
//! their cpusets, and of the roots of mounts. A path that leads out of what is mounted stays as it is, so it begins
//! with `/..`. A namespace's root never moves: what was found once holds, also when this process is moved to another
//! cgroup.
//!
//! # Properties
//! - Each hierarchy's paths are translated by its own root (`each_hierarchy_has_a_root_of_its_own`).
//! - In the first namespace nothing changes (`without_a_namespace_nothing_changes`).
//! - Cpusets are followed from a real namespace (`a_cpuset_that_changes_is_followed_from_a_cgroup_namespace`, of
//!   `tests/actuate`).

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs;

use procfs::{FromRead, ProcessCGroup, ProcessCGroups};

use super::origin::Origin;

/// Another process may move this one while it is looked for.
const TRIES: usize = 3;

/// The paths of cgroups, from the top of what is mounted.
#[derive(Debug, Clone, Default)]
pub struct CgroupPaths {
    /// By the controllers of a hierarchy, as `/proc/PID/cgroup` lists them; version 2 has none.
    origins: BTreeMap<String, Origin>,
}

impl CgroupPaths {
    /// Finds out where the namespace of this process begins in each hierarchy by `origin`, which takes the hierarchy's
    /// controllers, the cgroup of this process as the kernel shows it, and the process. What was found before holds.
    pub(super) fn find_by(
        origin: impl Fn(&str, &str, u32) -> Option<Origin>,
        before: &Self,
    ) -> Self {
        let process = std::process::id();
        let mut origins = BTreeMap::new();
        for _ in 0..TRIES {
            let text = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
            let mut is_complete = true;
            for (_, controllers, own) in text.lines().filter_map(fields) {
                let known = before.origins.get(controllers).filter(|origin| !origin.is_top());
                let found = known.cloned().or_else(|| origin(controllers, own, process));
                is_complete &= found.is_some();
                origins.insert(controllers.to_owned(), found.unwrap_or_default());
            }
            if is_complete {
                break;
            }
        }
        Self { origins }
    }

    /// What `/proc/PID/cgroup` says, with paths from the top of what is mounted.
    #[must_use]
    pub fn of_lines<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if self.origins.values().all(Origin::is_top) {
            return Cow::Borrowed(text);
        }
        let line = |line: &str| {
            let absolute = fields(line).and_then(|(number, controllers, shown)| {
                let path = self.origins.get(controllers)?.absolute(shown)?;
                Some(format!("{number}:{controllers}:{path}\n"))
            });
            absolute.unwrap_or_else(|| format!("{line}\n"))
        };
        Cow::Owned(text.lines().map(line).collect())
    }

    /// The cgroups of a process, one of each hierarchy; none if it is gone.
    pub(super) fn of(&self, process: u32) -> Option<Vec<ProcessCGroup>> {
        let text = fs::read_to_string(format!("/proc/{process}/cgroup")).ok()?;
        Some(ProcessCGroups::from_read(self.of_lines(&text).as_bytes()).ok()?.0)
    }

    /// The cgroup that decides where a process may run, or one below it.
    pub(super) fn of_cpuset(&self, process: u32) -> Option<String> {
        match fs::read_to_string(format!("/proc/{process}/cpuset")) {
            Ok(path) => Some(self.absolute(self.hierarchy_of("cpuset"), path.trim_end())),
            // Kernels without the first version of cpusets have no such file.
            Err(_) => self.of_cpuset_by_cgroups(process),
        }
    }

    pub(super) fn of_cpuset_by_cgroups(&self, process: u32) -> Option<String> {
        let groups = self.of(process)?;
        let has_cpusets = |group: &&ProcessCGroup| group.controllers.iter().any(|c| c == "cpuset");
        let unified = || groups.iter().find(|group| group.hierarchy == 0);
        Some(groups.iter().find(has_cpusets).or_else(unified)?.pathname.clone())
    }

    /// A path that the kernel shows in the hierarchy of these controllers, from the top of what is mounted.
    pub(super) fn absolute(&self, controllers: &str, shown: &str) -> String {
        let origin = self.origins.get(controllers);
        origin.and_then(|origin| origin.absolute(shown)).unwrap_or_else(|| shown.to_owned())
    }

    /// The controllers of the hierarchy that has this one: none where version 2 has it.
    pub(super) fn hierarchy_of(&self, controller: &str) -> &str {
        let mut all = self.origins.keys();
        let has_it = |all: &&String| all.split(',').any(|name| name == controller);
        all.find(has_it).map_or("", String::as_str)
    }

    /// Are there processes here whose cgroups lead out of what is mounted, as far as the first process shows it?
    #[must_use]
    pub fn lead_out(&self) -> bool {
        let text = fs::read_to_string("/proc/1/cgroup").unwrap_or_default();
        leads_out(&self.of_lines(&text))
    }
}

/// Does one of these lines lead out, of a hierarchy that names processes or says where and how long they run?
fn leads_out(lines: &str) -> bool {
    let matters = |controllers: &str| {
        let mut all = controllers.split(',');
        all.any(|name| ["", "name=systemd", "cpu", "cpuset"].contains(&name))
    };
    let mut lines = lines.lines().filter_map(fields);
    lines.any(|(_, controllers, path)| matters(controllers) && path.starts_with("/.."))
}

/// Number, controllers and path.
fn fields(line: &str) -> Option<(&str, &str, &str)> {
    let (number, rest) = line.split_once(':')?;
    let (controllers, path) = rest.split_once(':')?;
    Some((number, controllers, path))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "4:memory:/../q\n1:cpu,cpuacct:/../../a:b\n0::/x (deleted)\nnonsense\n";

    /// As found in a tree that has this process in a cgroup of these names.
    fn origin(names: &str) -> Origin {
        let tree = tempfile::tempdir().unwrap();
        fs::create_dir_all(tree.path().join(names)).unwrap();
        fs::write(tree.path().join(names).join("cgroup.procs"), "7\n").unwrap();
        let root = "/..".repeat(names.split('/').count());
        Origin::find(&root, tree.path(), "/", 7).unwrap()
    }

    #[test]
    fn each_hierarchy_has_a_root_of_its_own() {
        let roots = [("", "pods/box"), ("cpu,cpuacct", "cpus/box"), ("memory", "box")];
        let origins = roots.map(|(name, names)| (name.to_owned(), origin(names)));
        let paths = CgroupPaths { origins: origins.into() };
        assert_eq!(
            paths.of_lines(TEXT),
            "4:memory:/q\n1:cpu,cpuacct:/a:b\n0::/pods/box/x (deleted)\nnonsense\n"
        );
        assert_eq!(paths.hierarchy_of("cpu"), "cpu,cpuacct");
        assert_eq!(paths.hierarchy_of("cpuset"), "");
        assert_eq!(paths.absolute("memory", "/../.."), "/../..", "not mounted");
        assert_eq!(paths.absolute("", "/../.."), "/");
        assert!(leads_out(TEXT) && !leads_out(&paths.of_lines(TEXT)));
        assert!(!leads_out("4:memory:/../q\n0::/x\n"), "that names no process");
    }

    #[test]
    fn without_a_namespace_nothing_changes() {
        assert_eq!(CgroupPaths::default().of_lines(TEXT), TEXT);
        assert!(matches!(CgroupPaths::default().of_lines(TEXT), Cow::Borrowed(_)));
        assert_eq!(CgroupPaths::default().absolute("cpu", "/../a"), "/../a");
    }
}
