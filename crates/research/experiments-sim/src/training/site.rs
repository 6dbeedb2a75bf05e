//! The seam between a training and the machine, or the simulator, that its runs are carried out on.

use std::time::Duration;

use symbiont_campaign::Error;
use symbiont_counters::catalogue::Catalogue;
use symbiont_model::Components;
use symbiont_topology::CoreKind;

use super::plan::{TrainingRun, TrainingSize};
use super::watch::WatchedRun;

/// Where training runs are carried out.
pub trait Site: Sync {
    /// The machine, as model files name it.
    fn machine(&self) -> String;

    /// What a report should say of it.
    fn facts(&self) -> Vec<(String, String)>;

    /// The type of its cores.
    fn core(&self) -> CoreKind;

    /// A digest of what else a run follows from: programs, conditions.
    fn basis(&self, run: &TrainingRun) -> String;

    /// By what its counts are understood.
    fn catalogue(&self) -> &Catalogue;

    /// Runs that may be carried out at a time.
    fn workers(&self) -> usize;

    /// Can what processes of no-operations cost be distinguished from what the SMT mode costs, in which they
    /// keep the core?
    fn tells_nops(&self) -> bool;

    /// Carries a run out.
    ///
    /// # Errors
    /// Why it could not be.
    fn carry_out(
        &self,
        run: &TrainingRun,
        components: &Components,
        size: &TrainingSize,
    ) -> Result<WatchedRun, Error>;

    /// About how long a run takes on one CPU, which runs so many quanta.
    fn cost(&self, run: &TrainingRun, size: &TrainingSize) -> Duration;
}
