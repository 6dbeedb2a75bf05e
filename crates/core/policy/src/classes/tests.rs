//! Which program has cores for itself, and what the others keep away from.

use proptest::prelude::*;
use symbiont_counters::{Characterization, Characterizations};
use symbiont_machine::test_support::thread;
use symbiont_machine::{Program, Sample};

use super::*;
use crate::{NeverTwice, Random, Stay};

/// Programs of these classes with so many busy threads each.
struct Scene {
    machine: Topology,
    sample: Sample,
    did: Characterizations,
}

impl Scene {
    fn new(machine: &str, programs: &[(Class, u32)]) -> Self {
        let machine = Topology::synthetic(machine).unwrap();
        let online = machine.cpus();
        let mut sample = Sample::default();
        for (program, (class, threads)) in (0u32..).zip(programs) {
            let named = Program::new(ProgramId(program), format!("p{program}"));
            sample.programs.push(Program { class: *class, ..named });
            let numbers = (0..*threads).map(|n| 100 * program + n);
            sample.threads.extend(numbers.map(|number| thread(program, number, &online)));
        }
        let mut scene = Self { machine, sample, did: Characterizations::new() };
        scene.all_ready(|_| true);
        scene
    }

    /// Threads of these programs are ready all the time, the others sleep.
    fn all_ready(&mut self, is_ready: impl Fn(u32) -> bool) {
        let over = std::time::Duration::from_millis(100);
        for thread in &mut self.sample.threads {
            let ready = if is_ready(thread.program.0) { 1.0 } else { 0.0 };
            thread.state = if ready > 0.0 { RunState::Runnable } else { RunState::Sleeping };
            let did = Characterization { over, ready, running: ready, switches: 1, migrated: None };
            self.did.insert(thread.id, did);
        }
    }

    fn place(&self, policy: &mut dyn Policy) -> Placement {
        let none = Placement::new();
        policy.place(&View::new(&self.machine, &self.sample, &self.did, &none))
    }

    /// Where the threads of a program may run.
    fn cpus(&self, placement: &Placement, program: u32) -> CpuSet {
        let threads = self.sample.threads.iter().filter(|t| t.program.0 == program);
        let targets = threads.map(|thread| match &placement[&thread.id].target {
            Target::Cpus(cpus) => cpus.clone(),
            Target::Os => self.machine.cpus(),
        });
        targets.fold(CpuSet::new(), |all, cpus| all.union(&cpus))
    }
}

fn classes(inner: impl Policy + 'static) -> Classes {
    Classes::new(Box::new(inner))
}

const FOUR_CORES_SMT2: &str = "core:4 smt:2";

#[test]
fn what_the_policy_chose_is_passed_on() {
    let mut auto = classes(crate::Auto::new(&crate::Settings::default()));
    let machine = Topology::synthetic(FOUR_CORES_SMT2).unwrap();
    auto.offer(&symbiont_machine::test_support::full_support(), &machine);
    assert!(auto.choice().is_some_and(|choice| choice.contains("serial phases")));
    assert_eq!(classes(Stay).choice(), None);
}

#[test]
fn a_latency_program_has_one_core_and_the_rest_keeps_off() {
    let scene = Scene::new(FOUR_CORES_SMT2, &[(Class::Latency, 1), (Class::Normal, 6)]);
    let placement = scene.place(&mut classes(Stay));
    let own = scene.cpus(&placement, 0);
    assert_eq!(own.len(), 2, "a core with its sibling: {own}");
    assert_eq!(scene.cpus(&placement, 1), scene.machine.cpus().difference(&own));
}

#[test]
fn a_program_gets_as_many_cores_as_it_has_ready_threads_up_to_half() {
    for (threads, cores) in [(1, 1), (2, 2), (5, 2)] {
        let scene = Scene::new(FOUR_CORES_SMT2, &[(Class::Latency, threads), (Class::Normal, 2)]);
        let placement = scene.place(&mut classes(Stay));
        assert_eq!(scene.cpus(&placement, 0).len(), 2 * cores, "{threads} ready");
    }
}

#[test]
fn a_measured_program_leaves_siblings_empty() {
    let scene = Scene::new(FOUR_CORES_SMT2, &[(Class::Alone, 2), (Class::Normal, 6)]);
    let placement = scene.place(&mut classes(Stay));
    let own = scene.cpus(&placement, 0);
    assert_eq!(own.len(), 2);
    let cores: BTreeSet<_> = own.iter().map(|pu| scene.machine.core_of(pu).unwrap().id).collect();
    assert_eq!(cores.len(), 2, "one hardware thread of each core");
    for core in cores {
        let others = scene.cpus(&placement, 1);
        assert!(others.is_disjoint(&scene.machine.core(core).unwrap().cpus));
    }
}

#[test]
fn cores_stay_granted_while_their_program_sleeps() {
    let mut scene = Scene::new(FOUR_CORES_SMT2, &[(Class::Latency, 2), (Class::Normal, 6)]);
    let mut policy = classes(Stay);
    let awake = scene.cpus(&scene.place(&mut policy), 0);
    scene.all_ready(|program| program != 0);
    for _ in 0..LONG {
        assert_eq!(scene.cpus(&scene.place(&mut policy), 0), awake);
    }
    for _ in 0..3 * LONG {
        scene.place(&mut policy);
    }
    let asleep = scene.cpus(&scene.place(&mut policy), 0);
    assert!(asleep.len() == 2 && asleep.is_subset(&awake), "the first core is kept: {asleep}");
}

#[test]
fn a_program_for_which_no_core_is_left_is_placed_by_the_policy_with_the_reason() {
    let programs = [(Class::Latency, 2), (Class::Alone, 1), (Class::Normal, 1)];
    let scene = Scene::new(FOUR_CORES_SMT2, &programs);
    let mut policy = classes(Stay);
    let placement = scene.place(&mut policy);
    let measured = scene.sample.threads.iter().find(|t| t.program.0 == 1).unwrap();
    let reason = placement[&measured.id].reason.to_string();
    assert!(reason.contains("2 of 4 cores are kept for other programs"), "{reason}");
    assert!(scene.cpus(&placement, 1).is_disjoint(&scene.cpus(&placement, 0)));
    let one = Topology::synthetic("core:1 smt:2").unwrap();
    assert_eq!(room_for_one(&one, &one.cpus(), 0), Err(NoCore::TooFew { usable: 1 }));
    let two = Topology::synthetic("core:2").unwrap();
    assert_eq!(room_for_one(&two, &two.cpus(), 0), Ok(()));
    let taken = NoCore::Taken { usable: 2, granted: 1 };
    assert_eq!(room_for_one(&two, &two.cpus(), 1), Err(taken));
    assert_eq!(room_for_one(&two, &two.cpus(), 2), Err(taken), "one of both waits, too");
    assert_eq!(
        room_for_one(&two, &"0".parse().unwrap(), 0),
        Err(NoCore::TooFew { usable: 1 }),
        "a user's mask counts"
    );
}

#[test]
fn a_thread_that_its_user_pinned_to_a_granted_core_stays_there_and_says_so() {
    let mut scene = Scene::new(FOUR_CORES_SMT2, &[(Class::Latency, 1), (Class::Normal, 1)]);
    let mut policy = classes(Stay);
    let own = scene.cpus(&scene.place(&mut policy), 0);
    scene.sample.threads[1].allowed = own.clone().into();
    let placement = scene.place(&mut policy);
    let pinned = &placement[&scene.sample.threads[1].id];
    assert_eq!(pinned.target, Target::Os);
    assert!(pinned.reason.contains("it may only use cores"), "{}", pinned.reason);
}

#[test]
fn batch_programs_run_when_no_other_thread_wants_the_cpu() {
    let scene = Scene::new(FOUR_CORES_SMT2, &[(Class::Batch, 2), (Class::Normal, 2)]);
    let placement = scene.place(&mut classes(Stay));
    for thread in &scene.sample.threads {
        let waits = placement[&thread.id].priority == Priority::Idle;
        assert_eq!(waits, thread.program.0 == 0);
    }
}

#[test]
fn cores_are_free_again_when_their_program_has_ended() {
    let mut scene = Scene::new(FOUR_CORES_SMT2, &[(Class::Latency, 1), (Class::Normal, 6)]);
    let mut policy = classes(Stay);
    scene.place(&mut policy);
    scene.sample.threads.retain(|thread| thread.program.0 == 1);
    scene.sample.programs.remove(0);
    assert_eq!(scene.cpus(&scene.place(&mut policy), 1), scene.machine.cpus());
}

fn any_class() -> impl Strategy<Value = Class> {
    prop::sample::select(vec![Class::Normal, Class::Latency, Class::Batch, Class::Alone])
}

fn any_machine() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["core:1 smt:2", "core:2", "core:4 smt:2", "node:2 core:3 smt:4"])
}

proptest! {
    #[test]
    fn granted_cores_hold_nothing_else(
        machine in any_machine(),
        programs in prop::collection::vec((any_class(), 0u32..4), 1..6),
        seed: u64,
        awake: [bool; 6],
    ) {
        let mut scene = Scene::new(machine, &programs);
        let mut policy = classes(Random::new(seed));
        scene.place(&mut policy);
        scene.all_ready(|program| awake[program as usize]);
        let placement = scene.place(&mut policy);
        for (id, grant) in &policy.grants {
            let kept = cpus_of(&scene.machine, grant.cores.iter().copied());
            for other in (0..).take(programs.len()).filter(|other| *other != id.0) {
                if scene.sample.threads.iter().any(|thread| thread.program.0 == other) {
                    prop_assert!(scene.cpus(&placement, other).is_disjoint(&kept));
                }
            }
        }
    }

    #[test]
    fn without_classes_nothing_changes(
        machine in any_machine(),
        threads in prop::collection::vec(0u32..4, 1..6),
    ) {
        let programs: Vec<_> = threads.into_iter().map(|count| (Class::Normal, count)).collect();
        let scene = Scene::new(machine, &programs);
        let (mut alone, mut wrapped) = (NeverTwice, classes(NeverTwice));
        for _ in 0..3 {
            prop_assert_eq!(scene.place(&mut alone), scene.place(&mut wrapped));
        }
    }
}

#[test]
fn under_a_scheduler_no_thread_is_held() {
    let programs = [(Class::Latency, 1), (Class::Batch, 6), (Class::Normal, 2)];
    let scene = Scene::new(FOUR_CORES_SMT2, &programs);
    let full = symbiont_machine::test_support::full_support();
    let scheduled = Support { scheduler: symbiont_machine::Ability::Full, ..full.clone() };
    let mut policy = classes(Stay);
    policy.offer(&scheduled, &scene.machine);
    let placement = scene.place(&mut policy);
    assert!(placement.values().all(|assignment| !assignment.is_held()), "{placement:?}");
    assert!(placement.values().all(|assignment| assignment.priority == Priority::Normal));
    assert_eq!(scene.cpus(&placement, 0).len(), 2, "its core");
    assert_eq!(scene.cpus(&placement, 1), scene.machine.cpus(), "others may use it, too");
    // The scheduler is gone: the core is reserved again.
    policy.offer(&full, &scene.machine);
    let placement = scene.place(&mut policy);
    assert!(scene.cpus(&placement, 1).is_disjoint(&scene.cpus(&placement, 0)));
}
