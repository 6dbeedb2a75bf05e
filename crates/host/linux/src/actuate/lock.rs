//! One manager at a time for each state directory.
//!
//! The lock is a `flock` on a file that no other user can open, so that no other user can hold it. The kernel
//! releases it when its holder dies. Which programs a manager manages is published in another file, which any
//! user may read ([`super::managers`]).

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Seek, Write};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, Mode, OFlags, fchmod, flock};
use rustix::io::Errno;

use super::managers::{Holder, PublishedRecord, from_file};
use super::state_dir::{StateDir, StateDirError};

const NAME: &str = "lock";

/// The lock cannot be taken.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another manager of this user runs.
    #[error("another symbiont{} already manages the programs of this user", pid.map(|p| format!(" (process {p})")).unwrap_or_default())]
    Busy {
        /// Its process, where the file says so.
        pid: Option<u32>,
        /// Has everything that it manages ended, so that it will end in a moment?
        ending: bool,
    },
    /// The file cannot be used.
    #[error(transparent)]
    File(#[from] StateDirError),
}

/// The lock, held as long as this value lives.
#[derive(Debug)]
pub struct Lock {
    // Withdrawn before the lock is given up, so that the next manager's are not touched.
    record: PublishedRecord,
    elsewhere: Vec<PublishedRecord>,
    holder: Holder,
    dir: StateDir,
    /// Where else the record is published.
    others: Vec<PathBuf>,
    file: File,
}

impl Lock {
    /// Takes the lock of a state directory, which is made if missing. The holder is published there and, where
    /// that is possible, in `others`, so that programs that use another state directory find their manager.
    ///
    /// # Errors
    /// [`LockError::Busy`] if another process has it.
    pub fn acquire(state_dir: &Path, others: &[PathBuf]) -> Result<Self, LockError> {
        let mut holder = Holder::this_process();
        holder.state_dir = Some(state_dir.to_owned());
        Self::acquire_for(holder, state_dir, others)
    }

    fn acquire_for(
        holder: Holder,
        state_dir: &Path,
        others: &[PathBuf],
    ) -> Result<Self, LockError> {
        let dir = StateDir::create(state_dir)?;
        let path = dir.path_of(NAME);
        let fail = |what, source| StateDirError::Io { what, path: path.clone(), source };
        let mut file = dir.open_file(NAME, OFlags::RDWR | OFlags::CREATE)?;
        // It may be from a version that let others open it.
        fchmod(&file, Mode::from_raw_mode(0o600)).map_err(|e| fail("set the mode of", e.into()))?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => {
                let holder = from_file(file);
                let ending = holder.as_ref().is_some_and(Holder::has_ended);
                return Err(LockError::Busy { pid: holder.map(|h| h.manager.process), ending });
            }
            Err(error) => return Err(fail("lock", error.into()).into()),
        }
        write(&mut file, &holder).map_err(|source| fail("write", source))?;
        let record = PublishedRecord::publish(state_dir, &holder)?;
        let mut others = others.to_vec();
        others.retain(|other| other != state_dir);
        let elsewhere = publish(&others, &holder);
        Ok(Self { record, elsewhere, holder, dir, others, file })
    }

    /// Publishes that a process and all its descendants are managed.
    ///
    /// # Errors
    /// When that cannot be published.
    pub fn manages(&mut self, process: u32) -> Result<(), LockError> {
        self.holder.add(process);
        for record in &self.elsewhere {
            // No loss: the places that matter most are already published.
            let _ = record.write(&self.holder);
        }
        let fail =
            |source| StateDirError::Io { what: "write", path: self.dir.path_of(NAME), source };
        write(&mut self.file, &self.holder).map_err(fail)?;
        Ok(self.record.write(&self.holder)?)
    }

    /// Publishes that processes and what they make are no longer managed.
    ///
    /// # Errors
    /// When that cannot be published.
    pub fn releases(&mut self, processes: &BTreeSet<u32>) -> Result<(), LockError> {
        if !self.holder.remove(processes) {
            return Ok(());
        }
        for record in &self.elsewhere {
            let _ = record.write(&self.holder);
        }
        let fail =
            |source| StateDirError::Io { what: "write", path: self.dir.path_of(NAME), source };
        write(&mut self.file, &self.holder).map_err(fail)?;
        Ok(self.record.write(&self.holder)?)
    }

    /// Takes the lock again if its file or the whole state directory was removed, as a user's runtime directory
    /// is at logout.
    ///
    /// # Errors
    /// When that cannot be done, or another manager was faster. A process that goes on managing all the same then
    /// does so alongside that manager.
    pub fn keep(&mut self) -> Result<(), LockError> {
        let is_held = self.dir.is_in_place() && self.dir.still_names(NAME, &self.file);
        if is_held && self.record.is_in_place() {
            if !self.elsewhere.iter().all(PublishedRecord::is_in_place) {
                self.elsewhere = publish(&self.others, &self.holder);
            }
            return Ok(());
        }
        if is_held {
            self.record = PublishedRecord::publish(self.dir.path(), &self.holder)?;
        } else {
            *self = Self::acquire_for(self.holder.clone(), self.dir.path(), &self.others)?;
        }
        Ok(())
    }
}

fn write(file: &mut File, holder: &Holder) -> io::Result<()> {
    let text = serde_json::to_vec(holder)?;
    file.rewind()?;
    file.write_all(&text)?;
    file.set_len(text.len() as u64)
}

fn publish(state_dirs: &[PathBuf], holder: &Holder) -> Vec<PublishedRecord> {
    state_dirs.iter().filter_map(|dir| PublishedRecord::publish(dir, holder).ok()).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::super::managers::managed_by;
    use super::*;

    fn state() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("state");
        (dir, path)
    }

    #[test]
    fn a_second_manager_learns_which_process_has_the_lock() {
        let (_dir, path) = state();
        let first = Lock::acquire(&path, &[]).unwrap();
        match Lock::acquire(&path, &[]).unwrap_err() {
            LockError::Busy { pid, .. } => assert_eq!(pid, Some(std::process::id())),
            other => panic!("{other}"),
        }
        drop(first);
        Lock::acquire(&path, &[]).unwrap();
    }

    #[test]
    fn a_manager_whose_programs_have_ended_is_said_to_be_ending() {
        let (_dir, path) = state();
        let mut lock = Lock::acquire(&path, &[]).unwrap();
        let is_ending = || match Lock::acquire(&path, &[]) {
            Err(LockError::Busy { ending, .. }) => ending,
            other => panic!("{other:?}"),
        };
        let mut program = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        lock.manages(program.id()).unwrap();
        assert!(!is_ending());
        program.kill().unwrap();
        program.wait().unwrap();
        assert!(is_ending());
        lock.manages(std::process::id()).unwrap();
        assert!(!is_ending(), "others remain");
    }

    #[test]
    fn no_other_user_may_open_the_locked_file() {
        let (_dir, path) = state();
        StateDir::create(&path).unwrap();
        let file = path.join(NAME);
        std::fs::write(&file, "").unwrap();
        std::fs::set_permissions(&file, PermissionsExt::from_mode(0o644)).unwrap();
        let _lock = Lock::acquire(&path, &[]).unwrap();
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn an_instance_inside_a_managed_program_knows_its_manager() {
        let (_dir, path) = state();
        let (me, dirs) = (std::process::id(), [path.clone()]);
        assert_eq!(managed_by(me, &dirs), None);
        let mut lock = Lock::acquire(&path, &[]).unwrap();
        assert_eq!(managed_by(me, &dirs), None);
        lock.manages(std::os::unix::process::parent_id()).unwrap();
        assert_eq!(managed_by(me, &dirs), Some(me));
    }

    #[test]
    fn an_instance_that_uses_another_directory_knows_its_manager_too() {
        let ((_dir, path), (_other, usual)) = (state(), state());
        let mut lock = Lock::acquire(&path, std::slice::from_ref(&usual)).unwrap();
        lock.manages(std::os::unix::process::parent_id()).unwrap();
        let me = std::process::id();
        assert_eq!(managed_by(me, std::slice::from_ref(&usual)), Some(me));
        drop(lock);
        assert_eq!(managed_by(me, &[usual, path]), None);
    }

    #[test]
    fn a_removed_directory_is_made_again_with_lock_and_record() {
        let ((_dir, path), (_other, usual)) = (state(), state());
        let mut lock = Lock::acquire(&path, std::slice::from_ref(&usual)).unwrap();
        lock.manages(std::os::unix::process::parent_id()).unwrap();
        let me = std::process::id();
        for removed in [&path, &path.join(NAME), &path.join("managers"), &usual] {
            match removed.is_dir() {
                true => std::fs::remove_dir_all(removed).unwrap(),
                false => std::fs::remove_file(removed).unwrap(),
            }
            lock.keep().unwrap();
            let busy = Lock::acquire(&path, &[]);
            assert!(matches!(busy, Err(LockError::Busy { pid: Some(_), .. })), "{busy:?}");
            for dir in [&path, &usual] {
                assert_eq!(managed_by(me, std::slice::from_ref(dir)), Some(me));
            }
        }
    }

    #[test]
    fn a_lock_that_another_manager_took_meanwhile_is_not_taken_from_it() {
        let (_dir, path) = state();
        let mut lock = Lock::acquire(&path, &[]).unwrap();
        std::fs::remove_dir_all(&path).unwrap();
        let _other = Lock::acquire(&path, &[]).unwrap();
        assert!(matches!(lock.keep(), Err(LockError::Busy { .. })));
    }

    #[test]
    fn a_damaged_lock_file_names_no_manager() {
        let (_dir, path) = state();
        let _lock = Lock::acquire(&path, &[]).unwrap();
        std::fs::write(path.join(NAME), "{nonsense").unwrap();
        assert!(matches!(Lock::acquire(&path, &[]), Err(LockError::Busy { pid: None, .. })));
    }
}
