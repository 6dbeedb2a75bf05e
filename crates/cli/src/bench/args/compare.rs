//! What `symbiont bench COMMAND…` takes.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::Bench;
use crate::args::{State, parse_limit};

/// Compare policies on this machine, with your own programs or in an experiment
///
/// Runs the COMMANDs alone, together as Linux places them (`stay`), and together under each --policy, in
/// random order, round by round, until the intervals show which policy is faster, or that none is. Reports
/// throughput (STP), turnaround (ANTT), fairness, jitter and times with 95 % intervals; a verdict may be
/// "undecided". Keep the machine quiet meanwhile; what disturbs is measured and reported. Standard output
/// of the programs is dropped.
///
/// An interrupted comparison continues where it stopped.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    override_usage = "symbiont bench [OPTIONS] <COMMAND>...\n       symbiont bench <EXPERIMENT> [OPTIONS]",
    subcommand_value_name = "EXPERIMENT",
    subcommand_help_heading = "Experiments",
    after_help = "\
Examples:
  symbiont bench 'xz -9kf a.tar -c' 'python3 train.py' 'gzip -9c b.tar' 'make -C src -j2'
  symbiont bench --policy auto --policy 'phases --quantum 10ms' './solver in1' './solver in2'"
)]
pub struct BenchArgs {
    #[command(subcommand)]
    pub experiment: Option<Bench>,
    #[command(flatten)]
    pub compare: Compare,
}

#[derive(Debug, Args)]
pub struct Compare {
    /// Programs that run at the same time, each a command line for sh
    #[arg(value_name = "COMMAND", required = true)]
    pub commands: Vec<String>,
    /// Policy to compare with Linux, with options of `symbiont run` behind it; repeatable
    #[arg(long = "policy", value_name = "NAME [OPTIONS]", default_value = "auto")]
    pub policies: Vec<String>,
    /// Most rounds; fewer where the intervals decide before
    #[arg(long, value_name = "COUNT", default_value_t = 16, value_parser = clap::value_parser!(u32).range(2..=1000))]
    pub rounds: u32,
    /// A gain whose interval is narrower than this on either side, and holds zero, is no difference
    #[arg(long, value_name = "PERCENT", default_value_t = 2.0, value_parser = parse_percent)]
    pub narrow: f64,
    /// Time that a run may take
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = parse_limit)]
    pub limit: Duration,
    /// Folder of the report and of the finished runs
    #[arg(long, value_name = "FOLDER", default_value = "report/bench")]
    pub output: PathBuf,
    /// Seed of the order of runs
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Write the report's data to standard output as JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub state: State,
}

fn parse_percent(text: &str) -> Result<f64, String> {
    let percent = text.parse().ok().filter(|percent| (0.01..=50.0).contains(percent));
    percent.ok_or_else(|| "a number from 0.01 to 50".to_owned())
}
