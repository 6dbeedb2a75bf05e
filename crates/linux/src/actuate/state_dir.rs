//! The directory where managers leave what must survive them: journals and
//! the lock. It is the user's alone and on a file system that a reboot empties.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags, fstat, mkdir, open, openat, renameat, unlinkat};
use rustix::io::Errno;
use rustix::process::geteuid;

const ROOTS_DIR: &str = "/run/symbiont";

/// A state directory that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StateDirError {
    /// The kernel said no.
    #[error("cannot {what} {path}: {source}")]
    Io {
        /// What was tried.
        what: &'static str,
        /// Which file or directory.
        path: PathBuf,
        /// What the kernel answered.
        source: io::Error,
    },
    /// Somebody else could write there.
    #[error(
        "{path} is not safe to use: {why}; remove it, or use a directory of your own (--state-dir)"
    )]
    Unsafe {
        /// The directory.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
}

/// Where this user's managers leave their state: `/run/symbiont` for root,
/// else `symbiont` in `$XDG_RUNTIME_DIR` or, so that a login and a timer agree,
/// in `/run/user/UID`; where neither is the user's own, `/tmp/symbiont-UID`.
#[must_use]
pub fn default_state_dir() -> PathBuf {
    let uid = geteuid();
    if uid.is_root() {
        return ROOTS_DIR.into();
    }
    let told = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let usual = PathBuf::from(format!("/run/user/{}", uid.as_raw()));
    // The variable may be left over from another user (su, sudo).
    let is_own = |dir: &PathBuf| {
        dir.is_absolute() && fs::metadata(dir).is_ok_and(|data| data.uid() == uid.as_raw())
    };
    match told.into_iter().chain([usual]).find(is_own) {
        Some(runtime) => runtime.join("symbiont"),
        None => format!("/tmp/symbiont-{}", uid.as_raw()).into(),
    }
}

/// The state directories whose managers could manage a process of this user:
/// its own and root's. For [`managed_by`](super::managed_by).
#[must_use]
pub fn visible_state_dirs() -> Vec<PathBuf> {
    let own = default_state_dir();
    let roots = PathBuf::from(ROOTS_DIR);
    if own == roots { vec![own] } else { vec![own, roots] }
}

/// An open state directory; all its files are reached through the descriptor,
/// and none through a symbolic link.
#[derive(Debug)]
pub(super) struct StateDir {
    path: PathBuf,
    fd: OwnedFd,
}

impl StateDir {
    /// Opens the directory, and makes it where it is missing.
    pub fn create(path: &Path) -> Result<Self, StateDirError> {
        // Others may reach root's lock by its name, and nothing else.
        let mode = if geteuid().is_root() { 0o711 } else { 0o700 };
        match mkdir(path, Mode::from_raw_mode(mode)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(failed("make", path, error)),
        }
        Self::open(path)?.ok_or_else(|| failed("open", path, Errno::NOENT))
    }

    /// Opens the directory; `None` if there is none.
    pub fn open(path: &Path) -> Result<Option<Self>, StateDirError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = match open(path, flags, Mode::empty()) {
            Ok(fd) => fd,
            Err(Errno::NOENT) => return Ok(None),
            Err(error) => return Err(failed("open", path, error)),
        };
        let stat = fstat(&fd).map_err(|error| failed("look at", path, error))?;
        let refuse = |why: String| StateDirError::Unsafe { path: path.to_owned(), why };
        if stat.st_uid != geteuid().as_raw() {
            return Err(refuse(format!("it belongs to user {}", stat.st_uid)));
        }
        if stat.st_mode & 0o022 != 0 {
            return Err(refuse("others may write there".to_owned()));
        }
        Ok(Some(Self { path: path.to_owned(), fd }))
    }

    pub fn path_of(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    pub fn open_file(&self, name: &str, flags: OFlags) -> Result<File, StateDirError> {
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        openat(&self.fd, name, flags, Mode::from_raw_mode(0o600))
            .map(File::from)
            .map_err(|error| failed("open", &self.path_of(name), error))
    }

    /// Does the name still mean the file that is open?
    pub fn still_names(&self, name: &str, file: &File) -> bool {
        let named = rustix::fs::statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW);
        match (named, fstat(file)) {
            (Ok(a), Ok(b)) => (a.st_dev, a.st_ino) == (b.st_dev, b.st_ino),
            _ => false,
        }
    }

    pub fn rename(&self, from: &str, to: &str) -> Result<(), StateDirError> {
        renameat(&self.fd, from, &self.fd, to)
            .map_err(|error| failed("rename", &self.path_of(from), error))
    }

    /// Removes a file; one that is not there is no error.
    pub fn remove(&self, name: &str) -> Result<(), StateDirError> {
        match unlinkat(&self.fd, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(failed("remove", &self.path_of(name), error)),
        }
    }

    /// Names of the files, in order.
    pub fn names(&self) -> Result<Vec<OsString>, StateDirError> {
        let list = || -> io::Result<Vec<OsString>> {
            fs::read_dir(&self.path)?.map(|entry| Ok(entry?.file_name())).collect()
        };
        let mut names = list().map_err(|source| StateDirError::Io {
            what: "list",
            path: self.path.clone(),
            source,
        })?;
        names.sort();
        Ok(names)
    }
}

fn failed(what: &'static str, path: &Path, error: Errno) -> StateDirError {
    StateDirError::Io { what, path: path.to_owned(), source: error.into() }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn a_directory_that_others_may_write_is_refused() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("state");
        assert!(StateDir::open(&path).unwrap().is_none());
        StateDir::create(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o066, 0);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).unwrap();
        let error = StateDir::create(&path).unwrap_err().to_string();
        assert!(error.contains("others may write there"), "{error}");
    }

    #[test]
    fn a_symbolic_link_is_not_followed() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("state");
        symlink(parent.path(), &path).unwrap();
        assert!(StateDir::create(&path).is_err());
    }
}
