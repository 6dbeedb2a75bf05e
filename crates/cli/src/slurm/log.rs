//! What the releaser prints and writes: decisions, troubles, metrics.
//!
//! A trouble that stays is printed once until it is over: neither a full disk nor a Slurm that is gone ends the
//! releaser.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use symbiont_slurm::{Cluster, Decision, DecisionLog, Metrics, Releaser, SlurmError};

/// The log of a releaser.
#[derive(Debug)]
pub struct Log {
    file: DecisionLog,
    metrics: Option<PathBuf>,
    dry_run: bool,
    /// The troubles that last, by what they are with.
    lasting: BTreeMap<&'static str, String>,
}

impl Log {
    /// Notes decisions in a file unless this is a dry run, and metrics in another, if one is given.
    pub fn new(file: DecisionLog, metrics: Option<PathBuf>, dry_run: bool) -> Self {
        Self { file, metrics, dry_run, lasting: BTreeMap::new() }
    }

    /// Slurm answered, and this was decided.
    pub fn answer(&mut self, made: &[Decision]) {
        self.over("Slurm", "Slurm answers again");
        self.decisions(made);
    }

    /// Slurm did not answer.
    pub fn no_answer(&mut self, error: &SlurmError, interval: Duration) {
        let again = format!("{error}; asks again every {} s", interval.as_secs_f64());
        self.lasts("Slurm", again);
    }

    /// Prints and notes decisions.
    pub fn decisions(&mut self, made: &[Decision]) {
        for decision in made {
            say!("{}", decision.text());
            match if self.dry_run { Ok(()) } else { self.file.append(decision) } {
                Ok(()) => self.over("decisions", "decisions are noted again"),
                Err(error) => self.lasts("decisions", error.to_string()),
            }
        }
    }

    /// Prints what went wrong since the last time.
    pub fn troubles(&mut self, releaser: &mut Releaser<impl Cluster>) {
        releaser.troubles.drain(..).for_each(|trouble| note!("symbiont: {trouble}"));
    }

    /// Writes metrics.
    pub fn metrics(&mut self, metrics: &Metrics) {
        let Some(path) = &self.metrics else { return };
        match metrics.write(path) {
            Ok(()) => self.over("metrics", "metrics are written again"),
            Err(error) => self.lasts("metrics", error.to_string()),
        }
    }

    fn lasts(&mut self, of: &'static str, line: String) {
        if self.lasting.get(of) != Some(&line) {
            note!("symbiont: {line}");
        }
        self.lasting.insert(of, line);
    }

    fn over(&mut self, of: &'static str, line: &str) {
        if self.lasting.remove(of).is_some() {
            note!("symbiont: {line}");
        }
    }
}
