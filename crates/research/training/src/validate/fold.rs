//! One fold: a model, and the observations that it has not seen.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use symbiont_model::{Form, Inversion, Shares, SmtModel};

use crate::baseline::Baseline;
use crate::observation::Case;
use crate::{Errors, Observation};

/// What predicts a slowdown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Predictor {
    /// A form of the model, from stacks measured alone.
    Model(Form),
    /// The mean slowdown of the training set.
    Constant,
    /// What the program suffers on average plus what the co-runners do on
    /// average.
    VictimPlusAggressor,
}

impl Predictor {
    /// All of them.
    pub const ALL: [Self; 4] = [
        Self::Model(Form::Linear),
        Self::Model(Form::Delta),
        Self::Constant,
        Self::VictimPlusAggressor,
    ];

    /// The name that files and reports use.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Model(form) => form.name(),
            Self::Constant => "constant",
            Self::VictimPlusAggressor => "victim-plus-aggressor",
        }
    }
}

/// Errors on one set of programs that was left out.
#[derive(Debug, Clone, PartialEq)]
pub struct Fold {
    /// The programs.
    pub programs: BTreeSet<Arc<str>>,
    /// The model that was fitted there.
    pub model: SmtModel,
    /// Errors of the slowdown per thread and quantum.
    pub slowdown: BTreeMap<Predictor, Errors>,
    /// Errors of the inverse, for each component of the throttled stack.
    pub components: BTreeMap<Inversion, Vec<Errors>>,
    /// Observations in which the inverse regularised, clamped or gave up.
    pub troubled: BTreeMap<Inversion, u64>,
    /// Sum of each component over all throttled stacks.
    pub(super) shares: Vec<f64>,
    pub(super) cases: BTreeMap<Case, CaseSums>,
}

/// Sums over all observations of a program among the same co-runners.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct CaseSums {
    count: f64,
    measured: f64,
    predicted: BTreeMap<Predictor, f64>,
    /// Throttled stacks, as inverses have them.
    inverted: BTreeMap<Inversion, Vec<f64>>,
}

impl CaseSums {
    /// Mean measured and predicted slowdown.
    pub(super) fn means(&self, predictor: Predictor) -> Option<(f64, f64)> {
        let predicted = self.predicted.get(&predictor)?;
        (self.count > 0.0).then(|| (self.measured / self.count, predicted / self.count))
    }
}

impl Fold {
    pub(super) fn new(programs: BTreeSet<Arc<str>>, model: SmtModel) -> Self {
        Self {
            programs,
            model,
            slowdown: BTreeMap::new(),
            components: BTreeMap::new(),
            troubled: BTreeMap::new(),
            shares: Vec::new(),
            cases: BTreeMap::new(),
        }
    }

    /// Predicts what was observed.
    pub(super) fn test(
        &mut self,
        model: &SmtModel,
        baseline: &Baseline,
        observation: &Observation,
    ) {
        let alone = observation.alone();
        let cases = observation.cases();
        for predictor in Predictor::ALL {
            let predicted = match predictor {
                Predictor::Model(form) => model.slowdowns(form, &alone).unwrap_or_default(),
                Predictor::Constant => vec![baseline.mean; alone.len()],
                Predictor::VictimPlusAggressor => {
                    cases.iter().map(|case| baseline.predict(case)).collect()
                }
            };
            let errors = self.slowdown.entry(predictor).or_default();
            let threads = observation.threads().iter().zip(&cases);
            for ((thread, case), predicted) in threads.zip(predicted) {
                errors.add(predicted, thread.slowdown());
                let sums = self.cases.entry(case.clone()).or_default();
                *sums.predicted.entry(predictor).or_default() += predicted;
            }
        }
        self.test_inverse(model, observation, (alone.as_slice(), cases.as_slice()));
        for (thread, case) in observation.threads().iter().zip(cases) {
            let sums = self.cases.entry(case).or_default();
            sums.count += 1.0;
            sums.measured += thread.slowdown();
        }
    }

    fn test_inverse(
        &mut self,
        model: &SmtModel,
        observation: &Observation,
        (alone, cases): (&[Shares], &[Case]),
    ) {
        self.shares.resize(observation.components(), 0.0);
        for stack in alone {
            for (sum, share) in self.shares.iter_mut().zip(stack.parts()) {
                *sum += share;
            }
        }
        let together = observation.together();
        let group: Vec<&Shares> = together.iter().collect();
        for inversion in Inversion::ALL {
            let Ok(inverted) = model.invert(inversion, &group) else { continue };
            let errors = self.components.entry(inversion).or_default();
            errors.resize(observation.components(), Errors::default());
            for ((got, want), case) in inverted.stacks.iter().zip(alone).zip(cases) {
                let sums = self.cases.entry(case.clone()).or_default();
                let totals = sums.inverted.entry(inversion).or_default();
                totals.resize(got.parts().len(), 0.0);
                totals.iter_mut().zip(got.parts()).for_each(|(sum, share)| *sum += share);
                for ((errors, got), want) in errors.iter_mut().zip(got.parts()).zip(want.parts()) {
                    errors.add(*got, *want);
                }
            }
            let trouble = inverted.regularised + inverted.clamped + inverted.unsolved;
            *self.troubled.entry(inversion).or_default() += u64::from(trouble > 0);
        }
    }

    /// Mean measured and predicted slowdowns of pairs. None if some pair was
    /// not observed, except that a program co-running with itself may be missing: it
    /// is 1 in both tables then.
    #[must_use]
    pub fn pairs(&self, predictor: Predictor) -> Option<PairTables> {
        let mean = |victim: &Arc<str>, other: &Arc<str>| {
            let case: Case = (Arc::clone(victim), vec![Arc::clone(other)]);
            let means = self.cases.get(&case).and_then(|sums| sums.means(predictor));
            if victim == other { means.or(Some((1.0, 1.0))) } else { means }
        };
        let row = |victim| self.programs.iter().map(|other| mean(victim, other)).collect();
        let rows: Vec<Vec<(f64, f64)>> = self.programs.iter().map(row).collect::<Option<_>>()?;
        let pick = |of: fn(&(f64, f64)) -> f64| {
            rows.iter().map(|row| row.iter().map(of).collect()).collect()
        };
        let programs = self.programs.iter().cloned().collect();
        Some(PairTables { programs, measured: pick(|cell| cell.0), predicted: pick(|cell| cell.1) })
    }

    /// Mean throttled stacks of the programs, in their order, as an inverse derives them from what was measured while
    /// each of them co-ran with another one: `partners` are the places of those. None if some of these pairs was not
    /// observed.
    #[must_use]
    pub fn inverted(&self, inversion: Inversion, partners: &[usize]) -> Option<Vec<Shares>> {
        let programs: Vec<&Arc<str>> = self.programs.iter().collect();
        let of = |(&program, &partner): (&&Arc<str>, &usize)| {
            let other = *programs.get(partner)?;
            let case: Case = (Arc::clone(program), vec![Arc::clone(other)]);
            Shares::new(self.cases.get(&case)?.inverted.get(&inversion)?.clone()).ok()
        };
        programs.iter().zip(partners).map(of).collect()
    }
}

/// Mean slowdowns of pairs, victim (row) by co-runner (column).
#[derive(Debug, Clone, PartialEq)]
pub struct PairTables {
    /// Programs, by row and column.
    pub programs: Vec<Arc<str>>,
    /// As measured.
    pub measured: Vec<Vec<f64>>,
    /// As predicted.
    pub predicted: Vec<Vec<f64>>,
}
