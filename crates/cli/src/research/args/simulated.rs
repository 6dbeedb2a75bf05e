//! The arguments of commands on simulated machines.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use super::VectorFiles;
use super::profiles::usual_profiles;
use crate::args::{Knowledge, Parameters, parse_duration, parse_limit};

/// Run a workload under a policy on a simulated machine
///
/// Each program first runs alone for a while; what it retires is its target. Then
/// all run together, from random starts, until each has reached its target once;
/// a program that is ahead starts again, so that the load stays (Feliu et al., section 5).
/// Prints STP, ANTT and fairness with 95 % intervals over the repeats.
///
/// Nothing of this is measured on hardware: it is as good as the machine's
/// description and the programs' profiles.
#[derive(Debug, Args)]
#[command(after_help = "\
Programs: names separated by commas, as `symbiont workloads` lists them.
  gzip*3     three of them
  gzip@4:1   serial and parallel phases, labelled as by Morad et al.
  gzip@all   all threads that its profile has
Without --apps and --workload: one real program for each hardware thread, drawn with the seed;
none twice before all were drawn once.

What a program does on a machine is tabulated the first time, by all processors (seconds for
each program), and kept for later runs.

Examples:
  symbiont simulate --machine power8-s812l --cores 5 --smt 4 --policy random --seed 1
  symbiont simulate --machine xeon-e5-2620v4 --cores 2 --apps gzip,povray,xz,bwa
  symbiont simulate --machine xeon-e5-2620v4 --cores 1 --apps gzip,bzip2 --level cycle
  symbiont simulate --machine power8-s812l --topology 'package:2 core:4 smt:4' --apps gzip*8
  symbiont simulate --machine zen4 --private caches --apps gzip*16
  symbiont simulate --pairs pairs.csv --policy learned --threads 16
  symbiont simulate --machine xeon-e5-2620v4 --cores 2 --apps gzip*2,xz*2 --policy static \
      --set together=gzip+xz,gzip+xz

A workload file:
  [[app]]
  program = \"gzip\"
  count = 2           # optional
  ratio = \"4:1\"     # optional; or threads = \"all\"")]
pub struct Simulate {
    /// Machine (see `symbiont machines`), or the file of a description
    // Where what is for --pairs is given without it, that is said instead.
    #[arg(long, value_name = "NAME",
          required_unless_present_any = ["pairs", "threads", "at", "phases", "arrivals", "drift", "noise"])]
    pub machine: Option<String>,
    /// Arrange its cores and memory as this machine has them: packages, nodes, last-level caches, core types and
    /// hardware threads; a copy of /sys (folder or tar), an XML export of hwloc, a line or a string as of doctor
    #[arg(long, value_name = "DIR|FILE|STRING", requires = "machine", conflicts_with = "pairs")]
    pub topology: Option<String>,
    #[command(flatten)]
    pub measured: OnPairs,
    /// Fidelity of the simulated machine: the fast model, or its reference, cycle by cycle, which takes
    /// long
    #[arg(long, value_enum, default_value_t = Fidelity::Fast, value_name = "LEVEL")]
    pub level: Fidelity,
    /// Folder of captured traces, as scripts/traces.py makes them: the cycle level runs the programs
    /// that have one from it, others from the micro-traces of their profiles
    #[arg(long, value_name = "FOLDER")]
    pub traces: Option<PathBuf>,
    /// Use its first CORES cores only
    #[arg(long, value_name = "CORES")]
    pub cores: Option<usize>,
    /// Use the first THREADS hardware threads of each core only
    #[arg(long, value_name = "THREADS")]
    pub smt: Option<usize>,
    /// Programs that run together
    #[arg(long, value_name = "LIST", conflicts_with = "workload")]
    pub apps: Option<String>,
    /// File that names the programs (TOML)
    #[arg(long, value_name = "FILE")]
    pub workload: Option<PathBuf>,
    /// Policy that decides (see `symbiont policies`); stay: the simulated OS
    #[arg(long, default_value = "stay", value_name = "NAME")]
    pub policy: String,
    #[command(flatten)]
    pub parameters: Parameters,
    #[command(flatten)]
    pub knowledge: Knowledge,
    #[command(flatten)]
    pub activity: VectorFiles,
    /// Seed of everything that is random
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Period of the policy's decisions, e.g. 20ms or 1s [default: the policy's own]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub quantum: Option<Duration>,
    /// Time that each decision takes, at most a quantum; programs run on meanwhile [default: none]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub decision: Option<Duration>,
    /// Leave the last core to the decision; the simulated OS runs the programs on the others
    #[arg(long, requires = "decision")]
    pub reserve_core: bool,
    /// How long each program runs alone to set its target (simulated time)
    #[arg(long, value_name = "TIME", value_parser = parse_limit, default_value = "20s")]
    pub alone: Duration,
    /// When a repeat ends at the latest (simulated time)
    #[arg(long, value_name = "TIME", value_parser = parse_limit, default_value = "20min")]
    pub until: Duration,
    /// How often all is repeated
    #[arg(long, value_name = "COUNT", default_value_t = 15,
          value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub repeats: u32,
    /// Longest uncounted part with which programs start, in targets
    #[arg(long, value_name = "SHARE", default_value_t = 0.5, value_parser = parse_lead)]
    pub lead: f64,
    /// Give each thread a resource for itself, to show what sharing it causes
    #[arg(long, value_enum, value_name = "WHAT", value_delimiter = ',')]
    pub private: Vec<Private>,
    /// Counters without noise, residue, multiplexing and late readings
    #[arg(long)]
    pub exact_counters: bool,
    /// Let there be more threads than hardware threads
    #[arg(long)]
    pub share: bool,
    /// Keep what happened in each quantum of the first repeat in FILE (JSON lines)
    #[arg(long, value_name = "FILE")]
    pub timeline: Option<PathBuf>,
    /// Write JSON
    #[arg(long)]
    pub json: bool,
    /// Write a row for each program, with --pairs for each time of --at (CSV)
    #[arg(long, conflicts_with = "json")]
    pub csv: bool,
    /// Folder of the programs' profiles [default: profiles in the current folder, else those installed]
    #[arg(long, value_name = "FOLDER", default_value_os_t = usual_profiles(), hide_default_value = true)]
    pub profiles: PathBuf,
    #[command(flatten)]
    pub kept: Kept,
}

/// A machine of measured pairs in place of a described one.
#[derive(Debug, Args)]
pub struct OnPairs {
    /// Run threads at slowdowns that were measured, in place of a described machine: a CSV file with columns program,
    /// co_runner and slowdown (time co-running over time alone), each program with each other one. Where that of a
    /// program with itself is missing, what it suffers plus what it inflicts on average, less the mean of all, is taken
    /// for it. Policies are shown instructions and cycles alone; what they capture of the gain of the best pairing over
    /// all pairings is printed
    #[arg(long, value_name = "FILE", conflicts_with_all = ["machine", "level", "traces", "cores", "smt", "apps",
          "workload", "quantum", "decision", "alone", "until", "lead", "private", "exact_counters", "share",
          "timeline"])]
    pub pairs: Option<PathBuf>,
    /// With --pairs: threads, two for each core, their programs drawn with the seed [default: 16]
    #[arg(long, value_name = "COUNT")]
    pub threads: Option<usize>,
    /// With --pairs: until when it is looked at what was captured (simulated time) [default: 10s,30s,120s]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = parse_limit)]
    pub at: Vec<Duration>,
    /// With --pairs: how often a program, by chance, changes its phase: it does what another one does from then on
    #[arg(long, value_name = "TIME", value_parser = parse_limit)]
    pub phases: Option<Duration>,
    /// With --pairs: how often a program, by chance, ends and another one arrives
    #[arg(long, value_name = "TIME", value_parser = parse_limit)]
    pub arrivals: Option<Duration>,
    /// With --pairs: by what share speeds alone change in a minute (standard deviation) [default: 0]
    #[arg(long, value_name = "SHARE", value_parser = parse_lead)]
    pub drift: Option<f64>,
    /// With --pairs: by what share a measurement errs (standard deviation) [default: 0.03]
    #[arg(long, value_name = "SHARE", value_parser = parse_lead)]
    pub noise: Option<f64>,
}

impl OnPairs {
    /// What was given that is for measured pairs only. Clap cannot require --pairs for it: it no longer does where
    /// --machine is given, which conflicts with --pairs.
    pub fn given(&self) -> Vec<&'static str> {
        let Self { pairs: _, threads, at, phases, arrivals, drift, noise } = self;
        let all = [
            ("--threads", threads.is_some()),
            ("--at", !at.is_empty()),
            ("--phases", phases.is_some()),
            ("--arrivals", arrivals.is_some()),
            ("--drift", drift.is_some()),
            ("--noise", noise.is_some()),
        ];
        all.into_iter().filter(|(_, given)| *given).map(|(name, _)| name).collect()
    }
}

/// Levels of a simulated machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Fidelity {
    /// A model of windows of instructions and of caches
    Fast,
    /// A core cycle by cycle, real caches
    Cycle,
}

/// Where what was prepared is kept.
#[derive(Debug, Args)]
pub struct Kept {
    /// Folder where what was prepared is kept for the next run
    /// [default: ~/.cache/symbiont/tables]
    #[arg(long, value_name = "FOLDER")]
    pub cache: Option<PathBuf>,
    /// Keep nothing for the next run, and use nothing of earlier ones
    #[arg(long, conflicts_with = "cache")]
    pub no_cache: bool,
}

/// What threads of a simulated machine share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Private {
    /// Dispatch slots, queues and execution units of a core
    Units,
    /// Caches and translation buffers
    Caches,
    /// Bandwidth of memory and links
    Bandwidth,
    /// Branch predictors
    Predictor,
    /// All of these
    All,
}

/// Hold the simulated machine's fast level against its cycle level
///
/// Asks both how fast programs are alone, alone on a core that is set up for several threads, and
/// co-running on it, and reports how far they differ, with the worst cases. Of each program its most
/// frequent phase is taken. Of a captured program (--traces) the cycle level runs a window, and the
/// fast level gets the profile of just that window; of others the cycle level replays
/// the profile's micro-traces. Either way this checks the fast level's cores and caches, not how well a
/// profile stands for its program.
///
/// Gates: STP errs by at most 5 %, and slowdowns rank alike (0.95). Where all that was asked passes,
/// the line that marks the machine's description as checked is printed.
///
/// With --pairs both are held against real hardware: error, bias and rank of slowdowns, next to the errors of
/// two guesses that know nothing of cores, and the share of what pairing can gain that their slowdowns find.
#[derive(Debug, Args)]
pub struct CheckSim {
    /// Machine (see `symbiont machines`), or the file of a description
    #[arg(long, value_name = "NAME", default_value = "xeon-e5-2620v4")]
    pub machine: String,
    /// Threads that share a core
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "2",
          value_parser = clap::value_parser!(u8).range(2..=8))]
    pub smt: Vec<u8>,
    /// Programs, separated by commas [default: all that were profiled]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub apps: Vec<String>,
    /// Most groups of programs for each number of threads
    #[arg(long, value_name = "COUNT", default_value_t = 40)]
    pub groups: usize,
    /// Seed that draws the groups
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Instructions of each thread that the cycle level counts for an answer [default: 60000, or
    /// with --traces 1000000]
    #[arg(long, value_name = "COUNT",
          value_parser = clap::value_parser!(u64).range(1_000..=100_000_000))]
    pub counted: Option<u64>,
    /// Folder of the programs' profiles [default: profiles in the current folder, else those installed]
    #[arg(long, value_name = "FOLDER", default_value_os_t = usual_profiles(), hide_default_value = true)]
    pub profiles: PathBuf,
    /// Folder of captured traces, as scripts/traces.py makes them
    #[arg(long, value_name = "FOLDER")]
    pub traces: Option<PathBuf>,
    /// Hold both levels against pairs that were measured on a real core instead: a CSV file with columns
    /// program, co_runner and slowdown (time co-running over time alone), each program with each once, itself included
    #[arg(long, value_name = "FILE", conflicts_with_all = ["smt", "apps", "groups", "traces"])]
    pub pairs: Option<PathBuf>,
    /// Hold both levels against kernels of known speed as this host runs them: chains, branches, pointers through each
    /// level of the caches. --machine is its description
    #[arg(long, conflicts_with_all = ["smt", "apps", "groups", "traces", "pairs"])]
    pub host: bool,
    /// Kernels to run, as `symbiont-synth kernel` names them, separated by commas [default: all]
    #[arg(long, value_name = "LIST", value_delimiter = ',', requires = "host")]
    pub kernels: Vec<String>,
    /// Hold the fast level against programs too, each of which runs in its folder in FOLDER (`scripts/profiles.py
    /// --prepare FOLDER` makes them), one thread, user time
    #[arg(long, value_name = "FOLDER", requires = "host")]
    pub programs: Option<PathBuf>,
    /// Write JSON
    #[arg(long)]
    pub json: bool,
}

/// List the machines that can be simulated, or show one with the source of each value
#[derive(Debug, Args)]
pub struct Machines {
    /// Show this one
    pub name: Option<String>,
    /// Show what simulated lmbench and STREAM say of its memory too
    #[arg(long, requires = "name")]
    pub memory: bool,
    /// Show what each program does on it too, alone and in copies
    #[arg(long, requires = "name")]
    pub programs: bool,
    /// Show what multithreading gains, on it or on all, next to what was published
    #[arg(long)]
    pub multithreading: bool,
    /// Folder of the programs' profiles [default: profiles in the current folder, else those installed]
    #[arg(long, value_name = "FOLDER", default_value_os_t = usual_profiles(), hide_default_value = true)]
    pub profiles: PathBuf,
    /// Write JSON
    #[arg(long)]
    pub json: bool,
}

/// List the programs that can be simulated
#[derive(Debug, Args)]
pub struct Workloads {
    /// Folder of the programs' profiles [default: profiles in the current folder, else those installed]
    #[arg(long, value_name = "FOLDER", default_value_os_t = usual_profiles(), hide_default_value = true)]
    pub profiles: PathBuf,
    /// Write JSON
    #[arg(long)]
    pub json: bool,
}

fn parse_lead(text: &str) -> Result<f64, String> {
    let lead = text.parse::<f64>().ok().filter(|lead| (0.0..=10.0).contains(lead));
    lead.ok_or_else(|| "a number from 0 to 10".to_owned())
}
