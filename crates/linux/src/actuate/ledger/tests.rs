use super::*;

fn set(text: &str) -> CpuSet {
    text.parse().unwrap()
}

fn entry(mask: Mask) -> Entry {
    let saved = Saved { mask, nice: 0, class: Class::Other, reset_on_fork: false };
    Entry::new(saved, Arc::new(set("0-3")))
}

fn pinned(cpus: &str) -> InForce {
    InForce { mask: Some(set(cpus)), ..InForce::default() }
}

fn newborn(mask: &str, born: u64) -> Newborn {
    Newborn { mask: set(mask), nice: 0, class: Class::Other, born }
}

const MAKER: ThreadKey = ThreadKey { process: 10, thread: 12, born: 5 };

fn ledger_with(changes: &[(u64, InForce)]) -> Ledger {
    let mut entry = entry(Mask::All);
    for (tick, in_force) in changes {
        entry.put_in_force(in_force.clone(), *tick);
    }
    let mut ledger = Ledger::default();
    ledger.insert(MAKER, entry);
    ledger
}

#[test]
fn a_newborn_carries_what_its_maker_had_at_its_birth() {
    let ledger = ledger_with(&[(100, pinned("0")), (200, pinned("1")), (300, InForce::default())]);
    let repair = |mask, born| ledger.repair((10, 12), &newborn(mask, born), &set("0-3")).mask;
    assert_eq!(repair("0", 150), Some(Mask::All));
    assert_eq!(repair("1", 150), None, "pinned itself to a mask that we used later");
    assert_eq!(repair("1", 250), Some(Mask::All));
    assert_eq!(repair("0", 50), None, "born before we changed anything");
    assert_eq!(repair("1", 350), None, "born after we had put it back");
    assert_eq!(repair("0-3", 150), None);
}

#[test]
fn a_thread_that_departed_is_still_known_as_a_maker() {
    let mut ledger = ledger_with(&[(100, pinned("0"))]);
    ledger.depart(&MAKER, 200);
    assert!(ledger.threads.is_empty());
    let repair = ledger.repair((10, 0), &newborn("0", 150), &set("0-3"));
    assert_eq!(repair.mask, Some(Mask::All));
}

#[test]
fn a_thread_of_an_older_process_with_the_same_number_is_no_maker() {
    let mut ledger = ledger_with(&[(100, pinned("0"))]);
    ledger.depart(&MAKER, 200);
    let repair = |ledger: &Ledger| ledger.repair((10, 0), &newborn("0", 300), &set("0-3")).mask;
    assert_eq!(repair(&ledger), Some(Mask::All));
    ledger.insert(ThreadKey { process: 10, thread: 10, born: 250 }, entry(Mask::All));
    assert_eq!(repair(&ledger), None);
}

#[test]
fn memory_of_the_departed_is_bounded() {
    let mut ledger = Ledger::default();
    for thread in 0..5000 {
        let key = ThreadKey { process: 10, thread, born: 5 };
        let mut entry = entry(Mask::All);
        entry.put_in_force(pinned("0"), 100);
        ledger.insert(key, entry);
        ledger.depart(&key, 200);
        ledger.saw_at_birth(key);
    }
    assert_eq!(ledger.departed(200).count(), REMEMBERED);
    assert_eq!(ledger.seen_at_birth.len(), REMEMBERED);
}

#[test]
fn nice_and_class_are_inherited_too() {
    let in_force = InForce { mask: None, nice: Some(-10), waiting: true };
    let child = Newborn { nice: -10, class: Class::Idle, ..newborn("0-3", 1) };
    let repair = Repair::of(&child, &in_force, &entry(Mask::All).saved, &set("0-3"));
    let expected = Repair { mask: None, nice: Some(0), class: Some(Class::Other), carried: None };
    assert_eq!(repair, expected);
}
