//! Files that say which profile is of which program.
//!
//! # Problem
//! A user with programs that others have only stand-ins for makes a profile of each, in files of any name. One text
//! file says which is which, written by hand or by a script.
//!
//! # Approach
//! A line is `NAME = PATH`. `#` begins a comment, at the start of a line or behind a space. Name and path may stand in
//! double quotes, as in TOML, but nothing is escaped: what is between the quotes is meant as it is. What a
//! name means, and where a path begins, is the caller's.
//!
//! # Properties
//! - What is read is written and read back equal (`what_is_read_is_written_and_read_back_equal`).
//! - Anything else is refused with its line, without a panic (`lines_are_read_or_refused_with_their_number`,
//!   `any_text_is_read_or_refused`).

use std::fmt;

/// A line that names a profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its line, from 1.
    pub line: usize,
    /// The program.
    pub name: String,
    /// The path of its profile, as it is written.
    pub path: String,
}

/// What is wrong with a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}; a line is NAME = PATH, and # begins a comment")]
pub struct MapError {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong.
    pub what: &'static str,
}

/// The lines of a map that name profiles, in order.
///
/// # Errors
/// With the first line that does not belong in a map.
pub fn entries(text: &str) -> Result<Vec<Entry>, MapError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut all = Vec::new();
    for (line, written) in (1..).zip(text.lines().map(str::trim)) {
        if written.is_empty() || written.starts_with('#') {
            continue;
        }
        let (name, path) = name_and_path(written).map_err(|what| MapError { line, what })?;
        all.push(Entry { line, name: name.to_owned(), path: path.to_owned() });
    }
    Ok(all)
}

fn name_and_path(written: &str) -> Result<(&str, &str), &'static str> {
    const NO_SIGN: &str = "there is no '='";
    let (name, rest) = match written.strip_prefix('"') {
        Some(quoted) => {
            let (name, rest) = quoted.split_once('"').ok_or("a quote is not closed")?;
            (name, rest.trim_start().strip_prefix('=').ok_or(NO_SIGN)?)
        }
        None => written.split_once('=').ok_or(NO_SIGN)?,
    };
    let name = name.trim();
    if name.is_empty() {
        return Err("there is no name before '='");
    }
    if name.contains(['"', '#']) {
        return Err("a name has no quotes and no '#'");
    }
    let rest = rest.trim();
    let path = match rest.strip_prefix('"') {
        Some(quoted) => {
            let (path, behind) = quoted.split_once('"').ok_or("a quote is not closed")?;
            let behind = behind.trim_start();
            if !behind.is_empty() && !behind.starts_with('#') {
                return Err("something stands behind the path");
            }
            path
        }
        None => uncommented(rest),
    };
    if path.is_empty() { Err("there is no path behind '='") } else { Ok((name, path)) }
}

/// A path without the comment behind it.
fn uncommented(text: &str) -> &str {
    let mut before = ' ';
    for (at, letter) in text.char_indices() {
        if letter == '#' && before.is_whitespace() {
            return text.get(..at).unwrap_or_default().trim_end();
        }
        before = letter;
    }
    text
}

impl fmt::Display for Entry {
    /// As a line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Only a path that was written without quotes has one in it.
        let quote = if self.path.contains('"') { "" } else { "\"" };
        write!(f, "\"{}\" = {quote}{}{quote}", self.name, self.path)
    }
}
