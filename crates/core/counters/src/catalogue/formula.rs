//! Formulas: their rules at load, and their values.
//!
//! A count that was taken in one group must not be divided by a count that was
//! taken in another: under multiplexing the two cover different parts of the
//! quantum. So a division takes all counts that it compares from one group,
//! and a catalogue in which there is no such group is refused. A quotient has
//! no scale left, so quotients of different groups may be added, multiplied
//! and divided freely.

use std::collections::BTreeSet;

use serde::Serialize;

use super::expression::{Division, Expression, Name};
use super::{Event, Group, Unit};

/// Steps that evaluating a formula may take, references followed. A chain of
/// formulas that each use the one before twice doubles with each of them.
const MAX_STEPS: u64 = 10_000;

/// A derived value: an expression over events and earlier formulas.
#[derive(Debug, Clone)]
pub struct Formula {
    /// Its name, the same in all catalogues for the same idea.
    pub name: String,
    /// Unit of its value.
    pub unit: Unit,
    /// The expression as written.
    pub text: String,
    /// Where it comes from: paper, manual or table.
    pub source: String,
    /// What to know before trusting it.
    pub note: Option<String>,
    pub(super) expression: Expression,
    /// All events that it needs, through references too.
    pub(super) events: BTreeSet<usize>,
    /// Events that it leaves without a divisor.
    pub(super) bare: BTreeSet<usize>,
    steps: u64,
}

/// A value with its unit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Value {
    /// The number.
    pub value: f64,
    /// Its unit.
    pub unit: Unit,
}

/// Why a formula has no value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Absent {
    /// The catalogue has no formula of that name.
    #[error("this machine has no formula '{0}'")]
    NoFormula(String),
    /// An event was not counted.
    #[error("event {0} was not counted")]
    NotCounted(String),
    /// A divisor is zero.
    #[error("the divisor is zero")]
    ZeroDivisor,
    /// A count is no number, or the value exceeds all bounds.
    #[error("the value is not finite")]
    NotFinite,
}

/// Counts over one interval.
///
/// Counters are multiplexed by group, so an event that is in several groups
/// has several counts, each over its own part of the interval. Counts of one
/// group may be divided by each other as they are.
pub trait Counts {
    /// The count of an event in a group; absent if it was not measured there.
    /// Without a group: the best count over the whole interval.
    fn count(&self, group: Option<&str>, event: &str) -> Option<f64>;
}

/// Counts that do not differ by group.
impl<F: Fn(&str) -> Option<f64>> Counts for F {
    fn count(&self, _group: Option<&str>, event: &str) -> Option<f64> {
        self(event)
    }
}

/// Counts over one interval, by places in the catalogue.
pub(crate) trait Placed {
    /// The count of an event in a group; without a group, the best one over
    /// the whole interval.
    fn count(&self, group: Option<usize>, event: usize) -> Option<f64>;

    /// Was the event counted in this group?
    fn has(&self, group: usize, event: usize) -> bool;

    /// How many quanta ago the group was counted.
    fn age(&self, group: usize) -> u64;
}

/// Counts by name, none of them older than another.
pub(super) struct Named<'a> {
    pub(super) events: &'a [Event],
    pub(super) groups: &'a [Group],
    pub(super) counts: &'a dyn Counts,
}

impl Placed for Named<'_> {
    fn count(&self, group: Option<usize>, event: usize) -> Option<f64> {
        let event = self.events.get(event)?;
        let group = group.and_then(|at| self.groups.get(at)).map(|group| group.name.as_str());
        self.counts.count(group, &event.name)
    }

    fn has(&self, group: usize, event: usize) -> bool {
        self.count(Some(group), event).is_some_and(f64::is_finite)
    }

    fn age(&self, _: usize) -> u64 {
        0
    }
}

/// What a formula is held against at load.
pub(super) struct Context<'a> {
    pub(super) events: &'a [Event],
    pub(super) groups: &'a [Group],
    pub(super) formulas: &'a [Formula],
}

impl Context<'_> {
    /// What a name stands for, or why it stands for nothing.
    pub(super) fn resolve(&self, name: &str) -> Result<Name, String> {
        let event = self.events.iter().position(|event| event.name == name).map(Name::Event);
        let formula = || self.formulas.iter().position(|formula| formula.name == name);
        event.or_else(|| formula().map(Name::Formula)).ok_or_else(|| {
            format!("'{name}' is neither an event of this catalogue nor a formula above this one")
        })
    }

    /// Builds a formula, or says which rule it breaks.
    pub(super) fn formula(
        &self,
        name: String,
        unit: Unit,
        text: String,
        source: String,
        note: Option<String>,
        mut expression: Expression,
    ) -> Result<Formula, String> {
        let mut events = BTreeSet::new();
        let mut steps = 0;
        let bare = self.check(&mut expression, &mut events, &mut steps)?;
        if steps > MAX_STEPS {
            return Err("takes too many steps once its references are followed".into());
        }
        Ok(Formula { name, unit, text, source, note, expression, events, bare, steps })
    }

    /// Finds a group for each division below; gives the events that are left
    /// without a divisor.
    fn check(
        &self,
        expression: &mut Expression,
        events: &mut BTreeSet<usize>,
        steps: &mut u64,
    ) -> Result<BTreeSet<usize>, String> {
        *steps = steps.saturating_add(1);
        match expression {
            Expression::Number(_) => Ok(BTreeSet::new()),
            Expression::Name(Name::Event(event)) => {
                events.insert(*event);
                Ok(BTreeSet::from([*event]))
            }
            Expression::Name(Name::Formula(index)) => {
                let Some(formula) = self.formulas.get(*index) else { return Ok(BTreeSet::new()) };
                events.extend(&formula.events);
                *steps = steps.saturating_add(formula.steps);
                Ok(formula.bare.clone())
            }
            Expression::Negate(inner) => self.check(inner, events, steps),
            Expression::Add(pair) | Expression::Subtract(pair) | Expression::Multiply(pair) => {
                self.check_all(pair.as_mut_slice(), events, steps)
            }
            Expression::Min(list) | Expression::Max(list) => self.check_all(list, events, steps),
            Expression::If(four) => self.check_all(four.as_mut_slice(), events, steps),
            Expression::Divide(division) => {
                let [numerator, divisor] = &mut division.sides;
                let mut compared = self.check(numerator, events, steps)?;
                let below = self.check(divisor, events, steps)?;
                if compared.is_empty() && !below.is_empty() {
                    return Err("divides by counts something that is no count; write the count \
                                that they are compared with above them"
                        .to_owned());
                }
                let comparison = !compared.is_empty() && !below.is_empty();
                compared.extend(below);
                if !comparison {
                    return Ok(compared);
                }
                division.groups = self.groups_with(&compared);
                if division.groups.is_empty() {
                    let names = compared.iter().filter_map(|&event| self.events.get(event));
                    let names: Vec<_> = names.map(|event| event.name.as_str()).collect();
                    return Err(format!(
                        "divides counts that no group takes together: {}",
                        names.join(", ")
                    ));
                }
                division.compared = compared.into_iter().collect();
                Ok(BTreeSet::new())
            }
        }
    }

    fn check_all(
        &self,
        list: &mut [Expression],
        events: &mut BTreeSet<usize>,
        steps: &mut u64,
    ) -> Result<BTreeSet<usize>, String> {
        let mut bare = BTreeSet::new();
        for part in list {
            bare.extend(self.check(part, events, steps)?);
        }
        Ok(bare)
    }

    fn groups_with(&self, events: &BTreeSet<usize>) -> Vec<usize> {
        let holds = |group: &Group| events.iter().all(|event| group.members.contains(event));
        (0..self.groups.len()).filter(|&at| self.groups.get(at).is_some_and(holds)).collect()
    }

    /// The value of a formula over counts.
    pub(super) fn value(&self, formula: &Formula, counts: &dyn Placed) -> Result<Value, Absent> {
        let value = self.number(&formula.expression, counts, None)?;
        if value.is_finite() {
            Ok(Value { value, unit: formula.unit })
        } else {
            Err(Absent::NotFinite)
        }
    }

    fn number(
        &self,
        expression: &Expression,
        counts: &dyn Placed,
        group: Option<usize>,
    ) -> Result<f64, Absent> {
        let number = |part: &Expression| self.number(part, counts, group);
        let both = |pair: &[Expression; 2]| Ok((number(&pair[0])?, number(&pair[1])?));
        match expression {
            Expression::Number(number) => Ok(*number),
            Expression::Name(Name::Event(event)) => self.count(*event, counts, group),
            Expression::Name(Name::Formula(index)) => {
                let missing = || Absent::NoFormula(index.to_string());
                number(&self.formulas.get(*index).ok_or_else(missing)?.expression)
            }
            Expression::Negate(inner) => number(inner).map(|value| -value),
            Expression::Add(pair) => both(pair).map(|(a, b)| a + b),
            Expression::Subtract(pair) => both(pair).map(|(a, b)| a - b),
            Expression::Multiply(pair) => both(pair).map(|(a, b)| a * b),
            Expression::Divide(division) => self.divide(division, counts, group),
            Expression::Min(list) => self.fold(list, counts, group, f64::min),
            Expression::Max(list) => self.fold(list, counts, group, f64::max),
            Expression::If(four) => {
                let [left, right, then, other] = four.as_ref();
                number(if number(left)? > number(right)? { then } else { other })
            }
        }
    }

    /// A division over the counts of the freshest of its groups that was
    /// measured, the first one where several are as fresh.
    fn divide(
        &self,
        division: &Division,
        counts: &dyn Placed,
        group: Option<usize>,
    ) -> Result<f64, Absent> {
        let counted = |home: usize| division.compared.iter().all(|&e| counts.has(home, e));
        let mut home = group;
        if let Some(&first) = division.groups.first() {
            let measured = division.groups.iter().copied().filter(|&home| counted(home));
            home = Some(measured.min_by_key(|&home| counts.age(home)).unwrap_or(first));
        }
        let [numerator, divisor] = &division.sides;
        let numerator = self.number(numerator, counts, home)?;
        let divisor = self.number(divisor, counts, home)?;
        if divisor == 0.0 { Err(Absent::ZeroDivisor) } else { Ok(numerator / divisor) }
    }

    fn fold(
        &self,
        list: &[Expression],
        counts: &dyn Placed,
        group: Option<usize>,
        pick: fn(f64, f64) -> f64,
    ) -> Result<f64, Absent> {
        let values = list.iter().map(|part| self.number(part, counts, group));
        let values = values.collect::<Result<Vec<_>, _>>()?;
        values.into_iter().reduce(pick).ok_or(Absent::NotFinite)
    }

    fn count(
        &self,
        event: usize,
        counts: &dyn Placed,
        group: Option<usize>,
    ) -> Result<f64, Absent> {
        let name = || self.events.get(event).map(|event| event.name.clone()).unwrap_or_default();
        let count = counts.count(group, event).ok_or_else(|| Absent::NotCounted(name()))?;
        if count.is_finite() { Ok(count) } else { Err(Absent::NotFinite) }
    }
}
