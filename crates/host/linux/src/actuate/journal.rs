//! The write-ahead journal: it says what a manager is about to change, so that another process can undo it after
//! a crash.
//!
//! Each manager has one file of JSON lines:
//!
//! ```text
//! {"format":…}        the first line: what the file is, of which boot, PID namespace and manager
//! {"saved":[…]}       what a thread had before its first change; a later one, after another process changed it,
//!                     replaces it
//! {"set":[…]}         what is about to be applied to the thread, and the clock tick before which it was not
//! {"is":[…]}          what is applied to the thread now: the last `set` is over
//! ```
//!
//! As long as a manager lives it holds a lock (`flock`) on its journal. Lines are appended by single writes,
//! without `fsync`: only a crash of the whole machine could lose them, and that ends the threads as well (the
//! boot id shows it). A last line that was cut short announced a change that was never made.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FlockOperation, OFlags, flock, ftruncate};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::journal_state::JournalState;
use super::namespace::{self, FirstProcess, number_space};
use super::settings::{AppliedSettings, Saved};
use super::state_dir::{StateDir, StateDirError};
use super::syscalls::facts;
use super::thread::ThreadKey;
use crate::birth::boot_id;

const FORMAT: &str = "symbiont-journal";
const VERSION: u32 = 3;
const PREFIX: &str = "journal-";
const DRAFT: &str = "draft-journal-";
/// No line comes near this length.
const MOST_BYTES: u64 = 1 << 20;
/// Lines beyond twice the needed ones that may gather before a rewrite.
const SPARE_LINES: usize = 1024;

/// The first line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Header {
    format: String,
    version: u32,
    /// The boot of the machine: after another one, threads are others.
    boot: String,
    /// The PID namespace, which says which processes the numbers mean.
    numbers: String,
    /// The first process with such numbers; none: not known.
    first: Option<FirstProcess>,
    /// The manager's process.
    pub manager: ThreadKey,
    /// When the journal began, in clock ticks since boot.
    pub began: u64,
}

impl Header {
    /// The header of a journal that this process begins now.
    fn begin(began: u64) -> Self {
        let me = std::process::id();
        let born = facts(me, me).ok().flatten().map_or(0, |facts| facts.key.born);
        Self {
            format: FORMAT.to_owned(),
            version: VERSION,
            boot: boot_id(),
            numbers: number_space(),
            first: FirstProcess::of_ours(),
            manager: ThreadKey { process: me, thread: me, born },
            began,
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

    /// Is it of a container whose processes have all ended?
    #[must_use]
    pub fn is_of_a_dead_container(&self) -> bool {
        namespace::is_dead(&self.numbers, self.first.as_ref())
    }
}

/// Any line but the first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Line {
    /// What a thread had before us.
    Saved(ThreadKey, Saved),
    /// What of ours will be applied on it, and the clock tick since boot before which it was not.
    Set(ThreadKey, AppliedSettings, u64),
    /// What of ours is applied on it for certain: what was announced last is over.
    Is(ThreadKey, AppliedSettings),
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
    /// It is another user's, and longer than a manager that keeps its journal bounded would write.
    #[error("{path} is too long to be read for another user: its owner can restore from it")]
    TooLong {
        /// The file.
        path: PathBuf,
    },
    /// Its process numbers mean other processes than those that we see.
    #[error(
        "{path} was written in another PID namespace (a container): restore from inside it, or, \
         when it has ended, outside all containers"
    )]
    OtherNumbers {
        /// The file.
        path: PathBuf,
    },
}

/// Reads a whole journal, however long it is.
///
/// # Errors
/// [`JournalError`], naming the line.
pub(super) fn parse(
    path: &Path,
    text: impl BufRead,
) -> Result<(Header, JournalState), JournalError> {
    let not = |why: String| JournalError::NotAJournal { path: path.to_owned(), why };
    let mut lines = Lines { path, text, number: 0 };
    let first = lines.next()?.ok_or_else(|| not("it is empty".to_owned()))?;
    #[derive(Deserialize)]
    struct Kind {
        format: String,
        version: u32,
    }
    let kind: Kind = serde_json::from_slice(&first).map_err(|error| not(error.to_string()))?;
    if kind.format != FORMAT {
        return Err(not(format!("its format is '{}'", kind.format)));
    }
    if kind.version != VERSION {
        return Err(JournalError::OtherVersion { path: path.to_owned(), found: kind.version });
    }
    let header: Header = serde_json::from_slice(&first).map_err(|error| not(error.to_string()))?;
    let mut state = JournalState::new(header.began);
    while let Some(line) = lines.next()? {
        if line.last() != Some(&b'\n') {
            // The last one, cut short.
            break;
        }
        match serde_json::from_slice(&line) {
            Ok(Line::Saved(key, saved)) => state.save(key, saved),
            Ok(Line::Set(key, applied, since)) if state.knows(&key) => {
                state.set(&key, applied, since);
            }
            Ok(Line::Is(key, applied)) if state.knows(&key) => state.is(&key, applied),
            Ok(Line::Set(key, ..) | Line::Is(key, _)) => {
                return Err(lines.damaged(format!("{key} was not saved before")));
            }
            Err(error) => return Err(lines.damaged(error.to_string())),
        }
    }
    Ok((header, state))
}

/// The lines of a journal, read one by one.
struct Lines<'a, R> {
    path: &'a Path,
    text: R,
    number: usize,
}

impl<R: BufRead> Lines<'_, R> {
    /// The next line with its end; without one if it was cut short.
    fn next(&mut self) -> Result<Option<Vec<u8>>, JournalError> {
        let mut line = Vec::new();
        self.number += 1;
        let read = self.text.by_ref().take(MOST_BYTES).read_until(b'\n', &mut line);
        let path = || self.path.to_owned();
        read.map_err(|source| StateDirError::Io { what: "read", path: path(), source })?;
        if line.len() as u64 == MOST_BYTES && !line.ends_with(b"\n") {
            return Err(self.damaged(format!("it is longer than {MOST_BYTES} bytes")));
        }
        Ok(Some(line).filter(|line| !line.is_empty()))
    }

    fn damaged(&self, why: String) -> JournalError {
        JournalError::Damaged { path: self.path.to_owned(), line: self.number, why }
    }
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
    /// Lines that were needed when it was last written anew.
    needed: usize,
    removed: bool,
}

impl Journal {
    /// Begins this process's journal, at a clock tick since boot.
    pub fn begin(dir: StateDir, began: u64) -> Result<Self, StateDirError> {
        let header = Header::begin(began);
        // One process may hold several actuators (tests do), each with its own.
        let taken = |name: &str| dir.open_file(name, OFlags::RDONLY).is_ok();
        let name = (0u32..)
            .map(|n| format!("{PREFIX}{}-{}-{n}", header.manager.process, header.manager.born))
            .find(|name| !taken(name))
            .unwrap_or_default();
        let (file, bytes) = Self::write_new(&dir, &name, &header, &[])?;
        Ok(Self { dir, name, header, file, bytes, lines: 0, needed: 0, removed: false })
    }

    /// Writes a locked file next to it and moves it into place.
    fn write_new(
        dir: &StateDir,
        name: &str,
        header: &Header,
        lines: &[Line],
    ) -> Result<(File, u64), StateDirError> {
        let draft = format!("draft-{name}");
        let fail = |what, source| StateDirError::Io { what, path: dir.path_of(&draft), source };
        let mut text = to_json(header).map_err(|error| fail("write", error))?;
        text.extend(encode(lines).map_err(|error| fail("write", error))?);
        let mut file = Self::locked_draft(dir, &draft)?;
        file.write_all(&text).map_err(|source| fail("write", source))?;
        dir.rename(&draft, name)?;
        Ok((file, text.len() as u64))
    }

    /// An empty file that is locked and has its name. Until it is locked it
    /// looks to a restoring process as if a dead manager had left it.
    fn locked_draft(dir: &StateDir, draft: &str) -> Result<File, StateDirError> {
        const TRIES: u32 = 1000;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::APPEND;
        for _ in 0..TRIES {
            let file = dir.open_file(draft, flags)?;
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) if dir.still_names(draft, &file) => return Ok(file),
                Ok(()) => {}
                // It is being removed just now.
                Err(Errno::WOULDBLOCK) => std::thread::sleep(Duration::from_millis(1)),
                Err(error) => return Err(dir.failed("lock", draft, error)),
            }
        }
        Err(dir.failed("lock", draft, Errno::WOULDBLOCK))
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

    /// Does it hold many more lines than were needed when it was last written anew? The bound grows with the lines that
    /// are needed, so that the cost of writing anew is a constant for each noted line, however many threads there are.
    pub fn is_bloated(&self) -> bool {
        self.lines > 2 * self.needed + SPARE_LINES
    }

    /// Replaces all lines.
    pub fn rewrite(&mut self, lines: &[Line]) -> Result<(), StateDirError> {
        let (file, bytes) = Self::write_new(&self.dir, &self.name, &self.header, lines)?;
        (self.file, self.bytes) = (file, bytes);
        (self.lines, self.needed) = (lines.len(), lines.len());
        self.removed = false;
        Ok(())
    }

    /// Removes the file, since everything was restored. A later note begins it anew.
    pub fn remove(&mut self) -> Result<(), StateDirError> {
        self.removed = true;
        self.dir.remove(&self.name)
    }

    /// Can a restoring process find it? Always, while it is not needed.
    pub fn is_in_place(&self) -> bool {
        self.dir.is_in_place() && (self.removed || self.dir.still_names(&self.name, &self.file))
    }

    /// Goes on in a state directory that was made again, or with a file that was removed.
    pub fn begin_again(&mut self, lines: &[Line]) -> Result<(), StateDirError> {
        self.dir = StateDir::create(self.dir.path())?;
        if self.removed { Ok(()) } else { self.rewrite(lines) }
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
    /// Its manager lives (or another process restores from it just now). Which one it is, where it says so.
    Held(PathBuf, Option<ThreadKey>),
    /// Its manager is dead. The open file keeps others from restoring from it.
    Left(Left),
}

/// The journal of a dead manager.
pub(super) struct Left {
    pub name: String,
    pub path: PathBuf,
    file: File,
}

impl Left {
    /// How long it is.
    pub fn bytes(&self) -> Result<u64, StateDirError> {
        let data = self.file.metadata();
        let path = || self.path.clone();
        Ok(data
            .map_err(|source| StateDirError::Io { what: "look at", path: path(), source })?
            .len())
    }

    /// Reads it whole.
    ///
    /// # Errors
    /// [`JournalError`], naming the line.
    pub fn read(&self) -> Result<(Header, JournalState), JournalError> {
        parse(&self.path, BufReader::new(&self.file))
    }
}

/// All journals of a state directory.
pub(super) fn find_all(dir: &StateDir) -> Result<Vec<Result<Found, StateDirError>>, StateDirError> {
    let names = dir.names()?.into_iter().filter(|name| name.starts_with(PREFIX));
    Ok(names.filter_map(|name| find(dir, name).transpose()).collect())
}

fn find(dir: &StateDir, name: String) -> Result<Option<Found>, StateDirError> {
    let path = dir.path_of(&name);
    let file = match dir.open_own_file(&name) {
        Ok(file) => file,
        Err(StateDirError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
        return Ok(Some(Found::Held(path, manager(&file))));
    }
    if !dir.still_names(&name, &file) {
        // Rewritten, or removed, between opening and locking.
        return Ok(None);
    }
    Ok(Some(Found::Left(Left { name, path, file })))
}

/// Whose journal it is, as long as its numbers mean the same here.
fn manager(file: &File) -> Option<ThreadKey> {
    let mut first = String::new();
    BufReader::new(file).take(MOST_BYTES).read_line(&mut first).ok()?;
    let header: Header = serde_json::from_str(&first).ok()?;
    header.has_our_numbers().then_some(header.manager)
}

/// Removes journals that a dead manager had not finished to write.
pub(super) fn remove_drafts(dir: &StateDir) -> Result<(), StateDirError> {
    for name in dir.names()?.iter().filter(|name| name.starts_with(DRAFT)) {
        let Ok(file) = dir.open_own_file(name) else { continue };
        let is_left = flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok();
        if is_left && dir.still_names(name, &file) {
            dir.remove(name)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
