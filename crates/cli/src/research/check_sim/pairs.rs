//! `symbiont check-sim --pairs`: both levels against slowdowns that were measured on a real core.

use std::path::Path;
use std::time::SystemTime;

use anyhow::Context;
use serde::Serialize;
use symbiont_experiments_host::hardware::{PairAgreement, hold_against, read_pairs};
use symbiont_experiments_sim::Library;
use symbiont_profile::Phase;
use symbiont_sim_cycle::check::{Matrix, Plan, measure, most_frequent};
use symbiont_sim_cycle::{CycleOptions, CycleReference, Sample};
use symbiont_sim_fast::fast::{Switches, TableBuilder};
use symbiont_topology::counted;

use super::REPLAYED;
use crate::research::args::CheckSim;
use crate::research::prepare::Bar;
use crate::research::simulate::machine;

/// What is reported.
#[derive(Debug, Serialize)]
struct Report {
    machine: String,
    title: String,
    measured: String,
    programs: Vec<String>,
    levels: Vec<LevelErrors>,
    /// The description's `held`.
    held: String,
}

#[derive(Debug, Serialize)]
struct LevelErrors {
    name: &'static str,
    /// Instructions per cycle of each program alone, simulated.
    ipc: Vec<f64>,
    held: PairAgreement,
}

/// Compares, and reports how far each level is off.
pub fn run(args: &CheckSim, file: &Path) -> anyhow::Result<()> {
    let description = machine(&args.machine)?;
    let width = description.topology.smt_width();
    anyhow::ensure!(width >= 2, "no two hardware threads of {} share a core", description.name);
    let text = symbiont_safe_open::read_to_string(file)
        .with_context(|| format!("measured pairs {}", file.display()))?;
    let measured = read_pairs(&text, &description.name)
        .with_context(|| format!("measured pairs {}", file.display()))?;
    let names = measured.programs().to_vec();
    let profiles =
        Library::open(&args.profiles)?.load_all(names.iter().map(String::as_str)).with_context(
            || format!("profiles of the measured programs in {}", args.profiles.display()),
        )?;
    let phase = |name: &String| -> anyhow::Result<&Phase> {
        let phase = profiles.get(name).and_then(most_frequent);
        phase.with_context(|| format!("the profile of '{name}' is empty; capture it again"))
    };
    let phases: Vec<&Phase> = names.iter().map(phase).collect::<anyhow::Result<_>>()?;
    let home = description.memory.nodes.first().copied().context("the machine has no memory")?;
    let plan = Plan::new(names.clone(), 2, usize::MAX, args.seed);
    let bar = Bar::new()?;
    let builder = TableBuilder::new(description.clone());
    let mut fast = builder.fast(Switches::default());
    let mut step = |done, of| bar.step("fast level", done, of).is_continue();
    let fast = measure(&mut fast, &plan, &phases, home, &mut step)?.context("stopped")?;
    let sample = Sample { counted: args.counted.unwrap_or(REPLAYED), ..Sample::default() };
    let mut cycle = CycleReference::new(description.clone(), CycleOptions::default(), sample);
    let mut step = |done, of| bar.step("cycle level", done, of).is_continue();
    let cycle = measure(&mut cycle, &plan, &phases, home, &mut step)?.context("stopped")?;
    bar.end();
    let mut levels = Vec::new();
    for (name, matrix) in [("fast", &fast), ("cycle", &cycle)] {
        let held = hold_against(measured.slowdowns(), &slowdowns(&plan, matrix), args.seed)?;
        let ipc = matrix.alone.iter().map(|alone| 1.0 / alone.cpi).collect();
        levels.push(LevelErrors { name, ipc, held });
    }
    let (machine, title) = (description.name, description.title);
    let measured = file.display().to_string();
    let now = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    let held = said(&levels, now.get(..10).unwrap_or_default());
    let report = Report { machine, title, measured, programs: names, levels, held };
    if args.json {
        say!("{}", crate::out::json(&report)?);
    } else {
        show(&report);
    }
    Ok(())
}

/// Victim by co-runner; of two of one program the mean.
fn slowdowns(plan: &Plan, matrix: &Matrix) -> Vec<Vec<f64>> {
    let count = plan.programs.len();
    let mut table = vec![vec![f64::NAN; count]; count];
    for (group, together) in plan.groups.iter().zip(&matrix.together) {
        let ([one, other], [first, second]) = (&group[..], &together[..]) else { continue };
        let slowdown = |program: usize, cpi: f64| cpi / matrix.alone[program].cpi;
        let (first, second) = (slowdown(*one, first.cpi), slowdown(*other, second.cpi));
        if one == other {
            table[*one][*one] = (first + second) / 2.0;
        } else {
            (table[*one][*other], table[*other][*one]) = (first, second);
        }
    }
    table
}

/// What a description may say of itself on a day (`2026-01-31`).
fn said(levels: &[LevelErrors], day: &str) -> String {
    let Some(LevelErrors { held, .. }) = levels.first() else { return String::new() };
    let figure =
        |value: Option<f64>| value.map_or("none".to_owned(), |value| format!("{value:.2}"));
    let each = levels.iter().map(|LevelErrors { name, held, .. }| {
        format!(
            "{name} level {:.2} (rank {}, of co-runners {}, headroom captured {})",
            held.error,
            figure(held.rank),
            figure(held.rank_of_co_runners),
            figure(held.captured)
        )
    });
    let choose = levels.iter().all(|level| level.held.chooses_pairs());
    format!(
        "held against {} measured pairs on {day}: slowdowns err by {}, guessing their mean by {:.2}; simulated pair \
         speeds {} on that machine",
        held.pairs,
        each.collect::<Vec<_>>().join(", "),
        held.error_of_mean,
        if choose { "choose pairs" } else { "do not choose pairs" }
    )
}

fn show(report: &Report) {
    let Report { machine, title, measured, programs, levels, held } = report;
    say!("simulated on {machine} ({title}), held against {measured}");
    say!("{}: {}", counted(programs.len(), "program"), programs.join(", "));
    let Some(LevelErrors { held: first, .. }) = levels.first() else { return };
    say!(
        "\n{} ordered pairs, measured: mean slowdown {:.3}; guessing the mean errs by {:.3}, sums of victim and \
         co-runner by {:.3}; the best pairing gains {:.1} % STP over all",
        first.pairs,
        first.measured,
        first.error_of_mean,
        first.error_of_sums,
        first.headroom * 100.0
    );
    for LevelErrors { name, ipc, held } in levels {
        let or_none =
            |value: Option<f64>| value.map_or("–".to_owned(), |value| format!("{value:.3}"));
        say!(
            "{name:5} level: mean slowdown {:.3}, error {:.3}, bias {:+.3}, rank {} (of victims {}, of co-runners \
             {}), captured of the headroom {}",
            held.simulated,
            held.error,
            held.bias,
            or_none(held.rank),
            or_none(held.rank_of_victims),
            or_none(held.rank_of_co_runners),
            or_none(held.captured)
        );
        let each = programs.iter().zip(ipc).map(|(name, ipc)| format!("{name} {ipc:.2}"));
        say!("      IPC alone: {}", each.collect::<Vec<_>>().join(", "));
    }
    say!("\nthe description may say: held = \"{held}\"");
}
