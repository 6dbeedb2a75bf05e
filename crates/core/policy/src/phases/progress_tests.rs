//! The policy on a machine that shares CPU time by priority, quantum by
//! quantum: which programs progress, and which would not without it.
//!
//! The machine is a caricature of Linux: each ready thread goes to the allowed
//! hardware thread with the least weight on it, and each hardware thread is
//! shared by weight, where a priority level is worth a factor of 1.25.

use std::collections::BTreeMap;

use proptest::prelude::*;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64Mcg;
use symbiont_counters::{Characterization, Characterizations};
use symbiont_machine::test_support::thread;
use symbiont_machine::{RunState, Sample, ThreadSample};
use symbiont_topology::{PuId, Topology};

use super::*;
use crate::Stay;

pub(super) const QUANTUM: Duration = Duration::from_millis(20);

#[derive(PartialEq)]
enum Shown {
    Truth,
    Shuffled,
}

/// A machine and programs whose threads are ready all the time or never.
pub(super) struct Fluid {
    pub(super) machine: Topology,
    pub(super) threads: Vec<(ThreadSample, bool)>,
    random: Pcg64Mcg,
    /// Is the policy shown each thread's program, or another one's?
    shown: Shown,
    applied: Placement,
    known: Characterizations,
    /// Of each program, CPU time in quanta so far.
    got: BTreeMap<u32, f64>,
}

impl Fluid {
    /// `programs`: of each, ready and sleeping threads.
    pub(super) fn new(machine: &str, programs: &[(u32, u32)]) -> Self {
        let machine = Topology::synthetic(machine).unwrap();
        let mut threads = Vec::new();
        for (program, &(ready, sleeping)) in (0u32..).zip(programs) {
            for number in 0..ready + sleeping {
                let new = thread(program, 100 * program + number, &machine.cpus());
                threads.push((new, number < ready));
            }
        }
        Self {
            machine,
            threads,
            random: Pcg64Mcg::seed_from_u64(7),
            shown: Shown::Truth,
            applied: Placement::new(),
            known: Characterizations::new(),
            got: BTreeMap::new(),
        }
    }

    /// One quantum under a policy.
    pub(super) fn quantum(&mut self, policy: &mut dyn Policy) -> Placement {
        let mut threads: Vec<_> = self.threads.iter().map(|(t, _)| t.clone()).collect();
        if self.shown == Shown::Shuffled {
            let mut programs: Vec<_> = threads.iter().map(|t| t.program).collect();
            programs.shuffle(&mut self.random);
            threads.iter_mut().zip(programs).for_each(|(t, program)| t.program = program);
        }
        let sample = Sample { threads, ..Sample::default() };
        let view = View::new(&self.machine, &sample, &self.known, &self.applied);
        let placement = policy.place(&view);
        self.run(&placement);
        self.applied = placement.clone();
        placement
    }

    fn run(&mut self, placement: &Placement) {
        let weight = |a: &Assignment| match a.priority {
            Priority::Boosted(levels) => 1024.0 * 1.25_f64.powi(levels.into()),
            _ => 1024.0,
        };
        let online = self.machine.cpus();
        let mut ready: Vec<usize> =
            (0..self.threads.len()).filter(|&i| self.threads[i].1).collect();
        ready.shuffle(&mut self.random);
        let mut on: BTreeMap<_, Vec<usize>> = online.iter().map(|pu| (pu, Vec::new())).collect();
        for &i in &ready {
            let wanted = &placement[&self.threads[i].0.id];
            let allowed = match &wanted.target {
                Target::Os => &online,
                Target::Cpus(cpus) => cpus,
            };
            let total = |pu: PuId| -> f64 {
                on[&pu].iter().map(|&j| weight(&placement[&self.threads[j].0.id])).sum()
            };
            let best = allowed.iter().min_by(|a, b| total(*a).total_cmp(&total(*b))).unwrap();
            on.get_mut(&best).unwrap().push(i);
        }
        self.known.clear();
        for (t, ready) in &self.threads {
            self.known.insert(t.id, did(f64::from(u8::from(*ready)), 0.0));
        }
        for (pu, there) in on {
            let each: Vec<f64> =
                there.iter().map(|i| weight(&placement[&self.threads[*i].0.id])).collect();
            let total: f64 = each.iter().sum();
            for (i, own) in there.iter().zip(each) {
                let share = own / total;
                let t = &mut self.threads[*i].0;
                t.cpu = Some(pu);
                t.state = RunState::Runnable;
                self.known.insert(t.id, did(1.0, share));
                *self.got.entry(t.program.0).or_default() += share;
            }
        }
    }
}

fn did(ready: f64, running: f64) -> Characterization {
    Characterization { over: QUANTUM, ready, running, switches: 1, migrated: Some(false) }
}

/// Longest time, in quanta, that each program had to wait for the boost.
fn longest_wait(timeout: Duration, programs: u32, quanta: u32) -> Vec<u32> {
    let mut policy = Phases::of(None, timeout, true);
    let mut fluid = Fluid::new("core:4", &vec![(4, 0); programs as usize]);
    let (mut waiting, mut longest) = (vec![0; programs as usize], vec![0; programs as usize]);
    for quantum in 0..quanta {
        let placement = fluid.quantum(&mut policy);
        for program in 0..programs {
            let of_it = |id: &ThreadId| id.process == 1000 + program;
            let boosted = placement.iter().any(|(id, a)| of_it(id) && a.priority == BOOST);
            let waited = &mut waiting[program as usize];
            *waited = if boosted || quantum == 0 { 0 } else { *waited + 1 };
            longest[program as usize] = longest[program as usize].max(*waited);
        }
    }
    longest
}

#[test]
fn each_of_many_parallel_programs_gets_its_turn() {
    // A minute with turns of 200 ms.
    for programs in 2..=5 {
        for longest in longest_wait(10 * QUANTUM, programs, 3000) {
            assert!(longest <= 10 * (programs - 1), "{programs}: {longest} quanta");
        }
    }
}

#[test]
fn without_the_timeout_the_others_would_wait_for_ever() {
    let longest = longest_wait(Duration::MAX, 3, 3000);
    assert_eq!(longest, [0, 2999, 2999]);
}

/// CPU time of each program in a window of so many quanta.
fn windows(machine: &str, programs: &[(u32, u32)], window: u32) -> Vec<Vec<f64>> {
    let mut policy = Phases::new(None);
    let mut fluid = Fluid::new(machine, programs);
    (0..20)
        .map(|_| {
            fluid.got.clear();
            for _ in 0..window {
                fluid.quantum(&mut policy);
            }
            fluid.got.values().map(|got| got / f64::from(window)).collect()
        })
        .collect()
}

#[test]
fn others_progress_with_an_endless_serial_program() {
    // Two seniority timeouts long.
    for got in windows("core:4", &[(1, 3), (4, 0), (4, 0)], 100) {
        assert!(got[0] > 0.9, "the serial one has a core: {got:?}");
        assert!(got[1] > 0.9 && got[2] > 0.9, "{got:?}");
    }
    // On one hardware thread there is only the boost.
    for got in windows("core:1", &[(1, 0), (2, 0)], 100) {
        assert!(got[0] > 0.5 && got[1] > 0.1, "{got:?}");
    }
}

#[test]
fn the_senior_progresses_faster_and_turns_even_out() {
    let mut policy = Phases::new(None);
    let mut fluid = Fluid::new("core:4", &[(4, 0), (4, 0)]);
    let turn = |fluid: &mut Fluid, policy: &mut Phases| {
        fluid.got.clear();
        for _ in 0..50 {
            fluid.quantum(policy);
        }
        (fluid.got[&0], fluid.got[&1])
    };
    // Nothing is known in the first quantum.
    fluid.quantum(&mut policy);
    let (first, second) = (turn(&mut fluid, &mut policy), turn(&mut fluid, &mut policy));
    assert!(first.0 > 4.0 * first.1 && second.1 > 4.0 * second.0, "{first:?} {second:?}");
    let over_both = (first.0 + second.0) / (first.1 + second.1);
    assert!((over_both - 1.0).abs() < 0.05, "{over_both}");
}

/// Share of a hardware thread that the serial program gets co-running with a parallel
/// one with so many threads.
fn serial_share(policy: &mut dyn Policy, shown: Shown, threads: u32) -> f64 {
    let mut fluid = Fluid::new("core:4", &[(1, 3), (threads, 0)]);
    fluid.shown = shown;
    let quanta = 2000;
    for _ in 0..quanta {
        fluid.quantum(policy);
    }
    fluid.got[&0] / f64::from(quanta)
}

/// Negative control: which threads make a program, dealt out anew each quantum.
#[test]
fn with_shuffled_programs_the_gain_vanishes() {
    let stay = serial_share(&mut Stay, Shown::Truth, 4);
    let phases = serial_share(&mut Phases::new(None), Shown::Truth, 4);
    let shuffled = serial_share(&mut Phases::new(None), Shown::Shuffled, 4);
    assert!(phases > stay + 0.15, "{phases} {stay}");
    assert!(shuffled < stay + 0.03, "{shuffled} {stay}");
}

/// Negative control: nothing to compete for.
#[test]
fn without_contention_there_is_no_gain() {
    let stay = serial_share(&mut Stay, Shown::Truth, 3);
    let phases = serial_share(&mut Phases::new(None), Shown::Truth, 3);
    assert!((phases - stay).abs() < 1e-3, "{phases} {stay}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn at_most_one_parallel_program_is_boosted(
        machine in prop::sample::select(&["core:1", "core:2", "core:4", "core:2 smt:2"][..]),
        programs in prop::collection::vec((0..6_u32, 0..2_u32), 1..5),
        quanta in 1..80,
    ) {
        let mut policy = Phases::new(None);
        let mut fluid = Fluid::new(machine, &programs);
        let cpus = fluid.machine.cpus().len() as u32;
        for _ in 0..quanta {
            let placement = fluid.quantum(&mut policy);
            let senior = |a: &Assignment| a.priority == BOOST && a.reason.starts_with("parallel");
            let mut boosted: Vec<u32> = (placement.iter())
                .filter(|(_, a)| senior(a))
                .map(|(id, _)| id.process - 1000)
                .collect();
            boosted.dedup();
            prop_assert!(boosted.len() <= 1);
            if let [program] = boosted[..] {
                prop_assert!(programs[program as usize].0 >= cpus);
            }
        }
    }
}
