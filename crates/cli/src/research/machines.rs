//! `symbiont machines`: what can be simulated; `symbiont workloads`: by which
//! programs.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;
use symbiont_experiments_sim::membench::{self, Memory};
use symbiont_experiments_sim::multithreading::{self, Gains, Spread};
use symbiont_experiments_sim::sanity::{self, Sanity};
use symbiont_experiments_sim::{Kind, Library, LibraryEntry, held, pairs};
use symbiont_profile::Profile;
use symbiont_report::number;
use symbiont_sim_fast::description::{Description, Source, SourcedValue};

use crate::research::args::{Machines, Workloads};
use crate::research::simulate::machine;

#[derive(Debug, Serialize)]
struct Machine {
    name: String,
    title: String,
    note: String,
    cores: usize,
    smt: usize,
    hardware_threads: usize,
    catalogues: Vec<String>,
    checked: String,
    held: String,
    /// What simulated speeds say of pairs of threads on real cores.
    #[serde(skip_serializing_if = "Option::is_none")]
    pairs: Option<&'static str>,
    values: usize,
    assumed: usize,
}

impl From<&Description> for Machine {
    fn from(machine: &Description) -> Self {
        Self {
            name: machine.name.clone(),
            title: machine.title.clone(),
            note: machine.note.clone(),
            cores: machine.topology.cores().len(),
            smt: machine.topology.smt_width(),
            hardware_threads: machine.topology.cpus().len(),
            catalogues: machine.core_types.iter().map(|core| core.catalogue.clone()).collect(),
            checked: machine.checked.clone().unwrap_or_else(|| "unchecked".to_owned()),
            held: held(machine).to_owned(),
            pairs: pairs(machine),
            values: machine.values.len(),
            assumed: machine.assumed().count(),
        }
    }
}

#[derive(Debug, Serialize)]
struct Value<'a> {
    key: &'a str,
    /// A number, or a text such as `64K`.
    value: serde_json::Value,
    source: &'a str,
    assumed: bool,
}

impl<'a> Value<'a> {
    fn of((key, given): (&'a String, &'a SourcedValue)) -> Self {
        let (source, assumed) = match &given.source {
            Source::Published(place) => (place, false),
            Source::Assumed(why) => (why, true),
        };
        let value = serde_json::from_str(&given.value);
        let value = value.unwrap_or_else(|_| given.value.as_str().into());
        Self { key, value, source, assumed }
    }

    /// The value as it is written.
    fn written(&self) -> String {
        self.value.as_str().map_or_else(|| self.value.to_string(), str::to_owned)
    }
}

#[derive(Debug, Serialize)]
struct ShownMeasurements<'a> {
    machine: Machine,
    values: Vec<Value<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    memory: Option<Memory>,
    #[serde(skip_serializing_if = "Option::is_none")]
    programs: Option<Sanity>,
    #[serde(skip_serializing_if = "Option::is_none")]
    multithreading: Option<Gains>,
}

/// Array sizes of the pointer chase, bytes: as in Feliu et al., Fig. 4.
const SIZES: [u64; 9] =
    [16 << 10, 48 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20, 512 << 20, 1792 << 20];

/// Lists the machines, or shows one.
pub fn machines(args: &Machines) -> anyhow::Result<()> {
    match &args.name {
        None if args.multithreading => gains(args),
        None => list(args.json),
        Some(name) => show(&machine(name)?, args),
    }
}

fn list(json: bool) -> anyhow::Result<()> {
    let mut machines = Vec::new();
    for (name, _) in Description::builtin() {
        machines.push(Machine::from(&Description::named(name)?));
    }
    if json {
        say!("{}", crate::out::json(&machines)?);
        return Ok(());
    }
    for machine in machines {
        let Machine { name, title, cores, smt, checked, .. } = machine;
        say!("{name:<20} {cores:>2} × SMT{smt}  {checked}  {title}");
    }
    Ok(())
}

fn show(description: &Description, args: &Machines) -> anyhow::Result<()> {
    let memory = args.memory.then(|| membench::measure(description, &SIZES)).transpose()?;
    let profiles = (args.programs || args.multithreading)
        .then(|| load(&args.profiles))
        .transpose()?
        .unwrap_or_default();
    let shown = ShownMeasurements {
        machine: Machine::from(description),
        values: description.values.iter().map(Value::of).collect(),
        memory,
        programs: args.programs.then(|| sanity::look(description, &profiles)).transpose()?,
        multithreading: args
            .multithreading
            .then(|| multithreading::look(description, &profiles))
            .transpose()?,
    };
    if args.json {
        say!("{}", crate::out::json(&shown)?);
        return Ok(());
    }
    let machine = &shown.machine;
    let cores = number::counted(machine.cores, "core");
    say!("{} ({}), {cores} × SMT{}", machine.name, machine.title, machine.smt);
    say!("{}\n\n{}", machine.note, description.topology.summary());
    say!("\n{}; {}", machine.checked, machine.held);
    if let Some(pairs) = machine.pairs {
        say!("{pairs}");
    }
    say!(
        "{} of {} values are assumed; a size is in bytes, K or M:",
        machine.assumed,
        machine.values
    );
    for value in &shown.values {
        let kind = if value.assumed { "assumed: " } else { "" };
        say!("{:<42} {:>8}  {kind}{}", value.key, value.written(), value.source);
    }
    if let Some(memory) = &shown.memory {
        print(memory);
    }
    if let Some(programs) = &shown.programs {
        print_programs(programs);
    }
    if let Some(gains) = &shown.multithreading {
        print_gains(gains);
    }
    Ok(())
}

/// What multithreading gains on each machine that has it.
fn gains(args: &Machines) -> anyhow::Result<()> {
    let profiles = load(&args.profiles)?;
    let mut all = Vec::new();
    for (name, _) in Description::builtin() {
        let description = Description::named(name)?;
        if description.topology.smt_width() > 1 {
            let gains = multithreading::look(&description, &profiles)?;
            if !args.json {
                print_gains(&gains);
            }
            all.push(gains);
        }
    }
    if args.json {
        say!("{}", crate::out::json(&all)?);
    }
    Ok(())
}

fn print(memory: &Memory) {
    say!("\nsimulated: latency of a load (ns) by array size, from each node");
    let row = |values: &[f64]| {
        values.iter().map(|value| format!("{:>10}", number::plain(*value))).collect::<String>()
    };
    for latency in &memory.latency {
        say!("{:>10} KiB {}", latency.bytes >> 10, row(&latency.ns));
    }
    say!("\nsimulated: STREAM (GB/s), from each node");
    for bandwidth in &memory.bandwidth {
        say!("{:>14} {}", bandwidth.kernel, row(&bandwidth.gbps));
    }
    if !memory.inputs.is_empty() {
        say!("\ninputs of the description, which the above gives back and does not confirm:");
    }
    for (key, source) in &memory.inputs {
        say!("{key:<42} {source}");
    }
}

/// All real programs of the library, or the synthetic ones if it has no real one.
fn load(profiles: &Path) -> anyhow::Result<BTreeMap<String, Profile>> {
    let library = Library::open(profiles)?;
    let real = library.of_kind(Kind::Program).next().is_some();
    let names: Vec<String> =
        library.of_kind(if real { Kind::Program } else { Kind::Synthetic }).collect();
    Ok(library.load_all(names.iter().map(String::as_str))?)
}

fn print_programs(sanity: &Sanity) {
    say!("\nsimulated, {}: each program alone", sanity.provenance.checked);
    say!(
        "{:<22}{:>6}{:>10}{:>13}   front end, bad speculation, retiring, back end (%); copies on \
         all hardware threads: slots of others (%), STP per core",
        "program",
        "IPC",
        "L2 MPKI",
        "memory MPKI"
    );
    for alone in &sanity.alone {
        let shares = alone.top_down.map(|share| format!("{:>5.1}", share * 100.0));
        say!(
            "{:<22}{:>6.2}{:>10.2}{:>13.2}   {} {:>9.1} {:>5.2}",
            alone.program,
            alone.ipc,
            alone.l2_mpki,
            alone.memory_mpki,
            shares.join(" "),
            alone.contention * 100.0,
            alone.copies_per_core
        );
    }
}

fn print_gains(gains: &Gains) {
    let Gains { provenance, alone, modes, split, published } = gains;
    let spread =
        |spread: &Spread| format!("{:.2} ({:.2} to {:.2})", spread.mean, spread.low, spread.high);
    say!(
        "\n{}: simulated, {}: throughput over one thread alone; mean (10th to 90th percentile)",
        provenance.machine,
        provenance.checked
    );
    say!("IPC of one thread alone: {}", spread(alone));
    say!("{:<6}{:<24}{:<24}of groups, all cores full", "", "of copies", "of groups, others idle");
    for mode in modes {
        say!(
            "SMT{:<3}{:<24}{:<24}{}",
            mode.threads,
            spread(&mode.copies),
            spread(&mode.groups),
            spread(&mode.full)
        );
    }
    if let Some(Spread { mean, low, high }) = split.map(Spread::percent) {
        say!(
            "two ways to split four programs among halves differ by {mean:.2} % ({low:.2} to {high:.2})"
        );
    }
    for published in published {
        say!("published: {published}");
    }
}

/// Lists the programs that can be simulated.
pub fn workloads(args: &Workloads) -> anyhow::Result<()> {
    let listed = Library::open(&args.profiles)?.list();
    if args.json {
        say!("{}", crate::out::json(&listed)?);
        return Ok(());
    }
    for LibraryEntry { name, source, .. } in &listed {
        say!("{name:<22} {source}");
    }
    anyhow::ensure!(
        listed.iter().any(|listed| listed.kind == Kind::Program),
        "no profiles of programs in {}; make some (symbiont profile), or name their folder (--profiles)",
        args.profiles.display()
    );
    Ok(())
}
