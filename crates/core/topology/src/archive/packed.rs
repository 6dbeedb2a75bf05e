//! What is kept of an archive, as a tree.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use super::ArchiveError;
use crate::sysfs::files::Tree;

/// What a copy of `/sys` has.
const CPUS: &str = "devices/system/cpu/";
/// More links on the way to a file are a circle.
const MOST_LINKS: usize = 40;

/// By path in the archive, without `.`, `..` and a leading `/`.
pub(super) type Entries = BTreeMap<String, Entry>;

/// A file or a link; folders are what their files make them.
#[derive(Debug)]
pub(super) enum Entry {
    File(Vec<u8>),
    /// To a path from the link's folder.
    SymbolicLink(String),
    /// To a path in the archive.
    HardLink(String),
}

/// The copy of `/sys` in an archive.
pub(super) struct Packed {
    entries: Entries,
    /// Path in the archive, empty or with `/` at the end.
    root: String,
    /// The same behind the archive's own path.
    shown: PathBuf,
}

/// Is the file one of those that a machine is read of, or on the way to it?
pub(super) fn is_wanted(path: &str) -> bool {
    ["devices/system/cpu/", "devices/system/node/", "devices/cpu_"]
        .iter()
        .any(|folder| path.match_indices(folder).any(|(at, _)| starts_component(path, at)))
}

fn starts_component(path: &str, at: usize) -> bool {
    at == 0 || path.as_bytes().get(at - 1) == Some(&b'/')
}

impl Packed {
    /// Searches for the copy.
    pub(super) fn find(entries: Entries, archive: &str) -> Result<Self, ArchiveError> {
        let mut roots = BTreeSet::new();
        for path in entries.keys() {
            if let Some(at) = path.find(CPUS).filter(|&at| starts_component(path, at)) {
                let root = path.get(..at).unwrap_or_default();
                roots.insert((root.matches('/').count(), root.to_owned()));
            }
        }
        let mut roots = roots.into_iter();
        let path = archive.to_owned();
        let Some((depth, root)) = roots.next() else { return Err(ArchiveError::NoSys { path }) };
        if let Some((_, second)) = roots.next().filter(|(other, _)| *other == depth) {
            return Err(ArchiveError::Several { path, first: root, second });
        }
        let shown = Path::new(archive).join(&root);
        Ok(Self { entries, root, shown })
    }

    /// The path in the archive to which a path below the root leads, links followed.
    fn follow(&self, path: &str) -> Option<String> {
        let mut ahead = components(&format!("{}{path}", self.root));
        let mut at: Vec<String> = Vec::new();
        let mut links = 0;
        while let Some(next) = ahead.pop() {
            if next == ".." {
                at.pop()?;
                continue;
            }
            at.push(next);
            let target = match self.entries.get(&at.join("/")) {
                Some(Entry::SymbolicLink(target)) if !target.starts_with('/') => {
                    at.pop();
                    target
                }
                Some(Entry::SymbolicLink(_)) => return None,
                Some(Entry::HardLink(target)) => {
                    at.clear();
                    target
                }
                Some(Entry::File(_)) | None => continue,
            };
            links += 1;
            if links > MOST_LINKS {
                return None;
            }
            ahead.extend(components(target));
        }
        Some(at.join("/"))
    }
}

impl Tree for Packed {
    fn root(&self) -> &Path {
        &self.shown
    }

    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        match self.follow(path).and_then(|path| self.entries.get(&path)) {
            Some(Entry::File(bytes)) => Ok(bytes.clone()),
            _ => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn names(&self, directory: &str) -> io::Result<Vec<String>> {
        let missing = || io::Error::from(io::ErrorKind::NotFound);
        let folder = self.follow(directory).ok_or_else(missing)? + "/";
        let below = self.entries.range(folder.clone()..).map(|(path, _)| path);
        let below = below.map_while(|path| path.strip_prefix(&folder));
        let mut names: Vec<String> =
            below.filter_map(|path| path.split('/').next()).map(str::to_owned).collect();
        names.dedup();
        match names.is_empty() {
            true => Err(missing()),
            false => Ok(names),
        }
    }
}

/// The parts of a path, the last one first.
fn components(path: &str) -> Vec<String> {
    path.rsplit('/').filter(|part| !matches!(*part, "" | ".")).map(str::to_owned).collect()
}
