use proptest::prelude::*;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use symbiont_counters::catalogue::{Unit, Value};
use symbiont_counters::{Characterization, Characterizations, Measured, Measurements};
use symbiont_machine::test_support::{full_support, thread};
use symbiont_machine::{Assignment, Program, Sample, Target, ThreadSample};

use super::super::{ActivityInterval, longest_wait};
use super::*;

const SUPER_SETS: usize = 16;

/// Uses the super-sets of the L2 in a bit mask, for so many instructions.
fn interval(instructions: u64, active: u16) -> ActivityInterval {
    with_active(instructions, 4, active)
}

/// Active in the super-sets of a bit mask by this vector.
fn with_active(instructions: u64, vector: usize, active: u16) -> ActivityInterval {
    let count = |at: usize, set: usize| u32::from(at == vector && active >> set & 1 == 1) * 100;
    let counts = |at: usize| (0..SUPER_SETS).map(|set| count(at, set)).collect();
    ActivityInterval { instructions, counts: (0..VECTORS).map(counts).collect() }
}

/// Programs `p0`, `p1`, … with these intervals.
fn known(programs: &[Vec<ActivityInterval>]) -> KnownActivity {
    let named = programs.iter().enumerate().map(|(at, it)| (format!("p{at}"), it.clone()));
    KnownActivity::new(named.collect()).unwrap()
}

fn policy(known: KnownActivity) -> Activity {
    let settings = Settings { activity: Some(Arc::new(known)), ..Settings::default() };
    // All counts are equal: bits are where there are any.
    let settings = settings.with(&Activity::SUPER_SETS, &SUPER_SETS).unwrap();
    Activity::new(&settings.with(&Activity::THRESHOLD, &0.01).unwrap())
}

/// Jobs that are each active in the super-sets of a mask.
fn steady(masks: &[u16]) -> Activity {
    policy(known(&masks.iter().map(|mask| vec![interval(1_000, *mask)]).collect::<Vec<_>>()))
}

/// A machine with threads, of which each is of a program by number.
struct Bench {
    machine: Topology,
    threads: Vec<ThreadSample>,
    /// CPU time of a quantum, and instructions where they are counted.
    did: BTreeMap<ThreadId, (f64, Option<f64>)>,
    placement: Placement,
    /// Does the machine put threads in the idle class?
    idle_class: bool,
}

impl Bench {
    fn new(machine: &str, programs: &[u32]) -> Self {
        let machine = Topology::synthetic(machine).unwrap();
        let mut bench = Self {
            machine,
            threads: Vec::new(),
            did: BTreeMap::new(),
            placement: Placement::new(),
            idle_class: true,
        };
        programs.iter().for_each(|program| bench.arrive(*program));
        bench
    }

    fn arrive(&mut self, program: u32) {
        let number = self.threads.last().map_or(0, |last| last.id.thread + 1);
        let mut new = thread(program, number, &self.machine.cpus());
        new.state = RunState::Runnable;
        self.threads.push(new);
    }

    /// A quantum; the threads that run in it, by number.
    fn step(&mut self, policy: &mut Activity) -> Vec<u32> {
        let programs = self.threads.iter().map(|thread| thread.program).collect::<BTreeSet<_>>();
        let programs =
            programs.into_iter().map(|id| Program::new(id, format!("p{}", id.0))).collect();
        let sample = Sample { threads: self.threads.clone(), programs, ..Sample::default() };
        let over = Duration::from_millis(100);
        let did = |(cpu, _): &(f64, Option<f64>)| Characterization {
            over,
            ready: 1.0,
            running: *cpu / over.as_secs_f64(),
            switches: 1,
            migrated: None,
        };
        let known: Characterizations = self.did.iter().map(|(id, it)| (*id, did(it))).collect();
        let counted = |(id, (_, counted)): (&ThreadId, &(f64, Option<f64>))| {
            let value = Value { value: (*counted)?, unit: Unit::Fraction };
            Some((*id, Measured::of([("instructions", value)])))
        };
        let measured: Measurements = self.did.iter().filter_map(counted).collect();
        let view = View::new(&self.machine, &sample, &known, &self.placement).measured(&measured);
        self.placement = policy.place(&view);
        let mut running = Vec::new();
        for (id, assignment) in &mut self.placement {
            if assignment.priority != Priority::Idle {
                running.push(id.thread);
            } else if !self.idle_class {
                assignment.priority = Priority::Normal;
            }
        }
        running
    }

    fn reason(&self, number: u32) -> &str {
        let found = self.placement.iter().find(|(id, _)| id.thread == number);
        &found.unwrap().1.reason
    }

    /// The numbers of the threads of each core that has any.
    fn groups(&self) -> Vec<Vec<u32>> {
        let mut groups: BTreeMap<_, Vec<u32>> = BTreeMap::new();
        for (id, assignment) in &self.placement {
            let Target::Cpus(cpus) = &assignment.target else { panic!("{assignment:?}") };
            let core = self.machine.core_of(cpus.only().unwrap()).unwrap().id;
            groups.entry(core).or_default().push(id.thread);
        }
        groups.into_values().collect()
    }
}

#[test]
fn threads_that_overlap_are_parted() {
    let mut policy = steady(&[0x00ff, 0x00ff, 0xff00, 0xff00]);
    let mut bench = Bench::new("core:2 smt:2", &[0, 1, 2, 3]);
    bench.step(&mut policy);
    let groups = bench.groups();
    assert!(groups.iter().all(|it| it.len() == 2 && (it[0] < 2) != (it[1] < 2)), "{groups:?}");
    let reason = bench.reason(0).to_owned();
    assert!(
        reason.contains("p0: overlaps with p") && reason.contains("in 0 super-sets"),
        "{reason}"
    );
    // Nothing changed: all stay.
    bench.step(&mut policy);
    assert_eq!(bench.groups(), groups);
}

#[test]
fn vectors_count_by_their_weights() {
    let names = Activity::OVERLAP.map(|weight| crate::Declared::name(&weight));
    assert_eq!(names, ["l1d-use", "l1d-miss", "l1i-use", "l1i-miss", "l2-use", "l2-miss"]);
    let overlap = |vector: usize, set: &[(usize, f64)]| {
        let programs = [0x0ff0, 0x003f].map(|mask| vec![with_active(1_000, vector, mask)]);
        let mut settings =
            Settings { activity: Some(Arc::new(known(&programs))), ..Settings::default() };
        for (vector, weight) in set {
            settings = settings.with(&Activity::OVERLAP[*vector], weight).unwrap();
        }
        let settings = settings.with(&Activity::SUPER_SETS, &SUPER_SETS).unwrap();
        let mut policy = Activity::new(&settings);
        let mut bench = Bench::new("core:1 smt:2", &[0, 1]);
        bench.step(&mut policy);
        let (_, words) = bench.reason(0).split_once("p0: overlaps with p1 in ").unwrap();
        words.split(' ').next().unwrap().parse::<f64>().unwrap()
    };
    // Two super-sets overlap. By default those of the L2 count alone.
    assert_eq!(
        [0, 1, 2, 3, 4, 5].map(|vector| overlap(vector, &[])),
        [0.0, 0.0, 0.0, 0.0, 2.0, 2.0]
    );
    for vector in 0..VECTORS {
        assert_eq!(overlap(vector, &[(vector, 0.75)]), 1.5);
        assert_eq!(overlap(vector, &[(vector, 0.0)]), 0.0);
    }
    assert_eq!(overlap(0, &[(0, 1.0), (4, 0.0), (5, 0.0)]), 2.0);
}

#[test]
fn fewer_threads_than_cores_are_alone() {
    let mut policy = steady(&[0xffff, 0xffff]);
    let mut bench = Bench::new("core:2 smt:2", &[0, 1]);
    bench.step(&mut policy);
    assert_eq!(bench.groups(), [[0], [1]]);
    assert!(bench.reason(0).contains("no co-runner"));
    // Without SMT no two threads share a core.
    let mut bench = Bench::new("core:2", &[0, 1]);
    bench.step(&mut policy);
    assert!(bench.placement.values().all(|it| it.target == Target::Os));
}

#[test]
fn of_more_jobs_than_hardware_threads_the_others_wait() {
    let mut policy = steady(&[0x00ff, 0x00ff, 0xff00, 0xff00]);
    let mut bench = Bench::new("core:1 smt:2", &[0, 1, 2, 3]);
    let mut overlapping = 0;
    for _ in 0..200 {
        let running = bench.step(&mut policy);
        assert_eq!(running.len(), 2);
        let places: BTreeSet<_> = running
            .iter()
            .map(|it| bench.placement.iter().find(|(id, _)| id.thread == *it).unwrap().1)
            .map(|it| format!("{:?}", it.target))
            .collect();
        assert_eq!(places.len(), 2, "each has a hardware thread of its own");
        overlapping += u32::from((running[0] < 2) == (running[1] < 2));
    }
    // Round robin has them together in a third of the quanta.
    assert!(overlapping < 40, "{overlapping} of 200");
    let waits = bench.placement.values().find(|it| it.priority == Priority::Idle).unwrap();
    assert!(waits.reason.starts_with("waits for its turn: overlaps with p"), "{}", waits.reason);
    assert_eq!(waits.target, Target::Cpus("0-1".parse().unwrap()));
}

/// Quanta between two in which each of the first threads runs, at most.
fn gaps(
    bench: &mut Bench,
    policy: &mut Activity,
    quanta: u64,
    mut each: impl FnMut(&mut Bench),
) -> u64 {
    let first: Vec<u32> = bench.threads.iter().map(|thread| thread.id.thread).collect();
    let mut last: BTreeMap<u32, u64> = first.iter().map(|it| (*it, 0)).collect();
    let mut longest = 0;
    for quantum in 1..=quanta {
        each(bench);
        for number in bench.step(policy) {
            last.entry(number).and_modify(|last| *last = quantum);
        }
        longest = longest.max(last.values().map(|last| quantum - last).max().unwrap_or(0));
    }
    longest
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn each_job_runs_within_the_bound(
        masks in prop::collection::vec(any::<u16>(), 3..8), smt in 1_usize..3,
    ) {
        let mut policy = steady(&masks);
        let programs: Vec<u32> = (0..).take(masks.len()).collect();
        let mut bench = Bench::new(&format!("core:1 smt:{smt}"), &programs);
        let most = SUPER_SETS as f64 * (smt - 1) as f64;
        let bound = longest_wait(masks.len(), smt, most, 4.0).unwrap();
        let longest = gaps(&mut bench, &mut policy, 4 * bound, |_| {});
        prop_assert!(longest <= bound, "{longest} > {bound}");
    }

    #[test]
    fn arriving_jobs_starve_no_other(masks in prop::collection::vec(any::<u16>(), 4..8), seed: u64) {
        let mut policy = steady(&masks);
        let mut bench = Bench::new("core:1 smt:2", &[0, 1, 2]);
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        // Five jobs at most: in each quantum one may come, and one of those that came may go.
        let bound = longest_wait(5, 2, SUPER_SETS as f64, 4.0).unwrap();
        let longest = gaps(&mut bench, &mut policy, 4 * bound, |bench| {
            if bench.threads.len() > 3 && random.random_bool(0.5) {
                bench.threads.remove(3);
            }
            if bench.threads.len() < 5 {
                bench.arrive(random.random_range(3..masks.len() as u32));
            }
        });
        prop_assert!(longest <= bound, "{longest} > {bound}");
    }
}

#[test]
fn two_jobs_of_one_program_have_places_of_their_own() {
    // The second job is always half the program behind the first one: at the same place they would overlap.
    let program = vec![interval(1_000, 0x00ff), interval(1_000, 0xff00)];
    let mut policy = policy(known(&[program]));
    let mut bench = Bench::new("core:1 smt:2", &[0, 0]);
    bench.step(&mut policy);
    assert!(bench.reason(0).contains("in 8 super-sets"), "{}", bench.reason(0));
    let ids: Vec<ThreadId> = bench.threads.iter().map(|thread| thread.id).collect();
    bench.did = [(ids[0], (0.1, Some(1_000.0))), (ids[1], (0.1, Some(0.0)))].into();
    bench.step(&mut policy);
    assert!(bench.reason(0).contains("in 0 super-sets"), "{}", bench.reason(0));
}

#[test]
fn the_place_follows_cpu_time_where_instructions_are_not_counted() {
    let program = vec![interval(2_000_000_000, 0x00ff), interval(2_000_000_000, 0xff00)];
    let mut policy = policy(known(&[program.clone(), vec![interval(1_000, 0x00ff)]]));
    let mut bench = Bench::new("core:1 smt:2", &[0, 1]);
    let id = bench.threads[0].id;
    // Two thousand million instructions are assumed in a second.
    bench.did = [(id, (0.1, None))].into();
    let overlaps = |bench: &mut Bench, policy: &mut Activity| {
        bench.step(policy);
        bench.reason(0).contains("in 8 super-sets")
    };
    let run: Vec<bool> = (0..12).map(|_| overlaps(&mut bench, &mut policy)).collect();
    assert_eq!(run.iter().position(|overlaps| !overlaps), Some(9), "{run:?}");
    // Once counted, the rate is that of the program: here ten times as high.
    bench.did = [(id, (0.1, Some(2e9)))].into();
    assert!(overlaps(&mut bench, &mut policy));
    bench.did = [(id, (0.1, None))].into();
    assert!(!overlaps(&mut bench, &mut policy));
}

#[test]
fn a_program_shorter_than_an_interval_has_one() {
    let mut policy =
        policy(known(&[vec![interval(7, 0x000f)], vec![interval(50_000_000, 0x0003)]]));
    let mut bench = Bench::new("core:1 smt:2", &[0, 1]);
    let ids: Vec<ThreadId> = bench.threads.iter().map(|thread| thread.id).collect();
    bench.did = ids.iter().map(|id| (*id, (0.1, Some(3.0)))).collect();
    for _ in 0..20 {
        bench.step(&mut policy);
        assert!(bench.reason(0).contains("in 2 super-sets"), "{}", bench.reason(0));
    }
}

#[test]
fn a_program_without_vectors_overlaps_with_none_and_is_named() {
    let mut policy = steady(&[0xffff]);
    let mut bench = Bench::new("core:1 smt:2", &[0, 7]);
    bench.step(&mut policy);
    assert!(bench.reason(0).contains("no activity vectors of program 'p7'"), "{}", bench.reason(0));
    assert!(bench.reason(0).contains("p0: overlaps with p7 in 0 super-sets"));
}

#[test]
fn a_machine_without_the_idle_class_schedules_itself() {
    let left = |bench: &Bench| {
        let os = |it: &Assignment| it.target == Target::Os && it.priority == Priority::Normal;
        bench.placement.values().all(os)
    };
    // It says so beforehand.
    let mut policy = steady(&[1, 2, 3]);
    let mut bench = Bench::new("core:1 smt:2", &[0, 1, 2]);
    let support = Support { idle_class: Ability::Absent("no right".into()), ..full_support() };
    let said = policy.offer(&support, &bench.machine).unwrap();
    assert!(said.contains("no right"), "{said}");
    bench.step(&mut policy);
    assert!(left(&bench));
    assert_eq!(bench.reason(0), "more threads than hardware threads, and no right");
    // It refuses each thread, as across sessions.
    assert_eq!(policy.offer(&full_support(), &bench.machine), None);
    bench.idle_class = false;
    let given_up = (0..10).position(|_| {
        bench.step(&mut policy);
        left(&bench)
    });
    assert_eq!(given_up, Some(3));
    assert!(bench.reason(0).contains("one session"), "{}", bench.reason(0));
    // Another set of programs is another case.
    bench.arrive(1);
    bench.threads.remove(0);
    bench.idle_class = true;
    bench.step(&mut policy);
    assert!(!left(&bench));
}

#[test]
fn jobs_of_several_cores_stay_on_theirs() {
    let mut policy = steady(&[0x000f, 0x00f0, 0x0f00, 0xf000, 0x00ff, 0xff00, 0x0ff0]);
    let mut bench = Bench::new("core:2 smt:2", &[0, 1, 2, 3, 4, 5, 6]);
    let core = |bench: &Bench, id: &ThreadId| match &bench.placement[id].target {
        Target::Cpus(cpus) => bench.machine.core_of(cpus.first().unwrap()).unwrap().id,
        Target::Os => panic!("{id}"),
    };
    bench.step(&mut policy);
    let ids: Vec<ThreadId> = bench.threads.iter().map(|thread| thread.id).collect();
    let before: Vec<_> = ids.iter().map(|id| core(&bench, id)).collect();
    for _ in 0..50 {
        assert_eq!(bench.step(&mut policy).len(), 4);
        assert_eq!(ids.iter().map(|id| core(&bench, id)).collect::<Vec<_>>(), before);
    }
}

/// Negative control: true overlap within cores is that of random pairs if vectors are another's.
#[test]
fn shuffled_vectors_part_threads_by_chance() {
    let mut random = Pcg64Mcg::seed_from_u64(1);
    let (mut own, mut shuffled, mut by_chance) = (0.0, 0.0, 0.0);
    for _ in 0..60 {
        let masks: Vec<u16> = (0..12).map(|_| random.random()).collect();
        let truth = |groups: &[Vec<u32>]| -> f64 {
            let pair = |it: &Vec<u32>| (masks[it[0] as usize] & masks[it[1] as usize]).count_ones();
            groups.iter().filter(|it| it.len() == 2).map(|it| f64::from(pair(it))).sum()
        };
        let programs: Vec<u32> = (0..12).collect();
        let groups = |masks: &[u16]| {
            let mut bench = Bench::new("core:6 smt:2", &programs);
            bench.step(&mut steady(masks));
            bench.groups()
        };
        own += truth(&groups(&masks));
        let mut other = masks.clone();
        other.shuffle(&mut random);
        shuffled += truth(&groups(&other));
        let mut order = programs.clone();
        order.shuffle(&mut random);
        by_chance += truth(&order.chunks(2).map(<[u32]>::to_vec).collect::<Vec<_>>());
    }
    assert!(own < 0.7 * by_chance, "{own} of {by_chance}");
    assert!((0.9..1.1).contains(&(shuffled / by_chance)), "{shuffled} of {by_chance}");
}
