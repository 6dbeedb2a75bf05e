//! CPU lists as the kernel writes them.
#![no_main]

use symbiont_fuzz::fuzz_target;
use symbiont_topology::CpuSet;

fuzz_target!(|text: &str| {
    let Ok(set) = text.parse::<CpuSet>() else { return };
    let written = set.to_string();
    assert_eq!(written.parse::<CpuSet>().as_ref(), Ok(&set));
    assert_eq!(set.iter().count(), set.len());
    assert_eq!(set.iter().collect::<CpuSet>(), set);
});
