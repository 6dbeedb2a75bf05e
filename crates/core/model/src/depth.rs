//! How finely a CPI stack is split.
//!
//! # Problem
//! The five components that two groups of events give (Feliu et al., Table 1) lump units,
//! caches and memory in one: threads that need quite different things look alike, and
//! which threads should share a core lies in just that. Nor do stalls show what a thread does to others:
//! lines that a prefetcher brings in time hold no thread up, and push out data all the same. A
//! finer stack shows all that, but takes more groups, which share the counters: its counts
//! are older and noisier (section 4.1).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use symbiont_machine::Signal;

/// Which of a catalogue's stacks a model is made of.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Depth {
    /// The stack that every catalogue has.
    #[default]
    Coarse,
    /// Stalls split by unit and memory level, and the lines that are moved.
    Fine,
}

impl Depth {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Coarse, Self::Fine];

    /// The name that commands and files use.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Coarse => "coarse",
            Self::Fine => "fine",
        }
    }

    /// The sum of the catalogue that gives the stack.
    #[must_use]
    pub fn sum(self) -> &'static str {
        match self {
            Self::Coarse => "cpi_stack",
            Self::Fine => "cpi_stack_fine",
        }
    }

    /// The signal that has to be counted for it.
    #[must_use]
    pub fn signal(self) -> Signal {
        match self {
            Self::Coarse => Signal::CpiStack,
            Self::Fine => Signal::CpiStackFine,
        }
    }
}

impl fmt::Display for Depth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Not the name of a depth.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no stack; write coarse or fine")]
pub struct UnknownDepth(pub String);

impl FromStr for Depth {
    type Err = UnknownDepth;

    fn from_str(text: &str) -> Result<Self, UnknownDepth> {
        let known = Self::ALL.into_iter().find(|depth| depth.name() == text);
        known.ok_or_else(|| UnknownDepth(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use symbiont_counters::catalogue::Catalogue;

    use super::*;
    use crate::Components;

    #[test]
    fn a_written_depth_reads_back() {
        for depth in Depth::ALL {
            assert_eq!(depth.to_string().parse(), Ok(depth));
        }
        assert_eq!("deep".parse::<Depth>(), Err(UnknownDepth("deep".into())));
    }

    #[test]
    fn components_say_what_has_to_be_counted_for_them() {
        let power8 = Catalogue::named("power8").unwrap().unwrap();
        for depth in Depth::ALL {
            let components = Components::of(&power8, depth.sum()).unwrap();
            assert_eq!(components.signal(), depth.signal());
            assert!(power8.signals().contains(&depth.signal()));
        }
        let power9 = Catalogue::named("power9").unwrap().unwrap();
        let missing = Components::of(&power9, Depth::Fine.sum()).unwrap_err().to_string();
        assert!(missing.contains("has no sum 'cpi_stack_fine'"), "{missing}");
        assert!(!power9.signals().contains(&Depth::Fine.signal()));
    }
}
