//! `symbiont bench`: experiments on this machine, with progress.

pub mod args;
mod compare;
mod pairs;
pub mod progress;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use symbiont_experiments_host::harness::Programs;
use symbiont_experiments_host::{latency, openmp, phases};
use symbiont_report::{Block, Column, Report, Table, Value, number};

use self::args::{Bench, BenchArgs, BenchLatency, BenchOpenmp, BenchPhases, Part, Session};
use self::progress::{Figures, Terminal};

/// Runs an experiment, writes its report and prints its result.
pub fn bench(BenchArgs { experiment, compare }: BenchArgs) -> anyhow::Result<()> {
    let begin = Instant::now();
    let Some(command) = experiment else {
        let mut progress = Terminal::new(Figures::MEASURED)?;
        let report = compare::run(&compare, &mut progress)?;
        progress.end();
        return show(&report, &compare.output, compare.json, begin.elapsed());
    };
    let mut progress = Terminal::new(Figures::MEASURED)?;
    let (report, output, json) = match command {
        Bench::Pairs(args) => return pairs::run(&args, progress, begin),
        Bench::Phases(args) if args.quick => return at_a_glance(args, &mut progress),
        Bench::Phases(args) => {
            let json = args.json;
            let options = phases_options(args)?;
            let report = phases::run(&options, &mut progress)?;
            (report, options.output, json)
        }
        Bench::Latency(BenchLatency { output, short, seed, json }) => {
            let output = folder(output, "latency", short);
            let programs = Programs::next_to_this_one()?;
            let (repeats, time) = latency::size(short);
            let options = latency::LatencyOptions { programs, output, repeats, time, seed };
            let report = latency::run(&options, &mut progress)?;
            (report, options.output, json)
        }
        Bench::Openmp(args) => {
            let name = if args.slow_cpu.is_empty() { "openmp" } else { "openmp-asymmetric" };
            let output = folder(args.output.clone(), name, args.short);
            (kernels_in_pairs(&args, &output, &mut progress)?, output, args.json)
        }
    };
    progress.end();
    show(&report, &output, json, begin.elapsed())
}

fn phases_options(
    BenchPhases { output, short, quick, all_ratios, parts, seed, slow_cpu, .. }: BenchPhases,
) -> anyhow::Result<phases::PhasesOptions> {
    let size = match (short, quick) {
        (_, true) => phases::PhasesSize::quick(),
        (true, _) => phases::PhasesSize::short(),
        (false, false) => phases::PhasesSize::full(),
    };
    let size = if all_ratios { size.with_all_ratios() } else { size };
    let parts: Vec<phases::Part> = parts.into_iter().map(part).collect();
    let size = size.only(&parts);
    let name = match (slow_cpu.is_empty(), all_ratios) {
        (true, false) => "phases",
        (true, true) => "phases-all-ratios",
        (false, false) => "phases-asymmetric",
        (false, true) => "phases-asymmetric-all-ratios",
    };
    let output = match (output, quick) {
        (None, true) => format!("report/{name}-quick").into(),
        (output, _) => folder(output, name, short),
    };
    let programs = Programs::next_to_this_one()?;
    Ok(phases::PhasesOptions::new(programs, output, size, seed).slowed(slow_cpu))
}

/// Serial phases first, for a first look: a sentence, and where the report is.
fn at_a_glance(args: BenchPhases, progress: &mut Terminal) -> anyhow::Result<()> {
    if std::thread::available_parallelism().is_ok_and(|cpus| cpus.get() == 1) {
        progress.end();
        say!("There is one CPU here, so that no thread could run elsewhere: nothing was compared.");
        return Ok(());
    }
    let options = phases_options(args)?;
    let outcome = phases::carry_out(&options, progress);
    progress.end();
    let phases::Outcome { report, sentence } = match outcome {
        Err(busy @ symbiont_campaign::Error::Busy { .. }) => {
            say!("Nothing was compared: {busy}. Try again when it does less.");
            return Ok(());
        }
        outcome => outcome?,
    };
    // Where it ended early; what else warns is in the sentence.
    if let Some(Block::Warning(text)) = report.blocks.first() {
        say!("{text}");
    }
    say!("{}", sentence.as_deref().unwrap_or("No pair of programs was compared."));
    say!("Report: {}", page(&options.output).display());
    Ok(())
}

/// The page of a report.
fn page(output: &Path) -> PathBuf {
    let page = output.join("index.html");
    page.canonicalize().unwrap_or(page)
}

/// Shows what came out, as the user wants it.
fn show(report: &Report, output: &Path, json: bool, wall: Duration) -> anyhow::Result<()> {
    if json {
        say!("{}", crate::out::json(report)?);
    } else {
        print(report, output, wall);
    }
    Ok(())
}

fn part(named: Part) -> phases::Part {
    match named {
        Part::Headline => phases::Part::Headline,
        Part::Matrix => phases::Part::Matrix,
        Part::Real => phases::Part::Real,
    }
}

/// The experiment on real parallel programs.
fn kernels_in_pairs(
    args: &BenchOpenmp,
    output: &Path,
    progress: &mut Terminal,
) -> anyhow::Result<Report> {
    let mut size =
        if args.short { openmp::OpenmpSize::short() } else { openmp::OpenmpSize::full() };
    size.rounds = args.rounds.unwrap_or(size.rounds);
    if !args.kernels.is_empty() {
        size.kernels.clone_from(&args.kernels);
    }
    if !args.sessions.is_empty() {
        size.groupings.clear();
        for (session, grouping) in [
            (Session::Shared, phases::Grouping::OneSession),
            (Session::Own, phases::Grouping::OwnSessions),
        ] {
            size.groupings.extend(args.sessions.contains(&session).then_some(grouping));
        }
    }
    let options = openmp::OpenmpOptions {
        programs: Programs::next_to_this_one()?,
        compiler: args.compiler.clone(),
        output: output.to_owned(),
        size,
        seed: args.seed,
        slow: args.slow_cpu.clone(),
    };
    Ok(openmp::run(&options, progress)?)
}

/// Where a report goes by default: a short campaign is another campaign.
fn folder(output: Option<PathBuf>, name: &str, short: bool) -> PathBuf {
    let suffix = if short { "-short" } else { "" };
    output.unwrap_or_else(|| format!("report/{name}{suffix}").into())
}

/// Tables that are shown on the terminal too.
const IN_SHORT: [&str; 15] = [
    "averages",
    "sharing",
    "checks",
    "contenders",
    "detection-alone",
    "detection-co-running",
    "summary",
    "times",
    "turns",
    "starvation",
    "premise",
    "table-1",
    "figure-2",
    "table-2",
    "changes",
];

/// The report in short, so that the page need not be opened to see
/// what came out.
fn print(report: &Report, output: &Path, wall: Duration) {
    say!("{}\n{}", report.title, report.subtitle);
    for block in &report.blocks {
        match block {
            Block::Warning(text) | Block::Note(text) => say!("\n{text}"),
            Block::Table(table) if IN_SHORT.contains(&table.id.as_str()) => {
                say!("\n{}", text(table));
            }
            _ => {}
        }
    }
    say!("\n{}", time_taken(wall));
    say!("Report: {}", page(output).display());
}

/// The wall time, for people.
pub(crate) fn time_taken(wall: Duration) -> String {
    let seconds = wall.as_secs();
    format!("Wall time: {} min {:02} s.", seconds / 60, seconds % 60)
}

/// Columns of a table that is not written to a terminal: reasons in words wrap there, too.
const WIDTH: u16 = 160;

/// A table for the terminal.
pub(crate) fn text(table: &Table) -> String {
    let mut drawn = comfy_table::Table::new();
    drawn.load_preset(comfy_table::presets::UTF8_HORIZONTAL_ONLY);
    drawn.set_content_arrangement(comfy_table::ContentArrangement::Dynamic);
    drawn.set_header(table.columns.iter().map(Column::head));
    if !drawn.is_tty() {
        drawn.set_width(WIDTH);
    }
    for row in &table.rows {
        drawn.add_row(row.iter().map(|cell| match &cell.value {
            Value::Text(text) => text.clone(),
            Value::Count(count) => count.to_string(),
            Value::Estimate(estimate) => number::estimate(estimate),
            Value::Missing => "–".to_owned(),
        }));
    }
    format!("{}\n{drawn}", table.caption)
}
