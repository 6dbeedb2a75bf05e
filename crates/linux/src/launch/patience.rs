//! How long a caller waits for its manager.

use std::time::Duration;

/// How long the caller waits for a word of its manager before it goes on without.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// Until the roots are enrolled; they are held back meanwhile. Longer than a client waits for a
    /// daemon that starts again and then for its answer.
    pub to_enrol: Duration,
    /// Until everything is put back, for a report.
    pub to_put_back: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self { to_enrol: Duration::from_secs(20), to_put_back: Duration::from_secs(30) }
    }
}

impl Patience {
    /// The same for both.
    #[must_use]
    pub fn of(time: Duration) -> Self {
        Self { to_enrol: time, to_put_back: time }
    }
}
