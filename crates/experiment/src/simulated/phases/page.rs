//! From figures to a report.

use symbiont_synth::Ratio;

use super::checks::checks;
use super::evaluate::{Departures, Evaluation, Matrix, Point};
use super::plan::{CORES, MACHINES};
use crate::harness::Check;
use crate::phases::evaluate::label;
use crate::phases::plan::POLICIES;
use crate::published::phases as published;
use crate::report::{
    Axis, Block, Chart, Column, Line, Lines, Matrix as MatrixChart, Plot, Report, Table,
};
use crate::simulated::Provenance;
use crate::stats::{Estimate, mean};

/// The report, without facts. `machines`: what each of them rests on.
#[must_use]
pub fn page(evaluation: &Evaluation, machines: &[Provenance]) -> Report {
    let mut report = Report::new(
        "Serial phases first, simulated on eight cores",
        "The experiments of Morad et al. on simulated machines, beside the published figures",
    );
    report.push(Block::Warning("Simulated: nothing of this was measured on hardware.".to_owned()));
    for from in machines {
        report.fact(
            format!("Machine {}", from.machine),
            format!(
                "{}; {}; {} of its {} values are assumed",
                from.title, from.checked, from.assumed, from.values
            ),
        );
    }
    report.push(Block::Prose(format!(
        "Published figures: {}, on {}.",
        published::CITATION,
        published::CONDITIONS
    )));
    report.push(Check::table(&checks(evaluation)));
    for (machine, (name, _)) in MACHINES.iter().enumerate() {
        report.push(Block::Heading((*name).to_owned()));
        let points: Vec<&Point> =
            evaluation.points.iter().filter(|point| point.machine == machine).collect();
        if !points.is_empty() {
            for policy in [0, 1] {
                report.push(by_cores(name, policy, &points));
            }
            report.push(points_table(name, &points));
        }
        if let Some(matrix) = evaluation.matrices.get(machine) {
            report.push(gains(name, matrix));
            report.push(cells(name, machine, matrix));
        }
        report.push(orders(name, machine, evaluation));
    }
    report.push(Block::Heading("Both machines".to_owned()));
    report.push(summary(evaluation));
    report
}

/// Fig. 6 or 7.
fn by_cores(name: &str, policy: usize, points: &[&Point]) -> Plot {
    let x = Axis::new("Cores").range(2.0, f64::from(CORES));
    let y = Axis::new("Performance of the serial program").unit("threads on a small core");
    let measured = Line {
        name: format!("simulated, {}", POLICIES[policy]),
        points: points.iter().map(|p| (f64::from(p.cores), p.performance[policy])).collect(),
        band: Vec::new(),
    };
    let model = Line {
        name: "model (average; least to most shaded)".to_owned(),
        points: (points.iter())
            .map(|p| (f64::from(p.cores), Estimate::exact(p.model[policy].1)))
            .collect(),
        band: (points.iter())
            .map(|p| (f64::from(p.cores), p.model[policy].0, p.model[policy].2))
            .collect(),
    };
    let figure = ["Fig. 6", "Fig. 7"][policy];
    Plot::new(
        format!("cores-{name}-{}", POLICIES[policy]),
        format!("A serial program beside a parallel one under {} ({figure})", POLICIES[policy]),
        "",
        Chart::Lines(Lines { x, y, series: vec![measured, model] }),
    )
}

fn points_table(name: &str, points: &[&Point]) -> Table {
    let columns = vec![
        Column::number("Cores"),
        Column::text("Policy"),
        Column::number("Performance").unit("threads on a small core"),
        Column::number("Least run"),
        Column::number("Most"),
        Column::number("Model"),
        Column::number("Model, least"),
        Column::number("Model, most"),
        Column::number("Jitter × 1000"),
    ];
    let caption = format!("{name}: the serial program beside a parallel one (Fig. 6 and 7)");
    let mut table = Table::new(format!("by-cores-{name}"), caption, columns);
    for point in points {
        for (at, policy) in POLICIES.into_iter().enumerate() {
            let ((least, most), model) = (point.range[at], point.model[at]);
            table.row(vec![
                u64::from(point.cores).into(),
                policy.into(),
                point.performance[at].into(),
                least.into(),
                most.into(),
                model.1.into(),
                model.0.into(),
                model.2.into(),
                (1e3 * point.jitter[at]).into(),
            ]);
        }
    }
    table
}

/// As in the paper's tables.
pub(super) fn published_label(ratio: Ratio) -> String {
    ratio.to_string().replace("inf", "∞")
}

/// Table 4 or Fig. 8.
fn gains(name: &str, matrix: &Matrix) -> Plot {
    let mut ratios: Vec<Ratio> = Vec::new();
    for cell in &matrix.cells {
        if !ratios.contains(&cell.ratios[1]) {
            ratios.push(cell.ratios[1]);
        }
    }
    let names: Vec<String> = ratios.iter().map(|ratio| label(*ratio)).collect();
    let find = |row: &Ratio, column: &Ratio| {
        let cell = matrix.cells.iter().find(|cell| cell.ratios == [*column, *row])?;
        Some(cell.figures.gain.percent())
    };
    let row = |row: &Ratio| ratios.iter().map(|column| find(row, column)).collect();
    Plot::new(
        format!("gain-{name}"),
        format!("{name}: gain in throughput of each pair (Table 4, Fig. 8)"),
        "",
        Chart::Matrix(MatrixChart {
            row: "program".to_owned(),
            column: "beside".to_owned(),
            rows: names.clone(),
            columns: names,
            cells: ratios.iter().map(row).collect(),
            label: "gain".to_owned(),
            unit: Some("%".to_owned()),
            neutral: 0.0,
        }),
    )
}

fn cells(name: &str, machine: usize, matrix: &Matrix) -> Table {
    let columns = vec![
        Column::text("Pair"),
        Column::number("Gain").unit("%"),
        Column::number("Published").unit("%"),
        Column::number("Model").unit("%"),
        Column::number("Fairness, stay"),
        Column::number("Fairness, phases"),
        Column::number("Fairness by Table 1"),
        Column::number("Fairness by Table 1 and sharing"),
        Column::number("Fairness by Table 3"),
        Column::number("Fairness by Table 3 and seniority"),
        Column::number("Fairness of runs, stay"),
        Column::number("Fairness of runs, phases"),
        Column::number("Jitter × 1000, stay"),
        Column::number("Jitter × 1000, phases"),
        Column::number("Idle, stay").unit("%"),
        Column::number("Idle, phases").unit("%"),
        Column::number("Sharing, stay"),
    ];
    let caption = format!("{name}: all pairs of programs");
    let mut table = Table::new(format!("pairs-{name}"), caption, columns);
    for cell in &matrix.cells {
        let [a, b] = cell.ratios.map(published_label);
        let printed = published::TABLE_4.percent(&a, &b).filter(|_| MACHINES[machine].1 > 1.0);
        let figures = &cell.figures;
        let mut row =
            vec![format!("{a} beside {b}").into(), figures.gain.percent().into(), printed.into()];
        row.push(cell.model.map(|model| 100.0 * model.gain).into());
        row.extend(figures.fairness.map(Into::into));
        let sharing = cell.model.and_then(|model| model.sharing);
        row.push(cell.model.map(|model| model.fairness[0]).into());
        row.push(sharing.map(|sharing| sharing.fairness).into());
        row.push(cell.model.map(|model| model.fairness[1]).into());
        row.push(cell.model.map(|model| model.with_seniority).into());
        row.extend(figures.run_fairness.map(Into::into));
        row.extend(figures.jitter.map(|jitter| (1e3 * jitter.value).into()));
        row.extend(figures.idle.map(|idle| (100.0 * idle.value).into()));
        row.push(sharing.map(|sharing| sharing.share).into());
        table.row(row);
    }
    table.note(format!(
        "Model: the chain of joint states with the speedups of Tables 1 and 3; fairness by these \
         tables: eq. 4 of the performances that it says, against what each program reached alone \
         here. The tables know no seniority, which prefers one of two parallel programs; the column \
         with seniority does, with the policy's boost and timeout and the mean lengths of phases, \
         but not that the policy sees a phase up to a quantum late. For all of them the OS takes any \
         core as likely, so that a serial thread beside a parallel program shares its core in 2/(n+1) \
         of that time; how often it did under stay, where cores are alike, is under \"sharing\", and \
         what Table 1 says with that beside it. {}Published: Table 4, of the asymmetric machine; \
         Fig. 8 (symmetric) has no numbers.",
        distances(matrix)
    ));
    table
}

/// How far fairness is from each prediction.
fn distances(matrix: &Matrix) -> String {
    let mean_of = |of: fn(&Departures) -> Option<f64>| {
        let departures = matrix.cells.iter().filter_map(Departures::of);
        mean(&departures.filter_map(|d| of(&d)).map(f64::abs).collect::<Vec<_>>())
    };
    let all = [
        mean_of(|d| Some(d.stay)),
        mean_of(|d| Some(d.phases)),
        mean_of(|d| Some(d.with_seniority)),
    ];
    let [Some(stay), Some(phases), Some(with_seniority)] = all else { return String::new() };
    let sharing = match mean_of(|d| d.with_sharing) {
        Some(left) => format!(" (and by {left:.3} from Table 1 with that sharing)"),
        None => String::new(),
    };
    format!(
        "Fairness departs, in the mean of absolute differences over the pairs, by {stay:.3} from \
         Table 1 under stay{sharing}, under phases by {phases:.3} from Table 3 and by \
         {with_seniority:.3} from Table 3 and seniority. "
    )
}

fn orders(name: &str, machine: usize, evaluation: &Evaluation) -> Table {
    let columns = vec![
        Column::text("Pair"),
        Column::number("Completion, stay over phases"),
        Column::number("Speedup of the first, stay"),
        Column::number("Speedup of the first, phases"),
        Column::number("Speedup of the second, stay"),
        Column::number("Speedup of the second, phases"),
        Column::number("Fairness, stay"),
        Column::number("Fairness, phases"),
    ];
    let caption = format!("{name}: both orders of two programs (Fig. 5, eq. 5)");
    let mut table = Table::new(format!("orders-{name}"), caption, columns);
    for pair in evaluation.ordered.iter().filter(|pair| pair.machine == machine) {
        let [a, b] = pair.ratios.map(published_label);
        let [stay, phases] = pair.compared.speedup;
        let mut row = vec![format!("{a} and {b}").into(), pair.compared.completion.into()];
        row.extend([stay[0], phases[0], stay[1], phases[1]].map(Into::into));
        row.extend(pair.compared.fairness.map(Into::into));
        table.row(row);
    }
    table
}

/// Published means of a machine: gain, then fairness, jitter and idle time under
/// each policy.
pub(super) fn published_means(machine: usize) -> (Option<f64>, [[Option<f64>; 2]; 3]) {
    let kind = if MACHINES[machine].1 > 1.0 { "asymmetric" } else { "symmetric" };
    let of = |row: published::Row| if machine == 0 { row.symmetric } else { row.asymmetric };
    let rows = [published::TABLE_5.baseline, published::TABLE_5.proposed].map(of);
    let idle = |which| published::headline(&format!("idle time, synthetic, {kind}, {which}"));
    let gain = published::headline(&format!("mean gain in throughput, synthetic, {kind}"));
    let idle = ["baseline", "proposed"].map(idle);
    (gain, [rows.map(|row| Some(row.fairness / 100.0)), rows.map(|row| Some(row.jitter)), idle])
}

/// Table 5 and the text of section 7.
fn summary(evaluation: &Evaluation) -> Table {
    let columns = vec![
        Column::text("Means over all pairs"),
        Column::number("Gain").unit("%"),
        Column::number("Fairness, stay"),
        Column::number("Fairness, phases"),
        Column::number("Fairness of runs, stay"),
        Column::number("Fairness of runs, phases"),
        Column::number("Jitter × 1000, stay"),
        Column::number("Jitter × 1000, phases"),
        Column::number("Idle, stay").unit("%"),
        Column::number("Idle, phases").unit("%"),
    ];
    let mut table = Table::new("summary", "Table 5 and section 7 beside ours", columns);
    for matrix in &evaluation.matrices {
        let (name, _) = MACHINES[matrix.machine];
        let mean = &matrix.mean;
        let mut row = vec![format!("{name}, simulated").into(), mean.gain.percent().into()];
        row.extend(mean.fairness.map(Into::into));
        row.extend(mean.run_fairness.map(Into::into));
        row.extend(mean.jitter.map(|jitter| jitter.times(1e3).into()));
        row.extend(mean.idle.map(|idle| idle.percent().into()));
        table.row(row);
        let (gain, rest) = published_means(matrix.machine);
        let mut row = vec![format!("{name}, published").into(), gain.into()];
        let [fairness, jitter, idle] = rest;
        // The paper does not say of which kind its fairness is.
        row.extend([fairness, fairness, jitter, idle].into_iter().flatten().map(Into::into));
        table.row(row);
    }
    table.note(
        "Fairness is eq. 4 of the mean speedups, or the mean of eq. 4 over the runs. The first \
         hides what chance does in each run, and by Tables 1 and 3 it falls: a serial program \
         beside a parallel one has n/(n+1) on average, as that has, and then 1 against (n−1)/n. The \
         paper does not say which of both its figures are; they stand under both.",
    );
    table
}
