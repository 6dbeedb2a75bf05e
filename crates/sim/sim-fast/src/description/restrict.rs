//! A part of a machine.

use symbiont_topology::{CoreKind, HardwareThread, PuId, Topology};

use super::{Description, Restriction};

/// Capacity of the fastest core.
const FASTEST: u32 = 1024;

impl Description {
    /// The machine with only its first `cores` cores, and on each only its
    /// first `smt` hardware threads, as if the others were offline. `None` keeps
    /// all. Caches and memory stay as they are.
    ///
    /// # Errors
    /// When there are not so many, or none is asked for.
    pub fn restricted(self, cores: Option<usize>, smt: Option<usize>) -> Result<Self, Restriction> {
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
        self.keep(&kept)
    }

    /// The machine with only its cores of a type.
    ///
    /// # Errors
    /// When it has none.
    pub fn of_type(self, core_type: CoreKind) -> Result<Self, Restriction> {
        let cores = self.topology.cores().iter().filter(|core| core.kind == core_type);
        let kept: Vec<PuId> = cores.flat_map(|core| core.cpus.iter()).collect();
        if kept.is_empty() {
            return Err(Restriction::CoreType { machine: self.name, core_type });
        }
        if kept.len() == self.topology.cpus().len() {
            return Ok(self);
        }
        self.keep(&kept)
    }

    fn keep(mut self, kept: &[PuId]) -> Result<Self, Restriction> {
        let mut threads: Vec<HardwareThread> = self
            .topology
            .hardware_threads()
            .into_iter()
            .filter(|thread| kept.contains(&thread.pu))
            .collect();
        // Capacities are relative to the fastest.
        let fastest = threads.iter().map(|thread| thread.capacity).max().unwrap_or(1).max(1);
        for thread in &mut threads {
            let scaled = u64::from(thread.capacity) * u64::from(FASTEST) / u64::from(fastest);
            thread.capacity = u32::try_from(scaled).unwrap_or(FASTEST);
        }
        let nodes = self.topology.nodes().to_vec();
        self.topology = Topology::new(self.topology.origin().clone(), threads, nodes)?;
        let used = |kind| self.topology.cores().iter().any(|core| core.kind == kind);
        self.core_types.retain(|core| used(core.kind));
        Ok(self)
    }
}
