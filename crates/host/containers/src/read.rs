//! Reads one state file: bounded, owned by those that are believed, a regular file within its folder.

use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use symbiont_safe_open::within::Folder;

/// Bytes of a state file.
pub const MOST_BYTES: u64 = 16 << 20;

/// State of a container that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// No state folder has it.
    #[error("no state folder of a runtime has it")]
    Missing,
    /// A file cannot be read, is no regular file, or a link leads to it.
    #[error("cannot read {path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The kernel's answer.
        source: io::Error,
    },
    /// A file is too long.
    #[error("{path} is longer than {MOST_BYTES} bytes")]
    TooLong {
        /// The file.
        path: PathBuf,
    },
    /// A file belongs to a user that is not believed here.
    #[error("{path} belongs to user {owner}, whose word does not count there")]
    NotBelieved {
        /// The file.
        path: PathBuf,
        /// Its owner.
        owner: u32,
    },
    /// A file says nothing that can be understood.
    #[error("{path} cannot be understood: {why}")]
    Content {
        /// The file.
        path: PathBuf,
        /// Line, column and reason.
        why: String,
    },
    /// The state is that of a container in another cgroup: the name of this one is borrowed.
    #[error("the container of {path} is in {recorded}, not in this cgroup")]
    OtherCgroup {
        /// The file.
        path: PathBuf,
        /// The cgroup that the runtime recorded.
        recorded: String,
    },
}

/// By what one version of a file differs from the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    device: u64,
    inode: u64,
    length: u64,
    modified: (i64, i64),
}

impl Stamp {
    fn of(data: &std::fs::Metadata) -> Self {
        let modified = (data.mtime(), data.mtime_nsec());
        Self { device: data.dev(), inode: data.ino(), length: data.len(), modified }
    }
}

/// Where state is, and the user that is believed there.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct StateLocation {
    /// A folder that others cannot replace.
    pub base: PathBuf,
    /// Path of the state within it.
    pub inside: PathBuf,
    /// The user whose folder it is; root's word counts everywhere.
    pub owner: u32,
}

impl StateLocation {
    /// The whole path of a file, for people.
    #[must_use]
    pub fn full(&self, file: &Path) -> PathBuf {
        self.base.join(&self.inside).join(file)
    }
}

/// A folder of state, opened.
#[derive(Debug)]
pub struct StateFolder {
    /// Where it is.
    pub location: StateLocation,
    /// Its base.
    pub held: Folder,
}

impl StateFolder {
    /// Is there anything of this path, be it a link or another thing that cannot be read?
    #[must_use]
    pub fn has(&self, file: &Path) -> bool {
        !self.held.look(&self.location.inside.join(file)).is_err_and(|error| is_missing(&error))
    }

    /// The version of a file; none where there is no file.
    #[must_use]
    pub fn stamp(&self, file: &Path) -> Option<Stamp> {
        self.held.look(&self.location.inside.join(file)).ok().as_ref().map(Stamp::of)
    }

    /// The names in a folder, at most this many; none where there is no folder.
    #[must_use]
    pub fn names(&self, folder: &Path, most: usize) -> Vec<String> {
        self.held.names(&self.location.inside.join(folder), most).unwrap_or_default()
    }

    /// The bytes of a file, and its version.
    ///
    /// # Errors
    /// As [`ReadError`] lists them.
    pub fn read(&self, file: &Path) -> Result<(Vec<u8>, Stamp), ReadError> {
        let path = || self.location.full(file);
        let io = |source: io::Error| match is_missing(&source) {
            true => ReadError::Missing,
            false => ReadError::Io { path: path(), source },
        };
        let held = self.held.file(&self.location.inside.join(file)).map_err(io)?;
        let data = held.metadata().map_err(io)?;
        if data.uid() != 0 && data.uid() != self.location.owner {
            return Err(ReadError::NotBelieved { path: path(), owner: data.uid() });
        }
        if data.len() > MOST_BYTES {
            return Err(ReadError::TooLong { path: path() });
        }
        let mut bytes = Vec::new();
        held.take(MOST_BYTES + 1).read_to_end(&mut bytes).map_err(io)?;
        match u64::try_from(bytes.len()) {
            Ok(length) if length <= MOST_BYTES => Ok((bytes, Stamp::of(&data))),
            _ => Err(ReadError::TooLong { path: path() }),
        }
    }

    /// The same, understood.
    ///
    /// # Errors
    /// As [`ReadError`] lists them.
    pub fn parse<T>(
        &self,
        file: &Path,
        parse: impl FnOnce(&[u8]) -> Result<T, String>,
    ) -> Result<(T, Stamp), ReadError> {
        let (bytes, stamp) = self.read(file)?;
        let parsed = parse(&bytes)
            .map_err(|why| ReadError::Content { path: self.location.full(file), why })?;
        Ok((parsed, stamp))
    }
}

fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// JSON, as runtimes write it.
pub(crate) fn json<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    serde_json::from_slice(bytes).map_err(|error| error.to_string())
}
