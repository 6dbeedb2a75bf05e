//! What a program is called in the store.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A program: the digest of its executable, and its user.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProgramKey {
    /// The user.
    pub user: u32,
    /// The digest of the executable, or of the script.
    pub digest: String,
}

impl fmt::Display for ProgramKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.user, self.digest)
    }
}

/// Text that names no program.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a user's number, a colon and a digest")]
pub struct NotAKey(String);

impl FromStr for ProgramKey {
    type Err = NotAKey;

    fn from_str(text: &str) -> Result<Self, NotAKey> {
        let key = text.split_once(':').and_then(|(user, digest)| {
            let is_digest = !digest.is_empty() && digest.bytes().all(|b| b.is_ascii_hexdigit());
            is_digest.then_some(Self { user: user.parse().ok()?, digest: digest.to_owned() })
        });
        key.ok_or_else(|| NotAKey(text.to_owned()))
    }
}

impl Serialize for ProgramKey {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ProgramKey {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_survives_its_text_and_other_text_is_refused() {
        let key = ProgramKey { user: 1000, digest: "ab01".to_owned() };
        assert_eq!(key.to_string().parse(), Ok(key));
        for odd in ["", ":", "1000:", "x:ab", "1000:../../etc", "-1:ab"] {
            assert!(odd.parse::<ProgramKey>().is_err(), "{odd}");
        }
    }
}
