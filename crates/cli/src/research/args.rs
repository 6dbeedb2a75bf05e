//! The arguments of what researchers use: the simulator, experiments, training, profiles;
//! and of what packagers do.

mod profiles;
mod reproduce;
mod simulated;
mod training;

use std::path::PathBuf;

use clap::{Args, Subcommand};

pub use self::reproduce::Reproduce;
pub use self::simulated::{
    CheckSim, Fidelity, Kept, Machines, OnPairs, Private, Simulate, Workloads,
};
pub use self::training::{CoreTypeChoice, Train};

#[derive(Debug, Subcommand)]
#[allow(clippy::large_enum_variant, reason = "there is one, and it is soon taken apart")]
pub enum Research {
    Profile(Profile),
    Simulate(Simulate),
    CheckSim(CheckSim),
    Train(Train),
    Reproduce(Reproduce),
    Machines(Machines),
    Workloads(Workloads),
    /// Evaluate what a published model predicts; runs nothing
    #[command(subcommand)]
    Analyze(Analyze),
    /// Execute no-operations: the co-runner of programs in training
    #[command(hide = true)]
    Nop,
    /// Write man pages or shell completions into a folder
    #[command(subcommand)]
    Generate(Generate),
}

/// Activity vectors of the programs that run.
#[derive(Debug, Default, Args)]
pub struct VectorFiles {
    /// Activity vectors that `activity` schedules by, made by `symbiont profile --vectors`; repeatable, one
    /// file for each executable. Of other caches or another version of a program they are refused
    #[arg(long, value_name = "FILE")]
    pub vectors: Vec<PathBuf>,
}

/// Capture what a program does, for the simulator
///
/// Runs COMMAND in QEMU's user-mode emulator (package qemu-user) and observes each
/// instruction: the kinds of instructions, branches, reuse of data and code,
/// activity of cache regions, and short traces, per kind of phase. The profile fits
/// any machine description of the simulator. Threads and forked children are observed,
/// and the programs that children execute where the kernel allows it; what was not
/// observed is reported.
///
/// The program runs 10 to 50 times slower than natively, with a fixed environment
/// (add to it with --env). Profiling a program of one thread again gives the same file, as
/// long as no libraries are installed or removed: the loader looks its own up among all.
///
/// An interrupted or failing program gives no profile.
#[derive(Debug, Args)]
#[command(
    override_usage = "symbiont profile [OPTIONS] [--] <COMMAND>...\n       \
                      symbiont profile --show <FILE>",
    after_help = "\
Examples:
  symbiont profile -- gzip -9 -k -f big.tar
  symbiont profile -o bc.profile --stdout /dev/null -- sh -c 'echo \"scale=2000; 4*a(1)\" | bc -l'
  symbiont profile --show gzip.profile
  symbiont profile --trace gzip.profile -- gzip -9 -k -f big.tar
  symbiont profile --vectors host -- gzip -9 -k -f big.tar"
)]
pub struct Profile {
    /// Where the profile goes [default: NAME.profile], or the trace [NAME.trace] or the vectors [NAME.vectors]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// What workloads call the program [default: its file name]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Add a variable to the program's environment; may be repeated
    #[arg(long = "env", value_name = "NAME=VALUE", value_parser = parse_variable)]
    pub variables: Vec<(String, String)>,
    /// Write the program's standard output to FILE
    #[arg(long, value_name = "FILE")]
    pub stdout: Option<PathBuf>,
    /// Instructions of an interval [default: 50 million]
    #[arg(long, value_name = "INSTRUCTIONS", value_parser = clap::value_parser!(u64).range(10_000..))]
    pub interval: Option<u64>,
    /// The plugin of the emulator [default: next to symbiont]
    #[arg(long, value_name = "FILE")]
    pub plugin: Option<PathBuf>,
    /// Write the summary to standard output as JSON
    #[arg(long)]
    pub json: bool,
    /// Write windows of instruction traces instead, in the phases that PROFILE, of the
    /// same program, reports
    #[arg(long, value_name = "PROFILE")]
    pub trace: Option<PathBuf>,
    /// Windows at most, one for each phase, the most frequent first [default: 4]
    #[arg(long, value_name = "COUNT", requires = "trace", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub windows: Option<u16>,
    /// Instructions of a window to warm up with [default: 2 million]
    #[arg(long, value_name = "INSTRUCTIONS", requires = "trace", value_parser = clap::value_parser!(u64).range(..=1_000_000_000))]
    pub warm_up: Option<u64>,
    /// Instructions of a window behind these [default: 2 million]
    #[arg(long, value_name = "INSTRUCTIONS", requires = "trace", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    pub length: Option<u64>,
    /// One window of so many instructions instead, from the middle of the program
    #[arg(long, value_name = "INSTRUCTIONS", requires = "trace", conflicts_with_all = ["windows", "warm_up", "length"], value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    pub continuous: Option<u64>,
    /// Write uses and misses of each region of the caches of MACHINE instead, interval by interval: what
    /// activity vectors are made of. A described machine (`symbiont machines`), or 'host'
    #[arg(long, value_name = "MACHINE", conflicts_with = "trace")]
    pub vectors: Option<String>,
    /// Show what a profile, a trace or a file of vectors holds, instead of making one
    #[arg(long, value_name = "FILE", conflicts_with_all = ["command", "output", "name", "variables", "stdout", "interval", "plugin", "trace", "vectors"])]
    pub show: Option<PathBuf>,
    /// The command and its arguments
    #[arg(value_name = "COMMAND", trailing_var_arg = true, required_unless_present = "show")]
    pub command: Vec<std::ffi::OsString>,
}

#[derive(Debug, Subcommand)]
pub enum Analyze {
    Phases(AnalyzePhases),
}

/// Speedups and fairness of programs in serial and parallel phases (Morad et al.)
///
/// Least, average and largest speedup in each joint state under a scheduler that
/// treats all threads as equal (the paper's Table 1) and under one that gives
/// serial threads the fastest cores (Table 3), and the worst fairness (Table 2).
/// A speedup is against the same phase alone on the machine.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  symbiont analyze phases --cores 8 --fast 2
  symbiont analyze phases --machine 'core:4 | core:4 capacity:512' --ready 1,3,8
  symbiont analyze phases --topology machine.xml")]
pub struct AnalyzePhases {
    /// Cores of the machine
    #[arg(long, value_name = "N", required_unless_present_any = ["machine", "topology"])]
    pub cores: Option<u32>,
    /// How many times as fast as the others one core is
    #[arg(long, value_name = "A", default_value_t = 1.0)]
    pub fast: f64,
    /// Any machine instead, described in a line: the speed of its cores is their capacity
    #[arg(long, value_name = "LINE", conflicts_with_all = ["cores", "fast"])]
    pub machine: Option<String>,
    /// The same from a copy of /sys (folder or tar), an XML export or a synthetic string of hwloc, or a line
    #[arg(long, value_name = "DIR|FILE|STRING", conflicts_with_all = ["cores", "fast", "machine"])]
    pub topology: Option<String>,
    /// Ready threads of each program, in one joint state [default: two programs
    /// with one thread or as many as cores, in all four joint states]
    #[arg(long, value_name = "THREADS", value_delimiter = ',')]
    pub ready: Vec<u32>,
    /// Ready threads above which a program counts as parallel
    /// [default: 2 with more than two cores, else 1.1]
    #[arg(long, value_name = "THREADS", requires = "ready")]
    pub threshold: Option<f64>,
    /// Write JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Subcommand)]
pub enum Generate {
    /// Man pages of symbiont and its commands
    Man {
        /// Where to write them
        folder: PathBuf,
    },
    /// Completions for bash, zsh, fish and elvish
    Completions {
        /// Where to write them
        folder: PathBuf,
    },
}

fn parse_variable(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("a variable is written NAME=VALUE".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_have_a_name() {
        assert_eq!(parse_variable("A=b=c"), Ok(("A".to_owned(), "b=c".to_owned())));
        assert!(parse_variable("A").is_err() && parse_variable("=b").is_err());
    }
}
