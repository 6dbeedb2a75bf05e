//! One file of rules.

use std::collections::BTreeMap;
use std::path::Path;
use std::str::FromStr;
use std::{fs, io};

use globset::GlobBuilder;
use serde::{Deserialize, Deserializer};
use symbiont_machine::Class;

use super::Group;

/// A longer file is not one of ours.
const MOST_BYTES: u64 = 16 << 20;
/// Things that a rule names.
const MOST_NAMES: usize = 64;

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
    pub pod: Option<Pattern>,
    pub container: Option<Pattern>,
    pub image: Option<Pattern>,
    pub label: BTreeMap<String, Pattern>,
    pub executable: Option<Pattern>,
    pub command: Option<Pattern>,
    pub comm: Option<Pattern>,
    pub user: Option<String>,
    ignore: bool,
    class: Option<Class>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    cgroup: Option<Pattern>,
    unit: Option<Pattern>,
    pod: Option<Pattern>,
    container: Option<Pattern>,
    image: Option<Pattern>,
    #[serde(default)]
    label: BTreeMap<String, Pattern>,
    executable: Option<Pattern>,
    command: Option<Pattern>,
    comm: Option<Pattern>,
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
        let Written { cgroup, unit, pod, container, image, label, .. } = rule;
        let Written { executable, command, comm, user, manage, ignore, class, alone, .. } = rule;
        let user = user.map(|user| match user {
            User::Number(uid) => uid.to_string(),
            User::Name(name) => name,
        });
        let class_or_alone = if alone { Some(Class::Alone) } else { class };
        let rule = Self {
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
            class: class_or_alone,
        };
        if rule.count() == 0 {
            return Err(
                "a rule names at least one of cgroup, unit, pod, container, image, label, executable, \
                        command, comm, user",
            );
        }
        if rule.count() > MOST_NAMES {
            return Err("a rule names at most 64 things");
        }
        if rule.pod.as_ref().is_some_and(|pod| !pod.glob().glob().contains('/')) {
            return Err("a `pod` is written as NAMESPACE/NAME");
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
        Ok(rule)
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

    /// The patterns of one thing each.
    fn patterns(&self) -> [&Option<Pattern>; 8] {
        let Self { cgroup, unit, pod, container, image, executable, command, comm, .. } = self;
        [cgroup, unit, pod, container, image, executable, command, comm]
    }

    /// How many things it names.
    pub fn count(&self) -> usize {
        self.patterns().into_iter().flatten().count()
            + self.label.len()
            + usize::from(self.user.is_some())
    }

    /// Does it ask for the container?
    pub fn names_a_container(&self) -> bool {
        self.pod.is_some()
            || self.container.is_some()
            || self.image.is_some()
            || !self.label.is_empty()
    }

    /// Which processes are one program.
    pub fn group(&self) -> Group {
        match () {
            () if self.names_a_container() => Group::Container,
            () if self.unit.is_some() || self.cgroup.is_some() => Group::Cgroup,
            () => Group::None,
        }
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
