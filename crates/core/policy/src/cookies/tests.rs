//! Repairs of placements by cookies.

use proptest::prelude::*;
use symbiont_counters::Characterizations;
use symbiont_machine::test_support::thread;
use symbiont_machine::{Program, ProgramId, Sample};

use super::*;
use crate::{Classes, Policy, Settings, find};

/// Threads on a machine, each of a cookie (0: none) and kept where it says.
struct Scene {
    machine: Topology,
    sample: Sample,
    placement: Placement,
}

impl Scene {
    fn new(machine: &str, threads: &[(u64, &str)]) -> Self {
        let machine = Topology::synthetic(machine).unwrap();
        let (mut sample, mut placement) = (Sample::default(), Placement::new());
        for (number, (cookie, cpus)) in (0u32..).zip(threads) {
            let mut one = thread(number, number, &machine.cpus());
            (one.state, one.cookie) = (RunState::Runnable, CoreCookie::new(*cookie));
            placement.insert(
                one.id,
                match *cpus {
                    "os" => Assignment::os("not kept"),
                    cpus => Assignment::on(cpus.parse().unwrap(), "a group"),
                },
            );
            sample.programs.push(Program::new(ProgramId(number), format!("p{number}")));
            sample.threads.push(one);
        }
        Self { machine, sample, placement }
    }

    fn parted(&self) -> Placement {
        let (did, applied) = (Characterizations::new(), Placement::new());
        let mut placement = self.placement.clone();
        part(&View::new(&self.machine, &self.sample, &did, &applied), &mut placement);
        placement
    }

    /// The target of each thread.
    fn targets(&self) -> Vec<String> {
        let name = |it: &Assignment| it.target.cpus().map_or("os".into(), ToString::to_string);
        self.parted().values().map(name).collect()
    }
}

const TWO_CORES: &str = "core:2 smt:2";

#[test]
fn threads_with_other_cookies_change_places() {
    let scene = Scene::new(TWO_CORES, &[(1, "0-1"), (2, "0-1"), (2, "2-3"), (1, "2-3")]);
    assert_eq!(scene.targets(), ["0-1", "2-3", "2-3", "0-1"]);
    let parted = scene.parted();
    let reasons: Vec<&str> = parted.values().map(|it| it.reason.as_ref()).collect();
    assert_eq!(reasons[0], "a group");
    assert_eq!(
        reasons[1],
        "other core-scheduling cookie than threads of the core that was chosen: a group"
    );
}

#[test]
fn having_none_is_another_cookie() {
    let scene = Scene::new(TWO_CORES, &[(0, "0"), (0, "2"), (7, "1")]);
    assert_eq!(scene.targets(), ["0", "0-1", "2-3"], "the two without one share a core");
}

#[test]
fn a_thread_for_which_no_core_is_left_is_left_to_the_os_with_the_reason() {
    let scene = Scene::new(TWO_CORES, &[(1, "0-1"), (2, "2-3"), (3, "2-3")]);
    assert_eq!(scene.targets(), ["0-1", "2-3", "os"]);
    let reason = scene.parted().values().last().unwrap().reason.to_string();
    assert!(reason.starts_with(OTHER_COOKIE), "{reason}");
}

#[test]
fn a_thread_goes_only_where_its_user_allows_it() {
    let mut scene = Scene::new("core:3 smt:2", &[(1, "0-1"), (1, "0-1"), (2, "0-1")]);
    scene.sample.threads[2].allowed = "0-1,4".parse::<CpuSet>().unwrap().into();
    assert_eq!(scene.targets(), ["0-1", "0-1", "4"]);
}

#[test]
fn a_core_is_for_the_cookie_of_a_thread_that_is_pinned_to_it() {
    let mut scene = Scene::new(TWO_CORES, &[(1, "0-1"), (1, "0-1"), (2, "os")]);
    scene.sample.threads[2].allowed = "1".parse::<CpuSet>().unwrap().into();
    assert_eq!(scene.targets(), ["2-3", "2-3", "os"]);
}

#[test]
fn a_core_without_conflict_stays_as_it_is() {
    let threads = [(1, "0-1"), (1, "2-3"), (1, "4-5"), (2, "4-5"), (2, "0-7"), (3, "os")];
    let scene = Scene::new("core:4 smt:2", &threads);
    assert_eq!(scene.targets(), ["0-1", "2-3", "6-7", "4-5", "0-7", "os"]);
}

#[test]
fn cores_without_siblings_take_any_cookie() {
    let scene = Scene::new("core:2", &[(1, "0"), (2, "0"), (3, "1")]);
    assert_eq!(scene.parted(), scene.placement);
    let hybrid = "core:1 smt:2 | core:1 kind:efficiency capacity:600";
    let scene = Scene::new(hybrid, &[(1, "0-1"), (2, "0-1")]);
    assert_eq!(scene.targets(), ["0-1", "2"]);
}

#[test]
fn what_was_predicted_of_other_co_runners_is_forgotten() {
    let mut scene = Scene::new(TWO_CORES, &[(1, "0-1"), (2, "0-1")]);
    scene.placement.values_mut().for_each(|it| it.predicted_slowdown = Some(1.2));
    assert!(scene.parted().values().all(|it| it.predicted_slowdown.is_none()));
}

#[test]
fn a_mask_that_held_a_thread_moves_along() {
    let mut scene = Scene::new(TWO_CORES, &[(1, "0-1"), (2, "0-1")]);
    scene.placement.values_mut().for_each(|it| *it = it.clone().held());
    let parted = scene.parted();
    assert!(parted.values().all(|it| it.mask == it.target), "{parted:?}");
}

/// Random pairs, dealt anew each quantum, on four cores of two hardware threads.
fn placed_at_random(cookies: &[u64], seed: u64, quanta: usize) -> Vec<(Scene, Placement)> {
    let threads: Vec<(u64, &str)> = cookies.iter().map(|cookie| (*cookie, "os")).collect();
    let scene = Scene::new("core:4 smt:2", &threads);
    let settings = Settings { seed, ..Settings::default() };
    let mut policy = Classes::new((find("random").unwrap().make)(&settings));
    let (did, mut applied) = (Characterizations::new(), Placement::new());
    let place = |_| {
        applied = policy.place(&View::new(&scene.machine, &scene.sample, &did, &applied));
        (Scene::new("core:4 smt:2", &threads), applied.clone())
    };
    (0..quanta).map(place).collect()
}

proptest! {
    #[test]
    fn where_cores_suffice_all_threads_are_kept(
        cookies in prop::collection::vec(0u64..4, 1..8),
        seed: u64,
    ) {
        let needs = |cookie: u64| cookies.iter().filter(|one| **one == cookie).count().div_ceil(2);
        let suffices = (0..4).map(needs).sum::<usize>() <= 4;
        for (scene, placement) in placed_at_random(&cookies, seed, 3) {
            let left = placement.values().filter(|it| it.target.is_os()).count();
            prop_assert!(!suffices || left == 0, "{cookies:?} {placement:?}");
            prop_assert!(suffices || left < cookies.len());
            for core in scene.machine.cores() {
                let here = scene.sample.threads.iter().filter(|thread| {
                    placement[&thread.id].target.cpus().is_some_and(|cpus| cpus.is_subset(&core.cpus))
                });
                let here: Vec<Cookie> = here.map(|thread| thread.cookie).collect();
                prop_assert!(here.len() <= 2 && here.windows(2).all(|two| two[0] == two[1]));
            }
        }
    }

    #[test]
    fn equal_cookies_change_nothing(
        cookie in 0u64..2,
        on in prop::collection::vec(prop::sample::select(vec!["0", "0-1", "2-3", "0-3", "os"]), 0..8),
    ) {
        let threads: Vec<(u64, &str)> = on.into_iter().map(|cpus| (cookie, cpus)).collect();
        let scene = Scene::new(TWO_CORES, &threads);
        prop_assert_eq!(scene.parted(), scene.placement);
    }
}

/// Negative control of the property over all policies: without the repair, pairs have two cookies.
#[test]
fn policies_themselves_know_no_cookies() {
    let scene = Scene::new(TWO_CORES, &[(1, "os"), (2, "os"), (1, "os"), (2, "os")]);
    let (did, applied) = (Characterizations::new(), Placement::new());
    let view = View::new(&scene.machine, &scene.sample, &did, &applied);
    let mixed = |seed: u64| {
        let settings = Settings { seed, ..Settings::default() };
        let placement = (find("random").unwrap().make)(&settings).place(&view);
        let core = |at: usize| {
            core_of(&scene.machine, placement[&scene.sample.threads[at].id].target.cpus()?)
        };
        core(0) == core(1) || core(0) == core(3)
    };
    assert!((0..10).any(mixed));
}
