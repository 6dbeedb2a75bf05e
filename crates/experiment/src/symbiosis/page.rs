//! From gains to a report.

use std::collections::BTreeSet;

use super::campaign::Record;
use super::checks::{Judged, checks};
use super::evaluate::{Control, Evaluation, Gain, Near, Wide};
use super::plan::{Case, Terms};
use crate::harness::Check;
use crate::report::{Axis, Block, Chart, Column, Line, Lines, Matrix, Plot, Report, Table};
use crate::stats::Estimate;

/// Mean gains in STP that the paper prints, of symbiotic over others on all core counts (section
/// 6.3); those of symbiotic-numa stand in a table ([`published`]).
const PUBLISHED: &str = "Published, SMT2, all core counts: symbiotic +8.9 % over random, \
                         +4.0 % over Linux, +3.4 % over l1-bandwidth; the oracle +1.2 % over \
                         symbiotic.";

/// Gain in STP of symbiotic-numa over another policy on 6 to 10 cores, in percent (section 6.3).
pub(super) fn published(width: usize, other: &str) -> Option<f64> {
    match (width, other) {
        (2, "symbiotic") => Some(1.3),
        (2, "l1-bandwidth") | (4, "stay") => Some(5.9),
        (2, "stay") => Some(6.7),
        (2, "random") => Some(13.5),
        (4, "symbiotic") => Some(5.3),
        (4, "random") => Some(16.2),
        _ => None,
    }
}

/// How intervals are to be read.
const DRAWN: &str = "means over workloads; intervals draw workloads and programs apart, since \
                     workloads share programs (Owen, The pigeonhole bootstrap, 2007)";

/// The report, without facts.
pub(super) fn page(evaluation: &Evaluation, records: &[Record], judged: Judged) -> Report {
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
    let checks = checks(evaluation, judged);
    if !checks.is_empty() {
        report.push(Check::table(&checks));
    }
    report.push(summary(evaluation));
    report.push(captured(evaluation));
    if !evaluation.controls.is_empty() {
        report.push(controls(evaluation));
    }
    if !evaluation.decisions.is_empty() {
        report.push(decisions(evaluation));
    }
    if !evaluation.near.is_empty() {
        report.push(near(evaluation));
    }
    if !evaluation.wide.is_empty() {
        report.push(wide(evaluation));
    }
    let widths: BTreeSet<usize> = evaluation.gains.iter().map(|gain| gain.width).collect();
    for width in widths {
        for (id, title, figure) in [
            ("stp", "Throughput over random", (|gain| gain.over.stp) as fn(&Gain) -> Estimate),
            ("antt", "Turnaround time over random", |gain| gain.over.antt),
        ] {
            if let Some(plot) = over_cores(evaluation, width, (id, title), figure) {
                report.push(plot);
            }
        }
    }
    let mut kept: Vec<&Record> =
        records.iter().filter(|record| !record.together.is_empty()).collect();
    kept.sort_by(|a, b| a.run.cmp(&b.run));
    for record in kept {
        report.push(company(record));
    }
    report.push(Block::Prose(PUBLISHED.to_owned()));
    report
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
            gain.over.stp.percent().into(),
            gain.over.antt.percent().into(),
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

fn near(evaluation: &Evaluation) -> Table {
    let columns = vec![
        Column::text("threads per core"),
        Column::text("over"),
        Column::number("STP").unit("%"),
        Column::number("STP, published").unit("%"),
        Column::number("ANTT").unit("%"),
    ];
    let caption = "Gain of symbiotic-numa where cores of both nodes are used, simulated";
    let mut table = Table::new("near-memory", caption, columns);
    for Near { width, other, over } in &evaluation.near {
        table.row(vec![
            width.to_string().into(),
            (*other).into(),
            over.stp.percent().into(),
            published(*width, other).into(),
            over.antt.percent().into(),
        ]);
    }
    table.note("stay: the simulated OS, which places by memory too; published: Linux");
    table.note(DRAWN);
    table
}

fn wide(evaluation: &Evaluation) -> Table {
    let columns = vec![
        Column::text("cores"),
        Column::number("STP").unit("%"),
        Column::number("STP, published").unit("%"),
        Column::number("ANTT").unit("%"),
    ];
    let caption = "SMT8 over SMT4 under the OS, eight programs for each core, simulated";
    let mut table = Table::new("smt8", caption, columns);
    for Wide { cores, over } in &evaluation.wide {
        let published = [(4, 0.9), (10, -7.8)].into_iter().find(|(of, _)| of == cores);
        table.row(vec![
            cores.to_string().into(),
            over.stp.percent().into(),
            published.map(|(_, percent)| percent).into(),
            over.antt.percent().into(),
        ]);
    }
    table.note("SMT4: the same programs take turns on four hardware threads of each core");
    table.note("published: Linux, ten workloads of SPEC CPU2006 (section 5)");
    table.note(DRAWN);
    table
}

/// The paper's figures 9 and 10.
fn company(record: &Record) -> Plot {
    let share = |one: usize, other: usize, share: f64| {
        (one != other).then(|| Estimate::exact(share * 100.0))
    };
    let row = |(one, shares): (usize, &Vec<f64>)| {
        shares.iter().enumerate().map(|(other, part)| share(one, other, *part)).collect()
    };
    let chart = Matrix {
        row: "program".to_owned(),
        column: "on one core with".to_owned(),
        rows: record.programs.clone(),
        columns: record.programs.clone(),
        cells: record.together.iter().enumerate().map(row).collect(),
        label: "Quanta".to_owned(),
        unit: Some("%".to_owned()),
        neutral: 0.0,
    };
    let Case { width, cores, number } = &record.run.case;
    Plot::new(
        format!("company-smt{width}-{cores}-{number}"),
        format!("Who shares a core, {cores} cores with {width} threads each, workload {number}"),
        "Share of quanta in which symbiotic put two programs on one core (the paper's figures 9 and \
         10), simulated.",
        Chart::Matrix(chart),
    )
}

fn terms(terms: Terms) -> &'static str {
    match terms {
        Terms::Plain => "as they are",
        Terms::Free => "moves free",
        Terms::Exchanged => "moves free, nothing recalled, measurements exchanged for good",
        Terms::Shuffled => "moves free, nothing recalled, measurements exchanged anew each quantum",
        Terms::Private => "moves free, execution units and caches private to each thread",
        Terms::Late => "programs run on where they are",
        Terms::Reserved => "the last core reserved, the OS runs programs on the others",
        Terms::Narrow => "half of the hardware threads of each core",
    }
}

/// A row for each of some contrasts of the controlled policy.
fn by_terms(
    (id, caption): (&str, &str),
    (terms_are, over): (&str, &str),
    rows: &[Control],
) -> Table {
    let columns = vec![
        Column::text("threads per core"),
        Column::text(terms_are),
        Column::number(format!("STP{over}")).unit("%"),
        Column::number(format!("ANTT{over}")).unit("%"),
        Column::number("moves per quantum"),
    ];
    let mut table = Table::new(id, caption, columns);
    for control in rows {
        table.row(vec![
            control.width.to_string().into(),
            terms(control.terms).into(),
            control.over.stp.percent().into(),
            control.over.antt.percent().into(),
            control.over.moves.into(),
        ]);
    }
    table
}

fn decisions(evaluation: &Evaluation) -> Table {
    let caption = "symbiotic with decisions that take a millisecond, over decisions that take no time, \
                   simulated";
    let mut table = by_terms(("decisions", caption), ("meanwhile", ""), &evaluation.decisions);
    table.note(
        "what the decision itself takes from a hardware thread that is not reserved for it is not \
         simulated",
    );
    table.note(DRAWN);
    table
}

fn controls(evaluation: &Evaluation) -> Table {
    let caption = "symbiotic and its negative controls on the same workloads, simulated";
    let heads = ("terms", " over random");
    let mut table = by_terms(("controls", caption), heads, &evaluation.controls);
    table.note("random under the same terms, except that it goes by no measurements");
    table.note(DRAWN);
    table
}

/// The paper's figures 7 and 8, and the like of them for other widths.
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
        let point = |gain: &&Gain| Some((gain.cores? as f64, figure(gain).percent()));
        Line { name: policy.to_owned(), points: own.filter_map(point).collect(), band: Vec::new() }
    };
    let series: Vec<Line> = policies.into_iter().map(line).collect();
    if series.is_empty() {
        return None;
    }
    let chart = Lines { x: Axis::new("Cores"), y: Axis::new(title).unit("%"), series };
    let title = format!("{title}, {width} threads per core (simulated)");
    let published = if [2, 4].contains(&width) { " (the paper's figures 7 and 8)" } else { "" };
    let caption = format!("Mean over the workloads of each count of cores{published}.");
    Some(Plot::new(format!("{id}-smt{width}"), title, caption, Chart::Lines(chart)))
}
