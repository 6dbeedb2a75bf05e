//! From figures to a report.

use symbiont_synth::Ratio;

use super::figures::{Evaluation, Outcome, PhasesCell, label};
use super::plan::{Grouping, Part, PhasesSize};
use super::sentence::sentence;
use crate::harness::Check;
use symbiont_report::{Axis, Block, Chart, Dots, Mark, Matrix, Plot, Report, Series};

use symbiont_report::stats::Estimate;

mod real;
mod tables;

/// The report of a campaign, without facts.
#[must_use]
pub fn page(evaluation: &Evaluation, size: &PhasesSize) -> Report {
    let mut report = Report::new(
        "Serial phases first",
        "What a serial thread gains from a core of its own, and what that costs the others: \
         real runs under stay and phases, interleaved",
    );
    report.blocks.extend(sentence(evaluation).map(Block::Prose));
    report.push(Block::Heading("What it has to show".to_owned()));
    report.push(Check::table(&evaluation.checks));
    let headline: Vec<&PhasesCell> = of_part(evaluation, Part::Headline);
    if !headline.is_empty() {
        report.push(Block::Heading("A parallel program co-running with a serial one".to_owned()));
        report.push(Block::Prose(HEADLINE.to_owned()));
        report.push(tables::programs(
            "headline",
            "∞:1 co-running with 1:∞: each program",
            &headline,
        ));
        report.push(speedup_plot(&headline));
        if let Some(plot) = jitter_plot(&headline) {
            report.push(plot);
        }
        report.push(tables::pairs(
            "headline-pairs",
            "∞:1 co-running with 1:∞: both together",
            &headline,
        ));
    }
    real::section(&mut report, evaluation);
    let matrix = of_part(evaluation, Part::Matrix);
    if !matrix.is_empty() {
        report.push(Block::Heading("All pairs of ratios".to_owned()));
        report.push(Block::Prose(matrix_text(matrix.len(), size)));
        report.push(tables::summary(&matrix, evaluation.cpus));
        for grouping in Grouping::ALL {
            let cells: Vec<&PhasesCell> =
                matrix.iter().filter(|cell| cell.grouping == grouping).copied().collect();
            if cells.is_empty() {
                continue;
            }
            report.push(throughput_matrix(grouping, &cells, &size.matrix_ratios));
            for (policy, pick) in POLICY_OUTCOMES {
                let plot = speedup_matrix(grouping, policy, pick, &cells, &size.matrix_ratios);
                report.push(plot);
            }
            let (id, name) = (grouping.id(), grouping.name());
            let caption = format!("All pairs, {name}: both together");
            report.push(tables::pairs(&format!("pairs-{id}"), &caption, &cells));
            let caption = format!("All pairs, {name}: each program");
            report.push(tables::programs(&format!("programs-{id}"), &caption, &cells));
        }
    }
    report.push(Block::Heading("Programs alone".to_owned()));
    report.push(tables::alone(&evaluation.alone, evaluation.cpus));
    let disturbed = tables::disturbed(&evaluation.alone, evaluation.cpus);
    report.blocks.extend(disturbed.map(Block::Warning));
    if !evaluation.managers.is_empty() {
        report.push(Block::Heading("The managers".to_owned()));
        report.push(tables::managers(&evaluation.managers));
        for (policy, why, count) in evaluation
            .managers
            .iter()
            .flat_map(|m| m.reasons.iter().map(move |(why, count)| (&m.policy, why, count)))
        {
            report.push(Block::Note(format!(
                "{policy}: {count} moves were refused, for instance: {why}"
            )));
        }
        for warning in tables::warnings(&evaluation.managers) {
            report.push(Block::Warning(warning));
        }
    }
    report.push(Block::Heading("How it was measured".to_owned()));
    report.push(Block::Prose(METHOD.to_owned()));
    report
}

/// A policy's name and how to find its outcome.
type Pick = fn(&PhasesCell) -> &Outcome;
const POLICY_OUTCOMES: [(&str, Pick); 2] =
    [("stay", |cell| &cell.baseline), ("phases", |cell| &cell.tried)];

const HEADLINE: &str = "One program has only parallel phases (∞:1: one thread per CPU, all of \
them always ready), the other only serial ones (1:∞). Speedup is performance side by side over \
performance alone (eq. 3), so 1 means: not slowed at all. Marks of the model are the averages of \
Table 1 (all threads equal) for stay and of Table 3 (a serial thread has a core to itself) for \
phases.

The model knows threads, not sessions. Where the kernel shares CPU time out between sessions first \
(autogroup), a serial program in a session of its own already gets up to half of the machine, and \
Table 1 says too little for it.";

const METHOD: &str = "Each round holds every run once, in random order, so slow changes of the \
machine meet all policies alike. Within a round a pair of programs has the same seeds, so the same \
phases, under each policy and grouping. Phase lengths are fixed work, calibrated once before the \
first run. Both programs of a pair start at one time of day, each at a random moment of its first cycle of \
phases, and run equally long. Runs alone are \
not managed; stay runs under the same manager, at its own, longer quantum (100 ms; phases: 20 ms), \
so the difference between the two is placement and, some tenths of a per cent, the cost of looking \
more often. In sessions of their own the boost cannot act (priorities weigh only within a group); it \
is refused, tried again ever more rarely, and only placement remains.

Differences between policies are taken by round, in which both met the same programs. Bootstrap \
intervals (jitter) of fewer than ten runs are too narrow; those of fairness leave out one run after the \
other.

Performance is progress: serial iterations plus parallel iterations divided by n, per second. It is \
the rate at which a program gets through its own sequence of phases, and for programs of one kind \
of phase it is the paper's iterations per second up to a constant. For mixed ones it does not \
depend on the kind of phase in which a short run happens to end. Throughput is the paper's: \
iterations per second of both programs, here in units of one thread on the idle machine, so at most \
n. Fairness is eq. 4 of the mean speedups. Jitter is eq. 6 over the times per unit of progress. In \
mixed cells it also holds what different seeds do from round to round, under both policies alike.

Predictions for mixed programs combine the paper's per-state speedups by a chain of joint states \
with exponential phase lengths; that step is ours, not the paper's.";

fn matrix_text(cells: usize, size: &PhasesSize) -> String {
    format!(
        "{cells} cells with {} runs of each policy. With 95 % intervals about one cell in forty \
         would seem worse, and as many better, if the policies were the same: judge single cells \
         with care. A ratio P:S says how an idle machine's time divides between parallel and \
         serial phases (eq. 1).",
        size.matrix_rounds
    )
}

fn of_part(evaluation: &Evaluation, part: Part) -> Vec<&PhasesCell> {
    evaluation.cells.iter().filter(|cell| cell.part == part).collect()
}

fn speedup_plot(cells: &[&PhasesCell]) -> Plot {
    let chart = Dots {
        mark: Mark::Dot,
        axis: Axis::new("Speedup (1 = as fast as alone)"),
        category: "program".to_owned(),
        categories: categories(cells),
        series: POLICY_OUTCOMES
            .map(|(policy, pick)| Series {
                name: policy.to_owned(),
                values: each(cells, |cell, slot| Some(pick(cell).speedup[slot])),
                references: each(cells, |cell, slot| {
                    pick(cell).prediction.map(|prediction| prediction.speedup[slot])
                }),
            })
            .into(),
        reference: Some("model (Tables 1 and 3)".to_owned()),
    };
    Plot::new(
        "headline-speedup",
        "Speedup of a parallel and a serial program side by side",
        "Performance side by side over performance alone.",
        Chart::Dots(chart),
    )
}

/// Absent when no cell was run twice.
fn jitter_plot(cells: &[&PhasesCell]) -> Option<Plot> {
    let series = POLICY_OUTCOMES.map(|(policy, pick)| Series {
        name: policy.to_owned(),
        values: each(cells, |cell, slot| pick(cell).jitter[slot]),
        references: Vec::new(),
    });
    if series.iter().all(|series| series.values.iter().all(Option::is_none)) {
        return None;
    }
    let chart = Dots {
        mark: Mark::Dot,
        axis: Axis::new("Jitter (0 = all runs alike)"),
        category: "program".to_owned(),
        categories: categories(cells),
        series: series.into(),
        reference: None,
    };
    Some(Plot::new(
        "headline-jitter",
        "Jitter of a parallel and a serial program side by side",
        "Standard deviation of the times for equal work, in units of their mean (eq. 6).",
        Chart::Dots(chart),
    ))
}

fn categories(cells: &[&PhasesCell]) -> Vec<String> {
    each(cells, |cell, slot| format!("{}, {}", label(cell.ratios[slot]), cell.grouping.name()))
}

/// A value for each program of each cell.
fn each<T>(cells: &[&PhasesCell], of: impl Fn(&PhasesCell, usize) -> T) -> Vec<T> {
    cells.iter().flat_map(|cell| [of(cell, 0), of(cell, 1)]).collect()
}

fn throughput_matrix(grouping: Grouping, cells: &[&PhasesCell], ratios: &[Ratio]) -> Plot {
    let figure = |row: Ratio, column: Ratio| {
        find(cells, row, column).map(|(cell, _)| cell.change.throughput_ratio)
    };
    heat_map(
        (format!("throughput-{}", grouping.id()), "Throughput, phases over stay"),
        format!("{}: above 1, phases finishes more work in the same time.", capital(grouping)),
        "Throughput ratio",
        ratios,
        figure,
    )
}

fn speedup_matrix(
    grouping: Grouping,
    policy: &str,
    pick: Pick,
    cells: &[&PhasesCell],
    ratios: &[Ratio],
) -> Plot {
    let figure = |row: Ratio, column: Ratio| {
        find(cells, row, column).map(|(cell, slot)| pick(cell).speedup[slot])
    };
    let title = format!("Speedup under {policy}");
    heat_map(
        (format!("speedup-{policy}-{}", grouping.id()), &title),
        format!(
            "{}: speedup of the row's program co-running with the column's.",
            capital(grouping)
        ),
        "Speedup",
        ratios,
        figure,
    )
}

/// The cell of two programs, and the slot of the first.
fn find<'a>(
    cells: &[&'a PhasesCell],
    row: Ratio,
    column: Ratio,
) -> Option<(&'a PhasesCell, usize)> {
    cells.iter().find_map(|cell| match cell.ratios {
        [a, b] if (a, b) == (row, column) => Some((*cell, 0)),
        [a, b] if (b, a) == (row, column) => Some((*cell, 1)),
        _ => None,
    })
}

fn heat_map(
    (id, title): (String, &str),
    caption: String,
    what: &str,
    ratios: &[Ratio],
    figure: impl Fn(Ratio, Ratio) -> Option<Estimate>,
) -> Plot {
    let names: Vec<String> = ratios.iter().copied().map(label).collect();
    let chart = Matrix {
        row: "Program".to_owned(),
        column: "Co-runner".to_owned(),
        rows: names.clone(),
        columns: names,
        cells: ratios
            .iter()
            .map(|row| ratios.iter().map(|column| figure(*row, *column)).collect())
            .collect(),
        label: what.to_owned(),
        unit: None,
        neutral: 1.0,
    };
    Plot::new(id, title, caption, Chart::Matrix(chart))
}

fn capital(grouping: Grouping) -> &'static str {
    match grouping {
        Grouping::OneSession => "All programs in one session",
        Grouping::OwnSessions => "Each program in a session of its own",
    }
}
