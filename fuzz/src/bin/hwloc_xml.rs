//! Exports of hwloc.
#![no_main]

use symbiont_fuzz::fuzz_target;
use symbiont_topology::{Topology, hwloc};

fuzz_target!(|text: &str| {
    let Some(topology) = hwloc::fuzzing::read_xml(text) else { return };
    let written = serde_json::to_string(&topology).expect("a topology can be written");
    let read: Topology = serde_json::from_str(&written).expect("and read again");
    assert_eq!(read, topology);
});
