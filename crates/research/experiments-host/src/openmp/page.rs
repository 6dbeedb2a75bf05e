//! From figures to a report.

use super::evaluate::{Evaluation, OpenmpCell};
use super::kernels::Kernel;
use crate::harness::{Check, Verdict};
use crate::phases::Grouping;
use symbiont_report::published::morad as published;
use symbiont_report::stats::{Estimate, mean};
use symbiont_report::{Block, Chart, Column, Matrix, Plot, Report, Table, number};

/// The report, without facts.
#[must_use]
pub(super) fn page(evaluation: &Evaluation) -> Report {
    let mut report = Report::new(
        "Serial phases first for real parallel programs",
        "OpenMP kernels in all pairs, each pair in both orders, under stay and under phases",
    );
    let groupings: Vec<Grouping> = Grouping::ALL
        .into_iter()
        .filter(|grouping| evaluation.cells.iter().any(|cell| cell.grouping == *grouping))
        .collect();
    report.push(Check::table(&checks(evaluation, &groupings)));
    report.push(summary(evaluation, &groupings));
    for grouping in groupings {
        report.push(Block::Heading(grouping.name().to_owned()));
        report.push(matrix(evaluation, grouping));
        report.push(pairs(evaluation, grouping));
        if let Some(text) = slower(evaluation, grouping) {
            report.push(Block::Note(text));
        }
    }
    report.push(alone(evaluation));
    if let Some(text) = no_faster(evaluation) {
        report.push(Block::Note(text));
    }
    report
}

fn of(evaluation: &Evaluation, grouping: Grouping) -> impl Iterator<Item = &OpenmpCell> {
    evaluation.cells.iter().filter(move |cell| cell.grouping == grouping)
}

fn mean_over(
    evaluation: &Evaluation,
    grouping: Grouping,
    figure: impl Fn(&OpenmpCell) -> f64,
) -> Option<f64> {
    mean(&of(evaluation, grouping).map(figure).collect::<Vec<f64>>())
}

/// Table 6.
fn matrix(evaluation: &Evaluation, grouping: Grouping) -> Plot {
    let names: Vec<String> =
        evaluation.alone.iter().map(|(kernel, _)| kernel.name.clone()).collect();
    let find = |row: &String, column: &String| {
        let is = |cell: &&OpenmpCell| cell.kernels[0] == *column && cell.kernels[1] == *row;
        of(evaluation, grouping).find(is).map(|cell| cell.compared.completion)
    };
    let row = |row: &String| names.iter().map(|column| find(row, column)).collect();
    Plot::new(
        format!("completion-{}", grouping.id()),
        format!("Time until both orders are through, stay over phases, {}", grouping.name()),
        "Above 1 phases is faster; the paper's Table 6 is of this kind.",
        Chart::Matrix(Matrix {
            row: "program".to_owned(),
            column: "co-runner".to_owned(),
            rows: names.clone(),
            columns: names.clone(),
            cells: names.iter().map(row).collect(),
            label: "stay over phases".to_owned(),
            unit: None,
            neutral: 1.0,
        }),
    )
}

fn pairs(evaluation: &Evaluation, grouping: Grouping) -> Table {
    let columns = vec![
        Column::text("Pair"),
        Column::number("Completion, stay over phases"),
        Column::number("Throughput, model"),
        Column::number("Speedup of the first, stay"),
        Column::number("Speedup of the first, phases"),
        Column::number("Speedup of the second, stay"),
        Column::number("Speedup of the second, phases"),
        Column::number("Fairness, stay"),
        Column::number("Fairness, phases"),
        Column::number("Fairness, change"),
        Column::number("Fairness, stay, model"),
        Column::number("Fairness, phases, model"),
        Column::number("Jitter, stay"),
        Column::number("Jitter, phases"),
    ];
    let caption = format!("All pairs, {}", grouping.name());
    let mut table = Table::new(format!("pairs-{}", grouping.id()), caption, columns);
    for cell in of(evaluation, grouping) {
        let [a, b] = &cell.kernels;
        let compared = &cell.compared;
        let [stay, phases] = compared.speedup;
        let mut row = vec![format!("{a} and {b}").into(), compared.completion.into()];
        row.push(cell.model.map(|(gain, _)| 1.0 + gain).into());
        row.extend([stay[0], phases[0], stay[1], phases[1]].map(Into::into));
        row.extend(compared.fairness.map(Into::into));
        row.push(compared.fairness_change.into());
        row.extend([0, 1].map(|policy| cell.model.map(|(_, fair)| fair[policy]).into()));
        let known = |jitter: Estimate| Some(jitter).filter(|jitter| jitter.value.is_finite());
        row.extend(compared.jitter.map(|jitter| known(jitter).into()));
        table.row(row);
    }
    table.note("Speedups are against runs alone, not managed. Model: the chain of joint states.");
    table
}

/// Table 7 and the mean of Table 6.
fn summary(evaluation: &Evaluation, groupings: &[Grouping]) -> Table {
    let columns = vec![
        Column::text("Means over all pairs"),
        Column::number("Completion, stay over phases"),
        Column::number("Fairness, stay"),
        Column::number("Fairness, phases"),
        Column::number("Jitter, stay"),
        Column::number("Jitter, phases"),
        Column::number("CPU time, phases over stay"),
        Column::number("One alone at the end, stay").unit("s"),
        Column::number("One alone at the end, phases").unit("s"),
    ];
    let mut table = Table::new("summary", "Tables 6 and 7 next to ours", columns);
    for &grouping in groupings {
        let over = |figure: &dyn Fn(&OpenmpCell) -> f64| mean_over(evaluation, grouping, figure);
        let mut row = vec![format!("here, {}", grouping.name()).into()];
        row.push(completion(evaluation, grouping).into());
        for policy in [0, 1] {
            row.push(over(&|cell| cell.compared.fairness[policy].value).into());
        }
        for policy in [0, 1] {
            let jitter = over(&|cell| cell.compared.jitter[policy].value);
            row.push(jitter.filter(|jitter| jitter.is_finite()).into());
        }
        row.push(over(&|cell| cell.spent[1].cpu_s / cell.spent[0].cpu_s).into());
        row.extend([0, 1].map(|policy| over(&|cell| cell.spent[policy].alone_s).into()));
        table.row(row);
    }
    let Some(kind) = published::kind(evaluation.cpus.large) else { return table };
    let symmetric = kind == published::SYMMETRIC;
    let what = format!("mean speedup, SPEC OMP2001, {kind}");
    let printed = published::HEADLINES.iter().find(|headline| headline.what == what);
    let [stay, phases] = [published::TABLE_7.baseline, published::TABLE_7.proposed]
        .map(|row| if symmetric { row.symmetric } else { row.asymmetric });
    let mut row = vec![format!("{}, {kind}", published::CITATION).into()];
    row.push(printed.map(|headline| 1.0 + headline.value / 100.0).into());
    row.extend([stay, phases].map(|outcome| (outcome.fairness / 100.0).into()));
    row.extend([stay, phases].map(|outcome| outcome.jitter.into()));
    row.extend([None::<f64>; 3].map(Into::into));
    table.row(row);
    table.note(format!(
        "The paper: Tables 6 and 7, SPEC OMP2001 on {}; it does not say what its jitter is \
         multiplied by.",
        published::CONDITIONS
    ));
    table
}

/// Mean over all pairs.
fn completion(evaluation: &Evaluation, grouping: Grouping) -> Option<Estimate> {
    let of = evaluation.completion.iter().find(|(of, _)| *of == grouping);
    of.map(|(_, completion)| *completion)
}

/// Why a pair is slower, by where its time went.
fn why(cell: &OpenmpCell) -> &'static str {
    let [stay, phases] = cell.spent;
    let lost = cell.compared.completion.value.recip() - 1.0;
    if phases.cpu_s / stay.cpu_s - 1.0 > lost / 2.0 {
        "mostly by more CPU time for the same work: the favoured program's threads run at once and wait \
         for each other, and moves cost"
    } else if phases.alone_s > stay.alone_s + NOTABLE_S {
        "mostly by the end, where one is alone and does not fill the CPUs"
    } else {
        "CPUs are idle for longer: a phase is acted on when it was seen"
    }
}

/// A time alone that makes a difference.
const NOTABLE_S: f64 = 0.05;

fn is_slower(cell: &&OpenmpCell) -> bool {
    cell.compared.completion.high().is_some_and(|high| high < 1.0)
}

/// Names the cells that get slower, and where their time went: CPU time by more switches and moves, and
/// the end, where a favoured program is through and leaves the other alone.
fn slower(evaluation: &Evaluation, grouping: Grouping) -> Option<String> {
    let named: Vec<String> = of(evaluation, grouping)
        .filter(is_slower)
        .map(|cell| {
            let [a, b] = &cell.kernels;
            let [stay, phases] = cell.spent;
            let cpu = 100.0 * (phases.cpu_s / stay.cpu_s - 1.0);
            let model = cell.model.map_or(String::new(), |(gain, _)| {
                format!("; the model says {:+.1} % of throughput", 100.0 * gain)
            });
            let completion = number::estimate(&cell.compared.completion);
            format!(
                "{a} and {b} {completion}, {} (CPU time {cpu:+.1} %, one alone at the end for {:.2} s \
                 instead of {:.2}{model})",
                why(cell),
                phases.alone_s,
                stay.alone_s
            )
        })
        .collect();
    let count = of(evaluation, grouping).count();
    (!named.is_empty()).then(|| {
        format!(
            "{} of {count} pairs are slower under phases, {}: {}. By chance one of 40 would be.",
            named.len(),
            grouping.name(),
            named.join("; ")
        )
    })
}

fn alone(evaluation: &Evaluation) -> Table {
    let columns = vec![
        Column::text("Kernel"),
        Column::number("Steps"),
        Column::number("Time alone").unit("s"),
        Column::number("With one thread").unit("s"),
        Column::number("Speedup by threads"),
        Column::number("Parallel share of it"),
    ];
    let mut table = Table::new("alone", "Each kernel by itself, not managed", columns);
    for (kernel, time) in &evaluation.alone {
        table.row(vec![
            kernel.name.clone().into(),
            kernel.steps.into(),
            (*time).into(),
            kernel.single_s.into(),
            by_threads(kernel, time).into(),
            kernel.parallel.into(),
        ]);
    }
    table.note(
        "The parallel share and the time with one thread are derived from a trial with one thread.",
    );
    table
}

/// How much faster a kernel is with all of its threads than with one.
fn by_threads(kernel: &Kernel, time: &Estimate) -> f64 {
    kernel.single_s / time.value
}

/// Names the kernels that are no parallel programs here.
fn no_faster(evaluation: &Evaluation) -> Option<String> {
    let slow = evaluation.alone.iter().filter(|(kernel, time)| by_threads(kernel, time) < 1.0);
    let named: Vec<&str> = slow.map(|(kernel, _)| kernel.name.as_str()).collect();
    (!named.is_empty()).then(|| {
        format!(
            "No faster with a thread on each CPU than with one thread: {}. A user that lets threads run at \
             the same time does these no good.",
            named.join(", ")
        )
    })
}

fn checks(evaluation: &Evaluation, groupings: &[Grouping]) -> Vec<Check> {
    let check = |&grouping: &Grouping| {
        let mean = completion(evaluation, grouping);
        let (slower, all) =
            (of(evaluation, grouping).filter(is_slower).count(), of(evaluation, grouping).count());
        Check {
            requirement: format!("{}: both orders are through sooner on average", grouping.name()),
            measured: mean,
            reference: format!("{slower} of {all} pairs are slower beyond their interval"),
            verdict: verdict(mean),
        }
    };
    groupings.iter().map(check).collect()
}

/// Sooner beyond chance passes; no sooner at all fails, whatever the interval.
fn verdict(mean: Option<Estimate>) -> Verdict {
    match mean.and_then(|mean| Some((mean.value, mean.low()?))) {
        Some((_, low)) if low > 1.0 => Verdict::Pass,
        Some((value, _)) if value <= 1.0 => Verdict::Fail,
        _ => Verdict::Undecided,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use symbiont_report::stats::Interval;

    #[test]
    fn sooner_beyond_chance_passes_and_no_sooner_fails() {
        let of = |low, value, high| {
            let interval = Some(Interval { low, high });
            verdict(Some(Estimate { interval, ..Estimate::exact(value) }))
        };
        assert_eq!(of(1.01, 1.02, 1.03), Verdict::Pass);
        assert_eq!(of(0.99, 1.01, 1.03), Verdict::Undecided);
        assert_eq!(of(0.98, 0.99, 1.01), Verdict::Fail);
        assert_eq!(verdict(Some(Estimate::exact(1.2))), Verdict::Undecided);
        assert_eq!(verdict(None), Verdict::Undecided);
    }
}
