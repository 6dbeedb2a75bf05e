//! What was measured of a thread by counting events.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use symbiont_machine::Signal;

use crate::catalogue::signal::{CPI_STACK, categories_of};
use crate::catalogue::{Unit, Value};

/// A derived value and what it rests on.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// The number.
    pub value: f64,
    /// Its unit.
    pub unit: Unit,
    /// Share of the thread's CPU time, since the count before, in which its
    /// events were counted: above 0, at most 1. The least of its groups'.
    pub coverage: f64,
    /// Quanta that ended since the counts were taken; 0: they are the last
    /// quantum's. The most of its groups'.
    pub age: u64,
}

/// Why there is no measurement.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unmeasured {
    /// It was not requested, or the machine's catalogue has no formula for it.
    #[error("'{0}' is not measured here")]
    Unknown(String),
    /// Its events are not counted for this thread.
    #[error("{event}: {why}")]
    NotCounted {
        /// The event.
        event: Arc<str>,
        /// Why.
        why: Arc<str>,
    },
    /// Its events are counted, but the thread has not run meanwhile.
    #[error("{event}: the thread has not run since counting began")]
    NotYet {
        /// The event.
        event: Arc<str>,
    },
    /// What it is divided by is zero.
    #[error("its divisor is zero")]
    ZeroDivisor,
    /// It exceeds all bounds, or is no number.
    #[error("the value is not finite")]
    NotFinite,
}

/// What a machine's measurements are called: the same for all its threads.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outputs {
    /// Names of formulas; each once.
    pub names: Vec<Arc<str>>,
    /// The parts of the CPI stack, if one is measured.
    pub stack: Vec<Arc<str>>,
    /// Lists of Top-Down categories that are measured, by their variant's name.
    pub categories: Vec<(Arc<str>, Vec<Arc<str>>)>,
    /// Floating-point units of a core, where their use is measured and their number is known.
    pub floating_point_units: Option<u32>,
}

/// What was measured of one thread.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Measured {
    outputs: Arc<Outputs>,
    /// For each name of the outputs.
    values: Vec<Result<Measurement, Unmeasured>>,
}

/// A CPI stack: cycles per instruction by cause.
#[derive(Debug, Clone, PartialEq)]
pub struct Stack<'a> {
    /// Cycles per instruction in all.
    pub cpi: f64,
    /// The causes in the catalogue's order, in cycles per instruction.
    pub parts: Vec<(&'a str, f64)>,
    /// What the parts leave over of the whole, in cycles per instruction;
    /// negative where they exceed it, since groups see different parts of a
    /// quantum.
    pub residue: f64,
    /// The least coverage of the parts and the whole.
    pub coverage: f64,
    /// The age of the oldest of them, in quanta.
    pub age: u64,
}

impl Measured {
    /// Measurements under these outputs; `values` are those of
    /// [`Outputs::names`], in order. A value that is missing is unknown.
    #[must_use]
    pub fn new(outputs: Arc<Outputs>, values: Vec<Result<Measurement, Unmeasured>>) -> Self {
        Self { outputs, values }
    }

    /// Fresh measurements with full coverage, by name; for tests and for
    /// machines that know the values themselves.
    #[must_use]
    pub fn of<'a>(values: impl IntoIterator<Item = (&'a str, Value)>) -> Self {
        let fresh = |v: Value| Measurement { value: v.value, unit: v.unit, coverage: 1.0, age: 0 };
        let named = values.into_iter().map(|(name, value)| (Arc::from(name), Ok(fresh(value))));
        let (names, values) = named.unzip();
        Self { outputs: Arc::new(Outputs { names, ..Outputs::default() }), values }
    }

    /// The same with these parts of a CPI stack, by name.
    #[must_use]
    pub fn with_stack(mut self, parts: &[&str]) -> Self {
        let parts = parts.iter().map(|&part| part.into()).collect();
        Arc::make_mut(&mut self.outputs).stack = parts;
        self
    }

    /// The same with a list of Top-Down categories, by name; nothing changes
    /// for a signal that is none.
    #[must_use]
    pub fn with_categories(mut self, signal: Signal, members: &[&str]) -> Self {
        if let Some(name) = categories_of(signal) {
            let members = members.iter().map(|&member| member.into()).collect();
            Arc::make_mut(&mut self.outputs).categories.push((name.into(), members));
        }
        self
    }

    /// The same on cores with so many floating-point units.
    #[must_use]
    pub fn with_floating_point_units(mut self, number: u32) -> Self {
        Arc::make_mut(&mut self.outputs).floating_point_units = Some(number);
        self
    }

    /// Floating-point units of a core of the machine, where their use is measured and their number is
    /// known.
    #[must_use]
    pub fn floating_point_units(&self) -> Option<u32> {
        self.outputs.floating_point_units
    }

    pub(crate) fn values_mut(&mut self) -> &mut [Result<Measurement, Unmeasured>] {
        &mut self.values
    }

    /// All measurements by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Result<Measurement, Unmeasured>)> {
        self.outputs.names.iter().map(|name| &**name).zip(&self.values)
    }

    /// The measurement of this name (`ipc`, `l1d_bandwidth`, `fpu_usage`, … as
    /// in the catalogues).
    ///
    /// # Errors
    /// Why there is none.
    pub fn get(&self, name: &str) -> Result<Measurement, Unmeasured> {
        let found = self.iter().find(|(known, _)| *known == name);
        found.map_or_else(|| Err(Unmeasured::Unknown(name.to_owned())), |(_, value)| value.clone())
    }

    /// The value of this name, whatever its age.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<f64> {
        self.get(name).ok().map(|measurement| measurement.value)
    }

    /// The CPI stack.
    ///
    /// # Errors
    /// Why a part of it or the whole is missing.
    pub fn stack(&self) -> Result<Stack<'_>, Unmeasured> {
        if self.outputs.stack.is_empty() {
            return Err(Unmeasured::Unknown(CPI_STACK.to_owned()));
        }
        let cpi = self.get("cpi")?;
        let mut stack = Stack {
            cpi: cpi.value,
            parts: Vec::with_capacity(self.outputs.stack.len()),
            residue: cpi.value,
            coverage: cpi.coverage,
            age: cpi.age,
        };
        for name in &self.outputs.stack {
            let part = self.get(name)?;
            stack.residue -= part.value;
            stack.coverage = stack.coverage.min(part.coverage);
            stack.age = stack.age.max(part.age);
            stack.parts.push((name, part.value));
        }
        Ok(stack)
    }

    /// The Top-Down categories of a variant ([`Signal::TopL`] and the others)
    /// in the catalogue's order, each a fraction of the issue slots. Where nothing
    /// happened that a category is a part of (its divisor is zero: no load left the
    /// L2, no branch was mispredicted), it has no slots.
    ///
    /// # Errors
    /// Why one of them is missing, or that the signal is no such variant.
    pub fn categories(&self, signal: Signal) -> Result<Vec<(&str, Measurement)>, Unmeasured> {
        let wanted = categories_of(signal);
        let list = self.outputs.categories.iter().find(|(name, _)| Some(&**name) == wanted);
        let (_, members) = list.ok_or_else(|| Unmeasured::Unknown(signal.to_string()))?;
        let none = Measurement { value: 0.0, unit: Unit::Fraction, coverage: 1.0, age: 0 };
        let mut shares = Vec::with_capacity(members.len());
        // The names of a list mostly follow each other.
        let mut at = 0;
        for member in members {
            let mut from_there = (at..self.values.len()).chain(0..at);
            let found = from_there.find(|&at| self.outputs.names.get(at) == Some(member));
            let value = found.and_then(|at| self.values.get(at));
            let share = match value {
                Some(Ok(share)) => *share,
                Some(Err(Unmeasured::ZeroDivisor)) => none,
                Some(Err(why)) => return Err(why.clone()),
                None => return Err(Unmeasured::Unknown((**member).to_owned())),
            };
            shares.push((&**member, share));
            at = found.map_or(0, |at| at + 1);
        }
        Ok(shares)
    }
}

impl Stack<'_> {
    /// Each part as a share of the whole, in the same order; the residue's
    /// share is what they lack to 1. Empty if the whole is not positive.
    #[must_use]
    pub fn shares(&self) -> Vec<(&str, f64)> {
        let positive = self.cpi > 0.0;
        let parts = self.parts.iter().filter(|_| positive);
        parts.map(|&(name, value)| (name, value / self.cpi)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::Quantity;

    fn cpi(value: f64) -> Value {
        Value { value, unit: Unit::Per(Quantity::Cycles, Quantity::Instructions) }
    }

    #[test]
    fn a_stack_keeps_what_its_parts_leave_over() {
        let measured = Measured::of([("cpi", cpi(2.0)), ("base", cpi(0.5)), ("stall", cpi(1.25))])
            .with_stack(&["base", "stall"]);
        let stack = measured.stack().unwrap();
        assert_eq!((stack.cpi, stack.residue), (2.0, 0.25));
        assert_eq!(stack.parts, [("base", 0.5), ("stall", 1.25)]);
        assert_eq!(stack.shares(), [("base", 0.25), ("stall", 0.625)]);
        assert_eq!((stack.coverage, stack.age), (1.0, 0));
    }

    #[test]
    fn what_is_missing_is_absent_with_its_reason() {
        let measured = Measured::of([("cpi", cpi(2.0))]);
        assert_eq!(measured.stack(), Err(Unmeasured::Unknown("cpi_stack".into())));
        let partly = measured.clone().with_stack(&["base"]);
        assert_eq!(partly.stack(), Err(Unmeasured::Unknown("base".into())));
        assert_eq!(measured.value("ipc"), None);
        assert!(measured.categories(Signal::TopL).is_err());
        assert!(measured.categories(Signal::Ipc).is_err());
    }

    #[test]
    fn categories_are_named_by_their_variant() {
        let share = |value| Value { value, unit: Unit::Fraction };
        let measured = Measured::of([("retiring", share(0.7)), ("backend_bound", share(0.3))])
            .with_categories(Signal::TopL, &["retiring", "backend_bound"]);
        let found = measured.categories(Signal::TopL).unwrap();
        let found: Vec<_> = found.iter().map(|(name, m)| (*name, m.value)).collect();
        assert_eq!(found, [("retiring", 0.7), ("backend_bound", 0.3)]);
        assert!(measured.categories(Signal::TopB2L).is_err());
    }

    #[test]
    fn a_category_of_what_did_not_happen_has_no_slots() {
        let outputs = Outputs {
            names: vec!["retiring".into(), "dram_bound".into(), "l3_bound".into()],
            categories: vec![("TopL".into(), vec!["retiring".into(), "dram_bound".into()])],
            ..Outputs::default()
        };
        let retiring = Measurement { value: 0.9, unit: Unit::Fraction, coverage: 0.1, age: 0 };
        let not_yet = Unmeasured::NotYet { event: "L3_HIT".into() };
        let values = |second| vec![Ok(retiring), Err(second), Err(not_yet.clone())];
        let measured = |second| Measured::new(Arc::new(outputs.clone()), values(second));
        let found = measured(Unmeasured::ZeroDivisor);
        let found = found.categories(Signal::TopL).unwrap();
        assert_eq!(found.iter().map(|(_, m)| m.value).collect::<Vec<_>>(), [0.9, 0.0]);
        assert_eq!(measured(not_yet.clone()).categories(Signal::TopL), Err(not_yet));
    }
}
