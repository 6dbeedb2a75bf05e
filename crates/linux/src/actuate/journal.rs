//! The write-ahead journal: what a manager is about to change, written before
//! it does, so that whoever comes after a crash can put it back.
//!
//! One file for each manager, JSON lines. The first line says what the file
//! is; a `saved` line holds what a thread had before its first change, a later
//! one replaces it (somebody else changed the thread); a `set` line what will
//! be in force on it from now on. The manager holds a lock (`flock`) on its
//! journal as long as it lives. Lines are single appended writes and need no
//! `fsync`: only a crash of the machine could lose them, and that ends the
//! threads too (the boot id tells). A last line that was cut short announces
//! a change that was never made.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, OFlags, flock, ftruncate};
use serde::{Deserialize, Serialize};

use super::book::Book;
use super::kernel::{ThreadKey, facts, now_ticks};
use super::settings::{InForce, Saved};
use super::state_dir::{StateDir, StateDirError};

const FORMAT: &str = "symbiont-journal";
const VERSION: u32 = 1;
const PREFIX: &str = "journal-";
/// No journal that was kept bounded comes near this size.
const MOST_BYTES: u64 = 64 << 20;
/// Lines beyond four for each live thread that may gather before a rewrite.
const SPARE_LINES: usize = 1024;

/// The first line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Header {
    format: String,
    version: u32,
    /// Which boot of the machine; another one has other threads.
    boot: String,
    /// Which process numbers are meant (the PID namespace).
    numbers: String,
    /// The manager's process.
    pub manager: ThreadKey,
    /// When the journal began, in clock ticks since boot.
    pub began: u64,
    /// The same for people: seconds since 1970.
    pub began_unix: u64,
}

impl Header {
    /// The header of a journal that this process begins now.
    fn begin() -> Self {
        let me = std::process::id();
        let born = facts(me, me).ok().flatten().map_or(0, |facts| facts.key.born);
        Self {
            format: FORMAT.to_owned(),
            version: VERSION,
            boot: boot_id(),
            numbers: number_space(),
            manager: ThreadKey { process: me, thread: me, born },
            began: now_ticks(),
            began_unix: std::time::SystemTime::now()
                .duration_since(std::time::UNIX_EPOCH)
                .map_or(0, |age| age.as_secs()),
        }
    }

    /// Was it written since the machine last booted?
    #[must_use]
    pub fn is_of_this_boot(&self) -> bool {
        self.boot == boot_id()
    }

    /// Do its process numbers mean the processes that we see?
    #[must_use]
    pub fn has_our_numbers(&self) -> bool {
        self.numbers == number_space()
    }
}

fn boot_id() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

fn number_space() -> String {
    std::fs::read_link("/proc/self/ns/pid")
        .map_or_else(|_| String::new(), |name| name.to_string_lossy().into_owned())
}

/// Any line but the first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Line {
    /// What a thread had before us.
    Saved(ThreadKey, Saved),
    /// What of ours will be in force on it.
    Set(ThreadKey, InForce),
}

/// A journal that cannot be understood. Nothing was changed because of it.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The file cannot be read or written.
    #[error(transparent)]
    File(#[from] StateDirError),
    /// It is no journal of Symbiont's.
    #[error("{path} is not a Symbiont journal ({why}); move it away")]
    NotAJournal {
        /// The file.
        path: PathBuf,
        /// What is wrong with its first line.
        why: String,
    },
    /// It was written by another version of Symbiont.
    #[error(
        "{path} has format version {found}, this Symbiont knows {VERSION}: restore with the version that wrote it"
    )]
    OtherVersion {
        /// The file.
        path: PathBuf,
        /// The version that it has.
        found: u32,
    },
    /// A line before the last one is damaged.
    #[error(
        "{path}, line {line} is damaged ({why}); nothing was restored from it: check the masks by hand (taskset -p), then remove it"
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Counted from 1.
        line: usize,
        /// What is wrong.
        why: String,
    },
    /// Its process numbers mean other processes than those that we see.
    #[error("{path} was written in another PID namespace (a container): restore from inside it")]
    OtherNumbers {
        /// The file.
        path: PathBuf,
    },
}

/// Reads a whole journal.
///
/// # Errors
/// [`JournalError`], naming the line.
pub(super) fn parse(path: &Path, text: &[u8]) -> Result<(Header, Book), JournalError> {
    let not = |why: String| JournalError::NotAJournal { path: path.to_owned(), why };
    let mut lines = text.split_inclusive(|&byte| byte == b'\n').enumerate().peekable();
    let (_, first) = lines.next().ok_or_else(|| not("it is empty".to_owned()))?;
    #[derive(Deserialize)]
    struct Kind {
        format: String,
        version: u32,
    }
    let kind: Kind = serde_json::from_slice(first).map_err(|error| not(error.to_string()))?;
    if kind.format != FORMAT {
        return Err(not(format!("its format is '{}'", kind.format)));
    }
    if kind.version != VERSION {
        return Err(JournalError::OtherVersion { path: path.to_owned(), found: kind.version });
    }
    let header: Header = serde_json::from_slice(first).map_err(|error| not(error.to_string()))?;
    let mut book = Book::new(header.began);
    while let Some((index, line)) = lines.next() {
        if lines.peek().is_none() && line.last() != Some(&b'\n') {
            break;
        }
        let damaged =
            |why: String| JournalError::Damaged { path: path.to_owned(), line: index + 1, why };
        match serde_json::from_slice(line) {
            Ok(Line::Saved(key, saved)) => book.save(key, saved),
            Ok(Line::Set(key, in_force)) if book.knows(&key) => book.set(&key, in_force),
            Ok(Line::Set(key, _)) => return Err(damaged(format!("{key} was not saved before"))),
            Err(error) => return Err(damaged(error.to_string())),
        }
    }
    Ok((header, book))
}

/// A manager's own journal, open and locked.
#[derive(Debug)]
pub(super) struct Journal {
    dir: StateDir,
    name: String,
    header: Header,
    file: File,
    bytes: u64,
    lines: usize,
    removed: bool,
}

impl Journal {
    /// Begins this process's journal.
    pub fn begin(dir: StateDir) -> Result<Self, StateDirError> {
        let header = Header::begin();
        // One process may hold several actuators (tests do), each with its own.
        let taken = |name: &str| dir.open_file(name, OFlags::RDONLY).is_ok();
        let name = (0u32..)
            .map(|n| format!("{PREFIX}{}-{}-{n}", header.manager.process, header.manager.born))
            .find(|name| !taken(name))
            .unwrap_or_default();
        let (file, bytes) = Self::write_new(&dir, &name, &header, &[])?;
        Ok(Self { dir, name, header, file, bytes, lines: 0, removed: false })
    }

    /// Writes a locked file beside and moves it into place.
    fn write_new(
        dir: &StateDir,
        name: &str,
        header: &Header,
        lines: &[Line],
    ) -> Result<(File, u64), StateDirError> {
        let draft = format!("draft-{name}");
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::APPEND;
        let mut file = dir.open_file(&draft, flags)?;
        let fail = |what, source| StateDirError::Io { what, path: dir.path_of(&draft), source };
        let mut text = to_json(header).map_err(|error| fail("write", error))?;
        text.extend(encode(lines).map_err(|error| fail("write", error))?);
        flock(&file, FlockOperation::NonBlockingLockExclusive)
            .map_err(|error| fail("lock", error.into()))?;
        file.write_all(&text).map_err(|source| fail("write", source))?;
        dir.rename(&draft, name)?;
        Ok((file, text.len() as u64))
    }

    /// Appends lines: all of them, or on an error none.
    pub fn note(&mut self, lines: &[Line]) -> Result<(), StateDirError> {
        if self.removed {
            return self.rewrite(lines);
        }
        let path = || self.dir.path_of(&self.name);
        let fail = |source| StateDirError::Io { what: "write", path: path(), source };
        let text = encode(lines).map_err(fail)?;
        if let Err(source) = self.file.write_all(&text) {
            // Whatever arrived of it must not damage the next line.
            let _ = ftruncate(&self.file, self.bytes);
            return Err(fail(source));
        }
        self.bytes += text.len() as u64;
        self.lines += lines.len();
        Ok(())
    }

    /// Does it hold many more lines than this many threads need?
    pub fn is_bloated(&self, threads: usize) -> bool {
        self.lines > 4 * threads + SPARE_LINES
    }

    /// Replaces all lines.
    pub fn rewrite(&mut self, lines: &[Line]) -> Result<(), StateDirError> {
        let (file, bytes) = Self::write_new(&self.dir, &self.name, &self.header, lines)?;
        (self.file, self.bytes, self.lines) = (file, bytes, lines.len());
        self.removed = false;
        Ok(())
    }

    /// Removes the file, since everything was put back. A later note begins it anew.
    pub fn remove(&mut self) -> Result<(), StateDirError> {
        self.removed = true;
        self.dir.remove(&self.name)
    }

    /// When it began, in clock ticks since boot.
    pub fn began(&self) -> u64 {
        self.header.began
    }
}

fn to_json<T: Serialize>(value: &T) -> io::Result<Vec<u8>> {
    let mut text = serde_json::to_vec(value)?;
    text.push(b'\n');
    Ok(text)
}

fn encode(lines: &[Line]) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    for line in lines {
        text.extend(to_json(line)?);
    }
    Ok(text)
}

/// A journal that was found in a state directory.
pub(super) enum Found {
    /// Its manager lives (or somebody else restores from it just now).
    Held(PathBuf),
    /// Its manager is dead. The open file keeps others from restoring from it.
    Left { name: String, path: PathBuf, text: Vec<u8>, _lock: File },
}

/// All journals of a state directory.
pub(super) fn find_all(dir: &StateDir) -> Result<Vec<Result<Found, StateDirError>>, StateDirError> {
    let names = dir.names()?.into_iter().filter_map(|name| name.into_string().ok());
    Ok(names.filter(|n| n.starts_with(PREFIX)).filter_map(|n| find(dir, n).transpose()).collect())
}

fn find(dir: &StateDir, name: String) -> Result<Option<Found>, StateDirError> {
    let path = dir.path_of(&name);
    let file = match dir.open_file(&name, OFlags::RDONLY | OFlags::NONBLOCK) {
        Ok(file) => file,
        Err(StateDirError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
        return Ok(Some(Found::Held(path)));
    }
    if !dir.still_names(&name, &file) {
        // Rewritten, or removed, between opening and locking.
        return Ok(None);
    }
    let mut text = Vec::new();
    match (&file).take(MOST_BYTES).read_to_end(&mut text) {
        Ok(_) => Ok(Some(Found::Left { name, path, text, _lock: file })),
        Err(source) => Err(StateDirError::Io { what: "read", path, source }),
    }
}

#[cfg(test)]
mod tests;
