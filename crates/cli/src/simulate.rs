//! `symbiont simulate`: a workload under a policy on a described machine.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use symbiont_experiment::report::number;
use symbiont_experiment::simulated::{
    Cache, Library, Outcome, Provenance, Setup, Workload, fill, simulate,
};
use symbiont_policy::Settings;
use symbiont_profile::Profile;
use symbiont_sim::description::Description;
use symbiont_sim::fast::{Switches, Workshop};
use symbiont_sim::machine::Errors;

use crate::args::{Private, Simulate};
use crate::knowledge::{self, Fitting};

/// Runs the simulation and tells what came out.
pub fn run(args: &Simulate) -> anyhow::Result<()> {
    let description = machine(&args.machine)?.restricted(args.cores, args.smt)?;
    let library = Library::open(&args.profiles)?;
    let workload = workload(args, &library, description.topology.cpus().len())?;
    let policy = symbiont_policy::find(&args.policy)?;
    let fitting = || Fitting::simulated(&description);
    let mut setup = setup(args);
    setup.settings = knowledge::add(&args.knowledge, fitting, policy, setup.settings)?;
    let profiles = library.load_all(workload.apps.iter().map(|app| app.program.as_str()))?;
    let mut file = match &args.timeline {
        None => None,
        Some(path) => Some(BufWriter::new(
            File::create(path).with_context(|| format!("timeline {}", path.display()))?,
        )),
    };
    let progress = Bar::new()?;
    let workshop = Workshop::new(description);
    let cache = cache(args.cache.as_deref(), args.no_cache);
    if let Some(cache) = &cache {
        cache.recall(&workshop, &profiles);
    }
    prepare(&workshop, &workload, &profiles, &progress)?;
    if let Some(Err(error)) = cache.map(|cache| cache.keep(&workshop, &profiles)) {
        progress.bar.println(format!("symbiont: tables are not kept for the next run: {error}"));
    }
    let outcome = simulate(
        &workshop,
        &workload,
        &profiles,
        &setup,
        &|name| library.source(name),
        &mut |told| progress.step(told.done, told.of),
        file.as_mut().map(|file| file as &mut dyn Write),
    );
    progress.bar.finish_and_clear();
    let outcome = outcome?;
    if let Some(mut file) = file {
        file.flush().context("timeline")?;
    }
    if args.json {
        println!("{}", serde_json::to_string_pretty(&outcome)?);
    } else {
        tell(&outcome);
    }
    Ok(())
}

/// Where tables are kept; nowhere if that is not wanted or there is no home.
pub fn cache(folder: Option<&Path>, none: bool) -> Option<Cache> {
    let home = || {
        let folder = std::env::var_os("XDG_CACHE_HOME").filter(|folder| !folder.is_empty());
        let below = |home| PathBuf::from(home).join(".cache");
        let base = folder.map(PathBuf::from).or_else(|| std::env::var_os("HOME").map(below));
        base.map(|base| base.join("symbiont"))
    };
    let folder = folder.map(Path::to_owned).or_else(home).filter(|_| !none)?;
    // Another build may make other tables.
    let program = std::env::current_exe().and_then(std::fs::metadata).ok()?;
    let salt = format!("{} {:?}", program.len(), program.modified().ok());
    Some(Cache::new(&folder, &salt))
}

/// Makes what the runs will need first by all processors.
fn prepare<'p>(
    workshop: &Workshop<'p>,
    workload: &Workload,
    profiles: &'p BTreeMap<String, Profile>,
    progress: &Bar,
) -> anyhow::Result<()> {
    let topology = &workshop.description().topology;
    let threads = workload.apps.len().div_ceil(topology.cores().len().max(1));
    let full = threads.next_power_of_two().min(topology.smt_width()) as u32;
    let modes = if full > 1 { vec![1, full] } else { vec![1] };
    make_ready(workshop, profiles, &modes, progress)
}

/// Makes phases ready for some SMT modes.
pub fn make_ready<'p>(
    workshop: &Workshop<'p>,
    profiles: &'p BTreeMap<String, Profile>,
    modes: &[u32],
    progress: &Bar,
) -> anyhow::Result<()> {
    let phases: Vec<_> = profiles.values().flat_map(|profile| &profile.phases).collect();
    let workers = std::thread::available_parallelism().map_or(1, Into::into);
    progress.bar.set_message("phases made ready");
    workshop.make_ready(&phases, modes, workers, &|done, of| {
        // Who asks to stop gets it between two phases of a run.
        let _ = progress.step(done, of);
    })?;
    progress.bar.set_message("runs");
    Ok(())
}

/// A description by name, or from a file.
pub fn machine(name: &str) -> anyhow::Result<Description> {
    if !name.contains('/') && !name.ends_with(".toml") {
        return Ok(Description::named(name)?);
    }
    let text = std::fs::read_to_string(name).with_context(|| format!("machine {name}"))?;
    Ok(Description::parse(name, &text)?)
}

fn workload(args: &Simulate, library: &Library, places: usize) -> anyhow::Result<Workload> {
    if let Some(list) = &args.apps {
        return Ok(Workload::from_list(list)?);
    }
    let Some(path) = &args.workload else { return Ok(fill(library, places, args.seed)) };
    let shown = path.display();
    let text = std::fs::read_to_string(path).with_context(|| format!("workload {shown}"))?;
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
    }
}

fn setup(args: &Simulate) -> Setup {
    Setup {
        policy: args.policy.clone(),
        settings: Settings {
            variant: args.variant,
            hysteresis: args.hysteresis,
            together: args.together.clone().unwrap_or_default(),
            ..Settings::default()
        },
        quantum: args.quantum,
        alone: args.alone,
        until: args.until,
        repeats: args.repeats,
        lead: args.lead,
        seed: args.seed,
        switches: switches(&args.private),
        errors: if args.exact_counters { Errors::NONE } else { Errors::default() },
        share: args.share,
        limit: None,
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
        "simulated on {} ({}), {} cores, {} hardware threads\n{checked}; {} of its {} values are \
         assumed\n{}{private}",
        from.machine,
        from.title,
        from.cores,
        from.hardware_threads,
        from.assumed,
        from.values,
        from.note
    )
}

fn tell(outcome: &Outcome) {
    println!("{}", provenance(&outcome.provenance));
    println!(
        "\n{}; policy {}, quantum {} ms, seed {}; targets of {} s alone",
        outcome.workload, outcome.policy, outcome.quantum_ms, outcome.seed, outcome.alone_s
    );
    println!(
        "{} repeats from random starts, {} s each on average; {} moves in {} quanta",
        outcome.repeats,
        number::plain(outcome.length_s),
        outcome.moves,
        outcome.quanta
    );
    if outcome.unfinished > 0 {
        println!("{} repeats did not end in time and are left out", outcome.unfinished);
    }
    if outcome.unsettled > 0.01 {
        let percent = number::plain(outcome.unsettled * 100.0);
        println!("in {percent} % of moments the physics found no fixed point");
    }
    println!("\nSTP       {}", number::estimate(&outcome.stp));
    println!("ANTT      {}", number::estimate(&outcome.antt));
    if let Some(fairness) = &outcome.fairness {
        println!("fairness  {}", number::estimate(fairness));
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
    println!("\n{table}\n95 % intervals by Student's t over the repeats");
}

/// A progress bar that also tells whether the user wants to stop.
pub struct Bar {
    bar: ProgressBar,
    stopped: Arc<AtomicBool>,
}

impl Bar {
    pub fn new() -> anyhow::Result<Self> {
        let stopped = Arc::new(AtomicBool::new(false));
        for signal in [SIGHUP, SIGINT, SIGTERM] {
            // The first asks to stop in good order, the next ends at once.
            signal_hook::flag::register_conditional_default(signal, Arc::clone(&stopped))?;
            signal_hook::flag::register(signal, Arc::clone(&stopped))?;
        }
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        bar.set_style(ProgressStyle::with_template(
            "{elapsed_precise} {bar:30} {pos}/{len} {msg}",
        )?);
        Ok(Self { bar, stopped })
    }

    /// Tells what goes on.
    pub fn says(&self, what: &str) {
        self.bar.set_message(what.to_owned());
    }

    pub fn clear(&self) {
        self.bar.finish_and_clear();
    }

    pub fn step(&self, done: usize, of: usize) -> ControlFlow<()> {
        self.bar.set_length(of as u64);
        self.bar.set_position(done as u64);
        if self.stopped.load(Ordering::Relaxed) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }
}
