//! The tree against a model of the world.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::super::tree_world::*;
use super::*;

fn after(reports: &[Event]) -> (Tree, RecordedEvents) {
    let (mut tree, mut events) = rooted();
    for event in reports {
        tree.apply(*event, &mut events);
    }
    assert_eq!(events.wrong, Vec::<String>::new());
    assert_eq!(events.alive, enrolled(&tree));
    (tree, events)
}

#[test]
fn children_and_threads_are_enrolled_and_others_are_not() {
    let (tree, events) = after(&[
        fork(ROOT, 101),
        clone(101, 102),
        fork(101, 103),
        fork(7, 104),
        clone(104, 105),
        exit(101, 101),
    ]);
    assert_eq!(enrolled(&tree), BTreeSet::from([(ROOT, ROOT), (101, 102), (103, 103)]));
    let births: Vec<_> =
        events.births.iter().map(|b| (b.thread, b.parent_process, b.parent_thread)).collect();
    assert_eq!(
        births,
        [(ROOT, 50, None), (101, ROOT, Some(ROOT)), (102, 101, None), (103, 101, Some(101))]
    );
}

#[test]
fn exec_by_the_only_thread_left_names_it() {
    let (tree, events) =
        after(&[clone(ROOT, 101), exit(ROOT, ROOT), Event::Exec { process: ROOT }]);
    assert_eq!(events.execs[0].candidates, [101]);
    assert_eq!(events.execs[0].generation, 1);
    assert_eq!(enrolled(&tree), BTreeSet::from([(ROOT, ROOT)]));
}

#[test]
fn exec_with_living_threads_names_all_candidates() {
    let (tree, events) = after(&[
        clone(ROOT, 101),
        clone(ROOT, 102),
        Event::Exec { process: ROOT },
        exit(ROOT, 102),
    ]);
    assert_eq!(events.execs[0].candidates, [ROOT, 101, 102]);
    assert_eq!(enrolled(&tree), BTreeSet::from([(ROOT, ROOT)]));
}

#[test]
fn a_number_used_again_before_its_end_is_reported_stays() {
    let (tree, _) = after(&[
        fork(ROOT, 101),
        fork(ROOT, 101),
        exit(101, 101),
        clone(ROOT, 102),
        clone(ROOT, 102),
        exit(ROOT, 102),
    ]);
    assert_eq!(enrolled(&tree), BTreeSet::from([(ROOT, ROOT), (101, 101), (ROOT, 102)]));
}

#[test]
fn a_number_that_passed_to_others_is_enrolled_no_more() {
    let (tree, _) = after(&[fork(ROOT, 101), clone(101, 102), fork(7, 101)]);
    assert_eq!(enrolled(&tree), BTreeSet::from([(ROOT, ROOT)]));
}

#[test]
fn a_thread_found_by_a_scan_first_is_born_once() {
    let (mut tree, mut events) = rooted();
    tree.set_threads(ROOT, &[ROOT, 101], &mut events);
    let before: Vec<_> = tree.live().map(|live| live.serial).collect();
    tree.apply(clone(ROOT, 101), &mut events);
    assert_eq!(tree.live().map(|live| live.serial).collect::<Vec<_>>(), before);
    assert_eq!(events.births.len(), 2);
}

#[test]
fn orphans_are_found_by_a_session_made_since() {
    let (mut tree, mut events) = rooted();
    tree.adopt(&[seen(101, ROOT, 50)], &mut events);
    tree.note(101, 1101, 1, 101, &mut events);
    let (orphan, stranger) = (seen(102, 1, 101), seen(103, 1, 50));
    tree.adopt(&[orphan, stranger], &mut events);
    assert_eq!(tree.program(102), Some(PROGRAM));
    assert_eq!(tree.program(103), None);
    // Its child's orphans too, when both are gone.
    tree.retain_listed(&BTreeSet::from([ROOT, 102]), &mut events);
    tree.adopt(&[seen(104, 1, 101)], &mut events);
    assert_eq!(tree.program(104), Some(PROGRAM));
}

#[test]
fn a_session_made_before_enrolment_brings_no_process() {
    let (mut tree, mut events) = (Tree::new(1), RecordedEvents::default());
    let (root, child) = (seen(ROOT, 50, ROOT), seen(101, ROOT, 101));
    tree.enrol(PROGRAM, &root, &[root, child], &mut events);
    tree.note(ROOT, root.born, 1, ROOT, &mut events);
    tree.note(101, child.born, 1, 101, &mut events);
    tree.adopt(&[seen(102, 1, ROOT), seen(103, 1, 101)], &mut events);
    assert_eq!(enrolled(&tree), BTreeSet::from([(ROOT, ROOT), (101, 101)]));
}

#[test]
fn a_released_process_can_be_enrolled_again_with_its_children() {
    let (mut tree, mut events) = after(&[fork(ROOT, 20), fork(20, 30)]);
    for process in [20, 30] {
        tree.release(process, Some(seen(process, ROOT, 1).born), &mut events);
    }
    tree.adopt(&[seen(20, ROOT, 1), seen(30, 20, 1)], &mut events);
    assert_eq!(enrolled(&tree), BTreeSet::from([(ROOT, ROOT)]), "no scan brings them back");
    let world = [seen(20, ROOT, 1), seen(30, 20, 1)];
    tree.enrol(ProgramId(7), &world[0], &world, &mut events);
    assert_eq!([20, 30].map(|process| tree.program(process)), [Some(ProgramId(7)); 2]);
    tree.apply(fork(30, 40), &mut events);
    assert_eq!(tree.program(40), Some(ProgramId(7)));
}

#[test]
fn a_released_process_stays_so_with_its_children_to_come() {
    let (mut tree, mut events) = after(&[fork(ROOT, 20), fork(20, 30)]);
    tree.release(20, Some(seen(20, ROOT, 1).born), &mut events);
    tree.apply(fork(20, 40), &mut events);
    assert_eq!(enrolled(&tree), BTreeSet::from([(ROOT, ROOT), (30, 30)]));
    tree.adopt(&[seen(20, ROOT, 1)], &mut events);
    assert_eq!(tree.program(20), None, "a scan finds it again");
    tree.apply(exit(20, 20), &mut events);
    tree.apply(fork(ROOT, 20), &mut events);
    assert!(tree.program(20).is_some(), "another one with its number");
}

#[test]
fn the_watcher_itself_is_not_adopted() {
    let (mut tree, mut events) = (Tree::new(101), RecordedEvents::default());
    let root = seen(ROOT, 50, 50);
    tree.enrol(PROGRAM, &root, &[root, seen(101, ROOT, 50)], &mut events);
    assert_eq!(tree.program(101), None);
}

#[test]
fn another_stack_shows_an_exec() {
    let (mut tree, mut events) = rooted();
    tree.note(ROOT, 1100, 1, 50, &mut events);
    assert!(events.execs.is_empty());
    tree.note(ROOT, 1100, 2, 50, &mut events);
    tree.note(ROOT, 1100, 2, 50, &mut events);
    assert_eq!(events.execs.len(), 1);
    // An exec that was reported is not found again.
    tree.apply(Event::Exec { process: ROOT }, &mut events);
    tree.note(ROOT, 1100, 3, 50, &mut events);
    assert_eq!(events.execs.len(), 2);
}

/// The exec by another thread than the leader, whose end was reported, was lost among reports that
/// waited during a scan: the next scan finds the new leader.
#[test]
fn a_process_whose_exec_is_lost_during_a_scan_stays_enrolled() {
    let (mut tree, mut events) = rooted();
    tree.catch_up();
    tree.apply(exit(ROOT, ROOT), &mut events);
    tree.apply(Event::Loss, &mut events);
    tree.caught_up();
    assert!(tree.program(ROOT).is_some());
    tree.set_threads(ROOT, &[ROOT], &mut events);
    tree.catch_up();
    tree.caught_up();
    assert_eq!(enrolled(&tree), BTreeSet::from([(ROOT, ROOT)]));
}

#[test]
fn ages_count_reads() {
    let (mut tree, mut events) = rooted();
    tree.next_epoch();
    tree.apply(fork(ROOT, 101), &mut events);
    tree.next_epoch();
    tree.next_epoch();
    let ages: Vec<_> = tree.live().map(|live| live.ages).collect();
    let root = Ages { seen: 3, forked: Some(2), ..Ages::default() };
    assert_eq!(ages, [root, Ages { seen: 2, ..Ages::default() }]);
    assert_eq!(ages[0].least(), 2);
}

#[test]
fn children_of_before_the_enrolment_are_no_fork() {
    let (mut tree, mut events) = rooted();
    let forked = |tree: &Tree, process: u32| {
        tree.live().any(|live| live.process == process && live.ages.forked.is_some())
    };
    tree.note_reaped(ROOT, 74);
    tree.note_reaped(ROOT, 74);
    assert!(!forked(&tree, ROOT));
    tree.note_reaped(ROOT, 80);
    assert!(forked(&tree, ROOT));
    // One that was born since had none before.
    tree.apply(fork(ROOT, 101), &mut events);
    tree.note_reaped(101, 5);
    assert!(forked(&tree, 101));
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        any::<usize>().prop_map(Step::Fork),
        any::<usize>().prop_map(Step::Clone),
        any::<usize>().prop_map(Step::Exit),
        any::<usize>().prop_map(Step::Exec),
        any::<usize>().prop_map(Step::Stranger),
    ]
}

proptest! {
    #[test]
    fn events_alone_follow_the_world(steps in proptest::collection::vec(step(), 0..120)) {
        let ((mut tree, mut events), mut world) = (rooted(), World::new(false));
        for step in steps {
            if let Some(event) = world.take(step) {
                tree.apply(event, &mut events);
            }
            prop_assert_eq!(enrolled(&tree), world.ours());
        }
        prop_assert_eq!(events.wrong, Vec::<String>::new());
    }

    #[test]
    fn a_scan_repairs_losses(
        steps in proptest::collection::vec((step(), any::<bool>()), 0..120),
        late in proptest::collection::vec(step(), 0..20),
    ) {
        let ((mut tree, mut events), mut world) = (rooted(), World::new(true));
        for (step, lost) in steps {
            if let Some(event) = world.take(step) {
                tree.apply(if lost { Event::Loss } else { event }, &mut events);
            }
        }
        // These reports wait in the socket while the scan sees their effect.
        let waiting: Vec<_> = late.into_iter().filter_map(|step| world.take(step)).collect();
        rescan(&mut tree, &world, &mut events);
        prop_assert_eq!(enrolled(&tree), world.ours());
        tree.catch_up();
        for event in waiting {
            tree.apply(event, &mut events);
        }
        tree.caught_up();
        prop_assert_eq!(enrolled(&tree), world.ours());
        prop_assert_eq!(&events.alive, &enrolled(&tree));
        prop_assert_eq!(events.wrong, Vec::<String>::new());
    }
}

#[test]
fn a_stack_that_is_not_shown_is_no_exec() {
    let (mut tree, mut events) = after(&[clone(ROOT, 101), exit(ROOT, ROOT)]);
    for stack in [0, 1, 0] {
        tree.note(ROOT, 1100, stack, 50, &mut events);
    }
    assert!(events.execs.is_empty());
    assert_eq!(enrolled(&tree), BTreeSet::from([(ROOT, 101)]));
    tree.note(ROOT, 1100, 2, 50, &mut events);
    assert_eq!(events.execs.len(), 1);
}
