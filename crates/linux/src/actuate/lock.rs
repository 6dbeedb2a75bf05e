//! One manager at a time for each user, and none inside another.
//!
//! The lock is a `flock` on a file of the state directory, which the kernel
//! lets go when its holder dies. The file says who holds it and which
//! processes it manages, so that an instance started inside a managed program
//! can tell, also one of another user.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, Mode, OFlags, fchmod, flock, open};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::kernel::{ThreadKey, facts, facts_of};
use super::state_dir::{StateDir, StateDirError};

const NAME: &str = "lock";
const MOST_BYTES: u64 = 1 << 20;

/// The lock cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another manager of this user runs.
    #[error("another symbiont{} manages programs of this user", pid.map(|p| format!(" (process {p})")).unwrap_or_default())]
    Busy {
        /// Its process, where it says so.
        pid: Option<u32>,
    },
    /// The file cannot be used.
    #[error(transparent)]
    File(#[from] StateDirError),
}

/// What the file says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Holder {
    manager: ThreadKey,
    /// The first processes of the managed programs.
    roots: Vec<ThreadKey>,
}

/// Held as long as this value lives.
#[derive(Debug)]
pub struct Lock {
    file: File,
    path: PathBuf,
    holder: Holder,
}

impl Lock {
    /// Takes the lock of a state directory, which is made if missing.
    ///
    /// # Errors
    /// [`LockError::Busy`] if another process has it.
    pub fn acquire(state_dir: &Path) -> Result<Self, LockError> {
        let dir = StateDir::create(state_dir)?;
        let path = dir.path_of(NAME);
        let fail = |what, source| StateDirError::Io { what, path: path.clone(), source };
        let mut file = dir.open_file(NAME, OFlags::RDWR | OFlags::CREATE)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => {
                return Err(LockError::Busy { pid: read(&mut file).map(|h| h.manager.process) });
            }
            Err(error) => return Err(fail("lock", error.into()).into()),
        }
        // Others may read who it is: root's directory is open to that.
        fchmod(&file, Mode::from_raw_mode(0o644)).map_err(|e| fail("open up", e.into()))?;
        let me = std::process::id();
        let manager = facts(me, me).ok().flatten().map(|facts| facts.key);
        let manager = manager.unwrap_or(ThreadKey { process: me, thread: me, born: 0 });
        let mut lock =
            Self { file, path: path.clone(), holder: Holder { manager, roots: Vec::new() } };
        lock.write()?;
        Ok(lock)
    }

    /// Says that a process and all its descendants are managed.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn manages(&mut self, process: u32) -> Result<(), LockError> {
        if let Ok(Some(facts)) = facts(process, process) {
            self.holder.roots.retain(|root| facts_of(*root).is_ok());
            self.holder.roots.push(facts.key);
            self.write()?;
        }
        Ok(())
    }

    fn write(&mut self) -> Result<(), StateDirError> {
        let fail = |source| StateDirError::Io { what: "write", path: self.path.clone(), source };
        let text = serde_json::to_vec(&self.holder).map_err(|error| fail(error.into()))?;
        let mut put = || -> io::Result<()> {
            self.file.rewind()?;
            self.file.write_all(&text)?;
            self.file.set_len(text.len() as u64)
        };
        put().map_err(fail)
    }
}

fn read(file: &mut File) -> Option<Holder> {
    let mut text = Vec::new();
    file.rewind().ok()?;
    file.take(MOST_BYTES).read_to_end(&mut text).ok()?;
    serde_json::from_slice(&text).ok()
}

/// The manager, if one that lives and uses one of these state directories
/// manages this process: it or an ancestor of it was enrolled. A process that
/// cut its descent (its parent exited) is not found.
#[must_use]
pub fn managed_by(process: u32, state_dirs: &[PathBuf]) -> Option<u32> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let holders = state_dirs.iter().filter_map(|dir| {
        let mut file = File::from(open(dir.join(NAME), flags, Mode::empty()).ok()?);
        read(&mut file).filter(|holder| facts_of(holder.manager).is_ok())
    });
    let holders: Vec<Holder> = holders.collect();
    let mut at = process;
    let mut child_born = u64::MAX;
    while let Ok(Some(facts)) = facts(at, at) {
        if facts.key.born > child_born {
            return None;
        }
        if let Some(holder) = holders.iter().find(|holder| holder.roots.contains(&facts.key)) {
            return Some(holder.manager.process);
        }
        if facts.parent == 0 || facts.parent == at {
            return None;
        }
        (at, child_born) = (facts.parent, facts.key.born);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_manager_is_told_who_has_the_lock() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("state");
        let first = Lock::acquire(&path).unwrap();
        match Lock::acquire(&path).unwrap_err() {
            LockError::Busy { pid } => assert_eq!(pid, Some(std::process::id())),
            other => panic!("{other}"),
        }
        drop(first);
        Lock::acquire(&path).unwrap();
    }

    #[test]
    fn an_instance_inside_a_managed_program_knows_its_manager() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("state");
        let (me, dirs) = (std::process::id(), [path.clone()]);
        assert_eq!(managed_by(me, &dirs), None);
        let mut lock = Lock::acquire(&path).unwrap();
        assert_eq!(managed_by(me, &dirs), None);
        lock.manages(std::os::unix::process::parent_id()).unwrap();
        assert_eq!(managed_by(me, &dirs), Some(me));
    }

    #[test]
    fn a_damaged_lock_file_names_nobody() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("state");
        let lock = Lock::acquire(&path).unwrap();
        std::fs::write(path.join(NAME), "{nonsense").unwrap();
        assert!(matches!(Lock::acquire(&path), Err(LockError::Busy { pid: None })));
        assert_eq!(managed_by(std::process::id(), &[path]), None);
        drop(lock);
    }
}
