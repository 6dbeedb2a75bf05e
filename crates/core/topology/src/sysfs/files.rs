//! Files below the root of a `/sys` tree.

use std::cell::RefCell;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::left_out::LeftOut;
use super::{SysfsError, value};
use crate::cpuset::MAX_CPU;
use crate::{CpuSet, PuId};

/// No attribute is longer than this; the kernel itself stops at a page, and
/// at more only for bit maps.
pub(crate) const MAX_BYTES: u64 = 1 << 20;

/// How much of a malformed file an error quotes.
const QUOTED_CHARS: usize = 60;

/// Where the files lie. Paths are below what stands for `/sys`.
pub(crate) trait Tree {
    /// What stands for `/sys`, for errors.
    fn root(&self) -> &Path;

    /// What a file holds.
    fn read(&self, path: &str) -> io::Result<Vec<u8>>;

    /// The names in a directory, in any order.
    fn names(&self, directory: &str) -> io::Result<Vec<String>>;
}

/// A directory that holds what `/sys` holds.
pub(crate) struct Folder<'a>(pub(crate) &'a Path);

impl Tree for Folder<'_> {
    fn root(&self) -> &Path {
        self.0
    }

    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let file = symbiont_safe_open::open(&self.0.join(path))?;
        file.take(MAX_BYTES).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn names(&self, directory: &str) -> io::Result<Vec<String>> {
        let entries = fs::read_dir(self.0.join(directory))?.collect::<io::Result<Vec<_>>>()?;
        Ok(entries.iter().filter_map(|entry| entry.file_name().into_string().ok()).collect())
    }
}

/// What is read of it.
pub(super) struct Sys<'a> {
    tree: &'a dyn Tree,
    left_out: RefCell<Vec<LeftOut>>,
}

impl<'a> Sys<'a> {
    pub(super) fn new(tree: &'a dyn Tree) -> Self {
        Self { tree, left_out: RefCell::default() }
    }

    fn read(&self, path: &str) -> io::Result<String> {
        Ok(String::from_utf8_lossy(&self.tree.read(path)?).into_owned())
    }

    fn path(&self, path: &str) -> PathBuf {
        self.tree.root().join(path)
    }

    /// What was not understood and left out.
    pub(super) fn left_out(self) -> Vec<LeftOut> {
        self.left_out.into_inner()
    }

    /// Names something that is left out.
    pub(super) fn leave_out(&self, path: &str, why: &SysfsError) {
        LeftOut::add(&mut self.left_out.borrow_mut(), path, why);
    }

    /// A value that may be missing; what is not understood is left out.
    pub(super) fn value<T>(
        &self,
        path: &str,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Option<T> {
        self.checked(path, parse).unwrap_or_else(|why| {
            self.leave_out(path, &why);
            None
        })
    }

    /// A CPU list that may be missing; what is not understood is left out.
    pub(super) fn list(&self, path: &str) -> Option<CpuSet> {
        self.value(path, value::list)
    }

    /// CPUs by a list, or by a bit map where it is missing or not understood; with the path of what was read.
    pub(super) fn list_or_map<'p>(&self, list: &'p str, map: &'p str) -> Option<(&'p str, CpuSet)> {
        let by_map = || self.value(map, value::bit_map).map(|set| (map, set));
        self.list(list).map(|set| (list, set)).or_else(by_map)
    }

    /// A value that may be missing, but must be understood.
    pub(super) fn checked<T>(
        &self,
        path: &str,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Result<Option<T>, SysfsError> {
        match self.read(path) {
            Ok(text) => parsed(self.path(path), &text, parse).map(Some),
            Err(error) if means_missing(&error) => Ok(None),
            Err(source) => Err(SysfsError::Read { path: self.path(path), source }),
        }
    }

    /// The online CPUs. Where the kernel does not list them, those that have a folder and are not offline by
    /// a file of their own.
    pub(super) fn online(&self) -> Result<CpuSet, SysfsError> {
        const CPUS: &str = "devices/system/cpu";
        let listed = format!("{CPUS}/online");
        let path = self.path(&listed);
        let source = match self.read(&listed) {
            Ok(text) => return parsed(path, &text, value::list),
            Err(source) => source,
        };
        let file = |number: &u32| format!("{CPUS}/cpu{number}/online");
        let mut numbers = self.numbered(CPUS, "cpu");
        numbers.retain(|number| *number <= MAX_CPU);
        numbers.retain(|number| self.value(&file(number), value::number) != Some(0));
        match numbers.is_empty() || !means_missing(&source) {
            true => Err(SysfsError::Read { path, source }),
            false => Ok(numbers.into_iter().map(PuId).collect()),
        }
    }

    /// The numbers N of the entries `{prefix}N` of a directory, in order; none
    /// if there is no such directory, or it cannot be read.
    pub(super) fn numbered(&self, directory: &str, prefix: &str) -> Vec<u32> {
        let names = match self.tree.names(directory) {
            Ok(names) => names,
            Err(error) if means_missing(&error) => return Vec::new(),
            Err(source) => {
                let path = self.path(directory);
                self.leave_out(directory, &SysfsError::Read { path, source });
                return Vec::new();
            }
        };
        let number = |name: &String| name.strip_prefix(prefix)?.parse().ok();
        let mut numbers: Vec<u32> = names.iter().filter_map(number).collect();
        numbers.sort_unstable();
        numbers.dedup();
        numbers
    }

    /// An error about what a file holds.
    pub(super) fn malformed(&self, path: &str, text: &str, reason: String) -> SysfsError {
        malformed(self.path(path), text, reason)
    }
}

fn parsed<T>(
    path: PathBuf,
    text: &str,
    parse: impl FnOnce(&str) -> Result<T, String>,
) -> Result<T, SysfsError> {
    // Some kernels end a list with a NUL byte (Linux 5.15-rc1 on a Kunpeng 920).
    let text = text.trim_matches(|c: char| c.is_whitespace() || c == '\0');
    parse(text).map_err(|reason| malformed(path, text, reason))
}

fn malformed(path: PathBuf, text: &str, reason: String) -> SysfsError {
    SysfsError::Malformed { path, text: text.chars().take(QUOTED_CHARS).collect(), reason }
}

/// Some attributes exist but have no value: the kernel then says
/// that the device is not there, or that it does not know.
fn means_missing(error: &io::Error) -> bool {
    const ENXIO: i32 = 6;
    const ENODEV: i32 = 19;
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory | io::ErrorKind::Unsupported
    ) || matches!(error.raw_os_error(), Some(ENXIO | ENODEV))
}
