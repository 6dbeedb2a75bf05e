//! A part of a machine.

use symbiont_topology::{HardwareThread, PuId, Topology};

use super::{Description, Restriction};

impl Description {
    /// The machine with only its first `cores` cores, and on each only its
    /// first `smt` hardware threads, as if the others were offline. `None` keeps
    /// all. Caches and memory stay as they are.
    ///
    /// # Errors
    /// When there are not so many, or none is asked for.
    pub fn restricted(
        mut self,
        cores: Option<usize>,
        smt: Option<usize>,
    ) -> Result<Self, Restriction> {
        let (all, width) = (self.topology.cores().len(), self.topology.smt_width());
        let count = |asked| Restriction::Count {
            machine: self.name.clone(),
            cores: all,
            smt: width,
            asked,
        };
        if let Some(asked) = cores.filter(|asked| !(1..=all).contains(asked)) {
            return Err(count(format!("{asked} cores")));
        }
        if let Some(asked) = smt.filter(|asked| !(1..=width).contains(asked)) {
            return Err(count(format!("{asked} hardware threads")));
        }
        if cores.is_none() && smt.is_none() {
            return Ok(self);
        }
        let kept: Vec<PuId> = self
            .topology
            .cores()
            .iter()
            .take(cores.unwrap_or(all))
            .flat_map(|core| core.cpus.iter().take(smt.unwrap_or(width)))
            .collect();
        let threads: Vec<HardwareThread> = self
            .topology
            .hardware_threads()
            .into_iter()
            .filter(|thread| kept.contains(&thread.pu))
            .collect();
        let nodes = self.topology.nodes().to_vec();
        self.topology = Topology::new(self.topology.origin().clone(), threads, nodes)?;
        let used = |kind| self.topology.cores().iter().any(|core| core.kind == kind);
        self.core_types.retain(|core| used(core.kind));
        Ok(self)
    }
}
