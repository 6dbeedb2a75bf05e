//! The purpose of a program, as its user states it.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The purpose of a program. The user states it; nothing derives it.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    /// The policy places it as it sees fit.
    #[default]
    Normal,
    /// It answers requests: it has cores whose hardware threads run no other managed program.
    Latency,
    /// It may take its time: it runs when no other thread wants the CPU.
    Batch,
    /// It is being measured: one hardware thread each of cores that run no other managed program.
    Alone,
}

/// A word that names no class.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no class is called '{0}'; there are: normal, latency, batch, alone")]
pub struct UnknownClass(String);

impl Class {
    /// Is it the class of programs of which nothing is said?
    #[must_use]
    #[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
    pub fn is_normal(&self) -> bool {
        *self == Self::Normal
    }

    /// Does it keep other programs off its cores?
    #[must_use]
    pub fn keeps_cores(self) -> bool {
        matches!(self, Self::Latency | Self::Alone)
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Normal => "normal",
            Self::Latency => "latency",
            Self::Batch => "batch",
            Self::Alone => "alone",
        })
    }
}

impl FromStr for Class {
    type Err = UnknownClass;

    fn from_str(text: &str) -> Result<Self, UnknownClass> {
        match text {
            "normal" => Ok(Self::Normal),
            "latency" => Ok(Self::Latency),
            "batch" => Ok(Self::Batch),
            "alone" => Ok(Self::Alone),
            _ => Err(UnknownClass(text.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        for class in [Class::Normal, Class::Latency, Class::Batch, Class::Alone] {
            assert_eq!(class.to_string().parse(), Ok(class));
        }
        let error = "fast".parse::<Class>().unwrap_err().to_string();
        assert!(error.contains("'fast'") && error.contains("latency"), "{error}");
    }
}
