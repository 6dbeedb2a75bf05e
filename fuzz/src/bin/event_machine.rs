//! The actuator over a simulated kernel: any order of births, execs, ends, reports, moves, samples
//! and crashes.
#![no_main]

use symbiont_fuzz::fuzz_target;
use symbiont_linux::actuate::event_machine;

fuzz_target!(|bytes: &[u8]| event_machine::run(bytes));
