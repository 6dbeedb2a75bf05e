//! Maps of programs to profiles, as `symbiont reproduce --programs` takes them.
#![no_main]

// The room of the figures uses nearly all others, and this file none: it is compiled here by itself.
#[path = "../../../crates/research/reproduce/src/own/map.rs"]
mod map;

use symbiont_fuzz::fuzz_target;

fuzz_target!(|text: &str| {
    let Ok(first) = map::entries(text) else { return };
    let written: String = first.iter().map(|entry| format!("{entry}\n")).collect();
    let again = map::entries(&written).expect("what was written is a map");
    let of = |entry: &map::Entry| (entry.name.clone(), entry.path.clone());
    assert!(again.iter().map(of).eq(first.iter().map(of)), "{written}");
    assert!(first.iter().all(|entry| entry.line <= text.lines().count()));
});
