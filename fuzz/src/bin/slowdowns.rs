//! Slowdowns of pairs of programs.
#![no_main]

use symbiont_fuzz::fuzz_target;
use symbiont_policy::PairSlowdowns;

fuzz_target!(|bytes: &[u8]| {
    let Ok(read) = serde_json::from_slice::<PairSlowdowns>(bytes) else { return };
    for victim in read.programs() {
        assert!(read.slowdown(victim, victim).is_some_and(|slowdown| slowdown > 0.0));
    }
    let written = serde_json::to_vec(&read).expect("what was read can be written");
    assert_eq!(serde_json::from_slice::<PairSlowdowns>(&written).expect("and read again"), read);
});
