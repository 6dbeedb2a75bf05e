//! One releaser per store: two that learnt from the same run would count it twice, and each would undo what the other
//! has just assigned.

use std::fs::File;
use std::io::ErrorKind;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::FileError;

/// Keeps other releasers off a store until it is dropped.
#[derive(Debug)]
pub struct StoreLock {
    _file: File,
}

impl StoreLock {
    /// Locks a store, and waits this long for a releaser that is about to end.
    ///
    /// # Errors
    /// [`FileError::InUse`] when another releaser still has it, [`FileError::Io`] when it cannot be locked.
    pub fn of(store: &Path, wait: Duration) -> Result<Self, FileError> {
        let path = store.with_extension("releaser");
        let trouble = FileError::io("lock", &path);
        // What cannot be a store gets no file next to it.
        match symbiont_safe_open::open(store) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(FileError::io("read", store)(error));
            }
            _ => {}
        }
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(&trouble)?;
        }
        let file = File::options().write(true).create(true).truncate(false).open(&path);
        let file = file.map_err(&trouble)?;
        let begin = Instant::now();
        loop {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Self { _file: file }),
                Err(Errno::WOULDBLOCK) if begin.elapsed() < wait => {
                    std::thread::sleep(Duration::from_millis(50));
                }
                Err(Errno::WOULDBLOCK) => {
                    return Err(FileError::InUse { store: store.to_owned() });
                }
                Err(error) => return Err(trouble(error.into())),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_releaser_of_one_store_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let store = folder.path().join("jobs.json");
        let first = StoreLock::of(&store, Duration::ZERO).unwrap();
        let why = StoreLock::of(&store, Duration::ZERO).unwrap_err().to_string();
        assert!(why.starts_with("another symbiont slurm uses the store "), "{why}");
        drop(first);
        StoreLock::of(&store, Duration::ZERO).unwrap();
    }

    #[test]
    fn a_store_that_is_no_file_gets_no_lock_next_to_it() {
        let folder = tempfile::tempdir().unwrap();
        let device = folder.path().join("device");
        std::os::unix::fs::symlink("/dev/null", &device).unwrap();
        assert!(matches!(StoreLock::of(&device, Duration::ZERO), Err(FileError::Io { .. })));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
