//! Interactions between square roots of components: all of them, or those that meet somewhere.
//!
//! Who suffers and who does harm is told by different components: a victim's stalls for the
//! caches, an aggressor's lines that move through them. In the form of roots any root may meet any
//! other; in that of pressure those meet that a shared resource stands behind ([`Pressure`]). Either
//! way there are more coefficients than a training set has programs. A ridge holds all of them
//! back, so that what is learnt from few programs is spread over components that vary together.
//! It is on all features but the constant, their second moment scaled to 1, and is large, since
//! each program is a single point however often it is observed. How large is chosen within each
//! training set, on programs that are left out of it (`validate::choose`).

use serde::{Deserialize, Serialize};

use super::least_squares::Sums;
use crate::bilinear::{Bilinear, Factor, Features};
use crate::{Form, Pressure};

/// Where there are too few programs to choose by.
const RIDGE: f64 = 3.0;

/// By how much the forms of many products are held back, and which of them is best.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ridges {
    /// The form of roots.
    pub roots: f64,
    /// The form of pressure.
    pub pressure: f64,
    /// Which of the two misleads a pairing least.
    pub best: Form,
}

impl Default for Ridges {
    fn default() -> Self {
        Self { roots: RIDGE, pressure: RIDGE, best: Form::Roots }
    }
}

impl Ridges {
    /// Each with the form that it holds back.
    #[must_use]
    pub fn by_form(self) -> [(Form, f64); 2] {
        [(Form::Roots, self.roots), (Form::Pressure, self.pressure)]
    }

    /// Are they what a fit can have?
    pub(crate) fn are_sound(self) -> bool {
        let forms = self.by_form();
        let sound = forms.iter().all(|(_, ridge)| *ridge > 0.0 && ridge.is_finite());
        sound && forms.iter().any(|(form, _)| *form == self.best)
    }
}

/// The features of a form, by place among those of all products of so many components.
pub(crate) fn features(components: usize, pressure: &Pressure) -> Vec<usize> {
    let first = 1 + 2 * components;
    let products = pressure.pairs().iter().map(|(waits, uses)| first + waits * components + uses);
    (0..first).chain(products).collect()
}

/// The form with the products of `pressure`, from sums over all products of so many components;
/// none without observations.
pub(super) fn fit(
    sums: &Sums,
    components: usize,
    pressure: &Pressure,
    ridge: f64,
) -> Option<Bilinear> {
    let found = sums.only(&features(components, pressure)).held_back(ridge)?;
    let (constant, found) = found.split_first()?;
    let (own, found) = found.split_at_checked(components)?;
    let (given, products) = found.split_at_checked(components)?;
    let mut aggressors: Vec<usize> = pressure.pairs().iter().map(|(_, uses)| *uses).collect();
    aggressors.sort_unstable();
    aggressors.dedup();
    let factor = |aggressor: usize| {
        let with = |at: usize| -> f64 {
            let pairs = pressure.pairs().iter().zip(products);
            let found = pairs.filter(|(pair, _)| **pair == (at, aggressor));
            found.map(|(_, product)| product).sum()
        };
        Factor {
            victim: (0..components).map(with).collect(),
            aggressor: (0..components).map(|at| f64::from(at == aggressor)).collect(),
        }
    };
    Some(Bilinear {
        constant: *constant,
        features: Features::Roots,
        own: own.to_vec(),
        given: given.to_vec(),
        factors: aggressors.into_iter().map(factor).collect(),
    })
}

#[cfg(test)]
mod tests {
    use crate::{
        CpiStack, Form, Observation, Observed, Pressure, Shares, SmtMode, TrainingSet, fit,
    };

    /// Three components: what suffers, what does harm, all else.
    fn stack(suffers: f64, harms: f64) -> CpiStack {
        CpiStack::new(vec![suffers, harms, 1.0 - suffers - harms]).unwrap()
    }

    /// Who stalls for lines suffers from who moves lines, as the root of both.
    fn slowdown(victim: &CpiStack, other: &CpiStack) -> f64 {
        1.0 + 1.5 * (victim.parts()[0] * other.parts()[1]).sqrt()
    }

    #[test]
    fn different_components_meet_and_few_lines_count_for_more_than_their_share() {
        let levels = [0.0, 0.02, 0.1, 0.3];
        let programs: Vec<CpiStack> =
            levels.iter().flat_map(|a| levels.iter().map(|b| stack(*a, *b))).collect();
        let thread = |own: &CpiStack, other: &CpiStack| {
            let scale = slowdown(own, other);
            let together = own.parts().iter().map(|part| part * scale).collect();
            let together = CpiStack::new(together).unwrap();
            Observed { program: "p".into(), alone: own.clone(), together }
        };
        let mut observations = Vec::new();
        for (at, a) in programs.iter().enumerate() {
            for b in &programs[at..] {
                observations.push(Observation::new(vec![thread(a, b), thread(b, a)]).unwrap());
            }
        }
        let model = fit(SmtMode::Smt2, &observations).unwrap().model;
        let predict = |form: Form, a: &CpiStack, b: &CpiStack| {
            let group: Vec<Shares> = [a, b].map(CpiStack::shares).into();
            model.slowdowns(form, &group).unwrap()[0]
        };
        // What more lines of a co-runner cost a victim, over what they cost one without stalls.
        let gained = |form, [from, to]: [f64; 2]| {
            let cost = |victim: &CpiStack| {
                predict(form, victim, &stack(0.0, to)) - predict(form, victim, &stack(0.0, from))
            };
            cost(&stack(0.3, 0.0)) - cost(&stack(0.0, 0.0))
        };
        let truth = slowdown(&stack(0.3, 0.0), &stack(0.0, 0.02)) - 1.0;
        let first = gained(Form::Roots, [0.0, 0.02]);
        assert!(first > 0.1 * truth, "held back, but there: {first} {truth}");
        let later = gained(Form::Roots, [0.1, 0.3]);
        assert!(first / 0.02 > 3.0 * later / 0.2, "{first} {later}");
        assert!(gained(Form::Linear, [0.0, 0.3]).abs() < 1e-9);
        // Of those that are named, just they.
        let set = TrainingSet::new(SmtMode::Smt2, &observations).unwrap();
        let named = set.pressed_by(&Pressure::between(vec![(0, 1)])).fit().unwrap().model;
        let [_, form] = named.held_back();
        assert_eq!(form.factors.len(), 1);
        assert_eq!(form.factors[0].aggressor, [0.0, 1.0, 0.0]);
        assert_eq!(form.factors[0].victim[1..], [0.0, 0.0]);
        assert!(form.factors[0].victim[0] > 0.1, "{form:?}");
    }
}
