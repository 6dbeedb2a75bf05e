//! Files of rules.
#![no_main]

use symbiont_fuzz::fuzz_target;

fuzz_target!(|text: &str| symbiont_daemon::fuzz_rules(text));
