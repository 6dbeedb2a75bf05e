//! The list of policies.

use std::sync::Arc;
use std::time::Duration;

use symbiont_machine::Signals;

use crate::{
    PairSlowdowns, Policy, Symbiosis, Together, Variant, auto, fixed, fpu, hysched, l1_bandwidth,
    never_twice, oracle, phases, random, stay, symbiotic, symbiotic_numa,
};

/// All policies. A new one is a new file, its `mod` line and a line here.
const POLICIES: &[Entry] = &[
    auto::ENTRY,
    stay::ENTRY,
    random::ENTRY,
    never_twice::ENTRY,
    fixed::ENTRY,
    phases::ENTRY,
    fpu::ENTRY,
    l1_bandwidth::ENTRY,
    hysched::ENTRY,
    symbiotic::ENTRY,
    symbiotic_numa::ENTRY,
    oracle::ENTRY,
];

/// Name of the policy that decides where none is asked for.
pub const DEFAULT: &str = auto::ENTRY.name;

/// A policy as it appears in the list.
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    /// Its name, as a user writes it.
    pub name: &'static str,
    /// What it does, in a line.
    pub summary: &'static str,
    /// Where it was published.
    pub paper: Option<&'static str>,
    /// How often it decides, unless the user says otherwise.
    pub quantum: Duration,
    /// Does it make threads more urgent, where the machine can?
    pub boosts: bool,
    /// Makes one.
    pub make: fn(&Settings) -> Box<dyn Policy>,
}

impl Entry {
    /// What it needs to be told about threads.
    #[must_use]
    pub fn needs(&self) -> Signals {
        (self.make)(&Settings::default()).needs()
    }
}

/// What may be set when a policy is made. A policy reads what concerns it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Settings {
    /// Seed of everything that is random.
    pub seed: u64,
    /// `phases`: a program with more ready threads than this is parallel.
    /// None: the policy's own value for the machine.
    pub parallel_threshold: Option<f64>,
    /// `hysched`: which categories it looks at. None: its own choice.
    pub variant: Option<Variant>,
    /// `hysched`: by how much of the issue slots (0 to 1) another category must
    /// exceed a thread's own before the thread changes it. 0 in the paper.
    pub hysteresis: f64,
    /// `fpu`: how many threads count as active, those that ran most. None: those that ran at least
    /// a tenth as much as the first one.
    pub fpu_active: Option<usize>,
    /// `fpu`: how many of the active threads it binds, those that use the FPUs most. None: those that
    /// use them at least half as much as the first one.
    pub fpu_top: Option<usize>,
    /// `static`: programs that shall share a core.
    pub together: Together,
    /// `phases`: how long one of several parallel programs stays boosted before
    /// the next one's turn comes. None: a second.
    pub seniority_timeout: Option<Duration>,
    /// `symbiotic`, `symbiotic-numa`: what they predict by. None: they leave
    /// everything to the OS.
    pub symbiosis: Option<Arc<Symbiosis>>,
    /// `oracle`: what it knows beforehand. None: it leaves everything to the
    /// OS.
    pub slowdowns: Option<Arc<PairSlowdowns>>,
}

/// A name that no policy has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no policy is called '{name}'; {}there are: {}", hint(near), all.join(", "))]
pub struct UnknownPolicy {
    /// The name that was asked for.
    pub name: String,
    /// The names that are nearest to it, nearest first; may be empty.
    pub near: Vec<&'static str>,
    /// All names.
    pub all: Vec<&'static str>,
}

/// All policies.
#[must_use]
pub fn policies() -> &'static [Entry] {
    POLICIES
}

/// The policy with this name.
///
/// # Errors
/// When there is none; the error tells the nearest names.
pub fn find(name: &str) -> Result<&'static Entry, UnknownPolicy> {
    POLICIES.iter().find(|entry| entry.name == name).ok_or_else(|| unknown(name))
}

fn unknown(name: &str) -> UnknownPolicy {
    let asked = name.to_lowercase();
    let mut near: Vec<(usize, &'static str)> = POLICIES
        .iter()
        .map(|entry| (distance(&asked, entry.name), entry.name))
        .filter(|(distance, known)| *distance <= known.len() / 2)
        .collect();
    near.sort_unstable();
    UnknownPolicy {
        name: name.to_owned(),
        near: near.into_iter().map(|(_, known)| known).collect(),
        all: POLICIES.iter().map(|entry| entry.name).collect(),
    }
}

fn hint(near: &[&str]) -> String {
    if near.is_empty() {
        String::new()
    } else {
        format!("did you mean '{}'? ", near.join("' or '"))
    }
}

/// Letters to insert, delete or replace to get from one word to the other
/// (Levenshtein).
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, a) in from.chars().enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        for (cell, b) in row.iter_mut().skip(1).zip(&to) {
            let best = (diagonal + usize::from(a != *b)).min(*cell + 1).min(left + 1);
            diagonal = *cell;
            *cell = best;
            left = best;
        }
        row[0] = i + 1;
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_agree_with_their_policies() {
        for entry in policies() {
            let made = (entry.make)(&Settings::default());
            assert_eq!(made.name(), entry.name);
            assert!(find(entry.name).is_ok());
            assert!(!entry.quantum.is_zero());
            assert!(!entry.summary.is_empty() && !entry.summary.contains('\n'));
        }
    }

    #[test]
    fn names_are_unique() {
        let mut names: Vec<_> = policies().iter().map(|entry| entry.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), policies().len());
    }

    #[test]
    fn an_unknown_name_is_told_the_nearest() {
        let error = find("phase").unwrap_err();
        assert_eq!(error.near, ["phases"]);
        let all = policies().iter().map(|entry| entry.name).collect::<Vec<_>>().join(", ");
        assert_eq!(
            error.to_string(),
            format!("no policy is called 'phase'; did you mean 'phases'? there are: {all}")
        );
        assert_eq!(find("Random").unwrap_err().near, ["random"]);
        let far = find("cfs").unwrap_err();
        assert_eq!(far.to_string(), format!("no policy is called 'cfs'; there are: {all}"));
    }

    #[test]
    fn distance_counts_edits() {
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("abc", ""), 3);
        assert_eq!(distance("phases", "phases"), 0);
        assert_eq!(distance("phsaes", "phases"), 2);
        assert_eq!(distance("kitten", "sitting"), 3);
    }
}
