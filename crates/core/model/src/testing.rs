//! Helpers of tests.

use std::collections::BTreeMap;

use symbiont_counters::catalogue::Catalogue;
use symbiont_topology::CoreKind;

use crate::{
    Coefficients, Components, Fit, Holdout, Model, Score, SmtMode, SmtModel, Terms, Throttling,
    TrainedMode, Training,
};

/// A model of pairs on the paper's machine.
pub(crate) fn model() -> Model {
    let catalogue = Catalogue::named("power8").unwrap().unwrap();
    let components = Components::of(&catalogue, "cpi_stack").unwrap();
    let terms = |delta| {
        let part = |at: usize, of: usize| (at % of) as f64 / of as f64;
        let term = |at| Terms {
            alpha: 0.01 + 0.02 * part(at, 3),
            beta: 0.95 + 0.15 * part(at, 2),
            gamma: 0.05 + 0.15 * part(at, 4),
            delta: delta * (1.0 - 0.5 * part(at, 5)),
        };
        Coefficients::new((0..components.len()).map(term).collect()).unwrap()
    };
    let model = SmtModel::new(1.3, terms(0.0), terms(0.4)).unwrap();
    let errors =
        vec![Terms { alpha: 0.01, beta: 0.02, gamma: 0.03, delta: 0.04 }; components.len()];
    let score = |of: &str, predicts: &str, mean_absolute| Score {
        of: of.into(),
        predicts: predicts.into(),
        holdout: Holdout::Programs,
        count: 120,
        mean_absolute,
        within: 0.75,
    };
    let trained = TrainedMode {
        fit: Fit { model, linear_errors: errors.clone(), delta_errors: errors, observed: 120 },
        throttling: Some(Throttling { weights: vec![1.1; components.len()], error: 0.03 }),
        scores: vec![score("delta", "slowdown", 0.04), score("normalised", "cpi_stall", 0.08)],
    };
    Model {
        machine: "IBM Power System S812L".into(),
        core: CoreKind::Performance,
        catalogue: catalogue.name().into(),
        components,
        training: Training {
            date: "2026-01-02T03:04:05Z".into(),
            programs: ["gcc", "mcf"].map(String::from).into(),
            quantum_ms: 100,
            note: String::new(),
        },
        modes: BTreeMap::from([(SmtMode::Smt2, trained)]),
    }
}

/// Equal but for rounding.
pub(crate) fn close(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-9
}
