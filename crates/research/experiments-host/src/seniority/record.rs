//! What a run gives.

use serde::{Deserialize, Serialize};
use symbiont_campaign::{Finished, InRound};

use super::judge::Judged;
use super::plan::Cell;

/// What a run gives.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SeniorityRecord {
    /// Length of a quantum, in ms.
    pub quantum_ms: Option<f64>,
    /// What it showed.
    pub judged: Judged,
}

/// A finished run.
pub type Done = Finished<InRound<Cell>, SeniorityRecord>;
