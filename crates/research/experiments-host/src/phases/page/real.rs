//! The section on real programs.

use crate::phases::figures::Evaluation;
use crate::phases::plan::POLICIES;
use crate::phases::real::{Outcome, Real, RealCell};
use symbiont_report::{Axis, Block, Chart, Column, Dots, Mark, Plot, Report, Series, Table};

const TEXT: &str = "A Python program that computes a chain of SHA-256 digests (one thread, fixed \
work) co-running with xz with a thread for each hardware thread, which compresses text until the Python \
program is done. Speedup is the Python program's time alone over its time side by side (eq. 5); \
starting Python is not in it. Marks of the model are those of one serial thread co-running with n busy \
ones, as above. The outputs of both were checked after each run. The progress of xz is not reported: \
it is known only to a block of its input, too coarse for runs this short.";

/// The section, if there were real programs.
pub fn section(report: &mut Report, evaluation: &Evaluation) {
    let Some(real) = &evaluation.real else { return };
    report.push(Block::Heading("Real programs".to_owned()));
    report.push(Block::Prose(TEXT.to_owned()));
    report.push(table(real));
    report.push(plot(real));
}

fn table(real: &Real) -> Table {
    let columns = vec![
        Column::text("Sessions"),
        Column::text("Policy"),
        Column::number("Time").unit("s"),
        Column::number("Speedup"),
        Column::number("Model"),
        Column::number("Jitter"),
    ];
    let mut table =
        Table::new("real", "A serial real program co-running with a parallel one", columns);
    table.row(vec![
        "alone".into(),
        "not managed".into(),
        real.alone_s.into(),
        None::<f64>.into(),
        None::<f64>.into(),
        None::<f64>.into(),
    ]);
    for cell in &real.cells {
        for (policy, outcome) in cell.outcomes() {
            table.row(vec![
                cell.grouping.name().into(),
                policy.into(),
                outcome.time_s.into(),
                outcome.speedup.into(),
                outcome.predicted.into(),
                outcome.jitter.into(),
            ]);
        }
    }
    table
}

fn plot(real: &Real) -> Plot {
    let picks: [fn(&RealCell) -> &Outcome; 2] = [|cell| &cell.baseline, |cell| &cell.tried];
    let series = POLICIES.into_iter().zip(picks).map(|(policy, pick)| Series {
        name: policy.to_owned(),
        values: real.cells.iter().map(|cell| Some(pick(cell).speedup)).collect(),
        references: real.cells.iter().map(|cell| pick(cell).predicted).collect(),
    });
    let chart = Dots {
        mark: Mark::Dot,
        axis: Axis::new("Speedup (1 = as fast as alone)"),
        category: "sessions".to_owned(),
        categories: real.cells.iter().map(|cell| cell.grouping.name().to_owned()).collect(),
        series: series.collect(),
        reference: Some("model (Tables 1 and 3)".to_owned()),
    };
    Plot::new(
        "real-speedup",
        "Speedup of a Python program co-running with xz",
        "Time alone over time side by side.",
        Chart::Dots(chart),
    )
}
