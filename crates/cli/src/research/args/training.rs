//! The arguments of training.

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgGroup, Args, ValueEnum};
use symbiont_model::Depth;
use symbiont_training::Weighting;

use super::Kept;
use super::profiles::usual_profiles;
use crate::args::parse_duration;

/// Learn how threads on one core slow each other down
///
/// Runs programs on one core: each alone, with the core undivided and set up for two and
/// four threads; all pairs; a sample of groups of four (Feliu et al., section 3.2).
/// Fits an interference model on counts of events, and cross-validates it on programs
/// that were left out. Writes a folder: model.toml for the policies `symbiotic`,
/// `symbiotic-numa` and `symbiotic-online`, for `auto`, and for `symbiont slurm`;
/// slowdowns.json for `oracle`; and a report (index.html).
///
/// An interrupted training goes on where it stopped.
#[derive(Debug, Args)]
#[command(
    group = ArgGroup::new("where").required(true).args(["machine", "jobs"]),
    after_help = "\
Examples:
  symbiont train --machine power8-s812l
  symbiont train --machine power8-s812l --programs gzip,bwa,lbm,povray --fours 0
  symbiont train --jobs programs.toml --cpus 0,1

A file of programs to train on, on this machine:
  [[job]]
  name = \"gzip\"
  command = [\"gzip\", \"-9\", \"-kc\", \"big.tar\"]"
)]
pub struct Train {
    /// Simulated machine to train on (see `symbiont machines`), or the file of a description
    #[arg(long, value_name = "NAME")]
    pub machine: Option<String>,
    /// Core type to train on, of a simulated machine that has several [default: the first that its
    /// description has]
    #[arg(long, value_name = "TYPE", requires = "machine")]
    pub sort: Option<CoreTypeChoice>,
    /// Train on this machine, with the programs of FILE (TOML)
    #[arg(long, value_name = "FILE")]
    pub jobs: Option<PathBuf>,
    /// Hardware threads of one core to train on [default: those of the first core]
    #[arg(long, value_name = "CPU", value_delimiter = ',', requires = "jobs")]
    pub cpus: Vec<u32>,
    /// Event catalogue: a name or a file [default: the one for this processor]
    #[arg(long, value_name = "NAME|FILE", requires = "jobs")]
    pub catalogue: Option<String>,
    /// Programs to train on, of those with a profile [default: all real ones]
    #[arg(long, value_name = "NAME", value_delimiter = ',', requires = "machine")]
    pub programs: Vec<String>,
    /// Folder of everything that is written [default: training/MACHINE]
    #[arg(long, value_name = "FOLDER")]
    pub output: Option<PathBuf>,
    /// Stack that the model is made of: coarse, which every catalogue has, or fine, with stalls
    /// by unit and memory level, and with the lines that move
    #[arg(long, value_name = "NAME", default_value = "coarse")]
    pub stack: Depth,
    /// What observations weigh in the regression: the same, as published, or less the more slowed down they are, so
    /// that relative errors are least
    #[arg(long, value_name = "NAME", default_value = "plain")]
    pub regression: Regression,
    /// Quanta of each run
    #[arg(long, value_name = "COUNT", default_value_t = 100)]
    pub quanta: usize,
    /// Length of a quantum
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "100ms")]
    pub quantum: Duration,
    /// Groups of four that are drawn; 0: cores with four threads are not trained
    #[arg(long, value_name = "COUNT", default_value_t = 300)]
    pub fours: usize,
    /// Seed of everything that is random
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Folder of the programs' profiles [default: profiles in the current folder, else those installed]
    #[arg(long, value_name = "FOLDER", default_value_os_t = usual_profiles(), hide_default_value = true)]
    pub profiles: PathBuf,
    #[command(flatten)]
    pub kept: Kept,
    /// Counters without noise, residue, multiplexing and late readings
    #[arg(long, requires = "machine")]
    pub exact_counters: bool,
    /// Write the report's data to standard output as JSON
    #[arg(long)]
    pub json: bool,
}

/// What observations weigh.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Regression {
    /// The same
    Plain,
    /// 1/slowdown²
    Relative,
}

impl Regression {
    /// For the fit.
    pub fn weighting(self) -> Weighting {
        match self {
            Self::Plain => Weighting::Plain,
            Self::Relative => Weighting::Relative,
        }
    }
}

/// A core type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CoreTypeChoice {
    /// The only one, or the fast one (P-core, big)
    Performance,
    /// The small one (E-core, LITTLE)
    Efficiency,
}
