//! Tables and warnings of the report.

use super::{POLICY_OUTCOMES, Pick};
use crate::phases::checks::{is_better, is_worse};
use crate::phases::figures::{Alone, PhasesCell, ideal, label, used_alone};
use crate::phases::managers::Managers;
use crate::phases::plan::{Grouping, TRIED};
use crate::phases::prediction::Cpus;
use symbiont_report::published::morad as published;
use symbiont_report::stats::{self, Estimate};
use symbiont_report::{Cell as TableCell, Column, Highlight, Table};

/// Share of the ideal throughput below which a machine counts as disturbed.
const UNDISTURBED: f64 = 0.95;

/// A row for each program under each policy in each cell.
pub fn programs(id: &str, caption: &str, cells: &[&PhasesCell]) -> Table {
    let columns = vec![
        Column::text("Program"),
        Column::text("Sessions"),
        Column::text("Policy"),
        Column::number("Speedup"),
        Column::number("Model"),
        Column::number("Model, least"),
        Column::number("Model, most"),
        Column::number("Jitter"),
    ];
    let mut table = Table::new(id, caption, columns);
    for cell in cells {
        for (slot, other) in [(0, 1), (1, 0)] {
            for (policy, outcome) in cell.outcomes() {
                let range = outcome.prediction.and_then(|p| p.range).map(|range| range[slot]);
                let [program, co_runner] = [slot, other].map(|slot| label(cell.ratios[slot]));
                table.row(vec![
                    format!("{program} (with {co_runner})").into(),
                    cell.grouping.name().into(),
                    policy.into(),
                    outcome.speedup[slot].into(),
                    outcome.prediction.map(|p| p.speedup[slot]).into(),
                    range.map(|(least, _)| least).into(),
                    range.map(|(_, most)| most).into(),
                    outcome.jitter[slot].into(),
                ]);
            }
        }
    }
    table
}

/// A row for each pair under each policy.
pub fn pairs(id: &str, caption: &str, cells: &[&PhasesCell]) -> Table {
    let columns = vec![
        Column::text("Pair"),
        Column::text("Sessions"),
        Column::text("Policy"),
        Column::number("Fairness"),
        Column::number("Fairness, model"),
        Column::number("Throughput").unit("threads"),
        Column::number("Throughput, model").unit("threads"),
        Column::number("Change of throughput").unit("threads"),
        Column::number("Change of fairness"),
        Column::number("Idle").unit("%"),
    ];
    let mut table = Table::new(id, caption, columns);
    for cell in cells {
        for (policy, outcome) in cell.outcomes() {
            let tried = Some(&cell.change).filter(|_| policy == TRIED);
            let highlight = match policy {
                TRIED if is_worse(cell) => Highlight::Worse,
                TRIED if is_better(cell) => Highlight::Better,
                _ => Highlight::Plain,
            };
            table.row(vec![
                cell.name().into(),
                cell.grouping.name().into(),
                policy.into(),
                outcome.fairness.into(),
                outcome.prediction.map(|p| p.fairness).into(),
                outcome.throughput.into(),
                outcome.prediction.map(|p| p.throughput).into(),
                TableCell::from(tried.map(|change| change.throughput)).highlight(highlight),
                tried.map(|change| change.fairness).into(),
                outcome.idle.map(Estimate::percent).into(),
            ]);
        }
    }
    table.note(
        "The change is that of phases against stay (by round, Student's t); it stands out where its interval is \
         without zero. Idle is the CPU time that neither program used, of what is left to programs.",
    );
    table
}

/// Means over the cells of the matrix, next to the paper's of a machine of the same kind.
pub fn summary(matrix: &[&PhasesCell], cpus: Cpus) -> Table {
    let columns = vec![
        Column::text("Means over all pairs"),
        Column::number("Throughput, phases over stay"),
        Column::number("Fairness, stay"),
        Column::number("Fairness, phases"),
        Column::number("Jitter × 1000, stay"),
        Column::number("Jitter × 1000, phases"),
        Column::number("Idle, stay").unit("%"),
        Column::number("Idle, phases").unit("%"),
    ];
    let mut table = Table::new("summary", "The matrix in one line for each grouping", columns);
    for grouping in Grouping::ALL {
        let cells = || matrix.iter().filter(move |cell| cell.grouping == grouping);
        if cells().next().is_none() {
            continue;
        }
        let mean = |of: &dyn Fn(&PhasesCell) -> Option<f64>| -> TableCell {
            let values: Option<Vec<f64>> = cells().map(|cell| of(cell)).collect();
            values.and_then(|values| stats::mean(&values)).into()
        };
        let jitter = |pick: Pick| {
            mean(&|cell: &PhasesCell| {
                let [a, b] = pick(cell).jitter;
                Some(500.0 * (a?.value + b?.value))
            })
        };
        let idle = |pick: Pick| mean(&|cell: &PhasesCell| Some(100.0 * pick(cell).idle?.value));
        let [(_, stay), (_, phases)] = POLICY_OUTCOMES;
        table.row(vec![
            format!("here, {}", grouping.name()).into(),
            mean(&|cell| Some(cell.change.throughput_ratio.value)),
            mean(&|cell| Some(stay(cell).fairness.value)),
            mean(&|cell| Some(phases(cell).fairness.value)),
            jitter(stay),
            jitter(phases),
            idle(stay),
            idle(phases),
        ]);
    }
    let Some(kind) = published::kind(cpus.large) else { return table };
    let symmetric = kind == published::SYMMETRIC;
    let gain = published::headline(&format!("mean gain in throughput, synthetic, {kind}"));
    let idle =
        |which| published::headline(&format!("idle time, synthetic, {kind}, {which}")).into();
    let [stay, phases] = [published::TABLE_5.baseline, published::TABLE_5.proposed]
        .map(|row| if symmetric { row.symmetric } else { row.asymmetric });
    table.row(vec![
        format!("{}, {kind}", published::CITATION).into(),
        gain.map(|percent| 1.0 + percent / 100.0).into(),
        (stay.fairness / 100.0).into(),
        (phases.fairness / 100.0).into(),
        stay.jitter.into(),
        phases.jitter.into(),
        idle("baseline"),
        idle("proposed"),
    ]);
    table.note(format!(
        "The paper: section 7 and Table 5, {kind} machine, 45 pairs of nine ratios; {}. Its \
         jitter is of 60 s runs; short runs jitter more.",
        published::CONDITIONS
    ));
    table
}

/// A row for each program alone.
pub fn alone(programs: &[Alone], cpus: Cpus) -> Table {
    let columns = vec![
        Column::text("Program"),
        Column::text("Part"),
        Column::number("Throughput").unit("threads"),
        Column::number("Ideal").unit("threads"),
        Column::number("Jitter"),
    ];
    let mut table = Table::new("alone", "Each program by itself, not managed", columns);
    for program in programs {
        let part = program.part.id();
        table.row(vec![
            label(program.ratio).into(),
            part.into(),
            program.throughput.into(),
            ideal(program, cpus).into(),
            program.jitter.into(),
        ]);
    }
    table.note(
        "Ideal is what the ratio says for a machine that nothing else uses. The jitter is that of \
         the machine itself: no policy can be steadier.",
    );
    table
}

/// Says so if the machine was not the programs' own.
pub fn disturbed(programs: &[Alone], cpus: Cpus) -> Option<String> {
    let share = used_alone(programs, cpus).filter(|share| *share < UNDISTURBED)?;
    Some(format!(
        "A parallel program alone got only {:.0} % of what {} CPUs can do: something else used \
         the machine, or its CPUs do not add up (SMT, frequency limits). Speedups are relative to \
         runs alone, so they are as doubtful as those.",
        100.0 * share,
        cpus.count
    ))
}

/// A row for each policy.
pub fn managers(rows: &[Managers]) -> Table {
    let columns = vec![
        Column::text("Policy"),
        Column::number("Runs"),
        Column::number("Share of one CPU"),
        Column::number("Moves").unit("per s"),
        Column::number("Moves refused"),
        Column::number("Median lateness").unit("ms"),
        Column::number("Runs without moves"),
    ];
    let mut table = Table::new("managers", "What managing took, by policy", columns);
    for row in rows {
        table.row(vec![
            row.policy.clone().into(),
            row.runs.into(),
            row.cpu_share.into(),
            row.moves_per_s.into(),
            row.refused.into(),
            row.lateness_ms.into(),
            row.idle_runs.into(),
        ]);
    }
    table
}

/// What the managers complained about.
pub fn warnings(rows: &[Managers]) -> Vec<String> {
    let mut warnings = Vec::new();
    for row in rows {
        if row.policy == TRIED && row.idle_runs == row.runs {
            warnings.push(format!(
                "{} moved nothing in any run: these figures say nothing about it.",
                row.policy
            ));
        }
        warnings.extend(
            row.trouble.iter().map(|(text, runs)| format!("{}, {runs} runs: {text}", row.policy)),
        );
    }
    warnings
}
