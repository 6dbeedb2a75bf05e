use std::collections::BTreeMap;

use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_distr::StandardNormal;
use rand_pcg::Pcg64Mcg;
use symbiont_counters::catalogue::{Unit, Value as Counted};
use symbiont_counters::{Characterization, Characterizations, Measured, Measurements};
use symbiont_machine::test_support::thread;
use symbiont_machine::{Program, ProgramId, RunState, Sample, Target};
use symbiont_matching::{Weights, perfect_matching};
use symbiont_topology::{PuId, Topology};

use super::*;

/// Threads that always run, each of a program, and what co-runners take from their ln IPC.
struct Bench {
    machine: Topology,
    /// What each program does.
    does: Vec<usize>,
    names: Vec<String>,
    takes: Vec<Vec<f64>>,
    cpus: Vec<PuId>,
    moves: usize,
    random: Pcg64Mcg,
    shuffles: bool,
    /// Do programs belong to users in turn?
    users: Option<u32>,
    /// Identities that belong to programs in turn; none: they have names alone.
    identities: Option<u32>,
    placement: Placement,
}

/// What programs take from each other: victim, aggressor, and each pair, which is what can be gained.
fn takes(programs: usize, pair: f64, random: &mut Pcg64Mcg) -> Vec<Vec<f64>> {
    let mut draw = |deviation: f64| deviation * random.sample::<f64, _>(StandardNormal);
    let both: Vec<[f64; 2]> = (0..programs).map(|_| [draw(0.1), draw(0.1)]).collect();
    let row = |victim: &[f64; 2]| -> Vec<f64> {
        both.iter().map(|aggressor| -0.4 + victim[0] + aggressor[1] + draw(pair)).collect()
    };
    both.iter().map(row).collect()
}

impl Bench {
    fn new(machine: &str, programs: &[usize], takes: Vec<Vec<f64>>, seed: u64) -> Self {
        let machine = Topology::synthetic(machine).unwrap();
        let cpus = machine.cpus().iter().take(programs.len()).collect();
        Self {
            machine,
            does: programs.to_vec(),
            names: programs.iter().map(|program| format!("p{program}")).collect(),
            takes,
            cpus,
            moves: 0,
            random: Pcg64Mcg::seed_from_u64(seed),
            shuffles: false,
            users: None,
            identities: None,
            placement: Placement::new(),
        }
    }

    fn groups(&self) -> Vec<Vec<usize>> {
        let mut groups: BTreeMap<_, Vec<usize>> = BTreeMap::new();
        for (at, cpu) in self.cpus.iter().enumerate() {
            groups.entry(self.machine.core_of(*cpu).unwrap().id).or_default().push(at);
        }
        groups.into_values().collect()
    }

    /// What a thread loses to these.
    fn lost(&self, at: usize, with: &[usize]) -> f64 {
        with.iter().map(|other| self.takes[self.does[at]][self.does[*other]]).sum()
    }

    fn losses(&self) -> Vec<f64> {
        let mut losses = vec![0.0; self.does.len()];
        for group in self.groups() {
            for &at in &group {
                let with: Vec<usize> = group.iter().copied().filter(|other| *other != at).collect();
                losses[at] = self.lost(at, &with);
            }
        }
        losses
    }

    /// Throughput.
    fn stp(&self) -> f64 {
        self.losses().iter().map(|ln| ln.exp()).sum()
    }

    /// Throughput in pairs by chance, and in the best ones.
    fn bounds(&self) -> (f64, f64) {
        let threads = self.does.len();
        let pair = |i: usize, j: usize| self.lost(i, &[j]).exp() + self.lost(j, &[i]).exp();
        let sum: f64 = (0..threads).flat_map(|i| (0..i).map(move |j| pair(i, j))).sum();
        let weights = Weights::from_floats(threads, |i, j| -pair(i, j)).unwrap();
        (sum / (threads - 1) as f64, -perfect_matching(&weights, []).unwrap().weight)
    }

    fn step(&mut self, policy: &mut dyn Policy) {
        let mut ipc: Vec<f64> = (self.losses().iter().zip(&self.does))
            .map(|(lost, does)| {
                let noise = 0.03 * self.random.sample::<f64, _>(StandardNormal);
                (lost + *does as f64 * 0.1 - 0.5 + noise).exp()
            })
            .collect();
        if self.shuffles {
            ipc.shuffle(&mut self.random);
        }
        self.show(policy, &ipc);
    }

    fn show(&mut self, policy: &mut dyn Policy, ipc: &[f64]) {
        let (online, over) = (self.machine.cpus(), Duration::from_millis(100));
        let mut threads = Vec::new();
        let (mut did, mut measured) = (Characterizations::new(), Measurements::new());
        for (at, ipc) in ipc.iter().enumerate() {
            let mut t = thread(at as u32, at as u32, &online);
            (t.state, t.cpu) = (RunState::Runnable, Some(self.cpus[at]));
            did.insert(
                t.id,
                Characterization { over, ready: 1.0, running: 1.0, switches: 0, migrated: None },
            );
            measured.insert(
                t.id,
                Measured::of([("ipc", Counted { value: *ipc, unit: Unit::Fraction })]),
            );
            threads.push(t);
        }
        let program = |(at, name): (usize, &String)| Program {
            user: self.users.map(|users| at as u32 % users),
            identity: self.identities.map(|identities| format!("{:x}", at as u32 % identities)),
            ..Program::new(ProgramId(at as u32), name.clone())
        };
        let programs = self.names.iter().enumerate().map(program).collect();
        let sample = Sample { threads, programs, ..Sample::default() };
        let view = View::new(&self.machine, &sample, &did, &self.placement).measured(&measured);
        self.placement = policy.place(&view);
        for (id, assignment) in &self.placement {
            if let Target::Cpus(cpus) = &assignment.target {
                let (cpu, at) = (cpus.first().unwrap(), id.thread as usize);
                self.moves += usize::from(self.cpus[at] != cpu);
                self.cpus[at] = cpu;
            }
        }
    }

    /// Share of what pairs can gain over chance, over so many quanta.
    fn captured(&mut self, policy: &mut dyn Policy, quanta: usize) -> f64 {
        let (chance, best) = self.bounds();
        let mut sum = 0.0;
        for _ in 0..quanta {
            self.step(policy);
            sum += self.stp();
        }
        (sum / quanta as f64 - chance) / (best - chance)
    }
}

fn policy(seed: u64) -> Learned {
    Learned::new(&Settings { seed, ..Settings::default() })
}

/// Eight threads of as many programs on four cores.
fn eight(seed: u64) -> Bench {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let mut programs: Vec<usize> = (0..8).collect();
    programs.shuffle(&mut random);
    Bench::new("core:4 smt:2", &programs, takes(8, 0.06, &mut random), seed)
}

/// Means over some benches.
fn mean(of: impl Fn(u64) -> f64) -> f64 {
    (0..6).map(of).sum::<f64>() / 6.0
}

#[test]
fn good_pairs_are_found() {
    let captured = mean(|seed| {
        let (mut bench, mut policy) = (eight(seed), policy(seed));
        bench.captured(&mut policy, 100);
        bench.captured(&mut policy, 200)
    });
    assert!(captured > 0.85, "{captured}");
    // Of what was seen alone, nothing is tried.
    let greedy = Settings::default().with(&Learned::EXPLORE, &false).unwrap();
    let greedy = mean(|seed| eight(seed).captured(&mut Learned::new(&greedy), 300));
    assert!(greedy < captured - 0.1, "{greedy} {captured}");
}

#[test]
fn threads_of_one_program_are_learned_as_one() {
    let by = |by: By| {
        mean(|seed| {
            let mut random = Pcg64Mcg::seed_from_u64(seed);
            let programs: Vec<usize> = (0..16).map(|at| at / 4).collect();
            let mut bench =
                Bench::new("core:8 smt:2", &programs, takes(4, 0.06, &mut random), seed);
            let settings =
                Settings { seed, ..Settings::default() }.with(&Learned::BY, &by).unwrap();
            bench.captured(&mut Learned::new(&settings), 40)
        })
    };
    let (one, each) = (by(By::Program), by(By::Thread));
    assert!(one > each + 0.1 && one > 0.5, "{one} {each}");
}

#[test]
fn what_was_learned_is_there_the_next_time() {
    let mut first = policy(1);
    let mut bench = eight(1);
    bench.captured(&mut first, 300);
    let learned = first.learned().unwrap();
    assert_eq!(learned.programs.len(), 8);
    let again = |learned: LearnedPairs| {
        mean(|seed| {
            let learned = Some(std::sync::Arc::new(learned.clone()));
            let settings = Settings { seed, learned, ..Settings::default() };
            let mut bench = Bench { random: Pcg64Mcg::seed_from_u64(seed), ..eight(1) };
            bench.captured(&mut Learned::new(&settings), 30)
        })
    };
    let [new, known] = [LearnedPairs::default(), learned.clone()].map(again);
    assert!(known > 0.75 && known > new + 0.2, "{known} {new}");
    // Programs that do not run are kept, and so are co-runners.
    let mut fewer = learned.clone();
    fewer
        .programs
        .push(LearnedProgram { program: "gone".to_owned(), ..learned.programs[0].clone() });
    fewer.programs[1].next_to.push(NextTo { program: "gone".to_owned(), ln: -0.2, variance: 1e-4 });
    let before = Some(std::sync::Arc::new(fewer.clone()));
    let mut second = Learned::new(&Settings { learned: before, ..Settings::default() });
    eight(1).captured(&mut second, 5);
    let kept = second.learned().unwrap();
    assert_eq!(kept.programs.len(), 9);
    assert_eq!(kept.programs[8], fewer.programs[8]);
    assert!(kept.programs.iter().any(|it| it.next_to.iter().any(|next| next.program == "gone")));
    // What is no number is left out.
    let odd = NextTo { program: "p1".to_owned(), ln: f64::NAN, variance: -1.0 };
    fewer.programs.iter_mut().for_each(|it| it.next_to = vec![odd.clone(); 40]);
    let odd = Some(std::sync::Arc::new(fewer));
    let mut third = Learned::new(&Settings { learned: odd, ..Settings::default() });
    assert!(eight(1).captured(&mut third, 5).is_finite());
}

#[test]
fn good_pairs_of_many_threads_are_found() {
    // They are grouped in slices.
    let mut random = Pcg64Mcg::seed_from_u64(4);
    let programs: Vec<usize> = (0..300).map(|at| at % 10).collect();
    let takes = takes(10, 0.06, &mut random);
    let mut bench = Bench::new("core:150 smt:2", &programs, takes, 4);
    let mut policy = policy(4);
    bench.captured(&mut policy, 20);
    let captured = bench.captured(&mut policy, 20);
    assert!(captured > 0.8, "{captured}");
}

#[test]
fn programs_of_two_users_are_learned_apart() {
    let mut random = Pcg64Mcg::seed_from_u64(1);
    let takes = takes(1, 0.06, &mut random);
    let kinds = |users| {
        let mut bench = Bench { users, ..Bench::new("core:4 smt:2", &[0; 8], takes.clone(), 1) };
        let mut policy = policy(1);
        bench.step(&mut policy);
        policy.known.programs()
    };
    assert_eq!([None, Some(1), Some(2)].map(kinds), [1, 1, 2]);
    // So are two executables of one name, and one executable under several names is learned as one.
    let of = |identities, names: Option<&str>| {
        let mut bench = Bench::new("core:4 smt:2", &[0; 8], takes.clone(), 1);
        bench.identities = identities;
        if let Some(name) = names {
            bench.names = (0..8).map(|at| format!("{name}{at}")).collect();
        }
        let mut policy = policy(1);
        bench.step(&mut policy);
        policy.known.programs()
    };
    assert_eq!((of(Some(3), None), of(Some(1), Some("a")), of(None, Some("a"))), (3, 1, 8));
}

#[test]
fn what_was_learned_of_two_threads_can_be_asked() {
    // Programs 0 and 1 take much from their like only.
    let takes = vec![vec![-0.5, -0.2], vec![-0.2, -0.5]];
    let mut bench = Bench::new("core:2 smt:2", &[0, 0, 1, 1], takes, 1);
    let mut policy = policy(1);
    let ids = |bench: &Bench| bench.placement.keys().copied().collect::<Vec<_>>();
    bench.step(&mut policy);
    (0..100).for_each(|_| bench.step(&mut policy));
    let ids = ids(&bench);
    let of = |one: usize, other: usize| policy.learned_of(ids[one], ids[other]);
    let (like, other) = (of(0, 1).unwrap(), of(0, 2).unwrap());
    assert!((like - other + 0.3).abs() < 0.1, "{like} {other}");
    let stranger = thread(99, 99, &Default::default()).id;
    assert_eq!(policy.learned_of(ids[0], stranger), None);
}

#[test]
fn good_groups_of_four_are_found() {
    // Programs 0 and 1 take much from their like only.
    let takes = vec![vec![-0.5, -0.2], vec![-0.2, -0.5]];
    let mut bench = Bench::new("core:2 smt:4", &[0, 0, 0, 0, 1, 1, 1, 1], takes, 1);
    let before = bench.stp();
    let mut policy = policy(1);
    (0..60).for_each(|_| bench.step(&mut policy));
    let mixed = |group: &Vec<usize>| group.iter().filter(|at| **at < 4).count() == 2;
    assert!(bench.groups().iter().all(mixed), "{:?}", bench.groups());
    assert!(bench.stp() > before);
    let reason = &bench.placement.values().next().unwrap().reason;
    assert!(reason.starts_with("together +"), "{reason}");
    let gain = policy.gain_over_chance().unwrap();
    assert!(gain > 0.0 && gain < 0.5, "{gain}");
}

#[test]
fn a_new_phase_is_followed() {
    let captured = mean(|seed| {
        let (mut bench, mut policy) = (eight(seed), policy(seed));
        (0..150).for_each(|_| bench.step(&mut policy));
        bench.does.swap(0, 7);
        bench.does.swap(1, 6);
        (0..150).for_each(|_| bench.step(&mut policy));
        assert!(policy.known.changes() >= 2, "{}", policy.known.changes());
        bench.captured(&mut policy, 100)
    });
    assert!(captured > 0.75, "{captured}");
}

/// Negative control.
#[test]
fn without_interaction_threads_hardly_move() {
    let mut random = Pcg64Mcg::seed_from_u64(1);
    let programs: Vec<usize> = (0..8).collect();
    let mut takes = takes(8, 0.0, &mut random);
    takes.iter_mut().for_each(|row| row.fill(-0.4));
    let (mut bench, mut policy) = (Bench::new("core:4 smt:2", &programs, takes, 1), policy(1));
    (0..300).for_each(|_| bench.step(&mut policy));
    bench.moves = 0;
    (0..300).for_each(|_| bench.step(&mut policy));
    assert!(bench.moves < 8 * 300 / 20, "{}", bench.moves);
}

/// Negative control.
#[test]
fn shuffled_measurements_gain_little() {
    let gained = |shuffles: bool| {
        mean(|seed| {
            let (mut bench, mut policy) = (eight(seed), policy(seed));
            bench.shuffles = shuffles;
            bench.captured(&mut policy, 100)
        })
    };
    let (right, shuffled) = (gained(false), gained(true));
    assert!(right > 0.5 && shuffled.abs() < 0.25, "{right} {shuffled}");
}

#[test]
fn idle_cores_are_used() {
    for (threads, machine) in [(2, "core:2 smt:2"), (3, "core:2 smt:2"), (3, "core:4 smt:2")] {
        let mut random = Pcg64Mcg::seed_from_u64(1);
        let programs: Vec<usize> = (0..threads).collect();
        let mut bench = Bench::new(machine, &programs, takes(threads, 0.05, &mut random), 1);
        let mut policy = policy(1);
        let cores = bench.machine.cores().len().min(threads);
        for _ in 0..200 {
            bench.step(&mut policy);
            assert_eq!(bench.groups().len(), cores, "{machine}");
        }
        let alone = |a: &Assignment| a.reason == "alone on its core";
        assert!(bench.placement.values().any(alone));
    }
}

#[test]
fn whatever_is_measured_every_thread_is_assigned() {
    for odd in [f64::NAN, f64::INFINITY, f64::MAX, 1e-300, 0.0, -1.0] {
        for machine in ["core:4 smt:2", "core:2 smt:4", "core:3 smt:2", "core:8"] {
            let mut bench = eight(1);
            bench.machine = Topology::synthetic(machine).unwrap();
            let online: Vec<PuId> = bench.machine.cpus().iter().collect();
            bench.cpus = (0..8).map(|at| online[at % online.len()]).collect();
            let mut policy = policy(1);
            for quantum in 0..6 {
                let ipc: Vec<f64> = (0..8).map(|at| if at < quantum { odd } else { 1.0 }).collect();
                bench.show(&mut policy, &ipc);
                assert!(bench.placement.values().all(|a| a.target != Target::Os));
            }
            bench.step(&mut policy);
        }
    }
}

#[test]
fn reports_say_what_is_expected() {
    let (mut bench, mut policy) = (eight(2), policy(2));
    assert_eq!(policy.findings(), []);
    (0..200).for_each(|_| bench.step(&mut policy));
    let [gain, _] = &policy.findings()[..] else { panic!() };
    let (chance, best) = bench.bounds();
    let most = (best / chance - 1.0) * 100.0;
    assert!(gain.value > 0.3 * most && gain.value < 1.5 * most, "{gain:?} of {most}");
}
