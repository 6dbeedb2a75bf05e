//! The formulas of each signal.

use std::sync::Arc;

use symbiont_machine::{CountedGroup, Counting, Signal, Signals};

use super::{Absent, Catalogue};

/// Formulas and sums that a signal asks for by name, the same in all
/// catalogues.
enum Idea {
    /// All of these.
    All(&'static [&'static str]),
    /// Those of these that there are, at least one.
    Any(&'static [&'static str]),
    /// The parts of a sum and their total.
    Sum(&'static str),
    /// The members of a list of categories.
    Categories(&'static str),
}

fn idea(signal: Signal) -> Idea {
    match signal {
        Signal::RunStates => Idea::All(&[]),
        Signal::Ipc => Idea::All(&["ipc", "cpi", "cycles", "instructions"]),
        Signal::CpiStack => Idea::Sum(CPI_STACK),
        Signal::CpiStackFine => Idea::Sum(CPI_STACK_FINE),
        Signal::TopL | Signal::TopB2L | Signal::TopB2M3L | Signal::All3L => {
            Idea::Categories(categories_of(signal).unwrap_or_default())
        }
        Signal::FpuUsage => Idea::All(&["fpu_usage"]),
        Signal::L1dBandwidth => Idea::All(&["l1d_bandwidth"]),
        Signal::MemoryRequests => Idea::Any(&["memory_requests", "memory_request_rate"]),
        Signal::CacheMisses => {
            Idea::Any(&["l2_misses", "l2_miss_rate", "llc_misses", "llc_miss_rate"])
        }
    }
}

/// The sum that is the CPI stack.
pub(crate) const CPI_STACK: &str = "cpi_stack";

/// The sum that is the fine CPI stack.
const CPI_STACK_FINE: &str = "cpi_stack_fine";

/// The name that a list of Top-Down categories has in catalogues; none for
/// other signals.
pub(crate) fn categories_of(signal: Signal) -> Option<&'static str> {
    match signal {
        Signal::TopL => Some("TopL"),
        Signal::TopB2L => Some("TopB2L"),
        Signal::TopB2M3L => Some("TopB2M3L"),
        Signal::All3L => Some("All3L"),
        _ => None,
    }
}

impl Catalogue {
    /// The formulas of a signal, by name; empty for one that is not
    /// derived from counts.
    ///
    /// # Errors
    /// What is missing in the catalogue for it.
    pub fn formulas_for(&self, signal: Signal) -> Result<Vec<&str>, Absent> {
        let known = |name: &str| self.formula(name).map(|formula| formula.name.as_str());
        let need = |name: &str| known(name).ok_or_else(|| Absent::NoFormula(name.to_owned()));
        match idea(signal) {
            Idea::All(names) => names.iter().map(|name| need(name)).collect(),
            Idea::Any(names) => {
                let there: Vec<&str> = names.iter().filter_map(|name| known(name)).collect();
                match names.first().filter(|_| there.is_empty()) {
                    Some(first) => Err(Absent::NoFormula((*first).to_owned())),
                    None => Ok(there),
                }
            }
            Idea::Sum(name) => {
                let sum = self.sums.iter().find(|sum| sum.name == name);
                let sum = sum.ok_or_else(|| Absent::NoFormula(name.to_owned()))?;
                let names = sum.parts.iter().chain(&sum.total);
                names.map(|name| need(name)).collect()
            }
            Idea::Categories(name) => {
                let list = self.categories.iter().find(|list| list.name == name);
                let list = list.ok_or_else(|| Absent::NoFormula(name.to_owned()))?;
                list.members.iter().map(|name| need(name)).collect()
            }
        }
    }

    /// What to count for these signals: the fewest groups that cover all of them. A
    /// signal for which the catalogue has no formulas is left out.
    #[must_use]
    pub fn counting(&self, signals: &Signals) -> Counting {
        let signals: Signals = signals.intersection(&self.signals()).copied().collect();
        let formulas = signals.iter().filter_map(|&signal| self.formulas_for(signal).ok());
        let groups = self.groups_for(formulas.flatten()).unwrap_or_default();
        let counted = groups.into_iter().map(|group| CountedGroup {
            name: group.name.as_str().into(),
            events: group.events.iter().map(|event| Arc::from(event.as_str())).collect(),
        });
        Counting {
            catalogue: self.name.clone(),
            text: self.text.clone(),
            groups: counted.collect(),
            signals,
            ..Counting::default()
        }
    }

    /// The counted signals that the catalogue has formulas for.
    #[must_use]
    pub fn signals(&self) -> Signals {
        let has_formulas =
            |signal: &Signal| signal.is_counted() && self.formulas_for(*signal).is_ok();
        Signal::ALL.into_iter().filter(has_formulas).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{shipped, sound};
    use super::*;

    #[test]
    fn a_signal_that_a_catalogue_lacks_is_named() {
        let toy = sound();
        let absent = toy.formulas_for(Signal::FpuUsage).unwrap_err();
        assert_eq!(absent, Absent::NoFormula("fpu_usage".into()));
        assert_eq!(toy.formulas_for(Signal::RunStates), Ok(vec![]));
        assert!(shipped("software").signals().is_empty());
    }

    #[test]
    fn every_processor_has_ipc_and_a_stack() {
        for (name, _) in Catalogue::builtin().iter().filter(|(name, _)| *name != "software") {
            let signals = shipped(name).signals();
            assert!(signals.contains(&Signal::Ipc), "{name}: {signals:?}");
            assert!(signals.contains(&Signal::CpiStack), "{name}: {signals:?}");
        }
    }

    #[test]
    fn a_stack_asks_for_its_parts_and_their_total() {
        let power8 = shipped("power8");
        let names = power8.formulas_for(Signal::CpiStack).unwrap();
        let stack = ["base", "stall", "empty", "thread", "finish", "other"];
        let expected: Vec<_> = stack.map(|part| format!("cpi_{part}")).into();
        assert_eq!(names[..6], expected);
        assert_eq!(names[6..], ["cpi"]);
    }
}
