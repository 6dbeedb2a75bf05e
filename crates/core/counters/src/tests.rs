use std::sync::Arc;

use proptest::prelude::*;
use symbiont_machine::{Lifecycle, ProgramId, Timestamp};
use symbiont_topology::PuId;

use super::*;

const MS: u64 = 1_000_000;

fn id(thread: u32) -> ThreadId {
    ThreadId { process: 1, thread, born: 0, generation: 0 }
}

fn thread(n: u32, state: RunState, ran_ms: u64, waited_ms: u64) -> ThreadSample {
    ThreadSample {
        id: id(n),
        program: ProgramId(0),
        state,
        run_time: Duration::from_millis(ran_ms),
        wait_time: Duration::from_millis(waited_ms),
        switches: ran_ms,
        cpu: Some(PuId(0)),
        allowed: Arc::new("0-1".parse().unwrap()),
        lifecycle: Lifecycle::Settled,
        kept: false,
        cookie: None,
        counts: Vec::new(),
    }
}

fn sample(at_ms: u64, threads: Vec<ThreadSample>) -> Sample {
    Sample { at: Timestamp(at_ms * MS), threads, ..Sample::default() }
}

use RunState::{Runnable, Sleeping, Stopped};

fn one(before: ThreadSample, after: ThreadSample) -> Option<Characterization> {
    let of = after.id;
    characterize(&sample(0, vec![before]), &sample(100, vec![after])).get(&of).copied()
}

#[test]
fn a_thread_runnable_at_both_samples_was_ready_throughout() {
    // It waited all the time, and Linux has credited none of it yet.
    let c = one(thread(1, Runnable, 5, 5), thread(1, Runnable, 5, 5)).unwrap();
    assert_eq!((c.ready, c.running), (1.0, 0.0));
}

#[test]
fn a_thread_that_slept_at_one_end_is_ready_for_what_was_credited() {
    let c = one(thread(1, Sleeping, 0, 0), thread(1, Runnable, 20, 30)).unwrap();
    assert_eq!((c.ready, c.running, c.switches), (0.5, 0.2, 20));
    let c = one(thread(1, Stopped, 0, 0), thread(1, Stopped, 0, 0)).unwrap();
    assert_eq!((c.ready, c.running), (0.0, 0.0));
}

#[test]
fn a_late_credit_does_not_exceed_the_quantum() {
    let c = one(thread(1, Runnable, 0, 0), thread(1, Sleeping, 1, 900)).unwrap();
    assert_eq!(c.ready, 1.0);
}

#[test]
fn a_new_thread_has_no_characterization() {
    let known = characterize(
        &sample(0, vec![thread(1, Runnable, 0, 0), thread(3, Runnable, 0, 0)]),
        &sample(100, vec![thread(1, Runnable, 1, 0), thread(2, Runnable, 1, 0)]),
    );
    assert_eq!(known.keys().copied().collect::<Vec<_>>(), [id(1)]);
}

#[test]
fn counts_that_run_backwards_are_absent() {
    assert_eq!(one(thread(1, Runnable, 9, 0), thread(1, Runnable, 8, 5)), None);
    assert_eq!(one(thread(1, Runnable, 9, 5), thread(1, Runnable, 9, 4)), None);
    let fewer = ThreadSample { switches: 0, ..thread(1, Runnable, 9, 5) };
    assert_eq!(one(thread(1, Runnable, 9, 5), fewer), None);
}

#[test]
fn without_time_there_is_nothing_to_say() {
    let now = sample(100, vec![thread(1, Runnable, 1, 0)]);
    assert!(characterize(&now, &now).is_empty());
    assert!(characterize(&now, &sample(50, now.threads.clone())).is_empty());
}

#[test]
fn migration_is_known_only_where_both_places_are() {
    let at = |cpu| ThreadSample { cpu, ..thread(1, Runnable, 0, 0) };
    let migrated = |from, to| one(at(from), at(to)).unwrap().migrated;
    assert_eq!(migrated(Some(PuId(0)), Some(PuId(1))), Some(true));
    assert_eq!(migrated(Some(PuId(1)), Some(PuId(1))), Some(false));
    assert_eq!(migrated(None, Some(PuId(1))), None);
}

fn state() -> impl Strategy<Value = RunState> {
    prop_oneof![Just(Runnable), Just(Sleeping), Just(Stopped)]
}

fn any_thread() -> impl Strategy<Value = ThreadSample> {
    (1u32..6, state(), 0u64..2000, 0u64..2000)
        .prop_map(|(n, state, ran, waited)| thread(n, state, ran, waited))
}

fn any_sample() -> impl Strategy<Value = Sample> {
    (0u64..2000, prop::collection::vec(any_thread(), 0..6)).prop_map(|(at, mut threads)| {
        threads.sort_by_key(|t| t.id);
        threads.dedup_by_key(|t| t.id);
        sample(at, threads)
    })
}

proptest! {
    #[test]
    fn fractions_are_fractions(a in any_sample(), b in any_sample()) {
        for (id, c) in characterize(&a, &b) {
            prop_assert!(a.threads.iter().any(|t| t.id == id));
            prop_assert!(b.threads.iter().any(|t| t.id == id));
            prop_assert!((0.0..=1.0).contains(&c.ready) && (0.0..=1.0).contains(&c.running));
            prop_assert!(c.ready >= c.running);
            prop_assert_eq!(c.over, b.at.since(a.at));
        }
    }

    #[test]
    fn a_lost_sample_loses_nothing(
        t1 in 1u64..1000, t2 in 1u64..1000, r1 in 0.0..0.5, r2 in 0.0..0.5, w1 in 0.0..0.5, w2 in 0.0..0.5,
    ) {
        let part = |t: u64, share: f64| (t as f64 * share) as u64;
        let (ran, waited) = (part(t1, r1), part(t1, w1));
        let start = sample(0, vec![thread(1, Sleeping, 0, 0)]);
        let middle = sample(t1, vec![thread(1, Sleeping, ran, waited)]);
        let last = thread(1, Sleeping, ran + part(t2, r2), waited + part(t2, w2));
        let end = sample(t1 + t2, vec![last]);
        let ready = |a, b| characterize(a, b)[&id(1)].ready;
        let whole = ready(&start, &end) * (t1 + t2) as f64;
        let parts = ready(&start, &middle) * t1 as f64 + ready(&middle, &end) * t2 as f64;
        prop_assert!((whole - parts).abs() < 1e-6);
    }
}
