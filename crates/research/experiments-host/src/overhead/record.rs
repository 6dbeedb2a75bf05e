//! What a run gives.

use serde::{Deserialize, Serialize};
use symbiont_campaign::harness::Managed;
use symbiont_campaign::{Finished, InRound};
use symbiont_synth::many;

use super::plan::Load;

/// What a run gives.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OverheadRecord {
    /// Seconds that it took, with everything around it.
    pub wall_s: f64,
    /// What the load reported.
    pub load: many::Report,
    /// What the manager reported of itself.
    pub managed: Managed,
}

/// A finished run.
pub type Done = Finished<InRound<Load>, OverheadRecord>;
