//! SMT modes: how many threads a core runs at a time.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The mode of a core that more than one thread uses. Resources that are
/// partitioned statically differ between modes, so each has coefficients of
/// its own (Feliu et al., section 3.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SmtMode {
    /// Two threads.
    Smt2,
    /// Three or four threads.
    Smt4,
    /// Five to eight threads.
    Smt8,
}

impl SmtMode {
    /// All modes, narrow ones first.
    pub const ALL: [Self; 3] = [Self::Smt2, Self::Smt4, Self::Smt8];

    /// The mode of a core with that many busy threads; none for a thread
    /// alone, or for more than eight.
    #[must_use]
    pub fn of(threads: usize) -> Option<Self> {
        match threads {
            2 => Some(Self::Smt2),
            3..=4 => Some(Self::Smt4),
            5..=8 => Some(Self::Smt8),
            _ => None,
        }
    }

    /// Threads that fit.
    #[must_use]
    pub fn threads(self) -> usize {
        match self {
            Self::Smt2 => 2,
            Self::Smt4 => 4,
            Self::Smt8 => 8,
        }
    }
}

impl fmt::Display for SmtMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "smt{}", self.threads())
    }
}

/// Not the name of a mode.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no SMT mode; write smt2, smt4 or smt8")]
pub struct UnknownMode(pub String);

impl FromStr for SmtMode {
    type Err = UnknownMode;

    fn from_str(text: &str) -> Result<Self, UnknownMode> {
        Self::ALL
            .into_iter()
            .find(|mode| mode.to_string() == text)
            .ok_or_else(|| UnknownMode(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mode_is_the_narrowest_that_holds_the_threads() {
        assert_eq!(SmtMode::of(1), None);
        assert_eq!(SmtMode::of(9), None);
        for threads in 2..=8 {
            let mode = SmtMode::of(threads).unwrap();
            assert!(mode.threads() >= threads && mode.threads() < 2 * threads);
        }
    }

    #[test]
    fn a_written_mode_reads_back() {
        for mode in SmtMode::ALL {
            assert_eq!(mode.to_string().parse(), Ok(mode));
        }
        assert_eq!("smt3".parse::<SmtMode>(), Err(UnknownMode("smt3".into())));
    }
}
