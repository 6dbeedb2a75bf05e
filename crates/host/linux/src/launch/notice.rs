//! What the user of a run should know at its start.

use std::fmt;

use super::Unmanaged;

/// What may be said to the user.
#[derive(Debug, Clone, Copy)]
pub enum Notice<'a> {
    /// The programs are managed; the manager noted this, or nothing.
    Managed(&'a str),
    /// The programs are about to run unmanaged. A user that does not want that ends this process: programs
    /// that are held back end with it.
    Unmanaged(&'a Unmanaged),
    /// A job could not be run.
    Job(&'a str),
}

impl fmt::Display for Notice<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Managed(text) | Self::Job(text) => f.write_str(text),
            Self::Unmanaged(why) => write!(f, "runs unmanaged: {why}"),
        }
    }
}
