//! `symbiont check-sim --host`: both levels against kernels, and the fast one against programs, as this host runs them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::Serialize;
use symbiont_counters::catalogue::Catalogue;
use symbiont_experiments_host::hardware::host::{Clock, Errors, Middle, cycles};
use symbiont_linux::kernels::{KERNELS, LoopKernel};
use symbiont_linux::perf::processors;
use symbiont_profile::Profile;
use symbiont_profile::capture::{Capture, plugin_next_to};
use symbiont_sim_cycle::check::{Performance, alone, most_frequent};
use symbiont_sim_cycle::{CycleOptions, CycleReference, Sample};
use symbiont_sim_fast::description::Description;
use symbiont_sim_fast::fast::{Switches, TableBuilder};
use symbiont_topology::CpuSet;

use super::REPLAYED;
use super::programs::{self, Ran, said};
use crate::research::args::CheckSim;
use crate::research::prepare::Bar;
use crate::research::simulate::machine;

/// Instructions of a kernel that are profiled, and of an interval: what makes it ready is in others.
const PROFILED: u64 = 30_000_000;
const INTERVAL: u64 = 3_000_000;
/// Passes of a kernel through its memory that are profiled at least: they execute more than what links it.
const PASSES: u64 = 16;

/// What is reported.
#[derive(Debug, Serialize)]
struct Report {
    machine: String,
    title: String,
    /// The host's processor, and why it is not the described one, if it is not.
    processor: String,
    another: Option<String>,
    /// The host's clock, by dependent adds, and the description's, GHz.
    ghz: [f64; 2],
    kernels: Vec<KernelRow>,
    /// Of both levels, of kernels within the core and its L2, and of those that go beyond.
    within: [Option<Errors>; 2],
    beyond: [Option<Errors>; 2],
    programs: Option<programs::Report>,
}

/// Cycles of each operation of a kernel.
#[derive(Debug, Serialize)]
struct KernelRow {
    kernel: &'static str,
    /// Does it go through more memory than the described L2 has?
    beyond: bool,
    measured: Middle,
    fast: f64,
    cycle: f64,
}

/// Measures, simulates and compares.
pub fn run(args: &CheckSim) -> anyhow::Result<()> {
    let description = machine(&args.machine)?;
    let clock = Clock::new().context("no memory for kernels")?;
    let clock = clock.context("kernels are of x86-64 processors; this is none")?;
    pin()?;
    let ghz = clock.ghz();
    let bar = Bar::new()?;
    let mut kernels = Vec::new();
    let profiler = Profiler::new()?;
    let counted = args.counted.unwrap_or(REPLAYED);
    let wanted = wanted(&args.kernels)?;
    let l2 = description.core_types.first().map_or(0, |core| core.l2.bytes);
    for (number, kernel) in wanted.iter().enumerate() {
        let go_on = bar.step("kernels", number, wanted.len()).is_continue();
        anyhow::ensure!(go_on, "stopped");
        let measured = cycles(kernel, &clock).context("no memory for kernels")?;
        let measured =
            measured.with_context(|| format!("{}: nothing was measured", kernel.name))?;
        let profile = profiler.profile(kernel)?;
        let [fast, cycle] = simulated(&description, &profile, counted)?;
        let of = |cpi: f64| cpi * kernel.instructions / kernel.operations as f64;
        let (fast, cycle) = (of(fast.cpi), of(cycle.cpi));
        let beyond = kernel.bytes as u64 > l2;
        kernels.push(KernelRow { kernel: kernel.name, beyond, measured, fast, cycle });
    }
    let errors = |beyond: bool, of: fn(&KernelRow) -> f64| {
        let rows = kernels.iter().filter(|row| row.beyond == beyond);
        Errors::of(&rows.map(|row| (row.measured.median, of(row))).collect::<Vec<_>>())
    };
    let both = |beyond| [errors(beyond, |row| row.fast), errors(beyond, |row| row.cycle)];
    let (within, beyond) = (both(false), both(true));
    let ran: Option<Vec<Ran>> = match &args.programs {
        Some(folder) => Some(programs::run(folder, args, &description, &clock, &bar)?),
        None => None,
    };
    bar.end();
    let ghz = [ghz, ghz_of(&description)];
    let programs = ran.map(programs::Report::of);
    let (processor, another) = processor(&description);
    let (machine, title) = (description.name, description.title);
    let report =
        Report { machine, title, processor, another, ghz, kernels, within, beyond, programs };
    if args.json {
        say!("{}", crate::out::json(&report)?);
    } else {
        show(&report);
    }
    Ok(())
}

/// The kernels of these names, or all.
fn wanted(names: &[String]) -> anyhow::Result<Vec<LoopKernel>> {
    if names.is_empty() {
        return Ok(KERNELS.to_vec());
    }
    let named = |name: &String| {
        LoopKernel::named(name).with_context(|| {
            format!("no kernel is called '{name}'; `symbiont-synth kernel` lists them")
        })
    };
    names.iter().map(named).collect()
}

/// The processor's name, and why it is not the described one, if it is known to be another.
fn processor(description: &Description) -> (String, Option<String>) {
    let cpu = processors(Path::new("/"), &BTreeMap::new()).into_iter().next();
    let counted = cpu.as_ref().and_then(|cpu| Catalogue::of(cpu).ok());
    let described = description.core_types.first().map_or("", |core| core.catalogue.as_str());
    let another = counted.filter(|catalogue| catalogue.name() != described).map(|catalogue| {
        format!(
            "this processor counts as a {}, the described one as a {described}",
            catalogue.name()
        )
    });
    (cpu.map_or("an unknown processor".to_owned(), |cpu| cpu.to_string()), another)
}

/// Stays on the last CPU, which has the fewest interrupts.
fn pin() -> anyhow::Result<()> {
    let cpus = symbiont_linux::actuate::allowed().context("on which CPUs may it run?")?;
    let last = cpus.iter().last().context("it may run on no CPU")?;
    let only = CpuSet::from(last);
    symbiont_linux::actuate::pin(std::process::id(), &only).context("cannot stay on a CPU")
}

fn ghz_of(description: &Description) -> f64 {
    description.core_types.first().map_or(0.0, |core| core.ghz)
}

/// CPI alone by the fast and the cycle level, of a profile's most frequent phase.
fn simulated(
    description: &Description,
    profile: &Profile,
    counted: u64,
) -> anyhow::Result<[Performance; 2]> {
    let phase = most_frequent(profile).context("an empty profile")?;
    let home = description.memory.nodes.first().copied().context("the machine has no memory")?;
    let builder = TableBuilder::new(description.clone());
    let mut fast = builder.fast(Switches::default());
    let sample = Sample { counted, ..Sample::default() };
    let mut cycle = CycleReference::new(description.clone(), CycleOptions::default(), sample);
    let fast = alone(&mut fast, phase, home)?.context("nothing was simulated")?;
    Ok([fast, alone(&mut cycle, phase, home)?.context("nothing was simulated")?])
}

/// Profiles kernels.
struct Profiler {
    synth: PathBuf,
    plugin: PathBuf,
}

impl Profiler {
    fn new() -> anyhow::Result<Self> {
        let own = std::env::current_exe().context("where is symbiont?")?;
        let synth = own.with_file_name("symbiont-synth");
        anyhow::ensure!(
            synth.exists(),
            "{}: it is needed for kernels, and not there",
            synth.display()
        );
        Ok(Self { synth, plugin: plugin_next_to(&own)? })
    }

    fn profile(&self, kernel: &LoopKernel) -> anyhow::Result<Profile> {
        let rounds = (PROFILED as f64 / kernel.instructions).ceil() as u64;
        let rounds = rounds.max(PASSES * kernel.pass()).to_string();
        let words = ["kernel", kernel.name, "--rounds", &rounds];
        let mut command = vec![self.synth.clone().into_os_string()];
        command.extend(words.iter().map(Into::into));
        let capture = Capture {
            command,
            name: Some(kernel.name.to_owned()),
            variables: Vec::new(),
            plugin: self.plugin.clone(),
            interval: Some(INTERVAL),
            stdout: Some(Path::new("/dev/null").to_owned()),
        };
        capture.run(|_| ()).with_context(|| format!("profiling {}", kernel.name))
    }
}

fn show(report: &Report) {
    let Report { machine, title, processor, another, ghz: [here, described], .. } = report;
    let Report { kernels, within, beyond, programs, .. } = report;
    say!("{machine} ({title}), simulated, held against this host: {processor}");
    if let Some(another) = another {
        say!("another machine than described: {another}");
    }
    say!("clock {here:.2} GHz by dependent adds; the description's is {described:.2} GHz");
    say!(
        "\ncycles of each operation: measured [middle half], simulated by the fast and the cycle level"
    );
    for KernelRow {
        kernel,
        measured: Middle { median, quartiles: [low, high] },
        fast,
        cycle,
        ..
    } in kernels
    {
        let measured = format!("{median:.2} [{low:.2}, {high:.2}]");
        let over = |it: &f64| format!("{it:7.2} ({:.2})", it / median);
        say!("{kernel:42} {measured:>24} {:>15} {:>15}", over(fast), over(cycle));
    }
    let sorts = [("within the core and its L2", within), ("beyond", beyond)];
    for (sort, both) in sorts {
        for (level, errors) in ["fast", "cycle"].iter().zip(both) {
            if let Some(errors) = errors {
                say!("{sort}, {level} level: {}", said(errors));
            }
        }
    }
    if let Some(programs) = programs {
        programs.show();
    }
}
