//! What policies are given beforehand, as arguments.

use std::path::PathBuf;

use clap::Args;

/// What policies are given beforehand.
#[derive(Debug, Default, Args)]
pub struct Knowledge {
    /// Interference model that the symbiotic policies predict by, made by `symbiont train` of a full
    /// build; repeatable where a machine has several core types that run several threads, one for
    /// each
    #[arg(long, value_name = "FILE")]
    pub model: Vec<PathBuf>,
    /// Slowdowns of pairs that `oracle` knows, measured by `symbiont train` of a full build
    #[arg(long, value_name = "FILE")]
    pub slowdowns: Option<PathBuf>,
}
