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
const MAX_BYTES: u64 = 1 << 20;

/// How much of a malformed file an error quotes.
const QUOTED_CHARS: usize = 60;

/// A directory that holds what `/sys` holds.
pub(super) struct Sys<'a> {
    root: &'a Path,
    left_out: RefCell<Vec<LeftOut>>,
}

impl<'a> Sys<'a> {
    pub(super) fn new(root: &'a Path) -> Self {
        Self { root, left_out: RefCell::default() }
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
        let path = self.root.join(path);
        match read(&path) {
            Ok(text) => parsed(path, &text, parse).map(Some),
            Err(error) if means_missing(&error) => Ok(None),
            Err(source) => Err(SysfsError::Read { path, source }),
        }
    }

    /// The online CPUs. Where the kernel does not list them, those that have a folder and are not offline by
    /// a file of their own.
    pub(super) fn online(&self) -> Result<CpuSet, SysfsError> {
        const CPUS: &str = "devices/system/cpu";
        let path = self.root.join(CPUS).join("online");
        let source = match read(&path) {
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
        let path = self.root.join(directory);
        let entries = fs::read_dir(&path).and_then(Iterator::collect::<io::Result<Vec<_>>>);
        let entries = match entries {
            Ok(entries) => entries,
            Err(error) if means_missing(&error) => return Vec::new(),
            Err(source) => {
                self.leave_out(directory, &SysfsError::Read { path, source });
                return Vec::new();
            }
        };
        let number = |name: &str| name.strip_prefix(prefix)?.parse().ok();
        let mut numbers: Vec<u32> =
            entries.iter().filter_map(|e| number(e.file_name().to_str()?)).collect();
        numbers.sort_unstable();
        numbers.dedup();
        numbers
    }

    /// An error about what a file holds.
    pub(super) fn malformed(&self, path: &str, text: &str, reason: String) -> SysfsError {
        malformed(self.root.join(path), text, reason)
    }
}

fn read(path: &Path) -> io::Result<String> {
    let mut bytes = Vec::new();
    symbiont_safe_open::open(path)?.take(MAX_BYTES).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
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
