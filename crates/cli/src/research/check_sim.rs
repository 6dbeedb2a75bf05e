//! `symbiont check-sim`: the fast level against the cycle level.

mod host;
mod pairs;
mod programs;

use std::collections::BTreeMap;
use std::time::SystemTime;

use anyhow::Context;
use serde::Serialize;
use symbiont_experiments_sim::{Kind, Library};
use symbiont_profile::Phase;
use symbiont_report::number;
use symbiont_sim_cycle::check::{
    Agreement, Gates, LevelComparison, Plan, compare, mark, measure, most_frequent,
};
use symbiont_sim_cycle::{CycleOptions, CycleReference, Sample};
use symbiont_sim_fast::fast::{Switches, TableBuilder};
use symbiont_topology::counted;

use crate::research::args::CheckSim;
use crate::research::prepare::Bar;
use crate::research::simulate::machine;
use crate::research::traces;

/// What is printed.
#[derive(Debug, Serialize)]
struct Comparison {
    /// Always true: nothing of this was measured on hardware.
    simulated: bool,
    machine: String,
    title: String,
    programs: Vec<String>,
    counted: u64,
    /// Programs that the cycle level runs from captured traces, and which.
    traced: BTreeMap<String, String>,
    compared: Vec<LevelComparison>,
    /// The description's `checked`, if all gates are passed.
    checked: Option<String>,
}

/// Values that the figures do not have where micro-traces are replayed.
const LIMITS: &str = "the cycle level replays the micro-traces of the most frequent phases; \
                      addresses are made to fit their reuse times, so cache sets and branch \
                      tables are not the programs' own";

/// The same where captured traces are run.
const SAME: &str = "of programs with captured traces both levels are shown the same window: how \
                    well a profile stands for its program is not checked";

/// Instructions that are counted of a thread that replays micro-traces, and of a captured one.
const REPLAYED: u64 = 60_000;
const CAPTURED: u64 = 1_000_000;
/// The worst cases of each figure that the text names; JSON has all.
const NAMED: usize = 3;

/// Compares the levels and reports how far they differ.
pub fn run(args: &CheckSim) -> anyhow::Result<()> {
    if let Some(file) = &args.pairs {
        return pairs::run(args, file);
    }
    if args.host {
        return host::run(args);
    }
    let description = machine(&args.machine)?;
    let library = Library::open(&args.profiles)?;
    let mut names = args.apps.clone();
    if names.is_empty() {
        names = library.of_kind(Kind::Program).collect();
    }
    anyhow::ensure!(
        !names.is_empty(),
        "the folder {} has no profiles; capture some, or name synthetic programs (--apps)",
        args.profiles.display()
    );
    let profiles = library.load_all(names.iter().map(String::as_str))?;
    let windows = match &args.traces {
        Some(folder) => traces::windows(folder, &profiles)?,
        None => BTreeMap::new(),
    };
    let counted = args.counted.unwrap_or(if windows.is_empty() { REPLAYED } else { CAPTURED });
    let profiled = |name: &String| -> anyhow::Result<&Phase> {
        let phase = profiles.get(name).and_then(most_frequent);
        phase.with_context(|| format!("the profile of '{name}' is empty; capture it again"))
    };
    let profiled: Vec<&Phase> = names.iter().map(profiled).collect::<Result<_, _>>()?;
    // Of a captured program both levels are asked about the very same instructions.
    let same: BTreeMap<String, Phase> = windows
        .iter()
        .map(|(name, window)| Ok((name.clone(), window.as_profiled(counted)?)))
        .collect::<anyhow::Result<_>>()?;
    let phases: Vec<&Phase> =
        names.iter().zip(&profiled).map(|(name, phase)| same.get(name).unwrap_or(phase)).collect();
    let traced = windows.iter().map(|(name, window)| {
        let (info, number) = (window.info(), window.info().phase);
        let behind = info.instructions - info.warm_up;
        (
            name.clone(),
            format!("{} of {behind} instructions of phase {number}", counted.min(behind)),
        )
    });
    let traced: BTreeMap<String, String> = traced.collect();
    let width = description.topology.smt_width();
    let home = description.memory.nodes.first().copied().context("the machine has no memory")?;
    let sample = Sample { counted, ..Sample::default() };
    let mut reference = CycleReference::new(description.clone(), CycleOptions::default(), sample);
    for (name, window) in windows {
        if let Some(phase) = same.get(&name) {
            reference.trace(phase, window);
        }
    }
    let bar = Bar::new()?;
    let mut compared = Vec::new();
    for threads in args.smt.iter().map(|threads| usize::from(*threads)) {
        anyhow::ensure!(threads <= width, "its cores have {width} hardware threads");
        let plan = Plan::new(names.clone(), threads, args.groups, args.seed);
        let builder = TableBuilder::new(description.clone());
        let mut fast = builder.fast(Switches::default());
        let mut progress = |done, of| bar.step("fast level", done, of).is_continue();
        let of_windows =
            measure(&mut fast, &plan, &phases, home, &mut progress)?.context("stopped")?;
        let mut progress = |done, of| bar.step("cycle level", done, of).is_continue();
        let cycle =
            measure(&mut reference, &plan, &phases, home, &mut progress)?.context("stopped")?;
        traces::whole(&reference)?;
        compared.push(compare(&plan, &of_windows, &cycle));
    }
    bar.end();
    let now = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    let day = now.get(..10).unwrap_or_default();
    let checked = mark(&compared, &Gates::default(), names.len(), day);
    let found = Comparison {
        simulated: true,
        machine: description.name,
        title: description.title,
        programs: names,
        counted,
        traced,
        compared,
        checked,
    };
    if args.json {
        say!("{}", crate::out::json(&found)?);
    } else {
        show(&found);
    }
    Ok(())
}

fn show(found: &Comparison) {
    say!("simulated on {} ({}): fast level against cycle level", found.machine, found.title);
    say!("{}: {}", counted(found.programs.len(), "program"), found.programs.join(", "));
    say!("{} instructions of each thread counted", found.counted);
    for (program, trace) in &found.traced {
        say!("{program}: {trace}");
    }
    if !found.traced.is_empty() {
        say!("{SAME}");
    }
    if found.traced.len() < found.programs.len() {
        let replayed = found.programs.len() - found.traced.len();
        say!("of {} without captured traces {LIMITS}", counted(replayed, "program"));
    }
    for compared in &found.compared {
        let LevelComparison { threads, groups, .. } = compared;
        say!("\nSMT{threads}, {groups} groups");
        line("CPI alone", &compared.alone, Clone::clone);
        line("CPI throttled", &compared.throttled, Clone::clone);
        line("slowdown", &compared.slowdown, |case| {
            format!("{} in {}", case.program, case.group.join("+"))
        });
        line("STP", &compared.stp, |group| group.0.join("+"));
        say!("shares of cycles together (fast, cycle, mean difference; largest):");
        for part in &compared.stack {
            let worst = part.worst.as_ref().map_or_else(String::new, |worst| {
                let group = worst.of.group.join("+");
                format!(
                    "{} in {group}: {} against {}",
                    worst.of.program,
                    percent(worst.fast),
                    percent(worst.cycle)
                )
            });
            say!(
                "  {:17} {:>8} {:>8} {:>8}; {worst}",
                part.name,
                percent(part.fast),
                percent(part.cycle),
                percent(part.error)
            );
        }
        let missed = Gates::default().missed(compared);
        say!("gates: {}", missed.as_deref().unwrap_or("passed"));
    }
    if let Some(checked) = &found.checked {
        say!("\nthe description may say: checked = \"{checked}\"");
    }
}

fn line<T>(what: &str, agreement: &Agreement<T>, name: impl Fn(&T) -> String) {
    let rank = agreement.rank.map_or_else(|| "–".to_owned(), |rank| format!("{rank:.3}"));
    say!(
        "{what:14} error {}, bias {}, rank {rank} ({} values)",
        percent(agreement.error),
        percent(agreement.bias),
        agreement.values
    );
    for worst in agreement.cases.iter().take(NAMED) {
        say!(
            "    {}: {} against {}",
            name(&worst.of),
            number::plain(worst.fast),
            number::plain(worst.cycle)
        );
    }
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}
