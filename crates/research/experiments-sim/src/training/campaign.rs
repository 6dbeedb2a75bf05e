//! Carries a training out.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use symbiont_model::Components;
use symbiont_training::ValidationError;

use super::evaluate::{TrainingResult, end, evaluate};
use super::options::TrainingOptions;
use super::page;
use super::plan::{TrainingRun, TrainingSize, nops, plan, unjudged};
use super::site::Site;
use super::watch::WatchedRun;
use symbiont_campaign::{
    Error, Experiment, FinishedRun, FinishedRunOf, Progress, carry_out, digest,
};
use symbiont_report::Report;

/// The runs of a training, as an experiment.
struct Trial<'a> {
    site: &'a dyn Site,
    size: &'a TrainingSize,
    components: &'a Components,
    next: &'a Next<'a>,
}

/// The runs of the next round, given the finished ones.
pub(super) type Next<'a> =
    dyn Fn(&[FinishedRun<TrainingRun, WatchedRun>]) -> Vec<TrainingRun> + Sync + 'a;

impl Experiment for Trial<'_> {
    type Run = TrainingRun;
    type Record = WatchedRun;

    fn name(&self) -> String {
        "training".to_owned()
    }

    fn basis(&self, run: &TrainingRun) -> String {
        let TrainingSize { quantum, quanta, .. } = self.size;
        let (machine, catalogue) = (self.site.machine(), self.site.catalogue().name());
        let components = self.components.to_string();
        let length = format!("{quanta} {quantum:?}");
        digest(&[&machine, catalogue, &components, &length, &self.site.basis(run)])
    }

    fn next(&self, done: &[FinishedRunOf<Self>]) -> Vec<TrainingRun> {
        (self.next)(done)
    }

    fn carry_out(&self, run: &TrainingRun, _: &AtomicBool) -> Result<WatchedRun, Error> {
        self.site.carry_out(run, self.components, self.size)
    }

    fn cost(&self, run: &TrainingRun) -> Duration {
        self.site.cost(run, self.size)
    }
}

/// Carries out the runs that are not kept yet, and gives all of them.
///
/// # Errors
/// When a run fails, the folder cannot be used, or the user stops it; finished runs are kept in each
/// case. When the programs are too few to judge a model, before anything runs.
pub fn observe(
    site: &dyn Site,
    options: &TrainingOptions,
    progress: &mut dyn Progress,
) -> Result<BTreeMap<TrainingRun, WatchedRun>, Error> {
    let TrainingOptions { programs, size, seed, .. } = options;
    let mut runs = plan(programs, size, *seed);
    enough(&runs, options)?;
    if site.tells_nops() {
        runs.extend(nops(programs, size));
    }
    let next = |done: &[FinishedRun<TrainingRun, WatchedRun>]| {
        if done.is_empty() { runs.clone() } else { Vec::new() }
    };
    let finished = carry_out_as(site, options, &next, progress)?;
    Ok(finished.into_iter().map(|finished| (finished.run, finished.record)).collect())
}

/// Carries out what is not kept yet of the runs that `next` asks for.
pub(super) fn carry_out_as(
    site: &dyn Site,
    options: &TrainingOptions,
    next: &Next<'_>,
    progress: &mut dyn Progress,
) -> Result<Vec<FinishedRun<TrainingRun, WatchedRun>>, Error> {
    let components = options.components(site)?;
    let trial = Trial { site, size: &options.size, components: &components, next };
    carry_out(&trial, &options.output, site.workers(), progress)
}

/// Are there programs enough to judge what is fitted?
fn enough(runs: &[TrainingRun], options: &TrainingOptions) -> Result<(), Error> {
    let Some(width) = unjudged(runs, &options.size) else { return Ok(()) };
    let why = ValidationError::TooFew { programs: options.programs.len() };
    let instead = if width > 2 { ", or train pairs only (--fours 0)" } else { "" };
    Err(Error::evaluation(format!("groups of {width}: {why}; name more{instead}")))
}

/// Fits a model on the runs, and judges it on programs and combinations left out.
///
/// # Errors
/// When no model can be fitted, or the user stops it.
pub fn judge(
    site: &dyn Site,
    options: &TrainingOptions,
    runs: &BTreeMap<TrainingRun, WatchedRun>,
    progress: &mut dyn Progress,
) -> Result<TrainingResult, Error> {
    progress.note("fitting the model, and judging it on programs and combinations left out");
    let progress: &dyn Progress = progress;
    let components = options.components(site)?;
    let made = (site.machine(), site.core(), site.catalogue().name().to_owned());
    let (what, stop) = ((made, components, options.training()), AtomicBool::new(false));
    let evaluated = std::thread::scope(|scope| {
        let evaluated = scope.spawn(|| evaluate(runs, options, what, &stop));
        while !evaluated.is_finished() {
            stop.store(progress.cancelled(), Ordering::Relaxed);
            std::thread::sleep(Duration::from_millis(20));
        }
        end(evaluated)
    });
    match evaluated {
        Err(_) if stop.into_inner() => Err(Error::Cancelled),
        evaluated => evaluated,
    }
}

/// A whole training: runs, fits, and writes the model, the slowdowns and a report.
///
/// # Errors
/// As [`observe`] and [`judge`], or when a file cannot be written.
pub fn train(
    site: &dyn Site,
    options: &TrainingOptions,
    progress: &mut dyn Progress,
) -> Result<(TrainingResult, Report), Error> {
    let runs = observe(site, options, progress)?;
    let evaluated = judge(site, options, &runs, progress)?;
    let report = report(site.facts(), options, runs.len(), &evaluated);
    write(&options.output, &evaluated, &report)?;
    Ok((evaluated, report))
}

fn report(
    facts: Vec<(String, String)>,
    options: &TrainingOptions,
    runs: usize,
    evaluated: &TrainingResult,
) -> Report {
    let mut report = page::page(evaluated);
    for (name, value) in facts {
        report.fact(name, value);
    }
    let TrainingSize { quantum, quanta, fours } = &options.size;
    let trained = options.programs.len();
    let pairs = trained * (trained + 1) / 2;
    report.fact(
        "Runs",
        format!("{runs}: {pairs} pairs, {fours} groups of four; {quanta} quanta of {quantum:?}"),
    );
    report.fact("Stack", format!("{}: {}", options.stack, evaluated.model.components));
    report.fact("Regression", options.weighting.to_string());
    report.fact("Seed", options.seed.to_string());
    report.fact("Version", env!("CARGO_PKG_VERSION"));
    report
}

fn write(folder: &Path, evaluated: &TrainingResult, report: &Report) -> Result<(), Error> {
    evaluated.model.save(&folder.join("model.toml")).map_err(Error::evaluation)?;
    let path = folder.join("slowdowns.json");
    let text = serde_json::to_string(&evaluated.slowdowns).map_err(Error::json(&path))?;
    fs::write(&path, text + "\n").map_err(Error::io(&path))?;
    report.write(folder)?;
    Ok(())
}
