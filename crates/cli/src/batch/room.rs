//! Whether there is room to record what begins.
//!
//! Where there is none, no job starts; those that run go on. It is tried again each second, also for a while after
//! the last job has ended.

use std::io::{self, ErrorKind};
use std::time::{Duration, Instant};

/// After what time it is tried again.
const AGAIN: Duration = Duration::from_secs(1);
/// How long it is tried once nothing runs any more.
const AT_THE_END: Duration = Duration::from_secs(5);

/// Is this a want of room, which may be over later?
pub fn is_missing(error: &io::Error) -> bool {
    [ErrorKind::StorageFull, ErrorKind::QuotaExceeded, ErrorKind::FileTooLarge]
        .contains(&error.kind())
}

/// What is known of it.
#[derive(Debug, Default)]
pub struct Room {
    /// Why there is none.
    missing: Option<String>,
    /// Since when nothing runs although there are jobs to start.
    idle_since: Option<Instant>,
}

impl Room {
    /// A job could not be started for the want of it: gives what is to be said, the first time.
    pub fn is_out(&mut self, error: &io::Error, path: &str) -> Option<String> {
        let is_first = self.missing.is_none();
        let missing = self.missing.insert(format!("{path}: {error}"));
        is_first.then(|| {
            format!("no job starts until this can be written: {missing}; those that run go on")
        })
    }

    /// A job could be started.
    pub fn is_there(&mut self) {
        *self = Self::default();
    }

    /// Why no job starts.
    pub fn missing(&self) -> Option<&str> {
        self.missing.as_deref()
    }

    /// How long to wait before it is tried again.
    pub fn pause(&self) -> Option<Duration> {
        self.missing.as_ref().map(|_| AGAIN)
    }

    /// Is it time to give up? Asked while jobs wait.
    pub fn gives_up(&mut self, is_idle: bool, now: Instant) -> bool {
        if self.missing.is_none() || !is_idle {
            self.idle_since = None;
            return false;
        }
        let since = self.idle_since.get_or_insert(now);
        now.saturating_duration_since(*since) >= AT_THE_END
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_said_once_and_given_up_only_while_nothing_runs() {
        let (mut room, now) = (Room::default(), Instant::now());
        let full = io::Error::from_raw_os_error(28);
        assert!(is_missing(&full) && !is_missing(&io::Error::from_raw_os_error(2)));
        assert!(!room.gives_up(true, now));
        assert!(room.is_out(&full, "x").is_some_and(|said| said.contains("No space left")));
        assert_eq!(room.is_out(&full, "x"), None);
        assert!(!room.gives_up(true, now));
        assert!(!room.gives_up(false, now + 2 * AT_THE_END));
        assert!(!room.gives_up(true, now + 2 * AT_THE_END));
        assert!(room.gives_up(true, now + 3 * AT_THE_END));
        room.is_there();
        assert!(room.pause().is_none() && !room.gives_up(true, now + 9 * AT_THE_END));
    }
}
