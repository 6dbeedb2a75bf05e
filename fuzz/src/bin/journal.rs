//! Journals of managers, of which the next run or `symbiont restore` takes what to put back.
#![no_main]

use symbiont_fuzz::fuzz_target;
use symbiont_linux::fuzzing;

fuzz_target!(|bytes: &[u8]| fuzzing::journal(bytes));
