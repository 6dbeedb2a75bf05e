//! From the bytes of an archive to what is kept of it.
//!
//! Long names and links are entries of their own, in GNU's form or in that of POSIX (pax); they are read
//! here, since they may be as long as an archive says.

use std::cell::Cell;
use std::io::{self, Read};
use std::rc::Rc;

use tar::{Archive, Entry as TarEntry, EntryType};

use super::packed::{Entries, Entry, is_wanted};
use super::{ArchiveError, Bounds};
use crate::counted;
use crate::sysfs::files::MAX_BYTES;

/// Paths of the kernel are not longer.
const LONGEST_PATH: u64 = 4096;
/// A pax header holds a path, a link and some numbers.
const LONGEST_PAX: u64 = 4 * LONGEST_PATH;
/// What an entry takes in memory, about, its texts apart.
const ENTRY_BYTES: usize = 64;

/// Counts what was read and ends at a bound.
struct Bounded<R> {
    inner: R,
    left: Rc<Cell<u64>>,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let left = self.left.get();
        if left == 0 && !to.is_empty() {
            return Err(io::Error::other("the archive is too large"));
        }
        let most = usize::try_from(left).unwrap_or(usize::MAX).min(to.len());
        let read = self.inner.read(to.get_mut(..most).unwrap_or_default())?;
        self.left.set(left.saturating_sub(read as u64));
        Ok(read)
    }
}

/// Names that stand before the entry that they are of.
#[derive(Default)]
struct Names {
    path: Option<Vec<u8>>,
    link: Option<Vec<u8>>,
}

/// Reads an archive, and keeps what a machine is read of.
pub(super) fn unpack(
    from: impl Read,
    shown: &str,
    bounds: Bounds,
) -> Result<Entries, ArchiveError> {
    let left = Rc::new(Cell::new(bounds.unpacked));
    let too_large = |bound: String| ArchiveError::TooLarge { path: shown.to_owned(), bound };
    let damaged = |source: io::Error| match left.get() {
        0 => too_large(format!("{} MiB", bounds.unpacked >> 20)),
        _ => ArchiveError::Damaged { path: shown.to_owned(), source },
    };
    let mut archive = Archive::new(Bounded { inner: from, left: Rc::clone(&left) });
    let mut entries = Entries::new();
    let (mut seen, mut kept) = (0, 0);
    let mut names = Names::default();
    for entry in archive.entries().map_err(damaged)?.raw(true) {
        let mut entry = entry.map_err(damaged)?;
        seen += 1;
        if seen > bounds.entries {
            return Err(too_large(counted(bounds.entries, "file")));
        }
        if names.read(&mut entry).map_err(damaged)? {
            continue;
        }
        let Names { path, link } = std::mem::take(&mut names);
        let path = path.unwrap_or_else(|| entry.header().path_bytes().into_owned());
        let path = String::from_utf8_lossy(&path);
        let leads_out = || ArchiveError::LeadsOut { path: shown.to_owned(), entry: cut(&path) };
        let path = plain(&path).ok_or_else(leads_out)?;
        if !is_wanted(&path) || path.len() as u64 > LONGEST_PATH {
            continue;
        }
        let Some(what) = content(&mut entry, link).map_err(damaged)? else { continue };
        kept += path.len() + what.len() + ENTRY_BYTES;
        if kept > bounds.kept {
            return Err(too_large(format!("{} MiB of devices/system", bounds.kept >> 20)));
        }
        entries.insert(path, what);
    }
    Ok(entries)
}

impl Names {
    /// Reads an entry that says something of the next one; true if it is one.
    fn read<R: Read>(&mut self, entry: &mut TarEntry<'_, R>) -> io::Result<bool> {
        match entry.header().entry_type() {
            EntryType::GNULongName => self.path = Some(text(entry)?),
            EntryType::GNULongLink => self.link = Some(text(entry)?),
            EntryType::XHeader => {
                let mut bytes = Vec::new();
                entry.take(LONGEST_PAX).read_to_end(&mut bytes)?;
                for (key, value) in tar::PaxExtensions::new(&bytes).flatten().map(|extension| {
                    (extension.key_bytes().to_owned(), extension.value_bytes().to_owned())
                }) {
                    match key.as_slice() {
                        b"path" => self.path = Some(value),
                        b"linkpath" => self.link = Some(value),
                        _ => {}
                    }
                }
            }
            EntryType::XGlobalHeader => {}
            EntryType::GNUSparse if is_extended(entry) => {
                return Err(io::Error::other(
                    "it holds files with holes; pack it without --sparse",
                ));
            }
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// Does the list of a sparse file's parts go on behind its header?
fn is_extended<R: Read>(entry: &TarEntry<'_, R>) -> bool {
    entry.header().as_gnu().is_some_and(tar::GnuHeader::is_extended)
}

/// A name, which ends at its first 0.
fn text<R: Read>(entry: &mut TarEntry<'_, R>) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // One more, so that a longer one is not taken for another.
    entry.take(LONGEST_PATH + 1).read_to_end(&mut bytes)?;
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    bytes.truncate(end);
    Ok(bytes)
}

/// What is kept of a file or a link; nothing of what is neither.
fn content<R: Read>(
    entry: &mut TarEntry<'_, R>,
    link: Option<Vec<u8>>,
) -> io::Result<Option<Entry>> {
    let header = entry.header();
    let target = || {
        let target = link.or_else(|| header.link_name_bytes().map(std::borrow::Cow::into_owned));
        let target = String::from_utf8_lossy(&target.unwrap_or_default()).into_owned();
        Some(target).filter(|target| target.len() as u64 <= LONGEST_PATH)
    };
    Ok(match header.entry_type() {
        EntryType::Symlink => target().map(Entry::SymbolicLink),
        EntryType::Link => target().map(Entry::HardLink),
        EntryType::Regular | EntryType::Continuous => {
            let mut bytes = Vec::new();
            entry.take(MAX_BYTES).read_to_end(&mut bytes)?;
            // The kernel says 4096 of each file, and tar fills up what is shorter.
            let end = bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
            bytes.truncate(end);
            bytes.shrink_to_fit();
            Some(Entry::File(bytes))
        }
        _ => None,
    })
}

impl Entry {
    fn len(&self) -> usize {
        match self {
            Self::File(bytes) => bytes.len(),
            Self::SymbolicLink(target) | Self::HardLink(target) => target.len(),
        }
    }
}

/// A path without `.` and a leading `/`; none if it leads out.
fn plain(path: &str) -> Option<String> {
    let parts = || path.split('/').filter(|part| !matches!(*part, "" | "."));
    parts().all(|part| part != "..").then(|| parts().collect::<Vec<_>>().join("/"))
}

/// The beginning of a name.
fn cut(name: &str) -> String {
    name.chars().take(80).collect()
}
