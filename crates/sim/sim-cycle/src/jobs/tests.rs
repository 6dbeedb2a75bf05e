use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use symbiont_profile::OpClass;
use symbiont_profile::vectors::caches::Caches;
use symbiont_profile::vectors::{Counts, Geometry, Hierarchy};
use symbiont_topology::CoreId;

use super::*;
use crate::CoreSlot;
use crate::op::Op;

/// The processor of Settle et al.: two hardware threads.
fn machine() -> Description {
    Description::named("xsim").unwrap()
}

fn contexts() -> Vec<Context> {
    vec![Context { core: CoreId(0), mode: 2, home: 0 }; 2]
}

fn quiet() -> CycleOptions {
    CycleOptions { prefetching: false, ..CycleOptions::default() }
}

/// Loads and stores of these lines, each after the one before, again and again. A job's lines are its own.
fn chain(job: u64, lines: Vec<(u64, bool)>) -> Stream<'static> {
    let op = move |(line, writes): (u64, bool)| {
        let class = if writes { OpClass::Store } else { OpClass::Load };
        Op { sources: [1, 0], pc: job << 40, ..Op::memory(class, (job << 40) + line * 64) }
    };
    Box::new(lines.into_iter().cycle().map(op))
}

fn loads(job: u64, lines: impl Iterator<Item = u64>) -> Stream<'static> {
    chain(job, lines.map(|line| (line, false)).collect())
}

/// Shape of a described cache.
fn shape(cache: &symbiont_sim_fast::description::Cache) -> Geometry {
    let sets = (cache.lines() / u64::from(cache.ways)) as u32;
    Geometry { sets, ways: cache.ways, line: cache.line }
}

/// Sums of uses and misses over so many groups.
fn by_super_set(counts: &Counts, count: usize) -> Vec<(u32, u32)> {
    let each = counts.uses.len() / count;
    let sum = |counts: &[u32]| counts.iter().sum::<u32>();
    let groups = counts.uses.chunks(each).zip(counts.misses.chunks(each));
    groups.map(|(uses, misses)| (sum(uses), sum(misses))).collect()
}

fn of(sets: &[SetCounts]) -> Vec<(u32, u32)> {
    sets.iter().map(|set| (set.accesses, set.misses)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(30))]
    #[test]
    fn super_sets_count_what_an_independent_model_counts(
        lines in prop::collection::vec((0_u64..40_000, any::<bool>()), 200..900),
    ) {
        let machine = machine();
        let core_type = &machine.core_types[0];
        let count = lines.len();
        // The stream ends, so that what was executed is known.
        let once: Stream<'static> = Box::new(chain(1, lines.clone()).take(count));
        let mut jobs = Jobs::new(&machine, &contexts(), vec![once], &quiet()).unwrap();
        jobs.assign(&[Some(0)]);
        jobs.run(2e6);
        prop_assert_eq!(jobs.counts(0).uops, count as u64);
        // The simulation that vectors files are made by shares no code with this one.
        let (l1d, l1i, l2) = (shape(&core_type.l1d), shape(&core_type.l1i), shape(&core_type.l2));
        let mut caches = Caches::new(&Hierarchy { l1d, l1i, l2 });
        // All instructions lie in one line.
        caches.code(1 << 40);
        lines.iter().for_each(|(line, _)| caches.data((1 << 40) + line * 64));
        let [l1d, l1i, l2] = caches.take();
        for super_sets in [128, 32, 8] {
            for (kind, model) in [(Kind::L1d, &l1d), (Kind::L1i, &l1i), (Kind::L2, &l2)] {
                let counted = of(&jobs.super_sets(0, kind, (super_sets, SuperSetIndexing::Contiguous)));
                prop_assert_eq!(counted, by_super_set(model, super_sets), "{:?}", kind);
            }
        }
    }

    #[test]
    fn exchanges_lose_and_repeat_nothing(
        turns in prop::collection::vec((0_usize..4, 0_usize..4, 10_u64..3000), 1..40),
    ) {
        // Each job notes what was fetched of it.
        let fetched: Arc<Mutex<Vec<Vec<u64>>>> = Arc::new(Mutex::new(vec![Vec::new(); 4]));
        let jobs = (0..4_u64).map(|job| {
            let fetched = Arc::clone(&fetched);
            let noted = (0_u64..).map(move |number| {
                fetched.lock().unwrap()[job as usize].push(number);
                let class = [OpClass::Load, OpClass::Store, OpClass::Integer][number as usize % 3];
                let address = (job << 40) + (number * 7919 % 5000) * 64;
                Op { pc: (job << 40) + number % 100 * 64, ..Op::memory(class, address) }
            });
            Box::new(noted) as Stream<'static>
        });
        let mut machine = Jobs::new(&machine(), &contexts(), jobs.collect(), &quiet()).unwrap();
        for (one, other, ns) in turns {
            machine.assign(&[Some(one), Some(other)]);
            machine.run(ns as f64);
        }
        // All that was fetched is executed, but for the one operation that comes next.
        machine.assign(&[]);
        for (job, fetched) in fetched.lock().unwrap().iter().enumerate() {
            let retired = machine.counts(job).uops;
            prop_assert_eq!(fetched.len() as u64, retired + 1, "job {}", job);
            prop_assert!(fetched.iter().zip(0..).all(|(number, expected)| *number == expected));
        }
    }
}

#[test]
fn without_an_exchange_jobs_run_as_on_a_chip() {
    let streams = || vec![loads(1, 0..3000), loads(2, 0..9000)];
    let mut jobs = Jobs::new(&machine(), &contexts(), streams(), &CycleOptions::default()).unwrap();
    jobs.assign(&[Some(0), Some(1)]);
    let place = |stream| CoreSlot { core: CoreId(0), mode: 2, home: 0, stream };
    let slots = streams().into_iter().map(place).collect();
    let mut chip = Chip::new(&machine(), slots, &CycleOptions::default()).unwrap();
    for slice in 1..50 {
        jobs.run(5000.0);
        jobs.assign(&[Some(0), Some(1)]);
        chip.run_until(f64::from(slice) * 5000.0);
        for job in 0..2 {
            assert_eq!(jobs.counts(job), chip.counts(job), "{slice}");
        }
    }
}

/// Lets jobs run one after the other on one hardware thread.
fn in_turn(options: &CycleOptions, jobs: Vec<Stream<'static>>, turns: &[usize]) -> Jobs<'static> {
    let mut jobs = Jobs::new(&machine(), &contexts(), jobs, options).unwrap();
    for job in turns {
        jobs.assign(&[Some(*job)]);
        jobs.run(400_000.0);
    }
    jobs
}

fn sum(sets: &[SetCounts]) -> SetCounts {
    super_sets(sets, 1, SuperSetIndexing::Contiguous)[0]
}

#[test]
fn a_job_finds_its_lines_again() {
    // Both fit: what each missed in its first turn it never misses again.
    let both = || vec![loads(1, 0..100), loads(2, 100..200)];
    let jobs = in_turn(&quiet(), both(), &[0, 1, 0, 1]);
    for job in 0..2 {
        let l1 = sum(&jobs.super_sets(job, Kind::L1d, (32, SuperSetIndexing::Contiguous)));
        assert_eq!((l1.misses, l1.own, l1.inter_thread), (100, 0, 0), "{l1:?}");
        assert!(l1.accesses > 10_000);
    }
}

#[test]
fn a_job_that_follows_another_is_another_one() {
    // Four ways: each of them fills the first level of all sets, so that the next displaces all of it.
    let lines = 32 * 1024 / 64;
    let both = vec![loads(1, 0..lines), loads(2, 0..lines)];
    let jobs = in_turn(&quiet(), both, &[0, 1, 0, 1]);
    for job in 0..2 {
        let l1 = sum(&jobs.super_sets(job, Kind::L1d, (32, SuperSetIndexing::Contiguous)));
        assert_eq!((l1.misses, l1.own), (2 * lines as u32, 0), "{l1:?}");
        assert_eq!(l1.inter_thread, lines as u32, "{l1:?}");
    }
}

#[test]
fn jobs_with_caches_of_their_own_displace_nothing_of_others() {
    let lines = 600 * 1024 / 64;
    let run = |private_caches| {
        let options = CycleOptions { private_caches, ..quiet() };
        // In another order, else each would displace only lines of its own, in step with the other.
        let mixed = (0..lines).map(|line| line * 7919 % lines);
        let both = vec![loads(1, 0..lines), loads(2, mixed)];
        let mut jobs = Jobs::new(&machine(), &contexts(), both, &options).unwrap();
        jobs.assign(&[Some(0), Some(1)]);
        jobs.run(20e6);
        let of = |job| {
            [Kind::L1d, Kind::L2].map(|kind| {
                sum(&jobs.super_sets(job, kind, (32, SuperSetIndexing::Contiguous))).inter_thread
            })
        };
        [of(0), of(1)]
    };
    assert_eq!(run(true), [[0; 2]; 2]);
    assert!(run(false).iter().flatten().all(|lost| *lost > 1000));
}

#[test]
fn impossible_wishes_are_left_out() {
    let mut jobs =
        Jobs::new(&machine(), &contexts(), vec![loads(1, 0..10), loads(2, 0..10)], &quiet())
            .unwrap();
    jobs.assign(&[Some(1), Some(1), Some(0)]);
    assert_eq!(jobs.running(), [Some(1), None]);
    jobs.assign(&[Some(7), Some(1)]);
    assert_eq!(jobs.running(), [None, Some(1)]);
    assert!(Jobs::new(&machine(), &[], vec![loads(1, 0..10)], &quiet()).is_err());
    assert!(Jobs::new(&machine(), &contexts(), Vec::new(), &quiet()).is_err());
}

#[test]
fn super_sets_are_neighbours_or_share_low_order_bits() {
    let set = |accesses| SetCounts { accesses, ..SetCounts::default() };
    let sets: Vec<SetCounts> = (0..8).map(set).collect();
    let both = [SuperSetIndexing::Contiguous, SuperSetIndexing::LowOrderBits];
    let [contiguous, low] = both.map(|reading| of(&super_sets(&sets, 4, reading)));
    assert_eq!(contiguous, [(1, 0), (5, 0), (9, 0), (13, 0)]);
    assert_eq!(low, [(4, 0), (6, 0), (8, 0), (10, 0)]);
    for reading in both {
        assert_eq!(super_sets(&sets, 100, reading).len(), 8);
        assert!(super_sets(&[], 4, reading).is_empty());
    }
}
