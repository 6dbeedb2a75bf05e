//! Lets time pass until a deadline, or until a signal asks to end.

use std::io;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use symbiont_linux::launch::Wake;
use symbiont_linux::machine::Wait;

use crate::signals::asking_to_end;

/// Waits, for a time that begins with the first wait. From its creation on, signals that ask to end are
/// caught.
pub struct Waiter {
    time: Duration,
    begun: Option<Instant>,
    signals: UnixStream,
}

impl Waiter {
    /// For so long at most.
    ///
    /// # Errors
    /// When signals cannot be caught.
    pub fn new(time: Duration) -> io::Result<Self> {
        let (signals, write) = UnixStream::pair()?;
        for signal in asking_to_end() {
            signal_hook::low_level::pipe::register(signal, write.try_clone()?)?;
        }
        Ok(Self { time, begun: None, signals })
    }
}

impl Wait for Waiter {
    fn wait(&mut self, timeout: Duration) -> io::Result<Wake> {
        let now = Instant::now();
        let end = now.checked_add(timeout);
        let deadline = self.begun.get_or_insert(now).checked_add(self.time);
        let is_last = deadline.is_some_and(|last| end.is_none_or(|end| last <= end));
        let end = if is_last { deadline } else { end };
        loop {
            let left = end.map_or(timeout, |end| end.saturating_duration_since(Instant::now()));
            let within = Timespec::try_from(left).ok();
            match poll(&mut [PollFd::new(&self.signals, PollFlags::IN)], within.as_ref()) {
                // The signal's byte comes with it or is there already.
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
                Ok(0) if is_last => return Ok(Wake::Finish),
                Ok(0) => return Ok(Wake::Timeout),
                Ok(_) => return Ok(Wake::Terminate),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use signal_hook::consts::SIGTERM;

    use super::*;

    #[test]
    fn it_ends_at_its_deadline_or_by_a_signal() {
        let mut waiter = Waiter::new(Duration::from_millis(30)).unwrap();
        let soon = Duration::from_millis(1);
        let mut waits = 0;
        while waiter.wait(soon).unwrap() == Wake::Timeout {
            waits += 1;
        }
        assert!(waits <= 30, "each takes its time: {waits}");
        assert_eq!(waiter.wait(soon).unwrap(), Wake::Finish);
        let mut waiter = Waiter::new(Duration::from_secs(3600)).unwrap();
        assert_eq!(waiter.wait(soon).unwrap(), Wake::Timeout);
        signal_hook::low_level::raise(SIGTERM).unwrap();
        assert_eq!(waiter.wait(Duration::from_secs(600)).unwrap(), Wake::Terminate);
    }
}
