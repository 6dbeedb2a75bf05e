//! Files below the root of a `/sys` tree.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::{SysfsError, value};
use crate::CpuSet;

/// No attribute is longer than this; the kernel itself stops at a page, and
/// at more only for bit maps.
const MAX_BYTES: u64 = 1 << 20;

/// How much of a malformed file an error quotes.
const QUOTED_CHARS: usize = 60;

/// A directory that holds what `/sys` holds.
pub(super) struct Sys<'a> {
    root: &'a Path,
}

impl<'a> Sys<'a> {
    pub(super) fn new(root: &'a Path) -> Self {
        Self { root }
    }

    /// A value that may be missing.
    pub(super) fn value<T>(
        &self,
        path: &str,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Result<Option<T>, SysfsError> {
        let path = self.root.join(path);
        match read(&path) {
            Ok(text) => parsed(path, text.trim(), parse).map(Some),
            Err(error) if means_missing(&error) => Ok(None),
            Err(source) => Err(SysfsError::Read { path, source }),
        }
    }

    /// A CPU list that may be missing.
    pub(super) fn list(&self, path: &str) -> Result<Option<CpuSet>, SysfsError> {
        self.value(path, value::list)
    }

    /// A CPU list that must be there.
    pub(super) fn required_list(&self, path: &str) -> Result<CpuSet, SysfsError> {
        let path = self.root.join(path);
        match read(&path) {
            Ok(text) => parsed(path, text.trim(), value::list),
            Err(source) => Err(SysfsError::Read { path, source }),
        }
    }

    /// The numbers N of the entries `{prefix}N` of a directory, in order; none
    /// if there is no such directory.
    pub(super) fn numbered(&self, directory: &str, prefix: &str) -> Result<Vec<u32>, SysfsError> {
        let path = self.root.join(directory);
        let entries = fs::read_dir(&path).and_then(Iterator::collect::<io::Result<Vec<_>>>);
        let entries = match entries {
            Ok(entries) => entries,
            Err(error) if means_missing(&error) => return Ok(Vec::new()),
            Err(source) => return Err(SysfsError::Read { path, source }),
        };
        let number = |name: &str| name.strip_prefix(prefix)?.parse().ok();
        let mut numbers: Vec<u32> =
            entries.iter().filter_map(|e| number(e.file_name().to_str()?)).collect();
        numbers.sort_unstable();
        numbers.dedup();
        Ok(numbers)
    }

    /// An error about what a file holds.
    pub(super) fn malformed(&self, path: &str, text: &str, reason: String) -> SysfsError {
        malformed(self.root.join(path), text, reason)
    }
}

fn read(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(MAX_BYTES).read_to_string(&mut text)?;
    Ok(text)
}

fn parsed<T>(
    path: PathBuf,
    text: &str,
    parse: impl FnOnce(&str) -> Result<T, String>,
) -> Result<T, SysfsError> {
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
