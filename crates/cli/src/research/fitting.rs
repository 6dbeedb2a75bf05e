//! The machine that a model is trained for.

use symbiont_counters::catalogue::Catalogue;
use symbiont_experiments_sim::training::simulated;
use symbiont_sim_fast::description::Description;

use crate::knowledge::{Fitting, core_types};

impl Fitting {
    /// A simulated machine.
    pub fn simulated(machine: &Description) -> anyhow::Result<Self> {
        let catalogue = simulated::catalogue(machine)?;
        let core_types = core_types(&machine.topology);
        Ok(Self { name: simulated::machine_name(machine), core_types, catalogue })
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn into_catalogue(self) -> Catalogue {
        self.catalogue
    }
}
