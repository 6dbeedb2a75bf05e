//! The running host, as a type of its own.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::path::Path;

use serde::Serialize;

use crate::sysfs::files::Folder;
use crate::sysfs::{LeftOut, SysfsError, read_tree};
use crate::{Origin, PuId, Topology};

/// The topology of the host that this process runs on.
///
/// Code that acts on real threads takes a `&HostTopology`. Nothing but
/// [`HostTopology::read`] makes one, so a topology that is described (a copied
/// `/sys` tree, an hwloc export, a synthetic string, a recording) can be
/// looked at everywhere but can never actuate this host:
///
/// ```
/// use symbiont_topology::{HostTopology, Topology};
///
/// fn pin_threads(host: &HostTopology) {
///     println!("would act on {}", host.cpus());
/// }
/// fn only_look(_: &Topology) {}
///
/// let host = HostTopology::read()?;
/// pin_threads(&host);
/// only_look(&host);
/// # Ok::<(), symbiont_topology::SysfsError>(())
/// ```
///
/// ```compile_fail,E0308
/// use symbiont_topology::{HostTopology, Origin, Topology};
///
/// fn pin_threads(_: &HostTopology) {}
///
/// let other: Topology = Topology::new(Origin::Host, vec![], vec![]).unwrap();
/// pin_threads(&other); // a `Topology` is no `HostTopology`, whatever it says of its origin
/// ```
///
/// The field is private, and the type can be written out but not read in:
///
/// ```compile_fail,E0423
/// use symbiont_topology::{HostTopology, Origin, Topology};
///
/// let other = Topology::new(Origin::Host, vec![], vec![]).unwrap();
/// let forged = HostTopology(other);
/// ```
///
/// ```compile_fail,E0277
/// fn read_in<T: serde::de::DeserializeOwned>() {}
/// read_in::<symbiont_topology::HostTopology>();
/// ```
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(transparent)]
pub struct HostTopology {
    topology: Topology,
    /// By how much some hardware threads are slower than `/sys` says.
    #[serde(skip)]
    slower: BTreeMap<PuId, f64>,
    /// What of `/sys` was not understood.
    #[serde(skip)]
    left_out: Vec<LeftOut>,
}

impl HostTopology {
    /// Reads the running host from `/sys`.
    ///
    /// # Errors
    /// When `/sys` is not mounted, or a file that decides placement makes no sense.
    pub fn read() -> Result<Self, SysfsError> {
        let (topology, left_out) = read_tree(&Folder(Path::new("/sys")), Origin::Host)?;
        Ok(Self { topology, slower: BTreeMap::new(), left_out })
    }

    /// Reads the running host again, as after a CPU went offline or came online. What was
    /// [slowed](Self::slowed) still is.
    ///
    /// # Errors
    /// As [`read`](Self::read); also when CPUs come and go while it reads.
    pub fn read_again(&self) -> Result<Self, SysfsError> {
        Self::read().map(|host| host.slowed(&self.slower))
    }

    /// What of `/sys` was not understood and left out.
    #[must_use]
    pub fn left_out(&self) -> &[LeftOut] {
        &self.left_out
    }

    /// This host, taken for one whose cores are so many times as slow as `/sys`
    /// says where these hardware threads are: where a virtual machine does not
    /// report it, or an experiment slows them down. It is still this host. Factors
    /// below 1 change nothing.
    #[must_use]
    pub fn slowed(self, factors: &BTreeMap<PuId, f64>) -> Self {
        Self { topology: self.topology.slowed(factors), slower: factors.clone(), ..self }
    }
}

impl Deref for HostTopology {
    type Target = Topology;

    fn deref(&self) -> &Topology {
        &self.topology
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_running_host_is_read() {
        let host = HostTopology::read().unwrap();
        assert_eq!(host.origin(), &Origin::Host);
        assert!(!host.cpus().is_empty());
        assert!(host.cores().iter().any(|core| core.capacity == 1024));
    }

    #[test]
    fn a_host_that_is_read_again_is_as_slow_as_before() {
        let host = HostTopology::read().unwrap();
        assert_eq!(host.read_again().unwrap(), host);
        let first = host.cpus().first().unwrap();
        let slowed = host.slowed(&[(first, 2.0)].into());
        assert_eq!(slowed.read_again().unwrap(), slowed);
    }

    #[test]
    fn a_core_is_as_slow_as_is_said_of_its_slowest_hardware_thread() {
        let machine = Topology::synthetic("core:2 smt:2 | core:1 capacity:512").unwrap();
        let capacities = |factors: &[(u32, f64)]| -> Vec<u32> {
            let factors = factors.iter().map(|&(pu, factor)| (PuId(pu), factor)).collect();
            machine.clone().slowed(&factors).cores().iter().map(|core| core.capacity).collect()
        };
        assert_eq!(capacities(&[]), [1024, 1024, 512]);
        assert_eq!(capacities(&[(1, 2.0), (0, 1.5)]), [512, 1024, 512]);
        // Where all fast ones are slowed, what is left is the measure.
        assert_eq!(capacities(&[(0, 4.0), (2, 4.0)]), [512, 512, 1024]);
        assert_eq!(capacities(&[(9, 4.0), (4, 1e9)]), [1024, 1024, 1]);
    }
}
