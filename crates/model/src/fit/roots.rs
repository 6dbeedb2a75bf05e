//! Interactions between square roots of all components.
//!
//! Who suffers and who does harm is told by different components: a victim's stalls for the
//! caches, an aggressor's lines that move through them. So any root may meet any other, which
//! are many more coefficients than a training set has programs. A ridge holds all of them
//! back, so that what is learnt from few programs is spread over components that vary together.
//! It is on all features but the constant, their second moment scaled to 1, and is large, since
//! each program is a single point however often it is observed. How large is chosen within each
//! training set, on programs that are left out of it (`validate::choose`).

use serde::{Deserialize, Serialize};

use super::moments::Moments;
use crate::Form;
use crate::bilinear::{Bilinear, Factor, Features};

/// Where there are too few programs to choose by.
const RIDGE: f64 = 3.0;

/// By how much the forms of many products are held back.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ridges {
    /// The form of roots.
    pub roots: f64,
}

impl Default for Ridges {
    fn default() -> Self {
        Self { roots: RIDGE }
    }
}

impl Ridges {
    /// Each with the form that it holds back.
    #[must_use]
    pub fn by_form(self) -> [(Form, f64); 1] {
        [(Form::Roots, self.roots)]
    }

    /// Are they what a fit can have?
    pub(crate) fn are_sound(self) -> bool {
        self.by_form().iter().all(|(_, ridge)| *ridge > 0.0 && ridge.is_finite())
    }
}

/// The form; none without observations.
pub(super) fn fit(moments: &Moments, ridge: f64) -> Option<Bilinear> {
    let m = moments.components.len();
    let found = moments.roots.held_back(ridge)?;
    let (constant, found) = found.split_first()?;
    let (own, found) = found.split_at_checked(m)?;
    let (given, products) = found.split_at_checked(m)?;
    let factor = |aggressor: usize| Factor {
        victim: products.iter().skip(aggressor).step_by(m).copied().collect(),
        aggressor: (0..m).map(|at| if at == aggressor { 1.0 } else { 0.0 }).collect(),
    };
    Some(Bilinear {
        constant: *constant,
        features: Features::Roots,
        own: own.to_vec(),
        given: given.to_vec(),
        factors: (0..m).map(factor).collect(),
    })
}

#[cfg(test)]
mod tests {
    use crate::{CpiStack, Form, Observation, Observed, Shares, SmtMode, fit};

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
    }
}
