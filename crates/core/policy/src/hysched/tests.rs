use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use symbiont_counters::catalogue::{Quantity, Unit, Value};
use symbiont_counters::{Characterizations, Measured};
use symbiont_machine::test_support::{full_support, thread};
use symbiont_machine::{Sample, Target, ThreadSample};
use symbiont_topology::{CoreId, Topology};

use super::*;

const NAMES: [&str; 4] = ["retiring", "frontend_bound", "bad_speculation", "backend_bound"];

/// A runnable thread with this dominant category and IPC.
fn runs(machine: &Topology, number: u32) -> ThreadSample {
    let mut new = thread(0, number, &machine.cpus());
    new.state = RunState::Runnable;
    new
}

fn measured(category: usize, ipc: f64) -> Measured {
    let ipc_unit = Unit::Per(Quantity::Instructions, Quantity::Cycles);
    let share = |index| if index == category { 0.7 } else { 0.1 };
    let shares = NAMES.iter().enumerate();
    let shares = shares.map(|(i, name)| (*name, Value { value: share(i), unit: Unit::Fraction }));
    Measured::of(shares.chain([("ipc", Value { value: ipc, unit: ipc_unit })]))
        .with_categories(Signal::TopL, &NAMES)
}

/// Places threads of these categories and IPCs, none of them placed before.
fn place(policy: &mut Hysched, machine: &Topology, of: &[(usize, f64)]) -> (Sample, Placement) {
    let threads = (0..).zip(of).map(|(number, _)| runs(machine, number)).collect();
    let sample = Sample { threads, ..Sample::default() };
    let known: Vec<Measured> = of.iter().map(|&(category, ipc)| measured(category, ipc)).collect();
    let (did, applied) = (Characterizations::new(), Placement::new());
    let mut view = View::new(machine, &sample, &did, &applied);
    for (thread, known) in view.threads.iter_mut().zip(&known) {
        thread.measured = Some(known);
    }
    let placement = policy.place(&view);
    (sample.clone(), placement)
}

/// Which threads share a core, by index.
fn groups(machine: &Topology, sample: &Sample, placement: &Placement) -> Vec<Vec<usize>> {
    let mut cores: BTreeMap<CoreId, Vec<usize>> = BTreeMap::new();
    for (index, thread) in sample.threads.iter().enumerate() {
        let Target::Cpus(cpus) = &placement[&thread.id].target else { continue };
        let core = machine.core_of(cpus.first().unwrap()).unwrap().id;
        cores.entry(core).or_default().push(index);
    }
    cores.into_values().collect()
}

fn topl() -> Hysched {
    Hysched::new(Variant::TopL)
}

#[test]
fn variants_are_known_by_name() {
    for variant in Variant::ALL {
        assert_eq!(variant.to_string().to_lowercase().parse(), Ok(variant));
    }
    let error = "TopX".parse::<Variant>().unwrap_err().to_string();
    assert_eq!(error, "no variant is called 'TopX'; there are: TopL, TopB2L, TopB2M3L, All3L");
}

#[test]
fn different_categories_meet() {
    let machine = Topology::synthetic("core:2 smt:2").unwrap();
    let of = [(0, 2.0), (0, 1.5), (3, 0.3), (3, 0.6)];
    let (sample, placement) = place(&mut topl(), &machine, &of);
    let groups: BTreeSet<Vec<usize>> = groups(&machine, &sample, &placement).into_iter().collect();
    assert_eq!(groups, [vec![0, 3], vec![1, 2]].into());
    let reason = &placement[&sample.threads[0].id].reason;
    assert_eq!(reason, "different categories: backend_bound with retiring");
}

#[test]
fn no_core_is_idle_while_others_are_shared() {
    let machine = Topology::synthetic("core:4 smt:2").unwrap();
    for count in 1..=8 {
        let of: Vec<(usize, f64)> = (0..count).map(|n| (n % 2 * 3, 1.0)).collect();
        let (sample, placement) = place(&mut topl(), &machine, &of);
        let groups = groups(&machine, &sample, &placement);
        assert_eq!(groups.len(), count.min(4), "{count}");
        assert_eq!(groups.iter().map(Vec::len).max(), Some(count.div_ceil(4)), "{count}");
    }
}

#[test]
fn threads_that_take_turns_are_paired_too() {
    let machine = Topology::synthetic("core:2").unwrap();
    let of = [(0, 2.0), (3, 0.3), (0, 1.5), (3, 0.6), (0, 1.0)];
    let (sample, placement) = place(&mut topl(), &machine, &of);
    let groups = groups(&machine, &sample, &placement);
    assert_eq!(groups.len(), 2, "{groups:?}");
    for group in groups {
        let kinds: BTreeSet<usize> = group.iter().map(|&index| of[index].0).collect();
        assert_eq!(kinds.len(), 2, "{group:?}");
    }
}

#[test]
fn pairs_of_one_category_are_parted_first() {
    let machine = Topology::synthetic("core:3 smt:2").unwrap();
    let of = [(3, 0.1), (3, 0.2), (3, 0.3), (0, 2.0)];
    let (sample, placement) = place(&mut topl(), &machine, &of);
    let groups = groups(&machine, &sample, &placement);
    assert!(groups.contains(&vec![2, 3]), "{groups:?}");
}

#[test]
fn pairs_and_changes_are_counted() {
    let machine = Topology::synthetic("core:2 smt:2").unwrap();
    let mut policy = topl();
    assert!(policy.findings().is_empty());
    place(&mut policy, &machine, &[(0, 1.0), (0, 2.0), (0, 3.0), (3, 0.1)]);
    place(&mut policy, &machine, &[(3, 1.0), (0, 2.0), (0, 3.0), (3, 0.1)]);
    let reported: Vec<f64> = policy.findings().iter().map(|finding| finding.value).collect();
    // One of four changed; of four pairs one was of one category, as it had to be.
    assert_eq!(reported, [0.25, 0.25, 0.25]);
}

#[test]
fn pairs_are_paired_on_wider_cores() {
    let machine = Topology::synthetic("core:2 smt:4").unwrap();
    let of = [0, 0, 1, 1, 2, 2, 3, 3].map(|category| (category, 1.0));
    let (sample, placement) = place(&mut topl(), &machine, &of);
    let groups = groups(&machine, &sample, &placement);
    assert_eq!(groups.iter().map(Vec::len).collect::<Vec<_>>(), [4, 4]);
    for group in groups {
        let distinct: BTreeSet<usize> = group.iter().map(|&index| of[index].0).collect();
        assert!(distinct.len() >= 2, "{group:?}");
    }
}

#[test]
fn who_cannot_be_judged_is_left_to_the_os() {
    let machine = Topology::synthetic("core:2 smt:2").unwrap();
    let (mut asleep, unknown) = (runs(&machine, 0), runs(&machine, 1));
    asleep.state = RunState::Sleeping;
    let sample = Sample { threads: vec![asleep, unknown], ..Sample::default() };
    let (did, applied) = (Characterizations::new(), Placement::new());
    let placement = topl().place(&View::new(&machine, &sample, &did, &applied));
    let reported: Vec<(&Target, &str)> =
        placement.values().map(|a| (&a.target, &*a.reason)).collect();
    assert_eq!(reported, [(&Target::Os, "asleep"), (&Target::Os, "not measured yet")]);
    // Measured, but not with these categories.
    let known = measured(0, 1.0);
    let mut view = View::new(&machine, &sample, &did, &applied);
    view.threads[1].measured = Some(&known);
    let placement = Hysched::new(Variant::TopB2L).place(&view);
    let reason = &placement[&sample.threads[1].id].reason;
    assert!(reason.starts_with("not measured: "), "{reason}");
}

#[test]
fn the_deepest_categories_there_are_are_taken() {
    let offering = |signals: &[Signal]| {
        let mut support = full_support();
        support.signals = signals.iter().map(|signal| (*signal, Ability::Full)).collect();
        support.signals.insert(Signal::All3L, Ability::Absent("no counters".into()));
        support
    };
    let topology = Topology::synthetic("core:2 smt:2").unwrap();
    let mut policy = Hysched::new(Variant::All3L);
    let note = policy.offer(&offering(&[Signal::TopL, Signal::TopB2L]), &topology).unwrap();
    assert_eq!(policy.variant, Variant::TopB2L);
    assert!(note.starts_with("All3L is not measured here; TopB2L"), "{note}");
    assert_eq!(policy.offer(&offering(&[Signal::TopL, Signal::TopB2L]), &topology), None);
    // A machine measures only what it was asked for.
    assert_eq!(policy.requirements().alternatives, [Signal::TopL, Signal::TopB2L].into());
    let mut coarse = topl();
    assert_eq!(coarse.offer(&offering(&[Signal::TopL, Signal::TopB2L]), &topology), None);
    assert_eq!(coarse.variant, Variant::TopL, "not deeper than asked for");
    let mut without = Hysched::new(Variant::TopB2M3L);
    assert_eq!(without.offer(&offering(&[]), &topology), None);
    assert!(without.requirements().required.contains(&Signal::TopB2M3L));
}

#[test]
fn a_category_is_kept_within_the_margin() {
    for (margin, expected) in [(0.0, 1), (0.1, 0), (0.05, 0), (0.04, 1)] {
        let policy = topl().with_hysteresis(margin);
        let shares = [("a", 0.40), ("b", 0.4499), ("c", 0.1)];
        assert_eq!(policy.category(Some(0), &shares), expected, "{margin}");
    }
    let even = [("a", 0.5), ("b", 0.5)];
    assert_eq!(topl().category(Some(1), &even), 1, "a tie is no change");
    assert_eq!(topl().category(None, &even), 0);
}

/// Share of pairs of different categories when half of 16 threads are of one
/// and half of another; `seen` shows what the policy believes.
fn mixed(seed: u64, seen: impl Fn(usize) -> usize) -> f64 {
    let machine = Topology::synthetic("core:8 smt:2").unwrap();
    let ipc = |n: usize| ((n as u64).wrapping_mul(seed | 1) % 97) as f64;
    let of: Vec<(usize, f64)> = (0..16).map(|n| (seen(n) * 3, ipc(n))).collect();
    let (sample, placement) = place(&mut topl(), &machine, &of);
    let groups = groups(&machine, &sample, &placement);
    let different = groups.iter().filter(|g| g.len() == 2 && g[0] % 2 != g[1] % 2).count();
    different as f64 / groups.len() as f64
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    #[test]
    fn shuffled_categories_make_random_pairs(seed: u64) {
        use rand::SeedableRng;
        use rand::seq::SliceRandom;
        prop_assert_eq!(mixed(seed, |n| n % 2), 1.0);
        let mut rng = rand_pcg::Pcg64Mcg::seed_from_u64(seed);
        let rounds = 200;
        let sum: f64 = (0..rounds).map(|round| {
            let mut labels: Vec<usize> = (0..16).map(|n| n % 2).collect();
            labels.shuffle(&mut rng);
            mixed(seed.wrapping_add(round), |n| labels[n])
        }).sum();
        // By chance 8 of the 15 others are of the other category.
        let mean = sum / rounds as f64;
        prop_assert!((mean - 8.0 / 15.0).abs() < 0.1, "{}", mean);
    }
}
