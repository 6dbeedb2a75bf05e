//! Which of a catalogue's groups can be counted here, and why not more.

use std::collections::BTreeMap;
use std::sync::Arc;

use symbiont_counters::catalogue::Catalogue;
use symbiont_machine::{Ability, Signal};

use super::choice::Choice;
use super::error::Reason;
use super::group::{Group, GroupOptions};

impl Choice {
    /// Events that cannot be counted here: those that are not asked for
    /// ([`missing`](Self::missing)), and those that the kernel refuses when it
    /// is asked, on the calling thread and without counting.
    #[must_use]
    pub fn refused(&self, options: GroupOptions) -> BTreeMap<Arc<str>, Reason> {
        let thread = rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
        let options = GroupOptions { enabled: false, ..options };
        let mut refused = self.missing.clone();
        for specs in self.groups.iter().filter(|specs| !specs.is_empty()) {
            match Group::open(thread, specs, options) {
                Ok(group) => {
                    let missing = group.missing().iter();
                    refused.extend(missing.map(|error| (error.event.clone(), error.reason)));
                }
                Err(error) => {
                    refused.extend(specs.iter().map(|spec| (spec.name.clone(), error.reason)));
                }
            }
        }
        refused
    }
}

/// Which of the signals that are derived from counts this host can measure by a
/// catalogue, if these events are refused.
#[must_use]
pub fn abilities(
    catalogue: &Catalogue,
    refused: &BTreeMap<Arc<str>, Reason>,
) -> BTreeMap<Signal, Ability> {
    let counted = Signal::ALL.into_iter().filter(|signal| signal.is_counted());
    counted.map(|signal| (signal, ability(catalogue, refused, signal))).collect()
}

fn ability(catalogue: &Catalogue, refused: &BTreeMap<Arc<str>, Reason>, signal: Signal) -> Ability {
    let formulas = match catalogue.formulas_for(signal) {
        Ok(formulas) => formulas,
        Err(why) => return Ability::Absent(format!("catalogue {}: {why}", catalogue.name())),
    };
    let formulas = || formulas.iter().filter_map(|name| catalogue.formula(name));
    let lacking = |formula| {
        let events = catalogue.events_of(formula);
        events.into_iter().find_map(|event| refused.get_key_value(event.name.as_str()))
    };
    let mut missing = formulas().filter_map(|formula| Some((formula, lacking(formula)?)));
    let Some((formula, (event, reason))) = missing.next() else { return Ability::Full };
    let why = format!("{event}: {reason}");
    // A stack or a list of categories is nothing without one of its parts.
    let whole = [
        Signal::CpiStack,
        Signal::CpiStackFine,
        Signal::TopL,
        Signal::TopB2L,
        Signal::TopB2M3L,
        Signal::All3L,
    ];
    if whole.contains(&signal) || missing.count() + 1 == formulas().count() {
        Ability::Absent(why)
    } else {
        Ability::Partial(format!("no {}: {why}", formula.name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str) -> Catalogue {
        Catalogue::named(name).unwrap().unwrap()
    }

    #[test]
    fn a_signal_without_its_events_is_absent_with_the_reason() {
        let power8 = named("power8");
        assert!(abilities(&power8, &BTreeMap::new())[&Signal::CpiStack] == Ability::Full);
        let refused = [(Arc::from("PM_CMPLU_STALL_THRD"), Reason::Starved)].into();
        let found = abilities(&power8, &refused);
        assert_eq!(found[&Signal::Ipc], Ability::Full);
        let Ability::Absent(why) = &found[&Signal::CpiStack] else { panic!("{found:?}") };
        assert!(why.starts_with("PM_CMPLU_STALL_THRD: it never counted"), "{why}");
        let l3 = power8.events_of(power8.formula("llc_misses").unwrap());
        let refused = l3.map(|event| (Arc::from(event.name.as_str()), Reason::Starved)).take(1);
        let found = abilities(&power8, &refused.collect());
        let Ability::Partial(why) = &found[&Signal::CacheMisses] else { panic!("{found:?}") };
        assert!(why.starts_with("no llc_misses: PM_"), "{why}");
        let all = power8.events().iter().map(|e| (Arc::from(e.name.as_str()), Reason::NoPmu));
        let found = abilities(&power8, &all.collect());
        assert!(found.values().all(|ability| !ability.exists()));
        assert!(found[&Signal::Ipc].why().unwrap().contains("no such PMU"));
        assert!(found[&Signal::TopL].why().unwrap().starts_with("catalogue power8: this machine"));
    }

    #[test]
    fn what_the_kernel_refuses_is_found_by_asking() {
        let support = super::super::support();
        let software = named("software");
        let choice = Choice::of(&software, software.groups(), &support.pmus);
        let refused = choice.refused(support.options());
        let clock = refused.get("task_clock");
        assert_eq!(clock.is_none(), support.software.is_ok());
        let switches = refused.get("context_switches");
        assert_eq!(switches.is_none(), support.software.is_ok() && support.kernel_side.is_ok());
    }
}
