//! The hierarchies of cgroups, as they are mounted here.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use procfs::FromRead;
use procfs::process::{MountInfo, MountInfos};

use super::cgroup_paths::CgroupPaths;
use super::origin::{Origin, Shown};

/// What is mounted of a hierarchy, and where.
#[derive(Debug, Clone)]
pub(super) struct Hierarchy {
    /// The cgroup that is mounted ("/" unless only a part is), as paths of processes are given.
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
            return None; // outside of all that is mounted
        }
        Some(self.point.join(below))
    }

    /// Is the top of what is mounted that of the machine?
    pub fn is_whole(&self) -> bool {
        // All cgroups but that one have the file in version 2, and only that one in version 1.
        let has = |file: &str| self.point.join(file).exists();
        self.root == "/" && (has("release_agent") || has("cgroup.procs") && !has("cgroup.events"))
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

impl CgroupPaths {
    /// Finds out where the namespace of this process begins.
    #[must_use]
    pub fn find() -> Self {
        CgroupMounts::read().paths
    }
}

/// All that is mounted of cgroups.
#[derive(Debug, Clone)]
pub(super) struct CgroupMounts {
    mounts: Vec<MountInfo>,
    /// From the tops of these.
    pub paths: CgroupPaths,
}

impl CgroupMounts {
    /// As this process sees it.
    pub fn read() -> Self {
        Self::read_again(&CgroupPaths::default())
    }

    /// The same, with the paths as they were found before.
    pub fn read_again(paths: &CgroupPaths) -> Self {
        let mounts = MountInfos::from_file("/proc/self/mountinfo");
        let mounts = mounts.map(|mounts| mounts.0).unwrap_or_default();
        let mut all = Self { mounts: visible(mounts), paths: CgroupPaths::default() };
        let origin = |controllers: &str, own: &str, process| all.origin(controllers, own, process);
        all.paths = CgroupPaths::find_by(origin, paths);
        all
    }

    /// The hierarchy of the second version.
    pub fn unified(&self) -> Option<Hierarchy> {
        self.hierarchy("")
    }

    /// The hierarchy of the first version that has this controller.
    pub fn first_version(&self, controller: &str) -> Option<Hierarchy> {
        let named = Some(self.paths.hierarchy_of(controller)).filter(|named| !named.is_empty());
        self.hierarchy(named.unwrap_or(controller))
    }

    /// Where the namespace of this process begins in the hierarchy of these controllers. None if that cannot be seen
    /// just now.
    fn origin(&self, controllers: &str, own: &str, process: u32) -> Option<Origin> {
        match self.mount(controllers) {
            Some(mount) => Origin::find(&mount.root, &mount.mount_point, own, process),
            None => Some(Origin::default()),
        }
    }

    fn hierarchy(&self, controllers: &str) -> Option<Hierarchy> {
        let mount = self.mount(controllers)?;
        let root = self.paths.absolute(controllers, &mount.root);
        Some(Hierarchy { root, point: mount.mount_point.clone() })
    }

    /// The mount of a hierarchy that shows most of it, as `/proc/PID/cgroup` lists its controllers: the highest one
    /// above this process's namespace.
    fn mount(&self, controllers: &str) -> Option<&MountInfo> {
        let has = |mount: &MountInfo, name: &str| match name.split_once('=') {
            Some((key, value)) => mount.super_options.get(key) == Some(&Some(value.to_owned())),
            None => mount.super_options.contains_key(name),
        };
        let fits = |mount: &&MountInfo| match (mount.fs_type.as_str(), controllers) {
            ("cgroup2", "") => true,
            ("cgroup", all) => all.split(',').all(|name| has(mount, name)),
            _ => false,
        };
        self.mounts.iter().filter(fits).min_by_key(|mount| {
            let Shown { up, down } = Shown::parse(&mount.root);
            (down.len(), Reverse(up))
        })
    }
}

/// Mounts but for those that another one covers.
fn visible(mut mounts: Vec<MountInfo>) -> Vec<MountInfo> {
    let places: BTreeSet<(i32, PathBuf)> =
        mounts.iter().map(|mount| (mount.pid, mount.mount_point.clone())).collect();
    mounts.retain(|mount| !places.contains(&(mount.mnt_id, mount.mount_point.clone())));
    mounts
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
