//! The hierarchies of cgroups, as they are mounted here.

use std::path::{Path, PathBuf};

use procfs::FromRead;
use procfs::process::{MountInfo, MountInfos};

/// What is mounted of a hierarchy, and where.
#[derive(Debug, Clone)]
pub(super) struct Hierarchy {
    /// The cgroup that is mounted ("/" unless only a part is).
    pub root: String,
    pub point: PathBuf,
}

impl Hierarchy {
    /// The directory of a cgroup, if this mount shows it.
    pub fn directory(&self, cgroup: &str) -> Option<PathBuf> {
        let below = match self.root.as_str() {
            "/" => cgroup,
            root => cgroup.strip_prefix(root).filter(|b| b.is_empty() || b.starts_with('/'))?,
        };
        let below = below.trim_start_matches('/');
        if below.split('/').any(|part| part == "..") {
            return None; // outside this process's cgroup namespace
        }
        Some(self.point.join(below))
    }

    /// A cgroup and those above it, as far as this mount shows them, with their directories.
    pub fn upwards(&self, cgroup: &str) -> impl Iterator<Item = (String, PathBuf)> {
        let mut at = self.directory(cgroup).map(|directory| (cgroup.to_owned(), directory));
        std::iter::from_fn(move || {
            let (cgroup, directory) = at.take()?;
            let above = directory.parent().filter(|above| above.starts_with(&self.point));
            at = above.map(|above| {
                let name = cgroup.trim_end_matches('/').rsplit_once('/').map_or("", |(up, _)| up);
                (if name.is_empty() { "/" } else { name }.to_owned(), above.to_owned())
            });
            Some((cgroup, directory))
        })
    }

    /// The first file that answers, from a cgroup upwards to the mount's root.
    pub fn nearest<T>(&self, cgroup: &str, read: impl Fn(&Path) -> Option<T>) -> Option<T> {
        self.upwards(cgroup).find_map(|(_, directory)| read(&directory))
    }
}

/// All that is mounted of cgroups.
#[derive(Debug, Clone)]
pub(super) struct CgroupMounts(Vec<MountInfo>);

impl CgroupMounts {
    /// As this process sees it.
    pub fn read() -> Self {
        let mounts = MountInfos::from_file("/proc/self/mountinfo");
        Self(mounts.map(|mounts| mounts.0).unwrap_or_default())
    }

    /// The hierarchy of the second version.
    pub fn unified(&self) -> Option<Hierarchy> {
        self.find("cgroup2", |_| true)
    }

    /// The hierarchy of the first version that has this controller.
    pub fn first_version(&self, controller: &str) -> Option<Hierarchy> {
        self.find("cgroup", |mount| mount.super_options.contains_key(controller))
    }

    fn find(&self, kind: &str, fits: impl Fn(&MountInfo) -> bool) -> Option<Hierarchy> {
        let mount = self.0.iter().find(|mount| mount.fs_type == kind && fits(mount))?;
        Some(Hierarchy { root: mount.root.clone(), point: mount.mount_point.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cgroup_is_found_below_what_is_mounted() {
        let whole = Hierarchy { root: "/".into(), point: "/sys/fs/cgroup".into() };
        let part = Hierarchy { root: "/box".into(), point: "/mnt".into() };
        assert_eq!(whole.directory("/").unwrap(), Path::new("/sys/fs/cgroup"));
        assert_eq!(whole.directory("/a/b").unwrap(), Path::new("/sys/fs/cgroup/a/b"));
        assert_eq!(part.directory("/box/a").unwrap(), Path::new("/mnt/a"));
        assert_eq!(part.directory("/boxer"), None);
        assert_eq!(whole.directory("/../other"), None);
    }

    #[test]
    fn the_cgroups_above_one_are_those_that_the_mount_shows() {
        let hierarchy = Hierarchy { root: "/box".into(), point: "/mnt".into() };
        let names =
            |cgroup: &str| hierarchy.upwards(cgroup).map(|(name, _)| name).collect::<Vec<_>>();
        assert_eq!(names("/box/a/b"), ["/box/a/b", "/box/a", "/box"]);
        assert!(names("/other").is_empty());
        let whole = Hierarchy { root: "/".into(), point: "/mnt".into() };
        let found: Vec<_> = whole.upwards("/a").collect();
        assert_eq!(found, [("/a".into(), "/mnt/a".into()), ("/".into(), "/mnt".into())]);
        assert_eq!(whole.upwards("/").map(|(name, _)| name).collect::<Vec<_>>(), ["/"]);
    }
}
