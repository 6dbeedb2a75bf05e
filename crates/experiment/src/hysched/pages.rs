//! The tables and charts of the report.

use super::evaluate::{Evaluation, Gain};
use super::plan::Contender;
use crate::published::hysched::{GAIN, L1_GAIN, TABLE_1, TABLE_2};
use crate::report::{Axis, Block, Chart, Column, Dots, Mark, Matrix, Plot, Report, Series, Table};
use crate::stats::Estimate;

/// The policy's name for the share of changed categories.
pub(super) const CHANGED: &str = "threads whose category changed, per quantum";

/// Adds all of them.
pub(super) fn push(report: &mut Report, evaluation: &Evaluation) {
    report.push(Block::Heading("The premise (section 4.1)".to_owned()));
    report.push(premise(evaluation));
    if let Some(plot) = pairs(evaluation) {
        report.push(plot);
    }
    report.push(Block::Heading("Programs by themselves (Fig. 1)".to_owned()));
    report.push(alone(evaluation));
    report.push(Block::Heading("Pinned for good (Table 1)".to_owned()));
    report.push(pinned(evaluation));
    report.push(Block::Heading("Mixes of eight programs (Fig. 2)".to_owned()));
    if let Some(plot) = gains(evaluation) {
        report.push(plot);
    }
    report.push(means(evaluation));
    report.push(mixes(evaluation));
    report.push(order(evaluation));
    report.push(Block::Heading("Pairs made (Table 2)".to_owned()));
    report.push(made(evaluation));
    report.push(Block::Heading("Changes of category (section 6.1)".to_owned()));
    report.push(changes(evaluation));
}

fn premise(evaluation: &Evaluation) -> Table {
    let columns = vec![
        Column::text("Categories"),
        Column::number("STP, different categories"),
        Column::number("STP, one category"),
        Column::number("Difference"),
        Column::number("STP, two copies"),
    ];
    let mut table = Table::new("premise", "STP of two programs on one core (simulated)", columns);
    for premise in &evaluation.premises {
        table.row(vec![
            premise.variant.to_string().into(),
            premise.different.into(),
            premise.same.into(),
            premise.difference.into(),
            premise.copies.into(),
        ]);
    }
    table.note(
        "A program's category is the dominant one of its run alone. Two copies of one program are \
         in neither column. Pairs share programs: intervals draw programs, not pairs.",
    );
    table
}

fn pairs(evaluation: &Evaluation) -> Option<Plot> {
    let mut names: Vec<String> = evaluation.alone.keys().cloned().collect();
    names.retain(|name| evaluation.pairs.keys().any(|(one, _)| one == name));
    let stp = |one: &String, other: &String| {
        let key = |a: &String, b: &String| evaluation.pairs.get(&(a.clone(), b.clone())).copied();
        key(one, other).or_else(|| key(other, one)).map(Estimate::exact)
    };
    let row = |one: &String| names.iter().map(|other| stp(one, other)).collect();
    let cells: Vec<Vec<Option<Estimate>>> = names.iter().map(row).collect();
    (names.len() > 1).then(|| {
        let chart = Matrix {
            row: "program".to_owned(),
            column: "beside".to_owned(),
            rows: names.clone(),
            columns: names.clone(),
            cells,
            label: "STP; 1: as one after the other".to_owned(),
            unit: None,
            neutral: 1.0,
        };
        Plot::new("pairs", "STP of all pairs on one core", "Simulated.", Chart::Matrix(chart))
    })
}

fn alone(evaluation: &Evaluation) -> Table {
    let columns = vec![
        Column::text("Program"),
        Column::number("IPC"),
        Column::text("TopL"),
        Column::text("TopB2L"),
        Column::text("TopB2M3L"),
        Column::text("All3L"),
        Column::text("Shares of slots (TopB2L), %"),
        Column::number("Changes, TopL").unit("%"),
        Column::number("Changes, TopB2M3L").unit("%"),
    ];
    let mut table =
        Table::new("alone", "Dominant categories of programs by themselves (simulated)", columns);
    for (program, alone) in &evaluation.alone {
        let seen = |variant: &str| alone.seen.get(variant);
        let category =
            |variant| seen(variant).and_then(|seen| seen.category()).unwrap_or("–").to_owned();
        let shares = seen("TopB2L").map_or_else(String::new, |seen| {
            let told = |(name, share): &(String, f64)| format!("{name} {:.0}", 100.0 * share);
            seen.shares.iter().map(told).collect::<Vec<_>>().join(", ")
        });
        let changes = |variant| seen(variant).map(|seen| 100.0 * seen.changes);
        table.row(vec![
            program.clone().into(),
            alone.ipc.into(),
            category("TopL").into(),
            category("TopB2L").into(),
            category("TopB2M3L").into(),
            category("All3L").into(),
            shares.into(),
            changes("TopL").into(),
            changes("TopB2M3L").into(),
        ]);
    }
    table
}

fn pinned(evaluation: &Evaluation) -> Table {
    let columns = vec![
        Column::text("Mix"),
        Column::text("Core 0 | core 1 in the paper"),
        Column::number("Pinned"),
        Column::number("OS"),
        Column::number("Pinned, published"),
        Column::number("Linux, published"),
    ];
    let mut table = Table::new("table-1", "STP of four programs on two cores (simulated)", columns);
    for (name, own, os) in &evaluation.pinned {
        let published = TABLE_1.iter().find(|mix| mix.name == name);
        let cores = published.map(|mix| mix.cores.map(|core| core.join(", ")).join(" | "));
        table.row(vec![
            name.clone().into(),
            cores.unwrap_or_default().into(),
            (*own).into(),
            (*os).into(),
            published.map(|mix| mix.pinned).into(),
            published.map(|mix| mix.linux).into(),
        ]);
    }
    table.note(
        "Counterparts stand for the paper's programs. c: combined, s: two copies of one program on \
         a core. The simulated OS moves nobody while all hardware threads are busy, so its two \
         rows of a mix differ by chance alone.",
    );
    table
}

fn name(gain: &Gain) -> String {
    if gain.private {
        format!("{}, all private", gain.contender)
    } else {
        gain.contender.to_string()
    }
}

/// What was published of a contender, %.
fn published(gain: &Gain) -> Option<f64> {
    match gain.contender {
        Contender::Hysched(super::plan::BEST) if !gain.private => Some(GAIN.value),
        Contender::L1Bandwidth => Some(L1_GAIN.value),
        _ => None,
    }
}

fn gains(evaluation: &Evaluation) -> Option<Plot> {
    let all: Vec<&Gain> = evaluation.gains.iter().filter(|gain| gain.mean.is_some()).collect();
    (!all.is_empty()).then(|| {
        let chart = Dots {
            mark: Mark::Dot,
            axis: Axis::new("gain in STP over the OS").unit("%"),
            category: "policy".to_owned(),
            categories: all.iter().map(|gain| name(gain)).collect(),
            series: vec![Series {
                name: "mean over the mixes (simulated)".to_owned(),
                values: all.iter().map(|gain| gain.mean.map(Estimate::percent)).collect(),
                references: all.iter().map(|gain| published(gain)).collect(),
            }],
            reference: Some("published".to_owned()),
        };
        let caption = "Simulated; intervals over the mixes.";
        Plot::new("figure-2-means", "Gain over the OS", caption, Chart::Dots(chart))
    })
}

fn means(evaluation: &Evaluation) -> Table {
    let columns = vec![
        Column::text("Policy"),
        Column::number("Gain over the OS, mean over the mixes").unit("%"),
        Column::number("Published").unit("%"),
        Column::number("Headroom captured"),
        Column::number("Mixes worse than the OS"),
    ];
    let mut table = Table::new("figure-2", "Gain in STP over the OS (simulated)", columns);
    for gain in &evaluation.gains {
        table.row(vec![
            name(gain).into(),
            gain.mean.map(Estimate::percent).into(),
            published(gain).into(),
            gain.captured.into(),
            (gain.worse as u64).into(),
        ]);
    }
    table.note(
        "Headroom captured: (STP − STP of random) / (STP of exact matching − STP of random), mean \
         over the mixes in which matching gains. Exact matching knows the measured STP of all \
         pairs beforehand, but not that programs change. \"Exchanged\" and \"all private\" are \
         negative controls.",
    );
    table
}

fn mixes(evaluation: &Evaluation) -> Table {
    let names = evaluation.gains.iter().map(|gain| Column::number(name(gain)).unit("%"));
    let columns = std::iter::once(Column::text("Mix")).chain(names).collect();
    let caption = "Gain in STP over the OS by mix (simulated)";
    let mut table = Table::new("figure-2-mixes", caption, columns);
    for (at, mix) in evaluation.mixes.iter().enumerate() {
        let of = |gain: &Gain| gain.mixes.get(at).copied().flatten().map(Estimate::percent).into();
        let cells = evaluation.gains.iter().map(of);
        table.row(std::iter::once(mix.clone().into()).chain(cells).collect());
    }
    table.note("Runs of one start are compared with each other; intervals over the starts.");
    table
}

fn order(evaluation: &Evaluation) -> Block {
    let told = |spread: Option<Estimate>| {
        spread.map_or("unknown".to_owned(), |s| format!("{:.2} %", 100.0 * s.value))
    };
    let [os, best] = evaluation.order;
    Block::Note(format!(
        "Reading order: where all programs start at once and only the order differs in which the \
         OS reads them, STP deviates by {} (standard deviation, mean over the mixes) under the \
         OS, by {} under TopB2M3L. The largest difference that the order makes to a mix under the \
         OS is {}.",
        told(os),
        told(best),
        evaluation.order_most.map_or("unknown".to_owned(), |m| format!("{:.1} %", 100.0 * m)),
    ))
}

fn made(evaluation: &Evaluation) -> Table {
    let columns = vec![
        Column::text("Categories of the pair"),
        Column::number(format!("In {}", evaluation.shown)).unit("%"),
        Column::number("In all mixes").unit("%"),
    ];
    let caption = "Pairs made under TopB2M3L, by the categories of both (simulated)";
    let mut table = Table::new("table-2", caption, columns);
    let [one, all] = &evaluation.categories;
    for (pair, share) in all {
        let here = one.get(pair).copied().unwrap_or(0.0);
        table.row(vec![
            format!("{} with {}", pair.0, pair.1).into(),
            (100.0 * here).into(),
            (100.0 * share).into(),
        ]);
    }
    let printed = TABLE_2.iter().filter(|(.., percent)| *percent > 0.0);
    let printed = printed.map(|(a, b, percent)| format!("{a} with {b} {percent}"));
    table.note(format!(
        "Published for wk10, which holds other programs: {}.",
        printed.collect::<Vec<_>>().join(", ")
    ));
    table
}

fn changes(evaluation: &Evaluation) -> Table {
    let columns = vec![
        Column::text("Policy"),
        Column::number("Threads that change, per quantum").unit("%"),
        Column::number("Pairs of one category").unit("%"),
        Column::number("The fewest possible").unit("%"),
        Column::number("Gain over the OS").unit("%"),
    ];
    let mut table = Table::new("changes", "Changes of the dominant category (simulated)", columns);
    for (contender, found) in &evaluation.findings {
        let value = |name: &str| found.get(name).copied().map(Estimate::percent);
        let gain = evaluation.gains.iter().find(|g| g.contender == *contender && !g.private);
        table.row(vec![
            contender.to_string().into(),
            value(CHANGED).into(),
            value("pairs of one category").into(),
            value("pairs of one category, the fewest possible").into(),
            gain.and_then(|gain| gain.mean.map(Estimate::percent)).into(),
        ]);
    }
    table.note("Published: around 40 % of quanta with nine categories or more.");
    table
}
