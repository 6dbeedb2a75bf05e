//! What a program does to each region of its caches, interval by interval: the input of activity vectors.
//!
//! # Problem
//! Settle et al. schedule on a real machine, whose counters do not say which sets of a cache a program uses. They
//! simulate its caches beforehand (section 4.3.1).
//!
//! # Approach
//! The program runs under the plugin once more, while the caches of one machine are simulated line by line
//! ([`caches`]). For each interval of 50 million instructions, in the order of execution, uses and misses are
//! kept by *super-set*, a contiguous group of sets. Readers choose thresholds, and may merge super-sets.
//! Intervals are not grouped into phases.
//!
//! The file is JSON. It says of which executable (SHA-256) and of which caches it is.
//!
//! # Properties
//! - What is written is read back equal (`vectors_round_trip`).
//! - Anything else is refused, with the reason (`files_that_make_no_sense_are_refused`).
//! - Vectors of other caches or another executable are refused (`vectors_of_something_else_are_refused`).

pub mod caches;

use std::fmt;
use std::io::{self, Read as _};
use std::path::Path;

use serde::{Deserialize, Serialize};

/// The version that is written and read.
pub const VERSION: u32 = 1;
/// Super-sets that are kept of a cache; as many as it has sets, if those are fewer.
pub const SUPER_SETS: u32 = 128;
/// The caches of an interval, in order.
pub const CACHES: [&str; 3] = ["L1 data", "L1 instruction", "L2"];
/// Longest file that is read.
const LONGEST: u64 = 256 << 20;
/// Most sets and ways of a cache that are simulated, and longest line.
const MOST: u32 = 1 << 20;

/// Shape of a cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Geometry {
    /// Sets.
    pub sets: u32,
    /// Ways.
    pub ways: u32,
    /// Bytes of a line.
    pub line: u32,
}

impl fmt::Display for Geometry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} sets of {} lines of {} bytes", self.sets, self.ways, self.line)
    }
}

impl Geometry {
    fn is_sane(self) -> bool {
        let sane = |value: u32| (1..=MOST).contains(&value);
        sane(self.sets)
            && sane(self.ways)
            && sane(self.line)
            && u64::from(self.sets) * u64::from(self.ways) <= u64::from(MOST) * 16
    }
}

/// The caches of a hardware thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hierarchy {
    /// First level of data.
    pub l1d: Geometry,
    /// First level of instructions.
    pub l1i: Geometry,
    /// Second level.
    pub l2: Geometry,
}

impl Hierarchy {
    /// Can it be simulated?
    #[must_use]
    pub fn is_sane(&self) -> bool {
        self.l1d.is_sane() && self.l1i.is_sane() && self.l2.is_sane()
    }
}

impl fmt::Display for Hierarchy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "L1 data {}, L1 instruction {}, L2 {}", self.l1d, self.l1i, self.l2)
    }
}

/// Uses and misses of a cache in an interval, by super-set.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Accesses.
    pub uses: Vec<u32>,
    /// Accesses that missed.
    pub misses: Vec<u32>,
}

/// One interval of the program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interval {
    /// Its instructions.
    pub instructions: u64,
    /// What it did to each of [`CACHES`].
    pub caches: [Counts; 3],
}

/// What a program does to its caches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Vectors {
    /// [`VERSION`].
    pub version: u32,
    /// The program's name.
    pub program: String,
    /// The command that ran.
    pub command: Vec<String>,
    /// SHA-256 of the executable file, in hexadecimal digits.
    pub digest: String,
    /// The caches that were simulated.
    pub hierarchy: Hierarchy,
    /// The intervals of the thread that executed most, in their order; the last one may be shorter.
    pub intervals: Vec<Interval>,
    /// What the capture could not do, in plain words.
    pub gaps: Vec<String>,
}

/// Does a file begin as one of vectors does? Profiles and traces do not.
///
/// # Errors
/// When it cannot be read, or is no regular file.
pub fn is_vectors(path: &Path) -> io::Result<bool> {
    let mut first = Vec::new();
    symbiont_safe_open::open(path)?.take(1).read_to_end(&mut first)?;
    Ok(first == b"{")
}

/// Why vectors cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum VectorsError {
    /// The file cannot be read or written.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: String,
        /// The reason.
        source: io::Error,
    },
    /// It is no file of vectors, or makes no sense.
    #[error("{path} holds no activity vectors: {what}")]
    Invalid {
        /// The file.
        path: String,
        /// What is wrong.
        what: String,
    },
    /// The file is of other caches than those asked for.
    #[error(
        "vectors of {program} are of other caches ({theirs}) than these ({ours}); capture them again"
    )]
    OtherCaches {
        /// The program.
        program: String,
        /// The caches of the file.
        theirs: Box<Hierarchy>,
        /// The caches that were asked for.
        ours: Box<Hierarchy>,
    },
    /// The file is of another executable.
    #[error("vectors of {program} are of another executable; capture them again")]
    OtherExecutable {
        /// The program.
        program: String,
    },
}

impl Vectors {
    /// Reads a file.
    ///
    /// # Errors
    /// When it cannot be read, or is no file of vectors of this version.
    pub fn read(path: &Path) -> Result<Self, VectorsError> {
        let name = path.display().to_string();
        let io = |source| VectorsError::Io { path: name.clone(), source };
        let mut bytes = Vec::new();
        let file = symbiont_safe_open::open(path).map_err(io)?;
        file.take(LONGEST).read_to_end(&mut bytes).map_err(io)?;
        Self::from_bytes(&bytes).map_err(|what| VectorsError::Invalid { path: name.clone(), what })
    }

    /// Reads what a file holds.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, String> {
        let vectors: Self = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        if vectors.version != VERSION {
            return Err(format!("version {}, not {VERSION}", vectors.version));
        }
        if !vectors.hierarchy.is_sane() {
            return Err("caches that cannot be".to_owned());
        }
        let Hierarchy { l1d, l1i, l2 } = vectors.hierarchy;
        let groups = [l1d, l1i, l2].map(|cache| cache.sets.min(SUPER_SETS) as usize);
        let fits = |(counts, groups): (&Counts, usize)| {
            counts.uses.len() == groups && counts.misses.len() == groups
        };
        let add = |sum: u64, interval: &Interval| sum.checked_add(interval.instructions);
        if vectors.intervals.iter().try_fold(0, add).is_none() {
            return Err("more instructions than can be counted".to_owned());
        }
        match vectors.intervals.iter().position(|it| !it.caches.iter().zip(groups).all(fits)) {
            Some(at) => Err(format!("interval {at} has other super-sets than its caches")),
            None if vectors.intervals.iter().all(|it| it.instructions == 0) => {
                Err("no instructions".to_owned())
            }
            None => Ok(vectors),
        }
    }

    /// Writes a file.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), VectorsError> {
        let io = |source| VectorsError::Io { path: path.display().to_string(), source };
        let bytes = serde_json::to_vec(self).map_err(|error| io(error.into()))?;
        symbiont_safe_open::output::replace_by(path, 0o644, &bytes).map_err(io)
    }

    /// Checks that they are of this executable and these caches.
    ///
    /// # Errors
    /// Which of the two differs.
    pub fn check(&self, digest: &str, hierarchy: &Hierarchy) -> Result<(), VectorsError> {
        let program = self.program.clone();
        if self.hierarchy != *hierarchy {
            let (theirs, ours) = (Box::new(self.hierarchy), Box::new(*hierarchy));
            return Err(VectorsError::OtherCaches { program, theirs, ours });
        }
        if self.digest != digest {
            return Err(VectorsError::OtherExecutable { program });
        }
        Ok(())
    }

    /// The interval that the program is in after this many instructions. After its end it starts over, since a
    /// program that runs longer than when it was captured mostly does the same again. None if no interval was
    /// captured.
    #[must_use]
    pub fn at(&self, instructions: u64) -> Option<&Interval> {
        let all: u64 = self.intervals.iter().map(|interval| interval.instructions).sum();
        let mut left = instructions.checked_rem(all)?;
        self.intervals.iter().find(|interval| {
            let is = left < interval.instructions;
            left = left.saturating_sub(interval.instructions);
            is
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hierarchy() -> Hierarchy {
        let of = |sets, ways| Geometry { sets, ways, line: 64 };
        Hierarchy { l1d: of(64, 8), l1i: of(64, 8), l2: of(1024, 8) }
    }

    fn vectors() -> Vectors {
        let counts = |groups: usize| Counts { uses: vec![3; groups], misses: vec![1; groups] };
        let interval =
            |instructions| Interval { instructions, caches: [counts(64), counts(64), counts(128)] };
        Vectors {
            version: VERSION,
            program: "gzip".to_owned(),
            command: vec!["gzip".to_owned()],
            digest: "ab".to_owned(),
            hierarchy: hierarchy(),
            intervals: vec![interval(50), interval(50), interval(7)],
            gaps: Vec::new(),
        }
    }

    #[test]
    fn vectors_round_trip() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("gzip.vectors");
        vectors().write(&path).unwrap();
        assert_eq!(Vectors::read(&path).unwrap(), vectors());
        let missing = Vectors::read(&folder.path().join("nothing")).unwrap_err().to_string();
        assert!(missing.contains("nothing"), "{missing}");
    }

    #[test]
    fn files_that_make_no_sense_are_refused() {
        let refused = |change: &dyn Fn(&mut Vectors)| {
            let mut vectors = vectors();
            change(&mut vectors);
            Vectors::from_bytes(&serde_json::to_vec(&vectors).unwrap()).unwrap_err()
        };
        assert_eq!(refused(&|it| it.version = 2), "version 2, not 1");
        assert_eq!(refused(&|it| it.hierarchy.l2.ways = 0), "caches that cannot be");
        assert_eq!(refused(&|it| it.hierarchy.l2.sets = u32::MAX), "caches that cannot be");
        let few = refused(&|it| it.intervals[1].caches[2].misses.truncate(127));
        assert_eq!(few, "interval 1 has other super-sets than its caches");
        assert_eq!(refused(&|it| it.intervals.clear()), "no instructions");
        let many = "more instructions than can be counted";
        assert_eq!(refused(&|it| it.intervals[1].instructions = u64::MAX), many);
        assert!(Vectors::from_bytes(b"{}").unwrap_err().contains("missing field"));
    }

    #[test]
    fn vectors_of_something_else_are_refused() {
        assert!(vectors().check("ab", &hierarchy()).is_ok());
        let other = vectors().check("cd", &hierarchy()).unwrap_err().to_string();
        assert_eq!(other, "vectors of gzip are of another executable; capture them again");
        let smaller = Hierarchy { l1i: hierarchy().l2, ..hierarchy() };
        let other = vectors().check("ab", &smaller).unwrap_err().to_string();
        assert!(other.contains("other caches (L1 data 64 sets of 8 lines of 64 bytes"), "{other}");
    }

    #[test]
    fn a_place_in_the_program_has_its_interval() {
        let vectors = vectors();
        let place = |at| {
            let found = vectors.at(at).unwrap();
            vectors.intervals.iter().position(|it| std::ptr::eq(it, found)).unwrap()
        };
        assert_eq!([0, 49, 50, 99, 100, 106, 107, 157].map(place), [0, 0, 1, 1, 2, 2, 0, 1]);
        assert!(Vectors { intervals: Vec::new(), ..vectors }.at(3).is_none());
    }
}
