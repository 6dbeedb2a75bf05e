//! The arguments of `symbiont replay`.

use std::path::PathBuf;

use clap::Args;

use super::{Knowledge, PolicyOptions};

/// Decide again over a recording
///
/// Reads FILE, which `symbiont run --record FILE` wrote, and lets a policy decide over its samples:
/// the one that was recorded, or another. Reports what the recording holds, what the policy decides
/// for each program, with its reasons and predicted slowdowns, how far that differs from what was
/// recorded, and, where the recording counted cycles and instructions, predicted next to measured
/// slowdowns. Runs and changes nothing.
///
/// A replay does not answer "what if": all samples were taken under the recorded placement. It
/// tests models and shows decisions; it does not rank policies.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  symbiont run --policy phases --record build.jsonl -- make -j4
  symbiont replay build.jsonl
  symbiont replay --policy symbiotic --model machine.toml run.jsonl")]
pub struct Replay {
    /// Policy that decides (see `symbiont policies`) [default: the recorded one]
    #[arg(long, value_name = "NAME")]
    pub policy: Option<String>,
    #[command(flatten)]
    pub options: PolicyOptions,
    #[command(flatten)]
    pub knowledge: Knowledge,
    /// Write JSON
    #[arg(long)]
    pub json: bool,
    /// The recording
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
}
