//! The tree of enrolled threads against a plain model of the living ones.
#![no_main]

use symbiont_fuzz::fuzz_target;
use symbiont_linux::fuzzing;

fuzz_target!(|bytes: &[u8]| fuzzing::world(bytes));
