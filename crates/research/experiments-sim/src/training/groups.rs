//! Groups of programs that are measured on one core when a search asks for them.
//!
//! # Properties
//! - A search is given the throughput of what it asked for, and ends when it asks for nothing new
//!   (`a_search_is_given_what_it_asked_for`).

use std::collections::{BTreeMap, BTreeSet};

use super::campaign::carry_out_as;
use super::evaluate::{alone, mean_slowdown, profile};
use super::options::TrainingOptions;
use super::plan::TrainingRun;
use super::site::Site;
use super::watch::WatchedRun;
use symbiont_campaign::{Error, FinishedRun, Progress};

/// System throughput of groups that share a core, against running alone on it; by their programs, in
/// order of their names.
pub type Throughputs = BTreeMap<Vec<String>, f64>;

/// Measures the groups that `next` asks for, given all that are known, until it asks for none that was
/// not asked for before.
///
/// # Errors
/// As [`super::observe`].
pub fn explore(
    site: &dyn Site,
    options: &TrainingOptions,
    next: &(dyn Fn(&Throughputs) -> BTreeSet<Vec<String>> + Sync),
    progress: &mut dyn Progress,
) -> Result<Throughputs, Error> {
    let isolated = |program: &String| TrainingRun::Alone { program: program.clone(), width: 1 };
    let more = |done: &[FinishedRun<TrainingRun, WatchedRun>]| -> Vec<TrainingRun> {
        if done.is_empty() {
            return options.programs.iter().map(isolated).collect();
        }
        let asked: BTreeSet<&TrainingRun> = done.iter().map(|finished| &finished.run).collect();
        let wanted = throughputs(done).map(|known| next(&known)).unwrap_or_default();
        wanted.into_iter().map(TrainingRun::Together).filter(|run| !asked.contains(run)).collect()
    };
    throughputs(&carry_out_as(site, options, &more, progress)?)
}

fn throughputs(done: &[FinishedRun<TrainingRun, WatchedRun>]) -> Result<Throughputs, Error> {
    let is_alone =
        |it: &&FinishedRun<TrainingRun, WatchedRun>| matches!(it.run, TrainingRun::Alone { .. });
    let runs = done.iter().filter(is_alone).map(|it| (it.run.clone(), it.record.clone()));
    let runs: BTreeMap<TrainingRun, WatchedRun> = runs.collect();
    let isolated = alone(&runs, 1)?;
    let mut known = Throughputs::new();
    for FinishedRun { run, record } in done {
        let TrainingRun::Together(programs) = run else { continue };
        let mut sum = Some(0.0);
        for (program, quanta) in programs.iter().zip(&record.programs) {
            let slowdown = mean_slowdown(quanta, profile(&isolated, program)?);
            sum = sum.zip(slowdown).map(|(sum, slowdown)| sum + slowdown.recip());
        }
        known.extend(sum.map(|sum| (programs.clone(), sum)));
    }
    Ok(known)
}
