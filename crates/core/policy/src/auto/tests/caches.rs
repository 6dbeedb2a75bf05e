//! Last-level caches of unequal size.

use super::*;

const X3D: &str = "llc:1 core:4 smt:2 cache:96M | llc:1 core:4 smt:2 cache:32M";
const EQUAL: &str = "llc:2 core:4 smt:2 cache:32M";
const COUNTED: [Signal; 3] = [Signal::RunStates, Signal::Ipc, Signal::CacheMisses];
const QUANTA: usize = 400;

/// Eight programs of one thread, two of which on the second domain have these misses on the two domains; gives the
/// scene, and them.
fn scene(line: &str, signals: &[Signal], misses: [f64; 2]) -> (Scene, Vec<u32>) {
    let mut scene = Scene::on(line, signals).with((0..8).map(|program| 10 * program)).run(3);
    let mut missing: Vec<u32> =
        on_first(&scene).into_iter().filter_map(|(n, is)| (!is).then_some(n)).collect();
    missing.truncate(2);
    for number in &missing {
        scene.actor(*number).misses = misses;
    }
    (scene, missing)
}

/// Is each thread in the first domain?
fn on_first(scene: &Scene) -> BTreeMap<u32, bool> {
    let is_first = |actor: &Actor| {
        let llc = scene.machine.llc_of(actor.sample.cpu.unwrap()).unwrap();
        llc.id.0 == 0
    };
    scene.actors.iter().map(|(number, actor)| (*number, is_first(actor))).collect()
}

fn moved(scene: &Scene) -> f64 {
    let findings = scene.policy.findings();
    let name = "auto: programs moved to another domain";
    findings.iter().find(|finding| finding.name == name).unwrap().value
}

#[test]
fn programs_that_miss_in_the_smaller_cache_go_to_the_larger_one() {
    let (scene, missing) = scene(X3D, &COUNTED, [0.001, 0.003]);
    let scene = scene.run(QUANTA);
    let first = on_first(&scene);
    for number in &missing {
        assert!(first[number], "{first:?}");
        let reason = &scene.assignment(*number).reason;
        assert!(reason.contains("misses in the 32 MiB cache: the larger one, 96 MiB"), "{reason}");
    }
    assert_eq!(first.values().filter(|is_first| **is_first).count(), 4, "{first:?}");
    assert_eq!(moved(&scene), 4.0, "each changes places with one that misses little, once");
    let others = first.iter().filter(|(_, is_first)| !**is_first);
    for (number, _) in others {
        let reason = &scene.assignment(*number).reason;
        assert!(reason.contains("its program misses little in the 32 MiB cache"), "{reason}");
    }
}

/// Negative controls: equal caches; a program that streams; misses that are not counted; no misses.
#[test]
fn without_misses_that_a_larger_cache_avoids_no_program_moves() {
    let streams = [0.003, 0.003];
    let (small, fits) = ([0.0002, 0.0003], [0.001, 0.003]);
    for (line, signals, misses) in
        [(EQUAL, &COUNTED[..], fits), (X3D, &COUNTED[..2], fits), (X3D, &COUNTED[..], small)]
    {
        let (scene, missing) = scene(line, signals, misses);
        let scene = scene.run(QUANTA);
        assert_eq!(moved(&scene), 0.0, "{line} {misses:?}");
        assert!(missing.iter().all(|number| !on_first(&scene)[number]));
    }
    // What streams is tried in the larger cache once.
    let (scene, missing) = scene(X3D, &COUNTED, streams);
    let scene = scene.run(QUANTA);
    assert_eq!(moved(&scene), 4.0);
    let reason = &scene.assignment(missing[0]).reason;
    assert!(reason.contains("and as much in the larger one, 96 MiB"), "{reason}");
}

/// What is not known is tried: each program that misses is sent to the larger cache once. Then equal quanta move none.
#[test]
fn programs_that_miss_alike_are_tried_once() {
    let (mut scene, _) = scene(X3D, &COUNTED, [0.0; 2]);
    for number in (0..8).map(|program| 10 * program) {
        scene.actor(number).misses = [0.002, 0.002];
    }
    let scene = scene.run(QUANTA);
    assert_eq!(moved(&scene), 8.0);
    let before = on_first(&scene);
    let scene = scene.run(2 * QUANTA);
    assert_eq!((moved(&scene), on_first(&scene)), (8.0, before));
}

#[test]
fn the_choice_names_the_caches_and_whether_misses_can_be_counted() {
    let choice = |signals: &[Signal]| {
        let scene = Scene::on(X3D, signals);
        let asks = scene.policy.requirements().optional.contains(&Signal::CacheMisses);
        (scene.policy.choice().unwrap(), asks)
    };
    let (counted, asks) = choice(&COUNTED);
    let sizes = "2 domains of cores, caches of unequal size (96 MiB and 32 MiB)";
    let expected = "programs that miss in a smaller one go to a larger one";
    assert!(asks && counted.contains(&format!("{sizes}: {expected}")), "{counted}");
    let (not, asks) = choice(&COUNTED[..2]);
    assert!(
        !asks && not.contains(&format!("{sizes}, treated alike: cache misses cannot be")),
        "{not}"
    );
    let equal = Scene::on(EQUAL, &COUNTED).policy;
    assert!(!equal.requirements().optional.contains(&Signal::CacheMisses));
    assert!(!equal.choice().unwrap().contains("unequal"));
}
