use super::super::settings::Mask;
use super::super::thread::Class;
use super::*;

fn set(text: &str) -> CpuSet {
    text.parse().unwrap()
}

fn pinned(cpus: &str) -> AppliedSettings {
    AppliedSettings { mask: Some(set(cpus)), ..AppliedSettings::default() }
}

fn saved(mask: Mask) -> Saved {
    Saved { mask, nice: 0, class: Class::Other, reset_on_fork: false }
}

fn has(mask: &str) -> Present {
    let mask = set(mask);
    Present { parent: 1, mask, nice: 0, class: Class::Other, reset_on_fork: false, on: None }
}

fn key(process: u32, born: u64) -> ThreadKey {
    ThreadKey { process, thread: process, born }
}

/// Process 10 was there before the manager, 20 is a child born since.
fn journal_state() -> JournalState {
    let mut state = JournalState::new(100);
    for key in [key(10, 50), key(20, 150)] {
        state.save(key, saved(Mask::All));
        state.set(&key, pinned("0"), 110);
    }
    state
}

fn found(process: u32, born: u64, parent: u32, group: u32, session: u32) -> Found {
    Found { process, born, parent, group, session }
}

/// The numbers of the ancestors of each process.
fn ancestors(state: &JournalState, machine: &[Found]) -> BTreeMap<u32, Vec<u32>> {
    let numbers = |all: Vec<Ancestor>| all.into_iter().map(|any_of| any_of[0].process).collect();
    descendants(state, machine).into_iter().map(|(process, all)| (process, numbers(all))).collect()
}

#[test]
fn either_of_the_last_two_changes_may_be_applied_after_a_crash() {
    let mut state = journal_state();
    state.set(&key(10, 50), pinned("1"), 110);
    let record = &state.records[&key(10, 50)];
    let repair = |mask| record.repairs(&has(mask), &set("0-3"));
    assert_eq!(repair("0").repair.mask, Some(Mask::All));
    assert_eq!(repair("1").repair.mask, Some(Mask::All));
    assert_eq!(repair("2").foreign, ["affinity"]);
    state.set(&key(10, 50), pinned("2"), 110);
    let record = &state.records[&key(10, 50)];
    assert_eq!(record.repairs(&has("0"), &set("0-3")).foreign, ["affinity"]);
}

#[test]
fn what_was_restored_before_the_crash_is_left_alone() {
    let mut state = journal_state();
    state.set(&key(10, 50), AppliedSettings::default(), 110);
    state.set(&key(10, 50), AppliedSettings::default(), 110);
    let record = &state.records[&key(10, 50)];
    assert_eq!(record.repairs(&has("0"), &set("0-3")), Repairs::default());
}

#[test]
fn a_foreign_setting_that_was_noticed_is_the_saved_one() {
    let mut state = journal_state();
    state.save(key(10, 50), saved(Mask::Cpus(set("2-3"))));
    state.set(&key(10, 50), pinned("2"), 110);
    let record = &state.records[&key(10, 50)];
    assert_eq!(record.repairs(&has("2"), &set("0-3")).repair.mask, Some(Mask::Cpus(set("2-3"))));
}

#[test]
fn descendants_are_found_by_parents() {
    let machine = [
        found(10, 50, 1, 10, 10),
        found(30, 160, 10, 10, 10),
        found(31, 170, 30, 31, 31),
        found(40, 160, 1, 40, 40),
    ];
    let expected = BTreeMap::from([(10, vec![10]), (30, vec![10]), (31, vec![10])]);
    assert_eq!(ancestors(&journal_state(), &machine), expected);
}

#[test]
fn an_orphan_is_found_by_the_session_that_a_managed_process_created() {
    // Process 20 is dead; it had made the session and group 20.
    let machine = [found(33, 180, 1, 20, 20), found(34, 180, 1, 34, 20)];
    assert_eq!(
        ancestors(&journal_state(), &machine),
        BTreeMap::from([(33, vec![20]), (34, vec![20])])
    );
}

#[test]
fn an_orphan_may_be_of_any_process_that_is_gone() {
    let mut state = journal_state();
    state.save(key(21, 160), saved(Mask::Cpus(set("0-1"))));
    state.set(&key(21, 160), pinned("0"), 160);
    let born = Newborn { mask: set("0"), nice: 0, class: Class::Other, born: 180 };
    let of_group_20 = |parent| [found(20, 150, 10, 20, 20), found(33, 180, parent, 20, 20)];
    let inherited = |parent| {
        let ancestors = &descendants(&state, &of_group_20(parent))[&33];
        state.inherited(ancestors, &born, &set("0-3")).mask
    };
    assert_eq!(inherited(20), Some(Mask::All));
    assert_eq!(inherited(1), Some(Mask::Cpus(set("0-1"))), "process 21 can have been its parent");
}

#[test]
fn a_parent_is_nearer_than_the_creator_of_the_group() {
    let mut state = journal_state();
    state.save(key(21, 160), saved(Mask::Cpus(set("1-2"))));
    let machine = [found(20, 150, 10, 20, 2), found(21, 160, 20, 20, 2), found(33, 170, 21, 20, 2)];
    assert_eq!(ancestors(&state, &machine)[&33], [21, 20]);
}

#[test]
fn the_shells_own_group_is_not_the_programs() {
    // A pipe's other end: in the group of process 10, a child of the shell.
    let machine = [found(10, 50, 2, 10, 2), found(11, 50, 2, 10, 2), found(2, 5, 1, 2, 2)];
    assert_eq!(ancestors(&journal_state(), &machine), BTreeMap::from([(10, vec![10])]));
}

#[test]
fn a_group_is_as_old_as_its_first_process_and_not_as_a_thread_of_it() {
    let mut state = journal_state();
    let thread = ThreadKey { process: 10, thread: 12, born: 150 };
    state.save(thread, saved(Mask::All));
    state.set(&thread, pinned("0"), 110);
    let machine = [found(10, 50, 2, 10, 2), found(33, 160, 1, 10, 2)];
    assert_eq!(ancestors(&state, &machine), BTreeMap::from([(10, vec![10])]));
}

#[test]
fn a_newborn_inherits_nothing_from_an_older_process_with_the_number_of_its_own() {
    let mut state = journal_state();
    let older = key(20, 110);
    state.save(older, saved(Mask::Cpus(set("0-1"))));
    state.set(&older, pinned("0"), 110);
    let newborn = Newborn { mask: set("0"), nice: 0, class: Class::Other, born: 160 };
    let inherited =
        |born| state.inherited(&[vec![Candidate { process: 20, born }]], &newborn, &set("0-3"));
    assert_eq!(inherited(150).mask, Some(Mask::All));
    assert_eq!(inherited(0).mask, Some(Mask::Cpus(set("0-1"))), "which one is not known");
}

#[test]
fn a_process_with_a_reused_number_has_no_descendants_of_ours() {
    let machine = [found(10, 300, 1, 10, 10), found(30, 310, 10, 10, 10)];
    assert_eq!(ancestors(&journal_state(), &machine), BTreeMap::new());
    // A parent that is younger than its child is not its parent.
    let machine = [found(20, 150, 1, 1, 1), found(30, 140, 20, 1, 1)];
    assert_eq!(ancestors(&journal_state(), &machine), BTreeMap::from([(20, vec![20])]));
}

#[test]
fn parents_in_a_circle_end_the_search() {
    let machine = [found(30, 140, 31, 1, 1), found(31, 140, 30, 1, 1)];
    assert_eq!(ancestors(&journal_state(), &machine), BTreeMap::new());
}

#[test]
fn what_was_set_after_a_birth_was_not_inherited() {
    let mut state = journal_state();
    let thread = ThreadKey { process: 20, thread: 21, born: 150 };
    state.save(thread, saved(Mask::Cpus(set("0-1"))));
    state.set(&thread, pinned("0"), 170);
    let newborn = |born| Newborn { mask: set("0"), nice: 0, class: Class::Other, born };
    let of_20 = [vec![Candidate { process: 20, born: 150 }]];
    let inherited = |born| state.inherited(&of_20, &newborn(born), &set("0-3")).mask;
    assert_eq!(inherited(160), Some(Mask::All));
    assert_eq!(inherited(180), Some(Mask::Cpus(set("0-1"))), "either may have made it");
}

#[test]
fn a_thread_from_before_the_manager_inherited_nothing() {
    let newborn = |born| Newborn { mask: set("0"), nice: 0, class: Class::Other, born };
    assert!(
        journal_state()
            .inherited(&[vec![Candidate { process: 10, born: 50 }]], &newborn(99), &set("0-3"))
            .is_nothing()
    );
    assert_eq!(
        journal_state()
            .inherited(&[vec![Candidate { process: 10, born: 50 }]], &newborn(200), &set("0-3"))
            .mask,
        Some(Mask::All)
    );
}
