use symbiont_counters::catalogue::{Catalogue, Unit};
use symbiont_machine::Signal;

use super::*;
use crate::activity::{CYCLES, Cycle, SLOTS, Slot};
use crate::description::Description;

/// Something of everything.
fn mixed() -> Activity {
    let mut a = Activity {
        instructions: 1000.0,
        uops: 1100.0,
        loads: 300.0,
        stores: 100.0,
        mispredicted: 7.0,
        flops: 150.0,
        fp_scalar: 90.0,
        fp_packed: 30.0,
        fp_divisions: 3.0,
        vector_cycles: 200.0,
        divider_cycles: 40.0,
        l1i_misses: 4.0,
        itlb_misses: 1.0,
        l1d_misses: 30.0,
        l2_misses: 14.0,
        l2_load_misses: 10.0,
        llc_load_misses: 5.0,
        far_loads: 2.0,
        memory_near: 4.0,
        memory_far: 3.0,
        ..Activity::default()
    };
    for cause in 0..CYCLES {
        a.cycles[cause] = 50.0 + cause as f64;
    }
    let cycles: f64 = a.cycles.iter().sum();
    for cause in 0..SLOTS {
        a.slots[cause] = 10.0 * (1.0 + cause as f64);
    }
    a.slots[Slot::Retiring as usize] = a.uops;
    a.slots[Slot::Core as usize] += 4.0 * cycles - a.slots.iter().sum::<f64>();
    a.modes = [0.0, cycles, 0.0, 0.0];
    a
}

fn catalogues() -> Vec<String> {
    let mut names: Vec<String> = Description::builtin()
        .iter()
        .flat_map(|(name, _)| Description::named(name).unwrap().core_types)
        .map(|core| core.catalogue)
        .collect();
    names.sort();
    names.dedup();
    names
}

/// Events that the simulated machine does not report.
const UNREPORTED: [&str; 3] = [
    "DISPATCH_STALL_FOR_RETIRE_QUEUE_FULL",
    "DISPATCH_STALL_FOR_FPU_FULL",
    "DISPATCH_STALL_FOR_LDQ_FULL",
];

#[test]
fn every_catalogue_that_a_description_may_name_has_a_table() {
    assert!(crate::description::CATALOGUES.iter().all(|name| !table(name).is_empty()));
}

#[test]
fn every_event_is_reported_or_known_to_be_unreported() {
    for name in catalogues() {
        let catalogue = Catalogue::parse(&name, catalogue_text(&name).unwrap()).unwrap();
        let rows = table(&name);
        for event in catalogue.events() {
            let reported = rows.iter().any(|(known, _, _)| *known == event.name);
            assert_ne!(
                reported,
                UNREPORTED.contains(&event.name.as_str()),
                "{name}: {}",
                event.name
            );
        }
        let names: Vec<&str> = rows.iter().map(|row| row.0).collect();
        for (at, row) in names.iter().enumerate() {
            assert!(!names[..at].contains(row), "{name}: {row} twice");
        }
    }
}

#[test]
fn stacks_derived_from_events_sum_to_the_whole() {
    let activity = mixed();
    let cpi = activity.all_cycles() / activity.instructions;
    for name in catalogues() {
        let catalogue = Catalogue::parse(&name, catalogue_text(&name).unwrap()).unwrap();
        let rows = table(&name);
        let counts = |event: &str| {
            rows.iter().find(|row| row.0 == event).map(|(_, _, count)| count(&activity))
        };
        let value = |formula: &str| catalogue.evaluate(formula, &counts).unwrap().value;
        assert!((value("cpi") - cpi).abs() < 1e-9, "{name}");
        for sum in catalogue.sums() {
            let parts: f64 = sum.parts.iter().map(|part| value(part)).sum();
            let total = sum.total.as_deref().map_or(1.0, value);
            assert!((parts - total).abs() < 1e-6, "{name}: {} is {parts}, not {total}", sum.name);
        }
        for formula in catalogue.formulas() {
            if let (Ok(found), Unit::Fraction) =
                (catalogue.evaluate(&formula.name, &counts), formula.unit)
            {
                assert!(found.value.is_finite(), "{name}: {}", formula.name);
            }
        }
    }
}

#[test]
fn counts_grow_with_what_was_done() {
    let activity = mixed();
    for name in catalogues() {
        for (event, _, count) in table(&name) {
            let (once, twice) = (count(&activity), count(&activity.times(2.0)));
            assert!(once >= 0.0, "{name}: {event} is {once}");
            assert!((twice - 2.0 * once).abs() < 1e-6, "{name}: {event}: {once}, {twice}");
        }
    }
}

#[test]
fn a_reader_counts_what_its_signals_need() {
    let reader = Reader::new("power8", &[Signal::CpiStack, Signal::RunStates].into()).unwrap();
    let counting = reader.counting().unwrap();
    let groups: Vec<&str> = counting.groups.iter().map(|group| &*group.name).collect();
    assert_eq!(groups, ["stack", "stack_memory"]);
    assert!(counting.refused.is_empty());
    assert_eq!(counting.signals, [Signal::CpiStack].into());
    let at = counting.groups[0].events.iter().position(|e| &**e == "PM_GRP_CMPL").unwrap();
    let (count, precision) = reader.count(0, at, &mixed());
    assert_eq!((count, precision), (mixed().cycle(Cycle::Retiring), Precision::AsCause));
    assert!(Reader::new("power8", &[Signal::RunStates].into()).unwrap().counting().is_none());
}
