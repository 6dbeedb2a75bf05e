//! One file of rules.

use std::path::Path;
use std::str::FromStr;
use std::{fs, io};

use globset::GlobBuilder;
use serde::{Deserialize, Deserializer};
use symbiont_machine::Class;

/// A longer file is not one of ours.
const MOST_BYTES: u64 = 16 << 20;

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    rule: Vec<Rule>,
}

/// A rule as written: what it matches, and what is to be done then.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, try_from = "Written")]
pub(super) struct Rule {
    pub cgroup: Option<Pattern>,
    pub unit: Option<Pattern>,
    pub executable: Option<Pattern>,
    pub user: Option<String>,
    ignore: bool,
    class: Option<Class>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    cgroup: Option<Pattern>,
    unit: Option<Pattern>,
    executable: Option<Pattern>,
    user: Option<User>,
    #[serde(default)]
    manage: bool,
    #[serde(default)]
    ignore: bool,
    #[serde(default, deserialize_with = "class")]
    class: Option<Class>,
    #[serde(default)]
    alone: bool,
}

/// A user by name or number.
#[derive(Deserialize)]
#[serde(untagged)]
enum User {
    Number(u32),
    Name(String),
}

impl TryFrom<Written> for Rule {
    type Error = &'static str;

    fn try_from(rule: Written) -> Result<Self, Self::Error> {
        let Written { cgroup, unit, executable, user, manage, ignore, class, alone } = rule;
        if cgroup.is_none() && unit.is_none() && executable.is_none() && user.is_none() {
            return Err("a rule names at least one of cgroup, unit, executable, user");
        }
        if ignore && (manage || alone || class.is_some()) {
            return Err("`ignore` goes with neither `manage`, `class` nor `alone`");
        }
        if alone && class.is_some() {
            return Err("`alone` and `class` exclude each other");
        }
        if !(manage || ignore || alone || class.is_some()) {
            return Err("a rule says one of manage, ignore, class, alone");
        }
        let user = user.map(|user| match user {
            User::Number(uid) => uid.to_string(),
            User::Name(name) => name,
        });
        let class = if alone { Some(Class::Alone) } else { class };
        Ok(Self { cgroup, unit, executable, user, ignore, class })
    }
}

impl Rule {
    /// What a program that it matches is run for, if it says so.
    pub fn class(&self) -> Option<Class> {
        self.class
    }

    /// Are programs that it matches managed?
    pub fn manages(&self) -> bool {
        !self.ignore
    }

    /// Does it name a unit or a cgroup?
    pub fn is_of_a_group(&self) -> bool {
        self.unit.is_some() || self.cgroup.is_some()
    }
}

/// A pattern of names: `*`, `?`, `[…]`, `{a,b}`; `*` goes over slashes, too.
#[derive(Debug, Clone)]
pub(super) struct Pattern(globset::Glob);

impl Pattern {
    pub fn glob(&self) -> &globset::Glob {
        &self.0
    }
}

impl FromStr for Pattern {
    type Err = globset::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        GlobBuilder::new(text).literal_separator(false).build().map(Self)
    }
}

impl<'de> Deserialize<'de> for Pattern {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?.parse().map_err(serde::de::Error::custom)
    }
}

fn class<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Class>, D::Error> {
    String::deserialize(from)?.parse().map(Some).map_err(serde::de::Error::custom)
}

/// The rules of a text.
pub(super) fn parse(text: &str) -> Result<Vec<Rule>, String> {
    let file: File =
        toml::from_str(text).map_err(|error| error.to_string().trim_end().to_owned())?;
    Ok(file.rule)
}

/// The rules of a file. /dev/null, to which a link may point, has none.
pub(super) fn read(path: &Path) -> Result<Vec<Rule>, String> {
    let read = || -> io::Result<String> {
        let length = fs::metadata(path)?.len();
        if length > MOST_BYTES {
            return Err(io::Error::other(format!("longer than {MOST_BYTES} bytes")));
        }
        symbiont_safe_open::read_to_string(path)
    };
    parse(&read().map_err(|error| error.to_string())?)
}
