//! `symbiont bench symbiosis`: symbiotic scheduling on a simulated machine.

use std::path::Path;

use symbiont_experiment::report::Report;
use symbiont_experiment::simulated::Library;
use symbiont_experiment::symbiosis::{Campaign, Options, Size, WIDE, check};
use symbiont_experiment::training::LeftOut;
use symbiont_experiment::training::simulated::catalogue;
use symbiont_policy::{Settings, find};
use symbiont_sim::description::Description;
use symbiont_sim::fast::Workshop;
use symbiont_sim::machine::Errors;

use crate::args::BenchSymbiosis;
use crate::bench::Terminal;
use crate::knowledge::{self, Fitting};
use crate::prepare::{Bar, prepare};
use crate::simulate::{machine, switches};

/// Runs the evaluation, with its programs made ready.
pub fn run(
    args: &BenchSymbiosis,
    output: &Path,
    progress: &mut Terminal,
) -> anyhow::Result<Report> {
    let description = machine(&args.machine)?;
    let library = Library::open(&args.profiles)?;
    let programs: Vec<String> = match args.programs.as_slice() {
        [] => library.list().into_iter().filter(|listed| listed.real).map(|l| l.name).collect(),
        some => some.to_vec(),
    };
    let size = size(args, &description);
    // The first policy that lacks anything is told before anything runs.
    let mut settings = Settings::default();
    for policy in &size.policies {
        let fitting = || Fitting::simulated(&description);
        settings = knowledge::add(&args.knowledge, fitting, find(policy)?, settings)?;
    }
    let profiles = library.load_all(programs.iter().map(String::as_str))?;
    let workshop = Workshop::new(description);
    let options = Options {
        output: output.to_owned(),
        size,
        seed: args.seed,
        settings,
        switches: switches(&args.private),
        errors: Errors::default(),
        workers: std::thread::available_parallelism().map_or(1, Into::into),
    };
    let known = options.settings.symbiosis.as_ref();
    let left_out = match (&args.left_out, known) {
        (Some(folder), Some(known)) => {
            anyhow::ensure!(known.others.is_empty(), "--left-out needs one model, not several");
            Some(LeftOut::read(folder, known.model.clone(), &catalogue(workshop.description())?)?)
        }
        _ => None,
    };
    let models = left_out.as_ref().map(LeftOut::models).transpose()?;
    // To prepare programs takes long; what lacks is told before.
    if let Some(models) = &models {
        let programs: Vec<String> = profiles.keys().cloned().collect();
        check(models, &programs, &options)?;
    }
    let bar = Bar::new()?;
    let widths = options.size.widths.iter().copied();
    let widths = widths.chain(options.size.runs_wide().then_some(WIDE));
    let widest = widths.max().unwrap_or(2) as u32;
    let modes: Vec<u32> = [1, 2, 4, 8].into_iter().filter(|mode| *mode <= widest).collect();
    let prepared = prepare(&workshop, profiles.values(), &modes, &args.kept, &bar);
    bar.end();
    prepared?;
    Ok(Campaign::run(&workshop, &profiles, models.as_ref(), &options, progress)?.1)
}

fn size(args: &BenchSymbiosis, machine: &Description) -> Size {
    let mut size = if args.short { Size::short() } else { Size::full() };
    let some = |given: &[usize], standard: Vec<usize>| {
        if given.is_empty() { standard } else { given.to_vec() }
    };
    size.widths = some(&args.widths, size.widths);
    size.cores = some(&args.cores, size.cores);
    size.workloads = args.workloads.unwrap_or(size.workloads);
    size.repeats = args.repeats.unwrap_or(size.repeats);
    size.alone = args.alone.unwrap_or(size.alone);
    size.controls = args.controls.unwrap_or(size.controls);
    let wide = machine.topology.cores().iter().filter(|core| core.cpus.len() >= WIDE).count();
    if let Some(workloads) = args.smt8 {
        size.wide = (workloads, Size::full().wide.1);
    }
    size.wide.1.retain(|cores| *cores <= wide);
    if !args.policies.is_empty() {
        size.policies.clone_from(&args.policies);
    }
    size
}
