//! What `symbiont reproduce` takes.

use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use symbiont_reproduce::Paper;

use super::Kept;
use super::profiles::usual_profiles;

/// Make published tables and figures anew, next to the published values
///
/// Runs the experiments that the figures are made from, on simulated machines or on this one, and
/// writes one page: each figure with its published values, ours with 95 % intervals, and whether both
/// point the same way. Finished runs are kept in the folder: an interrupted command goes on where it stopped,
/// and runs are repeated only if something changed that they depend on.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  symbiont reproduce --list
  symbiont reproduce morad-tab4
  symbiont reproduce --paper morad --quick
  symbiont reproduce --paper peternier --programs my-programs.map
  symbiont reproduce --all")]
pub struct Reproduce {
    /// Figures, as `--list` names them
    #[arg(value_name = "ID", conflicts_with_all = ["paper", "all", "list"],
          required_unless_present_any = ["paper", "all", "list"])]
    pub figures: Vec<String>,
    /// All figures of a paper, by its first author; symbiont: ours, which no paper has
    #[arg(long, value_name = "NAME", value_parser = paper(), conflicts_with = "all")]
    pub paper: Option<Paper>,
    /// All figures of all papers
    #[arg(long, conflicts_with = "list")]
    pub all: bool,
    /// List all figures, or those of --paper, also those that are not reproduced and why, and end
    #[arg(long)]
    pub list: bool,
    /// Run a smaller experiment, in minutes; it gives no verdicts
    #[arg(long)]
    pub quick: bool,
    /// Folder of the report and of the finished runs
    #[arg(long, value_name = "FOLDER", default_value = "report/reproduce")]
    pub output: PathBuf,
    /// Seed of everything that is random
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Folder of continuous traces of programs, which the figures of Settle et al. need
    /// [default: ~/.cache/symbiont/traces/continuous]
    #[arg(long, value_name = "FOLDER")]
    pub traces: Option<PathBuf>,
    /// Jobs of the figures symbiont-cluster-*, in the Standard Workload Format: when they were submitted, how long
    /// they ran and on how many processors; their programs are drawn [default: all is drawn]
    #[arg(long, value_name = "FILE", conflicts_with = "list")]
    pub workload: Option<PathBuf>,
    /// Pairs of programs as they were measured, for symbiont-measured-pairs: a CSV file with columns program, co_runner
    /// and slowdown; may be given several times. Where that of a program with itself is missing, what it suffers plus
    /// what it inflicts on average, less the mean of all, is taken for it [default: pairs that are drawn]
    #[arg(long, value_name = "FILE", conflicts_with = "list")]
    pub pairs: Vec<PathBuf>,
    /// Profiles of the papers' own programs, in place of those that stand for them: a file with a line
    /// NAME = PATH for each, where NAME is one that `--list` ends with, and PATH begins at the file's folder
    #[arg(long, value_name = "MAP", conflicts_with = "list")]
    pub programs: Option<PathBuf>,
    /// Folder of the programs' profiles [default: profiles in the current folder, else those installed]
    #[arg(long, value_name = "FOLDER", default_value_os_t = usual_profiles(), hide_default_value = true)]
    pub profiles: PathBuf,
    #[command(flatten)]
    pub kept: Kept,
    /// Write the list, or the report's data, to standard output as JSON
    #[arg(long)]
    pub json: bool,
}

/// Papers by name; by number, too, as earlier versions had them.
fn paper() -> impl TypedValueParser<Value = Paper> {
    let names = Paper::ALL.map(|paper| PossibleValue::new(paper.name()).alias(paper.number()));
    PossibleValuesParser::new(names)
        .try_map(|name| Paper::named(&name).ok_or_else(|| format!("no paper is called {name}")))
}
