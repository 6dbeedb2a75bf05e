//! Where the runtimes keep their state.
//!
//! Root's folders count for all processes, those of a user for the user's alone. All are below a root, which is `/host`
//! or the like for a process that sees the host's files there.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::de::value::SeqAccessDeserializer;
use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use symbiont_safe_open::within::Folder;

use crate::Owner;
use crate::read::{StateFolder, StateLocation};

/// The state folders, by what is kept there.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(
    default,
    deny_unknown_fields,
    expecting = "a table, which begins with [containers.folders]"
)]
pub struct Folders {
    /// All others are below it.
    pub root: PathBuf,
    /// State of containerd: it has `io.containerd.runtime.v2.task`.
    #[serde(deserialize_with = "list")]
    pub containerd: Vec<PathBuf>,
    /// Docker's `containers`.
    #[serde(deserialize_with = "list")]
    pub docker: Vec<PathBuf>,
    /// containers/storage, of podman and CRI-O.
    #[serde(deserialize_with = "list")]
    pub storage: Vec<PathBuf>,
    /// Roots of runc.
    #[serde(deserialize_with = "list")]
    pub runc: Vec<PathBuf>,
    /// Roots of crun.
    #[serde(deserialize_with = "list")]
    pub crun: Vec<PathBuf>,
    /// Are the folders of users read, for their own processes?
    pub of_users: bool,
    /// The user whose folders count for all processes: root, but in tests.
    #[serde(skip)]
    pub superuser: u32,
}

impl Default for Folders {
    fn default() -> Self {
        let paths = |paths: &[&str]| paths.iter().map(PathBuf::from).collect();
        Self {
            root: PathBuf::from("/"),
            containerd: paths(&[
                "/run/containerd",
                "/run/k3s/containerd",
                "/run/docker/containerd/daemon",
                "/var/run/containerd",
                "/var/run/docker/containerd/daemon",
            ]),
            docker: paths(&["/var/lib/docker/containers"]),
            storage: paths(&["/run/containers/storage", "/var/lib/containers/storage"]),
            runc: paths(&[
                "/run/runc",
                "/run/runc-ctrs",
                "/run/docker/runtime-runc/moby",
                "/run/containerd/runc/k8s.io",
            ]),
            crun: paths(&["/run/crun"]),
            of_users: true,
            superuser: 0,
        }
    }
}

/// Paths, with words of an administrator for what is expected.
fn list<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<PathBuf>, D::Error> {
    struct List;
    impl<'de> Visitor<'de> for List {
        type Value = Vec<PathBuf>;

        fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
            to.write_str("a list of folders, as in [\"/run/containerd\"]")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, paths: A) -> Result<Self::Value, A::Error> {
            Vec::deserialize(SeqAccessDeserializer::new(paths))
        }
    }
    from.deserialize_seq(List)
}

/// Which kind of state a folder has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Kind {
    Containerd,
    Docker,
    Storage,
    Runc,
    Crun,
}

impl Folders {
    /// A path that is not absolute, if there is one.
    #[must_use]
    pub fn relative(&self) -> Option<&Path> {
        let Self { root, containerd, docker, storage, runc, crun, .. } = self;
        let all = [containerd, docker, storage, runc, crun].into_iter().flatten().chain([root]);
        all.map(PathBuf::as_path).find(|path| !path.is_absolute())
    }

    /// Those of this kind that exist: root's, or those of a user.
    pub(crate) fn open(&self, kind: Kind, user: Option<&Owner>) -> Vec<StateFolder> {
        let of_root = |path: &PathBuf| {
            self.enter(&StateLocation {
                base: path.clone(),
                inside: PathBuf::new(),
                owner: self.superuser,
            })
        };
        match user {
            None => self.of_root(kind).iter().filter_map(of_root).collect(),
            Some(user) if self.of_users && user.uid != self.superuser => self.of_user(kind, user),
            Some(_) => Vec::new(),
        }
    }

    fn of_root(&self, kind: Kind) -> &[PathBuf] {
        match kind {
            Kind::Containerd => &self.containerd,
            Kind::Docker => &self.docker,
            Kind::Storage => &self.storage,
            Kind::Runc => &self.runc,
            Kind::Crun => &self.crun,
        }
    }

    /// A folder of state; none where there is none now.
    pub(crate) fn enter(&self, location: &StateLocation) -> Option<StateFolder> {
        let held = Folder::open_below(&self.root, &location.base).ok()?;
        let held = if location.owner == self.superuser { held } else { held.without_mounts() };
        Some(StateFolder { location: location.clone(), held })
    }

    /// From the user's own folder on no link is followed and no other mount entered.
    fn of_user(&self, kind: Kind, user: &Owner) -> Vec<StateFolder> {
        let run = PathBuf::from(format!("/run/user/{}", user.uid));
        let home = user.home.as_deref().filter(|home| self.is_on_a_local_disk(home));
        let (in_run, in_home): (&[&str], &[&str]) = match kind {
            Kind::Containerd => (&["docker/containerd/daemon", "containerd"], &[]),
            Kind::Docker => (&[], &[".local/share/docker/containers"]),
            Kind::Storage => (&["containers"], &[".local/share/containers/storage"]),
            Kind::Runc => (&["runc"], &[]),
            Kind::Crun => (&["crun"], &[]),
        };
        let open = |base: &Path, inside: &str| {
            let inside = PathBuf::from(inside);
            let folder =
                self.enter(&StateLocation { base: base.to_owned(), inside, owner: user.uid })?;
            folder.held.look(&folder.location.inside).ok()?;
            Some(folder)
        };
        let run = in_run.iter().filter_map(|inside| open(&run, inside));
        let home = in_home.iter().filter_map(|inside| open(home?, inside));
        run.chain(home).collect()
    }

    /// A home on a server that does not answer would hold up its reader.
    fn is_on_a_local_disk(&self, home: &Path) -> bool {
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let home = self.root.join(home.strip_prefix("/").unwrap_or(home));
        kind_of_mount(&mounts, &home).is_some_and(|kind| LOCAL.contains(&kind))
    }
}

/// Filesystems that answer by themselves.
const LOCAL: [&str; 8] = ["ext4", "ext3", "ext2", "xfs", "btrfs", "zfs", "tmpfs", "overlay"];

/// The filesystem at a path, as `mountinfo` lists them.
fn kind_of_mount<'a>(mounts: &'a str, path: &Path) -> Option<&'a str> {
    let mount = |line: &'a str| {
        let (front, back) = line.split_once(" - ")?;
        let point = front.split(' ').nth(4)?;
        path.starts_with(point.replace("\\040", " "))
            .then_some((point.len(), back.split(' ').next()?))
    };
    // Of two at one place the later one is seen.
    mounts.lines().filter_map(mount).max_by_key(|(length, _)| *length).map(|(_, kind)| kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn homes_on_servers_are_noticed() {
        let mounts = "21 1 8:1 / / rw - ext4 /dev/sda1 rw\n\
            30 21 0:40 / /home rw,relatime shared:5 - nfs4 server:/home rw\n\
            31 30 8:2 / /home/ann rw - xfs /dev/sdb rw\n\
            32 31 0:50 / /home/ann/far rw - fuse.sshfs a:b rw\n";
        let kind = |path: &str| kind_of_mount(mounts, Path::new(path)).unwrap();
        assert_eq!(
            ["/root", "/home/bob", "/home/ann", "/home/ann/far"].map(kind),
            ["ext4", "nfs4", "xfs", "fuse.sshfs"]
        );
        assert_eq!(kind("/homestead"), "ext4", "whole parts only");
    }

    #[test]
    fn folders_that_do_not_exist_are_none() {
        let folders = Folders { root: PathBuf::from("/nonexistent"), ..Folders::default() };
        assert!(folders.open(Kind::Storage, None).is_empty());
        let root = Owner { uid: 0, home: Some(PathBuf::from("/root")) };
        assert!(
            Folders::default().open(Kind::Storage, Some(&root)).is_empty(),
            "root has no folders of a user"
        );
    }
}
