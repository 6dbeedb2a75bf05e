//! The client's side: one call at a time.

use std::io::{self, IoSlice, Read};
use std::mem::MaybeUninit;
use std::os::fd::BorrowedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix,
    SocketFlags, SocketType, sendmsg, socket_with,
};
use serde::de::DeserializeOwned;
use symbiont_wire::{
    CallError, Failure, FrameBuffer, FrameTooLong, Info, Reply, Request, to_frame,
};

use crate::quota::DESCRIPTORS;

/// How long the daemon may take for an answer: it may be in the middle of a quantum's work.
const TIMEOUT: Duration = Duration::from_secs(10);

/// A call that was not carried out.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// No daemon listens there.
    #[error("no symbiontd answers at {path}: {source}")]
    NotRunning {
        /// The socket.
        path: PathBuf,
        /// The kernel's answer.
        source: io::Error,
    },
    /// The daemon says why not.
    #[error(transparent)]
    Failure(#[from] Failure),
    /// The daemon runs, but does not answer.
    #[error("symbiontd at {path} does not answer; it may be stopped")]
    Silent {
        /// The socket.
        path: PathBuf,
    },
    /// The connection broke.
    #[error("symbiontd at {path} did not answer: {source}")]
    Io {
        /// The socket.
        path: PathBuf,
        /// The kernel's answer.
        source: io::Error,
    },
    /// The answer makes no sense.
    #[error("symbiontd's answer is not understood: {0}")]
    Malformed(String),
    /// The call itself is too long.
    #[error(transparent)]
    TooLong(#[from] FrameTooLong),
}

impl ClientError {
    /// Is it that a daemon was killed, or has no time to accept yet? Where none ran there is no
    /// socket.
    #[must_use]
    pub fn may_come_back(&self) -> bool {
        use io::ErrorKind::{ConnectionRefused, WouldBlock};
        match self {
            Self::NotRunning { source, .. } => {
                matches!(source.kind(), ConnectionRefused | WouldBlock)
            }
            _ => false,
        }
    }

    /// Is it that no daemon listens, or that it ended before it answered?
    #[must_use]
    pub fn is_gone(&self) -> bool {
        use io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
        match self {
            Self::NotRunning { .. } => true,
            Self::Io { source, .. } => {
                matches!(source.kind(), UnexpectedEof | ConnectionReset | BrokenPipe)
            }
            Self::Silent { .. } | Self::Failure(_) | Self::Malformed(_) | Self::TooLong(_) => false,
        }
    }
}

impl From<CallError> for ClientError {
    fn from(error: CallError) -> Self {
        Self::Malformed(error.to_string())
    }
}

/// Name of the socket in a state directory.
pub const SOCKET: &str = "symbiontd.sock";

/// Removes the socket that a daemon left when it was killed. The caller has the directory's lock, so that no daemon
/// begins to listen meanwhile.
pub fn remove_dead_socket(state_dir: &Path) {
    let socket = state_dir.join(SOCKET);
    if Client::connect(&socket).is_err_and(|error| error.may_come_back()) {
        // One that stays is refused, and no client waits for it for long.
        let _ = std::fs::remove_file(&socket);
    }
}

/// A connection to a daemon.
#[derive(Debug)]
pub struct Client {
    stream: UnixStream,
    within: Duration,
    path: PathBuf,
    received: FrameBuffer,
}

impl Client {
    /// Connects to the daemon that listens at this path.
    ///
    /// # Errors
    /// [`ClientError::NotRunning`] when none does.
    pub fn connect(path: &Path) -> Result<Self, ClientError> {
        Self::connect_within(path, TIMEOUT)
    }

    /// The same; each answer is waited for so long.
    ///
    /// # Errors
    /// As [`Self::connect`].
    pub fn connect_within(path: &Path, within: Duration) -> Result<Self, ClientError> {
        let not_running = |source| ClientError::NotRunning { path: path.to_owned(), source };
        let stream = connect(path).map_err(not_running)?;
        stream.set_write_timeout(Some(within)).map_err(not_running)?;
        Ok(Self { stream, within, path: path.to_owned(), received: FrameBuffer::default() })
    }

    /// Does the daemon answer at all, within this time? Other calls may take longer, as before.
    ///
    /// # Errors
    /// As [`Self::call`]; [`ClientError::Silent`] where the daemon is stopped.
    pub fn expect_answer_within(&mut self, within: Duration) -> Result<(), ClientError> {
        let usual = std::mem::replace(&mut self.within, within);
        let answer = self.call::<Info>(Request::GetInfo {}, &[]);
        self.within = usual;
        answer.map(drop)
    }

    /// Calls, and waits for the answer.
    ///
    /// # Errors
    /// When there is none in time, or it says why the call was not carried out.
    pub fn call<T: DeserializeOwned>(
        &mut self,
        request: Request,
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<T, ClientError> {
        self.send(request, descriptors)?;
        Ok(self.receive()?.into_results()?)
    }

    /// The same, for a call that is answered by several replies.
    ///
    /// # Errors
    /// As [`Self::call`].
    pub fn call_more<T: DeserializeOwned>(
        &mut self,
        request: Request,
    ) -> Result<Vec<T>, ClientError> {
        self.send(request, &[])?;
        let mut all = Vec::new();
        loop {
            let reply = self.receive()?;
            let continues = reply.continues;
            all.push(reply.into_results()?);
            if !continues {
                return Ok(all);
            }
        }
    }

    fn send(&self, request: Request, descriptors: &[BorrowedFd<'_>]) -> Result<(), ClientError> {
        let frame = to_frame(&request.into_call())?;
        if descriptors.len() > DESCRIPTORS {
            let what = "processes in one call".to_owned();
            return Err(Failure::QuotaExceeded { what, limit: DESCRIPTORS as u64 }.into());
        }
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !descriptors.is_empty() {
            control.push(SendAncillaryMessage::ScmRights(descriptors));
        }
        let mut rest = frame.as_slice();
        while !rest.is_empty() {
            let flags = SendFlags::NOSIGNAL;
            let sent = match sendmsg(&self.stream, &[IoSlice::new(rest)], &mut control, flags) {
                // The daemon has closed the connection, and may have said why: that is read next.
                Err(Errno::PIPE) => return Ok(()),
                sent => sent.map_err(|error| self.broken(error.into()))?,
            };
            // They travel with the first bytes.
            control.clear();
            rest = rest.get(sent..).unwrap_or_default();
        }
        Ok(())
    }

    fn receive(&mut self) -> Result<Reply, ClientError> {
        let begin = Instant::now();
        loop {
            let frame = self.received.next_frame();
            if let Some(frame) = frame.map_err(|error| ClientError::Malformed(error.to_string()))? {
                return Ok(Reply::from_frame(&frame)?);
            }
            let left = self.within.saturating_sub(begin.elapsed());
            let left = left.max(Duration::from_millis(1));
            let mut bytes = [0; 8192];
            let read = self
                .stream
                .set_read_timeout(Some(left))
                .and_then(|()| self.stream.read(&mut bytes));
            let got = match read {
                // By a signal; the time that is left goes on.
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                read => read.map_err(|error| self.broken(error))?,
            };
            if got == 0 {
                return Err(self.broken(io::ErrorKind::UnexpectedEof.into()));
            }
            self.received.push(bytes.get(..got).unwrap_or_default());
        }
    }

    fn broken(&self, source: io::Error) -> ClientError {
        if matches!(source.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) {
            return ClientError::Silent { path: self.path.clone() };
        }
        ClientError::Io { path: self.path.clone(), source }
    }
}

/// Connects without waiting for room: a daemon that was stopped accepts nothing, and what waits for it adds up.
fn connect(path: &Path) -> io::Result<UnixStream> {
    let address = SocketAddrUnix::new(path)?;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    rustix::net::connect(&socket, &address)?;
    let stream = UnixStream::from(socket);
    stream.set_nonblocking(false)?;
    Ok(stream)
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::net::UnixListener;

    use symbiont_wire::Status;

    use super::*;

    #[test]
    fn a_refusal_is_heard_though_the_connection_is_closed_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let listener = UnixListener::bind(&path).unwrap();
        let mut client = Client::connect(&path).unwrap();
        let (mut connection, _) = listener.accept().unwrap();
        let refusal = Failure::QuotaExceeded { what: "connections".to_owned(), limit: 64 };
        connection.write_all(&to_frame(&Reply::from(refusal.clone())).unwrap()).unwrap();
        drop(connection);
        let refused = client.call::<Status>(Request::Status {}, &[]).unwrap_err();
        assert!(matches!(&refused, ClientError::Failure(heard) if *heard == refusal), "{refused}");
    }

    #[test]
    fn a_daemon_that_accepts_nothing_is_not_waited_for_once_there_is_no_room() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let listener =
            socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None);
        let listener = listener.unwrap();
        rustix::net::bind(&listener, &SocketAddrUnix::new(&path).unwrap()).unwrap();
        rustix::net::listen(&listener, 0).unwrap();
        let waiting = Client::connect(&path).unwrap();
        let refused = Client::connect(&path).unwrap_err();
        assert!(refused.may_come_back() && refused.is_gone(), "{refused}");
        drop(waiting);
    }
}
