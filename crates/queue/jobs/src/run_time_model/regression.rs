//! Ridge regression by coordinate descent, with the noise estimated from what is left unexplained (MacKay's evidence
//! iteration).
//!
//! ```text
//! fit the times of works alone; noise := squared spread of what is left, NOISE² counting as NOISE_RUNS runs
//! repeat until noise settles:
//!     weight of each run := noise / (noise + its squared relative error of time)
//!     change one term after the other until none changes
//!     noise := weighted squares that the terms leave unexplained / (runs − terms that the runs determine)
//! ```

use std::collections::BTreeMap;

use crate::ProgramNumber;

/// The expected spread of the logarithms of equal runs' times.
const NOISE: f64 = 0.05;
/// How many runs this expectation counts for.
const NOISE_RUNS: f64 = 4.0;
/// How often the spread is estimated at most; less often where it changes by less than [`SAME_NOISE`].
const ESTIMATES: usize = 12;
/// A relative change of the spread's square that counts as none.
const SAME_NOISE: f64 = 0.02;
/// How far from 0 terms are expected to be, as logarithms of slowdowns.
const SPREADS: [(Kind, f64); 4] =
    [(Kind::General, 0.5), (Kind::Victim, 0.2), (Kind::CoRunner, 0.2), (Kind::Pair, 0.1)];
/// The most passes over all terms.
const PASSES: usize = 200;
/// A change of a term that counts as none.
const SETTLED: f64 = 1e-6;

/// Kinds of effects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// What any co-runner costs.
    General,
    /// How sensitive a program is.
    Victim,
    /// How much a program disturbs.
    CoRunner,
    /// What is special to a pair.
    Pair,
}

/// A term of the sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Term {
    /// The logarithm of the time of a work.
    Work(u64),
    /// An effect of one or two programs.
    Effect(Kind, ProgramNumber, ProgramNumber),
}

impl Term {
    /// What holds it near 0; `noise` is the square of the spread of equal runs.
    fn ridge(self, noise: f64) -> f64 {
        match self {
            Self::Work(_) => 0.0,
            Self::Effect(kind, ..) => {
                let spread = SPREADS.iter().find(|(one, _)| *one == kind).map_or(1.0, |(_, s)| *s);
                noise / spread.powi(2)
            }
        }
    }
}

/// Fits the terms. `columns`: in which runs each term is, and by how much; `errors`: squares of the relative errors of
/// the runs' times; `rest`: what is to be explained of each run.
pub fn solve(
    columns: &BTreeMap<Term, Vec<(usize, f64)>>,
    errors: &[f64],
    rest: Vec<f64>,
) -> BTreeMap<Term, f64> {
    let mut regression = Regression {
        values: columns.keys().map(|term| (*term, 0.0)).collect(),
        columns,
        weights: Vec::new(),
        rest,
    };
    // First without effects: all spread of equal runs counts as noise.
    regression.weights =
        errors.iter().map(|error| NOISE.powi(2) / (NOISE.powi(2) + error)).collect();
    let is_work = |term: &Term| matches!(term, Term::Work(_));
    regression.pass_until_settled(|term| if is_work(term) { Some(0.0) } else { None });
    let works = columns.keys().filter(|term| is_work(term)).count();
    let mut noise = regression.noise(works as f64);
    for _ in 0..ESTIMATES {
        regression.weigh(errors, noise);
        regression.pass_until_settled(|term| Some(term.ridge(noise)));
        let before = noise;
        noise = regression.noise(regression.explaining(noise));
        if (noise / before - 1.0).abs() < SAME_NOISE {
            break;
        }
    }
    regression.values
}

/// A regression under way.
struct Regression<'a> {
    values: BTreeMap<Term, f64>,
    columns: &'a BTreeMap<Term, Vec<(usize, f64)>>,
    /// How much each run counts.
    weights: Vec<f64>,
    /// What is not explained yet of each run.
    rest: Vec<f64>,
}

impl Regression<'_> {
    /// Weighs runs by the noise and the errors of their times. An error counts relative to the time that is expected:
    /// relative to the time that it took, the runs that took longest by chance would count most.
    fn weigh(&mut self, errors: &[f64], noise: f64) {
        let weight = |(error, rest): (&f64, &f64)| noise / (noise + error * (2.0 * rest).exp());
        self.weights = errors.iter().zip(&self.rest).map(weight).collect();
    }

    /// Changes one term after the other until none changes any more; those without a ridge stay as they are.
    fn pass_until_settled(&mut self, ridge: impl Fn(&Term) -> Option<f64>) {
        let Self { values, columns, weights, rest } = self;
        for _ in 0..PASSES {
            let mut most = 0.0_f64;
            for ((term, column), value) in columns.iter().zip(values.values_mut()) {
                let Some(ridge) = ridge(term) else { continue };
                let of = |at: usize| rest.get(at).copied().unwrap_or(0.0);
                let (mut toward, mut size) = (0.0, ridge);
                for &(at, x) in column {
                    let weight = weights.get(at).copied().unwrap_or(0.0);
                    toward += weight * x * (of(at) + x * *value);
                    size += weight * x * x;
                }
                let new = if size > 0.0 { toward / size } else { 0.0 };
                let change = new - *value;
                for &(at, x) in column {
                    if let Some(rest) = rest.get_mut(at) {
                        *rest -= x * change;
                    }
                }
                *value = new;
                most = most.max(change.abs());
            }
            if most < SETTLED {
                break;
            }
        }
    }

    /// How many terms the runs determine; a term that its ridge holds back counts in part.
    fn explaining(&self, noise: f64) -> f64 {
        let weight = |at: usize| self.weights.get(at).copied().unwrap_or(0.0);
        let determined = |(term, column): (&Term, &Vec<(usize, f64)>)| {
            let size: f64 = column.iter().map(|&(at, x)| weight(at) * x * x).sum();
            if size > 0.0 { size / (size + term.ridge(noise)) } else { 0.0 }
        };
        self.columns.iter().map(determined).sum()
    }

    /// The square of the spread of equal runs, from what so many terms leave unexplained; at least what is expected.
    fn noise(&self, terms: f64) -> f64 {
        let square = |(rest, weight): (&f64, &f64)| weight * rest * rest;
        let unexplained: f64 = self.rest.iter().zip(&self.weights).map(square).sum();
        let free = (self.rest.len() as f64 - terms).max(0.0);
        let expected = NOISE.powi(2);
        let noise = (NOISE_RUNS * expected + unexplained) / (NOISE_RUNS + free);
        noise.max(expected)
    }
}
