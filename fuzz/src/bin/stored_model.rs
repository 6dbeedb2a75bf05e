//! Stored interference models; the checksum is made to fit.
#![no_main]

use symbiont_fuzz::fuzz_target;
use symbiont_model::{Model, fuzzing};

fuzz_target!(|text: &str| {
    let _ = Model::parse(text);
    let Ok(model) = Model::parse(&fuzzing::sealed(text)) else { return };
    let written = model.to_text().expect("what was read can be written");
    assert_eq!(Model::parse(&written).expect("and read again"), model);
});
