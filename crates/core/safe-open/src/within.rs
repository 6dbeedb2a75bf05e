//! Opens files within a folder that others write, without leaving it.
//!
//! # Problem
//! A name that a program chose leads out of a folder by `..` or by a link, and a link in a folder of a user leads a
//! reader that is root to files that the user may not read. A mount of that user (FUSE) may block forever.
//!
//! # Approach
//! The kernel resolves the path (openat2(2), Linux 5.6): beneath the folder, without any link, and, in a
//! folder of a user, without another mount. Then as [`crate::open`]: looked at, opened without waiting, looked at
//! again.
//!
//! # Properties
//! - No path and no link leads out (`nothing_leads_out_of_the_folder`).
//! - Links to absolute paths stay below another root (`absolute_links_stay_below_a_root`).

use std::fs::{File, Metadata};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{Mode, OFlags, ResolveFlags, open, openat2};

use crate::check;

/// A folder within which files are opened.
#[derive(Debug)]
pub struct Folder {
    held: OwnedFd,
    resolve: ResolveFlags,
}

impl Folder {
    /// A folder; links on the way to it are followed.
    ///
    /// # Errors
    /// When it cannot be opened, or is no folder.
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Self { held: open(path, FOLDER, Mode::empty())?, resolve: INSIDE })
    }

    /// The folder at a path that is absolute seen from `root`; links on the way to it are followed, absolute ones
    /// from that root on.
    ///
    /// # Errors
    /// As [`Folder::open`].
    pub fn open_below(root: &Path, path: &Path) -> io::Result<Self> {
        if root == Path::new("/") {
            return Self::open(path);
        }
        let root = open(root, FOLDER, Mode::empty())?;
        let held = openat2(root, path, FOLDER, Mode::empty(), ResolveFlags::IN_ROOT)?;
        Ok(Self { held, resolve: INSIDE })
    }

    /// The same folder, within which no other mount is entered.
    #[must_use]
    pub fn without_mounts(mut self) -> Self {
        self.resolve |= ResolveFlags::NO_XDEV;
        self
    }

    /// What is at a path within it; nothing is opened to be read.
    ///
    /// # Errors
    /// When there is nothing, or a link is on the way.
    pub fn look(&self, path: &Path) -> io::Result<Metadata> {
        File::from(self.at(path, OFlags::PATH)?).metadata()
    }

    /// A regular file within it, to be read.
    ///
    /// # Errors
    /// As [`Folder::look`], or when it is no regular file.
    pub fn file(&self, path: &Path) -> io::Result<File> {
        check(self.look(path)?.file_type())?;
        let file = File::from(self.at(path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY)?);
        check(file.metadata()?.file_type())?;
        Ok(file)
    }

    /// The names in a folder within it, at most this many.
    ///
    /// # Errors
    /// As [`Folder::look`], or when it is no folder.
    pub fn names(&self, path: &Path, most: usize) -> io::Result<Vec<String>> {
        let folder = self.at(path, OFlags::RDONLY | OFlags::DIRECTORY)?;
        let entries = rustix::fs::Dir::read_from(folder)?.flatten();
        let names = entries.filter_map(|entry| entry.file_name().to_str().ok().map(str::to_owned));
        Ok(names.filter(|name| name != "." && name != "..").take(most).collect())
    }

    fn at(&self, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
        let flags = flags | OFlags::CLOEXEC;
        Ok(openat2(self.held.as_fd(), path, flags, Mode::empty(), self.resolve)?)
    }
}

const FOLDER: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
const INSIDE: ResolveFlags = ResolveFlags::BENEATH.union(ResolveFlags::NO_SYMLINKS);

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed test panics")]

    use std::fs;
    use std::io::Read;
    use std::os::unix::fs::symlink;

    use rustix::fs::{CWD, FileType, mknodat};

    use super::*;

    #[test]
    fn nothing_leads_out_of_the_folder() {
        let outside = tempfile::tempdir().unwrap();
        let path = outside.path().join("folder");
        fs::create_dir_all(path.join("inner")).unwrap();
        fs::write(outside.path().join("secret"), "secret").unwrap();
        fs::write(path.join("inner/file"), "text").unwrap();
        symlink("../secret", path.join("relative")).unwrap();
        symlink(outside.path().join("secret"), path.join("absolute")).unwrap();
        symlink("inner", path.join("link")).unwrap();
        mknodat(CWD, path.join("fifo"), FileType::Fifo, Mode::RUSR, 0).unwrap();
        let folder = Folder::open(&path).unwrap();
        let mut text = String::new();
        folder.file(Path::new("inner/file")).unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "text");
        for bad in [
            "../secret",
            "relative",
            "absolute",
            "link/file",
            "/etc/passwd",
            "fifo",
            "inner",
            "none",
        ] {
            assert!(folder.file(Path::new(bad)).is_err(), "{bad}");
        }
        let mut names = folder.names(Path::new("."), 10).unwrap();
        names.sort();
        assert_eq!(names, ["absolute", "fifo", "inner", "link", "relative"]);
        assert_eq!(folder.names(Path::new("."), 2).unwrap().len(), 2);
        assert!(folder.names(Path::new("link"), 2).is_err());
    }

    #[test]
    fn another_mount_is_entered_only_where_that_is_allowed() {
        let proc = || Folder::open(Path::new("/")).unwrap();
        assert!(proc().file(Path::new("proc/version")).is_ok());
        assert!(proc().without_mounts().file(Path::new("proc/version")).is_err());
    }

    #[test]
    fn absolute_links_stay_below_a_root() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("run/state")).unwrap();
        fs::create_dir_all(root.path().join("var")).unwrap();
        fs::write(root.path().join("run/state/file"), "of this root").unwrap();
        symlink("/run", root.path().join("var/run")).unwrap();
        let folder = Folder::open_below(root.path(), Path::new("/var/run/state")).unwrap();
        assert!(folder.look(Path::new("file")).is_ok());
        assert!(Folder::open_below(root.path(), Path::new("/var/run/none")).is_err());
    }
}
