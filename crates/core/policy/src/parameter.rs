//! Parameters of policies: what may be set, declared in the policy's own file.
//!
//! # Problem
//! Command line, configuration files, help texts and experiments all deal with parameters. None of
//! them should have to change when a policy gets one.
//!
//! # Approach
//! A policy declares each [`Parameter`] as a constant with its type, and lists the constants in its
//! [`Entry`](crate::Entry). It reads the value by the constant when it is made
//! ([`Settings::get`](crate::Settings::get)). All others see the list as plain data
//! ([`Declaration`]).
//!
//! # Terms and units
//! *Kind*: the form and bounds of the values. *Default*: the value that holds where none is set; some
//! defaults depend on the machine and are described in words.
//!
//! # Properties
//! - Each declaration of each policy has a name, a help text and an example that is accepted
//!   (`declarations_are_sound`).
//! - A value within its bounds is read as it is written (`values_are_read_as_written`), any other is
//!   refused (`values_out_of_bounds_are_refused`).

use std::fmt;
use std::time::Duration;

/// A parameter whose values have the type `T`. `Option<T>` where the default is no value of `T`.
#[derive(Debug, Clone)]
pub struct Parameter<T> {
    name: &'static str,
    kind: Kind,
    default: T,
    described: &'static str,
    help: &'static str,
}

/// Form and bounds of the values of a parameter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    /// A number above 0.
    Positive,
    /// A number from 0 to 1.
    Share,
    /// A whole number.
    Count {
        /// The least.
        least: usize,
        /// The most.
        most: usize,
    },
    /// A length of time, as `500ms` or `1s`.
    Duration {
        /// The shortest.
        least: Duration,
        /// The longest.
        most: Duration,
    },
    /// One of these words, in any case.
    Choice(&'static [&'static str]),
    /// A text.
    Text {
        /// How it is written.
        form: &'static str,
        /// One that is right.
        example: &'static str,
    },
}

/// A value that was set.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Of [`Kind::Positive`] or [`Kind::Share`].
    Number(f64),
    /// Of [`Kind::Count`].
    Count(usize),
    /// Of [`Kind::Duration`].
    Duration(Duration),
    /// Of [`Kind::Choice`] or [`Kind::Text`].
    Text(String),
}

/// A parameter as it is shown to users.
#[derive(Debug, Clone, PartialEq)]
pub struct Declaration {
    /// Its name, as users write it.
    pub name: &'static str,
    /// Form and bounds of its values.
    pub kind: Kind,
    /// What holds where it is not set: a value, or words.
    pub default: String,
    /// What it does.
    pub help: &'static str,
    /// A value that is accepted.
    pub example: String,
}

/// A type of values.
pub trait Typed: Clone {
    /// The value, if it is of this type.
    fn of(value: &Value) -> Option<Self>;
    /// As a value; none for the absent one of an `Option`.
    fn to_value(&self) -> Option<Value>;
}

/// A parameter of any type.
pub trait Declared: fmt::Debug + Sync {
    /// Its name, as users write it.
    fn name(&self) -> &'static str;
    /// What users are shown of it.
    fn declaration(&self) -> Declaration;
    /// The value of a text; none if it is of another form, or out of bounds.
    fn read(&self, text: &str) -> Option<Value>;
}

/// The parameters of a policy.
pub type Parameters = &'static [&'static dyn Declared];

impl<T> Parameter<T> {
    /// With a default.
    #[must_use]
    pub const fn new(name: &'static str, kind: Kind, default: T, help: &'static str) -> Self {
        Self { name, kind, default, described: "", help }
    }

    /// What holds where it is not set.
    #[must_use]
    pub const fn default(&self) -> &T {
        &self.default
    }
}

impl<T> Parameter<Option<T>> {
    /// With a default that is described in words.
    #[must_use]
    pub const fn optional(
        name: &'static str,
        kind: Kind,
        default: &'static str,
        help: &'static str,
    ) -> Self {
        Self { name, kind, default: None, described: default, help }
    }
}

impl<T: Typed> Parameter<T> {
    /// As users write that it has this value: `KEY=VALUE`.
    #[must_use]
    pub fn written(&self, value: &T) -> String {
        let value = value.to_value().map(|value| value.to_string()).unwrap_or_default();
        format!("{}={value}", self.name)
    }
}

impl<T: Typed + fmt::Debug + Sync> Declared for Parameter<T> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn declaration(&self) -> Declaration {
        let default = self.default.to_value().map(|value| value.to_string());
        Declaration {
            name: self.name,
            kind: self.kind,
            default: default.clone().unwrap_or_else(|| self.described.to_owned()),
            help: self.help,
            example: match (self.kind, default) {
                // A share of 0 shows little.
                (Kind::Share, _) | (_, None) => self.kind.example(),
                (_, Some(default)) => default,
            },
        }
    }

    fn read(&self, text: &str) -> Option<Value> {
        self.kind.read(text).filter(|value| T::of(value).is_some())
    }
}

impl Kind {
    /// What a value must be, for messages and help texts.
    #[must_use]
    pub fn expected(self) -> String {
        let time = |time: Duration| humantime::format_duration(time).to_string();
        match self {
            Self::Positive => "a number above 0".to_owned(),
            Self::Share => "a number from 0 to 1".to_owned(),
            Self::Count { least, most } => format!("a whole number from {least} to {most}"),
            Self::Duration { least, most } => {
                format!("a time from {} to {}", time(least), time(most))
            }
            Self::Choice(words) => format!("one of {}", words.join(", ")),
            Self::Text { form, .. } => form.to_owned(),
        }
    }

    fn example(self) -> String {
        match self {
            Self::Positive => "2".to_owned(),
            Self::Share => "0.05".to_owned(),
            Self::Count { least, most } => least.max(4).min(most).to_string(),
            Self::Duration { least, .. } => humantime::format_duration(least).to_string(),
            Self::Choice(words) => words.first().copied().unwrap_or_default().to_owned(),
            Self::Text { example, .. } => example.to_owned(),
        }
    }

    fn read(self, text: &str) -> Option<Value> {
        let number = || text.parse::<f64>().ok();
        match self {
            Self::Positive => number().filter(|n| n.is_finite() && *n > 0.0).map(Value::Number),
            Self::Share => number().filter(|n| (0.0..=1.0).contains(n)).map(Value::Number),
            Self::Count { least, most } => {
                text.parse().ok().filter(|n| (least..=most).contains(n)).map(Value::Count)
            }
            Self::Duration { least, most } => {
                let time: Duration = text.parse::<humantime::Duration>().ok()?.into();
                (least..=most).contains(&time).then_some(Value::Duration(time))
            }
            Self::Choice(words) => {
                let found = words.iter().find(|word| word.eq_ignore_ascii_case(text))?;
                Some(Value::Text((*found).to_owned()))
            }
            Self::Text { .. } => Some(Value::Text(text.to_owned())),
        }
    }
}

impl fmt::Display for Value {
    /// As users write it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Count(count) => count.fmt(f),
            Self::Duration(time) => humantime::format_duration(*time).fmt(f),
            Self::Text(text) => text.fmt(f),
        }
    }
}

impl Typed for f64 {
    fn of(value: &Value) -> Option<Self> {
        if let Value::Number(number) = value { Some(*number) } else { None }
    }

    fn to_value(&self) -> Option<Value> {
        Some(Value::Number(*self))
    }
}

/// Of a choice of the words `on` and `off`.
impl Typed for bool {
    fn of(value: &Value) -> Option<Self> {
        match value {
            Value::Text(text) if text == "on" => Some(true),
            Value::Text(text) if text == "off" => Some(false),
            _ => None,
        }
    }

    fn to_value(&self) -> Option<Value> {
        Some(Value::Text(if *self { "on" } else { "off" }.to_owned()))
    }
}

impl Typed for usize {
    fn of(value: &Value) -> Option<Self> {
        if let Value::Count(count) = value { Some(*count) } else { None }
    }

    fn to_value(&self) -> Option<Value> {
        Some(Value::Count(*self))
    }
}

impl Typed for Duration {
    fn of(value: &Value) -> Option<Self> {
        if let Value::Duration(time) = value { Some(*time) } else { None }
    }

    fn to_value(&self) -> Option<Value> {
        Some(Value::Duration(*self))
    }
}

impl Typed for String {
    fn of(value: &Value) -> Option<Self> {
        if let Value::Text(text) = value { Some(text.clone()) } else { None }
    }

    fn to_value(&self) -> Option<Value> {
        Some(Value::Text(self.clone()))
    }
}

impl<T: Typed> Typed for Option<T> {
    fn of(value: &Value) -> Option<Self> {
        T::of(value).map(Some)
    }

    fn to_value(&self) -> Option<Value> {
        self.as_ref().and_then(T::to_value)
    }
}

/// Lists in one, for a policy that passes its settings on to others. `N`: how many parameters they
/// have.
pub(crate) const fn joined<const N: usize>(lists: &[Parameters]) -> [&'static dyn Declared; N] {
    let mut all = [lists[0][0]; N];
    let (mut to, mut list) = (0, 0);
    while list < lists.len() {
        let mut from = 0;
        while from < lists[list].len() {
            all[to] = lists[list][from];
            (to, from) = (to + 1, from + 1);
        }
        list += 1;
    }
    all
}

#[cfg(test)]
mod tests;
