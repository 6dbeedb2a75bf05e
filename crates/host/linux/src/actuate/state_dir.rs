//! The directory for what must outlive a manager: journals and the lock. Only its user may open it, and it is on
//! a file system that a reboot empties.

use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{
    Access, AtFlags, CWD, Dir, Mode, OFlags, Stat, accessat, fchmod, fstat, mkdirat, open, openat,
    renameat, statat, unlinkat,
};
use rustix::io::Errno;
use rustix::process::geteuid;

const ROOTS_DIR: &str = "/run/symbiont";

/// A state directory that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StateDirError {
    /// A system call failed.
    #[error("cannot {what} {path}: {source}")]
    Io {
        /// What was attempted.
        what: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The kernel's answer.
        source: io::Error,
    },
    /// Another user owns it, or could write there.
    #[error("{path} is not safe to use: {why}; use a directory of your own (--state-dir)")]
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
/// Root of a user namespace of its own may not write in `/run`, and is in
/// truth another user, whose directory it shares.
#[must_use]
pub fn default_state_dir() -> PathBuf {
    let uid = geteuid().as_raw();
    if uid == 0 && may_use_roots_dir() {
        return ROOTS_DIR.into();
    }
    let given = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let uid_map = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    let outer = outer_uid(uid, &uid_map);
    let usual = PathBuf::from(format!("/run/user/{outer}"));
    // The variable may be left over from another user (su, sudo).
    let is_own =
        |dir: &PathBuf| dir.is_absolute() && fs::metadata(dir).is_ok_and(|data| data.uid() == uid);
    match given.into_iter().chain([usual]).find(is_own) {
        Some(runtime) => runtime.join("symbiont"),
        None => format!("/tmp/symbiont-{outer}").into(),
    }
}

/// Is root's directory ours, or could it be made?
fn may_use_roots_dir() -> bool {
    match fs::symlink_metadata(ROOTS_DIR) {
        Ok(data) => data.uid() == geteuid().as_raw(),
        Err(_) => {
            let parent = Path::new(ROOTS_DIR).parent().unwrap_or(Path::new("/"));
            let wanted = Access::WRITE_OK | Access::EXEC_OK;
            accessat(CWD, parent, wanted, AtFlags::EACCESS).is_ok()
        }
    }
}

/// What a user is called outside of the user namespace that has this map.
fn outer_uid(uid: u32, uid_map: &str) -> u32 {
    let outer = |line: &str| {
        let mut words = line.split_whitespace().map(|word| word.parse::<u32>().ok());
        let (inner, outer, count) = (words.next()??, words.next()??, words.next()??);
        let at = uid.checked_sub(inner).filter(|at| *at < count)?;
        outer.checked_add(at)
    };
    uid_map.lines().find_map(outer).unwrap_or(uid)
}

/// May a directory of this owner name our manager? Root's and our own. Root
/// may have no number in our user namespace: then it is the user that owns `/`.
pub(super) fn is_trusted(path: &Path, owner: u32) -> bool {
    let is_roots =
        || path == Path::new(ROOTS_DIR) && fs::metadata("/").is_ok_and(|root| root.uid() == owner);
    owner == 0 || owner == geteuid().as_raw() || is_roots()
}

/// The state directories whose managers could manage a process of this user:
/// its own and root's. For [`managed_by`](super::managed_by).
#[must_use]
pub fn visible_state_dirs() -> Vec<PathBuf> {
    let own = default_state_dir();
    let roots = PathBuf::from(ROOTS_DIR);
    if own == roots { vec![own] } else { vec![own, roots] }
}

/// The default state directories to restore from: this user's own, and any others of this user or, for root, of
/// any user. A directory's name says which user it is for; one that another user made under that name is passed
/// over.
#[must_use]
pub fn all_state_dirs() -> Vec<PathBuf> {
    let entries = |folder| fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    let number = |path: &Path, prefix: &str| {
        path.file_name()?.to_str()?.strip_prefix(prefix)?.parse::<u32>().ok()
    };
    let in_run = entries("/run/user").map(|entry| entry.path());
    let in_run = in_run.filter_map(|path| Some((number(&path, "")?, path.join("symbiont"))));
    let in_tmp = entries("/tmp").map(|entry| entry.path());
    let in_tmp = in_tmp.filter_map(|path| Some((number(&path, "symbiont-")?, path)));
    let is_of = |user: u32, path: &Path| {
        fs::symlink_metadata(path).is_ok_and(|data| data.is_dir() && data.uid() == user)
    };
    let (own, me) = (default_state_dir(), geteuid());
    let found = in_run.chain(in_tmp).filter(|(user, path)| {
        *path != own && is_of(*user, path) && (me.is_root() || me.as_raw() == *user)
    });
    let mut dirs: Vec<PathBuf> = found.map(|(_, path)| path).collect();
    dirs.sort();
    [vec![own], dirs].concat()
}

/// An open state directory, or one of its folders; all its files are reached
/// through the descriptor, and none through a symbolic link.
#[derive(Debug)]
pub(super) struct StateDir {
    path: PathBuf,
    fd: OwnedFd,
}

const OPEN: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

impl StateDir {
    /// Opens the directory, and makes it where it is missing.
    pub fn create(path: &Path) -> Result<Self, StateDirError> {
        // Others may reach what root publishes by its name, and nothing else.
        let mode = if geteuid().is_root() { 0o711 } else { 0o700 };
        make(CWD, path, path, mode)?;
        Self::open(path)?.ok_or_else(|| failed("open", path, Errno::NOENT))
    }

    /// Opens the directory; `None` if there is none.
    pub fn open(path: &Path) -> Result<Option<Self>, StateDirError> {
        Self::open_if(path, |owner| owner == geteuid().as_raw())
    }

    /// Opens the directory of any user if this is root, else like [`Self::open`].
    pub fn open_to_restore(path: &Path) -> Result<Option<Self>, StateDirError> {
        let own = geteuid();
        Self::open_if(path, |owner| owner == own.as_raw() || own.is_root())
    }

    fn open_if(path: &Path, trusted: impl Fn(u32) -> bool) -> Result<Option<Self>, StateDirError> {
        let Some(fd) = found(open(path, OFlags::RDONLY | OPEN, Mode::empty()), path)? else {
            return Ok(None);
        };
        let dir = Self { path: path.to_owned(), fd };
        dir.check(trusted)?;
        Ok(Some(dir))
    }

    /// Opens a folder of a directory, for reading only, if both belong to
    /// owners that are `trusted`; `None` if one is missing.
    pub fn open_folder(
        path: &Path,
        name: &str,
        trusted: impl Fn(u32) -> bool,
    ) -> Result<Option<Self>, StateDirError> {
        // Root's directory may be passed through by others, not listed.
        let Some(fd) = found(open(path, OFlags::PATH | OPEN, Mode::empty()), path)? else {
            return Ok(None);
        };
        let outer = Self { path: path.to_owned(), fd };
        outer.check(&trusted)?;
        let path = outer.path_of(name);
        let inner = openat(&outer.fd, name, OFlags::RDONLY | OPEN, Mode::empty());
        let Some(fd) = found(inner, &path)? else { return Ok(None) };
        let inner = Self { path, fd };
        inner.check(trusted)?;
        Ok(Some(inner))
    }

    /// Opens a folder of this directory, which any user may list, and makes
    /// it where it is missing.
    pub fn create_public_folder(&self, name: &str) -> Result<Self, StateDirError> {
        let path = self.path_of(name);
        make(&self.fd, Path::new(name), &path, 0o755)?;
        let fd = openat(&self.fd, name, OFlags::RDONLY | OPEN, Mode::empty())
            .map_err(|error| failed("open", &path, error))?;
        let folder = Self { path, fd };
        folder.check(|owner| owner == geteuid().as_raw())?;
        Ok(folder)
    }

    /// Refuses what belongs to another user, or where others may write.
    fn check(&self, trusted: impl Fn(u32) -> bool) -> Result<(), StateDirError> {
        let stat = self.stat()?;
        let refuse = |why: String| StateDirError::Unsafe { path: self.path.clone(), why };
        if !trusted(stat.st_uid) {
            return Err(refuse(format!("it belongs to user {}", stat.st_uid)));
        }
        if stat.st_mode & 0o022 != 0 {
            return Err(refuse("others may write there".to_owned()));
        }
        Ok(())
    }

    fn stat(&self) -> Result<Stat, StateDirError> {
        fstat(&self.fd).map_err(|error| failed("look at", &self.path, error))
    }

    pub fn path(&self) -> &Path {
        &self.path
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

    /// Opens a file for reading; refuses what its owner did not put there as a plain file.
    pub fn open_own_file(&self, name: &str) -> Result<File, StateDirError> {
        let file = self.open_file(name, OFlags::RDONLY | OFlags::NONBLOCK)?;
        let path = self.path_of(name);
        let data = file.metadata();
        let data = data.map_err(|source| StateDirError::Io {
            what: "look at",
            path: path.clone(),
            source,
        })?;
        let refuse = |why: &str| StateDirError::Unsafe { path: path.clone(), why: why.to_owned() };
        if !data.is_file() {
            return Err(refuse("it is not a plain file"));
        }
        if data.uid() != self.stat()?.st_uid {
            return Err(refuse("it is not of the directory's owner"));
        }
        Ok(file)
    }

    /// The owner's number.
    pub fn owner(&self) -> Result<u32, StateDirError> {
        Ok(self.stat()?.st_uid)
    }

    /// An error about one of the files.
    pub fn failed(&self, what: &'static str, name: &str, error: Errno) -> StateDirError {
        failed(what, &self.path_of(name), error)
    }

    /// Does the path still lead to this directory? No one can make a file in
    /// one that was removed.
    pub fn is_in_place(&self) -> bool {
        is_same(statat(CWD, &self.path, AtFlags::SYMLINK_NOFOLLOW), fstat(&self.fd))
    }

    /// Does the name still mean the file that is open?
    pub fn still_names(&self, name: &str, file: &File) -> bool {
        is_same(statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW), fstat(file))
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

    /// Names of the files, in order; those that are not UTF-8 are none of ours.
    pub fn names(&self) -> Result<Vec<String>, StateDirError> {
        let list = || -> rustix::io::Result<Vec<String>> {
            let entries = Dir::read_from(&self.fd)?;
            let names =
                entries.map(|entry| Ok(entry?.file_name().to_str().ok().map(str::to_owned)));
            names.filter_map(rustix::io::Result::transpose).collect()
        };
        let mut names = list().map_err(|error| failed("list", &self.path, error))?;
        names.retain(|name| name != "." && name != "..");
        names.sort();
        Ok(names)
    }
}

/// Makes a directory with just this mode, whatever the umask says; one that is
/// there stays as it is.
fn make(
    parent: impl std::os::fd::AsFd,
    name: &Path,
    path: &Path,
    mode: u32,
) -> Result<(), StateDirError> {
    match mkdirat(&parent, name, Mode::from_raw_mode(mode)) {
        Err(Errno::EXIST) => return Ok(()),
        made => made.map_err(|error| failed("make", path, error))?,
    }
    openat(&parent, name, OFlags::RDONLY | OPEN, Mode::empty())
        .and_then(|made| fchmod(made, Mode::from_raw_mode(mode)))
        .map_err(|error| failed("set the mode of", path, error))
}

fn found(
    opened: rustix::io::Result<OwnedFd>,
    path: &Path,
) -> Result<Option<OwnedFd>, StateDirError> {
    match opened {
        Ok(fd) => Ok(Some(fd)),
        Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(failed("open", path, error)),
    }
}

fn is_same(a: rustix::io::Result<Stat>, b: rustix::io::Result<Stat>) -> bool {
    matches!((a, b), (Ok(a), Ok(b)) if (a.st_dev, a.st_ino) == (b.st_dev, b.st_ino))
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
        assert!(!error.contains("remove"), "it may be a directory of the system's: {error}");
    }

    #[test]
    fn root_of_a_user_namespace_is_known_by_its_number_outside() {
        assert_eq!(outer_uid(0, "         0       1000          1\n"), 1000);
        assert_eq!(outer_uid(7, "0 1000 1\n1 100000 65536\n"), 100_006);
        assert_eq!(outer_uid(0, "0 0 4294967295\n"), 0);
        assert_eq!(outer_uid(5, "0 1000 1\nnonsense"), 5);
    }

    #[test]
    fn a_directory_that_was_removed_is_not_in_place_also_if_made_anew() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("state");
        let dir = StateDir::create(&path).unwrap();
        assert!(dir.is_in_place());
        fs::remove_dir(&path).unwrap();
        assert!(!dir.is_in_place());
        let again = StateDir::create(&path).unwrap();
        assert!(again.is_in_place() && !dir.is_in_place());
    }

    #[test]
    fn a_symbolic_link_is_not_followed() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("state");
        symlink(parent.path(), &path).unwrap();
        assert!(StateDir::create(&path).is_err());
    }
}
