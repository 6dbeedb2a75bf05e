//! What to train, and what follows from that alone.

use std::path::PathBuf;
use std::time::SystemTime;

use symbiont_campaign::Error;
use symbiont_model::{Components, Depth, Training};
use symbiont_training::Weighting;

use super::plan::TrainingSize;
use super::site::Site;

/// What to train.
#[derive(Debug, Clone)]
pub struct TrainingOptions {
    /// Folder of the finished runs, and of all that is written.
    pub output: PathBuf,
    /// The programs.
    pub programs: Vec<String>,
    /// Which stack the model is made of.
    pub stack: Depth,
    /// What an observation weighs.
    pub weighting: Weighting,
    /// How large the training is.
    pub size: TrainingSize,
    /// Seed of the groups that are drawn.
    pub seed: u64,
}

impl TrainingOptions {
    pub(super) fn components(&self, site: &dyn Site) -> Result<Components, Error> {
        Components::of(site.catalogue(), self.stack.sum()).map_err(Error::evaluation)
    }

    /// What a model file says of its training.
    pub(super) fn training(&self) -> Training {
        Training {
            date: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
            programs: self.programs.clone(),
            quantum_ms: self.size.quantum.as_millis() as u64,
            note: String::new(),
        }
    }
}
