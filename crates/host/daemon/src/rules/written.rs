//! A rule as it is written, and what can be wrong in it.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use symbiont_machine::Class;
use toml::Spanned;

use super::pattern::{Pattern, can_be_a_pod};
use super::rule::Rule;
use crate::toml_file::Mistake;

/// Things that a rule names.
const MOST_NAMES: usize = 64;

/// A file of rules as it is written.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WrittenFile {
    #[serde(default, deserialize_with = "rules")]
    pub rule: Vec<Spanned<Written>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table, which begins with [[rule]]")]
pub(super) struct Written {
    cgroup: Option<Pattern>,
    unit: Option<Pattern>,
    #[serde(default, deserialize_with = "pod")]
    pod: Option<Pattern>,
    container: Option<Pattern>,
    image: Option<Pattern>,
    #[serde(default, deserialize_with = "labels")]
    label: BTreeMap<String, Pattern>,
    executable: Option<Pattern>,
    command: Option<Pattern>,
    comm: Option<Pattern>,
    #[serde(default, deserialize_with = "user")]
    user: Option<String>,
    manage: Option<Spanned<bool>>,
    ignore: Option<Spanned<bool>>,
    #[serde(default, deserialize_with = "class")]
    class: Option<Class>,
    alone: Option<Spanned<bool>>,
}

/// Does it say so?
fn says(key: Option<&Spanned<bool>>) -> bool {
    key.is_some_and(|key| *key.get_ref())
}

impl Written {
    /// The rule; `header` is where it begins.
    pub fn into_rule(self, header: Range<usize>) -> Result<Rule, Mistake> {
        let said = self.check_what_it_says(header.clone());
        let class = if says(self.alone.as_ref()) { Some(Class::Alone) } else { self.class };
        let ignore = says(self.ignore.as_ref());
        let Self { cgroup, unit, pod, container, image, label, .. } = self;
        let Self { executable, command, comm, user, .. } = self;
        let rule = Rule {
            cgroup,
            unit,
            pod,
            container,
            image,
            label,
            executable,
            command,
            comm,
            user,
            ignore,
            class,
        };
        let names = match rule.count() {
            0 => Err(
                "a rule names at least one of cgroup, unit, pod, container, image, label, executable, \
                 command, comm, user",
            ),
            count if count > MOST_NAMES => Err("a rule names at most 64 things"),
            _ => Ok(()),
        };
        names.map_err(|why| Mistake::new(header, why))?;
        said.map(|()| rule)
    }

    /// Does what it says to do go together?
    fn check_what_it_says(&self, header: Range<usize>) -> Result<(), Mistake> {
        let Self { manage, ignore, class, alone, .. } = self;
        let [manages, ignores, is_alone] = [manage, ignore, alone].map(|key| says(key.as_ref()));
        let at = |key: &Option<Spanned<bool>>, why: String| {
            Err(Mistake::new(key.as_ref().map_or(header.clone(), Spanned::span), why))
        };
        if ignores && (manages || is_alone || class.is_some()) {
            return at(
                ignore,
                "`ignore` goes with neither `manage`, `class` nor `alone`".to_owned(),
            );
        }
        if is_alone && class.is_some() {
            return at(alone, "`alone` and `class` exclude each other".to_owned());
        }
        let use_ignore = "to leave programs to the OS, use `ignore = true`";
        if manage.is_some() && !manages && (is_alone || class.is_some()) {
            let other = if is_alone { "alone" } else { "class" };
            let why = format!("`manage = false` and `{other}` exclude each other; {use_ignore}");
            return at(manage, why);
        }
        if manages || ignores || is_alone || class.is_some() {
            return Ok(());
        }
        if manage.is_some() {
            return at(manage, format!("`manage = false` says nothing; {use_ignore}"));
        }
        let one_of = "a rule says one of manage, ignore, class, alone";
        for (name, key) in [("ignore", ignore), ("alone", alone)] {
            if key.is_some() {
                return at(key, format!("`{name} = false` says nothing; {one_of}"));
            }
        }
        Err(Mistake::new(header, one_of))
    }
}

fn pod<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Pattern>, D::Error> {
    let pattern = Pattern::deserialize(from)?;
    if !can_be_a_pod(pattern.glob().glob()) {
        return Err(D::Error::custom("a `pod` is written as NAMESPACE/NAME, as in \"shop/web-*\""));
    }
    Ok(Some(pattern))
}

fn class<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Class>, D::Error> {
    String::deserialize(from)?.parse().map(Some).map_err(D::Error::custom)
}

/// A user by name or number.
fn user<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "a user is a name in quotes or a number")]
    enum User {
        Number(u32),
        Name(String),
    }
    match User::deserialize(from)? {
        User::Number(uid) => Ok(Some(uid.to_string())),
        User::Name(name) if name.is_empty() => {
            Err(D::Error::custom("the name of a user is not empty"))
        }
        User::Name(name) => Ok(Some(name)),
    }
}

fn labels<'de, D: Deserializer<'de>>(from: D) -> Result<BTreeMap<String, Pattern>, D::Error> {
    let values = from.deserialize_map(Labels)?;
    Ok(values.into_iter().map(|(key, value)| (key.0, value.0)).collect())
}

/// The key of a label.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct LabelKey(String);

impl<'de> Deserialize<'de> for LabelKey {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let key = String::deserialize(from)?;
        if key.is_empty() {
            return Err(D::Error::custom("the key of a label is not empty"));
        }
        Ok(Self(key))
    }
}

/// A pattern of a label's value, which may be empty as a name may not.
#[derive(Debug)]
struct LabelValue(Pattern);

impl<'de> Deserialize<'de> for LabelValue {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        Pattern::of_value(&text).map(Self).map_err(D::Error::custom)
    }
}

/// Reads the labels of a rule.
struct Labels;

impl<'de> Visitor<'de> for Labels {
    type Value = BTreeMap<LabelKey, LabelValue>;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("a table of keys and patterns, as in { app = \"web\" }")
    }

    fn visit_map<A: MapAccess<'de>>(self, table: A) -> Result<Self::Value, A::Error> {
        Deserialize::deserialize(MapAccessDeserializer::new(table))
    }
}

fn rules<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Spanned<Written>>, D::Error> {
    from.deserialize_seq(ListOfRules)
}

/// Reads all rules of a file.
struct ListOfRules;

impl<'de> Visitor<'de> for ListOfRules {
    type Value = Vec<Spanned<Written>>;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("a list: each rule begins with [[rule]]")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Self::Value, A::Error> {
        Deserialize::deserialize(SeqAccessDeserializer::new(list))
    }
}
