//! A command of a batch.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

/// A command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// The number of its line, from 1: its name for people.
    pub number: usize,
    /// What `sh -c` is given: any bytes but zero.
    pub command: OsString,
}

impl Line {
    /// With these bytes.
    pub fn new(number: usize, command: &[u8]) -> Self {
        Self { number, command: OsStr::from_bytes(command).to_owned() }
    }

    /// For people and logs: what is no UTF-8 is replaced.
    pub fn text(&self) -> Cow<'_, str> {
        self.command.to_string_lossy()
    }

    /// As text of which no two commands have the same.
    pub fn unique_text(&self) -> Cow<'_, str> {
        match self.text() {
            // A command has no zero byte.
            Cow::Owned(text) => {
                format!("{text}\0{}", self.command.as_bytes().escape_ascii()).into()
            }
            text => text,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_of_other_bytes_are_other_commands() {
        let unique = |bytes: &[u8]| Line::new(1, bytes).unique_text().into_owned();
        assert_eq!(unique("xz é".as_bytes()), "xz é");
        let texts =
            [&b"xz \xe9"[..], b"xz \xe8", b"xz \\xe9", "xz \u{fffd}".as_bytes()].map(unique);
        assert_eq!(std::collections::BTreeSet::from(texts).len(), 4);
    }
}
