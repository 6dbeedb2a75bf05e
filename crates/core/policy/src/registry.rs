//! The list of policies.

use std::time::Duration;

use crate::nearest::{hint, nearest};
use crate::parameter::Parameters;
use crate::{
    Policy, Requirements, Settings, activity, auto, fixed, fpu, hysched, l1_bandwidth, learned,
    never_twice, oracle, phases, random, stay, symbiotic, symbiotic_numa, symbiotic_online,
};

/// All policies. A new one is a new file, its `mod` line and a line here.
const POLICIES: &[Entry] = &[
    auto::ENTRY,
    stay::ENTRY,
    random::ENTRY,
    never_twice::ENTRY,
    fixed::ENTRY,
    phases::ENTRY,
    phases::ONLINE,
    fpu::ENTRY,
    l1_bandwidth::ENTRY,
    hysched::ENTRY,
    symbiotic::ENTRY,
    symbiotic_numa::ENTRY,
    symbiotic_online::ENTRY,
    learned::ENTRY,
    activity::ENTRY,
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
    /// What may be set.
    pub parameters: Parameters,
    /// Makes one.
    pub make: fn(&Settings) -> Box<dyn Policy>,
}

impl Entry {
    /// What it asks of a machine and of its user, before it knows the machine.
    #[must_use]
    pub fn requirements(&self) -> Requirements {
        (self.make)(&Settings::default()).requirements()
    }
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
/// When there is none; the error names the nearest names.
pub fn find(name: &str) -> Result<&'static Entry, UnknownPolicy> {
    POLICIES.iter().find(|entry| entry.name == name).ok_or_else(|| unknown(name))
}

fn unknown(name: &str) -> UnknownPolicy {
    let all: Vec<&'static str> = POLICIES.iter().map(|entry| entry.name).collect();
    UnknownPolicy { name: name.to_owned(), near: nearest(name, all.iter().copied()), all }
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
    fn an_unknown_name_is_given_the_nearest() {
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
}
