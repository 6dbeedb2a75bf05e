//! How far an experiment is, for a user interface that lives elsewhere.

use std::time::Duration;

/// Notified how a campaign goes; a terminal, a log, or nothing (`()`).
pub trait Progress {
    /// The campaign begins: how many runs there are, how many of them were done before (none: runs are not
    /// kept), and how long the rest should take.
    fn begin(&mut self, runs: usize, done: Option<usize>, estimate: Duration);
    /// A run begins.
    fn running(&mut self, what: &str);
    /// A run is done and kept.
    fn done(&mut self);
    /// Something that the user should know.
    fn note(&mut self, text: &str);
    /// Should the campaign stop? Asked several times a second.
    fn cancelled(&self) -> bool {
        false
    }
}

impl Progress for () {
    fn begin(&mut self, _: usize, _: Option<usize>, _: Duration) {}
    fn running(&mut self, _: &str) {}
    fn done(&mut self) {}
    fn note(&mut self, _: &str) {}
}
