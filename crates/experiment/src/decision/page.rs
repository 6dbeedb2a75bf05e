//! From figures to a report.

use symbiont_model::Depth;

use super::evaluate::{Evaluation, Row};
use symbiont_campaign::harness::Check;
use symbiont_report::{Axis, Block, Chart, Column, Line, Lines, Plot, Report, Table};

/// The report of the experiment, without facts.
#[must_use]
pub fn page(evaluation: &Evaluation) -> Report {
    let mut report = Report::new(
        "How long a decision takes",
        "Characterise, invert, predict all pairs, match, and plan, for 16 to 1,024 threads",
    );
    report.push(Block::Heading("What it has to show".to_owned()));
    report.push(Check::table(&evaluation.checks));
    report.push(Block::Heading("How it grows".to_owned()));
    report.push(Block::Prose(
        "The product's own loop on synthetic threads that all run, with stacks that change by some \
         percent each quantum and a new phase in every twentieth thread. Reading counters and setting masks on Linux are not in it."
            .to_owned(),
    ));
    report.push(plot(&evaluation.rows));
    report.push(table(&evaluation.rows));
    report
}

fn plot(rows: &[Row]) -> Plot {
    let kinds = Depth::ALL.into_iter().flat_map(|stack| [2, 4].map(|smt| (stack, smt)));
    let line = |(stack, smt): (Depth, u32)| Line {
        name: format!("SMT{smt}, {stack} stack"),
        points: rows
            .iter()
            .filter(|row| (row.load.stack, row.load.smt) == (stack, smt))
            .map(|row| (f64::from(row.load.threads), row.median_ms))
            .collect(),
        band: Vec::new(),
    };
    let series = kinds.map(line).filter(|line| !line.points.is_empty()).collect();
    let (x, y) = (Axis::new("Threads").log(), Axis::new("Time of a decision").unit("ms").log());
    let caption = "Medians of each run, means over rounds; both axes logarithmic.";
    Plot::new("growth", "Time of a decision", caption, Chart::Lines(Lines { x, y, series }))
}

fn table(rows: &[Row]) -> Table {
    let columns = vec![
        Column::text("Load"),
        Column::number("Median").unit("ms"),
        Column::number("Longest").unit("ms"),
        Column::number("First").unit("ms"),
        Column::number("Growth"),
    ];
    let mut table = Table::new("decisions", "Time of a decision", columns);
    for row in rows {
        table.row(vec![
            row.load.to_string().into(),
            row.median_ms.into(),
            row.most_ms.into(),
            row.first_ms.into(),
            row.growth.into(),
        ]);
    }
    table.note("first: before anything was grouped; it is in no other column");
    table.note("growth: the exponent of the number of threads, from the row above to this one");
    table
}
