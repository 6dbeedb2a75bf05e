//! The socket of the kernel's process connector.
//!
//! # Problem
//! The kernel drops reports when the socket's buffer is full; a default one holds about 256. Whether it reports
//! at all depends on privilege, on the kernel's configuration, and on being in the first PID and network
//! namespaces. Outside of those the kernel accepts the request and stays silent; or, on behalf of another
//! listener, it reports numbers that mean other threads here.
//!
//! # Approach
//! A large buffer is emptied in batches. A loss shows as ENOBUFS, or as a gap in the numbering of one CPU, and is
//! remembered until it is taken. Outside of the first PID namespace, as in most containers, no request is made.
//! Elsewhere, reports are trusted only after one about a thread of our own arrived ([`Connector::prove`]).

use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::netlink::{CONNECTOR, SocketAddrNetlink};
use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType, sockopt};

use super::event::{Event, IGNORE, LISTEN, Rows, reports, request};
use super::sys;

/// The multicast group of process events (`CN_IDX_PROC`).
const GROUP: u32 = 1;
/// Reports taken by one system call.
const BATCH: usize = 64;
/// Bytes that a report may have; they are 76 long up to kernel 6.18.
const LARGEST: usize = 256;

/// The name that the kernel gives to its first pid namespace.
const FIRST_NAMESPACE: &str = "pid:[4026531836]";

/// Why there is no connector here, for people.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConnectorError {
    #[error(
        "the process connector serves the first pid namespace only, and this is another one \
         ({0}), as in a container"
    )]
    Namespace(String),
    #[error("cannot {step} the process connector: {source}")]
    System { step: &'static str, source: Errno },
    #[error(
        "the process connector took the request and reported nothing within {0:?} (no privilege, \
         or not in the first network namespace)"
    )]
    Silent(Duration),
}

fn at(step: &'static str) -> impl FnOnce(Errno) -> ConnectorError {
    move |source| ConnectorError::System { step, source }
}

/// Losses of reports, counted since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Losses {
    /// Times that the kernel said the buffer was full.
    pub overruns: u64,
    /// Reports missing in the numbering of a CPU's reports.
    pub missing: u64,
    /// Complete scans of /proc that made losses good.
    pub rescans: u64,
    /// Reads of single threads that failed although the thread was there.
    pub unreadable: u64,
}

/// An open subscription.
#[derive(Debug)]
pub(crate) struct Connector {
    socket: OwnedFd,
    rows: Rows,
    buffers: Box<[[u8; LARGEST]; BATCH]>,
    losses: Losses,
    lost: bool,
}

impl Connector {
    /// Subscribes, with a buffer of this many bytes if that is permitted.
    pub fn open(buffer: usize, proc: &Path) -> Result<Self, ConnectorError> {
        in_first_namespace(proc)?;
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let family = AddressFamily::NETLINK;
        let socket = rustix::net::socket_with(family, SocketType::DGRAM, flags, Some(CONNECTOR))
            .map_err(at("open"))?;
        sockopt::set_socket_recv_buffer_size_force(&socket, buffer)
            .or_else(|_| sockopt::set_socket_recv_buffer_size(&socket, buffer))
            .map_err(at("size the buffer of"))?;
        rustix::net::bind(&socket, &SocketAddrNetlink::new(0, GROUP)).map_err(at("bind to"))?;
        let kernel = SocketAddrNetlink::new(0, 0);
        rustix::net::sendto(&socket, &request(LISTEN), SendFlags::empty(), &kernel)
            .map_err(at("subscribe to"))?;
        Ok(Self {
            socket,
            rows: Rows::default(),
            buffers: Box::new([[0; LARGEST]; BATCH]),
            losses: Losses::default(),
            lost: false,
        })
    }

    /// Makes short threads and waits until one of them is reported.
    pub fn prove(&mut self, timeout: Duration) -> Result<(), ConnectorError> {
        let (start, own) = (Instant::now(), std::process::id());
        let mut probes = Vec::new();
        let mut seen = false;
        // More than one, since the report of one may be lost in a storm.
        while !seen && start.elapsed() < timeout {
            probes.push(probe().map_err(at("probe"))?);
            wait_readable([self.socket.as_fd()], Some(timeout / 10)).map_err(at("wait for"))?;
            self.drain(usize::MAX, |event| {
                seen |= matches!(event, Event::Fork { child_process, child_thread, .. }
                    if child_process == own && probes.contains(&child_thread));
            })
            .map_err(at("read"))?;
        }
        if seen { Ok(()) } else { Err(ConnectorError::Silent(timeout)) }
    }

    /// The socket, to wait on.
    pub fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// The buffer's size in bytes, as the kernel counts it.
    pub fn buffer(&self) -> usize {
        sockopt::socket_recv_buffer_size(&self.socket).unwrap_or(0)
    }

    /// What was lost since the start.
    pub fn losses(&self) -> Losses {
        self.losses
    }

    /// Was anything lost since this was last asked?
    pub fn take_lost(&mut self) -> bool {
        std::mem::take(&mut self.lost)
    }

    /// Gives the events that have come, about this many at most, without
    /// waiting; a loss where it shows.
    pub fn drain(&mut self, most: usize, mut each: impl FnMut(Event)) -> Result<(), Errno> {
        let mut taken = 0;
        let mut lengths = [0; BATCH];
        while taken < most {
            let count = match sys::receive(self.socket.as_fd(), &mut self.buffers, &mut lengths) {
                Ok(count) => count,
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => continue,
                Err(Errno::NOBUFS) => {
                    self.losses.overruns += 1;
                    self.lost = true;
                    each(Event::Loss);
                    continue;
                }
                Err(error) => return Err(error),
            };
            for (buffer, length) in self.buffers.iter().zip(lengths).take(count) {
                for report in reports(buffer.get(..length).unwrap_or_default()) {
                    taken += 1;
                    let missing = self.rows.note(report.cpu, report.sequence);
                    self.losses.missing += u64::from(missing);
                    if missing > 0 {
                        self.lost = true;
                        each(Event::Loss);
                    }
                    each(report.event);
                }
            }
            if count < BATCH {
                break;
            }
        }
        Ok(())
    }
}

/// Are process numbers here those that the connector reports? Where that cannot
/// be read, the proof decides.
fn in_first_namespace(proc: &Path) -> Result<(), ConnectorError> {
    match std::fs::read_link(proc.join("self/ns/pid")) {
        Ok(name) if name != Path::new(FIRST_NAMESPACE) => {
            Err(ConnectorError::Namespace(name.display().to_string()))
        }
        _ => Ok(()),
    }
}

/// Makes a thread that ends at once; gives its number.
fn probe() -> Result<u32, Errno> {
    let failed = |error: std::io::Error| Errno::from_io_error(&error).unwrap_or(Errno::AGAIN);
    let thread = std::thread::Builder::new()
        .name("probe".into())
        .spawn(|| rustix::thread::gettid().as_raw_nonzero().get())
        .map_err(failed)?;
    let number = thread.join().ok().and_then(|number| u32::try_from(number).ok());
    number.ok_or(Errno::SRCH)
}

impl Drop for Connector {
    fn drop(&mut self) {
        // Kernels before 6.6 count listeners and do not notice a closed socket
        // (nor, then, a manager that was killed).
        let kernel = SocketAddrNetlink::new(0, 0);
        let _ = rustix::net::sendto(&self.socket, &request(IGNORE), SendFlags::empty(), &kernel);
    }
}

/// Waits until one of these can be read; returns which. Without a timeout: for ever.
pub(crate) fn wait_readable<const N: usize>(
    files: [BorrowedFd<'_>; N],
    timeout: Option<Duration>,
) -> Result<[bool; N], Errno> {
    let mut files = files.map(|file| PollFd::from_borrowed_fd(file, PollFlags::IN));
    let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
    match poll(&mut files, timeout.as_ref()) {
        Ok(_) => Ok(files.map(|file| !file.revents().is_empty())),
        Err(Errno::INTR) => Ok([false; N]),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_pid_namespace_is_known_by_its_name() {
        let proc = tempfile::tempdir().unwrap();
        assert!(in_first_namespace(proc.path()).is_ok(), "nothing can be read there");
        let folder = proc.path().join("self/ns");
        std::fs::create_dir_all(&folder).unwrap();
        std::os::unix::fs::symlink("pid:[4026532999]", folder.join("pid")).unwrap();
        let error = in_first_namespace(proc.path()).unwrap_err().to_string();
        assert!(error.contains("pid:[4026532999]"), "{error}");
        std::fs::remove_file(folder.join("pid")).unwrap();
        std::os::unix::fs::symlink(FIRST_NAMESPACE, folder.join("pid")).unwrap();
        assert!(in_first_namespace(proc.path()).is_ok());
    }
}
