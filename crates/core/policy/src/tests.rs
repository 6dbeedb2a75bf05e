//! What holds for every policy of the list.

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};

use proptest::prelude::*;
use symbiont_counters::catalogue::{Catalogue, Unit, Value};
use symbiont_counters::{Characterization, Characterizations, Measured, Measurements};
use symbiont_machine::test_support::thread;
use symbiont_machine::{
    Class, CoreCookie, Lifecycle, Placement, Priority, Program, ProgramId, RunState, Sample,
    Signal, Target, ThreadSample,
};
use symbiont_topology::{CpuSet, PuId, Topology};

use super::*;
use worlds::stacks::STACK;

/// A machine, and what happens on it in successive quanta.
#[derive(Debug, Clone)]
struct Story {
    machine: Topology,
    quanta: Vec<(Sample, Characterizations, Measurements)>,
}

/// From a single hardware thread to POWER8; with and without SMT, core types
/// and holes in the numbering.
pub(crate) const MACHINES: [&str; 8] = [
    "core:1",
    "core:1 smt:2",
    "core:2",
    "core:4 smt:2 numbering:spread",
    "package:2 core:3 smt:2 offline:1,4-5",
    "core:2 smt:2 | core:4 kind:efficiency capacity:600",
    "core:1 | core:7 capacity:512",
    "node:1 llc:5 smt:8 cache:8M | node:1 llc:5 smt:8 cache:8M",
];

fn machine() -> impl Strategy<Value = Topology> {
    prop::sample::select(&MACHINES[..]).prop_map(|line| Topology::synthetic(line).unwrap())
}

/// A thread of one of four programs. Its allowed CPUs may name offline hardware
/// threads, even nothing else.
fn any_thread(cpus: u32) -> impl Strategy<Value = (ThreadSample, Option<f64>, Option<Measured>)> {
    let states = [RunState::Runnable, RunState::Sleeping, RunState::Stopped];
    (
        0u32..4,
        prop_oneof![Just((0..cpus).collect::<Vec<_>>()), prop::collection::vec(0..cpus + 2, 1..4)],
        prop::sample::select(states.to_vec()),
        prop_oneof![1 => Just(Lifecycle::Fresh), 1 => Just(Lifecycle::Starting), 8 => Just(Lifecycle::Settled)],
        prop::option::of(0..cpus),
        prop::option::of(prop_oneof![Just(0.0), Just(1.0), 0.0..=1.0]),
        prop::option::of(any_measured()),
        0u64..3,
    )
        .prop_map(|(program, allowed, state, lifecycle, cpu, ready, measured, cookie)| {
            let allowed: CpuSet = allowed.into_iter().map(PuId).collect();
            let mut t = thread(program, 0, &allowed);
            (t.state, t.lifecycle, t.cpu) = (state, lifecycle, cpu.map(PuId));
            t.cookie = CoreCookie::new(cookie);
            (t, ready, measured)
        })
}

/// What machines measure for a counted signal, by the first catalogue that has it.
struct Measurable {
    signal: Signal,
    names: Vec<&'static str>,
}

/// All signals that are counted. A new signal is measured here as soon as a catalogue has it.
fn measurable() -> &'static [Measurable] {
    static ALL: LazyLock<Vec<Measurable>> = LazyLock::new(|| {
        let read = |(name, _): &(&str, &str)| Catalogue::named(name).unwrap().unwrap();
        let catalogues: &'static [Catalogue] =
            Catalogue::builtin().iter().map(read).collect::<Vec<_>>().leak();
        let of = |signal: Signal| {
            let names = catalogues.iter().find_map(|catalogue| catalogue.formulas_for(signal).ok());
            Measurable {
                signal,
                names: names.unwrap_or_else(|| panic!("no catalogue has {signal}")),
            }
        };
        Signal::ALL.into_iter().filter(|signal| signal.is_counted()).map(of).collect()
    });
    &ALL
}

/// The names of all that is measured; those of the model's stack, too.
fn names() -> &'static [&'static str] {
    static ALL: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
        let names = measurable().iter().flat_map(|it| &it.names).chain(&STACK).copied();
        names.collect::<BTreeSet<_>>().into_iter().collect()
    });
    &ALL
}

/// All that machines measure; some of it may be missing, or out of all bounds.
fn any_measured() -> impl Strategy<Value = Measured> {
    let number = prop_oneof![4 => 0.0..2.0, 1 => Just(0.0), 1 => -1e300..1e300];
    // Lists of categories are long: most are to be complete.
    let values = prop::collection::vec(prop::option::weighted(0.98, number), names().len());
    values.prop_map(|values| {
        let named = names().iter().zip(values);
        let there = named.filter_map(|(name, value)| Some((*name, value?)));
        let number = |(name, value)| (name, Value { value, unit: Unit::Fraction });
        let measured = Measured::of(there.map(number)).with_stack(&STACK);
        // Of the signals, categories have lists.
        measurable().iter().fold(measured, |all, it| all.with_categories(it.signal, &it.names))
    })
}

fn quantum(cpus: u32) -> impl Strategy<Value = (Sample, Characterizations, Measurements)> {
    prop::collection::vec(any_thread(cpus), 0..12).prop_map(|list| {
        let (mut known, mut counted) = (Characterizations::new(), Measurements::new());
        let mut threads = Vec::new();
        for (number, (mut t, ready, measured)) in (0u32..).zip(list) {
            t.id.thread = number;
            known.extend(ready.map(|ready| (t.id, did(ready))));
            counted.extend(measured.map(|measured| (t.id, measured)));
            threads.push(t);
        }
        threads.sort_by_key(|t| t.id);
        // Policies by themselves do not look at classes.
        let class = [Class::Normal, Class::Latency, Class::Batch, Class::Alone];
        let programs = (0..)
            .zip(class)
            .map(|(n, class)| Program { class, ..Program::new(ProgramId(n), format!("p{n}")) });
        let programs = programs.collect();
        (Sample { threads, programs, ..Sample::default() }, known, counted)
    })
}

fn did(ready: f64) -> Characterization {
    let over = std::time::Duration::from_millis(20);
    Characterization { over, ready, running: ready, switches: 1, migrated: None }
}

fn story() -> impl Strategy<Value = Story> {
    machine().prop_flat_map(|machine| {
        let cpus = machine.cpus().iter().last().map_or(1, |pu| pu.0 + 1);
        prop::collection::vec(quantum(cpus), 1..5)
            .prop_map(move |quanta| Story { machine: machine.clone(), quanta })
    })
}

/// With all that any policy may be given.
fn settings(seed: u64) -> Settings {
    static MODELS: LazyLock<Arc<Models>> =
        LazyLock::new(|| Arc::new(worlds::stacks::model().into()));
    let names = (0..4).map(|n| format!("p{n}")).collect();
    let slowdowns = PairSlowdowns::new("synthetic".into(), names, vec![vec![1.3; 4]; 4]).unwrap();
    let (models, slowdowns) = (Some(Arc::clone(&MODELS)), Some(Arc::new(slowdowns)));
    // Of one of the four programs nothing is known.
    let interval = |n: u32| ActivityInterval {
        instructions: 1_000_000,
        counts: vec![(0..8).map(|set| u32::from(set % 3 == n)).collect(); 6],
    };
    let activity = (0..3).map(|n| (format!("p{n}"), vec![interval(n), interval(n + 1)])).collect();
    let activity = Some(Arc::new(KnownActivity::new(activity).unwrap()));
    Settings { seed, models, slowdowns, activity, ..Settings::default() }
}

/// Shows the story to a policy; each placement is applied in the next quantum.
fn show(entry: &Entry, seed: u64, story: &Story) -> Vec<Placement> {
    show_to((entry.make)(&settings(seed)), story)
}

fn show_to(mut policy: Box<dyn Policy>, story: &Story) -> Vec<Placement> {
    let mut applied = Placement::new();
    let mut reported = Vec::new();
    for (sample, known, counted) in &story.quanta {
        let view = View::new(&story.machine, sample, known, &applied).measured(counted);
        applied = policy.place(&view);
        reported.push(applied.clone());
    }
    reported
}

/// Each policy's decisions, by itself and under classes, with the samples that they were made on.
fn decisions(story: &Story) -> Vec<(&'static str, &Sample, Placement)> {
    let each = policies().iter().flat_map(|entry| {
        let classes = Classes::new((entry.make)(&settings(1)));
        let both = [show(entry, 1, story), show_to(Box::new(classes), story)];
        both.map(|reported| (entry.name, reported))
    });
    each.flat_map(|(name, reported)| {
        let decided = reported.into_iter().zip(&story.quanta);
        decided.map(move |(placement, (sample, ..))| (name, sample, placement))
    })
    .collect()
}

#[test]
fn every_signal_that_a_policy_asks_for_is_measured_in_the_views() {
    let measured: BTreeSet<Signal> = measurable().iter().map(|it| it.signal).collect();
    for entry in policies() {
        let requirements = (entry.make)(&settings(1)).requirements();
        let asked = requirements.asked().into_iter().chain(requirements.optional);
        for signal in asked.filter(|signal| signal.is_counted()) {
            assert!(measured.contains(&signal), "{}: {signal}", entry.name);
        }
    }
    for it in measurable() {
        assert!(!it.names.is_empty() && it.names.iter().all(|name| names().contains(name)));
    }
}

proptest! {
    // Each case asks all policies.
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn a_placement_names_each_thread_and_no_other(story in story()) {
        for (name, sample, placement) in decisions(&story) {
            let enrolled: Vec<_> = sample.threads.iter().map(|t| t.id).collect();
            prop_assert_eq!(enrolled, placement.into_keys().collect::<Vec<_>>(), "{}", name);
        }
    }

    #[test]
    fn targets_are_allowed(story in story()) {
        let online = story.machine.cpus();
        for (name, sample, placement) in decisions(&story) {
            for t in &sample.threads {
                if let Target::Cpus(cpus) = &placement[&t.id].target {
                    prop_assert!(!cpus.is_empty(), "{} {:?}", name, t);
                    prop_assert!(cpus.is_subset(&t.allowed.intersection(&online)), "{} {:?}", name, t);
                }
            }
        }
    }

    #[test]
    fn no_core_has_two_cookies(story in story()) {
        for entry in policies() {
            let reported = show_to(Box::new(Classes::new((entry.make)(&settings(1)))), &story);
            for (placement, (sample, ..)) in reported.iter().zip(&story.quanta) {
                for core in story.machine.cores().iter().filter(|core| core.cpus.len() > 1) {
                    let here = sample.threads.iter().filter(|t| {
                        let placed = &placement[&t.id];
                        let is_here = |cpus: &CpuSet| cpus.is_subset(&core.cpus);
                        // Where other programs have all cores but one, that one is for all others.
                        let is_left = placed.reason.contains("off the cores of other");
                        !is_left && placed.target.cpus().is_some_and(is_here)
                    });
                    let cookies: BTreeSet<_> = here.map(|t| t.cookie).collect();
                    prop_assert!(cookies.len() <= 1, "{} {:?}", entry.name, placement);
                }
            }
        }
    }

    #[test]
    fn a_machine_that_changed_is_placed_on_as_it_is_now(before in story(), now in story()) {
        let online = now.machine.cpus();
        for entry in policies() {
            let mut policy = (entry.make)(&settings(1));
            let mut applied = Placement::new();
            for story in [&before, &now] {
                for (sample, known, counted) in &story.quanta {
                    let view = View::new(&story.machine, sample, known, &applied).measured(counted);
                    applied = policy.place(&view);
                }
            }
            for placed in applied.values() {
                if let Target::Cpus(cpus) = &placed.target {
                    prop_assert!(cpus.is_subset(&online), "{}: {}", entry.name, cpus);
                }
            }
        }
    }

    #[test]
    fn unsettled_threads_are_left_to_the_os(story in story()) {
        for (name, sample, placement) in decisions(&story) {
            for t in sample.threads.iter().filter(|t| !t.lifecycle.is_settled()) {
                prop_assert_eq!(&placement[&t.id].target, &Target::Os, "{}", name);
                let urgent = placement[&t.id].priority != Priority::Normal;
                prop_assert!(!urgent || t.lifecycle == Lifecycle::Starting, "{}", name);
            }
        }
    }

    #[test]
    fn policies_are_deterministic(story in story(), seed: u64) {
        for entry in policies() {
            prop_assert_eq!(show(entry, seed, &story), show(entry, seed, &story));
        }
    }

    #[test]
    fn each_assignment_gives_a_reason(story in story()) {
        for (name, _, placement) in decisions(&story) {
            prop_assert!(placement.values().all(|a| !a.reason.is_empty()), "{}", name);
        }
    }
}
