//! What was changed is restored: at the end, and by `restore` after a crash.

use rustix::process::Signal;

use crate::given::Given;
use crate::settings::{changed, of_tree, own, wait_for_change};
use crate::test_folder::{Program, TestFolder};

use super::workers::command;

const RANDOM: [&str; 4] = ["--policy", "random", "--quantum", "100ms"];

/// Four processes, of which one is placed at least.
fn placed(place: &TestFolder) -> Program {
    let words = command(&["group", "all", "4", "sleeper"]);
    let program = place.start(&mut place.run(&RANDOM, &words));
    wait_for_change(program.id(), &own());
    program
}

pub fn end(_: &Given) {
    let place = TestFolder::new();
    let program = placed(&place);
    place.signal_manager(Signal::TERM);
    assert!(of_tree(program.id()).len() >= 5, "the program runs on");
    assert!(changed(program.id(), &own()).is_empty(), "{:?}", changed(program.id(), &own()));
    assert!(place.journals().is_empty(), "{:?}", place.journals());
}

pub fn restored(_: &Given) {
    let place = TestFolder::new();
    let program = placed(&place);
    place.kill_manager();
    let left = changed(program.id(), &own());
    assert!(!left.is_empty(), "what is applied outlives the manager");
    let said: Vec<_> = place.journals().into_iter().map(std::fs::read_to_string).collect();
    let restored = place.restore();
    assert_eq!(restored.code, Some(0), "{}", restored.stderr);
    assert_eq!(restored.report["report"]["restored"], left.len(), "{left:?} {said:?}");
    assert!(changed(program.id(), &own()).is_empty(), "{:?}", changed(program.id(), &own()));
    assert!(place.journals().is_empty(), "{:?}", place.journals());
}
