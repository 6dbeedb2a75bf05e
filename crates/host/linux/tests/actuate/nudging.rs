//! Nudges, and masks that programs took over from us.

use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

use symbiont_linux::observe::Moment;
use symbiont_machine::{Change, Move, Outcome, ThreadId};
use symbiont_topology::{CpuSet, PuId};

use crate::support::*;

/// Threads that are adopted.
fn adopted(threads: Threads) -> (Rig, Threads) {
    let rig = Rig::new();
    for thread in &threads.threads {
        rig.actuator.adopt(thread).unwrap();
    }
    (rig, threads)
}

/// A busy program whose thread was nudged.
fn nudged_to(cpus: &CpuSet) -> (Rig, Victim) {
    let (rig, victim) = (Rig::new(), Victim::busy());
    rig.actuator.adopt(&victim.thread()).unwrap();
    assert_eq!(nudge(&rig, &victim.thread(), cpus), Outcome::Done);
    (rig, victim)
}

#[test]
fn a_mask_that_was_read_from_ours_is_undone() {
    let Some((all, first, _)) = two_cpus() else { return };
    let (rig, sleepers) = adopted(Threads::sleeping(2));
    let (main, worker) = (&sleepers.threads[0], &sleepers.threads[1]);
    assert_eq!(rig.pin(main, &first), Outcome::Done);
    // As libomp's workers do with what libomp read when it began.
    set_mask(worker.thread, &first);
    assert_eq!(rig.actuator.lapsed(), []);
    assert_eq!((mask_of(worker.thread), mask_of(main.thread)), (all.clone(), first.clone()));
    let suspects = rig.actuator.suspects();
    assert_eq!(suspects.len(), 1);
    assert_eq!((suspects[0].thread.thread, &suspects[0].mask), (worker.thread, &first));
    assert_eq!(rig.actuator.suspects(), []);
    // The second time it is meant.
    set_mask(worker.thread, &first);
    assert_eq!(rig.actuator.lapsed(), []);
    assert_eq!(mask_of(worker.thread), first);
    rig.actuator.restore_all();
    assert_eq!((mask_of(worker.thread), mask_of(main.thread)), (first, all));
}

#[test]
fn a_suspect_mask_is_undone_at_the_end() {
    let Some((all, first, _)) = two_cpus() else { return };
    let (rig, sleepers) = adopted(Threads::sleeping(2));
    let (main, worker) = (&sleepers.threads[0], &sleepers.threads[1]);
    assert_eq!(rig.pin(main, &first), Outcome::Done);
    set_mask(worker.thread, &first);
    rig.actuator.restore_all();
    assert_eq!((mask_of(worker.thread), mask_of(main.thread)), (all.clone(), all));
}

#[test]
fn a_thread_that_chose_a_mask_before_is_believed() {
    let Some((_, first, second)) = two_cpus() else { return };
    let (rig, victim) = (Rig::new(), Victim::sleeper());
    let (id, thread) = (victim.id(), victim.thread());
    rig.actuator.adopt(&thread).unwrap();
    assert_eq!(rig.pin(&thread, &second), Outcome::Done);
    set_mask(id, &first);
    assert_eq!(rig.pin(&thread, &second), Outcome::ExternallyChanged);
    // A mask of ours of a moment ago.
    set_mask(id, &second);
    rig.actuator.restore_all();
    assert_eq!(mask_of(id), second);
    assert_eq!(rig.actuator.suspects(), []);
}

fn nudge(rig: &Rig, thread: &ThreadId, to: &CpuSet) -> Outcome {
    rig.actuator.apply(&Move { thread: *thread, change: Change::Nudge(to.clone()) })
}

#[test]
fn a_nudged_thread_has_the_mask_that_it_had() {
    let Some((all, first, second)) = two_cpus() else { return };
    let (rig, victim) = (Rig::new(), Victim::busy());
    let (id, thread) = (victim.id(), victim.thread());
    rig.actuator.adopt(&thread).unwrap();
    // Where it runs on its target by itself, nothing is done nor announced.
    let last = wait_for("a nudge that is needed", || {
        for to in [&first, &second] {
            assert_eq!(nudge(&rig, &thread, to), Outcome::Done);
            assert_eq!(mask_of(id), all);
        }
        journal_of(&rig).pop().filter(|line| line.starts_with("{\"is\":"))
    });
    assert!(!rig.actuator.is_anything_applied());
    assert!(!last.contains("mask"), "{last}");
    // On a mask of ours, too.
    assert_eq!(rig.pin(&thread, &first), Outcome::Done);
    assert_refused(&nudge(&rig, &thread, &second), "may run on");
    assert_eq!(nudge(&rig, &thread, &first), Outcome::Done);
    assert_eq!(mask_of(id), first);
    rig.actuator.restore_all();
    assert_eq!(mask_of(id), all);
    assert_eq!(rig.actuator.suspects(), []);
}

#[test]
fn a_nudge_moves_a_running_thread() {
    let Some((all, first, second)) = two_cpus() else { return };
    let (rig, victim) = (Rig::new(), Victim::busy());
    let (id, thread) = (victim.id(), victim.thread());
    rig.actuator.adopt(&thread).unwrap();
    let mut moved = 0;
    for to in [&first, &second].into_iter().cycle().take(40) {
        assert_eq!(nudge(&rig, &thread, to), Outcome::Done);
        assert_eq!(mask_of(id), all);
        moved += u32::from(cpu_of(id).is_some_and(|cpu| to.contains(cpu)));
    }
    // The kernel may balance it away between two calls of this test, but seldom.
    assert!(moved > 20, "{moved} of 40");
}

#[test]
fn a_nudge_is_made_from_where_the_thread_runs() {
    let Some((_, first, second)) = two_cpus() else { return };
    let (rig, victim) = (Rig::new(), Victim::busy());
    let thread = victim.thread();
    rig.actuator.adopt(&thread).unwrap();
    let own = mask_of(gettid());
    let of_40 = || {
        let mut there = 0;
        for to in [&first, &second].into_iter().cycle().take(40) {
            assert_eq!(nudge(&rig, &thread, to), Outcome::Done);
            let from = PuId(u32::try_from(rustix::thread::sched_getcpu()).unwrap());
            there += u32::from(!to.contains(from));
            assert_eq!(mask_of(gettid()), own);
        }
        there
    };
    // The kernel may balance either away in between, on a busy machine often. Of two CPUs half would be chance, of
    // which 33 are one in thirty thousand.
    let tries: Vec<u32> = (0..20).map(|_| of_40()).take_while(|there| *there <= 32).collect();
    assert!(tries.len() < 20, "{tries:?} of 40");
}

#[test]
fn a_nudge_keeps_within_a_mask_of_the_users() {
    let Some((_, first, second)) = two_cpus() else { return };
    let (rig, victim) = (Rig::new(), Victim::busy());
    let (id, thread) = (victim.id(), victim.thread());
    set_mask(id, &first);
    rig.actuator.adopt(&thread).unwrap();
    assert_refused(&nudge(&rig, &thread, &second), "may run on");
    assert_eq!(mask_of(id), first);
    // One that its user widened since may be nudged there, a while after that was found out.
    set_mask(id, &first.union(&second));
    assert_eq!(nudge(&rig, &thread, &second), Outcome::ExternallyChanged);
    let nudged = || Some(()).filter(|()| nudge(&rig, &thread, &second) == Outcome::Done);
    wait_for("a nudge after a while", nudged);
    assert_eq!(mask_of(id), first.union(&second));
}

#[test]
fn a_pin_to_where_others_were_nudged_stays() {
    let Some((all, first, second)) = two_cpus() else { return };
    let (rig, both) = (Rig::new(), Threads::busy(2));
    let (main, worker) = (&both.threads[0], &both.threads[1]);
    for thread in [main, worker] {
        rig.actuator.adopt(thread).unwrap();
        assert_eq!(nudge(&rig, thread, &first), Outcome::Done);
    }
    set_mask(worker.thread, &first);
    assert_eq!(rig.actuator.lapsed(), []);
    assert_eq!(nudge(&rig, worker, &second), Outcome::ExternallyChanged);
    assert_eq!(*rig.actuator.allowed(worker).unwrap(), first);
    // What it widens again is known within a second, without a move.
    set_mask(worker.thread, &all);
    assert_eq!(rig.actuator.lapsed(), []);
    assert_eq!(*rig.actuator.allowed(worker).unwrap(), all);
    set_mask(worker.thread, &first);
    rig.actuator.restore_all();
    assert_eq!((mask_of(worker.thread), mask_of(main.thread)), (first, all));
}

#[test]
fn a_thread_that_got_its_mask_back_is_nudged() {
    let Some((all, first, second)) = two_cpus() else { return };
    let (rig, both) = adopted(Threads::busy(2));
    let (main, worker) = (&both.threads[0], &both.threads[1]);
    assert_eq!(rig.pin(main, &first), Outcome::Done);
    set_mask(worker.thread, &first);
    assert_eq!(nudge(&rig, worker, &second), Outcome::Done);
    assert_eq!(mask_of(worker.thread), all);
    assert_eq!(rig.actuator.suspects().len(), 1);
}

#[test]
fn a_pin_to_where_the_thread_was_nudged_stays() {
    let Some((_, first, second)) = two_cpus() else { return };
    let (rig, victim) = nudged_to(&first);
    let (id, thread) = (victim.id(), victim.thread());
    set_mask(id, &first);
    assert_eq!(nudge(&rig, &thread, &second), Outcome::ExternallyChanged);
    assert_eq!(mask_of(id), first);
    assert_eq!(rig.actuator.suspects(), []);
}

#[test]
fn a_pin_to_where_a_thread_was_seen_is_doubted() {
    let Some((_, first, second)) = two_cpus() else { return };
    let (doubts, thread) = wait_for("a nudge to elsewhere", || {
        let (rig, victim) = nudged_to(&first);
        let (id, thread) = (victim.id(), victim.thread());
        // Unless it has been pulled there meanwhile.
        assert_eq!(nudge(&rig, &thread, &second), Outcome::Done);
        set_mask(id, &second);
        assert_eq!(rig.actuator.lapsed(), []);
        assert_eq!(mask_of(id), second, "it stays");
        let doubts = rig.actuator.doubts();
        assert_eq!(rig.actuator.doubts(), []);
        (!doubts.is_empty()).then_some((doubts, thread))
    });
    assert_eq!(doubts.len(), 1);
    assert_eq!((doubts[0].thread.thread, &doubts[0].mask), (thread.thread, &second));
    // Where none was nudged to, it was chosen.
    let (rig, victim) = (Rig::new(), Victim::busy());
    rig.actuator.adopt(&victim.thread()).unwrap();
    set_mask(victim.id(), &first);
    assert_eq!(rig.actuator.lapsed(), []);
    assert_eq!(rig.actuator.doubts(), []);
}

/// Plays something until nothing delayed it.
fn in_time<T>(play: impl Fn() -> T) -> T {
    wait_for("a try that nothing delays", || {
        let begun = Instant::now();
        let played = play();
        (begun.elapsed() < Duration::from_millis(700)).then_some(played)
    })
}

#[test]
fn the_last_of_several_masks_stays() {
    let Some((_, first, second)) = two_cpus() else { return };
    let (rig, victim) = nudged_to(&first);
    let (id, thread) = (victim.id(), victim.thread());
    // As a program that balances its threads itself.
    for mask in [&first, &second, &first] {
        set_mask(id, mask);
        assert_eq!(rig.actuator.lapsed(), []);
        let _ = nudge(&rig, &thread, &second);
    }
    assert_eq!(mask_of(id), first);
    rig.actuator.restore_all();
    assert_eq!(mask_of(id), first);
    assert_eq!(rig.actuator.suspects(), []);
}

#[test]
fn a_pin_of_a_nudged_thread_is_known() {
    let Some((all, first, second)) = two_cpus() else { return };
    let (rig, victim) = nudged_to(&first);
    let (id, thread) = (victim.id(), victim.thread());
    // To where it was nudged, elsewhere, and to all again.
    for mask in [&first, &second, &all] {
        set_mask(id, mask);
        assert_eq!(rig.actuator.lapsed(), []);
        assert_eq!(rig.actuator.allowed(&thread).as_deref(), Some(mask));
        assert_eq!(mask_of(id), *mask);
    }
    rig.actuator.restore_all();
    assert_eq!(mask_of(id), all);
}

#[test]
fn a_thread_whose_mask_changed_is_not_nudged() {
    let Some((all, first, second)) = two_cpus() else { return };
    let (rig, victim) = (Rig::new(), Victim::busy());
    let (id, thread) = (victim.id(), victim.thread());
    rig.actuator.adopt(&thread).unwrap();
    let outcomes = in_time(|| {
        set_mask(id, &second);
        let changed = nudge(&rig, &thread, &first);
        set_mask(id, &all);
        [changed, nudge(&rig, &thread, &first), nudge(&rig, &thread, &first)]
    });
    assert!(outcomes.iter().all(|outcome| *outcome == Outcome::ExternallyChanged), "{outcomes:?}");
    let nudged = || Some(()).filter(|()| nudge(&rig, &thread, &first) == Outcome::Done);
    wait_for("a nudge after a while", nudged);
    assert_eq!(mask_of(id), all);
}

/// A moment of the clock of reports of births.
fn now_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    u64::try_from(now.tv_sec * 1_000_000_000 + now.tv_nsec).unwrap()
}

/// Less than a moment counts to a nudge after its end, in ns.
const STEP: usize = 50_000;

/// Nudges a thread to where it does not run; gives that, the other one, and when it was nudged at the earliest and at
/// the latest.
fn nudge_elsewhere(rig: &Rig, victim: &Victim) -> (CpuSet, CpuSet, RangeInclusive<u64>) {
    let (_, first, second) = two_cpus().unwrap();
    wait_for("a nudge", || {
        let is_first = cpu_of(victim.id()) == first.first();
        let (to, other) = if is_first { (&second, &first) } else { (&first, &second) };
        let said = journal_of(rig).len();
        let before = now_ns();
        assert_eq!(nudge(rig, &victim.thread(), to), Outcome::Done);
        let after = now_ns();
        let is_needed = journal_of(rig).len() > said || is_asleep(victim.id());
        is_needed.then(|| (to.clone(), other.clone(), before..=after))
    })
}

#[test]
fn a_child_that_is_born_after_a_nudge_keeps_its_pin() {
    let Some((all, ..)) = two_cpus() else { return };
    let (rig, mut victim) = (Rig::new(), Victim::shell("sleep 1000 & while :; do :; done"));
    victim.go_on();
    let id = victim.id();
    let child = wait_for("a child", || children_of(id).first().copied());
    rig.actuator.adopt(&victim.thread()).unwrap();
    // The kernel may have moved it there just before.
    wait_for("a nudge that is needed", || {
        let (to, other, when) = nudge_elsewhere(&rig, &victim);
        set_mask(child, &to);
        let (cpu, other) = (to.first().unwrap(), other.first().unwrap());
        let after = *when.end();
        for (ns, cpu) in [(after + 1_000_000, cpu), (after + 1_000, other)] {
            rig.actuator.born_at(id, child, child, Moment { ns, cpu });
            assert_eq!(mask_of(child), to, "it pinned itself");
        }
        // As one that was born meanwhile, and inherited its maker's target.
        for ns in when.step_by(STEP) {
            rig.actuator.born_at(id, child, child, Moment { ns, cpu });
        }
        (mask_of(child) == all).then_some(())
    });
}

#[test]
fn a_pin_of_a_child_that_inherited_a_target_stays() {
    let Some((all, ..)) = two_cpus() else { return };
    let (rig, mut victim) = (Rig::new(), Victim::shell("sleep 1000 & while :; do :; done"));
    victim.go_on();
    let id = victim.id();
    let child = wait_for("a child", || children_of(id).first().copied());
    rig.actuator.adopt(&victim.thread()).unwrap();
    let target = wait_for("a child that is born narrow", || {
        let (to, _, when) = nudge_elsewhere(&rig, &victim);
        set_mask(child, &to);
        for ns in when.step_by(STEP) {
            rig.actuator.born_at(id, child, child, Moment { ns, cpu: to.first().unwrap() });
        }
        (mask_of(child) == all).then_some(to)
    });
    let thread = thread_id(child, child);
    rig.actuator.adopt(&thread).unwrap();
    set_mask(child, &target);
    assert_eq!(rig.actuator.lapsed(), []);
    assert_eq!(mask_of(child), target, "nothing was held that it could have read");
    assert_eq!(rig.actuator.suspects(), []);
}

#[test]
fn a_sleeping_thread_is_not_narrowed() {
    if two_cpus().is_none() {
        return;
    }
    let (rig, mut victim) = (Rig::new(), Victim::shell("sleep 1000; true"));
    let id = victim.id();
    wait_for("a shell that reads", || is_asleep(id).then_some(()));
    rig.actuator.adopt(&victim.thread()).unwrap();
    let (to, _, when) = nudge_elsewhere(&rig, &victim);
    victim.go_on();
    let child = wait_for("a child", || children_of(id).first().copied());
    set_mask(child, &to);
    // Born within the nudge, it has not inherited what it has.
    for ns in when.step_by(STEP) {
        rig.actuator.born_at(id, child, child, Moment { ns, cpu: to.first().unwrap() });
    }
    assert_eq!(mask_of(child), to);
}
