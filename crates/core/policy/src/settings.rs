//! What a policy is made with: the values of its parameters, and what it is given beforehand.
//!
//! Values that were set are always values that the parameter's declaration allows: texts are read by
//! [`Entry::values`], typed values are added by [`Settings::with`], and both check them
//! (`a_wrong_setting_is_refused_with_what_is_expected`).

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::nearest::{hint, nearest};
use crate::parameter::{Declared, Parameter, Typed, Value};
use crate::{Entry, KnownActivity, LearnedPairs, Models, PairSlowdowns, policies};

/// What a policy is made with. It reads what concerns it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Settings {
    /// Seed of everything that is random.
    pub seed: u64,
    /// Parameters that were set.
    pub values: Values,
    /// The symbiotic policies: interference models that they predict by. None: they leave everything to
    /// the OS.
    pub models: Option<Arc<Models>>,
    /// `oracle`: what it knows beforehand. None: it leaves everything to the
    /// OS.
    pub slowdowns: Option<Arc<PairSlowdowns>>,
    /// `activity`: what programs do to their caches. None: it leaves everything to the OS.
    pub activity: Option<Arc<KnownActivity>>,
    /// `learned`: what it learned of pairs of programs before. None: it begins with nothing.
    pub learned: Option<Arc<LearnedPairs>>,
}

/// Parameters that were set, by name.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Values(BTreeMap<&'static str, Value>);

/// A setting that cannot be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SetError {
    /// No policy has a parameter of this name.
    #[error("policy '{policy}' has no parameter '{key}'; {}{}", hint(near), list(all))]
    Unknown {
        /// The policy.
        policy: &'static str,
        /// The name that was given.
        key: String,
        /// The names that are nearest to it, nearest first; may be empty.
        near: Vec<&'static str>,
        /// All names that the policy has.
        all: Vec<&'static str>,
    },
    /// Another policy has it.
    #[error(
        "policy '{policy}' has no parameter '{key}', which belongs to {}; {}",
        listed(of),
        list(all)
    )]
    OfAnother {
        /// The policy.
        policy: &'static str,
        /// The parameter.
        key: String,
        /// The policies that have it.
        of: Vec<&'static str>,
        /// All names that the policy has.
        all: Vec<&'static str>,
    },
    /// The value is of another form, or out of bounds.
    #[error("{key}={given}: expected {expected}, for example {key}={example}")]
    Value {
        /// The parameter.
        key: &'static str,
        /// The value that was given.
        given: String,
        /// What a value must be.
        expected: String,
        /// One that is right.
        example: String,
    },
    /// Two values for one parameter.
    #[error("{0} is set twice")]
    Twice(&'static str),
}

impl Settings {
    /// The value of a parameter: what was set, else its default.
    #[must_use]
    pub fn get<T: Typed>(&self, parameter: &Parameter<T>) -> T
    where
        Parameter<T>: Declared,
    {
        let set = self.values.0.get(parameter.name()).and_then(T::of);
        set.unwrap_or_else(|| parameter.default().clone())
    }

    /// With a parameter set to a value; unset by the absent value of an `Option`.
    ///
    /// # Errors
    /// When its declaration does not allow the value.
    pub fn with<T: Typed>(mut self, parameter: &Parameter<T>, value: &T) -> Result<Self, SetError>
    where
        Parameter<T>: Declared,
    {
        match value.to_value() {
            Some(value) => {
                let (name, value) = read(parameter, &value.to_string())?;
                self.values.0.insert(name, value);
            }
            None => {
                self.values.0.remove(parameter.name());
            }
        }
        Ok(self)
    }
}

impl Settings {
    /// With a parameter set to a value where it was not set.
    ///
    /// # Errors
    /// When its declaration does not allow the value.
    pub fn unless_set<T: Typed>(self, parameter: &Parameter<T>, value: &T) -> Result<Self, SetError>
    where
        Parameter<T>: Declared,
    {
        if self.values.0.contains_key(parameter.name()) {
            return Ok(self);
        }
        self.with(parameter, value)
    }
}

impl Values {
    /// Is none set?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Entry {
    /// The parameter of this name.
    fn parameter(&self, name: &str) -> Option<&'static dyn Declared> {
        self.parameters.iter().copied().find(|parameter| parameter.name() == name)
    }

    /// Reads settings of this policy, each a key and a value.
    ///
    /// # Errors
    /// At the first that it has no parameter for, or that the parameter does not allow.
    pub fn values<K: AsRef<str>, V: AsRef<str>>(
        &self,
        pairs: impl IntoIterator<Item = (K, V)>,
    ) -> Result<Values, SetError> {
        let mut values = BTreeMap::new();
        for (key, text) in pairs {
            let key = key.as_ref();
            let parameter = self.parameter(key).ok_or_else(|| self.no_parameter(key))?;
            let (name, value) = read(parameter, text.as_ref())?;
            if values.insert(name, value).is_some() {
                return Err(SetError::Twice(name));
            }
        }
        Ok(Values(values))
    }

    fn no_parameter(&self, key: &str) -> SetError {
        let (policy, key) = (self.name, key.to_owned());
        let all: Vec<&str> = self.parameters.iter().map(|parameter| parameter.name()).collect();
        let others = policies().iter().filter(|entry| entry.parameter(&key).is_some());
        let of: Vec<&str> = others.map(|entry| entry.name).collect();
        if of.is_empty() {
            SetError::Unknown { policy, near: nearest(&key, all.iter().copied()), key, all }
        } else {
            SetError::OfAnother { policy, key, of, all }
        }
    }
}

/// Names in quotes, as a sentence has them.
fn listed(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("'{name}'")).collect();
    match quoted.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{} and {last}", others.join(", ")),
        _ => quoted.concat(),
    }
}

fn read(parameter: &dyn Declared, text: &str) -> Result<(&'static str, Value), SetError> {
    let key = parameter.name();
    let value = parameter.read(text).ok_or_else(|| {
        let declared = parameter.declaration();
        let (expected, example) = (declared.kind.expected(), declared.example);
        SetError::Value { key, given: text.to_owned(), expected, example }
    })?;
    Ok((key, value))
}

fn list(all: &[&str]) -> String {
    match all {
        [] => "it has no parameters".to_owned(),
        all => format!("it has: {}", all.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::time::Duration;

    use super::*;
    use crate::{Fpu, Hysched, Phases, Variant, find};

    fn refused(policy: &str, pairs: &[(&str, &str)]) -> String {
        let refused = find(policy).unwrap().values(pairs.iter().copied()).unwrap_err();
        refused.to_string()
    }

    #[test]
    fn a_wrong_setting_is_refused_with_what_is_expected() {
        assert_eq!(
            refused("phases", &[("treshold", "2")]),
            "policy 'phases' has no parameter 'treshold'; did you mean 'threshold'? it has: \
             threshold, seniority, levels"
        );
        assert_eq!(
            refused("stay", &[("zeal", "2")]),
            "policy 'stay' has no parameter 'zeal'; it has no parameters"
        );
        assert_eq!(
            refused("phases", &[("hysteresis", "0.1")]),
            "policy 'phases' has no parameter 'hysteresis', which belongs to 'hysched'; \
             it has: threshold, seniority, levels"
        );
        assert_eq!(
            refused("stay", &[("threshold", "2")]),
            "policy 'stay' has no parameter 'threshold', which belongs to 'auto', 'phases' and 'phases-online'; \
             it has no parameters"
        );
        assert_eq!(
            refused("phases", &[("threshold", "-1")]),
            "threshold=-1: expected a number above 0, for example threshold=2"
        );
        assert_eq!(
            refused("phases", &[("seniority", "20")]),
            "seniority=20: expected a time from 0s to 1h, for example seniority=1s"
        );
        assert_eq!(
            refused("hysched", &[("variant", "TopX")]),
            "variant=TopX: expected one of TopL, TopB2L, TopB2M3L, All3L, for example \
             variant=TopB2M3L"
        );
        assert_eq!(
            refused("static", &[("together", "a+")]),
            "together=a+: expected groups of programs as NAME+NAME,NAME+NAME, for example \
             together=mcf+gcc,xz+povray"
        );
        assert_eq!(
            refused("phases", &[("threshold", "1"), ("threshold", "2")]),
            "threshold is set twice"
        );
    }

    #[test]
    fn what_was_set_is_read_and_else_the_default() {
        let phases = find("phases").unwrap();
        let values = phases.values([("seniority", "500ms")]).unwrap();
        let settings = Settings { values, ..Settings::default() };
        assert_eq!(settings.get(&Phases::SENIORITY), Duration::from_millis(500));
        assert_eq!(settings.get(&Phases::THRESHOLD), None);
        let settings = Settings::default().with(&Phases::THRESHOLD, &Some(1.5)).unwrap();
        assert_eq!(settings.get(&Phases::THRESHOLD), Some(1.5));
        assert_eq!(settings.get(&Phases::SENIORITY), Duration::from_secs(1));
        let settings = settings.with(&Phases::THRESHOLD, &None).unwrap();
        assert_eq!(settings, Settings::default());
        let settings = settings.with(&Hysched::VARIANT, &Variant::All3L).unwrap();
        assert_eq!(settings.get(&Hysched::VARIANT), Variant::All3L);
        assert!(settings.with(&Fpu::TOP, &Some(0)).is_err());
    }

    #[test]
    fn auto_has_the_parameters_of_the_policies_that_it_asks() {
        let names = |policy: &str| {
            let all = find(policy).unwrap().parameters;
            all.iter().map(|it| it.name()).collect::<BTreeSet<_>>()
        };
        let auto = names("auto");
        for asked in ["phases", "learned", "fpu", "symbiotic-online", "never-twice"] {
            assert!(names(asked).is_subset(&auto), "{asked}");
        }
    }
}
