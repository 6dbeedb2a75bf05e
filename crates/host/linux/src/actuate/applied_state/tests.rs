use super::super::settings::Mask;
use super::super::thread::Class;
use super::*;

fn set(text: &str) -> CpuSet {
    text.parse().unwrap()
}

fn entry(mask: Mask) -> Entry {
    let saved = Saved { mask, nice: 0, class: Class::Other, reset_on_fork: false };
    Entry::new(saved, Arc::new(set("0-3")))
}

fn pinned(cpus: &str) -> AppliedSettings {
    AppliedSettings { mask: Some(set(cpus)), ..AppliedSettings::default() }
}

fn newborn(mask: &str, born: u64) -> Newborn {
    Newborn { mask: set(mask), nice: 0, class: Class::Other, born }
}

const MAKER: ThreadKey = ThreadKey { process: 10, thread: 12, born: 5 };

fn state_with(changes: &[(u64, AppliedSettings)]) -> AppliedState {
    let mut entry = entry(Mask::All);
    for (tick, applied) in changes {
        entry.set_applied(applied.clone(), *tick);
    }
    let mut state = AppliedState::default();
    state.insert(MAKER, entry);
    state
}

#[test]
fn a_newborn_carries_what_its_maker_had_at_its_birth() {
    let state =
        state_with(&[(100, pinned("0")), (200, pinned("1")), (300, AppliedSettings::default())]);
    let repair = |mask, born| state.repair((10, 12), &newborn(mask, born), &set("0-3")).mask;
    assert_eq!(repair("0", 150), Some(Mask::All));
    assert_eq!(repair("1", 150), None, "pinned itself to a mask that we used later");
    assert_eq!(repair("1", 250), Some(Mask::All));
    assert_eq!(repair("0", 50), None, "born before we changed anything");
    assert_eq!(repair("1", 350), None, "born after it was restored");
    assert_eq!(repair("0-3", 150), None);
}

#[test]
fn a_thread_that_departed_is_still_known_as_a_maker() {
    let mut state = state_with(&[(100, pinned("0"))]);
    state.depart(&MAKER, 200);
    assert!(state.threads.is_empty());
    let repair = state.repair((10, 0), &newborn("0", 150), &set("0-3"));
    assert_eq!(repair.mask, Some(Mask::All));
}

#[test]
fn a_thread_of_an_older_process_with_the_same_number_is_no_maker() {
    let mut state = state_with(&[(100, pinned("0"))]);
    state.depart(&MAKER, 200);
    let repair = |state: &AppliedState| state.repair((10, 0), &newborn("0", 300), &set("0-3")).mask;
    assert_eq!(repair(&state), Some(Mask::All));
    state.insert(ThreadKey { process: 10, thread: 10, born: 250 }, entry(Mask::All));
    assert_eq!(repair(&state), None);
}

#[test]
fn memory_of_the_departed_is_bounded() {
    let mut state = AppliedState::default();
    for thread in 0..5000 {
        let key = ThreadKey { process: 10, thread, born: 5 };
        let mut entry = entry(Mask::All);
        entry.set_applied(pinned("0"), 100);
        state.insert(key, entry);
        state.depart(&key, 200);
        state.saw_at_birth(key);
    }
    assert_eq!(state.departed(200).count(), REMEMBERED);
    assert_eq!(state.seen_at_birth.len(), REMEMBERED);
}

#[test]
fn nice_and_class_are_inherited_too() {
    let applied = AppliedSettings { mask: None, nice: Some(-10), class: Some(Class::Idle) };
    let child = Newborn { nice: -10, class: Class::Idle, ..newborn("0-3", 1) };
    let repair = Repair::of(&child, &applied, &entry(Mask::All).saved, &set("0-3"));
    let expected = Repair { mask: None, nice: Some(0), class: Some(Class::Other), carried: None };
    assert_eq!(repair, expected);
}
