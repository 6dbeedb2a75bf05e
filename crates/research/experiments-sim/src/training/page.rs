//! From a training to its report.

use symbiont_model::{Form, Inversion, Objective, SmtMode};
use symbiont_training::{BIN, Errors, Predictor, Validation};

use super::evaluate::{Evaluation, TrainingResult};
use super::gains::{CapturedGain, Stacks, of_stacks};
use super::heat;
use symbiont_report::stats::Estimate;
use symbiont_report::{Axis, Block, Cell, Chart, Column, Dots, Mark, Plot, Report, Series, Table};

/// Mean absolute relative error and share within ±5 %, of the slowdown and of
/// the inverse's completion stalls (Feliu et al., section 6.1).
fn published(mode: SmtMode) -> Option<[(f64, f64); 2]> {
    match mode {
        SmtMode::Smt2 => Some([(0.076, 0.45), (0.093, 0.47)]),
        SmtMode::Smt4 => Some([(0.115, 0.29), (0.151, 0.24)]),
        SmtMode::Smt8 => None,
    }
}

/// How intervals of shares of headroom are to be read.
const DRAWN: &str = "intervals draw workloads and programs apart, since workloads share programs \
                     (Owen, The pigeonhole bootstrap, 2007)";

/// The report, without facts.
pub(super) fn page(evaluated: &TrainingResult) -> Report {
    let machine = &evaluated.model.machine;
    let mut report = Report::new(
        format!("Interference model of {machine}"),
        "How well slowdowns on a shared core are predicted, of programs that were left out of training",
    );
    report.push(Block::Prose(
        "Errors are relative, per thread and quantum. Published figures are of another machine \
         and other programs (Feliu et al., section 6.1): they stand next to ours for orientation."
            .to_owned(),
    ));
    for (mode, evaluation) in &evaluated.modes {
        let names: Vec<&str> = evaluated.model.components.names().collect();
        report.push(Block::Heading(format!("Groups of {}", mode.threads())));
        report.push(Block::Prose(prose(evaluation)));
        report.push(slowdowns(*mode, evaluation));
        if !evaluation.captured.is_empty() {
            report.push(gains(*mode, evaluation));
            report.push(by_stacks(*mode, evaluation));
        }
        report.push(inverses(*mode, evaluation, &names));
        report.push(histograms(*mode, evaluation, &names));
        if *mode == SmtMode::Smt2 {
            heat::matrices(&evaluation.programs, Form::Delta)
                .into_iter()
                .for_each(|p| report.push(p));
        }
    }
    report
}

fn prose(evaluation: &Evaluation) -> String {
    let (idle, uncovered) = evaluation.left_out;
    let nops = match evaluation.nops.as_slice() {
        [] => "What processes of no-operations cost besides cannot be known here.".to_owned(),
        costs => format!(
            "Processes of no-operations in the other places cost it {:.1} % more on average, {:.1} % \
             at most (published: negligible).",
            costs.iter().sum::<f64>() / costs.len() as f64 * 100.0,
            costs.iter().copied().fold(f64::MIN, f64::max) * 100.0
        ),
    };
    format!(
        "{} quanta of groups. Left out: {idle} in which a thread slept or was not measured, \
         {uncovered} beyond the end of a run alone. Setting the core up for so many threads \
         makes a thread alone {:.3} times as slow on average. {nops}{}",
        evaluation.observations.len(),
        evaluation.throttled,
        unjudged(&evaluation.programs)
    )
}

/// How many sets of programs say nothing of the errors; nothing where all do.
fn unjudged(programs: &Validation) -> String {
    match programs.without_training {
        0 => String::new(),
        sets => format!(
            " Not judged: {sets} of {} sets of programs that ran together, as with their programs left \
             out no group remained to fit on.",
            sets + programs.folds.len()
        ),
    }
}

fn figures(errors: &Errors) -> [Option<f64>; 3] {
    let percent = |value: Option<f64>| value.map(|value| value * 100.0);
    [errors.mean_absolute(), errors.share_within(), errors.bias()].map(percent)
}

fn slowdowns(mode: SmtMode, evaluation: &Evaluation) -> Table {
    let percent = |name: &str| Column::number(name).unit("%");
    let columns = vec![
        Column::text("predictor"),
        percent("error, programs left out"),
        percent("within ±5 %"),
        percent("bias"),
        percent("error, combination left out"),
        percent("within ±5 %"),
    ];
    let mut table = Table::new(
        format!("{mode}-slowdown"),
        "Mean absolute error of the predicted slowdown",
        columns,
    );
    for predictor in Predictor::ALL {
        let [error, within, bias] = figures(&evaluation.programs.slowdown(predictor));
        let [known, known_within, _] = figures(&evaluation.combinations.slowdown(predictor));
        let name = predictor.name();
        table.row(vec![
            name.into(),
            error.into(),
            within.into(),
            bias.into(),
            known.into(),
            known_within.into(),
        ]);
    }
    let [error, within, bias] =
        figures(&evaluation.isolated.slowdown(Predictor::Model(Form::Delta)));
    let none = None::<f64>;
    table.row(vec![
        "delta, isolated stacks".into(),
        error.into(),
        within.into(),
        bias.into(),
        none.into(),
        none.into(),
    ]);
    if let Some([(error, within), _]) = published(mode) {
        let (none, percent) = (None::<f64>, |value: f64| (value * 100.0).into());
        table.row(vec![
            "published".into(),
            percent(error),
            percent(within),
            none.into(),
            none.into(),
            none.into(),
        ]);
    }
    table.note("from stacks measured alone, of the same quantum");
    table.note(
        "isolated stacks: of programs alone with the core undivided, and slowdowns against such runs, as \
         models before Feliu et al. had them (section 3.2); all others: throttled",
    );
    table.note("constant: the mean of the training set; victim-plus-aggressor: means of programs, of those that it knows");
    table
}

/// Low errors alone say nothing about which threads should share a core.
fn gains(mode: SmtMode, evaluation: &Evaluation) -> Table {
    let columns = vec![
        Column::text("predictor"),
        Column::text("objective"),
        Column::number("captured, programs left out"),
        Column::number("captured, programs known"),
        Column::number("captured, stacks shuffled"),
    ];
    let caption = "Share of the oracle's gain over random pairing, workloads of eight programs";
    let mut table = Table::new(format!("{mode}-captured"), caption, columns);
    let profiled = |captured: &&CapturedGain| captured.stacks == Stacks::Profiled;
    for captured in evaluation.captured.iter().filter(profiled) {
        table.row(vec![
            captured.predictor.name().into(),
            captured.objective.name().into(),
            captured.left_out.into(),
            captured.known.into(),
            captured.shuffled.into(),
        ]);
    }
    table.note("paired by stacks measured alone, rated by mean slowdowns against throttled speed");
    table.note(DRAWN);
    table.note(
        "stacks shuffled: programs left out, each predicted by another one's stack; a control",
    );
    table
}

/// What is left of it when stacks have to be inverted from co-running ones.
fn by_stacks(mode: SmtMode, evaluation: &Evaluation) -> Table {
    let mut columns = vec![Column::text("form")];
    for held_out in ["left out", "known"] {
        let named = |stacks: Stacks| Column::number(format!("{}, {held_out}", stacks.name()));
        columns.extend(Stacks::ALL.map(named));
    }
    let caption = "Share of the oracle's gain captured for STP, by where stacks come from";
    let mut table = Table::new(format!("{mode}-captured-by-stacks"), caption, columns);
    for predictor in Predictor::ALL.into_iter().filter(of_stacks) {
        let of = |stacks: Stacks, held_out: fn(&CapturedGain) -> Estimate| -> Cell {
            let wanted = |c: &&CapturedGain| {
                (c.predictor, c.stacks, c.objective) == (predictor, stacks, Objective::Stp)
            };
            evaluation.captured.iter().find(wanted).map(held_out).into()
        };
        let mut cells: Vec<Cell> = vec![predictor.name().into()];
        cells.extend(Stacks::ALL.map(|stacks| of(stacks, |captured| captured.left_out)));
        cells.extend(Stacks::ALL.map(|stacks| of(stacks, |captured| captured.known)));
        table.row(cells);
    }
    table.note(
        "profiled: measured alone; inverted: from random pairs, by the inverse that the policy uses; \
         normalised: from random pairs, as they are",
    );
    table.note("left out, known: of training");
    table.note(DRAWN);
    table
}

/// The component that the inverse is judged by: the largest.
fn judged(validation: &Validation, names: &[&str]) -> (usize, String) {
    let at = validation.largest_component();
    (at, names.get(at).copied().unwrap_or("?").to_owned())
}

fn inverses(mode: SmtMode, evaluation: &Evaluation, names: &[&str]) -> Table {
    let (at, name) = judged(&evaluation.programs, names);
    let percent = |name: &str| Column::number(name).unit("%");
    let columns =
        vec![Column::text("inverse"), percent("error"), percent("within ±5 %"), percent("bias")];
    let mut table = Table::new(
        format!("{mode}-inverse"),
        format!(
            "Error of {name}, the largest component, estimated from co-running stacks; programs left out"
        ),
        columns,
    );
    for inversion in Inversion::ALL {
        let [error, within, bias] = figures(&evaluation.programs.component(inversion, at));
        table.row(vec![inversion.name().into(), error.into(), within.into(), bias.into()]);
    }
    if let Some([_, (error, within)]) = published(mode) {
        let percent = |value: f64| (value * 100.0).into();
        let none = None::<f64>;
        table.row(vec![
            "published paper, of its completion stalls".into(),
            percent(error),
            percent(within),
            none.into(),
        ]);
    }
    table.note("normalised: the co-running stack as it is; published: as the paper inverts");
    table
}

/// The paper's figures 5 and 6.
fn histograms(mode: SmtMode, evaluation: &Evaluation, names: &[&str]) -> Plot {
    let (at, name) = judged(&evaluation.programs, names);
    let forward = evaluation.programs.slowdown(Predictor::Model(Form::Delta));
    let inverse = evaluation.programs.component(Inversion::Published, at);
    let categories = forward.histogram().map(|(edge, _)| {
        if edge.is_finite() {
            format!("{:+.0} %", (edge + BIN / 2.0) * 100.0)
        } else {
            "below".to_owned()
        }
    });
    let shares = |errors: &Errors| -> Vec<Option<Estimate>> {
        let all = errors.count().max(1) as f64;
        errors
            .histogram()
            .map(|(_, count)| Some(Estimate::exact(count as f64 / all * 100.0)))
            .collect()
    };
    let series = [
        ("slowdown, form delta".to_owned(), shares(&forward)),
        (format!("{name} by the published inverse"), shares(&inverse)),
    ];
    let chart = Dots {
        mark: Mark::Bar,
        axis: Axis::new("Share of predictions").unit("%"),
        category: "error".to_owned(),
        categories: categories.collect(),
        series: series
            .into_iter()
            .map(|(name, values)| Series { name, values, references: Vec::new() })
            .collect(),
        reference: None,
    };
    Plot::new(
        format!("{mode}-errors"),
        format!("Errors in groups of {}", mode.threads()),
        "Relative errors per thread and quantum, of programs that were left out, in bins of 5 % named by \
         their middle (the paper's figures 5 and 6).",
        Chart::Dots(chart),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_judged_is_reported() {
        let reported = |without_training| {
            let validation = |without_training| Validation { folds: Vec::new(), without_training };
            prose(&Evaluation {
                observations: Vec::new(),
                left_out: (0, 0),
                programs: validation(without_training),
                combinations: validation(0),
                isolated: validation(0),
                captured: Vec::new(),
                throttled: 1.0,
                nops: Vec::new(),
            })
        };
        assert!(reported(3).contains(" Not judged: 3 of 3 sets of programs"), "{}", reported(3));
        assert!(!reported(0).contains("Not judged"), "{}", reported(0));
    }
}
