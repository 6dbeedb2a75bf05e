//! From figures to a report.

use super::evaluate::{Evaluation, QUANTUM, Row};
use super::plan::Activity;
use symbiont_campaign::harness::Check;
use symbiont_report::stats::Estimate;
use symbiont_report::{Axis, Block, Chart, Column, Line, Lines, Plot, Report, Table};

/// The report of the experiment, without facts.
#[must_use]
pub fn page(evaluation: &Evaluation) -> Report {
    let mut report = Report::new(
        "What counting costs",
        "CPU time and kernel memory of counting six events of 16 to 1,024 threads",
    );
    report.push(Block::Heading("What it has to show".to_owned()));
    report.push(Check::table(&evaluation.checks));
    for row in evaluation.rows.iter().filter(|row| row.counted < row.load.threads) {
        report.push(Block::Warning(format!(
            "{}: descriptors were enough for {} of them only (RLIMIT_NOFILE).",
            row.load, row.counted
        )));
    }
    report.push(Block::Heading("CPU time".to_owned()));
    report.push(Block::Prose(
        "Six events of the kernel in two groups of three on each thread. CPU time is that of the \
         thread that counts. Quiet threads sleep all the time; active ones ran for a moment since \
         the quantum before. A thread that runs on another hardware thread at the very moment of \
         reading takes a few µs more, for it has to be interrupted; so many cannot run at once \
         here. Software events are counted whenever they are enabled, so that multiplexing by the \
         kernel costs nothing here; a hardware counter is read in about the same time."
            .to_owned(),
    ));
    report.push(plot(
        ("read", "Reading six events"),
        "CPU time per thread and quantum",
        &evaluation.rows,
        |row| row.read_us,
    ));
    report.push(plot(
        ("turn", "Turning from one group to the other"),
        "CPU time per thread and quantum",
        &evaluation.rows,
        |row| row.turn_us,
    ));
    report.push(plot(
        ("open", "Opening six events"),
        "CPU time per thread",
        &evaluation.rows,
        |row| row.open_us,
    ));
    report.push(Block::Heading("All figures".to_owned()));
    report.push(table(&evaluation.rows));
    report
}

fn plot((id, title): (&str, &str), label: &str, rows: &[Row], of: fn(&Row) -> Estimate) -> Plot {
    let line = |(activity, name): (Activity, &str)| Line {
        name: name.to_owned(),
        points: rows
            .iter()
            .filter(|row| row.load.activity == activity)
            .map(|row| (f64::from(row.load.threads), of(row)))
            .collect(),
        band: Vec::new(),
    };
    let series = [(Activity::Quiet, "quiet"), (Activity::Active, "active")].map(line);
    let series = series.into_iter().filter(|line| !line.points.is_empty()).collect();
    let chart = Lines { x: Axis::new("Threads").log(), y: Axis::new(label).unit("µs"), series };
    Plot::new(id, title, "", Chart::Lines(chart))
}

fn table(rows: &[Row]) -> Table {
    let columns = vec![
        Column::text("Load"),
        Column::number("Threads counted"),
        Column::number("Opening, per thread").unit("µs"),
        Column::number("Reading, per thread and quantum").unit("µs"),
        Column::number("Turning, per thread and quantum").unit("µs"),
        Column::number("Closing, per thread").unit("µs"),
        Column::number(format!("Share of one CPU at {} ms", QUANTUM.as_millis())),
        Column::number("Kernel memory per event").unit("B"),
    ];
    let mut table = Table::new("counting", "What counting costs", columns);
    table.note(
        "Kernel memory is the growth of SUnreclaim and Percpu in /proc/meminfo while the events \
         were opened; with few threads it is lost in what else the machine does.",
    );
    for row in rows {
        table.row(vec![
            row.load.to_string().into(),
            u64::from(row.counted).into(),
            row.open_us.into(),
            row.read_us.into(),
            row.turn_us.into(),
            row.close_us.into(),
            row.share.into(),
            row.event_bytes.into(),
        ]);
    }
    table
}
