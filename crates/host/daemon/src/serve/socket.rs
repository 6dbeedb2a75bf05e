//! The socket's path: made once the daemon listens, touched as a sign of life, removed at the end.

use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::{fs, io};

use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, utimensat};

use super::ServeError;

/// Marks the socket's name with the time: after a crash clients see by it how long ago the daemon died.
pub(super) fn show_life(socket: &Path) {
    let now = Timestamps { last_access: UTIME_NOW, last_modification: UTIME_NOW };
    // Where that cannot be, clients wait for no next daemon.
    let _ = utimensat(CWD, socket, &now, AtFlags::empty());
}

const UTIME_NOW: Timespec = Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_NOW };

/// The listening socket's name, which goes with this value.
#[derive(Debug)]
pub(super) struct Socket(PathBuf);

impl Socket {
    pub fn listen(path: &Path, for_all_users: bool) -> Result<(Self, OwnedFd), ServeError> {
        let fail = |source| ServeError::Socket { path: path.to_owned(), source };
        // A daemon that listened here before is gone: the lock is ours. Its name stays until this
        // one listens, so that clients see that one will.
        let draft = path.with_file_name(".new");
        match fs::remove_file(&draft) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(fail(error)),
            _ => {}
        }
        let listener = UnixListener::bind(&draft).map_err(fail)?;
        listener.set_nonblocking(true).map_err(fail)?;
        let mode = if for_all_users { 0o666 } else { 0o600 };
        let listens = fs::set_permissions(&draft, fs::Permissions::from_mode(mode))
            .and_then(|()| fs::rename(&draft, path));
        if let Err(error) = listens {
            let _ = fs::remove_file(&draft);
            return Err(fail(error));
        }
        let name = Self(path.to_owned());
        Ok((name, listener.into()))
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        // A name that stays refuses connections, and the next start removes it.
        let _ = fs::remove_file(&self.0);
    }
}
