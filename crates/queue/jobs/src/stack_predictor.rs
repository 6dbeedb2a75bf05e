//! Slowdowns by the interference model, where CPI stacks of programs were counted.
//!
//! To the model a program is one thread; the stack of one with several threads is the mean of theirs. Where more
//! programs run on a node than share a core, any of them is as likely as any other to be on the victim's core.
//!
//! ```text
//! groups := the victim with `width − 1` of its co-runners, each of these in equally many groups
//! slowdown := mean over groups of the model's slowdown × what throttling adds for one program alone
//! ```

use std::collections::BTreeMap;

use symbiont_model::{Coefficients, Interference, Model, Shares, SmtMode, StackError, Throttling};

use crate::ProgramNumber;

/// Predicts from CPI stacks.
#[derive(Debug, Clone, PartialEq)]
pub struct StackPredictor {
    modes: BTreeMap<SmtMode, (Coefficients, Option<Throttling>)>,
    /// By program.
    stacks: Vec<Option<Shares>>,
    /// How many programs share a core at most.
    width: usize,
}

impl StackPredictor {
    /// Predicts from the stacks of programs, in the order of their numbers, on nodes on whose cores `width` programs
    /// run at a time.
    ///
    /// # Errors
    /// [`StackError::Length`] when a stack has another number of components than the model.
    pub fn new(
        model: &Model,
        stacks: Vec<Option<Shares>>,
        width: usize,
    ) -> Result<Self, StackError> {
        let want = model.components.len();
        let mut lengths = stacks.iter().flatten().map(|stack| stack.parts().len());
        if let Some(got) = lengths.find(|got| *got != want) {
            return Err(StackError::Length { got, want });
        }
        let modes = model.modes.iter().map(|(mode, trained)| {
            (*mode, (trained.fit.model.delta().clone(), trained.throttling.clone()))
        });
        let modes: BTreeMap<_, _> = modes.collect();
        let widest = modes.keys().map(|mode| mode.threads()).max().unwrap_or(1);
        Ok(Self { modes, stacks, width: width.clamp(1, widest) })
    }

    fn stack(&self, program: ProgramNumber) -> Option<&Shares> {
        self.stacks.get(program.0 as usize)?.as_ref()
    }

    /// Slowdown of a program (time together / time alone) while these run on the same node; none: a stack is not known,
    /// or the model has no mode of so few threads.
    #[must_use]
    pub fn slowdown(&self, victim: ProgramNumber, co_runners: &[ProgramNumber]) -> Option<f64> {
        let victim = self.stack(victim)?;
        let others: Option<Vec<&Shares>> =
            co_runners.iter().map(|&other| self.stack(other)).collect();
        let others = others?;
        let at_once = (self.width - 1).min(others.len());
        if at_once == 0 {
            return Some(1.0);
        }
        let (coefficients, throttling) = self.modes.get(&SmtMode::of(at_once + 1)?)?;
        // Each co-runner is in as many of these groups as any other.
        let groups = if at_once == others.len() { 1 } else { others.len() };
        let mut sum = 0.0;
        for first in 0..groups {
            let on_the_core = others.iter().cycle().skip(first).take(at_once).copied();
            let group: Vec<Shares> = std::iter::once(victim).chain(on_the_core).cloned().collect();
            let all: Vec<usize> = (0..group.len()).collect();
            sum += Interference::predict(coefficients, &group).ok()?.slowdown(0, &all);
        }
        let alone = throttling.as_ref().map_or(1.0, |throttling| throttling.ratio(victim));
        Some(sum / groups as f64 * alone)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use symbiont_model::{Components, Fit, SmtModel, Terms, TrainedMode, Training};

    use super::*;

    fn close(a: Option<f64>, b: f64) -> bool {
        a.is_some_and(|a| (a - b).abs() < 1e-9)
    }

    /// What waits for memory disturbs what waits for memory, by so much.
    fn trained(interaction: f64) -> TrainedMode {
        let terms = |delta| Terms { alpha: 0.5, beta: 0.0, gamma: 0.0, delta };
        let delta = Coefficients::new(vec![terms(0.0), terms(interaction)]).unwrap();
        let linear = Coefficients::new(vec![terms(0.0), terms(0.0)]).unwrap();
        let errors = vec![Terms::default(); 2];
        let model = SmtModel::new(1.0, linear, delta).unwrap();
        let (linear_errors, delta_errors) = (errors.clone(), errors);
        let fit = Fit { model, linear_errors, delta_errors, observed: 1 };
        TrainedMode { fit, throttling: None, scores: Vec::new() }
    }

    pub(crate) fn model() -> Model {
        Model {
            machine: "A processor".to_owned(),
            core: Default::default(),
            catalogue: "synthetic".to_owned(),
            components: Components::named(["base", "memory"]).unwrap(),
            training: Training {
                date: "2026-01-02T03:04:05Z".to_owned(),
                programs: Vec::new(),
                quantum_ms: 100,
                note: String::new(),
            },
            modes: [(SmtMode::Smt2, trained(0.8)), (SmtMode::Smt4, trained(0.4))].into(),
        }
    }

    pub(crate) fn stack(memory: f64) -> Option<Shares> {
        Some(Shares::new(vec![1.0 - memory, memory]).unwrap())
    }

    fn modelled(width: usize) -> StackPredictor {
        StackPredictor::new(&model(), vec![stack(0.75), stack(0.25), None], width).unwrap()
    }

    #[test]
    fn the_model_predicts_two_jobs_of_one_program_too() {
        let slowdown =
            |one, other| modelled(2).slowdown(ProgramNumber(one), &[ProgramNumber(other)]);
        assert!(close(slowdown(0, 0), 1.0 + 0.8 * 0.75 * 0.75));
        assert!(close(slowdown(0, 1), 1.0 + 0.8 * 0.75 * 0.25));
    }

    #[test]
    fn where_a_stack_is_not_known_nothing_is_predicted() {
        let slowdown = |one, other| {
            modelled(2).slowdown(ProgramNumber(one), &[ProgramNumber(0), ProgramNumber(other)])
        };
        assert_eq!((slowdown(0, 2), slowdown(2, 0), slowdown(0, 9)), (None, None, None));
    }

    #[test]
    fn where_more_run_than_share_a_core_the_mean_is_predicted() {
        let others = [ProgramNumber(0), ProgramNumber(1), ProgramNumber(1)];
        let got = modelled(2).slowdown(ProgramNumber(0), &others);
        assert!(close(got, 1.0 + 0.8 * 0.75 * (0.75 + 0.25 + 0.25) / 3.0), "{got:?}");
        assert_eq!(modelled(1).slowdown(ProgramNumber(0), &others), Some(1.0));
    }

    #[test]
    fn each_number_of_threads_on_a_core_has_its_own_mode() {
        let others = [ProgramNumber(0), ProgramNumber(1), ProgramNumber(1)];
        for width in [4, 8] {
            let all = modelled(width).slowdown(ProgramNumber(0), &others);
            assert!(close(all, 1.0 + 0.4 * 0.75 * (0.75 + 0.25 + 0.25)), "{width}: {all:?}");
        }
        let mut wide = model();
        wide.modes.remove(&SmtMode::Smt2);
        let wide = StackPredictor::new(&wide, vec![stack(0.5)], 4).unwrap();
        assert_eq!(wide.slowdown(ProgramNumber(0), &[ProgramNumber(0)]), None);
    }

    #[test]
    fn slowdowns_are_against_running_alone_on_the_whole_core() {
        let mut throttled = model();
        let throttling = Throttling { weights: vec![1.0, 2.0], error: 0.0 };
        throttled.modes.get_mut(&SmtMode::Smt2).unwrap().throttling = Some(throttling);
        let modelled = StackPredictor::new(&throttled, vec![stack(0.5)], 2).unwrap();
        let got = modelled.slowdown(ProgramNumber(0), &[ProgramNumber(0)]);
        assert!(close(got, 1.5 * (1.0 + 0.8 * 0.25)), "{got:?}");
        assert_eq!(modelled.slowdown(ProgramNumber(0), &[]), Some(1.0));
    }

    #[test]
    fn a_stack_of_another_length_is_refused() {
        let odd = Some(Shares::new(vec![1.0; 3]).unwrap());
        assert!(StackPredictor::new(&model(), vec![odd], 2).is_err());
    }
}
