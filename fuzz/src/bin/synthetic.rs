//! Synthetic machines, each described in a line.
#![no_main]

use symbiont_fuzz::fuzz_target;
use symbiont_topology::{Synthetic, Topology};

fuzz_target!(|line: &str| {
    let Ok(machine) = line.parse::<Synthetic>() else {
        assert!(Topology::synthetic(line).is_err());
        return;
    };
    let written = machine.to_string();
    assert_eq!(written.parse::<Synthetic>().as_ref(), Ok(&machine));
    if let (Ok(one), Ok(other)) = (Topology::synthetic(line), Topology::synthetic(&written)) {
        assert_eq!((one.cores(), one.llcs()), (other.cores(), other.llcs()));
        assert_eq!((one.nodes(), one.packages()), (other.nodes(), other.packages()));
    }
});
