//! One file of rules.

use std::path::Path;
use std::{fs, io};

use toml::Spanned;

use super::rule::Rule;
use super::written::{Written, WrittenFile};
use crate::toml_file::{self, Mistake};

/// A longer file is not one of ours.
const MOST_BYTES: u64 = 16 << 20;

/// The rules of a text.
pub(super) fn parse(text: &str) -> Result<Vec<Rule>, String> {
    let rule = |rule: Spanned<Written>| {
        let header = rule.span();
        rule.into_inner().into_rule(header)
    };
    let rules = |file: WrittenFile| file.rule.into_iter().map(rule).collect();
    let rules: Result<_, Mistake> = toml_file::parse(text).and_then(rules);
    rules.map_err(|mistake| mistake.show(text))
}

/// The rules of a file.
pub(super) fn read(path: &Path) -> Result<Vec<Rule>, String> {
    let read = || -> io::Result<Vec<u8>> {
        let length = fs::metadata(path)?.len();
        if length > MOST_BYTES {
            return Err(io::Error::other(format!("longer than {MOST_BYTES} bytes")));
        }
        symbiont_safe_open::read(path)
    };
    parse(&toml_file::text(read().map_err(|error| error.to_string())?)?)
}
