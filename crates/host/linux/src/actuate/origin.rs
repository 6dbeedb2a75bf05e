//! Where a cgroup namespace begins in a hierarchy.
//!
//! # Problem
//! A process in a cgroup namespace is shown the paths of cgroups as they are seen from the namespace's root
//! (cgroup_namespaces(7)): `/` is that root, `/../../a` is two levels up and one down. The same cgroup has another path
//! for each reader then, and no path says what the root itself is called.
//!
//! # Approach
//! Where a mount shows more than the namespace, the kernel shows its root as so many levels above the namespace's
//! (`/../..`). So this process's own cgroup lies that many levels below the mount's top, less those that its own
//! path goes up, and then down by its own path. It is found there by its list of processes ([`Origin::find`]).
//! The names on the way to it are what each `..` stands for ([`Origin::absolute`]).
//!
//! # Terms and units
//! *Absolute*: from the top of what is mounted; that is the node's own root where the node's tree is mounted.
//!
//! # Properties
//! - A path is what a walk over the tree makes of it (`a_shown_path_leads_to_its_cgroup`), and one beyond what is
//!   mounted has no absolute form (`what_is_not_mounted_has_no_absolute_path`).
//! - The namespace's root is found, also from another cgroup (`the_root_is_found_by_this_process`).

use std::fs;
use std::path::{Path, PathBuf};

/// Cgroups of one level that are looked through.
const MOST: usize = 100_000;

/// A path as the kernel shows it in a namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shown<'a> {
    /// Levels up from the namespace's root.
    pub up: usize,
    /// What follows, as `/a/b`; empty if nothing does.
    pub down: &'a str,
}

impl<'a> Shown<'a> {
    pub fn parse(path: &'a str) -> Self {
        let above = |path: &'a str| {
            let rest = path.strip_prefix("/..")?;
            (rest.is_empty() || rest.starts_with('/')).then_some(rest)
        };
        let (mut up, mut down) = (0, path);
        while let Some(rest) = above(down) {
            (up, down) = (up + 1, rest);
        }
        Self { up, down: if down == "/" { "" } else { down } }
    }
}

/// Where the namespace of this process begins.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Origin {
    /// So many levels below the top of the mount.
    depth: usize,
    /// The names that lead there from the top, as far as they are known.
    names: Vec<String>,
}

impl Origin {
    /// By a mount at `point`, whose root is shown as `root`, and this process, whose cgroup is shown as `own`. None if
    /// it is not found there, though it should be.
    pub fn find(root: &str, point: &Path, own: &str, process: u32) -> Option<Self> {
        let (root, own) = (Shown::parse(root), Shown::parse(own));
        if root.up == 0 || !root.down.is_empty() {
            return Some(Self::default());
        }
        // A process that left the namespace's root upwards shows the names down to where it left.
        let known = root.up.checked_sub(own.up)?;
        let names = names_to(point, known, own.down, process)?;
        Some(Self { depth: root.up, names })
    }

    /// Is the path of every cgroup that this process may see the same for all readers?
    pub fn is_top(&self) -> bool {
        self.depth == 0
    }

    /// The path from the top of the mount; none for a cgroup that is not mounted, or whose names are not known.
    pub fn absolute(&self, shown: &str) -> Option<String> {
        let Shown { up, down } = Shown::parse(shown);
        let names = self.names.get(..self.depth.checked_sub(up)?)?;
        let path = names.iter().fold(String::new(), |path, name| path + "/" + name) + down;
        Some(if path.is_empty() { "/".to_owned() } else { path })
    }
}

/// The names of the cgroup this many levels below `top` under which the cgroup at `down` has the process.
fn names_to(top: &Path, levels: usize, down: &str, process: u32) -> Option<Vec<String>> {
    let mut level = vec![top.to_owned()];
    for _ in 0..levels {
        level = level.iter().flat_map(|folder| folders_in(folder)).take(MOST).collect();
    }
    let found = level.into_iter().find(|folder| {
        let folder = folder.join(down.trim_start_matches('/'));
        let members = fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
        members.lines().any(|member| member.parse() == Ok(process))
    })?;
    let names = found.strip_prefix(top).ok()?.iter();
    names.map(|name| name.to_str().map(str::to_owned)).collect()
}

fn folders_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let is_folder = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
    entries.filter(is_folder).map(|entry| entry.path()).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ME: u32 = 4711;

    /// A tree with the namespace's root at `/pods/pod/box`, and this process in some cgroup.
    fn tree(own: &str) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for path in ["pods/pod/box/inner", "pods/pod/other", "pods/q/box", "system/a/b"] {
            fs::create_dir_all(root.path().join(path)).unwrap();
            fs::write(root.path().join(path).join("cgroup.procs"), "1\n47110\n").unwrap();
        }
        fs::write(root.path().join(own).join("cgroup.procs"), format!("12\n{ME}\n")).unwrap();
        root
    }

    fn from(names: &str) -> Origin {
        let names: Vec<String> = names.split_terminator('/').map(str::to_owned).collect();
        Origin { depth: names.len(), names }
    }

    #[test]
    fn the_root_is_found_by_this_process() {
        let find = |root, own_folder, own| {
            let tree = tree(own_folder);
            Origin::find(root, tree.path(), own, ME)
        };
        let origin = from("pods/pod/box");
        assert_eq!(find("/../../..", "pods/pod/box", "/"), Some(origin.clone()));
        assert_eq!(find("/../../..", "pods/pod/box/inner", "/inner"), Some(origin));
        // It was moved out of its namespace before this: the last name is not known.
        let moved = find("/../../..", "pods/pod/other", "/../other").unwrap();
        assert_eq!(moved.absolute("/../../q").unwrap(), "/pods/q");
        assert_eq!(moved.absolute("/../other").unwrap(), "/pods/pod/other");
        assert_eq!(moved.absolute("/inner"), None);
        // Part of the tree is mounted, or the namespace's own, or another one's.
        let part = Origin::find("/..", &tree("pods/pod/box").path().join("pods/pod"), "/", ME);
        assert_eq!(part.unwrap(), from("box"));
        for root in ["/", "/../other", "/inner"] {
            assert_eq!(find(root, "pods/pod/box", "/"), Some(Origin::default()));
        }
        for (root, own) in [("/../..", "/"), ("/..", "/../../system"), ("/../../..", "/inner")] {
            assert_eq!(find(root, "pods/pod/box", own), None, "{root} {own}");
        }
    }

    #[test]
    fn what_is_not_mounted_has_no_absolute_path() {
        let origin = from("pod/box");
        assert_eq!(origin.absolute("/../.."), Some("/".to_owned()));
        assert_eq!(origin.absolute("/../../..a"), Some("/..a".to_owned()), "a name of its own");
        assert_eq!(origin.absolute("/../../.."), None);
        assert_eq!(origin.absolute("/../../../x"), None);
        assert_eq!(Origin::default().absolute("/x"), Some("/x".to_owned()));
        assert_eq!(Origin::default().absolute("/"), Some("/".to_owned()));
        assert_eq!(Origin::default().absolute("/../x"), None);
    }

    fn any_path() -> impl Strategy<Value = Vec<String>> {
        prop::collection::vec("[ab]{1,2}(\\.\\.)?", 0..5)
    }

    proptest! {
        /// The kernel's way (kernfs_path_from_node): up to what both have in common, then down.
        #[test]
        fn a_shown_path_leads_to_its_cgroup(root in any_path(), cgroup in any_path()) {
            let common = root.iter().zip(&cgroup).take_while(|(a, b)| a == b).count();
            let down: Vec<_> = cgroup.iter().skip(common).map(|name| format!("/{name}")).collect();
            let shown = "/..".repeat(root.len() - common) + &down.concat();
            let shown = if shown.is_empty() { "/" } else { &shown };
            let origin = Origin { depth: root.len(), names: root };
            prop_assert_eq!(origin.absolute(shown).unwrap(), format!("/{}", cgroup.join("/")));
        }
    }
}
