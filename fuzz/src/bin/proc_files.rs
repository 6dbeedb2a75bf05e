//! Files of /proc: stat, schedstat, loadavg.
#![no_main]

use symbiont_fuzz::fuzz_target;
use symbiont_linux::fuzzing;

fuzz_target!(|bytes: &[u8]| fuzzing::proc_files(bytes));
