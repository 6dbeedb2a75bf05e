//! A TOML text whose every complaint names file, line and key.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::CatalogueError;

/// Where a table stands: the text it came from and the path of keys to it.
#[derive(Clone)]
pub(super) struct Section<'a> {
    file: &'a str,
    text: &'a str,
    path: String,
    at: Range<usize>,
    table: &'a DeTable<'a>,
}

/// The error for a place in a text.
pub(super) fn error_at(
    file: &str,
    text: &str,
    offset: usize,
    key: &str,
    reason: impl Into<String>,
) -> CatalogueError {
    let before = text.get(..offset).unwrap_or(text);
    let line = before.bytes().filter(|&byte| byte == b'\n').count() + 1;
    CatalogueError { file: file.to_owned(), line, key: key.to_owned(), reason: reason.into() }
}

impl<'a> Section<'a> {
    pub(super) fn root(file: &'a str, text: &'a str, table: &'a DeTable<'a>) -> Self {
        Self { file, text, path: String::new(), at: 0..0, table }
    }

    /// Gives the section the name that people know it by.
    pub(super) fn named(mut self, path: String) -> Self {
        self.path = path;
        self
    }

    /// An error about the section as a whole.
    pub(super) fn error(&self, reason: impl Into<String>) -> CatalogueError {
        let key = if self.path.is_empty() { "document" } else { &self.path };
        error_at(self.file, self.text, self.at.start, key, reason)
    }

    /// An error about one key; about the section if the key is not there.
    pub(super) fn error_in(&self, key: &str, reason: impl Into<String>) -> CatalogueError {
        let at = self.table.get(key).map_or(self.at.start, |value| value.span().start);
        error_at(self.file, self.text, at, &self.key_path(key), reason)
    }

    fn key_path(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    fn missing(&self, key: &str) -> CatalogueError {
        self.error_in(key, "missing")
    }

    fn mistyped(&self, key: &str, found: &DeValue<'_>, wanted: &str) -> CatalogueError {
        self.error_in(key, format!("expected {wanted}, found {}", found.type_str()))
    }

    /// Refuses any key that is not listed.
    pub(super) fn only(&self, known: &[&str]) -> Result<(), CatalogueError> {
        match self.table.keys().find(|key| !known.contains(&key.get_ref().as_ref())) {
            None => Ok(()),
            Some(key) => Err(error_at(
                self.file,
                self.text,
                key.span().start,
                &self.key_path(key.get_ref()),
                format!("unknown key; known here: {}", known.join(", ")),
            )),
        }
    }

    /// The keys in the order of the text.
    pub(super) fn keys(&self) -> Vec<&'a str> {
        let mut keys: Vec<_> = self.table.keys().collect();
        keys.sort_by_key(|key| key.span().start);
        keys.into_iter().map(|key| key.get_ref().as_ref()).collect()
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.table.contains_key(key)
    }

    /// A text that must be there and say something.
    pub(super) fn text(&self, key: &str) -> Result<String, CatalogueError> {
        self.text_if_any(key)?.ok_or_else(|| self.missing(key))
    }

    /// A text that need not be there, but must say something if it is. Lines
    /// are joined, paragraphs kept.
    pub(super) fn text_if_any(&self, key: &str) -> Result<Option<String>, CatalogueError> {
        let Some(value) = self.table.get(key) else { return Ok(None) };
        let Some(text) = value.get_ref().as_str() else {
            return Err(self.mistyped(key, value.get_ref(), "a string"));
        };
        let joined = |paragraph: &str| paragraph.split_whitespace().collect::<Vec<_>>().join(" ");
        let paragraphs: Vec<_> = text.trim().split("\n\n").map(joined).collect();
        match paragraphs.join("\n\n") {
            empty if empty.is_empty() => Err(self.error_in(key, "is empty")),
            text => Ok(Some(text)),
        }
    }

    /// A list of texts that must be there.
    pub(super) fn texts(&self, key: &str) -> Result<Vec<String>, CatalogueError> {
        self.array(key, "an array of strings", |value| value.as_str().map(str::to_owned))?
            .ok_or_else(|| self.missing(key))
    }

    /// A whole number that must be there.
    pub(super) fn number(&self, key: &str) -> Result<u64, CatalogueError> {
        self.number_if_any(key)?.ok_or_else(|| self.missing(key))
    }

    pub(super) fn number_if_any(&self, key: &str) -> Result<Option<u64>, CatalogueError> {
        let Some(value) = self.table.get(key) else { return Ok(None) };
        match whole(value.get_ref()) {
            Some(number) => Ok(Some(number)),
            None => Err(self.mistyped(key, value.get_ref(), "a whole number from 0 to 2^64 - 1")),
        }
    }

    /// Whole numbers that fit 32 bits.
    pub(super) fn numbers(&self, key: &str) -> Result<Option<Vec<u32>>, CatalogueError> {
        self.array(key, "an array of whole numbers below 2^32", |value| {
            whole(value).and_then(|number| u32::try_from(number).ok())
        })
    }

    /// A switch; off if the key is not there.
    pub(super) fn switch(&self, key: &str) -> Result<bool, CatalogueError> {
        let Some(value) = self.table.get(key) else { return Ok(false) };
        value.get_ref().as_bool().ok_or_else(|| self.mistyped(key, value.get_ref(), "a boolean"))
    }

    fn array<T>(
        &self,
        key: &str,
        wanted: &str,
        read: impl Fn(&DeValue<'_>) -> Option<T>,
    ) -> Result<Option<Vec<T>>, CatalogueError> {
        let Some(value) = self.table.get(key) else { return Ok(None) };
        let refuse = |found: &DeValue<'_>| self.mistyped(key, found, wanted);
        let items = value.get_ref().as_array().ok_or_else(|| refuse(value.get_ref()))?;
        let items = items.iter().map(|item| read(item.get_ref()).ok_or(item.get_ref()));
        items.collect::<Result<_, _>>().map(Some).map_err(refuse)
    }

    /// A table below this one that must be there.
    pub(super) fn section(&self, key: &str) -> Result<Self, CatalogueError> {
        self.section_if_any(key)?.ok_or_else(|| self.missing(key))
    }

    pub(super) fn section_if_any(&self, key: &str) -> Result<Option<Self>, CatalogueError> {
        self.table.get(key).map(|value| self.enter(key, value)).transpose()
    }

    /// The tables of an array (`[[key]]`); none if the key is not there.
    pub(super) fn sections(&self, key: &str) -> Result<Vec<Self>, CatalogueError> {
        let Some(value) = self.table.get(key) else { return Ok(Vec::new()) };
        let items = value
            .get_ref()
            .as_array()
            .ok_or_else(|| self.mistyped(key, value.get_ref(), "an array of tables"))?;
        items.iter().map(|item| self.enter(key, item)).collect()
    }

    fn enter(&self, key: &str, value: &'a Spanned<DeValue<'a>>) -> Result<Self, CatalogueError> {
        let table = value
            .get_ref()
            .as_table()
            .ok_or_else(|| self.mistyped(key, value.get_ref(), "a table"))?;
        Ok(Self { path: self.key_path(key), at: value.span(), table, ..self.clone() })
    }
}

fn whole(value: &DeValue<'_>) -> Option<u64> {
    let integer = value.as_integer()?;
    u64::from_str_radix(integer.as_str(), integer.radix()).ok()
}
