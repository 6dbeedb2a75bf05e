//! Slowdowns of all pairs as matrices: measured, and next to it predicted.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use symbiont_model::Form;
use symbiont_training::{Predictor, Validation};

use symbiont_report::stats::Estimate;
use symbiont_report::{Chart, Matrix, Plot};

/// Measured and predicted slowdown of a victim co-running with another program.
type Cells = BTreeMap<(Arc<str>, Arc<str>), Cell>;

/// Measured, predicted.
type Cell = (f64, f64);

/// What of a cell is shown.
type Pick = fn(&Cell) -> f64;

/// The two matrices; each pair is predicted by a model that knows neither of its programs. Nothing
/// where no pairs ran.
pub(super) fn matrices(validation: &Validation, form: Form) -> Vec<Plot> {
    let cells = cells(validation, form);
    if cells.is_empty() {
        return Vec::new();
    }
    let kinds: [(&str, Pick); 2] = [("measured", |cell| cell.0), ("predicted", |cell| cell.1)];
    kinds.map(|(kind, of)| matrix(&cells, (kind, of), form)).into()
}

fn cells(validation: &Validation, form: Form) -> Cells {
    let mut cells = Cells::new();
    for fold in &validation.folds {
        let Some(tables) = fold.pairs(Predictor::Model(form)) else { continue };
        let alone = tables.programs.len() == 1;
        for ((victim, measured), predicted) in
            tables.programs.iter().zip(&tables.measured).zip(&tables.predicted)
        {
            let others = tables.programs.iter().zip(measured.iter().zip(predicted));
            // A program co-running with itself has a fold of its own.
            for (other, (measured, predicted)) in others.filter(|(o, _)| (*o == victim) == alone) {
                cells.insert((Arc::clone(victim), Arc::clone(other)), (*measured, *predicted));
            }
        }
    }
    cells
}

fn matrix(cells: &Cells, (kind, of): (&str, Pick), form: Form) -> Plot {
    let programs: BTreeSet<&Arc<str>> = cells.keys().flat_map(|(a, b)| [a, b]).collect();
    let cell = |victim: &Arc<str>, other: &Arc<str>| {
        let cell = cells.get(&(Arc::clone(victim), Arc::clone(other)));
        cell.map(|cell| Estimate::exact(of(cell)))
    };
    let row = |victim: &&Arc<str>| programs.iter().map(|other| cell(victim, other)).collect();
    let names: Vec<String> = programs.iter().map(ToString::to_string).collect();
    let chart = Matrix {
        row: "victim".to_owned(),
        column: "co-runner".to_owned(),
        rows: names.clone(),
        columns: names,
        cells: programs.iter().map(row).collect(),
        label: "Slowdown against throttled speed".to_owned(),
        unit: None,
        neutral: 1.0,
    };
    let caption = match kind {
        "measured" => "Means over the quanta of each pair.".to_owned(),
        _ => format!(
            "By form {}, from stacks measured alone; the model of each pair knows neither program.",
            form.name()
        ),
    };
    Plot::new(
        format!("pairs-{kind}"),
        format!("Slowdowns of all pairs, {kind}"),
        caption,
        Chart::Matrix(chart),
    )
}

#[cfg(test)]
mod tests {
    use symbiont_model::{Coefficients, Holdout, SmtMode};
    use symbiont_training::synthetic::World;
    use symbiont_training::{TrainingSet, Weighting};

    use super::*;

    #[test]
    fn each_pair_is_reported_both_ways() {
        let law = Coefficients::new(World::law(3, 0.5)).unwrap();
        let world = World::new(6, 1, law, 1);
        let mut groups = world.all_pairs();
        groups.push(vec![2, 2]);
        let observations = world.observe(&groups, 2, 1);
        let set = TrainingSet::new(SmtMode::Smt2, &observations, Weighting::Plain).unwrap();
        let validation = set.cross_validate(Holdout::Programs).unwrap();
        let plots = matrices(&validation, Form::Delta);
        assert_eq!(plots.len(), 2);
        let truth = world.pair_slowdowns();
        for plot in plots {
            let Chart::Matrix(matrix) = plot.chart else { panic!("a matrix") };
            let cell = |victim: usize, other: usize| matrix.cells[victim][other].unwrap().value;
            assert_eq!(matrix.rows.len(), 6);
            // The law has no noise, so what is predicted is what is measured.
            for (victim, other) in [(0, 1), (1, 0), (4, 2), (2, 2)] {
                assert!((cell(victim, other) - truth[victim][other]).abs() < 0.05);
            }
            assert_eq!(matrix.cells[3][3], None);
        }
    }
}
