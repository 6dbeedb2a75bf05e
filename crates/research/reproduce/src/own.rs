//! The papers' own programs, given as profiles in place of those that stand for them.
//!
//! # Problem
//! The papers ran SPEC CPU, which may not be passed on, so figures are made of other programs. A user with a licence
//! can profile the papers' programs, and wants every figure made of these, as far as they are there, and
//! to read in the report which value rests on what.
//!
//! # Approach
//! A map (`map`) says which profile is of which program (`names`). A source that needs a program of a paper asks
//! `OwnPrograms::or`, one that draws programs from a pool `OwnPrograms::in_pool`: both answer with the given
//! program by its full name (`429.mcf`), which no profile of ours has, or else with the stand-in.
//! What runs for which program is said before anything runs ([`ProgramUse`], [`crate::Source::uses`]). Records follow
//! from the contents of the profiles, as all of them do.
//!
//! # Properties
//! - A map is read or refused with its line (`a_map_is_refused_with_its_line`, and those of `map`).
//! - A given program takes the place of all its stand-ins, one that has none is added to a full pool
//!   (`a_given_program_takes_the_place_of_its_stand_ins`).
//! - Numbers follow from the profile, not from its name, and runs of other profiles are others
//!   (`a_copy_of_a_stand_in_gives_its_numbers_and_another_profile_others`).
//! - What runs for which program is in the report (`the_report_says_what_ran_for_which_program`).

mod map;
#[cfg(test)]
mod map_tests;
mod names;
mod said;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use symbiont_experiments_sim::code;
use symbiont_profile::{Profile, ProfileError};
use symbiont_sim_fast::names::nearest;

pub use map::MapError;
pub(crate) use names::{CPU2006, CPU2006_AND_2017, Suite};
use names::{NAMED, find, stands_for};
pub(crate) use said::{paragraph, table};

/// A longer map is refused.
const LONGEST_MAP: u64 = 1 << 20;

/// A program that was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GivenProgram {
    /// The file of its profile.
    pub path: PathBuf,
    /// What it does.
    pub profile: Profile,
    /// SHA-256 of the profile's contents, in hexadecimal digits.
    pub fingerprint: String,
    line: usize,
}

/// Programs of the papers that were given, by their full names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OwnPrograms(BTreeMap<&'static str, GivenProgram>);

/// Why a map cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum OwnError {
    /// The map cannot be read.
    #[error("cannot read the map of programs {}: {error}", path.display())]
    Read {
        /// The map.
        path: PathBuf,
        /// What the kernel said.
        error: io::Error,
    },
    /// One of its lines cannot be read.
    #[error("{}, {error}", path.display())]
    Line {
        /// The map.
        path: PathBuf,
        /// The line, and what is wrong.
        error: MapError,
    },
    /// It names no program.
    #[error("{} names no program; a line is NAME = PATH", .0.display())]
    Empty(PathBuf),
    /// A program that no paper has.
    #[error(
        "{}, line {line}: no program of the papers is called '{name}'; the nearest: {}\n\
         Programs that may be given: {}",
        path.display(), near.join(", "), list()
    )]
    Unknown {
        /// The map.
        path: PathBuf,
        /// The line.
        line: usize,
        /// The name.
        name: String,
        /// Names like it.
        near: Vec<String>,
    },
    /// A program is given twice.
    #[error("{}, line {line}: {name} is given twice, first in line {first}", path.display())]
    Twice {
        /// The map.
        path: PathBuf,
        /// The line.
        line: usize,
        /// The program.
        name: &'static str,
        /// The line before.
        first: usize,
    },
    /// A profile cannot be read.
    #[error("{}, line {line}: {name}: {error}", path.display())]
    Profile {
        /// The map.
        path: PathBuf,
        /// The line.
        line: usize,
        /// The program.
        name: &'static str,
        /// Why, with the file.
        error: ProfileError,
    },
}

/// All names, for messages.
fn list() -> String {
    NAMED.iter().map(names::Named::short).collect::<Vec<_>>().join(", ")
}

/// Programs that may be given, by their full names, with those of ours that run where they are not.
pub fn replaceable() -> impl Iterator<Item = (&'static str, Vec<&'static str>)> {
    NAMED.iter().map(|named| {
        let mut ours = named.stand_ins.to_vec();
        let in_tables = crate::peternier::stand_ins(named.short());
        ours.extend(in_tables.into_iter().filter(|one| !named.stand_ins.contains(one)));
        (named.full, ours)
    })
}

impl OwnPrograms {
    /// Those of a map; paths are relative to its folder.
    ///
    /// # Errors
    /// When the map or a profile cannot be read, or the map names a program twice, or one that no paper has.
    pub fn read(path: &Path) -> Result<Self, OwnError> {
        let trouble = |error| OwnError::Read { path: path.to_owned(), error };
        let mut text = String::new();
        let read = symbiont_safe_open::open(path)
            .and_then(|file| file.take(LONGEST_MAP + 1).read_to_string(&mut text));
        read.map_err(trouble)?;
        if text.len() as u64 > LONGEST_MAP {
            return Err(trouble(io::Error::other("it is longer than 1 MiB")));
        }
        let entries = map::entries(&text);
        let entries = entries.map_err(|error| OwnError::Line { path: path.to_owned(), error })?;
        let folder = path.parent().unwrap_or(Path::new(""));
        let mut own = Self::default();
        for map::Entry { line, name, path: written } in entries {
            let path = path.to_owned();
            let Some(named) = find(&name) else {
                let near = nearest(&name, NAMED.iter().map(names::Named::short));
                return Err(OwnError::Unknown { path, line, name, near });
            };
            let name = named.full;
            match own.0.entry(name) {
                Entry::Occupied(known) => {
                    return Err(OwnError::Twice { path, line, name, first: known.get().line });
                }
                Entry::Vacant(place) => {
                    let given = GivenProgram::read(folder.join(written), line);
                    place.insert(given.map_err(|error| OwnError::Profile {
                        path,
                        line,
                        name,
                        error,
                    })?);
                }
            }
        }
        if own.0.is_empty() { Err(OwnError::Empty(path.to_owned())) } else { Ok(own) }
    }

    /// Is none given?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Their full names.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.0.keys().copied()
    }

    /// The one with this full name.
    #[must_use]
    pub fn get(&self, full: &str) -> Option<&GivenProgram> {
        self.0.get(full)
    }

    /// What runs for a program of a paper: it, if it is given, else what stands for it, if anything does.
    pub(crate) fn or(&self, program: &str, stand_in: Option<&'static str>) -> Option<&'static str> {
        let given = find(program).filter(|named| self.0.contains_key(named.full));
        given.map(|named| named.full).or(stand_in)
    }

    /// A pool in which given programs of these suites have the places of their stand-ins; those that have none
    /// there are added if that is wanted.
    pub(crate) fn in_pool(&self, pool: Vec<String>, suites: &[Suite], added: bool) -> Vec<String> {
        let mut all: Vec<String> = Vec::with_capacity(pool.len());
        let known = |full: &str| find(full).is_some_and(|named| suites.contains(&named.suite));
        for ours in pool {
            let program = stands_for(&ours, suites).and_then(|named| self.or(named.full, None));
            let one = program.map_or(ours, str::to_owned);
            if !all.contains(&one) {
                all.push(one);
            }
        }
        let rest: Vec<&str> = self.names().filter(|full| known(full)).collect();
        for full in rest.into_iter().filter(|_| added) {
            if !all.iter().any(|one| one == full) {
                all.push(full.to_owned());
            }
        }
        all
    }
}

impl GivenProgram {
    fn read(path: PathBuf, line: usize) -> Result<Self, ProfileError> {
        let profile = Profile::read(&path)?;
        let fingerprint = code::profile(&profile);
        Ok(Self { path, profile, fingerprint, line })
    }
}

/// A program that figures are made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramUse {
    /// The full name of the paper's program; none: it stands for no program of a paper.
    pub program: Option<&'static str>,
    /// What runs: the same name if it is the paper's own, else ours.
    pub by: String,
    /// Is it run from its instruction trace, which no profile can take the place of?
    pub traced: bool,
    /// The ids of the figures.
    pub figures: Vec<&'static str>,
}

impl ProgramUse {
    /// Is it the paper's own?
    #[must_use]
    pub fn is_own(&self) -> bool {
        self.program == Some(self.by.as_str())
    }

    /// What runs for a program of a paper.
    pub(crate) fn of(program: &str, by: &str, figures: &[&'static str]) -> Self {
        let program = find(program).map(|named| named.full);
        Self { program, by: by.to_owned(), traced: false, figures: figures.to_vec() }
    }

    /// The programs of a pool.
    pub(crate) fn of_pool(
        pool: &[String],
        suites: &[Suite],
        figures: &[crate::Figure],
    ) -> Vec<Self> {
        let figures: Vec<&'static str> = figures.iter().map(|figure| figure.id).collect();
        let one = |by: &String| {
            let program = find(by).filter(|named| named.full == by);
            let program = program.or_else(|| stands_for(by, suites)).map(|named| named.full);
            Self { program, by: by.clone(), traced: false, figures: figures.clone() }
        };
        pool.iter().map(one).collect()
    }

    /// Each once, with all its figures of those that are wanted, the papers' programs first.
    pub(crate) fn merged(all: Vec<Self>, wanted: &[&'static str]) -> Vec<Self> {
        let mut merged = BTreeMap::<_, Vec<&'static str>>::new();
        for Self { program, by, traced, figures } in all {
            let known = merged.entry((program.is_none(), program, by, traced)).or_default();
            for figure in figures {
                if wanted.contains(&figure) && !known.contains(&figure) {
                    known.push(figure);
                }
            }
        }
        merged.retain(|_, figures| !figures.is_empty());
        let one = |((_, program, by, traced), figures)| Self { program, by, traced, figures };
        merged.into_iter().map(one).collect()
    }
}
