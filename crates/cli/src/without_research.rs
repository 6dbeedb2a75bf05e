//! What stands for [`crate::research`] in a build without it.

use std::sync::Arc;

use clap::Args;
use symbiont_linux::launch::Job;
use symbiont_policy::KnownActivity;

/// No option: this build reads no activity vectors.
#[derive(Debug, Default, Args)]
pub struct VectorFiles {}

impl VectorFiles {
    /// There are none.
    pub fn are_given(&self) -> bool {
        false
    }

    /// Nothing is known of programs.
    pub fn activity(&self, _: &[Job]) -> anyhow::Result<Option<Arc<KnownActivity>>> {
        Ok(None)
    }
}
