//! Tests of the catalogue as a whole; small parts are tested next to their code.

mod formulas;
mod machines;
mod malformed;
mod shipped;
mod slots;

use super::{Catalogue, CatalogueError};

/// A small catalogue that is right, for tests to spoil.
const SOUND: &str = r#"name = "toy"
title = "A toy"
source = "made up"
caveats = "None."

[smt]
threads = 1
correction = "None."

[[detect]]
implementer = 0x7f
parts = [0x123]

[pmu]
type = "raw"
counters = [0, 1]
format.event = "config:0-7,32-35"
format.umask = "config:8-15"

[[event]]
name = "CYCLES"
what = "Cycles"
event = 0x11
fixed = 31

[[event]]
name = "STALLS"
what = "Cycles without progress"
event = 0x1a3
umask = 0x02
counters = [1]

[[event]]
name = "LOADS.ALL"
what = "Loads"
event = 0x06

[[event]]
name = "STORES"
what = "Stores"
event = 0x07

[[group]]
name = "stalls"
events = ["CYCLES", "STALLS", "LOADS.ALL"]

[[group]]
name = "stores"
events = ["CYCLES", "STORES"]

[formula.stalled]
expr = "STALLS / CYCLES"
unit = "fraction"
source = "made up"

[formula.running]
expr = "1 - stalled"
unit = "fraction"
source = "made up"

[formula.l1d_bandwidth]
expr = "LOADS.ALL / CYCLES + STORES / CYCLES"
unit = "accesses/cycles"
source = "made up"

[[sum]]
name = "all"
parts = ["stalled", "running"]

[[categories]]
name = "TopL"
members = ["stalled", "running"]
"#;

pub(super) fn sound() -> Catalogue {
    Catalogue::parse("toy.toml", SOUND).expect("the toy is sound")
}

/// Parses the toy with one piece of its text replaced.
fn spoiled(from: &str, to: &str) -> Result<Catalogue, CatalogueError> {
    assert!(SOUND.contains(from), "the toy holds no '{from}'");
    Catalogue::parse("toy.toml", &SOUND.replacen(from, to, 1))
}

/// The catalogue of this name that the crate carries.
pub(super) fn shipped(name: &str) -> Catalogue {
    let read = Catalogue::named(name).expect("a name of the list");
    read.unwrap_or_else(|error| panic!("{error}"))
}
