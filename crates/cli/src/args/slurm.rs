//! The arguments of `symbiont slurm`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};

use super::{parse_duration, parse_limit};

/// Choose which jobs of a Slurm cluster start together
///
/// Releases batch jobs whose start `job_submit.lua` has put off: those that suit, by what earlier jobs have
/// shown, what runs on a node with free CPUs. Slurm starts them, and keeps its priorities: a job starts
/// before others only within a window of the queue. Programs that are not known are taken for average, and
/// learnt. Where this command does not run, Slurm starts each job when its time has come.
///
/// Speaks to Slurm by its commands (squeue, sinfo, scontrol), so it needs the rights of an operator. A job is sent
/// to a node only where all that it asks for is understood; any other starts where Slurm wants. It ends at ^C or
/// SIGTERM, and gives back to Slurm what has not started then.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  symbiont slurm --partition shared
  symbiont slurm --partition shared --dry-run
  symbiont slurm --partition shared --model epyc.toml
  symbiont slurm why 4711"
)]
pub struct Slurm {
    #[command(subcommand)]
    pub command: Option<SlurmCommand>,
    /// Release jobs of this partition only
    #[arg(long, value_name = "NAME")]
    pub partition: Option<String>,
    /// Release jobs of this QOS only; refused if Slurm does not know it
    #[arg(long, value_name = "NAME")]
    pub qos: Option<String>,
    /// Show what would be released, and why; releases nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Look once, and end when what was released has started or is given back
    #[arg(long)]
    pub once: bool,
    /// Wait for the end of standard input, then undo what a releaser that was killed has assigned
    #[arg(long, hide = true)]
    pub guard: bool,
    /// How often the queue is looked at
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "5s")]
    pub interval: Duration,
    /// A job that has waited for so long is released before all others; not longer than MOST_WAIT of
    /// job_submit.lua
    #[arg(long, value_name = "TIME", value_parser = parse_limit, default_value = "30min")]
    pub max_wait: Duration,
    /// Jobs that have room somewhere, first by Slurm's priority, among which partners are chosen
    #[arg(long, value_name = "JOBS", value_parser = clap::value_parser!(u32).range(1..=100_000), default_value_t = 64)]
    pub window: u32,
    /// Release no job whose priority is lower than that of the first that has room by more than this
    /// [default: no bound]
    #[arg(long, value_name = "PRIORITY")]
    pub spread: Option<u64>,
    /// Release so many CPUs' worth of jobs more than a node has free, to start there when one ends: nodes are
    /// never idle between two looks; partners are chosen before it is known which job ends first, for all that
    /// run there and that are on their way
    #[arg(long, value_name = "CPUS", default_value_t = 0)]
    pub ahead: u16,
    /// Release the jobs in the order of the queue, for comparison
    #[arg(long)]
    pub first_come: bool,
    #[command(flatten)]
    pub ask: AskNodes,
    /// Port at which the daemons of the nodes are asked
    #[arg(long, value_name = "PORT", requires = "AskNodes", value_parser = clap::value_parser!(u16).range(1..), default_value_t = 9921)]
    pub node_port: u16,
    /// Write metrics to FILE, for the textfile collector of Prometheus' node exporter
    #[arg(long, value_name = "FILE")]
    pub metrics: Option<PathBuf>,
    #[command(flatten)]
    pub files: SlurmFiles,
}

/// What the daemons of the nodes are asked for.
#[derive(Debug, Args)]
#[group(multiple = true)]
pub struct AskNodes {
    /// Interference model of the nodes' processor (see `symbiont train`): programs are chosen by what they need,
    /// as the daemons of the nodes report it, wherever that is known of all that would share a node. The
    /// daemons' configuration opens the port (`jobs` in its table `metrics`)
    #[arg(long, value_name = "FILE")]
    pub model: Option<PathBuf>,
    /// Ask the daemons of the nodes what they have learned of programs that shared cores (policy auto or learned, where
    /// instructions can be counted), and choose by that wherever it is known of all that would share a node. With
    /// --model this is asked, too. The daemons' configuration opens the port as for --model
    #[arg(long)]
    pub ask_nodes: bool,
}

/// What `symbiont slurm` keeps.
#[derive(Debug, Args)]
pub struct SlurmFiles {
    /// What is known of programs from earlier jobs
    /// [default: symbiont/jobs.json in $XDG_STATE_HOME or ~/.local/state]
    #[arg(long, value_name = "FILE", global = true)]
    pub store: Option<PathBuf>,
    /// What was released, and why [default: slurm.jsonl next to the store]
    #[arg(long, value_name = "FILE", global = true)]
    pub decisions: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub enum SlurmCommand {
    /// Show why a job was released when it was, or why it waits
    Why(SlurmWhy),
}

#[derive(Debug, Args)]
pub struct SlurmWhy {
    /// The job's number
    #[arg(value_name = "JOBID")]
    pub job: u64,
    /// Write JSON
    #[arg(long)]
    pub json: bool,
}
