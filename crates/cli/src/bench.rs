//! `symbiont bench`: experiments on this machine, with progress.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use symbiont_campaign::harness::{Programs, Progress};
use symbiont_experiment::{
    counting, decision, detection, latency, openmp, overhead, phases, seniority,
};
use symbiont_report::{Block, Column, Report, Table, Value, number};

use crate::args::{
    Bench, BenchArgs, BenchCounters, BenchDecision, BenchDetection, BenchLatency, BenchOpenmp,
    BenchOverhead, BenchPhases, BenchSeniority, Part, Session,
};
use crate::compare;

/// Runs an experiment, writes its report and prints its result.
pub fn bench(BenchArgs { experiment, compare }: BenchArgs) -> anyhow::Result<()> {
    let begin = Instant::now();
    let Some(command) = experiment else {
        let mut progress = Terminal::new(Figures::Measured)?;
        let report = compare::run(&compare, &mut progress)?;
        progress.end();
        return show(&report, &compare.output, compare.json, begin.elapsed());
    };
    let mut progress = Terminal::new(Figures::Measured)?;
    let (report, output, json) = match command {
        Bench::Phases(BenchPhases { output, short, all_ratios, parts, seed, slow_cpu, json }) => {
            let size = if short { phases::Size::short() } else { phases::Size::full() };
            let size = if all_ratios { size.with_all_ratios() } else { size };
            let parts: Vec<phases::Part> = parts.into_iter().map(part).collect();
            let size = size.only(&parts);
            let name = match (slow_cpu.is_empty(), all_ratios) {
                (true, false) => "phases",
                (true, true) => "phases-all-ratios",
                (false, false) => "phases-asymmetric",
                (false, true) => "phases-asymmetric-all-ratios",
            };
            let output = folder(output, name, short);
            let programs = Programs::beside_this_one()?;
            let options = phases::Options::new(programs, output, size, seed).slowed(slow_cpu);
            let report = phases::run(&options, &mut progress)?;
            (report, options.output, json)
        }
        Bench::Overhead(BenchOverhead { output, short, seed, json }) => {
            let size = if short { overhead::Size::short() } else { overhead::Size::full() };
            let output = folder(output, "overhead", short);
            let programs = Programs::beside_this_one()?;
            let options = overhead::Options { programs, output, size, seed };
            let report = overhead::run(&options, &mut progress)?;
            (report, options.output, json)
        }
        Bench::Latency(BenchLatency { output, short, seed, json }) => {
            let output = folder(output, "latency", short);
            let programs = Programs::beside_this_one()?;
            let (repeats, time) = latency::size(short);
            let options = latency::Options { programs, output, repeats, time, seed };
            let report = latency::run(&options, &mut progress)?;
            (report, options.output, json)
        }
        Bench::Counters(BenchCounters { output, short, seed, json }) => {
            let size = if short { counting::Size::short() } else { counting::Size::full() };
            let options =
                counting::Options { output: folder(output, "counters", short), size, seed };
            let report = counting::run(&options, &mut progress)?;
            (report, options.output, json)
        }
        Bench::Decision(BenchDecision { output, short, seed, json }) => {
            let size = if short { decision::Size::short() } else { decision::Size::full() };
            let options =
                decision::Options { output: folder(output, "decision", short), size, seed };
            let report = decision::run(&options, &mut progress)?;
            (report, options.output, json)
        }
        Bench::Detection(BenchDetection { output, short, seed, json }) => {
            let size = if short { detection::Size::short() } else { detection::Size::full() };
            let output = folder(output, "detection", short);
            let programs = Programs::beside_this_one()?;
            let options = detection::Options { programs, output, size, seed };
            let report = detection::run(&options, &mut progress)?;
            (report, options.output, json)
        }
        Bench::Openmp(args) => {
            let name = if args.slow_cpu.is_empty() { "openmp" } else { "openmp-asymmetric" };
            let output = folder(args.output.clone(), name, args.short);
            (kernels_in_pairs(&args, &output, &mut progress)?, output, args.json)
        }
        Bench::Seniority(BenchSeniority { output, short, seed, json }) => {
            let size = if short { seniority::Size::short() } else { seniority::Size::full() };
            let output = folder(output, "seniority", short);
            let programs = Programs::beside_this_one()?;
            let options = seniority::Options { programs, output, size, seed };
            let report = seniority::run(&options, &mut progress)?;
            (report, options.output, json)
        }
    };
    progress.end();
    show(&report, &output, json, begin.elapsed())
}

/// Shows what came out, as the user wants it.
fn show(report: &Report, output: &Path, json: bool, wall: Duration) -> anyhow::Result<()> {
    if json {
        say!("{}", serde_json::to_string_pretty(report)?);
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
    let mut size = if args.short { openmp::Size::short() } else { openmp::Size::full() };
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
    let options = openmp::Options {
        programs: Programs::beside_this_one()?,
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
const IN_SHORT: [&str; 13] = [
    "checks",
    "contenders",
    "detection-alone",
    "detection-beside",
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
    let page = output.join("index.html");
    say!("Report: {}", page.canonicalize().unwrap_or(page).display());
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

/// Where a campaign's figures come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Figures {
    /// From this machine, which therefore should do nothing else.
    Measured,
    /// From a simulated machine, whatever this one does.
    Simulated,
}

/// A progress bar; plain lines where standard error is no terminal.
pub(crate) struct Terminal {
    bar: ProgressBar,
    cancelled: Arc<AtomicBool>,
    figures: Figures,
}

impl Terminal {
    pub(crate) fn new(figures: Figures) -> anyhow::Result<Self> {
        let cancelled = Arc::new(AtomicBool::new(false));
        for signal in [SIGHUP, SIGINT, SIGTERM] {
            // The first asks to stop in good order, the next ends at once.
            signal_hook::flag::register_conditional_default(signal, Arc::clone(&cancelled))?;
            signal_hook::flag::register(signal, Arc::clone(&cancelled))?;
        }
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        let style = "{elapsed_precise}{prefix} {bar:30} {pos}/{len} {msg}";
        bar.set_style(ProgressStyle::with_template(style)?);
        Ok(Self { bar, cancelled, figures })
    }

    /// Removes it from the screen.
    pub(crate) fn end(&self) {
        self.bar.finish_and_clear();
    }

    fn line(&self, text: &str) {
        if self.bar.is_hidden() {
            note!("{text}");
        } else {
            self.bar.println(text);
        }
    }
}

impl Progress for Terminal {
    fn begin(&mut self, runs: usize, done: usize, estimate: Duration) {
        if done == runs {
            self.line(
                "All runs were done before: only the report is written anew. Remove the folder to \
                 measure again.",
            );
            return;
        }
        let minutes = estimate.as_secs().div_ceil(60);
        // What the user's own programs take is not known before they ran.
        let known = !estimate.is_zero();
        let about = if known { format!(", about {minutes} min") } else { String::new() };
        let advice = match self.figures {
            Figures::Measured => " The machine should do nothing else meanwhile.",
            Figures::Simulated => "",
        };
        self.line(&format!(
            "{} runs{about}.{advice} ^C stops; the same command then goes on from there.",
            runs - done
        ));
        if done > 0 {
            self.line(&format!("{done} of {runs} runs were done before."));
        }
        self.bar.set_length(runs as u64);
        self.bar.set_position(done as u64);
        let of = if known { format!(" of about {minutes} min") } else { String::new() };
        self.bar.set_prefix(of);
        self.bar.enable_steady_tick(Duration::from_secs(1));
    }

    fn running(&mut self, what: &str) {
        self.bar.set_message(what.to_owned());
    }

    fn done(&mut self) {
        self.bar.inc(1);
        let (at, of) = (self.bar.position(), self.bar.length().unwrap_or_default());
        if self.bar.is_hidden() && (at % 25 == 0 || at == of) {
            note!("{at} of {of} runs done");
        }
    }

    fn note(&mut self, text: &str) {
        self.line(text);
    }

    fn cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }
}
