//! From figures to a report.

use super::evaluate::{Evaluation, Line as Fit, Row};
use super::plan::{Load, WAKES_PER_S, WORK};
use symbiont_campaign::harness::Check;
use symbiont_report::stats::Estimate;
use symbiont_report::{
    Axis, Block, Chart, Column, Dots, Line, Lines, Mark, Plot, Report, Series, Table, number,
};

/// The report of the experiment, without facts.
#[must_use]
pub fn page(evaluation: &Evaluation) -> Report {
    let mut report = Report::new(
        "What managing costs",
        "CPU time, memory and lateness of the manager at 8 to 2,048 threads, under phases",
    );
    report.push(Block::Heading("What it has to show".to_owned()));
    report.push(Check::table(&evaluation.checks));
    report.push(Block::Heading("CPU time".to_owned()));
    report.push(Block::Prose(load_text()));
    if let Some(text) =
        evaluation.cost_line.map(|line| fit_text("CPU time per quantum", "µs", line))
    {
        report.push(Block::Prose(text));
    }
    report.push(over_threads(
        ("cost", "CPU time per thread and quantum"),
        ("CPU time per thread and quantum", "µs"),
        &evaluation.rows,
        |row| Some(row.cost_us),
        evaluation.cost_line.map(|line| move |threads: f64| line.fixed / threads + line.per_thread),
    ));
    report.push(Block::Heading("Memory".to_owned()));
    if let Some(text) = evaluation.memory_line.map(|line| fit_text("Memory", "KiB", line)) {
        report.push(Block::Prose(text));
    }
    report.push(over_threads(
        ("memory", "Memory of the manager"),
        ("Memory", "KiB"),
        &evaluation.rows,
        |row| row.memory_kb,
        evaluation
            .memory_line
            .map(|line| move |threads: f64| line.fixed + line.per_thread * threads),
    ));
    report.push(Block::Heading("Lateness".to_owned()));
    report.push(lateness(&evaluation.rows));
    report.push(Block::Heading("All figures".to_owned()));
    report.push(table(&evaluation.rows));
    report
}

fn load_text() -> String {
    format!(
        "Sleepers wake {WAKES_PER_S} times a second, each at a moment of its own, and work for \
         about {WORK} µs; busy threads never sleep. CPU time is that of all threads of the \
         manager, by the scheduler's nanosecond account, from the first quantum to the last; \
         starting is distinguished, putting back is not in it. The bare loop manages nothing: it \
         wakes as often and reads the same two files of each thread, which is the part that the \
         kernel takes in any case. The dashed line is the straight line through CPU time per quantum over \
         threads (least squares), per thread: what is fixed counts less the more threads there are."
    )
}

fn fit_text(what: &str, unit: &str, line: Fit) -> String {
    format!(
        "{what} by least squares: {} {unit}, and {} {unit} more for each thread.",
        number::plain(line.fixed),
        number::plain(line.per_thread)
    )
}

fn over_threads<F: Fn(f64) -> f64>(
    (id, title): (&str, &str),
    (label, unit): (&str, &str),
    rows: &[Row],
    of: fn(&Row) -> Option<Estimate>,
    fit: Option<F>,
) -> Plot {
    let points = |wanted: fn(Load) -> bool| -> Vec<(f64, Estimate)> {
        rows.iter()
            .filter(|row| wanted(row.load))
            .filter_map(|row| Some((f64::from(row.load.threads()), of(row)?)))
            .collect()
    };
    let sleepers = points(|load| matches!(load, Load::Sleepers(_)));
    let busy = points(|load| matches!(load, Load::Busy(_)));
    let bare = points(|load| matches!(load, Load::Bare(_)));
    let fitted = fit.map_or(Vec::new(), |fit| {
        sleepers.iter().map(|(threads, _)| (*threads, Estimate::exact(fit(*threads)))).collect()
    });
    let series = [
        ("sleepers", sleepers),
        ("busy", busy),
        ("a bare loop", bare),
        ("fitted to sleepers", fitted),
    ]
    .into_iter()
    .filter(|(_, points)| !points.is_empty())
    .map(|(name, points)| Line { name: name.to_owned(), points, band: Vec::new() })
    .collect();
    let chart = Lines { x: Axis::new("Threads").log(), y: Axis::new(label).unit(unit), series };
    Plot::new(id, title, "", Chart::Lines(chart))
}

fn lateness(rows: &[Row]) -> Plot {
    let managed = || rows.iter().filter(|row| !matches!(row.load, Load::Bare(_)));
    let series = |name: &str, of: fn(&Row) -> Option<Estimate>| Series {
        name: name.to_owned(),
        values: managed().map(of).collect(),
        references: Vec::new(),
    };
    let chart = Dots {
        mark: Mark::Dot,
        axis: Axis::new("Lateness").unit("ms"),
        category: "load".to_owned(),
        categories: managed().map(|row| row.load.to_string()).collect(),
        series: vec![
            series("median", |row| row.lateness_median_ms),
            series("95th percentile", |row| row.lateness_p95_ms),
        ],
        reference: None,
    };
    Plot::new(
        "lateness",
        "How late the manager wakes",
        "Actual less planned wake-up of the loop; of each run, then the mean over runs.",
        Chart::Dots(chart),
    )
}

fn table(rows: &[Row]) -> Table {
    let columns = vec![
        Column::text("Load"),
        Column::number("Threads managed"),
        Column::number("CPU time per thread and quantum").unit("µs"),
        Column::number("CPU time per quantum").unit("µs"),
        Column::number("Starting").unit("ms"),
        Column::number("Share of one CPU"),
        Column::number("Memory").unit("KiB"),
        Column::number("Lateness, median").unit("ms"),
        Column::number("Lateness, 95th percentile").unit("ms"),
        Column::number("Lateness, largest").unit("ms"),
    ];
    let mut table = Table::new("overhead", "What managing costs", columns);
    for row in rows {
        table.row(vec![
            row.load.to_string().into(),
            row.threads.into(),
            row.cost_us.into(),
            row.quantum_us.into(),
            row.start_ms.into(),
            row.share.into(),
            row.memory_kb.into(),
            row.lateness_median_ms.into(),
            row.lateness_p95_ms.into(),
            row.lateness_max_ms.into(),
        ]);
    }
    table
}
