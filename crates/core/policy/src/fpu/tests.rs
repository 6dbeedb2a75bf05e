use proptest::prelude::*;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64Mcg;
use symbiont_counters::catalogue::{Unit, Value};
use symbiont_counters::{Characterization, Characterizations, Measurements};
use symbiont_machine::test_support::thread;
use symbiont_machine::{Sample, Target};
use symbiont_topology::Topology;

use super::*;

/// A thread that runs for this share of the period and uses the FPUs so much.
#[derive(Debug, Clone, Copy)]
struct Load {
    running: f64,
    usage: f64,
}

fn hungry(usage: f64) -> Load {
    Load { running: 1.0, usage }
}

/// With so many top threads.
fn all_threads(count: usize) -> Fpu {
    Fpu::new(&Settings::default().with(&Fpu::TOP, &Some(count)).unwrap())
}

/// Periods of a policy on a machine.
struct Bench {
    machine: Topology,
    policy: Fpu,
    placement: Placement,
    /// Floating-point units of a core, where they are known.
    units: Option<u32>,
}

impl Bench {
    fn new(machine: &str, policy: Fpu) -> Self {
        let machine = Topology::synthetic(machine).unwrap();
        Self { machine, policy, placement: Placement::new(), units: None }
    }

    /// The hardware thread of each thread, by number; none: left to the OS.
    fn period(&mut self, loads: &[Load]) -> Vec<Option<PuId>> {
        let everywhere = self.machine.cpus();
        self.period_within(loads, |_| everywhere.clone())
    }

    fn period_within(
        &mut self,
        loads: &[Load],
        allowed: impl Fn(u32) -> CpuSet,
    ) -> Vec<Option<PuId>> {
        let (mut did, mut known) = (Characterizations::new(), Measurements::new());
        let mut threads = Vec::new();
        for (number, load) in (0u32..).zip(loads) {
            let mut t = thread(0, number, &allowed(number));
            t.state = RunState::Runnable;
            let over = Duration::from_secs(1);
            let (ready, running) = (1.0, load.running);
            did.insert(
                t.id,
                Characterization { over, ready, running, switches: 1, migrated: None },
            );
            let value = |value, unit| Value { value, unit };
            let measured = [("fpu_usage", value(load.usage, Unit::Fraction))];
            let measured = Measured::of(measured);
            let units = self.units;
            let with = |measured: Measured| match units {
                Some(units) => measured.with_floating_point_units(units),
                None => measured,
            };
            known.insert(t.id, with(measured));
            threads.push(t);
        }
        let sample = Sample { threads, ..Sample::default() };
        let view = View::new(&self.machine, &sample, &did, &self.placement).measured(&known);
        let placement = self.policy.place(&view);
        self.placement = placement;
        let cpu = |assignment: &Assignment| match &assignment.target {
            Target::Cpus(cpus) => Some(cpus.only().unwrap()),
            Target::Os => None,
        };
        self.placement.values().map(cpu).collect()
    }

    /// Top threads of each core.
    fn on_cores(&self, cpus: &[Option<PuId>]) -> Vec<usize> {
        let count = |core: &symbiont_topology::Core| {
            cpus.iter().flatten().filter(|cpu| core.cpus.contains(**cpu)).count()
        };
        self.machine.cores().iter().map(count).collect()
    }
}

#[test]
fn the_papers_optimal_allocations() {
    // Fig. 1b: four FPU-hungry threads on four modules, co-running with four integer ones.
    let mut bulldozer = Bench::new("core:4 smt:2", Fpu::default());
    let loads = [0.01, 0.9, 0.02, 0.8, 0.85, 0.0, 0.01, 0.95].map(hungry);
    let cpus = bulldozer.period(&loads);
    let hungry_ones = [1, 3, 4, 7].map(|number| cpus[number]);
    assert_eq!(bulldozer.on_cores(&hungry_ones), [1, 1, 1, 1]);
    // Section 5.3: they have the first hardware threads of the modules, the following ones the second.
    let first: BTreeSet<_> = bulldozer.machine.cores().iter().map(|it| it.cpus.first()).collect();
    assert_eq!(BTreeSet::from(hungry_ones), first);
    assert!(
        [0, 2, 6].iter().all(|number| cpus[*number].is_some_and(|cpu| !first.contains(&Some(cpu))))
    );
    assert_eq!(cpus[5], None);
    // Fig. 2b: four on a POWER7 of SMT4, each on a core of its own.
    let mut power7 = Bench::new("core:8 smt:4", Fpu::default());
    let cpus = power7.period(&[0.07, 0.07, 0.06, 0.065].map(hungry));
    assert_eq!(power7.on_cores(&cpus).iter().max(), Some(&1));
    assert_eq!(cpus.iter().flatten().count(), 4);
}

#[test]
fn the_next_top_threads_go_to_the_second_hardware_threads() {
    let mut bench = Bench::new("core:2 smt:4", Fpu::default());
    let cpus = bench.period(&[0.9, 0.8, 0.7, 0.6, 0.5].map(hungry));
    assert_eq!(bench.on_cores(&cpus), [3, 2]);
    // The hungriest two are on different cores, and so are the next two.
    let core = |n: usize| bench.machine.core_of(cpus[n].unwrap()).unwrap().id;
    assert!(core(0) != core(1) && core(2) != core(3), "{cpus:?}");
}

#[test]
fn one_thread_is_bound_for_each_unit_of_a_core() {
    let bound = |machine: &str, units: Option<u32>, usage: &[f64]| {
        let mut bench = Bench { units, ..Bench::new(machine, Fpu::default()) };
        let loads: Vec<Load> = usage.iter().copied().map(hungry).collect();
        let cpus = bench.period(&loads);
        (cpus.iter().flatten().count(), bench.on_cores(&cpus))
    };
    // SciMark on POWER7 (Table 2): four units in a core of SMT4, so none of its kernels is left to the OS.
    let scimark = [0.43, 0.18, 0.09, 0.11, 0.61];
    assert_eq!(bound("core:2 smt:4", Some(4), &scimark), (5, vec![3, 2]));
    // Two units in a module of Bulldozer; of a core of eight hardware threads, with the units and without.
    assert_eq!(bound("core:4 smt:2", Some(2), &[0.9; 12]), (8, vec![2; 4]));
    assert_eq!(bound("core:2 smt:8", Some(4), &[0.9; 20]), (8, vec![4, 4]));
    assert_eq!(bound("core:2 smt:8", None, &[0.9; 20]), (16, vec![8, 8]));
    assert_eq!(bound("core:2", Some(4), &[0.9; 20]), (2, vec![1, 1]));
    // Cores that the threads may not use count for nothing.
    let mut bench = Bench { units: Some(2), ..Bench::new("core:2 smt:4", Fpu::default()) };
    let first = bench.machine.cores()[0].cpus.clone();
    let cpus = bench.period_within(&[hungry(0.9); 6], |_| first.clone());
    assert_eq!(bench.on_cores(&cpus), [2, 0]);
}

#[test]
fn only_active_threads_are_ranked_and_both_numbers_can_be_set() {
    let rare = Load { running: 0.01, usage: 1.0 };
    let loads = [rare, hungry(0.5), hungry(0.4), hungry(0.3), hungry(0.2)];
    let mut bench = Bench::new("core:2 smt:2", Fpu::default());
    // The thread that hardly ran is not active.
    assert_eq!(bench.period(&loads).iter().position(Option::is_some), Some(1));
    let set = |parameter: &Parameter<Option<usize>>, value: usize| {
        Settings::default().with(parameter, &Some(value)).unwrap()
    };
    let top = |settings: &Settings| {
        Bench::new("core:2 smt:2", Fpu::new(settings)).period(&loads).iter().flatten().count()
    };
    assert_eq!(top(&Settings::default()), 4);
    // 0.5, 0.4 and 0.3 are at least half of 0.5.
    assert_eq!(top(&Settings::default().with(&Fpu::LEAST, &0.5).unwrap()), 3);
    assert_eq!(top(&set(&Fpu::TOP, 2)), 2);
    assert_eq!(top(&set(&Fpu::TOP, 4)), 4);
    assert_eq!(top(&set(&Fpu::ACTIVE, 1)), 1);
}

#[test]
fn threads_without_floating_point_are_left_to_the_os() {
    let mut bench = Bench::new("core:2 smt:2", Fpu::default());
    assert_eq!(bench.period(&[hungry(0.0); 4]), [None; 4]);
}

#[test]
fn a_thread_that_stays_in_its_tier_stays_where_it_was() {
    let mut bench = Bench::new("core:4 smt:2", Fpu::default());
    let first = bench.period(&[0.9, 0.8, 0.7, 0.6].map(hungry));
    assert_eq!(bench.period(&[0.6, 0.7, 0.8, 0.9].map(hungry)), first);
    // The hungriest one enters: the least hungry one leaves the first hardware thread of its core to it.
    let five = bench.period(&[0.6, 0.7, 0.8, 0.9, 0.95].map(hungry));
    assert_eq!((&five[1..4], five[4]), (&first[1..], first[0]));
    assert_eq!(five[0], bench.machine.cores()[0].cpus.iter().nth(1));
}

#[test]
fn each_tier_is_spread_whatever_the_ranks_were() {
    // Threads on all hardware threads of a machine, with other usages in each period.
    let mut random = Pcg64Mcg::seed_from_u64(5);
    for (machine, cores, threads) in
        [("core:4 smt:2", 4, 8), ("core:3 smt:4", 3, 12), ("core:8", 8, 8)]
    {
        let mut bench = Bench::new(machine, all_threads(threads));
        let (mut before, mut moves) = (Vec::<(usize, PuId)>::new(), 0);
        for _ in 0..50 {
            let mut ranks: Vec<usize> = (0..threads).collect();
            ranks.shuffle(&mut random);
            let usage = |rank: &usize| hungry(1.0 - *rank as f64 / threads as f64 / 2.0);
            let cpus = bench.period(&ranks.iter().map(usage).collect::<Vec<_>>());
            let now: Vec<(usize, PuId)> =
                ranks.iter().zip(&cpus).map(|(rank, cpu)| (rank / cores, cpu.unwrap())).collect();
            // On each core the thread of tier n has hardware thread n.
            for (number, core) in bench.machine.cores().iter().enumerate() {
                for (tier, cpu) in core.cpus.iter().enumerate() {
                    let there = now.iter().filter(|place| **place == (tier, cpu)).count();
                    assert_eq!(there, 1, "{machine}, core {number}, tier {tier}: {now:?}");
                }
            }
            for (was, is) in before.iter().zip(&now) {
                assert!(was.0 != is.0 || was == is, "{machine}: {was:?} became {is:?}");
                moves += usize::from(was.1 != is.1);
            }
            before = now;
        }
        assert_eq!(moves > 0, machine.contains("smt"), "{machine}");
    }
}

#[test]
fn a_margin_keeps_ranks_that_differ_by_noise() {
    use rand::Rng;
    let moves = |margin: f64| {
        let mut random = Pcg64Mcg::seed_from_u64(1);
        let policy = Fpu::new(&Settings::default().with(&Fpu::MARGIN, &margin).unwrap());
        let mut bench = Bench::new("core:4 smt:2", policy);
        let mut period = |usages: [f64; 8]| {
            let noisy = usages.map(|usage| hungry(usage * random.random_range(0.97..1.03)));
            bench.period(&noisy)
        };
        let (mut before, mut moves) = (period([0.8; 8]), 0);
        for _ in 0..30 {
            let now = period([0.8; 8]);
            moves += now.iter().zip(&before).filter(|(now, was)| now != was).count();
            before = now;
        }
        // What is more than noise is seen at once.
        let rank = |n: usize| if n % 2 == 0 { 0.8 } else { 0.4 };
        let now = period(std::array::from_fn(rank));
        let firsts: Vec<PuId> = now.iter().step_by(2).flatten().copied().collect();
        let firsts = bench
            .machine
            .cores()
            .iter()
            .map(|core| firsts.iter().filter(|cpu| core.cpus.contains(**cpu)).count());
        assert!(firsts.collect::<Vec<_>>().iter().all(|count| *count == 1), "{now:?}");
        moves
    };
    assert!(moves(0.0) > 30, "{}", moves(0.0));
    assert_eq!(moves(0.1), 0);
}

#[test]
fn a_thread_makes_room_for_one_that_may_run_on_few_cpus() {
    let machine = Topology::synthetic("core:2 smt:2").unwrap();
    let core = |n: usize| machine.cores()[n].cpus.clone();
    let allowed = |number: u32| match number {
        0 => machine.cpus(),
        1 => core(0),
        // The first hardware thread of the second core, where the hungriest thread would be.
        _ => CpuSet::from(core(1).first().unwrap()),
    };
    let mut bench = Bench::new("core:2 smt:2", all_threads(3));
    let cpus = bench.period_within(&[0.9, 0.8, 0.7].map(hungry), allowed);
    let expected = [core(1).iter().nth(1), core(0).first(), core(1).first()];
    assert_eq!(cpus, expected);
    assert_eq!(bench.period_within(&[0.9, 0.8, 0.7].map(hungry), allowed), expected);
}

#[test]
fn cores_have_as_many_tiers_as_hardware_threads() {
    // The first core has two hardware threads, the others have one.
    let mut bench = Bench::new("core:3 smt:2", all_threads(5));
    let cores: Vec<CpuSet> = bench.machine.cores().iter().map(|core| core.cpus.clone()).collect();
    let some = |cpus: &CpuSet| CpuSet::from(cpus.first().unwrap());
    let allowed = cores[0].union(&some(&cores[1])).union(&some(&cores[2]));
    let loads = [0.9, 0.8, 0.7, 0.6, 0.5].map(hungry);
    let cpus = bench.period_within(&loads, |_| allowed.clone());
    let first = |n: usize| cores[n].first();
    // The fifth one shares a hardware thread.
    assert_eq!(cpus, [first(0), first(1), first(2), cores[0].iter().nth(1), first(0)]);
    assert_eq!(bench.period_within(&loads, |_| allowed.clone()), cpus);
}

#[test]
fn a_thread_that_leaves_the_top_is_released() {
    let mut bench = Bench::new("core:2 smt:2", Fpu::default());
    let cpus = bench.period(&[0.9, 0.8].map(hungry));
    assert!(cpus.iter().all(Option::is_some));
    assert_eq!(bench.period(&[0.9, 0.0].map(hungry)), [cpus[0], None]);
}

#[test]
fn a_thread_that_comes_again_prefers_its_history() {
    let mut bench = Bench::new("core:4 smt:2", Fpu::default());
    let all = bench.period(&[0.9, 0.8, 0.7, 0.6].map(hungry));
    bench.period(&[0.0, 0.0, 0.0, 0.6].map(hungry));
    let again = bench.period(&[0.0, 0.8, 0.0, 0.6].map(hungry));
    assert_eq!([again[1], again[3]], [all[1], all[3]]);
}

#[test]
fn limits_are_kept() {
    let mut bench = Bench::new("core:2 smt:2", all_threads(3));
    let first = bench.machine.cores()[0].cpus.clone();
    let cpus = bench.period_within(&[0.9, 0.8, 0.7].map(hungry), |_| first.clone());
    assert_eq!(bench.on_cores(&cpus), [3, 0]);
}

#[test]
fn shuffled_usage_spreads_by_chance() {
    // Eight hungry and eight integer threads on eight cores of SMT2.
    let usage: Vec<f64> = (0..16).map(|n| if n % 2 == 0 { 0.9 } else { 0.01 }).collect();
    let served = |bench: &mut Bench, seen: &[f64]| {
        let loads: Vec<Load> = seen.iter().map(|usage| hungry(*usage)).collect();
        let cpus = bench.period(&loads);
        // Cores of those that really are hungry.
        let hungry = cpus.iter().zip(&usage).filter(|(_, usage)| **usage > 0.5);
        let cpus: Vec<Option<PuId>> = hungry.map(|(cpu, _)| *cpu).collect();
        bench.on_cores(&cpus).iter().filter(|count| **count > 0).count()
    };
    let mut bench = Bench::new("core:8 smt:2", Fpu::default());
    assert_eq!(served(&mut bench, &usage), 8);
    let mut random = Pcg64Mcg::seed_from_u64(3);
    let (mut shuffled, rounds) = (usage.clone(), 400);
    let right: usize = (0..rounds)
        .map(|_| {
            shuffled.shuffle(&mut random);
            served(&mut bench, &shuffled)
        })
        .sum();
    // By chance both threads of a core are integer ones with a probability of 8/16 * 7/15.
    let mean = right as f64 / f64::from(rounds);
    assert!((mean - 8.0 * (1.0 - 7.0 / 30.0)).abs() < 0.3, "{mean}");
}

proptest! {
    #[test]
    fn top_threads_are_spread_evenly(
        machine in prop::sample::select(&["core:4 smt:2", "core:3 smt:4", "core:5", "core:2 smt:8"][..]),
        periods in prop::collection::vec(prop::collection::vec(0.0..1.0f64, 0..20), 1..6),
    ) {
        let mut bench = Bench::new(machine, Fpu::default());
        for usage in periods {
            let loads: Vec<Load> = usage.into_iter().map(hungry).collect();
            let cpus = bench.period(&loads);
            let on_cores = bench.on_cores(&cpus);
            let (least, most) = (on_cores.iter().min(), on_cores.iter().max());
            prop_assert!(most.unwrap() - least.unwrap() <= 1, "{on_cores:?}");
            // No hardware thread has two.
            let bound: Vec<PuId> = cpus.into_iter().flatten().collect();
            let distinct: BTreeSet<PuId> = bound.iter().copied().collect();
            prop_assert_eq!(distinct.len(), bound.len());
        }
    }

    #[test]
    fn no_hardware_thread_has_two_without_need(
        machine in prop::sample::select(&["core:2 smt:2", "core:3 smt:2", "core:2 smt:4"][..]),
        periods in prop::collection::vec(prop::collection::vec((0.1..1.0f64, any::<u8>()), 0..8), 1..4),
    ) {
        let mut bench = Bench::new(machine, all_threads(8));
        let everywhere = bench.machine.cpus();
        for threads in periods {
            let allowed = |number: u32| {
                let mask = threads[number as usize].1;
                let cpus = everywhere.iter().enumerate().filter(|(n, _)| mask >> n & 1 == 1);
                Some(cpus.map(|(_, cpu)| cpu).collect()).filter(|cpus: &CpuSet| !cpus.is_empty())
            };
            let allowed = |number: u32| allowed(number).unwrap_or_else(|| everywhere.clone());
            let loads: Vec<Load> = threads.iter().map(|(usage, _)| hungry(*usage)).collect();
            let cpus = bench.period_within(&loads, allowed);
            for (number, cpu) in (0..).zip(&cpus) {
                // Each one is somewhere, and where it shares, its core has nothing free for it.
                let cpu = cpu.unwrap();
                prop_assert!(allowed(number).contains(cpu));
                let shared = cpus.iter().flatten().filter(|other| **other == cpu).count() > 1;
                let core = &bench.machine.core_of(cpu).unwrap().cpus;
                let own = core.intersection(&allowed(number));
                let free = own.iter().any(|other| !cpus.contains(&Some(other)));
                prop_assert!(!shared || !free, "{cpus:?}");
            }
            prop_assert_eq!(bench.period_within(&loads, allowed), cpus);
        }
    }
}
