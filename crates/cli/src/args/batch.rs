//! The arguments of `symbiont batch`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::{Args, ValueEnum};
use symbiont_machine::Class;

use super::State;
use crate::batch::Halt;

/// Run many commands, a few at a time, the best partners together
///
/// Runs the commands of JOBFILE, one to a line, by `sh -c`, so many at a time; without JOBFILE, those on standard
/// input. With COMMAND, lines are arguments instead: each is put in place of {}, as GNU parallel does. Which jobs
/// run together is chosen by what earlier runs have shown: each run leaves in a store how long it took, what CPU
/// time, and next to which others. A program that is not known is taken for average, and learnt.
///
/// Each job is a process group of its own; its standard input is empty. Where a daemon runs, it manages
/// the jobs. ^C and SIGTERM are passed on to the jobs, and no more start; a second one kills them.
///
/// A job goes on if the batch is killed. --resume waits for such jobs, and runs what has not ended with 0: a job is
/// known by its command and folder, whatever its line. While a batch uses a progress file, a second one is refused.
///
/// Exit status: 0 if all jobs ended with 0, else 1; 128 and the signal's number when interrupted. If --halt ends
/// the batch because jobs ended well, 0.
#[derive(Debug, Args)]
#[command(
    override_usage = "symbiont batch [OPTIONS] [JOBFILE]\n       \
                      symbiont batch [OPTIONS] [JOBFILE] -- <COMMAND>...\n       \
                      symbiont batch [OPTIONS] -- <COMMAND>... ::: <ARGUMENT>...",
    after_help = "\
Examples:
  symbiont batch jobs.txt -j 4
  symbiont batch jobs.txt -j 4 --resume
  symbiont batch jobs.txt --dry-run
  symbiont batch -j 2 --bar -- xz -9 -k ::: *.tar
  ls *.wav | symbiont batch --joblog encode.log -- 'flac -s {} -o {.}.flac'

A job file:
  # comments and empty lines are skipped
  xz -9 -k a.tar
  cd b && make -j1

In COMMAND: {} the argument, {.} without its extension, {/} without its folder, {//} its folder,
{/.} without both, {#} the number of the job. Arguments are quoted; the rest is read by the shell."
)]
pub struct Batch {
    /// The commands, one to a line; -: standard input
    #[arg(value_name = "JOBFILE")]
    pub file: Option<PathBuf>,
    /// What is run for each line or argument; {} is put in at its end if it is nowhere
    #[arg(last = true, value_name = "COMMAND")]
    pub template: Vec<OsString>,
    /// Jobs that run at a time, or the share of the CPUs, e.g. 50%; 0: as many as possible
    /// [default: one for each CPU]
    #[arg(
        short = 'j',
        long,
        visible_short_alias = 'n',
        visible_alias = "at-once",
        value_name = "JOBS",
        default_value = "100%",
        hide_default_value = true,
        allow_negative_numbers = true
    )]
    pub jobs: AtOnce,
    /// Run a job that fails so many times in all
    #[arg(long, value_name = "TIMES", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    pub retries: u16,
    /// End a job that runs for longer, e.g. 90 (seconds), 15min; 5 s later it is killed
    #[arg(long, value_name = "TIME", value_parser = parse_timeout)]
    pub timeout: Option<Duration>,
    /// End early, once so many jobs have failed (fail=N), ended with 0 (success=N) or ended (done=N): now,fail=1 ends
    /// those that run, soon,fail=1 waits for them
    #[arg(long, value_name = "WHEN,WHY=N")]
    pub halt: Option<Halt>,
    /// Print nothing, unless a job fails: then a summary at the end
    #[arg(short, long)]
    pub quiet: bool,
    /// Say which manager manages the jobs, and of each job when it starts and ends, with a bar as well
    #[arg(short, long, conflicts_with = "quiet")]
    pub verbose: bool,
    /// Show on the terminal how far the batch is and how long it still takes, in place of what starts and what ends
    /// well; with --output there is such a bar anyhow
    #[arg(long)]
    pub bar: bool,
    /// When failures have a colour; auto: on a terminal that has colours, unless NO_COLOR is set
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    pub color: clap::ColorChoice,
    /// Write a line for each job that has ended to FILE, in the columns of GNU parallel; with --resume, add them
    #[arg(long, value_name = "FILE")]
    pub joblog: Option<PathBuf>,
    /// In which order the jobs start
    #[arg(long, value_enum, value_name = "ORDER", default_value_t = Order::Partners)]
    pub order: Order,
    /// Go on from an earlier run: skip the jobs that ended with 0, wait for those that still run
    #[arg(long)]
    pub resume: bool,
    /// Show what would start when, and why; runs nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Where it is recorded which jobs run and have ended
    /// [default: JOBFILE.progress; none without JOBFILE]
    #[arg(long, value_name = "FILE")]
    pub progress: Option<PathBuf>,
    /// Write the output of each job to a file in DIR, named by its line: 7.out, 7.err
    #[arg(long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// What the jobs are run for, where a daemon manages them: latency, batch or normal [default: normal]
    #[arg(long, value_name = "CLASS")]
    pub class: Option<Class>,
    /// What is known of programs from earlier runs; the folder of FILE must exist
    /// [default: symbiont/jobs.json in $XDG_STATE_HOME or ~/.local/state]
    #[arg(long, value_name = "FILE")]
    pub store: Option<PathBuf>,
    /// Write the summary to standard output as JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub state: State,
}

/// How many jobs run at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AtOnce {
    /// So many.
    Jobs(usize),
    /// So many hundredths of the CPUs.
    Percent(usize),
}

/// Jobs at a time at most.
const MOST_AT_ONCE: usize = 4096;

impl AtOnce {
    /// On so many CPUs.
    pub fn slots(self, cpus: usize) -> usize {
        match self {
            Self::Jobs(jobs) => jobs,
            Self::Percent(percent) => (cpus * percent / 100).clamp(1, MOST_AT_ONCE),
        }
    }
}

impl FromStr for AtOnce {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (number, is_share) = match text.strip_suffix('%') {
            Some(number) => (number, true),
            None => (text, false),
        };
        // Of +1 users of GNU parallel expect one more than there are CPUs.
        let number = number.parse().ok().filter(|_| !number.starts_with('+'));
        match (number, is_share) {
            (Some(0), false) => Ok(Self::Jobs(MOST_AT_ONCE)),
            (Some(jobs @ 1..=MOST_AT_ONCE), false) => Ok(Self::Jobs(jobs)),
            (Some(percent @ 1..=10_000), true) => Ok(Self::Percent(percent)),
            _ => Err(format!("a number up to {MOST_AT_ONCE}, or a share of the CPUs as 50%")),
        }
    }
}

/// Seconds, or a time with its unit.
fn parse_timeout(text: &str) -> Result<Duration, String> {
    let time = match text.parse::<f64>() {
        Ok(time_s) => Duration::try_from_secs_f64(time_s).map_err(|error| error.to_string())?,
        Err(_) => humantime::parse_duration(text).map_err(|error| error.to_string())?,
    };
    match time.is_zero() {
        true => Err("a time here is longer than 0".to_owned()),
        false => Ok(time),
    }
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
    #[arg(last = true, required = true, value_name = "COMMAND")]
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

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[test]
    fn jobs_at_a_time_are_a_number_or_a_share_of_the_cpus() {
        let slots = |text: &str| text.parse::<AtOnce>().map(|at_once| at_once.slots(8));
        assert_eq!((slots("3"), slots("50%"), slots("1%")), (Ok(3), Ok(4), Ok(1)));
        // Else the tip would be to write it behind --, where it is a command.
        let minus = crate::args::Cli::try_parse_from(["symbiont", "batch", "-j", "-1", "x"]);
        let minus = minus.unwrap_err().to_string();
        assert!(minus.contains("a number up to 4096") && !minus.contains("tip:"), "{minus}");
        assert!(["+1", "+50%", "-1"].iter().all(|text| slots(text).is_err()));
        assert_eq!((slots("0"), slots("200%")), (Ok(MOST_AT_ONCE), Ok(16)));
        for wrong in ["", "-1", "x", "5000", "0%", "%"] {
            assert!(slots(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_timeout_without_a_unit_is_in_seconds() {
        assert_eq!(parse_timeout("1.5"), Ok(Duration::from_millis(1500)));
        assert_eq!(parse_timeout("2m"), Ok(Duration::from_secs(120)));
        for wrong in ["0", "0s", "-1", "inf", "NaN", "long"] {
            assert!(parse_timeout(wrong).is_err(), "{wrong}");
        }
    }
}
