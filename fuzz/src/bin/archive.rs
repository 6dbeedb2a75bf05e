//! Packed copies of /sys.
#![no_main]

use symbiont_fuzz::fuzz_target;
use symbiont_topology::archive::{Bounds, read_packed};

/// CPUs of one machine: more only take time.
const MOST_CPUS: usize = 256;

fuzz_target!(|bytes: &[u8]| {
    let bounds = Bounds { entries: 1000, unpacked: 4 << 20, kept: 1 << 20 };
    let Ok((topology, _)) = read_packed(bytes, "archive", bounds) else { return };
    if topology.cpus().len() <= MOST_CPUS {
        let written = serde_json::to_string(&topology).expect("a topology can be written");
        let read: symbiont_topology::Topology =
            serde_json::from_str(&written).expect("and read again");
        assert_eq!(read, topology);
    }
});
