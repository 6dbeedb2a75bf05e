//! The process at the other end of a Unix socket, as the kernel noted it at connect(2).
//!
//! The number of a process in another PID namespace is 0, which `rustix::process::Pid` cannot hold.
#![expect(unsafe_code, reason = "no safe wrapper takes process number 0")]

use std::io;
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd};

/// Credentials of a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PeerCredentials {
    /// Effective user id; the overflow id (65534) for a user that this namespace does not know.
    pub uid: u32,
    /// Process number; 0 for a process that this namespace does not see.
    pub pid: u32,
}

/// Reads `SO_PEERCRED` (unix(7)).
///
/// # Errors
/// When this is no connected Unix socket.
pub fn peer_credentials(socket: impl AsFd) -> io::Result<PeerCredentials> {
    let mut read = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let whole = size_of::<libc::ucred>();
    let mut length = libc::socklen_t::try_from(whole).map_err(io::Error::other)?;
    // SAFETY: the kernel writes at most `length` bytes, the size of `read`, and any bytes are a
    // valid `ucred`; both pointers live through the call.
    let answer = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut read).cast(),
            &raw mut length,
        )
    };
    if answer != 0 {
        return Err(io::Error::last_os_error());
    }
    // A socket that is not connected has no peer.
    if usize::try_from(length).ok() != Some(whole) || read.uid == u32::MAX {
        return Err(io::ErrorKind::NotConnected.into());
    }
    Ok(PeerCredentials { uid: read.uid, pid: read.pid.unsigned_abs() })
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::{UnixDatagram, UnixStream};

    use super::*;

    #[test]
    fn the_peer_of_a_pair_is_this_process() {
        let (one, _other) = UnixStream::pair().unwrap();
        let me =
            PeerCredentials { uid: rustix::process::geteuid().as_raw(), pid: std::process::id() };
        assert_eq!(peer_credentials(&one).unwrap(), me);
    }

    #[test]
    fn a_descriptor_without_a_peer_is_refused() {
        assert!(peer_credentials(std::fs::File::open("/dev/null").unwrap()).is_err());
        assert!(peer_credentials(UnixDatagram::unbound().unwrap()).is_err());
    }
}
