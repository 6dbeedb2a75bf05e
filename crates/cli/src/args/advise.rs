//! Advice, as arguments.

use std::time::Duration;

use clap::Args;

use super::{Knowledge, Parameters, State, parse_duration};

/// Say what Symbiont would do with what runs now, and what that should gain
///
/// Watches your processes, as root those of all users, lets the policy decide as if it managed them,
/// and says for each busy program where it ran, with which co-runners, how long it waited, where it would
/// be kept and why, and what slowdowns are predicted where the policy predicts. ^C ends it earlier. Changes
/// nothing: no thread, no priority, no file.
///
/// A program is a job as a shell has it: a command with the processes that it made.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  symbiont advise
  symbiont advise --for 1min --policy hysched
  symbiont advise --pid 4711,4712 --json")]
pub struct Advise {
    /// Watch for this time
    #[arg(long = "for", value_name = "TIME", default_value = "10s", value_parser = parse_duration)]
    pub time: Duration,
    /// Policy that decides (see `symbiont policies`)
    #[arg(long, value_name = "NAME", default_value = symbiont_policy::DEFAULT)]
    pub policy: String,
    #[command(flatten)]
    pub parameters: Parameters,
    /// Watch only these processes, each with its descendants as a program; repeatable
    #[arg(short, long = "pid", value_name = "PID", value_delimiter = ',',
          value_parser = super::daemon::number)]
    pub pids: Vec<u32>,
    /// Percent of a CPU from which on a program counts as busy
    #[arg(long, value_name = "PERCENT", default_value_t = 5.0, value_parser = parse_percent)]
    pub busy: f64,
    /// Refused: what runs here says too little of how it would run on another machine
    #[arg(long, value_name = "DIR|FILE|STRING", hide = true)]
    pub topology: Option<String>,
    /// Write JSON
    #[arg(long)]
    pub json: bool,
    /// Print the JSON schema of what --json writes, and exit
    #[arg(long, conflicts_with = "json")]
    pub schema: bool,
    #[command(flatten)]
    pub knowledge: Knowledge,
    #[command(flatten)]
    pub state: State,
}

fn parse_percent(text: &str) -> Result<f64, String> {
    let percent = text.parse::<f64>().ok().filter(|percent| (0.0..=1e6).contains(percent));
    percent.ok_or_else(|| "a percentage of a CPU is a number from 0".to_owned())
}
