//! `symbiont machines`: what can be simulated; `symbiont workloads`: by which
//! programs.

use std::path::Path;

use serde::Serialize;
use symbiont_experiment::report::number;
use symbiont_experiment::simulated::membench::{self, Memory};
use symbiont_experiment::simulated::sanity::{self, Sanity};
use symbiont_experiment::simulated::{Library, Listed};
use symbiont_sim::description::{Description, Source};

use crate::args::{Machines, Workloads};
use crate::simulate::machine;

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
            values: machine.sources.len(),
            assumed: machine.assumed().count(),
        }
    }
}

#[derive(Debug, Serialize)]
struct Value<'a> {
    key: &'a str,
    source: &'a str,
    assumed: bool,
}

#[derive(Debug, Serialize)]
struct Shown<'a> {
    machine: Machine,
    values: Vec<Value<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    memory: Option<Memory>,
    #[serde(skip_serializing_if = "Option::is_none")]
    programs: Option<Sanity>,
}

/// Array sizes of the pointer chase, bytes: as in Feliu et al., Fig. 4.
const SIZES: [u64; 9] =
    [16 << 10, 48 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20, 512 << 20, 1792 << 20];

/// Lists the machines, or shows one.
pub fn machines(args: &Machines) -> anyhow::Result<()> {
    match &args.name {
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
        println!("{}", serde_json::to_string_pretty(&machines)?);
        return Ok(());
    }
    for machine in machines {
        let Machine { name, title, cores, smt, checked, .. } = machine;
        println!("{name:<20} {cores:>2} × SMT{smt}  {checked}  {title}");
    }
    Ok(())
}

fn show(description: &Description, args: &Machines) -> anyhow::Result<()> {
    let value = |(key, source): (&'_ String, &'_ Source)| match source {
        Source::Published(where_) => (key.clone(), where_.clone(), false),
        Source::Assumed(why) => (key.clone(), why.clone(), true),
    };
    let values: Vec<(String, String, bool)> = description.sources.iter().map(value).collect();
    let memory = args.memory.then(|| membench::measure(description, &SIZES)).transpose()?;
    let shown = Shown {
        machine: Machine::from(description),
        values: values
            .iter()
            .map(|(key, source, assumed)| Value { key, source, assumed: *assumed })
            .collect(),
        memory,
        programs: args.programs.then(|| look(description, &args.profiles)).transpose()?,
    };
    if args.json {
        println!("{}", serde_json::to_string_pretty(&shown)?);
        return Ok(());
    }
    let machine = &shown.machine;
    println!("{} ({}), {} cores × SMT{}", machine.name, machine.title, machine.cores, machine.smt);
    println!("{}\n\n{}", machine.note, description.topology.summary());
    println!(
        "\n{}; {} of {} values are assumed:",
        machine.checked, machine.assumed, machine.values
    );
    for value in &shown.values {
        let kind = if value.assumed { "assumed: " } else { "" };
        println!("{:<42} {kind}{}", value.key, value.source);
    }
    if let Some(memory) = &shown.memory {
        tell(memory);
    }
    if let Some(programs) = &shown.programs {
        tell_programs(programs);
    }
    Ok(())
}

fn tell(memory: &Memory) {
    println!("\nsimulated: latency of a load (ns) by array size, from each node");
    let row = |values: &[f64]| {
        values.iter().map(|value| format!("{:>10}", number::plain(*value))).collect::<String>()
    };
    for latency in &memory.latency {
        println!("{:>10} KiB {}", latency.bytes >> 10, row(&latency.ns));
    }
    println!("\nsimulated: STREAM (GB/s), from each node");
    for bandwidth in &memory.bandwidth {
        println!("{:>14} {}", bandwidth.kernel, row(&bandwidth.gbps));
    }
}

/// Runs all programs of the library.
fn look(description: &Description, profiles: &Path) -> anyhow::Result<Sanity> {
    let library = Library::open(profiles)?;
    let all = library.list();
    let real = all.iter().any(|listed| listed.real);
    let names = all.iter().filter(|listed| listed.real == real).map(|l| l.name.as_str());
    Ok(sanity::look(description, &library.load_all(names)?)?)
}

fn tell_programs(sanity: &Sanity) {
    println!("\nsimulated, {}: each program alone", sanity.provenance.checked);
    println!(
        "{:<22}{:>6}{:>10}{:>13}   front end, bad speculation, retiring, back end (%); copies on \
         all hardware threads: slots of others (%), STP per core",
        "program", "IPC", "L2 MPKI", "memory MPKI"
    );
    for alone in &sanity.alone {
        let shares = alone.top_down.map(|share| format!("{:>5.1}", share * 100.0));
        println!(
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
    println!("\nsimulated: throughput of one core over ST (STP)");
    for together in &sanity.together {
        println!(
            "SMT{}: {:.2} on average over {} groups, {:.2} to {:.2}",
            together.threads, together.mean, together.groups, together.least, together.most
        );
    }
    for published in &sanity.published {
        println!("published: {published}");
    }
}

/// Lists the programs that can be simulated.
pub fn workloads(args: &Workloads) -> anyhow::Result<()> {
    let listed = Library::open(&args.profiles)?.list();
    if args.json {
        println!("{}", serde_json::to_string_pretty(&listed)?);
        return Ok(());
    }
    for Listed { name, source, .. } in &listed {
        println!("{name:<22} {source}");
    }
    if !listed.iter().any(|listed| listed.real) {
        eprintln!(
            "symbiont: no profiles in {}; capture some, or name their folder (--profiles)",
            args.profiles.display()
        );
    }
    Ok(())
}
