use symbiont_machine::test_support::thread;
use symbiont_topology::{CoreKind, CpuSet};

use super::*;

fn id(at: u32) -> ThreadId {
    thread(at, at, &CpuSet::default()).id
}

fn enter(known: &mut Knowledge, threads: impl IntoIterator<Item = u32>) {
    let origin = |at: u32| (id(at), (format!("program-{at}"), CoreKind::default()));
    known.enter(&threads.into_iter().map(origin).collect::<Vec<_>>());
}

/// Two threads of a core.
fn pair(known: &mut Knowledge, ln_ipc: [(u32, f64); 2]) {
    let ran = |(at, ln_ipc): (u32, f64)| Ran { thread: id(at), share: 1.0, ln_ipc: Some(ln_ipc) };
    known.learn(&[ln_ipc.map(ran).to_vec()]);
}

/// Known together for some time.
fn two() -> Knowledge {
    let mut known = Knowledge::default();
    enter(&mut known, 0..2);
    for quantum in 0..60 {
        let noise = 0.02 * f64::from(quantum % 3 - 1);
        pair(&mut known, [(0, 0.3 + noise), (1, -0.2 - noise)]);
    }
    known
}

#[test]
fn noise_is_estimated_though_shares_of_time_differ() {
    let mut known = Knowledge::default();
    enter(&mut known, 0..2);
    for quantum in 0..400 {
        let noise = [0.05, -0.05][quantum % 2];
        let share = 1.0 - (quantum % 7) as f64 / 1000.0;
        let ran = |at| Ran { thread: id(at), share, ln_ipc: Some(noise) };
        known.learn(&[vec![ran(0), ran(1)]]);
    }
    let noise = known.noise(id(0)).sqrt();
    assert!(noise > 0.06 && noise < 0.08, "{noise}");
}

#[test]
fn programs_of_many_threads_are_learned() {
    let mut known = Knowledge::default();
    let program = |at: u32| if at < 20 { "a" } else { ["b", "c"][at as usize % 2] };
    let here = |at: u32| (id(at), (program(at).to_owned(), CoreKind::default()));
    known.enter(&(0..40).map(here).collect::<Vec<_>>());
    for quantum in 0..40 {
        let core = |at: u32| {
            let other = 20 + (at + quantum) % 20;
            let slower = if program(other) == "b" { 0.3 } else { 0.2 };
            let ran = |at, ln_ipc| Ran { thread: id(at), share: 1.0, ln_ipc: Some(ln_ipc) };
            vec![ran(at, f64::from(at) * 0.1 - slower), ran(other, 0.0)]
        };
        known.learn(&(0..20).map(core).collect::<Vec<_>>());
    }
    let [a, b, c] = [0, 20, 21].map(|at| known.kind(id(at)).unwrap());
    let kinds = [b, c].map(|kind| (kind, known.unmet(kind)));
    let [against_c, itself] = known.one_ways(a, Some(c), &kinds)[..] else { panic!("two") };
    assert!(against_c.contrast < 1e-4 && itself.contrast < 1e-12, "{against_c:?} {itself:?}");
    let never_met = known.one_ways(b, Some(c), &kinds);
    assert!(never_met[0].contrast > 1e-4 && never_met[1].contrast == 0.0, "{never_met:?}");
    let difference = known.next_to(a, b).0.mean - known.next_to(a, c).0.mean;
    assert!((difference + 0.1).abs() < 0.01, "{difference}");
}

#[test]
fn one_odd_quantum_changes_nothing() {
    let mut known = two();
    let kinds = [0, 1].map(|at| known.kind(id(at)));
    let before = known.next_to(kinds[0].unwrap(), kinds[1].unwrap());
    pair(&mut known, [(0, -2.0), (1, -0.2)]);
    let after = known.next_to(kinds[0].unwrap(), kinds[1].unwrap());
    assert!((before.0.mean - after.0.mean).abs() < 1e-9);
    pair(&mut known, [(0, 0.3), (1, -0.2)]);
    pair(&mut known, [(0, -2.0), (1, -0.2)]);
    assert_eq!([0, 1].map(|at| known.kind(id(at))), kinds);
    assert_eq!(known.changes(), 0);
}

#[test]
fn a_new_phase_is_a_new_kind_and_an_old_one_is_known_again() {
    let mut known = two();
    let first = [0, 1].map(|at| known.kind(id(at)));
    // The other one loses by it, but less: it is still what it was.
    (0..20).for_each(|_| pair(&mut known, [(0, -0.9), (1, -0.6)]));
    let second = [0, 1].map(|at| known.kind(id(at)));
    assert_ne!(second[0], first[0]);
    assert_eq!((second[1], known.changes()), (first[1], 1));
    (0..20).for_each(|_| pair(&mut known, [(0, 0.3), (1, -0.2)]));
    assert_eq!([0, 1].map(|at| known.kind(id(at))), first);
    // It has many others; some of its own are remembered.
    for phase in 0..20 {
        let ln_ipc = f64::from(phase) * 1.5 + 2.0;
        (0..20).for_each(|_| pair(&mut known, [(0, ln_ipc), (1, -0.2)]));
    }
    assert!(known.threads[&id(0)].own.len() <= PHASES && known.rows.len() <= PHASES + 2);
}

#[test]
fn what_is_known_stays_bounded() {
    let mut known = Knowledge::default();
    for first in 0..2000 {
        enter(&mut known, first..first + 2);
        pair(&mut known, [(first, 0.1), (first + 1, 0.2)]);
    }
    let bound = MOST_ABSENT + 4;
    assert!(
        known.programs.len() <= bound && known.rows.len() <= bound && known.takes.len() <= bound
    );
    assert_eq!(known.threads.len(), 2);
    enter(&mut known, []);
    assert!(known.threads.is_empty());
}
