//! Reports of the kernel's process connector, in any order.
#![no_main]

use symbiont_fuzz::fuzz_target;
use symbiont_linux::fuzzing;

fuzz_target!(|bytes: &[u8]| fuzzing::reports(bytes));
