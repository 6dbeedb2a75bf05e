//! How the counts of a machine are turned into measurements.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::sync::Arc;

use symbiont_machine::{Counting, Signal};

use crate::catalogue::signal::{CPI_STACK, categories_of};
use crate::catalogue::{Absent, Catalogue, CatalogueError, Formula, Placed};
use crate::measured::{Measured, Measurement, Outputs, Unmeasured};
use crate::track::{Change, Track};

/// A catalogue, what is counted under it, and the formulas that are wanted.
#[derive(Debug)]
pub(crate) struct Scheme {
    counting: Arc<Counting>,
    catalogue: Catalogue,
    outputs: Arc<Outputs>,
    /// For each output, the formula's place in the catalogue.
    formulas: Vec<usize>,
    /// For each group of the catalogue and in it for each event: the counted
    /// group and the index in its counts.
    slots: Vec<Vec<Option<(usize, usize)>>>,
    /// For each event of the catalogue, all its slots.
    everywhere: Vec<Vec<(usize, usize)>>,
}

impl Scheme {
    pub(crate) fn new(counting: Arc<Counting>) -> Result<Self, CatalogueError> {
        let catalogue = Catalogue::parse(&counting.catalogue, &counting.text)?;
        let slot = |group: &str, event: &str| {
            let counted = counting.groups.iter().position(|known| &*known.name == group)?;
            let events = &counting.groups.get(counted)?.events;
            Some((counted, events.iter().position(|known| &**known == event)?))
        };
        let events = catalogue.events();
        let slots = catalogue.groups().iter().map(|group| {
            events.iter().map(|event| slot(&group.name, &event.name)).collect::<Vec<_>>()
        });
        let slots: Vec<_> = slots.collect();
        let everywhere = (0..events.len()).map(|event| {
            slots.iter().filter_map(|group| group.get(event).copied().flatten()).collect()
        });
        let everywhere = everywhere.collect();
        let outputs = Arc::new(outputs(&catalogue, &counting));
        let place = |name: &Arc<str>| catalogue.formulas().iter().position(|f| *f.name == **name);
        let formulas = outputs.names.iter().filter_map(place).collect();
        Ok(Self { counting, catalogue, outputs, formulas, slots, everywhere })
    }

    /// Is it for these counts?
    pub(crate) fn is_of(&self, counting: &Arc<Counting>) -> bool {
        Arc::ptr_eq(&self.counting, counting) || self.counting == *counting
    }

    /// All that is wanted of a thread.
    pub(crate) fn measure(&self, groups: &[Track]) -> Measured {
        let formulas = self.formulas.iter().filter_map(|&at| self.catalogue.formulas().get(at));
        let values = formulas.map(|formula| self.value(formula, groups)).collect();
        Measured::new(Arc::clone(&self.outputs), values)
    }

    fn value(&self, formula: &Formula, groups: &[Track]) -> Result<Measurement, Unmeasured> {
        let located =
            LocatedCounts { scheme: self, groups, coverage: Cell::new(1.0), age: Cell::new(0) };
        match self.catalogue.compute(formula, &located) {
            Ok(value) => Ok(Measurement {
                value: value.value,
                unit: value.unit,
                coverage: located.coverage.get(),
                age: located.age.get(),
            }),
            Err(Absent::NotCounted(event)) => Err(unmeasured(&event, &self.counting, groups)),
            Err(Absent::NoFormula(name)) => Err(Unmeasured::Unknown(name)),
            Err(Absent::ZeroDivisor) => Err(Unmeasured::ZeroDivisor),
            Err(Absent::NotFinite) => Err(Unmeasured::NotFinite),
        }
    }
}

/// The formulas of the signals that are counted for.
fn outputs(catalogue: &Catalogue, counting: &Counting) -> Outputs {
    let mut outputs = Outputs::default();
    let mut seen = BTreeSet::new();
    for &signal in &counting.signals {
        let Ok(names) = catalogue.formulas_for(signal) else { continue };
        let names: Vec<Arc<str>> = names.into_iter().map(Arc::from).collect();
        if signal == Signal::CpiStack {
            let sum = catalogue.sums().iter().find(|sum| sum.name == CPI_STACK);
            let parts = sum.map_or(0, |sum| sum.parts.len());
            outputs.stack = names.iter().take(parts).cloned().collect();
        }
        if let Some(variant) = categories_of(signal) {
            outputs.categories.push((variant.into(), names.clone()));
        }
        if signal == Signal::FpuUsage {
            outputs.floating_point_units = catalogue.units().map(|units| units.floating_point);
        }
        outputs.names.extend(names.into_iter().filter(|name| seen.insert(Arc::clone(name))));
    }
    outputs
}

/// A thread's counts at their places in the catalogue. Takes note of what is
/// used.
struct LocatedCounts<'a> {
    scheme: &'a Scheme,
    groups: &'a [Track],
    coverage: Cell<f64>,
    age: Cell<u64>,
}

impl LocatedCounts<'_> {
    fn change(&self, group: usize) -> Option<&Change> {
        self.groups.get(group)?.change()
    }

    fn slot(&self, group: usize, event: usize) -> Option<(usize, usize)> {
        *self.scheme.slots.get(group)?.get(event)?
    }

    /// What an event counted over the whole time, from all places where it was counted
    /// most recently. Groups that take turns see different parts of a quantum, together
    /// perhaps all of it.
    fn everywhere(&self, event: usize) -> Option<f64> {
        let slots = self.scheme.everywhere.get(event)?;
        let counts = slots.iter().filter_map(|&(counted, place)| {
            let change = self.change(counted)?;
            Some((change, *change.counts.get(place)? as f64))
        });
        let counts: Vec<_> = counts.collect();
        let age = counts.iter().map(|(change, _)| change.age).min()?;
        let (mut counted, mut parts, mut coverage) = (0.0, 0.0, 0.0);
        for (change, count) in counts.into_iter().filter(|(change, _)| change.age == age) {
            counted += count;
            parts += 1.0 / change.scale;
            coverage += change.coverage;
        }
        self.coverage.set(self.coverage.get().min(coverage));
        self.age.set(self.age.get().max(age));
        Some(counted / parts)
    }
}

impl Placed for LocatedCounts<'_> {
    fn count(&self, group: Option<usize>, event: usize) -> Option<f64> {
        let Some(group) = group else { return self.everywhere(event) };
        let (counted, place) = self.slot(group, event)?;
        let change = self.change(counted)?;
        let count = *change.counts.get(place)? as f64;
        self.coverage.set(self.coverage.get().min(change.coverage));
        self.age.set(self.age.get().max(change.age));
        Some(count)
    }

    fn has(&self, group: usize, event: usize) -> bool {
        let slot = self.slot(group, event);
        let count = slot.and_then(|(counted, place)| self.change(counted)?.counts.get(place));
        count.is_some()
    }

    fn age(&self, group: usize) -> u64 {
        let counted = self.scheme.slots.get(group).and_then(|slots| slots.iter().flatten().next());
        counted.and_then(|&(counted, _)| self.change(counted)).map_or(u64::MAX, |c| c.age)
    }
}

/// Why an event that a formula needs has no count: the thread has not run, or
/// no group counts it.
fn unmeasured(event: &str, counting: &Counting, groups: &[Track]) -> Unmeasured {
    let event: Arc<str> = event.into();
    if let Some(why) = counting.refused.get(&event) {
        return Unmeasured::NotCounted { event, why: Arc::clone(why) };
    }
    let holds = |at: &usize| counting.groups.get(*at).is_some_and(|g| g.events.contains(&event));
    let homes = (0..counting.groups.len()).filter(holds).filter_map(|at| groups.get(at));
    let mut why = None;
    for home in homes {
        match home.absent() {
            None => return Unmeasured::NotYet { event },
            Some(reason) => why = why.or(Some(reason)),
        }
    }
    let why = why.map_or_else(|| "no group that is counted has it".into(), Arc::clone);
    Unmeasured::NotCounted { event, why }
}
