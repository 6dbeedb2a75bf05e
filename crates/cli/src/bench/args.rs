//! What `symbiont bench` takes.

mod compare;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use symbiont_linux::slow::SlowCpu;
use symbiont_topology::CpuSet;

pub use self::compare::{BenchArgs, Compare};
use crate::args::parse_limit;

#[derive(Debug, Subcommand)]
pub enum Bench {
    Pairs(BenchPairs),
    Phases(BenchPhases),
    Latency(BenchLatency),
    Openmp(BenchOpenmp),
}

/// In whose session programs run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Session {
    /// All in one
    Shared,
    /// Each in its own
    Own,
}

/// A part of the campaign on serial phases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Part {
    /// A parallel program co-running with a serial one, in many rounds
    Headline,
    /// All pairs of ratios
    Matrix,
    /// Two real programs
    Real,
}

/// How programs slow each other down on the two hardware threads of a core
///
/// At most 20 minutes. Finds out by measuring which hardware threads share a core, also where a virtual machine
/// hides it, and runs the COMMANDs on such a pair: each alone, and each with each, itself included, in interleaved
/// rounds. Without COMMANDs it runs kernels of ours that ask for different parts of a core. Writes pairs.csv,
/// which `simulate --pairs`, `check-sim --pairs` and `reproduce symbiont-measured-pairs --pairs` take, pairs.json
/// with intervals, and a page. Keep the machine quiet meanwhile. An interrupted command goes on where it stopped;
/// what it has measured until then is even.
///
/// COMMANDs are repeated where instructions and cycles can be counted. Elsewhere each run is waited for: they
/// should take a second or two.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  symbiont bench pairs
  symbiont bench pairs 'xz -9kc a.tar' './solver small.in' 'python3 train.py --epochs 1'
  symbiont bench pairs --limit 3min --kernels 'stores,divisions,sum of 64 MiB'
  symbiont simulate --pairs report/pairs/pairs.csv --policy learned")]
pub struct BenchPairs {
    /// Programs, each a command line for sh; their standard output is dropped [default: kernels of ours]
    #[arg(value_name = "COMMAND")]
    pub commands: Vec<String>,
    /// What the COMMANDs are called in the files, separated by commas [default: what each executes first]
    #[arg(long, value_name = "LIST", value_delimiter = ',', requires = "commands")]
    pub names: Vec<String>,
    /// Kernels of ours to run, separated by commas (`symbiont-synth kernel` lists them) [default: 14 of them]
    #[arg(long, value_name = "LIST", value_delimiter = ',', conflicts_with = "commands")]
    pub kernels: Vec<String>,
    /// Time that all of it may take; with more of it there are more rounds
    #[arg(long, value_name = "TIME", default_value = "20min", value_parser = parse_limit)]
    pub limit: Duration,
    /// Use these two CPUs, e.g. 0,1, whatever they share [default: two that are found to share a core]
    #[arg(long, value_name = "CPU,CPU")]
    pub cpus: Option<CpuSet>,
    /// Folder of the report and of the finished runs
    #[arg(long, value_name = "FOLDER", default_value = "report/pairs")]
    pub output: PathBuf,
    /// Seed of the order of runs
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Write the report's data to standard output as JSON
    #[arg(long)]
    pub json: bool,
}

/// Serial phases first (Morad et al.) against the OS, with real runs
///
/// Nine minutes. Runs the synthetic benchmark in pairs under `stay` and `phases`, interleaved,
/// with all programs in one session and with each in its own (autogroup shares
/// CPU time by session), and writes a report with the paper's predictions next to
/// each figure. Two real programs, Python and xz, are compared in the same way.
/// An interrupted command goes on where it stopped.
#[derive(Debug, Args)]
pub struct BenchPhases {
    /// Folder of the report and of the raw runs [default: report/phases, with -asymmetric,
    /// -all-ratios and -short behind it as it applies]
    #[arg(long, value_name = "FOLDER")]
    pub output: Option<PathBuf>,
    /// Two to three minutes instead
    #[arg(long)]
    pub short: bool,
    /// A minute instead, for a first look: one pair of programs until it is decided, and two real ones;
    /// says what came out in one sentence
    #[arg(long, conflicts_with_all = ["short", "all_ratios", "json"])]
    pub quick: bool,
    /// All pairs of the paper's nine ratios (Tables 4 and 5, Fig. 8) in one session, and
    /// nothing else: ten minutes
    #[arg(long)]
    pub all_ratios: bool,
    /// Parts of the campaign, separated by commas [default: all]
    #[arg(long, value_enum, value_name = "PART", value_delimiter = ',')]
    pub parts: Vec<Part>,
    /// Seed of the order of runs and of the programs' phases
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Make a CPU so many times as slow meanwhile, e.g. 1:2, to emulate an asymmetric machine;
    /// repeatable (as root; a process of high priority takes it away for a part of each 4 ms)
    #[arg(long, value_name = "CPU:FACTOR")]
    pub slow_cpu: Vec<SlowCpu>,
    /// Write the report's data to standard output as JSON
    #[arg(long)]
    pub json: bool,
}

/// What a class does for a program that answers requests, co-running with busy threads
///
/// Median, 99th and 99.9th percentile of the time from a request to its answer: without classes, with
/// class latency, with the busy threads of class batch, and without co-runners. Takes 4 to 8 minutes:
/// rounds are added until class latency is decided.
#[derive(Debug, Args)]
pub struct BenchLatency {
    /// Folder of the report and of the raw runs [default: report/latency, or report/latency-short]
    #[arg(long, value_name = "FOLDER")]
    pub output: Option<PathBuf>,
    /// Half a minute instead of the whole campaign
    #[arg(long)]
    pub short: bool,
    /// Seed of the order of runs and of the requests' arrivals
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Write the report's data to standard output as JSON
    #[arg(long)]
    pub json: bool,
}

/// Serial phases first for real parallel programs: OpenMP kernels in all pairs
///
/// Nine minutes. Builds well-known kernels (with cc and OpenMP), and runs each pair in
/// both orders at the same time under `stay` and `phases`, interleaved, with dynamic
/// schedules (Morad et al., Tables 6 and 7). An interrupted command goes on where it
/// stopped.
#[derive(Debug, Args)]
pub struct BenchOpenmp {
    /// Folder of the report and of the raw runs [default: report/openmp, or
    /// report/openmp-short]
    #[arg(long, value_name = "FOLDER")]
    pub output: Option<PathBuf>,
    /// Two minutes instead
    #[arg(long)]
    pub short: bool,
    /// Kernels, separated by commas [default: jacobi,cg,lu,mandelbrot,sort,bfs; others: nbody,
    /// life, montecarlo, matmul]
    #[arg(long, value_name = "LIST", value_delimiter = ',',
        value_parser = clap::builder::PossibleValuesParser::new(symbiont_experiments_host::openmp::KERNELS),
        hide_possible_values = true)]
    pub kernels: Vec<String>,
    /// Rounds, in each of which every pair runs under either policy; more can be added later
    /// [default: 5, or 1]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub rounds: Option<u32>,
    /// Sessions of the two programs, separated by commas: shared, own [default: shared]
    #[arg(long, value_enum, value_name = "SESSION", value_delimiter = ',')]
    pub sessions: Vec<Session>,
    /// Seed of the order of runs
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Make a CPU so many times as slow meanwhile, e.g. 1:2; repeatable (as root)
    #[arg(long, value_name = "CPU:FACTOR")]
    pub slow_cpu: Vec<SlowCpu>,
    /// The C compiler
    #[arg(long, value_name = "PROGRAM", default_value = "cc")]
    pub compiler: PathBuf,
    /// Write the report's data to standard output as JSON
    #[arg(long)]
    pub json: bool,
}
