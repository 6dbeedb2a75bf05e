//! `symbiont profile`: what a program does, for the simulator.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::Context;
use indicatif::HumanCount;
use serde::Serialize;
use signal_hook::consts::{SIGINT, SIGQUIT};
use symbiont_profile::capture::{Capture, Windows, plugin_next_to};
use symbiont_profile::vectors::{Vectors, is_vectors};
use symbiont_profile::{FEWEST_TRACES, OpClass, Phase, PredictorConfig, Profile};
use symbiont_topology::counted;

use crate::research::args;
use crate::signals::heeded;

mod observing;
mod trace;
pub mod vectors;

use observing::Observing;

/// Cache sizes for which the summary gives misses: 64-byte lines and their name.
const CACHES: [(f64, &str); 3] = [(512.0, "32 KiB"), (16_384.0, "1 MiB"), (524_288.0, "32 MiB")];

/// Captures a program, or shows a profile.
pub fn profile(args: &args::Profile) -> anyhow::Result<()> {
    match &args.show {
        Some(path) if symbiont_profile::trace::is_trace(path).unwrap_or(false) => {
            say!("{}", trace::summary(path, args.json)?);
            Ok(())
        }
        Some(path) if is_vectors(path).unwrap_or(false) => {
            say!("{}", vectors::said(&Vectors::read(path)?, path, args.json)?);
            Ok(())
        }
        Some(path) => {
            say!("{}", summary(&Profile::read(path)?, path, args.json)?);
            Ok(())
        }
        None => capture(args),
    }
}

fn capture(args: &args::Profile) -> anyhow::Result<()> {
    // The program may run for minutes before its profile is written.
    let folder = args.output.as_deref().and_then(Path::parent);
    if let Some(folder) = folder.filter(|folder| !folder.as_os_str().is_empty()) {
        anyhow::ensure!(folder.is_dir(), "there is no folder {} to write to", folder.display());
    }
    if let Some(path) = &args.output {
        let what = || format!("cannot write {}", path.display());
        symbiont_safe_open::output::check(path).with_context(what)?;
    }
    let plugin = match &args.plugin {
        Some(path) => path.canonicalize().with_context(|| format!("{}", path.display()))?,
        None => plugin_next_to(&std::env::current_exe().context("where is symbiont?")?)?,
    };
    let capture = Capture {
        command: args.command.clone(),
        name: args.name.clone(),
        variables: args.variables.iter().map(|(n, v)| (n.into(), v.into())).collect(),
        plugin,
        interval: args.interval,
        stdout: args.stdout.clone(),
    };
    // The terminal interrupts the program too; what is left then is to clean up.
    for signal in heeded([SIGINT, SIGQUIT]) {
        signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)))?;
    }
    let mut observing = Observing::new()?;
    let progress = |instructions| observing.at(instructions);
    let summary = match (&args.trace, &args.vectors) {
        (_, Some(machine)) => {
            let vectors = capture.vectors(&vectors::hierarchy(machine)?, progress)?;
            let path = output(args, &vectors.program, "vectors");
            vectors.write(&path)?;
            vectors::said(&vectors, &path, args.json)?
        }
        (None, None) => {
            let profile = capture.run(progress)?;
            let path = output(args, &profile.program, "profile");
            profile.write(&path)?;
            summary(&profile, &path, args.json)?
        }
        (Some(of), None) => {
            let profile = Profile::read(of)?;
            let path = output(args, &profile.program, "trace");
            capture.trace(&profile, windows(args), &path, progress)?;
            trace::summary(&path, args.json)?
        }
    };
    observing.end();
    if args.json {
        say!("{summary}");
    } else {
        note!("{summary}");
    }
    Ok(())
}

/// Where the result goes.
fn output(args: &args::Profile, program: &str, extension: &str) -> PathBuf {
    let default = || PathBuf::from(format!("{}.{extension}", program.replace('/', "-")));
    args.output.clone().unwrap_or_else(default)
}

fn windows(args: &args::Profile) -> Windows {
    if let Some(length) = args.continuous {
        return Windows::continuous(length);
    }
    let default = Windows::default();
    Windows {
        continuous: false,
        most: args.windows.map_or(default.most, usize::from),
        warm_up: args.warm_up.unwrap_or(default.warm_up),
        instructions: args.length.unwrap_or(default.instructions),
    }
}

/// What people and scripts want to know of a profile.
#[derive(Debug, Serialize)]
struct Summary<'a> {
    file: String,
    bytes: u64,
    program: &'a str,
    command: &'a [String],
    digest: &'a str,
    instructions: u64,
    threads: usize,
    spans: usize,
    phases: Vec<PhaseSummary>,
    gaps: &'a [String],
}

#[derive(Debug, Serialize)]
struct PhaseSummary {
    /// Its share of all instructions.
    share: f64,
    loads_per_instruction: f64,
    stores_per_instruction: f64,
    branches_per_instruction: f64,
    flops_per_instruction: f64,
    /// Per 1,000 instructions, with the best predictor.
    mispredictions: f64,
    /// Data accesses per 1,000 instructions that miss caches of [`CACHES`].
    misses: [f64; 3],
    micro_traces: usize,
}

impl PhaseSummary {
    fn new(phase: &Phase, total: u64) -> Self {
        let per = |class| phase.per_instruction(phase.mix.count(class));
        let data = &phase.data.line_64;
        let curve = data.curve();
        let accesses = phase.per_instruction(data.accesses);
        Self {
            share: phase.instructions as f64 / total.max(1) as f64,
            loads_per_instruction: per(OpClass::Load),
            stores_per_instruction: per(OpClass::Store),
            branches_per_instruction: per(OpClass::Branch),
            flops_per_instruction: phase.flops_per_instruction(),
            mispredictions: 1000.0
                * phase.per_instruction(phase.branches.mispredicted[PredictorConfig::BEST]),
            misses: CACHES.map(|(lines, _)| 1000.0 * accesses * curve.misses(lines)),
            micro_traces: phase.traces.len(),
        }
    }
}

fn summary(profile: &Profile, path: &Path, json: bool) -> anyhow::Result<String> {
    let bytes = std::fs::metadata(path).map(|file| file.len()).unwrap_or(0);
    let phases = profile.phases.iter();
    let summary = Summary {
        file: path.display().to_string(),
        bytes,
        program: &profile.program,
        command: &profile.command,
        digest: &profile.digest,
        instructions: profile.instructions,
        threads: profile.threads.len(),
        spans: profile.sequence().len(),
        phases: phases.map(|phase| PhaseSummary::new(phase, profile.instructions)).collect(),
        gaps: &profile.gaps,
    };
    Ok(if json { crate::out::json(&summary)? } else { summary.text() })
}

impl Summary<'_> {
    fn text(&self) -> String {
        let mut text = format!(
            "{}: {} ({} instructions, {}, {} in {}, {} KiB)\n",
            self.file,
            self.command.join(" "),
            HumanCount(self.instructions),
            counted(self.threads, "thread"),
            counted(self.phases.len(), "phase"),
            counted(self.spans, "span"),
            self.bytes.div_ceil(1024),
        );
        let mut table = comfy_table::Table::new();
        table.load_preset(comfy_table::presets::UTF8_HORIZONTAL_ONLY);
        let caches = CACHES.map(|(_, name)| format!("misses {name}"));
        let heads = ["share", "loads", "stores", "branches", "flops", "mispredicted"];
        table.set_header(heads.iter().map(ToString::to_string).chain(caches));
        for phase in &self.phases {
            let per = [
                phase.loads_per_instruction,
                phase.stores_per_instruction,
                phase.branches_per_instruction,
                phase.flops_per_instruction,
            ];
            let share = std::iter::once(format!("{:.1} %", 100.0 * phase.share));
            let per = per.iter().map(|value| format!("{value:.3}"));
            let rates = std::iter::once(&phase.mispredictions).chain(&phase.misses);
            table.add_row(share.chain(per).chain(rates.map(|value| format!("{value:.2}"))));
        }
        text.push_str(&format!("{table}\n"));
        text.push_str("Loads, stores, branches, flops per instruction; mispredicted branches and ");
        text.push_str("misses per 1,000 instructions.");
        text.extend(self.thin().map(|thin| format!("\n{thin}")));
        for gap in self.gaps {
            text.push_str(&format!("\nNot observed: {gap}"));
        }
        text
    }

    /// Which part of the program few micro-traces stand for; none where there are enough.
    fn thin(&self) -> Option<String> {
        let few = |phase: &&PhaseSummary| phase.micro_traces < FEWEST_TRACES;
        let (count, of) = (self.phases.iter().filter(few).count(), self.phases.len());
        let share: f64 = self.phases.iter().filter(few).map(|phase| phase.share).sum();
        (count > 0).then(|| {
            format!(
                "Fewer than {FEWEST_TRACES} micro-traces: {count} of {of} phases, {:.1} % of all \
                 instructions; they are simulated with less certainty.",
                100.0 * share
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use symbiont_experiments_sim::Library;

    use super::*;

    #[test]
    fn few_micro_traces_are_reported() {
        let mut profile = Library::default().load("synthetic-integer").unwrap();
        let shown = |profile: &Profile| summary(profile, Path::new("x.profile"), false).unwrap();
        assert!(!shown(&profile).contains("Fewer"), "{}", shown(&profile));
        profile.phases[0].traces.truncate(FEWEST_TRACES - 1);
        let few = "Fewer than 5 micro-traces: 1 of 1 phases, ";
        assert!(shown(&profile).contains(few), "{}", shown(&profile));
    }
}
