//! The arguments of `symbiont batch`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use symbiont_machine::Class;

use super::State;

/// Run many commands, a few at a time, the best partners together
///
/// Runs the commands of JOBFILE, one to a line, by `sh -c`, so many at a time. Which of them run together
/// is chosen by what earlier runs have shown: each run leaves in a store how long it took, what CPU time,
/// and next to which others. A program that is not known is taken for average, and learnt.
///
/// Each job is a process group of its own; its standard input is empty. Where a daemon runs, it manages
/// the jobs. ^C and SIGTERM are passed on to the jobs, and no more start; a second one kills them.
///
/// A job goes on if the batch is killed. --resume waits for such jobs, and runs what has not ended with 0: a job is
/// known by its command and folder, whatever its line. While a batch uses a progress file, a second one is refused.
///
/// Exit status: 0 if all jobs ended with 0, else 1; 128 and the signal's number when interrupted.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  symbiont batch jobs.txt -n 4
  symbiont batch jobs.txt -n 4 --resume
  symbiont batch jobs.txt --dry-run

A job file:
  # comments and empty lines are skipped
  xz -9 -k a.tar
  cd b && make -j1")]
pub struct Batch {
    /// The commands, one to a line
    #[arg(value_name = "JOBFILE")]
    pub jobs: PathBuf,
    /// Jobs that run at a time [default: one for each CPU]
    #[arg(short = 'n', long, value_name = "JOBS", value_parser = clap::value_parser!(u16).range(1..=4096))]
    pub at_once: Option<u16>,
    /// In which order the jobs start
    #[arg(long, value_enum, value_name = "ORDER", default_value_t = Order::Partners)]
    pub order: Order,
    /// Go on from an earlier run: skip the jobs that ended with 0, wait for those that still run
    #[arg(long)]
    pub resume: bool,
    /// Show what would start when, and why; runs nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Where it is recorded which jobs run and have ended [default: JOBFILE.progress]
    #[arg(long, value_name = "FILE")]
    pub progress: Option<PathBuf>,
    /// Write the output of each job to a file in DIR, named by its line: 7.out, 7.err
    #[arg(long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// What the jobs are run for, where a daemon manages them: latency, batch or normal [default: normal]
    #[arg(long, value_name = "CLASS")]
    pub class: Option<Class>,
    /// What is known of programs from earlier runs
    /// [default: symbiont/jobs.json in $XDG_STATE_HOME or ~/.local/state]
    #[arg(long, value_name = "FILE")]
    pub store: Option<PathBuf>,
    /// Write the summary to standard output as JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub state: State,
}

/// Keep a job of a batch: run it, and record its end in the progress file, which is standard input
///
/// For `symbiont batch`, which starts it for each job.
#[derive(Debug, Args)]
pub struct KeepJob {
    /// Where in the file the job's block begins
    #[arg(long, value_name = "BYTES")]
    pub at: u64,
    /// Ask the job to end after so long, and kill it some time later
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    pub timeout: Option<Duration>,
    /// The job
    #[arg(last = true, required = true)]
    pub command: Vec<OsString>,
}

/// In which order jobs start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Order {
    /// In that of the file
    FirstCome,
    /// Those known to take longest first
    LongestFirst,
    /// As longest-first, but the best partners together
    Partners,
}
