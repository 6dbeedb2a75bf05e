//! Patterns of names.

use std::str::FromStr;

use globset::GlobBuilder;
use serde::{Deserialize, Deserializer};

/// Longer than any name; the memory for a pattern is some hundred times its length.
const MOST_CHARACTERS: usize = 4096;

/// A text that is no pattern of a name.
#[derive(Debug, thiserror::Error)]
pub enum PatternError {
    /// It would match nothing.
    #[error("an empty pattern matches no name; `*` matches any")]
    Empty,
    /// It would take much memory.
    #[error("a pattern has at most {MOST_CHARACTERS} characters, and this one has {0}")]
    Long(usize),
    /// Something is wrong in it.
    #[error(transparent)]
    Glob(#[from] globset::Error),
}

/// A pattern of names: `*`, `?`, `[…]`, `{a,b}`; `*` goes over slashes, too.
#[derive(Debug, Clone)]
pub(super) struct Pattern(globset::Glob);

impl Pattern {
    pub fn glob(&self) -> &globset::Glob {
        &self.0
    }

    /// Of a value, which may be empty.
    pub fn of_value(text: &str) -> Result<Self, PatternError> {
        let length = text.chars().count();
        if length > MOST_CHARACTERS {
            return Err(PatternError::Long(length));
        }
        Ok(Self(GlobBuilder::new(text).literal_separator(false).build()?))
    }
}

impl FromStr for Pattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.is_empty() {
            return Err(PatternError::Empty);
        }
        Self::of_value(text)
    }
}

impl<'de> Deserialize<'de> for Pattern {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?.parse().map_err(serde::de::Error::custom)
    }
}

/// Can a pattern match `NAMESPACE/NAME`? Choices in braces and brackets are not looked into.
#[must_use]
pub fn can_be_a_pod(pattern: &str) -> bool {
    let has_choices = pattern.contains(['{', '[', '\\']);
    match pattern.split_once('/') {
        None => false,
        Some(_) if has_choices => true,
        Some((namespace, name)) => !namespace.is_empty() && !name.is_empty() && !name.contains('/'),
    }
}
