//! What a batch and a keeper wait for: children that end, signals that ask for the end, other processes.

use std::io::{self, Read};
use std::os::fd::BorrowedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use signal_hook::consts::{SIGCHLD, SIGXFSZ};

use crate::signals::asking_to_end;

/// Rings for signals.
#[derive(Debug)]
pub struct Bells {
    /// Rings when a child ends.
    ends: UnixStream,
    /// Rings when the end is asked for.
    asks: UnixStream,
    /// The last signal that asked.
    asked: Arc<AtomicUsize>,
}

impl Bells {
    /// From now on a signal that asks for the end rings, unless it is ignored, as behind `nohup`. A write past the
    /// limit of file sizes fails and does not end this process; programs that are started get that signal as usual.
    pub fn new() -> io::Result<Self> {
        let ((ends, ended), (asks, ask)) = (UnixStream::pair()?, UnixStream::pair()?);
        let asked = Arc::new(AtomicUsize::new(0));
        for signal in asking_to_end() {
            let number = usize::try_from(signal).unwrap_or_default();
            signal_hook::flag::register_usize(signal, Arc::clone(&asked), number)?;
            signal_hook::low_level::pipe::register(signal, ask.try_clone()?)?;
        }
        signal_hook::low_level::pipe::register(SIGCHLD, ended)?;
        signal_hook::flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false)))?;
        ends.set_nonblocking(true)?;
        asks.set_nonblocking(true)?;
        Ok(Self { ends, asks, asked })
    }

    /// The last signal that asked for the end, if one did.
    pub fn asked(&self) -> Option<i32> {
        let signal = self.asked.load(Ordering::Relaxed);
        i32::try_from(signal).ok().filter(|signal| *signal != 0)
    }

    /// Waits until a bell rings, one of `others` is readable or the time is over. Was the end asked for?
    pub fn wait(&self, others: &[BorrowedFd<'_>], timeout: Option<Duration>) -> io::Result<bool> {
        let mut fds: Vec<PollFd<'_>> =
            [&self.ends, &self.asks].map(|bell| PollFd::new(bell, PollFlags::IN)).into();
        fds.extend(others.iter().map(|other| PollFd::new(other, PollFlags::IN)));
        let timeout = timeout.and_then(|time| Timespec::try_from(time).ok());
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let has_rung = |mut bell: &UnixStream| bell.read(&mut [0; 64]).is_ok_and(|got| got > 0);
        has_rung(&self.ends);
        Ok(has_rung(&self.asks))
    }
}
