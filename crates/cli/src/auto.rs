//! `symbiont bench auto`: the default policy on simulated machines.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use symbiont_experiment::auto::{self, Lab, MACHINES, Options, PROGRAMS, Size};
use symbiont_experiment::report::Report;
use symbiont_experiment::simulated::Library;
use symbiont_experiment::training::simulated::{Simulated, catalogue};
use symbiont_experiment::training::{self, Campaign};
use symbiont_model::{Components, Depth};
use symbiont_policy::{Settings, Symbiosis};
use symbiont_profile::Profile;
use symbiont_sim::description::Description;
use symbiont_sim::fast::Workshop;
use symbiont_sim::machine::Errors;

use crate::args::{BenchAuto, Kept};
use crate::bench::Terminal;
use crate::prepare::{Bar, prepare};
use crate::simulate::machine;

/// Long quanta, since groups of events take turns in each reading.
const TRAINING: training::Size =
    training::Size { quantum: Duration::from_millis(500), quanta: 10, fours: 0 };
/// Threads of a core that are simulated.
const MODES: [u32; 2] = [1, 2];

/// Runs the comparison, with its programs made ready and models trained on them.
pub fn run(args: &BenchAuto, output: &Path, progress: &mut Terminal) -> anyhow::Result<Report> {
    let library = Library::open(&args.profiles)?;
    let programs: Vec<&str> = match args.programs.as_slice() {
        [] => PROGRAMS.to_vec(),
        some => some.iter().map(String::as_str).collect(),
    };
    let profiles = library.load_all(programs.iter().copied())?;
    let mut workshops = Vec::new();
    for (name, smt) in MACHINES {
        if args.machines.is_empty() || args.machines.iter().any(|wanted| wanted == name) {
            workshops.push(Workshop::new(machine(name)?.restricted(None, smt)?));
        }
    }
    anyhow::ensure!(
        !workshops.is_empty(),
        "no such machine; there are: {}",
        MACHINES.map(|(name, _)| name).join(", ")
    );
    let mut labs = Vec::new();
    for workshop in &workshops {
        let settings = trained(args, output, &profiles, workshop.description(), progress)?;
        ready(workshop, &profiles, &args.kept)?;
        labs.push(Lab { workshop, profiles: &profiles, settings });
    }
    let short = Size { workloads: 2, alone: Duration::from_secs(1), repeats: (2, 2) };
    let full = Size { workloads: 10, alone: Duration::from_secs(4), repeats: (3, 10) };
    let size = if args.short { short } else { full };
    let size = Size {
        workloads: args.workloads.unwrap_or(size.workloads),
        alone: args.alone.unwrap_or(size.alone),
        repeats: args.repeats.map_or(size.repeats, |most| (size.repeats.0.min(most), most)),
    };
    let options = Options { output: output.to_owned(), size, seed: args.seed, workers: workers() };
    Ok(auto::run(&options, &labs, progress)?)
}

fn workers() -> usize {
    std::thread::available_parallelism().map_or(1, Into::into)
}

fn ready<'p>(
    workshop: &Workshop<'p>,
    profiles: &'p BTreeMap<String, Profile>,
    kept: &Kept,
) -> anyhow::Result<()> {
    let bar = Bar::new()?;
    let prepared = prepare(workshop, profiles.values(), &MODES, kept, &bar);
    bar.end();
    prepared
}

/// A model of pairs on the machine's first core type, from few quanta of each run, and the slowdowns
/// of the pairs; nothing where its counters give no stacks.
fn trained(
    args: &BenchAuto,
    output: &Path,
    profiles: &BTreeMap<String, Profile>,
    machine: &Description,
    progress: &mut Terminal,
) -> anyhow::Result<Settings> {
    let stack = Depth::Coarse;
    if Components::of(&catalogue(machine)?, stack.sum()).is_err() {
        return Ok(Settings::default());
    }
    let sort = machine.core_types.first().map(|core| core.kind).unwrap_or_default();
    let core = machine.clone().of_sort(sort)?.restricted(Some(1), Some(2))?;
    let workshop = Workshop::new(core);
    ready(&workshop, profiles, &args.kept)?;
    let site = Simulated::new(&workshop, profiles, (Errors::default(), args.seed, workers()))?;
    let options = training::Options {
        output: output.join(format!("training-{}", machine.name)),
        programs: profiles.keys().cloned().collect(),
        rulers: Vec::new(),
        stack,
        size: TRAINING,
        seed: args.seed,
    };
    let (evaluated, _) = Campaign::run(&site, &options, progress)?;
    Ok(Settings {
        symbiosis: Some(Arc::new(Symbiosis::new(evaluated.model))),
        slowdowns: Some(Arc::new(evaluated.slowdowns)),
        ..Settings::default()
    })
}
