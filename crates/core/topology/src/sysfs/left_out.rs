//! What a tree holds but nothing could be made of.

use std::fmt;

use super::SysfsError;

/// Files of one kind that were not understood and count as missing. What is left out
/// says nothing of which hardware threads exist and share a core.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// The kind: a path below the root, with `*` for numbers.
    kind: String,
    /// What is wrong with the first of them.
    first: String,
    /// How many there are.
    files: usize,
}

impl LeftOut {
    /// Adds a file to those of its kind.
    pub(super) fn add(all: &mut Vec<Self>, path: &str, why: &SysfsError) {
        let kind = kind(path);
        match all.iter_mut().find(|known| known.kind == kind) {
            Some(known) => known.files += 1,
            None => all.push(Self { kind, first: why.to_string(), files: 1 }),
        }
    }
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.first)?;
        match self.files - 1 {
            0 => Ok(()),
            1 => write!(f, " (and one more of {})", self.kind),
            more => write!(f, " (and {more} more of {})", self.kind),
        }
    }
}

/// A path with `*` in place of each number.
fn kind(path: &str) -> String {
    let mut kind = String::new();
    for c in path.chars() {
        match c.is_ascii_digit() {
            true if kind.ends_with('*') => {}
            true => kind.push('*'),
            false => kind.push(c),
        }
    }
    kind
}
