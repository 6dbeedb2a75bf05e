//! The machine that a model is trained for.

use symbiont_counters::catalogue::Catalogue;
use symbiont_experiment::training::simulated;
use symbiont_sim::description::Description;
use symbiont_topology::CoreKind;

use super::{Fitting, one_sort};

impl Fitting {
    /// A simulated machine.
    pub fn simulated(machine: &Description) -> anyhow::Result<Self> {
        let core = one_sort(&machine.topology)?;
        let catalogue = simulated::catalogue(machine)?;
        Ok(Self { name: simulated::machine_name(machine), core, catalogue })
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn core(&self) -> CoreKind {
        self.core
    }

    pub fn into_catalogue(self) -> Catalogue {
        self.catalogue
    }
}
