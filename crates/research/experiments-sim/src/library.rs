//! Where profiles come from.
//!
//! A library is a folder of profile files, `NAME.profile` each, and a few
//! synthetic programs with one trait each, `synthetic-…`, which are always there.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Serialize;
use symbiont_profile::{Profile, ProfileError, test_support as synthetic};
use symbiont_sim_fast::names::nearest;

/// The ending of profile files.
const ENDING: &str = "profile";

/// Lines of the synthetic pointer chase: 24 MB, more than most caches.
const CHASED: u64 = 400_000;

/// A synthetic program: its name, a line about it, its maker.
type Synthetic = (&'static str, &'static str, fn() -> Profile);

/// The synthetic programs.
const SYNTHETIC: [Synthetic; 5] = [
    ("synthetic-streaming", "reads arrays far larger than any cache", synthetic::streaming),
    ("synthetic-chasing", "follows pointers through 24 MB", || synthetic::pointer_chasing(CHASED)),
    ("synthetic-integer", "integer work that fits any cache", synthetic::cache_resident),
    ("synthetic-float", "floating-point work that fits any cache", synthetic::floating_point),
    ("synthetic-branchy", "branches that are hard to predict", synthetic::branchy),
];

/// Profiles by name.
#[derive(Debug, Clone, Default)]
pub struct Library {
    files: BTreeMap<String, PathBuf>,
}

/// What a profile is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A program as users run it.
    Program,
    /// A single calculation, of which programs are made; its name begins with one of a prefix of its own.
    Kernel,
    /// Made, with one trait.
    Synthetic,
}

/// How names of kernels begin.
const KERNELS: [&str; 2] = ["scimark-", "matrix-"];

/// A program of a library.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LibraryEntry {
    /// Its name.
    pub name: String,
    /// Where its profile is, or what the synthetic program does.
    pub source: String,
    /// What it is.
    pub kind: Kind,
}

/// Why a program cannot be simulated.
#[derive(Debug, thiserror::Error)]
pub enum LibraryError {
    /// The folder cannot be read.
    #[error("profiles in {}: {error}", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// What the kernel said.
        error: std::io::Error,
    },
    /// No program of that name.
    #[error(
        "there is no program '{name}'; the nearest: {} (`symbiont workloads` lists all)",
        near.join(", ")
    )]
    Unknown {
        /// The name asked for.
        name: String,
        /// Names like it.
        near: Vec<String>,
    },
    /// Its profile cannot be read.
    #[error(transparent)]
    Profile(#[from] ProfileError),
}

impl Library {
    /// The profiles of a folder, and the synthetic programs; only those if there
    /// is no such folder.
    ///
    /// # Errors
    /// When the folder is there but cannot be read.
    pub fn open(folder: &Path) -> Result<Self, LibraryError> {
        let trouble = |error| LibraryError::Folder { path: folder.to_owned(), error };
        let entries = match std::fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(Self::default());
            }
            Err(error) => return Err(trouble(error)),
        };
        let mut files = BTreeMap::new();
        for entry in entries {
            let path = entry.map_err(trouble)?.path();
            let name = path.file_stem().and_then(|stem| stem.to_str()).map(str::to_owned);
            if let (Some(name), true) = (name, path.extension().is_some_and(|e| e == ENDING)) {
                files.insert(name, path);
            }
        }
        Ok(Self { files })
    }

    /// All programs, those of the folder first.
    #[must_use]
    pub fn list(&self) -> Vec<LibraryEntry> {
        let real = self.files.iter().map(|(name, path)| LibraryEntry {
            name: name.clone(),
            source: path.display().to_string(),
            kind: match KERNELS.iter().any(|start| name.starts_with(start)) {
                true => Kind::Kernel,
                false => Kind::Program,
            },
        });
        let made = SYNTHETIC.iter().map(|(name, what, _)| LibraryEntry {
            name: (*name).to_owned(),
            source: (*what).to_owned(),
            kind: Kind::Synthetic,
        });
        real.chain(made).collect()
    }

    /// The names of those of a kind.
    pub fn of_kind(&self, kind: Kind) -> impl Iterator<Item = String> {
        self.list().into_iter().filter(move |listed| listed.kind == kind).map(|listed| listed.name)
    }

    /// Where a program's profile comes from.
    #[must_use]
    pub fn source(&self, name: &str) -> String {
        match self.files.get(name) {
            Some(path) => path.display().to_string(),
            None => "synthetic".to_owned(),
        }
    }

    /// Reads a profile: of a program of this library, or of the file whose path
    /// `name` is (it then contains a `/` or ends in `.profile`).
    ///
    /// # Errors
    /// When there is none of that name, with the nearest names, or when it
    /// cannot be read.
    pub fn load(&self, name: &str) -> Result<Profile, LibraryError> {
        if let Some(path) = self.files.get(name) {
            return Ok(Profile::read(path)?);
        }
        if let Some((_, _, make)) = SYNTHETIC.iter().find(|(known, _, _)| *known == name) {
            return Ok(Profile { program: name.to_owned(), ..make() });
        }
        let path = Path::new(name);
        if name.contains('/') || path.extension().is_some_and(|e| e == ENDING) {
            return Ok(Profile::read(path)?);
        }
        let known = self.files.keys().map(String::as_str);
        let near = nearest(name, known.chain(SYNTHETIC.iter().map(|(name, _, _)| *name)));
        Err(LibraryError::Unknown { name: name.to_owned(), near })
    }

    /// Reads the profiles of some programs, each once.
    ///
    /// # Errors
    /// As [`Library::load`].
    pub fn load_all<'n>(
        &self,
        names: impl IntoIterator<Item = &'n str>,
    ) -> Result<BTreeMap<String, Profile>, LibraryError> {
        let mut profiles = BTreeMap::new();
        for name in names {
            if !profiles.contains_key(name) {
                profiles.insert(name.to_owned(), self.load(name)?);
            }
        }
        Ok(profiles)
    }
}
