//! Control groups that scenarios make.

use std::fs;
use std::path::{Path, PathBuf};

use super::skip;

const ROOT: &str = "/sys/fs/cgroup";
/// What the names of all groups of the lab at the top begin with.
const PREFIXES: [&str; 2] = ["lab-", "kubepods"];

/// A group below the root's.
pub struct Group(PathBuf);

impl Group {
    /// Makes a group that these controllers act in; the scenario is skipped where the
    /// kernel has none.
    pub fn new(name: &str, controllers: &[&str]) -> Self {
        Self::at(&format!("lab-{name}"), controllers)
    }

    /// The same at a path, below groups that are made where they are not there.
    pub fn at(path: &str, controllers: &[&str]) -> Self {
        let there = fs::read_to_string(Path::new(ROOT).join("cgroup.controllers"));
        let there = there.unwrap_or_default();
        for controller in controllers {
            if !there.split_whitespace().any(|name| name == *controller) {
                skip(&format!("the kernel's cgroups have no {controller}"));
            }
        }
        let mut folder = PathBuf::from(ROOT);
        for part in path.split('/') {
            for controller in controllers {
                write(&folder.join("cgroup.subtree_control"), &format!("+{controller}"));
            }
            folder.push(part);
            if !folder.is_dir() {
                fs::create_dir(&folder).unwrap();
            }
        }
        Self(folder)
    }

    /// The group of all that is in no other.
    pub fn root() -> Self {
        Self(PathBuf::from(ROOT))
    }

    pub fn set(&self, file: &str, text: &str) {
        write(&self.0.join(file), text);
    }

    pub fn get(&self, file: &str) -> String {
        fs::read_to_string(self.0.join(file)).unwrap().trim().to_owned()
    }

    /// Moves a process here.
    pub fn take(&self, process: u32) {
        self.set("cgroup.procs", &process.to_string());
    }

    /// A value of a file of names and values.
    pub fn value(&self, file: &str, name: &str) -> u64 {
        let text = self.get(file);
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("no {name}: {text}"))
    }
}

fn write(file: &Path, text: &str) {
    fs::write(file, text).unwrap_or_else(|why| panic!("{text:?} to {}: {why}", file.display()));
}

/// From now on the cgroup of this process is the root of what it and its children are shown.
#[expect(
    deprecated,
    reason = "this namespace shares no memory or descriptors: it is as safe as it was"
)]
pub fn begin_namespace() {
    rustix::thread::unshare(rustix::thread::UnshareFlags::NEWCGROUP).unwrap();
}

/// Lets no process be frozen, so that all can be ended.
pub fn thaw_all() {
    for group in groups() {
        // Most were never frozen.
        let _ = fs::write(group.join("cgroup.freeze"), "0");
    }
}

/// Removes what a scenario made, once its processes are gone.
pub fn remove_all() {
    groups().iter().for_each(|group| remove(group));
}

fn remove(group: &Path) {
    let entries = fs::read_dir(group).into_iter().flatten().flatten();
    entries.filter(is_folder).for_each(|below| remove(&below.path()));
    // The next scenario will show it.
    let _ = fs::remove_dir(group);
}

fn is_folder(entry: &fs::DirEntry) -> bool {
    entry.file_type().is_ok_and(|kind| kind.is_dir())
}

fn groups() -> Vec<PathBuf> {
    let entries = fs::read_dir(ROOT).into_iter().flatten().flatten();
    let made = |entry: &fs::DirEntry| {
        PREFIXES.iter().any(|prefix| entry.file_name().to_string_lossy().starts_with(prefix))
    };
    entries.filter(made).map(|entry| entry.path()).collect()
}
