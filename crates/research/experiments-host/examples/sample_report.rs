//! Writes a small report with every kind of block, to see how they look:
//!
//! ```sh
//! cargo run -p symbiont-experiments-host --example sample_report -- /tmp/sample
//! ```
//!
//! The figures are made up.

use std::path::PathBuf;
use symbiont_report::stats::{Estimate, StatsError, difference_of_means, mean_estimate};
use symbiont_report::theory::{JointState, Multiprocessor, Scheduler, speedups};
use symbiont_report::{
    Axis, Block, Cell, Chart, Column, Dots, Highlight, Line, Lines, Mark, Matrix, Plot, Report,
    Series, Table, Value,
};

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let directory =
        std::env::args_os().nth(1).map_or_else(|| "report/sample".into(), PathBuf::from);
    let written = sample()?.write(&directory)?;
    println!("{}", written.index.display());
    Ok(())
}

/// Runs around `center`, spread evenly over ± `spread`.
fn runs(center: f64, spread: f64, n: u32) -> Vec<f64> {
    (0..n).map(|i| center + spread * (2.0 * f64::from(i) / f64::from(n - 1) - 1.0)).collect()
}

fn estimate(center: f64, spread: f64, n: u32) -> Result<Estimate, StatsError> {
    mean_estimate(&runs(center, spread, n))
}

fn sample() -> Result<Report, Failure> {
    let mut report = Report::new(
        "Sample of a report",
        "Does a serial program keep its core while a parallel one runs?",
    );
    report.fact("Machine", "2 hardware threads, 2 cores, 1 package");
    report.fact("Command", "symbiont bench phases --runs 30 --seconds 5 --seed 1");
    report.fact("Seed", "1");
    report.push(Block::Heading("What was measured".into()));
    report.push(Block::Prose(
        "A serial program, (1:∞), co-ran with a parallel one, (∞:1), under two policies. All \
         figures on this page are made up.\n\nSpeedup is the rate of work together over alone."
            .into(),
    ));
    report.push(table()?);
    report.push(dots()?);
    report.push(Block::Note("Bars start at zero; dots need not.".into()));
    report.push(bars()?);
    report.push(Block::Heading("Over the number of cores".into()));
    report.push(lines()?);
    report.push(Block::Heading("All pairs".into()));
    report.push(matrix()?);
    report.push(Block::Warning("Five runs a cell are few: read single cells with care.".into()));
    Ok(report)
}

fn table() -> Result<Table, Failure> {
    let columns = vec![
        Column::text("Program"),
        Column::number("stay"),
        Column::number("phases"),
        Column::number("difference"),
        Column::number("rate under phases").unit("iterations/s"),
    ];
    let mut table = Table::new("headline", "Speedup of each program.", columns);
    let (stay, phases) = (runs(0.68, 0.05, 30), runs(0.99, 0.004, 30));
    table.row(vec![
        "serial (1:∞)".into(),
        mean_estimate(&stay)?.into(),
        Cell::from(mean_estimate(&phases)?).highlight(Highlight::Strong),
        Cell::from(difference_of_means(&phases, &stay)?).highlight(Highlight::Better),
        estimate(1.234e6, 4e3, 30)?.into(),
    ]);
    let (stay, phases) = (runs(0.66, 0.03, 30), runs(0.50, 0.01, 30));
    table.row(vec![
        "parallel (∞:1)".into(),
        mean_estimate(&stay)?.into(),
        mean_estimate(&phases)?.into(),
        Cell::from(difference_of_means(&phases, &stay)?).highlight(Highlight::Worse),
        Value::Missing.into(),
    ]);
    table.note("Marked differences are outside their interval.");
    Ok(table)
}

fn dots() -> Result<Plot, Failure> {
    let machine = Multiprocessor::symmetric(2)?;
    let model = |scheduler, state| Some(speedups(scheduler, machine, state).avg);
    let both = [JointState::SP, JointState::PS];
    let references = |scheduler| both.map(|state| model(scheduler, state));
    let twice = |two: [Option<f64>; 2]| [two, two].concat();
    Ok(Plot::new(
        "speedup-by-policy",
        "A serial program co-running with a parallel one",
        "Speedup of each program, with both in one session group and each in its own.",
        Chart::Dots(Dots {
            mark: Mark::Dot,
            axis: Axis::new("speedup, together over alone"),
            category: "program".into(),
            categories: vec![
                "serial (1:∞), one session group".into(),
                "parallel (∞:1), one session group".into(),
                "serial (1:∞), a session group of its own for each program".into(),
                "parallel (∞:1), a session group of its own for each program".into(),
            ],
            series: vec![
                Series {
                    name: "stay (Linux alone)".into(),
                    values: vec![
                        Some(estimate(0.68, 0.09, 30)?),
                        Some(estimate(0.64, 0.04, 30)?),
                        Some(estimate(0.98, 0.03, 30)?),
                        None,
                    ],
                    references: twice(references(Scheduler::Baseline)),
                },
                Series {
                    name: "phases".into(),
                    values: vec![
                        Some(estimate(0.99, 0.02, 30)?),
                        Some(estimate(0.49, 0.02, 30)?),
                        Some(estimate(0.992, 0.02, 30)?),
                        Some(estimate(0.497, 0.02, 30)?),
                    ],
                    references: twice(references(Scheduler::Proposed)),
                },
            ],
            reference: Some("model (Morad et al., Tables 1 and 3)".into()),
        }),
    ))
}

fn bars() -> Result<Plot, Failure> {
    let series = |name: &str, values: [f64; 3]| -> Result<Series, StatsError> {
        let values =
            values.iter().map(|v| estimate(*v, 0.3 * v, 8).map(Some)).collect::<Result<_, _>>()?;
        Ok(Series { name: name.into(), values, references: Vec::new() })
    };
    Ok(Plot::new(
        "jitter",
        "Jitter of run times",
        "Standard deviation of run times over their mean.",
        Chart::Dots(Dots {
            mark: Mark::Bar,
            axis: Axis::new("jitter").unit("% of the mean time"),
            category: "program".into(),
            categories: vec!["(∞:1)".into(), "(1:1)".into(), "(1:∞)".into()],
            series: vec![
                series("stay", [3.1, 2.4, 5.2])?,
                series("random", [4.0, 4.1, 6.6])?,
                series("phases", [1.0, 0.7, 0.4])?,
            ],
            reference: None,
        }),
    ))
}

fn lines() -> Result<Plot, Failure> {
    let cores: Vec<u32> = vec![2, 3, 4, 8, 16, 32, 64];
    let mut measured = Vec::new();
    let (mut average, mut extremes) = (Vec::new(), Vec::new());
    for n in cores {
        let s = speedups(Scheduler::Baseline, Multiprocessor::symmetric(n)?, JointState::SP);
        let x = f64::from(n);
        measured.push((x, estimate(s.avg - 0.4 / x.powi(2), 0.25 / x, 10)?));
        average.push((x, Estimate::exact(s.avg)));
        extremes.push((x, s.min, s.max));
    }
    Ok(Plot::new(
        "speedup-by-cores",
        "Speedup of the serial program under the baseline",
        "The shaded range holds every placement in the model.",
        Chart::Lines(Lines {
            x: Axis::new("cores").log(),
            y: Axis::new("speedup of the serial program"),
            series: vec![
                Line { name: "measured".into(), points: measured, band: Vec::new() },
                Line { name: "model (Table 1)".into(), points: average, band: extremes },
            ],
        }),
    ))
}

fn matrix() -> Result<Plot, Failure> {
    let ratios = ["∞:1", "4:1", "1:1", "1:4", "1:∞"];
    let names: Vec<String> = ratios.iter().map(|r| format!("({r})")).collect();
    let mut cells = Vec::new();
    for row in 0..5_i32 {
        let mut line = Vec::new();
        for column in 0..5_i32 {
            let gain = f64::from(row * column) / 160.0 + 0.02 * f64::from(row - 1);
            let cell = (column <= row).then(|| estimate(1.0 + gain, 0.015, 5));
            line.push(cell.transpose()?);
        }
        cells.push(line);
    }
    Ok(Plot::new(
        "throughput-of-pairs",
        "Throughput of two programs under phases, over stay",
        "Programs by their ratio of parallel to serial work.",
        Chart::Matrix(Matrix {
            row: "one program".into(),
            column: "the other".into(),
            rows: names.clone(),
            columns: names,
            cells,
            label: "throughput over that of stay".into(),
            unit: None,
            neutral: 1.0,
        }),
    ))
}
