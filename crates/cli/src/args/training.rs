//! The arguments of training, and of what tries what was trained.

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgGroup, Args, ValueEnum};
use symbiont_model::Depth;

use super::{Kept, Knowledge, Private, parse_duration};

/// Learn how threads on one core slow each other down
///
/// Runs programs on one core: each alone, with the core undivided and set up for two and
/// four threads; all pairs; a sample of groups of four (Feliu et al., section 3.2).
/// Fits an interference model on what the counters tell, and cross-validates it on programs
/// that were left out. Writes a folder: model.toml for the policies `symbiotic` and
/// `symbiotic-numa`, slowdowns.json for `oracle`, and a report (index.html).
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
    /// Sort of core to train on, of a simulated machine that has several [default: the first that its
    /// description tells]
    #[arg(long, value_name = "SORT", requires = "machine")]
    pub sort: Option<Sort>,
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
    /// Train on synthetic programs with one trait each too, which are never left out and never
    /// judged
    #[arg(long, requires = "machine")]
    pub rulers: bool,
    /// Folder of everything that is written [default: training/MACHINE]
    #[arg(long, value_name = "FOLDER")]
    pub output: Option<PathBuf>,
    /// Stack that the model is made of: coarse, which every catalogue has, or fine, with stalls
    /// by unit and memory level, and with the lines that move
    #[arg(long, value_name = "NAME", default_value = "coarse")]
    pub stack: Depth,
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
    /// Folder of the programs' profiles
    #[arg(long, value_name = "FOLDER", default_value = "profiles")]
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

/// A sort of core.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Sort {
    /// The only one, or the fast one (P-core, big)
    Performance,
    /// The small one (E-core, LITTLE)
    Efficiency,
}

/// Symbiotic scheduling against other policies, on a simulated machine
///
/// Runs workloads of two and of four programs for each core, on 4 to 10 cores, under random
/// placement, the simulated OS, l1-bandwidth, symbiotic, symbiotic-numa and (pairs only) the
/// oracle, and writes a report with gains in STP and ANTT over random placement (Feliu et
/// al., section 6); and workloads of eight programs for each core under the simulated OS, in SMT8 and
/// in SMT4 (section 5). An interrupted evaluation goes on where it stopped. Nothing of it is
/// measured on hardware.
#[derive(Debug, Args)]
pub struct BenchSymbiosis {
    /// Simulated machine (see `symbiont machines`), or the file of a description
    #[arg(long, value_name = "NAME", default_value = "power8-s812l")]
    pub machine: String,
    #[command(flatten)]
    pub knowledge: Knowledge,
    /// Predict each workload by a model that knows none of its programs, fitted on the other runs of
    /// the training in FOLDER, which --model came from
    #[arg(long, value_name = "FOLDER", requires = "model")]
    pub left_out: Option<PathBuf>,
    /// Folder of the report and of the raw runs [default: report/symbiosis, or
    /// report/symbiosis-short]
    #[arg(long, value_name = "FOLDER")]
    pub output: Option<PathBuf>,
    /// Some workloads with short targets instead of all 160
    #[arg(long)]
    pub short: bool,
    /// Programs for each core
    #[arg(long, value_name = "COUNT", value_delimiter = ',')]
    pub widths: Vec<usize>,
    /// Counts of cores
    #[arg(long, value_name = "COUNT", value_delimiter = ',')]
    pub cores: Vec<usize>,
    /// Workloads of each width, over all counts of cores
    #[arg(long, value_name = "COUNT")]
    pub workloads: Option<usize>,
    /// Repeats of each workload
    #[arg(long, value_name = "COUNT")]
    pub repeats: Option<u32>,
    /// Workloads of each width and count of cores that are run as negative controls too, with moves
    /// that cost nothing (measurements exchanged between programs, for good and anew each quantum, and
    /// nothing recalled; units and caches private to each thread), and with decisions that take a
    /// millisecond, with and without a core reserved for them
    #[arg(long, value_name = "COUNT")]
    pub controls: Option<usize>,
    /// Workloads of eight programs for each of 4 and of 10 cores, run in SMT8 and in SMT4 by the
    /// simulated OS, where the machine has SMT8 [default: 10, or 0]
    #[arg(long, value_name = "COUNT")]
    pub smt8: Option<usize>,
    /// How long each program runs alone to set its target (simulated time)
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub alone: Option<Duration>,
    /// Policies to compare; `random` is needed for gains
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub policies: Vec<String>,
    /// Programs to draw from, of those with a profile [default: all real ones]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub programs: Vec<String>,
    /// Give each thread a resource for itself, to show what sharing it causes
    #[arg(long, value_enum, value_name = "WHAT", value_delimiter = ',')]
    pub private: Vec<Private>,
    /// Seed of everything that is random
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Folder of the programs' profiles
    #[arg(long, value_name = "FOLDER", default_value = "profiles")]
    pub profiles: PathBuf,
    #[command(flatten)]
    pub kept: Kept,
    /// Write the report's data to standard output as JSON
    #[arg(long)]
    pub json: bool,
}
