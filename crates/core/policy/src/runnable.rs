//! Can a policy run with these settings, on a machine that offers this? Whatever lists, checks or
//! runs policies asks here, so that all give the same answer.
//!
//! # Properties
//! - A policy that needs a file cannot run without it, whatever the machine offers
//!   (`a_policy_that_needs_a_file_cannot_run_without_it`).
//! - A signal that is missing is named before a file that is: no file helps where it cannot be
//!   measured (`a_missing_signal_is_named_first`).

use symbiont_machine::{Signal, Support};
use symbiont_topology::Topology;

use crate::{Entry, Settings};

/// A file that a policy cannot do without.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it needs {what}: name the file with {option} (`{made_by}` of a full build makes it)")]
pub struct MissingInput {
    /// What it holds.
    pub what: &'static str,
    /// The option that names it.
    pub option: &'static str,
    /// The command that makes it.
    pub made_by: &'static str,
}

impl MissingInput {
    /// Made by training.
    pub(crate) const fn trained(what: &'static str, option: &'static str) -> Self {
        Self { what, option, made_by: "symbiont train" }
    }
}

/// Why a policy cannot run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CannotRun {
    /// The machine does not measure what it needs.
    #[error("it needs {signal}, but {why}")]
    Signal {
        /// The first signal that is missing.
        signal: Signal,
        /// Why it is.
        why: String,
    },
    /// It was not given what it needs.
    #[error(transparent)]
    Input(#[from] MissingInput),
}

impl Entry {
    /// Can it run with these settings? With `machine`: on one that offers this and is built so.
    ///
    /// # Errors
    /// The first reason why it cannot.
    pub fn check(
        &self,
        settings: &Settings,
        machine: Option<(&Support, &Topology)>,
    ) -> Result<(), CannotRun> {
        let mut made = (self.make)(settings);
        if let Some((offered, topology)) = machine {
            made.offer(offered, topology);
            if let Some((signal, why)) = offered.missing(&made.requirements().required) {
                return Err(CannotRun::Signal { signal, why });
            }
        }
        made.requirements().missing_input.map_or(Ok(()), |missing| Err(missing.into()))
    }
}

#[cfg(test)]
mod tests {
    use symbiont_machine::test_support::full_support;

    use super::*;
    use crate::{find, policies};

    fn topology() -> Topology {
        Topology::synthetic("core:2 smt:2").unwrap()
    }

    fn cannot(policy: &str, offered: Option<&Support>) -> String {
        let topology = topology();
        let machine = offered.map(|offered| (offered, &topology));
        find(policy).unwrap().check(&Settings::default(), machine).unwrap_err().to_string()
    }

    #[test]
    fn a_policy_that_needs_a_file_cannot_run_without_it() {
        for policy in policies() {
            let needs = match policy.name {
                "symbiotic" | "symbiotic-numa" | "symbiotic-online" => Some("--model"),
                "oracle" => Some("--slowdowns"),
                "activity" => Some("--vectors"),
                _ => None,
            };
            for offered in [None, Some(full_support())] {
                let topology = topology();
                let machine = offered.as_ref().map(|offered| (offered, &topology));
                match (policy.check(&Settings::default(), machine), needs) {
                    (Err(CannotRun::Input(missing)), Some(option)) => {
                        assert_eq!(missing.option, option);
                        let made_by = format!("`{}`", missing.made_by);
                        assert!(missing.to_string().contains(&made_by), "{missing}");
                    }
                    (Ok(()), None) => {}
                    (other, _) => panic!("{}: {other:?}", policy.name),
                }
            }
        }
    }

    #[test]
    fn a_missing_signal_is_named_first() {
        let mut offered = full_support();
        offered.signals.remove(&Signal::CpiStack);
        let why = cannot("symbiotic", Some(&offered));
        assert_eq!(why, "it needs CPI stacks, but this machine does not measure it");
        assert!(cannot("symbiotic", None).contains("--model"));
        assert!(cannot("oracle", Some(&offered)).contains("--slowdowns"));
    }
}
