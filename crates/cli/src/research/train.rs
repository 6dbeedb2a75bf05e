//! `symbiont train`: an interference model for a machine.

use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::Deserialize;
use symbiont_experiments_host::harness::Machine;
use symbiont_experiments_sim::training::real::{Real, Trainee};
use symbiont_experiments_sim::training::simulated::{NOPS, Simulated, nops};
use symbiont_experiments_sim::training::{
    self, CapturedGain, Evaluation, Site, TrainingOptions, TrainingSize,
};
use symbiont_experiments_sim::{Kind, Library};
use symbiont_model::{Form, Objective};
use symbiont_report::Report;
use symbiont_report::stats::Estimate;
use symbiont_sim_fast::description::Description;
use symbiont_sim_fast::fast::TableBuilder;
use symbiont_sim_fast::machine::Errors;
use symbiont_sim_fast::ready::any_cores;
use symbiont_topology::{CoreKind, HostTopology, PuId};
use symbiont_training::Predictor;

use crate::bench::progress::{Figures, Terminal};
use crate::doctor::catalogue::read_or_find;
use crate::knowledge::Fitting;
use crate::research::args::{CoreTypeChoice, Train};
use crate::research::prepare::{Bar, prepare};
use crate::research::simulate::machine;

/// A file of programs.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Jobs {
    #[serde(default)]
    job: Vec<Trainee>,
}

/// Trains, and prints where the model is.
pub fn run(args: &Train) -> anyhow::Result<()> {
    match (&args.machine, &args.jobs) {
        (Some(name), _) => train_simulated(args, name),
        (None, Some(jobs)) => train_real(args, jobs),
        (None, None) => anyhow::bail!("name a machine (--machine) or programs (--jobs)"),
    }
}

fn options(args: &Train, machine: &str, programs: Vec<String>) -> TrainingOptions {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    let standard = || Path::new("training").join(machine.chars().map(plain).collect::<String>());
    let size =
        TrainingSize { quantum: args.quantum, quanta: args.quanta.max(1), fours: args.fours };
    let output = args.output.clone().unwrap_or_else(standard);
    let weighting = args.regression.weighting();
    TrainingOptions { output, programs, stack: args.stack, weighting, size, seed: args.seed }
}

fn train_simulated(args: &Train, name: &str) -> anyhow::Result<()> {
    let library = Library::open(&args.profiles)?;
    let programs = match args.programs.as_slice() {
        [] => library.of_kind(Kind::Program).collect(),
        some => some.to_vec(),
    };
    anyhow::ensure!(
        programs.len() > 4,
        "{} programs are too few to train on: at least 5 are needed, as two are left out at a time",
        programs.len()
    );
    let options = options(args, name, programs);
    let description = of_type(machine(name)?, args.sort)?;
    let widest = options.size.widths().into_iter().max().unwrap_or(2);
    let smt = description.topology.smt_width();
    anyhow::ensure!(
        smt >= widest,
        "the cores of {name} run {smt} threads at a time, training is for {widest}{}",
        if smt >= 2 { " (--fours 0 trains pairs only)" } else { "" }
    );
    let builder = TableBuilder::new(description.restricted(Some(1), Some(widest))?);
    let mut profiles = library.load_all(options.programs.iter().map(String::as_str))?;
    profiles.insert(NOPS.to_owned(), nops());
    let bar = Bar::new()?;
    let modes: Vec<u32> = [1, 2, 4].into_iter().filter(|mode| *mode <= widest as u32).collect();
    let uses: Vec<_> = any_cores(&modes).collect();
    let prepared = prepare(&builder, profiles.values(), &uses, &args.kept, &bar);
    bar.end();
    prepared?;
    let errors = if args.exact_counters { Errors::NONE } else { Errors::default() };
    let workers = std::thread::available_parallelism().map_or(1, Into::into);
    let site = Simulated::new(&builder, &profiles, (errors, args.seed, workers))?;
    train(&site, &options, Figures::default(), args.json)
}

/// A machine with one core type only.
fn of_type(machine: Description, sort: Option<CoreTypeChoice>) -> anyhow::Result<Description> {
    let first = machine.core_types.first().map(|core| core.kind).unwrap_or_default();
    let sort = match sort {
        None => first,
        Some(CoreTypeChoice::Performance) => CoreKind::Performance,
        Some(CoreTypeChoice::Efficiency) => CoreKind::Efficiency,
    };
    Ok(machine.of_type(sort)?)
}

fn train_real(args: &Train, jobs: &Path) -> anyhow::Result<()> {
    let text = symbiont_safe_open::read_to_string(jobs)
        .with_context(|| format!("cannot read the programs {}", jobs.display()))?;
    let read: Jobs =
        toml::from_str(&text).with_context(|| format!("in the programs {}", jobs.display()))?;
    let host = HostTopology::read().context("cannot read this machine's topology")?;
    let catalogue = args.catalogue.as_deref().map(read_or_find).transpose()?;
    let fitting = Fitting::here(&host, catalogue)?;
    let first = || host.cores().first().map(|core| core.cpus.iter().collect()).unwrap_or_default();
    let cpus: Vec<PuId> = match args.cpus.as_slice() {
        [] => first(),
        some => some.iter().copied().map(PuId).collect(),
    };
    let programs: Vec<String> = read.job.iter().map(|job| job.name.clone()).collect();
    let options = options(args, fitting.name(), programs);
    let widest = options.size.widths().into_iter().max().unwrap_or(2);
    anyhow::ensure!(
        cpus.len() >= widest,
        "training is for groups of {widest}, and there are {} hardware threads to run them on \
         (name them with --cpus)",
        cpus.len()
    );
    std::fs::create_dir_all(&options.output)
        .with_context(|| format!("cannot make {}", options.output.display()))?;
    let scratch: PathBuf = std::path::absolute(options.output.join("state"))?;
    let core = cpus.first().and_then(|cpu| Some(host.core_of(*cpu)?.kind)).unwrap_or_default();
    let name = fitting.name().to_owned();
    let facts = Machine::measured_in(&options.output)?.facts();
    let site = Real::new(read.job, fitting.into_catalogue(), (cpus, core), (name, facts), scratch);
    train(&site, &options, Figures::MEASURED, args.json)
}

fn train(
    site: &dyn Site,
    options: &TrainingOptions,
    figures: Figures,
    json: bool,
) -> anyhow::Result<()> {
    let (evaluated, report) = training::train(site, options, &mut Terminal::new(figures)?)?;
    if json {
        say!("{}", report.to_json()?);
        return Ok(());
    }
    for (mode, trained) in &evaluated.model.modes {
        say!("{mode}, on programs that were left out:");
        for score in trained
            .scores
            .iter()
            .filter(|s| s.predicts == "slowdown" && s.holdout == symbiont_model::Holdout::Programs)
        {
            say!(
                "  {:<22} mean error {:>5.1} %, {:>3.0} % within 5 %",
                score.of,
                score.mean_absolute * 100.0,
                score.within * 100.0
            );
        }
    }
    evaluated.modes.values().for_each(print_captured);
    print(&options.output, &report);
    Ok(())
}

/// What pairing gains of programs that were left out, and whether that is enough.
fn print_captured(evaluation: &Evaluation) {
    let published = Predictor::Model(Form::Delta);
    let captured = evaluation.captured.iter();
    let mut captured =
        captured.filter(|c| c.predictor == published && c.objective == Objective::Stp).peekable();
    if captured.peek().is_none() {
        return;
    }
    say!(
        "share of the oracle's gain over random pairing that is captured, eight programs left out:"
    );
    for CapturedGain { stacks, left_out, known, shuffled, .. } in captured {
        say!(
            "  {:<26} {}; known {}; shuffled {} ({} workloads)",
            format!("delta, {} stacks", stacks.name()),
            share(left_out),
            share(known),
            share(shuffled),
            left_out.n
        );
    }
}

fn share(estimate: &Estimate) -> String {
    let interval = estimate.interval.map(|i| format!(" [{:.2}, {:.2}]", i.low, i.high));
    format!("{:.2}{}", estimate.value, interval.unwrap_or_default())
}

fn print(folder: &Path, report: &Report) {
    say!("{}", report.title);
    say!("model:     {}", folder.join("model.toml").display());
    say!("slowdowns: {}", folder.join("slowdowns.json").display());
    say!("report:    {}", folder.join("index.html").display());
}
