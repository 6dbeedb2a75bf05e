//! CPI stacks with any number of named components.
//!
//! A [`CpiStack`] is what was measured, in cycles per instruction; [`Shares`]
//! is the same normalised to its sum, the form that the model works on. Both
//! are ordered as the [`Components`] of the model.

use std::fmt;

use serde::{Deserialize, Serialize};
use symbiont_counters::catalogue::Catalogue;
use symbiont_counters::{Measured, Unmeasured};
use symbiont_machine::Signal;

use crate::Depth;

/// The components of a stack: names and formulas of a sum of the catalogue,
/// in its order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Components {
    sum: String,
    scale: Option<(String, String)>,
    parts: Vec<(String, String)>,
}

/// Why a catalogue has no such components.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ComponentsError {
    /// The catalogue has no sum of that name.
    #[error("catalogue '{catalogue}' has no sum '{sum}'; it has: {known}")]
    NoSum {
        /// Name of the catalogue.
        catalogue: String,
        /// Name that was asked for.
        sum: String,
        /// The names that it has.
        known: String,
    },
    /// A formula that the sum needs is not there.
    #[error("catalogue '{catalogue}' has no formula '{formula}', which stack '{sum}' needs")]
    NoFormula {
        /// Name of the catalogue.
        catalogue: String,
        /// Name of the sum.
        sum: String,
        /// Name of the missing formula.
        formula: String,
    },
    /// Names do not make a stack.
    #[error("a stack needs at least one component, with names that are different and not empty")]
    Names,
}

/// Why there is no stack.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StackError {
    /// A component was not measured.
    #[error("component '{component}' is absent: {reason}")]
    Missing {
        /// Name of the component.
        component: String,
        /// Why it has no value.
        reason: Unmeasured,
    },
    /// No cycles at all: the thread slept the whole quantum.
    #[error("the stack is empty: the thread did not run")]
    Empty,
    /// A component is infinite or not a number.
    #[error("component {0} (from 0) is not a finite number")]
    NotFinite(usize),
    /// Another number of components than the model has.
    #[error("the stack has {got} components, the model {want}")]
    Length {
        /// Components of the stack.
        got: usize,
        /// Components of the model.
        want: usize,
    },
}

impl Components {
    /// Components by name only, as stacks that come from no catalogue have
    /// them.
    ///
    /// # Errors
    /// [`ComponentsError::Names`] when there are none, or a name is empty or
    /// occurs twice.
    pub fn named<S: Into<String>>(
        names: impl IntoIterator<Item = S>,
    ) -> Result<Self, ComponentsError> {
        let parts = names.into_iter().map(|name| (name.into(), String::new())).collect();
        Self::checked("given".to_owned(), None, parts)
    }

    /// The components of a sum of a catalogue, for example `cpi_stack`.
    ///
    /// A sum that adds up to 1 (Top-Down) is scaled to cycles per instruction
    /// by formula `cpi`.
    ///
    /// # Errors
    /// When the catalogue does not have the sum or one of its formulas.
    pub fn of(catalogue: &Catalogue, sum: &str) -> Result<Self, ComponentsError> {
        let known = || catalogue.sums().iter().map(|s| s.name.as_str()).collect::<Vec<_>>();
        let found = catalogue.sums().iter().find(|s| s.name == sum).ok_or_else(|| {
            ComponentsError::NoSum {
                catalogue: catalogue.name().to_owned(),
                sum: sum.to_owned(),
                known: known().join(", "),
            }
        })?;
        let formula = |name: &str| {
            let found = catalogue.formula(name).ok_or_else(|| ComponentsError::NoFormula {
                catalogue: catalogue.name().to_owned(),
                sum: sum.to_owned(),
                formula: name.to_owned(),
            })?;
            Ok((name.to_owned(), found.text.clone()))
        };
        let parts = found.parts.iter().map(|name| formula(name)).collect::<Result<_, _>>()?;
        let scale = match found.total {
            Some(_) => None,
            None => Some(formula("cpi")?),
        };
        Self::checked(sum.to_owned(), scale, parts)
    }

    pub(crate) fn checked(
        sum: String,
        scale: Option<(String, String)>,
        parts: Vec<(String, String)>,
    ) -> Result<Self, ComponentsError> {
        let mut names: Vec<&str> = parts.iter().map(|(name, _)| name.trim()).collect();
        names.sort_unstable();
        let twice = names.windows(2).any(|two| matches!(two, [a, b] if a == b));
        if names.is_empty() || twice || names.contains(&"") {
            return Err(ComponentsError::Names);
        }
        Ok(Self { sum, scale, parts })
    }

    /// Name of the sum that they are the parts of.
    #[must_use]
    pub fn sum(&self) -> &str {
        &self.sum
    }

    /// The signal that has to be counted for them.
    #[must_use]
    pub fn signal(&self) -> Signal {
        let depth = Depth::ALL.into_iter().find(|depth| depth.sum() == self.sum);
        depth.unwrap_or_default().signal()
    }

    /// Name and text of the formula that scales them, if there is one.
    #[must_use]
    pub fn scale(&self) -> Option<(&str, &str)> {
        self.scale.as_ref().map(|(name, text)| (name.as_str(), text.as_str()))
    }

    /// Names and texts of the formulas, in order.
    pub fn parts(&self) -> impl Iterator<Item = (&str, &str)> {
        self.parts.iter().map(|(name, text)| (name.as_str(), text.as_str()))
    }

    /// Names, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().map(|(name, _)| name.as_str())
    }

    /// Number of components, at least 1.
    #[must_use]
    #[allow(clippy::len_without_is_empty, reason = "never empty")]
    pub fn len(&self) -> usize {
        self.parts.len()
    }

    /// The stack of a thread that was measured.
    ///
    /// # Errors
    /// [`StackError::Missing`] when a part has no value, [`StackError::Empty`]
    /// for a thread that did not run.
    pub fn read(&self, measured: &Measured) -> Result<CpiStack, StackError> {
        let value = |name: &str| match measured.get(name) {
            Ok(measurement) => Ok(measurement.value),
            Err(Unmeasured::ZeroDivisor | Unmeasured::NotYet { .. }) => Err(StackError::Empty),
            Err(reason) => Err(StackError::Missing { component: name.to_owned(), reason }),
        };
        let scale = self.scale().map_or(Ok(1.0), |(name, _)| value(name))?;
        let parts = self.names().map(|name| Ok(value(name)? * scale));
        CpiStack::new(parts.collect::<Result<_, _>>()?)
    }
}

impl fmt::Display for Components {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.sum, self.names().collect::<Vec<_>>().join(" + "))
    }
}

/// Cycles per instruction, split by cause. Not negative; the sum is above 0.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Vec<f64>", into = "Vec<f64>")]
pub struct CpiStack {
    parts: Vec<f64>,
    clamped: usize,
}

impl CpiStack {
    /// From its components in cycles per instruction. A negative component,
    /// as differences of multiplexed counts give it, is taken as 0 and counted
    /// ([`CpiStack::clamped`]).
    ///
    /// # Errors
    /// [`StackError::NotFinite`]; [`StackError::Empty`] if nothing is above 0.
    pub fn new(mut parts: Vec<f64>) -> Result<Self, StackError> {
        let clamped = floor_at_zero(&mut parts)?;
        let cpi: f64 = parts.iter().sum();
        if cpi > 0.0 && cpi.is_finite() {
            Ok(Self { parts, clamped })
        } else {
            Err(StackError::Empty)
        }
    }

    /// Cycles per instruction of each component.
    #[must_use]
    pub fn parts(&self) -> &[f64] {
        &self.parts
    }

    /// Cycles per instruction altogether.
    #[must_use]
    pub fn cpi(&self) -> f64 {
        self.parts.iter().sum()
    }

    /// Components that were negative.
    #[must_use]
    pub fn clamped(&self) -> usize {
        self.clamped
    }

    /// The stack normalised to its own CPI.
    #[must_use]
    pub fn shares(&self) -> Shares {
        Shares::scaled(self.parts.clone(), self.cpi())
    }

    /// The components normalised to another CPI: their sum is the slowdown
    /// against it.
    #[must_use]
    pub fn relative_to(&self, cpi: f64) -> Vec<f64> {
        self.parts.iter().map(|part| part / cpi).collect()
    }
}

impl TryFrom<Vec<f64>> for CpiStack {
    type Error = StackError;

    fn try_from(parts: Vec<f64>) -> Result<Self, StackError> {
        Self::new(parts)
    }
}

impl From<CpiStack> for Vec<f64> {
    fn from(stack: CpiStack) -> Self {
        stack.parts
    }
}

/// A stack normalised to its CPI: the share of cycles of each component. Not
/// negative; the sum is 1.
#[derive(Debug, Clone, PartialEq)]
pub struct Shares(Vec<f64>);

impl Shares {
    /// From anything in proportion to the shares.
    ///
    /// # Errors
    /// As [`CpiStack::new`].
    pub fn new(parts: Vec<f64>) -> Result<Self, StackError> {
        CpiStack::new(parts).map(|stack| stack.shares())
    }

    /// Every component alike: what is assumed of a thread of which nothing is
    /// known.
    #[must_use]
    pub fn uniform(components: &Components) -> Self {
        Self::scaled(vec![1.0; components.len()], components.len() as f64)
    }

    /// Parts that are not negative, over their positive sum.
    #[must_use]
    pub fn scaled(mut parts: Vec<f64>, sum: f64) -> Self {
        for part in &mut parts {
            *part /= sum;
        }
        Self(parts)
    }

    /// The shares, in order.
    #[must_use]
    pub fn parts(&self) -> &[f64] {
        &self.0
    }
}

/// Takes negative numbers as 0; says how many there were.
pub(crate) fn floor_at_zero(parts: &mut [f64]) -> Result<usize, StackError> {
    let mut clamped = 0;
    for (index, part) in parts.iter_mut().enumerate() {
        if !part.is_finite() {
            return Err(StackError::NotFinite(index));
        }
        if *part < 0.0 {
            *part = 0.0;
            clamped += 1;
        }
    }
    Ok(clamped)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;
    use symbiont_counters::catalogue::{Quantity, Unit, Value};
    use symbiont_counters::{Measurement, Outputs};

    use super::*;

    fn components() -> Components {
        let catalogue = Catalogue::named("power8").unwrap().unwrap();
        Components::of(&catalogue, "cpi_stack").unwrap()
    }

    /// Every part 0.5, but for those that are given.
    fn measured(others: &[(&str, Result<f64, Unmeasured>)]) -> Measured {
        let unit = Unit::Per(Quantity::Cycles, Quantity::Instructions);
        let given = |name: &str| others.iter().find(|(other, _)| *other == name);
        let one = |name: &str| {
            let value = given(name).map_or(Ok(0.5), |(_, value)| value.clone());
            value.map(|value| Measurement { value, unit, coverage: 1.0, age: 0 })
        };
        let names: Vec<Arc<str>> = components().names().map(Arc::from).collect();
        let values = names.iter().map(|name| one(name)).collect();
        Measured::new(Arc::new(Outputs { names, ..Outputs::default() }), values)
    }

    #[test]
    fn the_stack_of_a_catalogue_is_read_in_its_order() {
        let components = components();
        assert_eq!(components.names().next(), Some("cpi_base"));
        let stack = components.read(&measured(&[("cpi_base", Ok(2.0))])).unwrap();
        assert_eq!(stack.parts(), [2.0, 0.5, 0.5, 0.5, 0.5, 0.5]);
    }

    #[test]
    fn a_thread_that_slept_the_whole_quantum_has_no_stack() {
        assert_eq!(CpiStack::new(vec![0.0, 0.0]), Err(StackError::Empty));
        assert_eq!(CpiStack::new(vec![]), Err(StackError::Empty));
        let not_yet = Unmeasured::NotYet { event: "PM_RUN_CYC".into() };
        for reason in [Unmeasured::ZeroDivisor, not_yet] {
            let slept = measured(&[("cpi_stall", Err(reason))]);
            assert_eq!(components().read(&slept), Err(StackError::Empty));
        }
    }

    #[test]
    fn a_missing_component_is_named_with_the_reason() {
        let why = "no counter is free".into();
        let reason = Unmeasured::NotCounted { event: "PM_GRP_CMPL".into(), why };
        let error = components().read(&measured(&[("cpi_base", Err(reason))])).unwrap_err();
        assert_eq!(
            error.to_string(),
            "component 'cpi_base' is absent: PM_GRP_CMPL: no counter is free"
        );
        let error = components().read(&Measured::default()).unwrap_err().to_string();
        assert_eq!(error, "component 'cpi_base' is absent: 'cpi_base' is not measured here");
    }

    #[test]
    fn a_stack_of_fractions_is_scaled_to_cycles_per_instruction() {
        let catalogue = Catalogue::named("skylake-sp").unwrap().unwrap();
        let components = Components::of(&catalogue, "top_down_1").unwrap();
        assert_eq!(components.scale().map(|(name, _)| name), Some("cpi"));
        let half = |name| (name, Value { value: 0.5, unit: Unit::Fraction });
        let values = components.names().chain(["cpi"]).map(half);
        let stack = components.read(&Measured::of(values)).unwrap();
        assert_eq!(stack.parts(), [0.25; 4]);
    }

    #[test]
    fn an_unknown_sum_is_refused_with_those_there_are() {
        let catalogue = Catalogue::named("power8").unwrap().unwrap();
        let error = Components::of(&catalogue, "cpi").unwrap_err().to_string();
        assert!(error.starts_with("catalogue 'power8' has no sum 'cpi'; it has: cpi_stack"));
    }

    #[test]
    fn names_that_make_no_stack_are_refused() {
        for names in [&[][..], &["a", "a"], &["a", " "]] {
            assert_eq!(Components::named(names.iter().copied()), Err(ComponentsError::Names));
        }
    }

    #[test]
    fn a_negative_component_is_taken_as_zero_and_counted() {
        let stack = CpiStack::new(vec![1.0, -0.1, 1.0]).unwrap();
        assert_eq!((stack.parts(), stack.clamped()), (&[1.0, 0.0, 1.0][..], 1));
        assert_eq!(CpiStack::new(vec![1.0, f64::NAN]), Err(StackError::NotFinite(1)));
    }

    proptest! {
        #[test]
        fn shares_are_shares(parts in prop::collection::vec(-1.0..10.0_f64, 1..9)) {
            let Ok(shares) = Shares::new(parts) else { return Ok(()) };
            prop_assert!(shares.parts().iter().all(|s| (0.0..=1.0 + 1e-12).contains(s)));
            prop_assert!((shares.parts().iter().sum::<f64>() - 1.0).abs() < 1e-12);
        }
    }
}
