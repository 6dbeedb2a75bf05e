//! Placements that pay or not, and CPUs with unmanaged load.

use super::*;

/// In which seconds of a run thread 0, which runs for so much of its time placed and for all of it
/// otherwise, is left to the OS.
fn free_seconds(placed: f64, seconds: usize, others: impl Fn(bool) -> f64) -> Vec<usize> {
    let mut scene = Scene::on("core:2 smt:2", &NO_COUNTERS).with([0, 10, 20]);
    let mut free = Vec::new();
    for second in 0..seconds {
        let mut whole = true;
        for _ in 0..10 {
            scene.step();
            let is_free = scene.assignment(0).target == Target::Os;
            whole &= is_free;
            scene.actor(0).running = if is_free { 1.0 } else { placed };
            for other in [10, 20] {
                scene.actor(other).running = others(is_free);
            }
        }
        free.extend(whole.then_some(second));
    }
    free
}

#[test]
fn a_placement_that_does_not_pay_is_released() {
    let free = free_seconds(0.9, 130, |_| 1.0);
    let lengths: Vec<usize> = free.chunk_by(|a, b| a + 1 == *b).map(<[usize]>::len).collect();
    assert!(lengths.len() >= 3, "{free:?}");
    let long: Vec<usize> = lengths.into_iter().filter(|length| *length > 2).collect();
    assert!(
        long.windows(2).all(|pair| pair[0] < pair[1]) && long.len() >= 3,
        "longer each time: {long:?}"
    );
}

#[test]
fn a_placement_that_pays_is_kept() {
    let free = free_seconds(1.0, 120, |_| 1.0);
    assert!(free.len() <= 6, "only trials: {free:?}");
}

/// What one loses the others gain, and more.
#[test]
fn a_placement_that_pays_for_all_together_is_kept() {
    let free = free_seconds(0.9, 120, |free| if free { 0.8 } else { 0.95 });
    assert!(free.len() <= 6, "only trials: {free:?}");
}

/// As in a dry run.
#[test]
fn where_nothing_is_applied_nothing_is_tried() {
    let trials = |applies: bool| {
        let mut scene = Scene::on("core:2 smt:2", &NO_COUNTERS).with([0, 10, 20]);
        for _ in 0..300 {
            scene.step();
            if !applies {
                scene.applied.clear();
            }
        }
        scene.policy.pays.trials
    };
    assert!(trials(true) > 0);
    assert_eq!(trials(false), 0);
}

#[test]
fn cpus_with_unmanaged_load_are_avoided() {
    let mut scene = Scene::on("core:3 smt:2", &NO_COUNTERS).with([0, 10, 20]);
    let shared = [PuId(0), PuId(1)];
    let mut used = Vec::new();
    for _ in 0..300 {
        scene.step();
        let on = |actor: &Actor| actor.sample.cpu.is_some_and(|cpu| shared.contains(&cpu));
        used.push(scene.actors.values().any(on));
        for actor in scene.actors.values_mut() {
            actor.running = if on(actor) { 0.5 } else { 1.0 };
        }
    }
    let first = used.iter().position(|used| !used).expect("the core is avoided");
    assert!(first < 10, "within a second: {first}");
    assert!(used[first..first + 50].iter().all(|used| !used), "for five seconds");
    let again = used[first..].iter().filter(|used| **used).count();
    assert!((1..60).contains(&again), "tried again, for a while: {again}");
    let found = scene.policy.findings();
    let found = found.iter().find(|f| f.name == "auto: CPUs found shared with unmanaged load");
    assert!(found.unwrap().value >= 2.0);
}

/// Negative control: where managed threads wait for each other, no CPU is suspected.
#[test]
fn threads_that_wait_for_managed_ones_suspect_no_cpu() {
    let mut scene = Scene::on("core:2 smt:2", &NO_COUNTERS).with((0..8).map(|p| 10 * p));
    scene.actors.values_mut().for_each(|actor| actor.running = 0.5);
    let scene = scene.run(100);
    assert_eq!(scene.policy.unmanaged.found, 0);
}

#[test]
fn with_no_room_to_avoid_cpus_threads_are_not_kept_on_cores() {
    let mut scene = Scene::on("core:2 smt:2", &NO_COUNTERS).with((0..4).map(|p| 10 * p));
    scene.step();
    for actor in scene.actors.values_mut() {
        actor.running = 0.6;
    }
    let scene = scene.run(10);
    assert!(scene.assignment(0).reason.contains("too many CPUs are shared"), "{:?}", scene.applied);
    assert!(scene.places().iter().all(|(_, place)| place == "os"));
}
