use symbiont_counters::catalogue::{Unit, Value};
use symbiont_counters::{Characterization, Characterizations, Measured, Measurements};
use symbiont_machine::test_support::{full_support, thread};
use symbiont_machine::{Placement, Program, Sample};
use symbiont_topology::{PuId, Topology};

use super::super::domains::domains;
use super::*;

const X3D: &str = "llc:1 core:4 cache:96M | llc:1 core:4 cache:32M";
const QUANTUM: Duration = Duration::from_millis(100);
const SMALL: u64 = 32 << 20;
const LARGE: u64 = 96 << 20;

/// A program runs for some quanta on a hardware thread, with this rate of misses.
fn runs(caches: &mut Caches, line: &str, cpu: u32, rate: f64, quanta: usize) {
    let machine = Topology::synthetic(line).unwrap();
    let mut one = thread(0, 1, &machine.cpus());
    one.cpu = Some(PuId(cpu));
    let did = Characterization {
        over: QUANTUM,
        ready: 1.0,
        running: 1.0,
        switches: 0,
        migrated: Some(false),
    };
    let known: Characterizations = [(one.id, did)].into();
    let rate = Value { value: rate, unit: Unit::Fraction };
    let measured: Measurements = [(one.id, Measured::of([(RATE, rate)]))].into();
    let programs = vec![Program::new(ProgramId(0), "p")];
    let sample = Sample { threads: vec![one], programs, ..Sample::default() };
    let applied = Placement::new();
    let view = View::new(&machine, &sample, &known, &applied).measured(&measured);
    let domains = domains(&machine, &machine.cpus());
    for _ in 0..quanta {
        caches.learn(&view, &domains, QUANTUM);
    }
}

/// What it loses in the small and in the large cache.
fn losses(caches: &Caches) -> [Option<f64>; 2] {
    [SMALL, LARGE].map(|bytes| caches.loss(ProgramId(0), bytes))
}

#[test]
fn a_larger_cache_is_expected_to_miss_less_until_it_is_known() {
    let mut caches = Caches::default();
    runs(&mut caches, X3D, 4, 0.003, 5);
    assert_eq!(losses(&caches), [None, None], "the cache is filled yet");
    runs(&mut caches, X3D, 4, 0.003, 20);
    let [small, large] = losses(&caches).map(Option::unwrap);
    assert!((small - 0.3).abs() < 1e-9 && (large - 0.1).abs() < 1e-9, "{small} {large}");
    // It streams: as many misses in any cache.
    runs(&mut caches, X3D, 0, 0.003, 20);
    let [small, large] = losses(&caches).map(Option::unwrap);
    assert!((small - large).abs() < 1e-9, "{small} {large}");
}

#[test]
fn of_a_smaller_cache_nothing_better_is_expected() {
    let mut caches = Caches::default();
    runs(&mut caches, X3D, 0, 0.002, 20);
    let [small, large] = losses(&caches).map(Option::unwrap);
    assert!((small - 0.2).abs() < 1e-9 && (large - 0.2).abs() < 1e-9, "{small} {large}");
}

#[test]
fn few_misses_are_none() {
    let mut caches = Caches::default();
    runs(&mut caches, X3D, 4, 0.0003, 20);
    assert_eq!(losses(&caches), [Some(0.0), Some(0.0)]);
}

#[test]
fn reasons_name_the_caches() {
    let machine = Topology::synthetic(X3D).unwrap();
    let domains = domains(&machine, &machine.cpus());
    let why = |caches: &Caches, at: usize| caches.reason(ProgramId(0), &domains[at], &domains);
    let mut caches = Caches::default();
    assert_eq!(why(&caches, 1), None);
    runs(&mut caches, X3D, 4, 0.003, 20);
    assert_eq!(why(&caches, 0).unwrap(), "misses in the 32 MiB cache: the larger one, 96 MiB");
    assert!(why(&caches, 1).unwrap().contains("96 MiB, is of more use to others"));
    runs(&mut caches, X3D, 0, 0.003, 20);
    assert!(why(&caches, 0).unwrap().contains("as much in the larger one, 96 MiB"));
    let mut little = Caches::default();
    runs(&mut little, X3D, 4, 0.0001, 20);
    assert_eq!(why(&little, 1).unwrap(), "misses little in the 32 MiB cache");
}

#[test]
fn equal_caches_are_not_compared() {
    for line in ["llc:2 core:4 cache:32M", "llc:2 core:4", "llc:1 core:4 cache:96M | llc:1 core:4"]
    {
        let mut caches = Caches::default();
        runs(&mut caches, line, 4, 0.003, 20);
        assert_eq!(losses(&caches), [None, None], "{line}");
        let machine = Topology::synthetic(line).unwrap();
        let domains = domains(&machine, &machine.cpus());
        let unequal = Unequal::of(&full_support(), &domains);
        assert!(unequal.text.is_none() && !unequal.counts, "{line}");
    }
}

#[test]
fn what_is_unequal_is_named_and_whether_misses_can_be_counted() {
    let machine = Topology::synthetic(X3D).unwrap();
    let domains = domains(&machine, &machine.cpus());
    let mut support = full_support();
    let mut said = |ability: Option<Ability>| {
        support.signals.remove(&Signal::CacheMisses);
        support.signals.extend(ability.map(|ability| (Signal::CacheMisses, ability)));
        let unequal = Unequal::of(&support, &domains);
        (unequal.text.unwrap(), unequal.counts)
    };
    let sizes = "caches of unequal size (96 MiB and 32 MiB)";
    let counted = format!("{sizes}: programs that miss in a smaller one go to a larger one");
    let only_last = Ability::Partial("no l2_misses: not in the catalogue".into());
    for ability in [Ability::Full, only_last] {
        assert_eq!(said(Some(ability)), (counted.clone(), true));
    }
    let (text, counts) = said(Some(Ability::Absent("no PMU".into())));
    assert_eq!(text, format!("{sizes}, treated alike: cache misses cannot be counted (no PMU)"));
    assert!(!counts);
    let only_l2 = Ability::Partial("no llc_misses: not in the catalogue".into());
    assert!(!said(Some(only_l2)).1 && !said(None).1);
}
