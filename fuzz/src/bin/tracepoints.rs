//! Formats of tracepoints and records in a ring.
#![no_main]

use symbiont_fuzz::fuzz_target;
use symbiont_linux::fuzzing;

fuzz_target!(|bytes: &[u8]| fuzzing::tracepoints(bytes));
