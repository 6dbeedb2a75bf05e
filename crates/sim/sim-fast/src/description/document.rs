//! A TOML text in which every error names file, line and key, and every
//! value names its source.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::{Range, RangeInclusive};

use toml::de::{DeTable, DeValue};

use super::{DescriptionError, Source, SourcedValue};

type Read<T> = Result<T, DescriptionError>;

/// What all sections of one text share.
pub(super) struct Text<'a> {
    pub(super) file: &'a str,
    pub(super) text: &'a str,
    /// Short name → full citation.
    pub(super) works: BTreeMap<String, String>,
    pub(super) values: RefCell<BTreeMap<String, SourcedValue>>,
}

impl Text<'_> {
    pub(super) fn error(&self, offset: usize, key: &str, reason: String) -> DescriptionError {
        let before = self.text.get(..offset).unwrap_or(self.text);
        let line = before.bytes().filter(|&byte| byte == b'\n').count() + 1;
        DescriptionError { file: self.file.to_owned(), line, key: key.to_owned(), reason }
    }
}

/// A table of the text.
#[derive(Clone)]
pub(super) struct Section<'a> {
    pub(super) text: &'a Text<'a>,
    path: String,
    at: Range<usize>,
    table: &'a DeTable<'a>,
    source: Option<Source>,
}

impl<'a> Section<'a> {
    pub(super) fn root(text: &'a Text<'a>, table: &'a DeTable<'a>) -> Self {
        Self { text, path: String::new(), at: 0..0, table, source: None }
    }

    fn key_path(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    /// An error about one key; about the section if the key is not there.
    pub(super) fn error(&self, key: &str, reason: impl Into<String>) -> DescriptionError {
        let at = self.table.get(key).map_or(self.at.start, |value| value.span().start);
        self.text.error(at, &self.key_path(key), reason.into())
    }

    fn get(&self, key: &str) -> Read<&'a DeValue<'a>> {
        let missing = || self.error(key, "missing");
        self.table.get(key).map(toml::Spanned::get_ref).ok_or_else(missing)
    }

    fn mistyped(&self, key: &str, found: &DeValue<'_>, wanted: &str) -> DescriptionError {
        self.error(key, format!("expected {wanted}, found {}", found.type_str()))
    }

    /// Refuses any key that is not listed.
    pub(super) fn only(&self, known: &[&str]) -> Read<()> {
        match self.table.keys().find(|key| !known.contains(&key.get_ref().as_ref())) {
            None => Ok(()),
            Some(key) => Err(self.text.error(
                key.span().start,
                &self.key_path(key.get_ref()),
                format!("unknown key; known here: {}", known.join(", ")),
            )),
        }
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.table.contains_key(key)
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = &'a str> {
        self.table.keys().map(|key| key.get_ref().as_ref())
    }

    /// A text that describes nothing and so needs no source.
    pub(super) fn words(&self, key: &str) -> Read<String> {
        let value = self.get(key)?;
        let Some(text) = value.as_str() else { return Err(self.mistyped(key, value, "a string")) };
        let joined = text.split_whitespace().collect::<Vec<_>>().join(" ");
        if joined.is_empty() { Err(self.error(key, "is empty")) } else { Ok(joined) }
    }

    /// A table below this one. Its `source`, or else this one's, covers what
    /// is in it.
    pub(super) fn section(&self, key: &str) -> Read<Self> {
        let value = self.get(key)?;
        let Some(table) = value.as_table() else {
            return Err(self.mistyped(key, value, "a table"));
        };
        let at = self.table.get(key).map_or(self.at.clone(), toml::Spanned::span);
        let path = self.key_path(key);
        let inner = Self { text: self.text, path, at, table, source: self.source.clone() };
        let source = if inner.has("source") { Some(inner.cited()?) } else { inner.source.clone() };
        Ok(Self { source, ..inner })
    }

    /// The key `source`: `assumed: why`, or the short name of a work with
    /// perhaps a place in it.
    fn cited(&self) -> Read<Source> {
        let text = self.words("source")?;
        let (name, place) = text.split_once(':').unwrap_or((&text, ""));
        let (name, place) = (name.trim(), place.trim());
        if name == "assumed" {
            let why = "say why: \"assumed: …\"";
            return if place.is_empty() {
                Err(self.error("source", why))
            } else {
                Ok(Source::Assumed(place.to_owned()))
            };
        }
        match self.text.works.get(name) {
            Some(work) if place.is_empty() => Ok(Source::Published(work.clone())),
            Some(work) => Ok(Source::Published(format!("{work}: {place}"))),
            None => Err(self.error(
                "source",
                format!("'{name}' is neither 'assumed: why' nor a work listed in [sources]"),
            )),
        }
    }

    /// Notes the value of a key as it is written, and where it comes from.
    fn note(&self, key: &str, value: Option<Range<usize>>) -> Read<()> {
        let Some(source) = self.source.clone() else {
            return Err(self.error(key, "has no source; give one for it or for its section"));
        };
        let value = value.and_then(|span| self.text.text.get(span)).unwrap_or_default();
        let value = value.trim_matches('"').to_owned();
        self.text.values.borrow_mut().insert(self.key_path(key), SourcedValue { value, source });
        Ok(())
    }

    fn span(&self, key: &str) -> Option<Range<usize>> {
        self.table.get(key).map(toml::Spanned::span)
    }

    /// The section and key under which a value stands: `key = 3` or
    /// `key = { value = 3, source = "…" }`.
    fn place(&self, key: &'a str) -> Read<(Self, &'a str)> {
        if self.get(key)?.as_table().is_none() {
            self.note(key, self.span(key))?;
            return Ok((self.clone(), key));
        }
        let inner = self.section(key)?;
        inner.only(&["value", "source"])?;
        Self { source: inner.source.clone(), ..self.clone() }.note(key, inner.span("value"))?;
        Ok((inner, "value"))
    }

    /// A whole number within a range.
    pub(super) fn count(&self, key: &'a str, range: RangeInclusive<u32>) -> Read<u32> {
        let (at, key) = self.place(key)?;
        let value = at.get(key)?;
        let (low, high) = (range.start(), range.end());
        let wanted = format!("a whole number from {low} to {high}");
        let Some(integer) = value.as_integer() else {
            return Err(at.mistyped(key, value, &wanted));
        };
        let number = u32::from_str_radix(integer.as_str(), integer.radix()).ok();
        number
            .filter(|number| range.contains(number))
            .ok_or_else(|| at.error(key, format!("expected {wanted}, found {}", integer.as_str())))
    }

    /// A number within a range.
    pub(super) fn real(&self, key: &'a str, range: RangeInclusive<f64>) -> Read<f64> {
        let (at, key) = self.place(key)?;
        let value = at.get(key)?;
        let wanted = format!("a number from {} to {}", range.start(), range.end());
        let written = value
            .as_float()
            .map(|number| number.as_str().to_owned())
            .or_else(|| value.as_integer().map(|number| number.as_str().to_owned()));
        let Some(written) = written else { return Err(at.mistyped(key, value, &wanted)) };
        let number = written.parse::<f64>().ok();
        number
            .filter(|number| range.contains(number))
            .ok_or_else(|| at.error(key, format!("expected {wanted}, found {written}")))
    }

    /// A text that is a value, and the place to complain about it.
    pub(super) fn text<T>(
        &self,
        key: &'a str,
        read: impl FnOnce(&str) -> Result<T, String>,
    ) -> Read<T> {
        let (at, key) = self.place(key)?;
        read(&at.words(key)?).map_err(|reason| at.error(key, reason))
    }

    /// A size: whole number and K, M or G (powers of 1024).
    pub(super) fn bytes(&self, key: &'a str) -> Read<u64> {
        self.text(key, |text| {
            let (digits, unit) = match text.as_bytes().last() {
                Some(b'K') => (text.trim_end_matches('K'), 10),
                Some(b'M') => (text.trim_end_matches('M'), 20),
                Some(b'G') => (text.trim_end_matches('G'), 30),
                _ => (text, 0),
            };
            let number = digits.parse::<u32>().ok().filter(|&number| number > 0);
            let wanted = || format!("expected a size such as \"32K\" or \"8M\", found \"{text}\"");
            number.map(|number| u64::from(number) << unit).ok_or_else(wanted)
        })
    }

    /// A list of texts, each read.
    pub(super) fn list<T>(
        &self,
        key: &'a str,
        read: impl Fn(&str) -> Result<T, String>,
    ) -> Read<Vec<T>> {
        let (at, key) = self.place(key)?;
        let value = at.get(key)?;
        let wrong = |found: &DeValue<'_>| at.mistyped(key, found, "an array of strings");
        let items = value.as_array().ok_or_else(|| wrong(value))?;
        items
            .iter()
            .map(|item| {
                let text = item.get_ref().as_str().ok_or_else(|| wrong(item.get_ref()))?;
                read(text)
                    .map_err(|reason| at.text.error(item.span().start, &at.key_path(key), reason))
            })
            .collect()
    }
}
