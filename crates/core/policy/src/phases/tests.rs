use proptest::prelude::*;
use symbiont_counters::{Characterization, Characterizations};
use symbiont_machine::test_support::{full_support, thread};
use symbiont_machine::{Lifecycle, RunState, Sample, ThreadSample};
use symbiont_topology::{PuId, Topology};

use super::*;
use crate::tests::MACHINES;

/// Threads with their ready fractions, and the policy under test.
#[derive(Debug)]
struct Scene {
    machine: Topology,
    policy: Phases,
    threads: BTreeMap<u32, (ThreadSample, f64)>,
}

impl Scene {
    fn on(machine: &str) -> Self {
        let machine = Topology::synthetic(machine).unwrap();
        Self { machine, policy: Phases::new(None), threads: BTreeMap::new() }
    }

    /// Adds a thread; `number / 10` is its program.
    fn thread(mut self, number: u32, ready: f64) -> Self {
        self.set(number, ready);
        self
    }

    fn set(&mut self, number: u32, ready: f64) {
        let new = thread(number / 10, number, &self.machine.cpus());
        self.threads.entry(number).or_insert((new, ready)).1 = ready;
    }

    /// Limits a thread.
    fn within(mut self, number: u32, allowed: &str) -> Self {
        self.threads.get_mut(&number).unwrap().0.allowed =
            allowed.parse::<CpuSet>().unwrap().into();
        self
    }

    /// Says where a thread runs.
    fn at(mut self, number: u32, cpu: u32) -> Self {
        self.threads.get_mut(&number).unwrap().0.cpu = Some(PuId(cpu));
        self
    }

    fn place(&mut self) -> Placement {
        let mut known = Characterizations::new();
        let mut threads = Vec::new();
        for (t, ready) in self.threads.values() {
            let over = ENTRY.quantum;
            let ready = *ready;
            let did = Characterization { over, ready, running: ready, switches: 0, migrated: None };
            known.insert(t.id, did);
            let state = if ready > 0.0 { RunState::Runnable } else { RunState::Sleeping };
            threads.push(ThreadSample { state, ..t.clone() });
        }
        let sample = Sample { threads, ..Sample::default() };
        let applied = Placement::new();
        self.policy.place(&View::new(&self.machine, &sample, &known, &applied))
    }

    /// Each thread's hardware threads ("os" if left to it), with a `+` if it
    /// is boosted.
    fn outcome(&mut self) -> Vec<(u32, String)> {
        let shown = |a: &Assignment| {
            let place = match &a.target {
                Target::Os => "os".to_owned(),
                Target::Cpus(cpus) => cpus.to_string(),
            };
            place + if a.priority == BOOST { "+" } else { "" }
        };
        self.place().iter().map(|(id, a)| (id.thread, shown(a))).collect()
    }

    #[track_caller]
    fn gives(&mut self, expected: &[(u32, &str)]) {
        let expected: Vec<_> = expected.iter().map(|&(n, t)| (n, t.to_owned())).collect();
        assert_eq!(self.outcome(), expected);
    }
}

const TWO: &str = "core:2";
const FOUR: &str = "core:4";
const ONE_FAST: &str = "core:2 capacity:512 | core:1 | core:1 capacity:512";

#[test]
fn serial_with_serial_each_gets_a_core() {
    Scene::on(TWO).thread(10, 1.0).thread(20, 1.0).gives(&[(10, "0+"), (20, "1+")]);
}

#[test]
fn serial_with_parallel_gets_a_core_and_the_other_the_rest() {
    let parallel = |scene: Scene| scene.thread(20, 1.0).thread(21, 1.0).thread(22, 0.9);
    parallel(Scene::on(TWO).thread(10, 1.0).at(10, 1)).gives(&[
        (10, "1+"),
        (20, "0"),
        (21, "0"),
        (22, "0"),
    ]);
    parallel(Scene::on(FOUR).thread(10, 1.0)).gives(&[
        (10, "0+"),
        (20, "1-3"),
        (21, "1-3"),
        (22, "1-3"),
    ]);
}

#[test]
fn parallel_with_serial_is_the_same_seen_from_the_other_side() {
    Scene::on(TWO).thread(10, 1.0).thread(11, 1.0).thread(20, 1.0).gives(&[
        (10, "1"),
        (11, "1"),
        (20, "0+"),
    ]);
}

#[test]
fn parallel_with_parallel_the_senior_is_boosted() {
    let mut scene = Scene::on(TWO).thread(20, 1.0).thread(21, 1.0);
    scene.gives(&[(20, "os"), (21, "os")]);
    scene.set(10, 1.0);
    scene.set(11, 0.9);
    scene.gives(&[(10, "os"), (11, "os"), (20, "os+"), (21, "os+")]);
    // The senior becomes serial: no seniority any more, but a core for it.
    scene.set(21, 0.0);
    scene.gives(&[(10, "1"), (11, "1"), (20, "0+"), (21, "os")]);
    // It is parallel again, but the junior now.
    scene.set(21, 1.0);
    scene.gives(&[(10, "os+"), (11, "os+"), (20, "os"), (21, "os")]);
}

#[test]
fn the_boost_of_the_senior_passes_on_at_the_timeout() {
    let mut scene = Scene::on(TWO).thread(10, 1.0).thread(11, 1.0).thread(20, 1.0).thread(21, 1.0);
    scene.policy = Phases::of(None, 2 * ENTRY.quantum, false);
    let first = [(10, "os+"), (11, "os+"), (20, "os"), (21, "os")];
    let second = [(10, "os"), (11, "os"), (20, "os+"), (21, "os+")];
    for expected in [first, first, second, second, first] {
        scene.gives(&expected);
    }
    assert_eq!(scene.policy.turns().timed_out, 2);
    assert_eq!(scene.policy.turns().begun, 3);
}

#[test]
fn seniority_is_for_programs_that_all_want_all_of_the_machine() {
    let wide = |scene: Scene, from: u32| (from..from + 4).fold(scene, |s, n| s.thread(n, 1.0));
    let boosted = |scene: &mut Scene| -> Vec<u32> {
        let placement = scene.place();
        placement.iter().filter(|(_, a)| a.priority == BOOST).map(|(id, _)| id.thread).collect()
    };
    let mut scene = wide(wide(Scene::on(FOUR), 10), 20);
    assert_eq!(boosted(&mut scene), [10, 11, 12, 13]);
    // A third program with three threads would only lose by it.
    let mut narrow = scene.thread(30, 1.0).thread(31, 1.0).thread(32, 1.0);
    assert!(boosted(&mut narrow).is_empty());
    // A fourth thread, ready for most of the time, makes it one of them.
    narrow.set(33, 0.6);
    assert_eq!(boosted(&mut narrow), [10, 11, 12, 13]);
    // A serial program is no hindrance as long as it has its core.
    narrow.set(40, 1.0);
    assert_eq!(boosted(&mut narrow), [10, 11, 12, 13, 40]);
    for number in [50, 60, 70] {
        narrow.set(number, 1.0);
    }
    assert_eq!(boosted(&mut narrow), [40, 50, 60, 70]);
}

#[test]
fn a_serial_thread_goes_to_the_core_that_others_kept_least_busy() {
    let parallel = |scene: Scene| {
        (30..34).fold(scene, |s, n| s.thread(n, 1.0).at(n, if n < 32 { 0 } else { n - 31 }))
    };
    // Two on core 0, one on 1, one on 2; none on 3.
    let mut scene = parallel(Scene::on(FOUR)).thread(10, 1.0).at(10, 0);
    assert_eq!(scene.outcome()[0], (10, "3+".to_owned()));
    // It stays there, whatever happens on the others.
    let mut scene = scene.at(33, 3).at(31, 2).at(30, 2);
    assert_eq!(scene.outcome()[0], (10, "3+".to_owned()));
}

#[test]
fn instructions_are_optional_where_cores_differ() {
    let optional_of = |mut policy: Phases, machine| {
        policy.offer(&full_support(), &Topology::synthetic(machine).unwrap());
        policy.requirements().optional
    };
    let online = || Phases::online(&Settings::default());
    assert!(optional_of(online(), TWO).is_empty());
    assert_eq!(optional_of(online(), ONE_FAST), [Signal::Ipc].into());
    assert!(optional_of(Phases::new(None), ONE_FAST).is_empty(), "as published");
}

#[test]
fn joint_states_are_counted() {
    let mut scene = Scene::on(TWO).thread(10, 1.0).thread(20, 1.0).thread(21, 1.0);
    scene.place();
    scene.place();
    scene.set(21, 0.0);
    scene.place();
    let states = scene.policy.joint_states();
    let reported: Vec<_> = states.time.iter().map(|(s, t)| (s.to_string(), *t)).collect();
    let quantum = ENTRY.quantum;
    assert_eq!(reported.len(), 2);
    assert!(reported.contains(&("S,P".to_owned(), 2 * quantum)));
    assert!(reported.contains(&("S,S".to_owned(), quantum)));
    assert_eq!(states.changes, 1);
    assert!(Phases::new(None).findings().iter().all(|f| f.value == 0.0));
    let findings = scene.policy.findings();
    assert!(findings.iter().all(|f| f.value > 0.0), "{findings:?}");
    let found = findings.iter().find(|f| f.name == "joint state S,P").unwrap();
    assert_eq!((found.value, &*found.unit), (0.04, "s"));
}

#[test]
fn two_ready_threads_are_parallel_on_two_hardware_threads_only() {
    let scene = |cores| Scene::on(cores).thread(10, 1.0).thread(11, 1.0).thread(20, 1.0);
    scene(TWO).gives(&[(10, "1"), (11, "1"), (20, "0+")]);
    scene(FOUR).gives(&[(10, "0+"), (11, "1+"), (20, "2+")]);
}

#[test]
fn the_threshold_can_be_set() {
    let mut scene = Scene::on(FOUR).thread(10, 1.0).thread(11, 1.0).thread(20, 1.0);
    scene.policy = Phases::new(Some(1.5));
    scene.gives(&[(10, "1-3"), (11, "1-3"), (20, "0+")]);
}

#[test]
fn one_serial_thread_with_no_thread_to_keep_away_is_only_boosted() {
    Scene::on(FOUR).thread(10, 1.0).thread(20, 0.1).gives(&[(10, "os+"), (20, "os")]);
}

#[test]
fn serial_threads_take_the_fastest_cores_in_the_order_they_became_serial() {
    let mut scene = Scene::on(ONE_FAST).thread(20, 1.0);
    scene.gives(&[(20, "2+")]);
    scene.set(10, 1.0);
    scene.gives(&[(10, "0+"), (20, "2+")]);
    // The senior's serial phase ends: the junior moves up, and stays there.
    scene.set(20, 0.0);
    scene.gives(&[(10, "2+"), (20, "os")]);
    scene.set(20, 1.0);
    scene.gives(&[(10, "2+"), (20, "0+")]);
}

#[test]
fn a_core_of_its_own_is_all_hardware_threads_of_the_core() {
    // Siblings are numbered two apart: 0 and 2, 1 and 3.
    Scene::on("core:2 smt:2 numbering:spread")
        .thread(10, 1.0)
        .at(10, 3)
        .thread(20, 1.0)
        .thread(21, 1.0)
        .thread(22, 1.0)
        .gives(&[(10, "1,3+"), (20, "0,2"), (21, "0,2"), (22, "0,2")]);
}

#[test]
fn on_one_core_there_is_only_the_boost() {
    for machine in ["core:1", "core:1 smt:2"] {
        Scene::on(machine).thread(10, 1.0).thread(20, 1.0).thread(21, 1.0).gives(&[
            (10, "os+"),
            (20, "os"),
            (21, "os"),
        ]);
        Scene::on(machine).thread(10, 1.0).thread(20, 1.0).gives(&[(10, "os+"), (20, "os+")]);
    }
}

#[test]
fn one_core_stays_for_the_parallel_threads() {
    Scene::on(TWO).thread(10, 1.0).thread(20, 1.0).thread(30, 1.0).thread(31, 1.0).gives(&[
        (10, "0+"),
        (20, "os+"),
        (30, "1"),
        (31, "1"),
    ]);
}

#[test]
fn serial_threads_beyond_the_cores_are_only_boosted() {
    let mut scene = Scene::on(TWO).thread(30, 1.0);
    scene.place();
    scene.set(10, 1.0);
    scene.set(20, 1.0);
    scene.gives(&[(10, "os+"), (20, "os+"), (30, "0+")]);
}

#[test]
fn four_programs_in_four_states() {
    Scene::on(FOUR)
        .thread(10, 1.0)
        .thread(11, 0.02)
        .thread(20, 0.7)
        .thread(21, 0.7)
        .thread(22, 0.7)
        .thread(23, 0.0)
        .thread(30, 0.1)
        .thread(40, 0.6)
        .gives(&[
            (10, "0+"),
            (11, "os"),
            (20, "2-3"),
            (21, "2-3"),
            (22, "2-3"),
            (23, "2-3"),
            (30, "os"),
            (40, "1+"),
        ]);
}

#[test]
fn a_limit_is_never_left() {
    // The serial thread may only use core 1; the first parallel thread too.
    Scene::on(TWO)
        .thread(10, 1.0)
        .within(10, "1")
        .at(10, 0)
        .thread(20, 1.0)
        .within(20, "1")
        .thread(21, 1.0)
        .gives(&[(10, "1+"), (20, "os"), (21, "0")]);
}

#[test]
fn a_serial_thread_whose_cores_are_all_taken_is_only_boosted() {
    let mut scene = Scene::on(FOUR).thread(20, 1.0).within(20, "2").thread(30, 0.0);
    scene.place();
    scene.set(10, 1.0);
    let mut scene = scene.within(10, "2");
    scene.gives(&[(10, "os+"), (20, "2+"), (30, "os")]);
}

#[test]
fn programs_confined_to_a_part_of_a_machine_are_placed_as_on_one_of_that_size() {
    let mut scene = Scene::on("core:8");
    for number in [10, 20, 21, 30] {
        scene = scene.thread(number, 1.0).within(number, "2-3");
    }
    scene.gives(&[(10, "2+"), (20, "3"), (21, "3"), (30, "os+")]);
}

#[test]
fn a_serial_thread_makes_room_for_parallel_threads_with_a_limit() {
    let mut scene = Scene::on(FOUR).thread(10, 1.0).at(10, 0).thread(20, 1.0).at(20, 3);
    scene.gives(&[(10, "0+"), (20, "3+")]);
    for number in 30..33 {
        scene.set(number, 1.0);
        scene = scene.within(number, "0-1");
    }
    scene.gives(&[(10, "2+"), (20, "3+"), (30, "0-1"), (31, "0-1"), (32, "0-1")]);
    // Parallel threads that may run anywhere do not change that.
    let parallel = (40..43).fold(scene, |scene, number| scene.thread(number, 1.0));
    let mut scene = parallel.at(10, 0);
    assert_eq!(scene.outcome()[..2], [(10, "2+".to_owned()), (20, "3+".to_owned())]);
    scene.policy = Phases::new(None);
    assert_eq!(scene.outcome()[..2], [(10, "2+".to_owned()), (20, "3+".to_owned())]);
}

#[test]
fn a_thread_that_waits_for_a_fast_core_displaces_no_thread_from_a_slow_one() {
    let mut scene = Scene::on("core:1 | core:2 kind:efficiency capacity:600");
    for number in [10, 20, 30, 40] {
        scene = scene.thread(number, 1.0);
    }
    let mut scene = scene.within(20, "1");
    for _ in 0..3 {
        scene.gives(&[(10, "0+"), (20, "1+"), (30, "os+"), (40, "os+")]);
    }
}

#[test]
fn half_a_quantum_makes_a_thread_busy() {
    Scene::on(TWO).thread(10, 0.5).thread(20, 0.49).gives(&[(10, "os+"), (20, "os")]);
}

#[test]
fn a_thread_keeps_its_core_when_others_come_and_go() {
    let mut scene = Scene::on(FOUR).thread(20, 1.0).at(20, 3).thread(30, 1.0).at(30, 1);
    scene.gives(&[(20, "3+"), (30, "1+")]);
    // The newcomer was last on a core that is taken; and the OS reports a
    // late place for a thread that was just moved.
    scene.set(10, 1.0);
    let mut scene = scene.at(10, 3).at(20, 0);
    scene.gives(&[(10, "0+"), (20, "3+"), (30, "1+")]);
    scene.set(30, 0.0);
    scene.gives(&[(10, "0+"), (20, "3+"), (30, "os")]);
}

#[test]
fn an_unsettled_serial_thread_keeps_its_turn_but_gets_no_core() {
    let mut scene = Scene::on(TWO).thread(20, 1.0).thread(30, 1.0).thread(31, 1.0);
    scene.threads.get_mut(&20).unwrap().0.lifecycle = Lifecycle::Fresh;
    scene.gives(&[(20, "os"), (30, "os"), (31, "os")]);
    scene.threads.get_mut(&20).unwrap().0.lifecycle = Lifecycle::Starting;
    scene.gives(&[(20, "os+"), (30, "os"), (31, "os")]);
    scene.set(10, 1.0);
    scene.gives(&[(10, "0+"), (20, "os+"), (30, "1"), (31, "1")]);
    scene.threads.get_mut(&20).unwrap().0.lifecycle = Lifecycle::Settled;
    let mut scene = scene.at(20, 0);
    assert!(scene.outcome().contains(&(20, "1+".to_owned())));
    assert!(scene.outcome().contains(&(10, "os+".to_owned())));
}

#[test]
fn reasons_give_the_numbers() {
    let mut scene = Scene::on(TWO).thread(10, 1.0).thread(20, 1.0).thread(21, 0.75);
    let reasons: Vec<_> = scene.place().into_values().map(|a| a.reason.into_owned()).collect();
    assert_eq!(
        reasons,
        [
            "serial phase: 1.00 ready threads (threshold 1.1); a core of its own",
            "parallel phase: 1.75 ready threads (threshold 1.1); shares CPU 1; serial threads have the other cores",
            "parallel phase: 1.75 ready threads (threshold 1.1); shares CPU 1; serial threads have the other cores",
        ]
    );
}

#[test]
fn nothing_is_done_before_anything_is_known() {
    let machine = Topology::synthetic(TWO).unwrap();
    let threads = vec![thread(0, 1, &machine.cpus()), thread(1, 2, &machine.cpus())];
    let sample = Sample { threads, ..Sample::default() };
    let (known, applied) = (Characterizations::new(), Placement::new());
    let view = View::new(&machine, &sample, &known, &applied);
    let placement = Phases::new(None).place(&view);
    assert!(placement.values().all(|a| *a == Assignment::os("not measured yet")));
}

fn scene() -> impl Strategy<Value = Scene> {
    let machine = prop::sample::select(&MACHINES[..]);
    let ready = prop_oneof![Just(0.0), Just(1.0), 0.0..=1.0];
    let threads = prop::collection::vec((0u32..5, ready, prop::option::of(0usize..5)), 0..14);
    (machine, threads).prop_map(|(machine, threads)| {
        let mut scene = Scene::on(machine);
        for (number, (program, ready, allowed)) in (0u32..).zip(threads) {
            let number = program * 100 + number;
            let mut new = thread(program, number, &scene.machine.cpus());
            if let Some(core) = allowed.and_then(|n| scene.machine.cores().get(n)) {
                new.allowed = core.cpus.clone().into();
            }
            scene.threads.insert(number, (new, ready));
        }
        scene
    })
}

proptest! {
    #[test]
    fn cores_given_away_are_kept_free(mut scene in scene()) {
        let placement = scene.place();
        let online = scene.machine.cpus();
        let cpus = |a: &Assignment| match &a.target {
            Target::Os => None,
            Target::Cpus(cpus) => Some(cpus.clone()),
        };
        let (serial, parallel): (Vec<_>, Vec<_>) = (placement.iter())
            .partition(|(_, a)| a.priority == BOOST && a.reason.starts_with("serial"));
        let mut given = CpuSet::new();
        for own in serial.iter().filter_map(|(_, a)| cpus(a)) {
            let core = scene.machine.core_of(own.first().unwrap()).unwrap();
            prop_assert!(own.is_subset(&core.cpus));
            prop_assert!(core.cpus.is_disjoint(&given));
            given = given.union(&core.cpus);
        }
        let rest = online.difference(&given);
        for (id, a) in parallel {
            let (t, _) = &scene.threads[&id.thread];
            match cpus(a) {
                Some(cpus) => prop_assert_eq!(cpus, t.allowed.intersection(&rest)),
                None if a.reason.starts_with("parallel") => prop_assert!(
                    given.is_empty() || t.allowed.is_disjoint(&rest)
                ),
                None => {}
            }
        }
    }

    #[test]
    fn the_same_view_gives_the_same_placement_again(mut scene in scene()) {
        // Turns pass with time alone.
        scene.policy = Phases::of(None, Duration::MAX, true);
        let first = scene.place();
        prop_assert_eq!(scene.place(), first);
    }
}
