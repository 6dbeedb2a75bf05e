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

/// Activity vectors of the programs that run.
#[cfg(feature = "research")]
#[derive(Debug, Default, Args)]
pub struct VectorFiles {
    /// Activity vectors that `activity` schedules by, made by `symbiont profile --vectors`; repeatable, one
    /// file for each executable. Of other caches or another version of a program they are refused
    #[arg(long, value_name = "FILE")]
    pub vectors: Vec<PathBuf>,
}
