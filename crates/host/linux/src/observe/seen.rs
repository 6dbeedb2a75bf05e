//! What a scan finds of one process.

/// A living process as a scan saw it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Seen {
    pub process: u32,
    pub parent: u32,
    pub session: u32,
    pub born: u64,
    pub stack: u64,
}
