//! From gains to a report.

use super::evaluate::{Evaluation, Gain};
use super::plan::Terms;
use crate::report::{Axis, Block, Chart, Column, Line, Lines, Plot, Report, Table};
use crate::stats::Estimate;

/// Mean gains in STP that the paper prints, in percent: over random on all core
/// counts (symbiotic, section 6.3), and of symbiotic-numa on 6 to 10 cores over
/// symbiotic, Linux and random.
const PUBLISHED: [&str; 2] = [
    "Published, SMT2: symbiotic +8.9 % over random on all core counts; symbiotic-numa on 6 to 10 cores \
     +1.3 % over symbiotic, +6.7 % over Linux, +13.5 % over random; the oracle +1.2 % over symbiotic.",
    "Published, SMT4: symbiotic-numa on 6 to 10 cores +5.3 % over symbiotic, +5.9 % over Linux, \
     +16.2 % over random.",
];

/// How intervals are to be read.
const DRAWN: &str = "means over workloads; intervals draw workloads and programs apart, since workloads \
                     share programs (Owen, The pigeonhole bootstrap, 2007)";

/// The report, without facts.
pub(super) fn page(evaluation: &Evaluation) -> Report {
    let mut report = Report::new(
        "Symbiotic scheduling, simulated",
        "Throughput and turnaround of workloads under several policies, over random placement",
    );
    report.push(Block::Warning(
        "Nothing of this was measured on hardware: it rests on a description of the machine and on \
         profiles of x86-64 programs."
            .to_owned(),
    ));
    if evaluation.unfinished > 0 {
        report.push(Block::Note(format!(
            "{} repeats did not end in time and are left out.",
            evaluation.unfinished
        )));
    }
    report.push(summary(evaluation));
    report.push(captured(evaluation));
    if !evaluation.controls.is_empty() {
        report.push(controls(evaluation));
    }
    for width in [2, 4] {
        for (id, title, figure) in [
            ("stp", "Throughput over random", (|gain| gain.over.stp) as fn(&Gain) -> Estimate),
            ("antt", "Turnaround time over random", |gain| gain.over.antt),
        ] {
            if let Some(plot) = over_cores(evaluation, width, (id, title), figure) {
                report.push(plot);
            }
        }
    }
    for text in PUBLISHED {
        report.push(Block::Prose(text.to_owned()));
    }
    report
}

/// In percent.
fn percent(estimate: &Estimate) -> Estimate {
    let mut percent = *estimate;
    percent.value *= 100.0;
    if let Some(interval) = &mut percent.interval {
        interval.low *= 100.0;
        interval.high *= 100.0;
    }
    percent
}

fn summary(evaluation: &Evaluation) -> Table {
    let columns = vec![
        Column::text("threads per core"),
        Column::text("cores"),
        Column::text("policy"),
        Column::number("STP over random").unit("%"),
        Column::number("ANTT over random").unit("%"),
        Column::number("moves per quantum"),
    ];
    let mut table = Table::new("summary", "Gains over random placement, simulated", columns);
    for gain in &evaluation.gains {
        let cores = gain.cores.map_or("all".to_owned(), |cores| cores.to_string());
        table.row(vec![
            gain.width.to_string().into(),
            cores.into(),
            gain.policy.as_str().into(),
            percent(&gain.over.stp).into(),
            percent(&gain.over.antt).into(),
            gain.over.moves.into(),
        ]);
    }
    table.note(DRAWN);
    table
}

fn captured(evaluation: &Evaluation) -> Table {
    let columns = vec![Column::text("policy"), Column::number("headroom captured")];
    let caption = "Share of the oracle's gain over random, two programs per core, simulated";
    let mut table = Table::new("captured", caption, columns);
    for captured in &evaluation.captured {
        table.row(vec![captured.policy.as_str().into(), captured.share.into()]);
    }
    table.note(DRAWN);
    table
}

fn controls(evaluation: &Evaluation) -> Table {
    let columns = vec![
        Column::text("threads per core"),
        Column::text("terms"),
        Column::number("STP over random").unit("%"),
        Column::number("ANTT over random").unit("%"),
        Column::number("moves per quantum"),
    ];
    let caption = "symbiotic and its negative controls on the same workloads, simulated";
    let mut table = Table::new("controls", caption, columns);
    for control in &evaluation.controls {
        let terms = match control.terms {
            Terms::Plain => "as they are",
            Terms::Exchanged => "measurements exchanged between programs",
            Terms::Private => "execution units and caches private to each thread",
        };
        table.row(vec![
            control.width.to_string().into(),
            terms.into(),
            percent(&control.over.stp).into(),
            percent(&control.over.antt).into(),
            control.over.moves.into(),
        ]);
    }
    table.note(
        "random under the same terms, except that it goes by no measurements; it moves threads every \
         quantum, which costs it something whatever the terms",
    );
    table.note(DRAWN);
    table
}

/// The paper's figures 7 and 8.
fn over_cores(
    evaluation: &Evaluation,
    width: usize,
    (id, title): (&str, &str),
    figure: fn(&Gain) -> Estimate,
) -> Option<Plot> {
    let of_width = |gain: &&Gain| gain.width == width && gain.cores.is_some();
    let gains: Vec<&Gain> = evaluation.gains.iter().filter(of_width).collect();
    let mut policies: Vec<&str> = gains.iter().map(|gain| gain.policy.as_str()).collect();
    policies.sort_unstable();
    policies.dedup();
    let line = |policy: &str| {
        let own = gains.iter().filter(|gain| gain.policy == policy);
        let point = |gain: &&Gain| Some((gain.cores? as f64, percent(&figure(gain))));
        Line { name: policy.to_owned(), points: own.filter_map(point).collect(), band: Vec::new() }
    };
    let series: Vec<Line> = policies.into_iter().map(line).collect();
    if series.is_empty() {
        return None;
    }
    let chart = Lines { x: Axis::new("Cores"), y: Axis::new(title).unit("%"), series };
    let title = format!("{title}, {width} threads per core (simulated)");
    let caption = "Mean over the workloads of each count of cores (the paper's figures 7 and 8).";
    Some(Plot::new(format!("{id}-smt{width}"), title, caption, Chart::Lines(chart)))
}
