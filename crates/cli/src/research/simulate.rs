//! `symbiont simulate`: a workload under a policy on a described machine.

mod pairs;

use std::collections::BTreeMap;
use std::io::{BufWriter, IntoInnerError, Write};
use std::path::Path;

use anyhow::Context;
use symbiont_experiments_sim::{
    Decision, Kind, Library, Outcome, Provenance, RepeatsDone, Setup, Workload, check, fill,
    simulate,
};
use symbiont_profile::Profile;
use symbiont_report::number;
use symbiont_report::stats::Estimate;
use symbiont_safe_open::output::Draft;
use symbiont_sim_cycle::{CycleOptions, CycleReference, Sample};
use symbiont_sim_fast::description::Description;
use symbiont_sim_fast::fast::TableBuilder;
use symbiont_sim_fast::machine::{Errors, Fidelity, Switches};
use symbiont_sim_fast::ready::{any_cores, full_cores};
use symbiont_topology::counted;

use crate::described::{Described, described};
use crate::knowledge::{self, Fitting};
use crate::research::args::{self, Private, Simulate};
use crate::research::prepare::{Bar, prepare, report_thin};
use crate::research::profile::vectors::of_description;
use crate::research::traces;
use crate::research::vectors;

/// Runs the simulation and prints the outcome.
pub fn run(args: &Simulate) -> anyhow::Result<()> {
    if let Some(file) = &args.measured.pairs {
        return pairs::run(args, file);
    }
    let given = args.measured.given();
    anyhow::ensure!(
        given.is_empty(),
        "{}: only with --pairs FILE, which is given in place of --machine",
        given.join(", ")
    );
    let name = args.machine.as_deref().context("which machine? see --machine")?;
    let description = arranged(machine(name)?, args)?.restricted(args.cores, args.smt)?;
    let library = Library::open(&args.profiles)?;
    let workload = workload(args, &library, description.topology.cpus().len())?;
    let policy = symbiont_policy::find(&args.policy)?;
    let fitting = || Fitting::simulated(&description);
    let mut setup = setup(args);
    setup.settings.values = args.parameters.values(policy)?;
    let profiles = library.load_all(workload.apps.iter().map(|app| app.program.as_str()))?;
    let programs: Vec<_> =
        profiles.iter().map(|(name, profile)| (name.clone(), profile.digest.clone())).collect();
    let caches = || of_description(&description);
    setup.settings.activity = vectors::known(&args.activity.vectors, caches, &programs)?;
    setup.settings = knowledge::add(&args.knowledge, fitting, policy, setup.settings)?;
    anyhow::ensure!(
        args.traces.is_none() || args.level == args::Fidelity::Cycle,
        "the fast level runs programs from their profiles; --traces goes with --level cycle"
    );
    let timeline =
        || format!("timeline {}", args.timeline.as_deref().unwrap_or(Path::new("")).display());
    let mut file = match &args.timeline {
        None => None,
        Some(path) => Some(BufWriter::new(Draft::begin(path, 0o644).with_context(timeline)?)),
    };
    let progress = Bar::new()?;
    let named = args.apps.is_some() || args.workload.is_some();
    if !named && library.of_kind(Kind::Program).next().is_none() {
        let folder = args.profiles.display();
        progress.say(&format!(
            "the folder {folder} has no profiles: synthetic programs run (see --profiles)"
        ));
    }
    let file_of = file.as_mut().map(|file| file as &mut dyn Write);
    let (job, source) =
        (Job { workload, profiles: &profiles, setup }, |name: &str| library.source(name));
    let outcome = match args.level {
        args::Fidelity::Fast => {
            let builder = TableBuilder::new(description);
            let threads = job.check(&builder)?;
            let modes = modes(builder.description(), threads);
            let uses: Vec<_> = match job.setup.switches.private_units {
                true => any_cores(&modes).collect(),
                false => full_cores(&modes).collect(),
            };
            prepare(&builder, profiles.values(), &uses, &args.kept, &progress)
                .and_then(|()| job.carry_out(&builder, &source, &progress, file_of))
        }
        args::Fidelity::Cycle => {
            let mut reference =
                CycleReference::new(description, CycleOptions::default(), Sample::default());
            job.check(&reference)?;
            let traced = traces::add(&mut reference, args.traces.as_deref(), &profiles)?;
            let replayed = profiles.iter().filter(|(name, _)| !traced.contains_key(*name));
            report_thin(replayed.map(|(_, profile)| profile), &progress);
            let source = |name: &str| match traced.get(name) {
                Some(trace) => format!("{}; {trace}", source(name)),
                None => source(name),
            };
            let outcome = job.carry_out(&reference, &source, &progress, file_of);
            traces::whole(&reference)?;
            outcome
        }
    };
    progress.end();
    let outcome = outcome?;
    if let Some(file) = file {
        let written = file.into_inner().map_err(IntoInnerError::into_error);
        written.and_then(Draft::finish).with_context(timeline)?;
    }
    if args.json {
        say!("{}", crate::out::json(&outcome)?);
    } else if args.csv {
        say!("{}", outcome.by_program().csv().trim_end());
    } else {
        print(&outcome);
    }
    Ok(())
}

/// What is simulated.
struct Job<'p> {
    workload: Workload,
    profiles: &'p BTreeMap<String, Profile>,
    setup: Setup,
}

impl<'p> Job<'p> {
    /// Threads that are ready at any time.
    fn check<L: Fidelity<'p>>(&self, level: &L) -> anyhow::Result<usize> {
        Ok(check(&self.workload, self.profiles, level, &self.setup)?)
    }

    fn carry_out<L: Fidelity<'p>>(
        &self,
        level: &L,
        source: &dyn Fn(&str) -> String,
        progress: &Bar,
        timeline: Option<&mut dyn Write>,
    ) -> anyhow::Result<Outcome> {
        let mut report = |done: RepeatsDone| progress.step("runs", done.done, done.of);
        let Self { workload, profiles, setup } = self;
        Ok(simulate(level, workload, profiles, setup, source, &mut report, timeline)?)
    }
}

/// Hardware threads that cores will be set up for: one for programs alone, and as many as the
/// fullest core has if programs are spread evenly.
fn modes(description: &Description, threads: usize) -> Vec<u32> {
    let topology = &description.topology;
    let fullest = threads.div_ceil(topology.cores().len().max(1)).next_power_of_two();
    match fullest.min(topology.smt_width()) as u32 {
        0 | 1 => vec![1],
        full => vec![1, full],
    }
}

/// A description by name, or from a file.
pub fn machine(name: &str) -> anyhow::Result<Description> {
    if !name.contains('/') && !name.ends_with(".toml") {
        return Ok(Description::named(name)?);
    }
    let text = symbiont_safe_open::read_to_string(Path::new(name))
        .with_context(|| format!("machine {name}"))?;
    Ok(Description::parse(name, &text)?)
}

/// As `--topology` has it.
fn arranged(description: Description, args: &Simulate) -> anyhow::Result<Description> {
    let Some(given) = &args.topology else { return Ok(description) };
    let Described { topology, left_out } = described(given)?;
    left_out.iter().for_each(|what| note!("symbiont: left out: {what}"));
    description.arranged(&topology).with_context(|| format!("--topology {given}"))
}

fn workload(args: &Simulate, library: &Library, places: usize) -> anyhow::Result<Workload> {
    if let Some(list) = &args.apps {
        return Ok(Workload::from_list(list)?);
    }
    let Some(path) = &args.workload else { return Ok(fill(library, places, args.seed)) };
    let shown = path.display();
    let text =
        symbiont_safe_open::read_to_string(path).with_context(|| format!("workload {shown}"))?;
    Ok(Workload::from_toml(&shown.to_string(), &text)?)
}

/// Which resources each thread gets for itself.
pub fn switches(private: &[Private]) -> Switches {
    let private = |which| private.iter().any(|p| *p == which || *p == Private::All);
    Switches {
        private_units: private(Private::Units),
        private_caches: private(Private::Caches),
        private_bandwidth: private(Private::Bandwidth),
        private_predictor: private(Private::Predictor),
        warm_caches: false,
    }
}

fn setup(args: &Simulate) -> Setup {
    Setup {
        policy: args.policy.clone(),
        quantum: args.quantum,
        alone: args.alone,
        until: args.until,
        repeats: args.repeats,
        lead: args.lead,
        seed: args.seed,
        switches: switches(&args.private),
        errors: if args.exact_counters { Errors::NONE } else { Errors::default() },
        share: args.share,
        decision: Decision {
            takes: args.decision.unwrap_or_default(),
            reserved: args.reserve_core,
        },
        ..Setup::default()
    }
}

/// Where a figure comes from, for people.
pub fn provenance(from: &Provenance) -> String {
    let private = match from.made_private.as_slice() {
        [] => String::new(),
        some => format!("\nmade private to each thread: {}", some.join(", ")),
    };
    let checked = match from.checked.as_str() {
        "unchecked" => "unchecked: no cycle-level core has checked this description",
        how => how,
    };
    format!(
        "simulated on {} ({}), {}; {}, {}\n{checked}; {}; {} of its {} \
         values are assumed\n{}{private}",
        from.machine,
        from.title,
        from.level,
        number::counted(from.cores, "core"),
        number::counted(from.hardware_threads, "hardware thread"),
        from.held,
        from.assumed,
        from.values,
        from.note
    )
}

fn print(outcome: &Outcome) {
    say!("{}", provenance(&outcome.provenance));
    say!(
        "\n{}; policy {}, quantum {} ms, seed {}; targets of {} s alone",
        outcome.workload,
        outcome.policy,
        outcome.quantum_ms,
        outcome.seed,
        outcome.alone_s
    );
    say!(
        "{} from random starts, {} s each on average; {} in {}",
        number::counted(outcome.repeats, "repeat"),
        number::plain(outcome.length_s),
        counted(outcome.moves, "move"),
        counted(outcome.quanta, "quantum")
    );
    if let Some(ms) = outcome.decision_ms {
        let reserved = if outcome.reserved_core { ", the last core reserved for them" } else { "" };
        say!("decisions take {} ms each{reserved}", number::plain(ms));
    }
    if outcome.unfinished > 0 {
        say!("{} repeats did not end in time and are left out", outcome.unfinished);
    }
    if outcome.unsettled > 0.01 {
        let percent = number::plain(outcome.unsettled * 100.0);
        say!("in {percent} % of moments the physics found no fixed point");
    }
    let programs = outcome.apps.len();
    let figure = |name: &str, estimate: &Estimate, what: &str| {
        say!("{name:<9} {:<22} {what}", number::estimate(estimate));
    };
    say!();
    let stp = format!("throughput, in programs at their speed alone (at most {programs})");
    figure("STP", &outcome.stp, &stp);
    figure("ANTT", &outcome.antt, "time over time alone, mean of the programs (at least 1)");
    if let Some(fairness) = &outcome.fairness {
        figure("fairness", fairness, "least speedup over the largest (1: all alike)");
    }
    let mut table = comfy_table::Table::new();
    table.load_preset(comfy_table::presets::UTF8_HORIZONTAL_ONLY);
    table.set_content_arrangement(comfy_table::ContentArrangement::Dynamic);
    table.set_header(["program", "profile", "alone (instructions/ns)", "speedup"]);
    for app in &outcome.apps {
        table.add_row([
            app.app.to_string(),
            app.profile.clone(),
            number::plain(app.alone_speed),
            number::estimate(&app.speedup),
        ]);
    }
    say!(
        "\n{table}\nspeedup: time alone over time together; 95 % intervals by Student's t over the \
         repeats"
    );
}
