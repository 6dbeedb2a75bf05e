//! How long a caller waits for its manager.

use std::time::Duration;

/// How long the caller waits to hear from its manager before it goes on without.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// Until the roots are enrolled; they are held back meanwhile. Longer than a client waits for a daemon to
    /// start again and then to answer.
    pub to_enrol: Duration,
    /// Until everything is restored, for a report.
    pub to_restore: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self { to_enrol: Duration::from_secs(20), to_restore: Duration::from_secs(30) }
    }
}

impl Timeouts {
    /// The same time for both.
    #[must_use]
    pub fn of(time: Duration) -> Self {
        Self { to_enrol: time, to_restore: time }
    }
}
