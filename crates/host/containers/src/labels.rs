//! Labels and annotations, bounded as they are read.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};

/// Bytes of a value; longer ones are left out.
pub const MOST_VALUE: usize = 64 << 10;
/// Bytes of a key; longer ones are left out.
pub const MOST_KEY: usize = 1 << 10;
/// Most labels, and most annotations, of a container; further ones are left out.
pub const MOST_LABELS: usize = 1000;

/// Labels or annotations. What is too long, or no text, is left out; the others stay.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Labels(BTreeMap<String, String>);

impl Labels {
    /// The value of a key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str)
    }

    /// All, by key.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value.as_str()))
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Is there none?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds one, unless the key is there or a bound is reached.
    pub(crate) fn add(&mut self, key: &str, value: &str) {
        let fits = key.len() <= MOST_KEY && value.len() <= MOST_VALUE && self.0.len() < MOST_LABELS;
        if fits && !self.0.contains_key(key) {
            self.0.insert(key.to_owned(), value.to_owned());
        }
    }

    /// Adds those of another whose keys are not there.
    pub(crate) fn add_all(&mut self, others: &Self) {
        others.iter().for_each(|(key, value)| self.add(key, value));
    }

    /// The labels that a text holds, as CRI-O writes them into an annotation.
    pub(crate) fn of_json(text: &str) -> Self {
        serde_json::from_str(text).unwrap_or_default()
    }
}

impl<'de> Deserialize<'de> for Labels {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(LabelsVisitor)
    }
}

struct LabelsVisitor;

impl<'de> Visitor<'de> for LabelsVisitor {
    type Value = Labels;

    fn expecting(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        text.write_str("a table of texts")
    }

    fn visit_unit<E>(self) -> Result<Labels, E> {
        Ok(Labels::default())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Labels, A::Error> {
        let mut labels = Labels::default();
        while let Some(key) = map.next_key::<Cow<'_, str>>()? {
            match map.next_value()? {
                Value::Text(value) => labels.add(&key, &value),
                Value::Other(IgnoredAny) => {}
            }
        }
        Ok(labels)
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Value {
    Text(String),
    /// Skipped.
    Other(IgnoredAny),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_long_or_no_text_is_left_out() {
        let long = "x".repeat(MOST_VALUE + 1);
        let key = "k".repeat(MOST_KEY + 1);
        let text = format!(
            r#"{{"a":"1","b":2,"c":{{"d":[]}},"long":"{long}","{key}":"v","e":"5","a":"6"}}"#
        );
        let labels = Labels::of_json(&text);
        assert_eq!(labels.iter().collect::<Vec<_>>(), [("a", "1"), ("e", "5")], "the first of two");
        let many: Vec<String> = (0..2000).map(|at| format!("\"k{at}\":\"v\"")).collect();
        assert_eq!(Labels::of_json(&format!("{{{}}}", many.join(","))).len(), MOST_LABELS);
        for none in ["null", "", "[", "[1]", "3"] {
            assert!(Labels::of_json(none).is_empty(), "{none}");
        }
    }
}
