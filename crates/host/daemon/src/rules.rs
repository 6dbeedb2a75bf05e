//! An administrator's rules for programs that no user starts with `symbiont run`.
//!
//! # Problem
//! Services and the programs of users that do not use Symbiont shall be managed, or left alone,
//! by what they are.
//!
//! # Approach
//! [`Rules`] are files in directories; a file of a later directory replaces the one of the same name
//! in an earlier one, as systemd's drop-ins do. All rules are ordered by the names of their files,
//! then by their places in them. Of the rules that match a process the last one decides whether it is
//! managed, and the last one that names a class decides the class. [`Finder`] looks once a second for
//! processes that no program has yet.
//!
//! A file that cannot be used is reported with line and key and changes nothing: what was read of it
//! before stays, and so do the other files. Annotations of containers count as a rule before all others, where
//! that is allowed.
//!
//! # Terms and units
//! *Executable*: the file that a process runs, or, where that may not be read, the first word of its
//! command line, which its user can choose. A rule gives a program nothing that its user could not
//! have by `symbiont run`, so nothing is gained by that.
//!
//! # Properties
//! - All that a rule names must match (`all_that_a_rule_names_must_match`).
//! - The last rule decides (`the_last_rule_that_matches_decides`).
//! - A file replaces the one of the same name; an empty one masks it
//!   (`a_file_replaces_the_one_of_the_same_name_in_an_earlier_directory`).
//! - A bad file is reported by line and key, and the rest is applied
//!   (`a_bad_file_is_reported_and_the_others_stay_applied`).
//! - Annotations count less than any rule (`annotations_count_less_than_rules`).
//! - Neither the daemon nor what it descends from is ever managed by a rule
//!   (`the_daemon_and_its_ancestors_are_never_managed`).

mod annotations;
mod file;
mod finder;
mod matcher;
mod members;
mod pattern;
mod process;
mod rule;
mod written;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::{fs, io};

use symbiont_machine::Class;

use annotations::Annotated;
pub use finder::{Finder, Found};
use matcher::Matcher;
pub use members::{ContainerPatterns, FoundContainer, find_containers};
pub use pattern::{PatternError, can_be_a_pod};
pub use process::{Facts, Needs};
use rule::Rule;

/// The verdict of the rules on a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// The purpose of the program.
    pub class: Class,
    /// Which processes are one program.
    pub group: Group,
    /// What decided, for people: `a rule of FILE`, or `annotations of CONTAINER`.
    pub by: String,
}

/// The processes that are one program with one that a rule matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Group {
    /// Its descendants.
    #[default]
    None,
    /// All of its cgroup.
    Cgroup,
    /// All of its container.
    Container,
}

/// A file of rules that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("rules in {path} are not applied{}: {why}", still_apply(*stays))]
pub struct RulesError {
    /// The file or directory.
    pub path: PathBuf,
    /// Do rules that were read of it before still apply?
    pub stays: bool,
    /// Line, key and reason.
    pub why: String,
}

/// Said where rules of a file stay although it has a mistake now.
fn still_apply(stays: bool) -> &'static str {
    if stays { "; those read of it before still apply" } else { "" }
}

/// The rules of some directories.
#[derive(Debug, Default)]
pub struct Rules {
    directories: Vec<PathBuf>,
    files: BTreeMap<OsString, (PathBuf, Vec<Rule>)>,
    matcher: Matcher,
    /// Do annotations of containers count?
    annotations: bool,
}

impl Rules {
    /// Of these directories, the most general one first. None is read yet.
    #[must_use]
    pub fn of(directories: Vec<PathBuf>) -> Self {
        Self { directories, ..Self::default() }
    }

    /// Do annotations of containers count, before all rules?
    pub fn allow_annotations(&mut self, allow: bool) {
        self.annotations = allow;
    }

    /// What they ask for beyond what is cheap.
    #[must_use]
    pub fn needs(&self) -> Needs {
        let mut needs = Needs { container: self.annotations, command: false };
        for rule in self.files.values().flat_map(|(_, rules)| rules) {
            needs.container |= rule.names_a_container();
            needs.command |= rule.command.is_some() || rule.comm.is_some();
        }
        needs
    }

    /// Is there nothing to match by?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        !self.annotations && self.files.values().all(|(_, rules)| rules.is_empty())
    }

    /// The number of rules.
    #[must_use]
    pub fn len(&self) -> usize {
        self.files.values().map(|(_, rules)| rules.len()).sum()
    }

    /// Reads the directories again; gives what cannot be used. A directory that does not exist has
    /// no rules.
    pub fn read(&mut self) -> Vec<RulesError> {
        let mut errors = Vec::new();
        let mut paths = BTreeMap::new();
        for directory in &self.directories {
            match list(directory) {
                Ok(files) => paths.extend(files),
                Err(error) => {
                    let (path, why) = (directory.clone(), error.to_string());
                    errors.push(RulesError { path, stays: false, why });
                }
            }
        }
        let mut before = std::mem::take(&mut self.files);
        for (name, path) in paths {
            let known = before.remove(&name).filter(|(known, _)| *known == path);
            let known = known.map(|(_, rules)| rules);
            let rules = file::read(&path).or_else(|why| {
                let stays = known.as_ref().is_some_and(|rules| !rules.is_empty());
                errors.push(RulesError { path: path.clone(), stays, why });
                known.ok_or(())
            });
            if let Ok(rules) = rules {
                self.files.insert(name, (path, rules));
            }
        }
        self.matcher = Matcher::new(self.files.values().flat_map(|(_, rules)| rules));
        errors
    }

    /// The verdict on a process; none if no rule has it managed.
    #[must_use]
    pub fn decide(&self, facts: &Facts) -> Option<Verdict> {
        let container = facts.container.as_deref().filter(|_| self.annotations);
        let asked = container.map(Annotated::of).unwrap_or_default();
        let mut class = asked.class.unwrap_or_default();
        let mut verdict = container.filter(|_| asked.manages()).map(|container| Verdict {
            class,
            group: Group::Container,
            by: format!("annotations of {}", container.display()),
        });
        for index in self.matcher.matching(facts) {
            let Some((path, rule)) = self.rule(index) else { continue };
            class = rule.class().unwrap_or(class);
            let of_container = match (rule.class(), container.zip(asked.class)) {
                (None, Some((container, asked))) if asked == class => {
                    format!(", class by annotations of {}", container.display())
                }
                _ => String::new(),
            };
            verdict = rule.manages().then(|| Verdict {
                class,
                group: rule.group(),
                by: format!("a rule of {}{of_container}", path.display()),
            });
        }
        verdict
    }

    /// The rule at this place of the whole order.
    fn rule(&self, mut index: usize) -> Option<(&Path, &Rule)> {
        for (path, rules) in self.files.values() {
            match rules.get(index) {
                Some(rule) => return Some((path, rule)),
                None => index -= rules.len(),
            }
        }
        None
    }
}

/// The files of rules in a directory, by their names.
fn list(directory: &Path) -> io::Result<Vec<(OsString, PathBuf)>> {
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let paths =
        entries.map(|entry| entry.map(|entry| entry.path())).collect::<io::Result<Vec<_>>>()?;
    let named = paths.into_iter().filter(|path| path.extension().is_some_and(|end| end == "toml"));
    Ok(named.filter_map(|path| Some((path.file_name()?.to_owned(), path))).collect())
}

/// What a fuzzer asks of any text: it is read and matched, or refused.
#[cfg(fuzzing)]
pub fn fuzz(text: &str) {
    let Ok(rules) = file::parse(text) else { return };
    let matching = Matcher::new(rules.iter()).matching(&Facts::default());
    assert!(matching.iter().all(|rule| *rule < rules.len()));
}

#[cfg(test)]
mod tests;
