//! Carries a training out.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant, SystemTime};

use serde::{Deserialize, Serialize};
use symbiont_counters::catalogue::Catalogue;
use symbiont_model::{Components, Depth, Model, Pressure, Training, ValidationError};
use symbiont_topology::CoreKind;

use super::evaluate::{Evaluated, end, evaluate, wrong};
use super::page;
use super::plan::{Run, Size, nops, plan, unjudged};
use super::watch::Ran;
use crate::harness::{self, Error, Journal, Progress};
use crate::report::Report;

/// Where training runs are carried out.
pub trait Site: Sync {
    /// The machine, as model files name it.
    fn machine(&self) -> String;

    /// What a report should say of it.
    fn facts(&self) -> Vec<(String, String)>;

    /// The sort of its cores.
    fn core(&self) -> CoreKind;

    /// What else its runs depend on; only those of equal conditions belong together.
    fn conditions(&self) -> Vec<String>;

    /// By what its counts are understood.
    fn catalogue(&self) -> &Catalogue;

    /// Runs that may be carried out at a time.
    fn workers(&self) -> usize;

    /// Can what processes of no-operations cost be told from what the SMT mode costs, in which they
    /// keep the core?
    fn tells_nops(&self) -> bool;

    /// Carries a run out.
    ///
    /// # Errors
    /// Why it could not be.
    fn carry_out(&self, run: &Run, components: &Components, size: &Size) -> Result<Ran, Error>;
}

/// What to train.
#[derive(Debug, Clone)]
pub struct Options {
    /// Folder of everything.
    pub output: PathBuf,
    /// The programs.
    pub programs: Vec<String>,
    /// Programs that only help to train, in pairs.
    pub rulers: Vec<String>,
    /// Which stack the model is made of.
    pub stack: Depth,
    /// How large.
    pub size: Size,
    /// Seed of the groups that are drawn.
    pub seed: u64,
}

/// One finished run: a line of `runs.jsonl`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Which run.
    pub run: Run,
    /// Seconds that it took.
    pub wall_s: f64,
    /// What it gave.
    pub ran: Ran,
}

/// What stays the same when a training is interrupted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Setting {
    machine: String,
    catalogue: String,
    #[serde(default)]
    stack: Depth,
    programs: Vec<String>,
    #[serde(default)]
    rulers: Vec<String>,
    size: Size,
    seed: u64,
    #[serde(default)]
    conditions: Vec<String>,
}

/// A training over its folder.
#[derive(Debug)]
pub struct Campaign;

impl Campaign {
    /// Carries out the runs that are not done yet, fits the model and writes
    /// all files.
    ///
    /// # Errors
    /// When a run fails, the folder cannot be used, the model cannot be fitted, or
    /// the user stops it; finished runs are kept in each case. When the programs are too few to judge
    /// the model, before anything runs.
    pub fn run(
        site: &dyn Site,
        options: &Options,
        progress: &mut dyn Progress,
    ) -> Result<(Evaluated, Report), Error> {
        let mut all = plan(&options.programs, &options.rulers, &options.size, options.seed);
        enough(&all, options)?;
        let folder = &options.output;
        fs::create_dir_all(folder).map_err(Error::io(folder))?;
        setting(site, options)?;
        let components = Components::of(site.catalogue(), options.stack.sum())
            .map_err(|why| Error::Evaluation(why.to_string()))?;
        let (mut journal, mut records) = Journal::open::<Record>(&folder.join("runs.jsonl"))?;
        if site.tells_nops() {
            all.extend(nops(&options.programs, &options.size));
        }
        let done: BTreeSet<&Run> = records.iter().map(|record| &record.run).collect();
        let left: Vec<&Run> = all.iter().filter(|run| !done.contains(run)).collect();
        let finished = all.len() - left.len();
        // The first run tells how long the others take.
        let mut left = left.into_iter();
        let mut fresh = Vec::new();
        let mut estimate = Duration::ZERO;
        if let Some(first) = left.next() {
            let record = carry_out(site, first, &components, &options.size)?;
            let threads: usize = left.as_slice().iter().map(|run| run.threads()).sum();
            let each = record.wall_s / first.threads() as f64 / site.workers() as f64;
            estimate = Duration::from_secs_f64(each * threads as f64);
            journal.append(&record)?;
            fresh.push(record);
        }
        progress.begin(all.len(), finished + fresh.len(), estimate);
        let size = &options.size;
        all_of(site, left.as_slice(), &components, size, progress, &mut |record| {
            journal.append(&record)?;
            fresh.push(record);
            Ok(())
        })?;
        records.extend(fresh);
        progress.note("fitting the model, and judging it on programs and combinations left out");
        let (evaluated, report) = judge(site, options, components, records, progress)?;
        write(folder, &evaluated, &report)?;
        Ok((evaluated, report))
    }
}

/// Are there programs enough to judge what is fitted?
fn enough(runs: &[Run], options: &Options) -> Result<(), Error> {
    let Some(width) = unjudged(runs, &options.rulers, &options.size) else { return Ok(()) };
    let why = ValidationError::TooFew { programs: options.programs.len() };
    let instead = if width > 2 { ", or train pairs only (--fours 0)" } else { "" };
    Err(wrong(format!("groups of {width}: {why}; name more{instead}")))
}

fn setting(site: &dyn Site, options: &Options) -> Result<(), Error> {
    let new = Setting {
        machine: site.machine(),
        catalogue: site.catalogue().name().to_owned(),
        stack: options.stack,
        programs: options.programs.clone(),
        rulers: options.rulers.clone(),
        size: options.size.clone(),
        seed: options.seed,
        conditions: site.conditions(),
    };
    harness::keep(&options.output, |kept| *kept == new, || Ok(new.clone())).map(drop)
}

/// What a folder holds of a training.
pub(super) struct Kept {
    pub size: Size,
    pub programs: Vec<String>,
    pub rulers: Vec<String>,
    pub seed: u64,
    pub runs: BTreeMap<Run, Ran>,
}

/// Reads what a folder holds of the whole training that a model came from; leaves it as it is.
///
/// # Errors
/// When it cannot be read, runs are missing, or it is of another machine or stack.
pub(super) fn kept(folder: &Path, model: &Model) -> Result<Kept, Error> {
    let Setting { machine, stack, size, programs, rulers, seed, .. } = harness::kept(folder)?;
    let (of, wanted) = ((machine.as_str(), stack.sum()), (&*model.machine, model.components.sum()));
    if of != wanted {
        return Err(Error::Evaluation(format!(
            "the training in {} is of {} by {}, the model of {} by {}",
            folder.display(),
            of.0,
            of.1,
            wanted.0,
            wanted.1
        )));
    }
    let records: Vec<Record> = Journal::read(&folder.join("runs.jsonl"))?;
    let runs: BTreeMap<Run, Ran> = records.into_iter().map(|r| (r.run, r.ran)).collect();
    let planned = plan(&programs, &rulers, &size, seed);
    match planned.iter().find(|run| !runs.contains_key(run)) {
        Some(missing) => Err(Error::Evaluation(format!(
            "the training in {} is not complete: {missing} is missing; `symbiont train` goes on with it",
            folder.display()
        ))),
        None => Ok(Kept { size, programs, rulers, seed, runs }),
    }
}

fn carry_out(
    site: &dyn Site,
    run: &Run,
    components: &Components,
    size: &Size,
) -> Result<Record, Error> {
    let begin = Instant::now();
    let ran = site.carry_out(run, components, size)?;
    Ok(Record { run: run.clone(), wall_s: begin.elapsed().as_secs_f64(), ran })
}

/// Carries runs out by several workers; `keep` gets each, in any order.
fn all_of(
    site: &dyn Site,
    runs: &[&Run],
    components: &Components,
    size: &Size,
    progress: &mut dyn Progress,
    keep: &mut dyn FnMut(Record) -> Result<(), Error>,
) -> Result<(), Error> {
    let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
    let (tell, told) = mpsc::channel();
    let (next, stop) = (&next, &stop);
    std::thread::scope(|scope| {
        for _ in 0..site.workers().max(1) {
            let tell = tell.clone();
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    let Some(run) = runs.get(next.fetch_add(1, Ordering::Relaxed)) else { break };
                    if tell.send(carry_out(site, run, components, size)).is_err() {
                        break;
                    }
                }
            });
        }
        drop(tell);
        let mut result = Ok(());
        for record in told {
            let kept = record.and_then(|record| {
                progress.running(&record.run.to_string());
                keep(record)
            });
            progress.done();
            let kept = if progress.cancelled() { kept.and(Err(Error::Cancelled)) } else { kept };
            if kept.is_err() {
                stop.store(true, Ordering::Relaxed);
                result = result.and(kept);
            }
        }
        result
    })
}

fn judge(
    site: &dyn Site,
    options: &Options,
    components: Components,
    records: Vec<Record>,
    progress: &dyn Progress,
) -> Result<(Evaluated, Report), Error> {
    let wall: f64 = records.iter().map(|record| record.wall_s).sum();
    let count = records.len();
    let runs: BTreeMap<Run, Ran> = records.into_iter().map(|r| (r.run, r.ran)).collect();
    let training = Training {
        date: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
        programs: options.programs.clone(),
        quantum_ms: options.size.quantum.as_millis() as u64,
        note: match options.rulers.as_slice() {
            [] => String::new(),
            rulers => format!("with rulers: {}", rulers.join(", ")),
        },
    };
    let made = (site.machine(), site.core(), site.catalogue().name().to_owned());
    let pressure = Pressure::of(site.catalogue(), &components);
    let apart = (&pressure, options.rulers.as_slice());
    let (what, stop) = ((made, components, training), AtomicBool::new(false));
    let evaluated = std::thread::scope(|scope| {
        let evaluated = scope.spawn(|| evaluate(&runs, &options.size, what, apart, &stop));
        while !evaluated.is_finished() {
            stop.store(progress.cancelled(), Ordering::Relaxed);
            std::thread::sleep(Duration::from_millis(20));
        }
        end(evaluated)
    });
    let evaluated = match evaluated {
        Err(_) if stop.into_inner() => return Err(Error::Cancelled),
        evaluated => evaluated?,
    };
    let mut report = page::page(&evaluated);
    for (name, value) in site.facts() {
        report.fact(name, value);
    }
    let Size { quantum, quanta, fours } = &options.size;
    let trained = options.programs.len() + options.rulers.len();
    let pairs = trained * (trained + 1) / 2;
    report.fact(
        "Runs",
        format!("{count}: {pairs} pairs, {fours} groups of four; {quanta} quanta of {quantum:?}"),
    );
    report.fact("Time of all runs", format!("{:.1} min, one after the other", wall / 60.0));
    if !options.rulers.is_empty() {
        report.fact("Rulers", format!("{}: trained on, never judged", options.rulers.join(", ")));
    }
    let depth = options.stack;
    report.fact("Stack", format!("{depth}: {}", evaluated.model.components));
    report.fact("Seed", options.seed.to_string());
    report.fact("Version", env!("CARGO_PKG_VERSION"));
    Ok((evaluated, report))
}

fn write(folder: &Path, evaluated: &Evaluated, report: &Report) -> Result<(), Error> {
    let model = folder.join("model.toml");
    evaluated.model.save(&model).map_err(|why| Error::Evaluation(why.to_string()))?;
    let path = folder.join("slowdowns.json");
    let text = serde_json::to_string(&evaluated.slowdowns).map_err(Error::json(&path))?;
    fs::write(&path, text + "\n").map_err(Error::io(&path))?;
    report.write(folder)?;
    Ok(())
}
