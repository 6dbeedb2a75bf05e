use proptest::prelude::*;

use crate::tests::MACHINES;

use super::*;

/// Programs of one thread.
fn singles(count: u32) -> impl Iterator<Item = u32> {
    (0..count).map(|program| 10 * program)
}

/// Number of the domain, by LLC, of each thread.
fn llcs(scene: &Scene) -> BTreeMap<u32, u32> {
    let llc = |core: CoreId| scene.machine.core(core).unwrap().llc.0;
    scene.cores().into_iter().map(|(number, core)| (number, llc(core))).collect()
}

#[test]
fn programs_stay_in_domains_and_groups_in_cores() {
    for line in ["llc:2 core:2 smt:2", "package:2 core:2 smt:2"] {
        // Four programs of two threads each, as many threads as hardware threads.
        let scene = Scene::on(line, &COUNTED).with((0..4).flat_map(|p| [10 * p, 10 * p + 1]));
        let scene = scene.run(20);
        let llcs = llcs(&scene);
        let homes: Vec<u32> = (0..4).map(|program| llcs[&(10 * program)]).collect();
        for program in 0..4 {
            assert_eq!(llcs[&(10 * program)], llcs[&(10 * program + 1)], "{line}");
        }
        assert_eq!(homes.iter().filter(|home| **home == 0).count(), 2, "{line}: {homes:?}");
        for core in scene.machine.cores() {
            let there = scene.cores().into_values().filter(|its| *its == core.id).count();
            assert_eq!(there, 2, "{line}");
        }
    }
}

#[test]
fn four_threads_share_a_core_of_smt4() {
    let scene = Scene::on("core:2 smt:4", &COUNTED).with(singles(8)).run(3);
    for core in scene.machine.cores() {
        let on = |(_, its): &(u32, CoreId)| *its == core.id;
        let there: Vec<(u32, CoreId)> = scene.cores().into_iter().filter(on).collect();
        assert_eq!(there.len(), 4);
    }
}

#[test]
fn without_counters_copies_are_parted() {
    let scene = Scene::on("core:2 smt:2", &NO_COUNTERS).with([0, 1, 10, 11]).run(3);
    let cores = scene.cores();
    assert!(cores[&0] != cores[&1] && cores[&10] != cores[&11], "{cores:?}");
    assert!(scene.assignment(0).reason.contains("never-twice: no other thread of 'p0'"));
}

#[test]
fn without_smt_only_serial_phases_are_placed() {
    Scene::on("core:2", &COUNTED).with([0, 10]).run(3).gives(&[(0, "os"), (10, "os")]);
    let scene = Scene::on("core:2", &COUNTED).with([0, 10, 11, 12]).run(3);
    scene.gives(&[(0, "0+"), (10, "1"), (11, "1"), (12, "1")]);
    assert!(scene.assignment(0).reason.starts_with("phases: serial phase"));
}

#[test]
fn a_serial_thread_gets_a_core_with_groups() {
    let parallel = [10, 11, 12, 13, 14, 15];
    let scene = Scene::on("core:4 smt:2", &COUNTED).with([0]).with(parallel).run(3);
    let cores = scene.cores();
    assert!(parallel.iter().all(|number| cores[number] != cores[&0]), "{cores:?}");
    // One ready thread on each of the six others: the least.
    assert_eq!(scene.assignment(0).priority, Priority::Boosted(3));
    assert!(scene.assignment(10).reason.contains("next to cores of serial threads"));
}

#[test]
fn fast_cores_of_a_hybrid_machine_are_taken_first() {
    let hybrid = "core:2 smt:2 | core:4 kind:efficiency capacity:600";
    let capacities = |scene: &Scene| -> Vec<u32> {
        scene.cores().values().map(|core| scene.machine.core(*core).unwrap().capacity).collect()
    };
    let few = Scene::on(hybrid, &COUNTED).with(singles(2)).run(3);
    assert_eq!(capacities(&few), [1024, 1024]);
    // A thread for each hardware thread: two on each fast core, one on each slow one.
    let all = Scene::on(hybrid, &COUNTED).with(singles(8)).run(3);
    let fast = all.places().iter().filter(|(_, cpus)| !cpus.contains(['4', '5', '6', '7'])).count();
    assert_eq!(fast, 4, "{:?}", all.places());
}

#[test]
fn a_part_of_a_machine_that_all_programs_are_held_to_is_the_machine() {
    let mut scene = Scene::on("package:2 core:4 smt:2", &COUNTED).with(singles(4));
    let part: CpuSet = "0-1,8-9".parse().unwrap();
    for actor in scene.actors.values_mut() {
        actor.sample.allowed = part.clone().into();
    }
    let scene = scene.run(3);
    let cores: BTreeSet<CoreId> = scene.cores().into_values().collect();
    assert_eq!(cores.len(), 2, "two on each package's core: {:?}", scene.places());
    assert!(scene.assignment(0).reason.starts_with("NUMA node"));
}

/// Two packages of 160 cores of SMT4: more CPUs than older kernels and libraries have in a set.
#[test]
fn a_machine_of_more_than_1024_cpus_is_used_whole() {
    let scene = Scene::on("package:2 core:160 smt:4", &COUNTED).with(singles(320)).run(2);
    let cores: BTreeSet<CoreId> = scene.cores().into_values().collect();
    assert_eq!(cores.len(), 320, "a thread on each core");
    let beyond = |place: &str| {
        let cpus: CpuSet = place.trim_end_matches('+').parse().unwrap();
        cpus.iter().any(|cpu| cpu.0 > 1023)
    };
    assert_eq!(scene.places().iter().filter(|(_, place)| beyond(place)).count(), 64);
}

#[test]
fn more_ready_threads_than_cpus_are_not_grouped() {
    let scene = Scene::on("core:2 smt:2", &COUNTED).with(singles(6)).run(3);
    assert!(scene.places().iter().all(|(_, place)| place == "os"), "{:?}", scene.places());
    assert!(scene.assignment(0).reason.ends_with("no groups on a core"));
}

#[test]
fn a_thread_that_wakes_and_sleeps_is_not_kept_on_a_core() {
    let mut scene = Scene::on("core:2 smt:2", &COUNTED).with(singles(3));
    scene.actor(20).ready = 0.4;
    let scene = scene.run(3);
    assert_eq!(scene.assignment(20).target, Target::Os);
    let reason = &scene.assignment(20).reason;
    // It may share CPUs with others all the same, of which one may be left.
    assert!(reason.ends_with("ready for 0.40 of its time: in no group"), "{reason}");
    assert_ne!(scene.assignment(0).target, Target::Os);
}

#[test]
fn equal_quanta_move_no_thread() {
    // Elsewhere serial threads take turns on the fastest core.
    for line in MACHINES.into_iter().filter(|line| *line != "core:1 | core:7 capacity:512") {
        let machine = Topology::synthetic(line).unwrap();
        let mut scene = Scene::on(line, &NO_COUNTERS).with(singles(machine.cpus().len() as u32));
        for _ in 0..20 {
            scene.step();
        }
        let before = scene.places();
        for _ in 0..40 {
            scene.step();
            assert_eq!(scene.places(), before, "{line}");
        }
    }
}

#[test]
fn what_is_learned_moves_threads_less_and_less() {
    let mut scene = Scene::on("core:4 smt:2", &COUNTED).with(singles(8)).run(1);
    let mut moved = |quanta: u32| {
        let mut all = 0;
        for _ in 0..quanta {
            let before = scene.places();
            scene.step();
            // Programs are left to the OS now and then, to compare.
            let is_moved = |(was, is): (&(u32, String), &(u32, String))| {
                was != is && was.1 != "os" && is.1 != "os"
            };
            all += before.iter().zip(&scene.places()).filter(|both| is_moved(*both)).count();
        }
        all
    };
    let (first, last) = (moved(60), {
        moved(60);
        moved(60)
    });
    assert!(first > 20 && last < first / 5, "{first} {last}");
}

proptest! {
    /// What the list of properties asks for, with counters and over many quanta, trials included.
    #[test]
    fn whatever_happens_targets_are_allowed_and_each_thread_has_a_reason(
        line in prop::sample::select(&MACHINES[..]),
        offers in prop::sample::select(vec![&COUNTED[..], &NO_COUNTERS[..], &Signal::ALL[..]]),
        quanta in prop::collection::vec(
            prop::collection::vec((0u32..60, 0.0..=1.0, 0.0..=1.0, 0u32..10, any::<bool>()), 0..10),
            1..30,
        ),
    ) {
        let mut scene = Scene::on(line, offers);
        scene.over = Duration::from_secs(1);
        let online = scene.machine.cpus();
        for changes in quanta {
            for (number, ready, running, allowed, leaves) in changes {
                if leaves {
                    scene.actors.remove(&number);
                    continue;
                }
                let mut new = scene.actors.remove(&number).unwrap_or_else(|| {
                    let sample = thread(number / 10, number, &online);
                    Actor { sample, ready, running, misses: [0.0; 2] }
                });
                let awake = ready > 0.3;
                new.sample.state = if awake { RunState::Runnable } else { RunState::Sleeping };
                (new.ready, new.running) = (ready, running * ready);
                if allowed < 3 {
                    new.sample.allowed = CpuSet::from(PuId(allowed)).into();
                }
                new.sample.cpu = scene.emptiest(&online);
                scene.actors.insert(number, new);
            }
            scene.step();
            let named: Vec<u32> = scene.applied.keys().map(|id| id.thread).collect();
            prop_assert_eq!(named, scene.actors.keys().copied().collect::<Vec<_>>());
            for (id, assignment) in &scene.applied {
                let allowed = scene.actors[&id.thread].sample.allowed.intersection(&online);
                if let Target::Cpus(cpus) = &assignment.target {
                    prop_assert!(!cpus.is_empty() && cpus.is_subset(&allowed), "{assignment:?}");
                }
                prop_assert!(!assignment.reason.is_empty());
            }
        }
    }
}
