use symbiont_machine::test_support::thread;
use symbiont_topology::CpuSet;

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
