//! What can be wrong with a catalogue, and where.

/// A catalogue that cannot be read: file, line, key and reason.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {key}: {reason}")]
pub struct CatalogueError {
    /// The catalogue's name, as given to [`parse`](super::Catalogue::parse).
    pub file: String,
    /// Line of the text, from 1.
    pub line: usize,
    /// Path of the key, for example `event.PM_RUN_CYC.counters`; `document`
    /// where the text is no TOML at all.
    pub key: String,
    /// What is wrong, and what is expected.
    pub reason: String,
}
