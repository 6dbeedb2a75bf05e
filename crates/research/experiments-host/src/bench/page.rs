//! The report of a comparison.

use std::collections::BTreeMap;

use super::{BenchCell, BenchOptions, BenchRecord, Comparison, WORKLOAD, decisions, rows};
use crate::harness::Machine;
use symbiont_campaign::{Decision, Error, FinishedRunOf, Metric, Rows};
use symbiont_report::metrics;
use symbiont_report::stats::{Estimate, StatsError, mean, mean_estimate, standard_deviation};
use symbiont_report::{
    Axis, Block, Cell, Chart, Column, Dots, Highlight, Mark, Plot, Report, Series, Table,
};

type Runs<'a> = [FinishedRunOf<Comparison<'a>>];

/// Shares of this machine's CPUs, and of a program's time alone, above which a reader is warned.
const OTHERS: f64 = 0.02;
const STOLEN: f64 = 0.01;
const SPREAD: f64 = 0.05;

pub(super) fn page(
    options: &BenchOptions,
    machine: &Machine,
    done: &Runs<'_>,
) -> Result<Report, Error> {
    let rows = rows(options, done);
    let rounds = rows.gains(WORKLOAD, first(options), first(options), Metric::Stp).len();
    let mut report = Report::new(
        "Policies compared",
        format!("{} programs on this machine, {rounds} rounds, measured", options.commands.len()),
    );
    report.facts = machine.facts();
    for (number, command) in options.commands.iter().enumerate() {
        report.fact(format!("Program {}", number + 1), command.clone());
    }
    report.fact("Seed", options.seed.to_string());
    report.fact("Version", env!("CARGO_PKG_VERSION"));
    for warning in warnings(machine, done) {
        report.push(Block::Warning(warning));
    }
    report.push(contenders(options, done, &rows)?);
    report.push(times(options, done));
    report.push(slowdowns(options, done));
    report.push(Block::Note(terms(options)));
    Ok(report)
}

fn first(options: &BenchOptions) -> &str {
    options.contenders.first().map_or("", String::as_str)
}

fn terms(options: &BenchOptions) -> String {
    format!(
        "STP: sum over programs of time alone / time together; higher is better. ANTT: mean of time \
         together / time alone; lower is better. Fairness: least ratio of two programs' speedups; 1 is \
         fair. Jitter: standard deviation of a program's times over their mean, mean over programs. \
         Makespan: until the last program ended. Intervals are 95 % (Student's t, over rounds); gains \
         are of rounds, against {} in the same round. A verdict allows for its being looked at after \
         several numbers of rounds.",
        first(options)
    )
}

/// What a user reads of a decision.
fn verdict(decision: Decision, gain: &Estimate) -> (&'static str, Highlight) {
    match decision {
        Decision::Differs if gain.value > 0.0 => ("faster", Highlight::Better),
        Decision::Differs => ("slower", Highlight::Worse),
        Decision::Equal => ("no difference", Highlight::Plain),
        Decision::Undecided => ("undecided", Highlight::Muted),
    }
}

fn contenders(options: &BenchOptions, done: &Runs<'_>, rows: &Rows) -> Result<Table, StatsError> {
    let columns = vec![
        Column::text("Policy"),
        Column::number("STP"),
        Column::number("Gain in STP").unit("%"),
        Column::text("Verdict"),
        Column::number("ANTT"),
        Column::number("Fairness"),
        Column::number("Jitter").unit("%"),
        Column::number("Makespan").unit("s"),
    ];
    let mut table = Table::new("contenders", "Policies", columns);
    let decisions = decisions(options, rows);
    for (at, name) in options.contenders.iter().enumerate() {
        let level = |metric| rows.level(name, metric, options.seed);
        let gain = rows.gain(name, first(options), Metric::Stp, options.seed)?;
        let decision = at.checked_sub(1).and_then(|at| decisions.get(at)).copied();
        let (gain, verdict) = match decision {
            None => (Cell::from(None::<Estimate>), Cell::from("held against")),
            Some(decision) => {
                let (word, highlight) = verdict(decision, &gain);
                (gain.percent().into(), Cell::from(word).highlight(highlight))
            }
        };
        let jitter = jitter(options, done, name).map(|jitter| 100.0 * jitter);
        table.row(vec![
            name.clone().into(),
            level(Metric::Stp)?.into(),
            gain,
            verdict,
            level(Metric::Antt)?.into(),
            level(Metric::Fairness)?.into(),
            jitter.map(Estimate::exact).into(),
            mean_estimate(&makespans(done, name))?.into(),
        ]);
    }
    Ok(table)
}

/// The runs of a contender.
fn together<'d>(done: &'d Runs<'_>, of: &'d str) -> impl Iterator<Item = &'d BenchRecord> {
    done.iter().filter_map(move |done| match &done.run.cell {
        BenchCell::Together(contender) if contender == of => Some(&done.record),
        _ => None,
    })
}

fn makespans(done: &Runs<'_>, of: &str) -> Vec<f64> {
    together(done, of).map(|record| record.seconds.iter().copied().fold(0.0, f64::max)).collect()
}

/// Times of a program under a contender.
fn seconds(done: &Runs<'_>, of: &str, program: usize) -> Vec<f64> {
    together(done, of).filter_map(|record| record.seconds.get(program).copied()).collect()
}

fn jitter(options: &BenchOptions, done: &Runs<'_>, of: &str) -> Option<f64> {
    let each = (0..options.commands.len()).map(|at| metrics::jitter(&seconds(done, of, at)));
    mean(&each.collect::<Option<Vec<f64>>>()?)
}

/// Times of each program alone, by its command line.
fn alone<'d>(done: &'d Runs<'_>) -> BTreeMap<&'d str, Vec<f64>> {
    let mut times: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for done in done {
        if let (BenchCell::Alone(command), Some(time)) =
            (&done.run.cell, done.record.seconds.first())
        {
            times.entry(command).or_default().push(*time);
        }
    }
    times
}

fn times(options: &BenchOptions, done: &Runs<'_>) -> Table {
    let mut columns = vec![Column::text("Program"), Column::number("Alone").unit("s")];
    columns.extend(options.contenders.iter().map(|name| Column::number(name).unit("s")));
    let mut table = Table::new("times", "Mean time of each program, alone and together", columns);
    let alone = alone(done);
    for (at, command) in options.commands.iter().enumerate() {
        let alone = alone.get(command.as_str()).and_then(|times| mean_estimate(times).ok());
        let mut row = vec![command.clone().into(), alone.into()];
        let together = options.contenders.iter().map(|name| seconds(done, name, at));
        row.extend(together.map(|times| Cell::from(mean_estimate(&times).ok())));
        table.row(row);
    }
    table
}

/// Time together over the mean time alone.
fn slowdowns(options: &BenchOptions, done: &Runs<'_>) -> Plot {
    let alone = alone(done);
    let of = |name: &str, at: usize, command: &String| {
        let alone = mean(alone.get(command.as_str())?)?;
        let times: Vec<f64> = seconds(done, name, at).iter().map(|time| time / alone).collect();
        mean_estimate(&times).ok()
    };
    let series = options.contenders.iter().map(|name| Series {
        name: name.clone(),
        values: options.commands.iter().enumerate().map(|(at, c)| of(name, at, c)).collect(),
        references: Vec::new(),
    });
    let chart = Chart::Dots(Dots {
        mark: Mark::Dot,
        axis: Axis::new("Time together / time alone").range(1.0, 1.1),
        category: "Program".to_owned(),
        categories: options.commands.clone(),
        series: series.collect(),
        reference: None,
    });
    Plot::new("slowdowns", "Slowdown of each program", "", chart)
}

/// What speaks against the figures.
fn warnings(machine: &Machine, done: &Runs<'_>) -> Vec<String> {
    let mut warnings = Vec::new();
    let cpus = f64::from(machine.cpus.max(1));
    let share = |of: fn(&BenchRecord) -> f64| {
        mean(&done.iter().map(|done| of(&done.record)).collect::<Vec<_>>()).unwrap_or(0.0) / cpus
    };
    let others = share(|record| record.noise.others_cpus);
    if others > OTHERS {
        warnings.push(format!(
            "The machine was not quiet: other programs used {:.0} % of its CPU time while this was \
             measured. End them, and repeat in another folder.",
            100.0 * others
        ));
    }
    let stolen = share(|record| record.noise.stolen_cpus);
    if stolen > STOLEN {
        warnings.push(format!(
            "A hypervisor withheld {:.0} % of the CPU time: differences smaller than that may be its.",
            100.0 * stolen
        ));
    }
    for (command, times) in alone(done) {
        let spread = standard_deviation(&times).zip(mean(&times)).map(|(sd, mean)| sd / mean);
        if let Some(spread) = spread.filter(|spread| *spread > SPREAD) {
            warnings.push(format!(
                "`{command}` takes a different time from run to run even alone (standard deviation \
                 {:.0} % of the mean): it needs more rounds (--rounds).",
                100.0 * spread
            ));
        }
    }
    warnings
}
