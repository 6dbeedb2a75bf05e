//! Classifies recorded Top-Down series of real programs.
//!
//! # Problem
//! Which category dominates a program decides with whom Hy-Sched pairs it
//! (Navarro et al., section 4.1). Recorded series of real machines tell that for
//! programs that cannot be run here.
//!
//! # Approach
//! A folder holds a folder for each program ([`read`]), with the counts of its
//! whole run (`ipc.topdown.txt`) and its level-1 shares second by second
//! (`amdtopdown.csv`), as `wspy` writes them on Zen. The counts become events of
//! the catalogue of that machine, and the catalogue's own formulas make shares of
//! them: the same formulas that classify threads while they run. Slots that the
//! other thread of the core had (SMT contention) belong to no category and are
//! excluded: shares are of the rest.
//!
//! The files have levels 1 and 2, so the variants are [`Variant::TopL`] and
//! [`Variant::TopB2L`]; there is no third level on this machine.
//!
//! # Terms and units
//! Shares are fractions of issue slots, 0 to 1; the files print percent. *Own*:
//! as the file itself prints it. *Changes*: share of seconds whose dominant
//! category differs from that of the second before.
//!
//! # Properties
//! - Shares agree with the percentages that the files print beside their counts
//!   (`a_series_is_classified_as_its_own_totals_say`), and contention changes no
//!   share (`contention_belongs_to_no_category`).
//! - A damaged file is refused with its line (`a_damaged_file_is_told_with_its_line`).

mod classify;
mod read;
#[cfg(test)]
mod tests;

use std::path::PathBuf;

use serde::Serialize;
use symbiont_counters::catalogue::{Absent, CatalogueError};
#[cfg(doc)]
use symbiont_policy::Variant;

pub use classify::{Classified, Dominant, Second, classify};
pub use read::{Counts, Program, Shares, read};

/// Why a series cannot be classified.
#[derive(Debug, thiserror::Error)]
pub enum TopdownError {
    /// A file or folder cannot be read.
    #[error("{}: {source}", path.display())]
    Io {
        /// Which one.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file does not say what it should.
    #[error("{}:{line}: {what}", path.display())]
    Line {
        /// Which file.
        path: PathBuf,
        /// Its line, from 1.
        line: usize,
        /// What is wrong there.
        what: String,
    },
    /// A count is missing.
    #[error("{}: there is no line '{name}'", path.display())]
    Missing {
        /// Which file.
        path: PathBuf,
        /// The line's name.
        name: &'static str,
    },
    /// The folder holds no series.
    #[error("{}: no folder in it holds an ipc.topdown.txt", .0.display())]
    Empty(PathBuf),
    /// The catalogue cannot be read.
    #[error(transparent)]
    Catalogue(#[from] CatalogueError),
    /// The catalogue cannot tell a share.
    #[error("{program}: {source}")]
    Formula {
        /// Of which program.
        program: String,
        /// Why.
        source: Absent,
    },
    /// The catalogue does not tell how many slots a cycle has.
    #[error("the catalogue {0} does not tell how many slots a cycle has")]
    NoSlots(String),
    /// The catalogue has no such categories.
    #[error("the catalogue {catalogue} has no categories '{variant}'")]
    NoCategories {
        /// Which catalogue.
        catalogue: String,
        /// Of which variant.
        variant: String,
    },
}

/// The four categories of level 1, in the order in which the files name them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Level1 {
    /// Slots of ops that retired.
    Retiring,
    /// Slots that the front end left empty.
    Frontend,
    /// Slots that the back end could not take.
    Backend,
    /// Slots of ops that did not retire.
    Speculation,
}

impl Level1 {
    /// All of them, in the order of the files.
    pub const ALL: [Self; 4] = [Self::Retiring, Self::Frontend, Self::Backend, Self::Speculation];

    /// Its name in the catalogues.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Retiring => "retiring",
            Self::Frontend => "frontend_bound",
            Self::Backend => "backend_bound",
            Self::Speculation => "bad_speculation",
        }
    }
}
