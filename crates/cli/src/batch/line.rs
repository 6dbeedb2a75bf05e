//! A command of a batch.

/// A command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// The number of its line, from 1: its name for people.
    pub number: usize,
    /// What `sh -c` is given.
    pub command: String,
}
