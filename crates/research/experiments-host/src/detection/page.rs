//! From finished runs to a report.

use std::collections::BTreeMap;
use std::time::Duration;

use super::Done;
use super::judge::Judged;
use super::plan::{CoRunner, Manager};
use symbiont_campaign::harness::Error;
use symbiont_report::stats::{self, Estimate};
use symbiont_report::{Axis, Block, Chart, Column, Line, Lines, Plot, Report, Table};

/// A way of reading, by name.
type Reader = (&'static str, fn(&Done) -> Option<Judged>);

const READERS: [Reader; 3] = [
    ("manager, once per quantum", |done| by_manager(done, Manager::Accounts)),
    ("manager, woken by tracepoints", |done| by_manager(done, Manager::Woken)),
    ("tracepoints alone", |done| done.record.tracepoints.clone()?.ok()),
];

fn by_manager(done: &Done, manager: Manager) -> Option<Judged> {
    (done.run.cell.manager == manager).then_some(done.record.manager)
}

/// A figure of a reader.
type Figure = fn(&Judged) -> Option<f64>;

/// Finished runs by co-runner and by the phases' length.
type Cells<'a> = BTreeMap<(CoRunner, Duration), Vec<&'a Done>>;

/// The report of the experiment, without facts.
///
/// # Errors
/// When no run has finished.
pub(super) fn page(runs: &[Done]) -> Result<Report, Error> {
    let mut cells = Cells::new();
    for done in runs {
        cells.entry((done.run.cell.co_runner, done.run.cell.length)).or_default().push(done);
    }
    if cells.is_empty() {
        return Err(Error::Evaluation("no run has finished".to_owned()));
    }
    let mut report = Report::new(
        "How rightly and how soon phases are seen",
        "A program that alternates between serial and parallel phases, watched in two ways",
    );
    if let Some(why) = runs.iter().find_map(|done| done.record.tracepoints.clone()?.err()) {
        report.push(Block::Warning(format!("Tracepoints were not read: {why}. The manager that they should wake was woken once per quantum.")));
    }
    let lost: u64 = runs.iter().map(|done| done.record.lost).sum();
    if lost > 0 {
        report.push(Block::Warning(format!("{lost} events of the scheduler were lost.")));
    }
    for co_runner in [CoRunner::Nothing, CoRunner::Parallel] {
        if !cells.keys().any(|(at, _)| *at == co_runner) {
            continue;
        }
        report.push(Block::Heading(format!("The program {co_runner}")));
        let right = plot(
            (&format!("right-{}", id(co_runner)), "Share of time in which the phase was known"),
            Axis::new("Right"),
            &cells,
            co_runner,
            |judged| Some(judged.right),
        );
        let reaction = plot(
            (&format!("reaction-{}", id(co_runner)), "Time until a change was noticed (median)"),
            Axis::new("Reaction").unit("ms").log(),
            &cells,
            co_runner,
            // A logarithmic axis has no 0.
            |judged| judged.reaction_median_ms.filter(|ms| *ms > 0.0),
        );
        right.into_iter().chain(reaction).for_each(|plot| report.push(plot));
        report.push(table(&cells, co_runner));
    }
    Ok(report)
}

fn id(co_runner: CoRunner) -> &'static str {
    match co_runner {
        CoRunner::Nothing => "alone",
        CoRunner::Parallel => "co-running",
    }
}

/// The mean over runs; absent if no run reports it.
fn mean(runs: &[&Done], reader: Reader, figure: Figure) -> Option<Estimate> {
    let values: Vec<f64> = runs.iter().filter_map(|done| figure(&(reader.1)(done)?)).collect();
    stats::mean_estimate(&values).ok()
}

/// A figure over the phases' length; none if no reader has it.
fn plot(
    (id, title): (&str, &str),
    y: Axis,
    cells: &Cells<'_>,
    co_runner: CoRunner,
    figure: Figure,
) -> Option<Plot> {
    let of = |reader: Reader| {
        let points = cells.iter().filter(|((at, _), _)| *at == co_runner);
        let points = points.filter_map(|((_, length), runs)| {
            Some((length.as_secs_f64() * 1e3, mean(runs, reader, figure)?))
        });
        Line { name: reader.0.to_owned(), points: points.collect(), band: Vec::new() }
    };
    let series: Vec<Line> =
        READERS.map(of).into_iter().filter(|line| !line.points.is_empty()).collect();
    let x = Axis::new("Mean length of a phase, alone").unit("ms").log();
    let shown = !series.is_empty();
    shown.then(|| Plot::new(id, title, "", Chart::Lines(Lines { x, y, series })))
}

fn table(cells: &Cells<'_>, co_runner: CoRunner) -> Table {
    let columns = vec![
        Column::number("Mean phase").unit("ms"),
        Column::text("Read by"),
        Column::number("Right"),
        Column::number("Changes noticed"),
        Column::number("Reaction, median").unit("ms"),
        Column::number("Reaction, 95th percentile").unit("ms"),
    ];
    let caption = format!("What was seen of the program {co_runner}");
    let mut table = Table::new(format!("detection-{}", id(co_runner)), caption, columns);
    for ((_, length), runs) in cells.iter().filter(|((at, _), _)| *at == co_runner) {
        for reader in READERS {
            let figures: [Figure; 4] = [
                |judged| Some(judged.right),
                |judged| Some(judged.noticed),
                |judged| judged.reaction_median_ms,
                |judged| judged.reaction_p95_ms,
            ];
            let mut row = vec![(length.as_secs_f64() * 1e3).into(), reader.0.into()];
            row.extend(figures.map(|figure| mean(runs, reader, figure).into()));
            table.row(row);
        }
    }
    table.note(
        "Right: share of the time of all phases. Noticed: share of the changes after which the \
         reader came to the right phase before the next change; a reader that always says the same is right \
         for about half of the time and notices none. Noticed a little early, as when threads go to \
         sleep before their phase is over, counts as a reaction of 0.",
    );
    if co_runner == CoRunner::Parallel {
        table.note(
            "With a co-running program a thread that was woken for a short parallel phase may still \
             wait for a CPU when the phase is over without it. It is ready, so what counts ready \
             threads says parallel while the program says serial.",
        );
    }
    table
}
