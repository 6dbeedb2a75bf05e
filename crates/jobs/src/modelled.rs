//! Slowdowns by the interference model, where CPI stacks of programs were counted.

use symbiont_model::{Coefficients, Interference, Shares, StackError};

use crate::{Predict, Program};

/// Predicts from CPI stacks. A program without one has the average of the others.
#[derive(Debug, Clone, PartialEq)]
pub struct Modelled {
    /// Victims, then co-runners.
    table: Interference,
    programs: usize,
    /// Programs that share a core at most.
    width: usize,
}

impl Modelled {
    /// Predicts among programs from their stacks, in their order; on nodes whose cores `width` of them
    /// share.
    ///
    /// # Errors
    /// [`StackError`] when a stack has another number of components than the model.
    pub fn new(
        coefficients: &Coefficients,
        stacks: &[Option<Shares>],
        width: usize,
    ) -> Result<Self, StackError> {
        let components = coefficients.terms().len();
        let known: Vec<&Shares> = stacks.iter().flatten().collect();
        let mean = |at: usize| match known.len() {
            0 => 1.0,
            _ => known.iter().filter_map(|stack| stack.parts().get(at)).sum::<f64>(),
        };
        let average = Shares::new((0..components).map(mean).collect())?;
        let each = || stacks.iter().map(|stack| stack.as_ref().unwrap_or(&average).clone());
        // Each twice, as a victim and as a co-runner: two jobs of one program may share a core.
        let table = Interference::predict(coefficients, &each().chain(each()).collect::<Vec<_>>())?;
        Ok(Self { table, programs: stacks.len(), width: width.max(1) })
    }
}

impl Predict for Modelled {
    /// Where more programs run on the node than share a core, the mean over groups of as many
    /// co-runners as share one.
    fn slowdown(&self, victim: Program, co_runners: &[Program]) -> f64 {
        let victim = victim.0 as usize;
        let others: Vec<usize> =
            co_runners.iter().map(|other| self.programs + other.0 as usize).collect();
        let at_once = (self.width - 1).min(others.len());
        if at_once == others.len() || at_once == 0 {
            let on_the_core = others.get(..at_once).unwrap_or_default();
            return self.table.slowdown(victim, on_the_core);
        }
        // Each co-runner is in as many of these groups as any other.
        let group = |first: usize| -> Vec<usize> {
            others.iter().cycle().skip(first).take(at_once).copied().collect()
        };
        let sum: f64 = (0..others.len()).map(|at| self.table.slowdown(victim, &group(at))).sum();
        sum / others.len() as f64
    }
}

#[cfg(test)]
mod tests {
    use symbiont_model::Terms;

    use super::*;

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-9
    }

    /// What waits for memory disturbs what waits for memory.
    fn coefficients() -> Coefficients {
        let terms = |delta| Terms { alpha: 0.5, beta: 0.0, gamma: 0.0, delta };
        Coefficients::new(vec![terms(0.0), terms(0.8)]).unwrap()
    }

    fn stack(memory: f64) -> Option<Shares> {
        Some(Shares::new(vec![1.0 - memory, memory]).unwrap())
    }

    fn modelled(width: usize) -> Modelled {
        Modelled::new(&coefficients(), &[stack(0.75), stack(0.25), None], width).unwrap()
    }

    #[test]
    fn the_model_predicts_two_jobs_of_one_program_too() {
        let slowdown = |one, other| modelled(2).slowdown(Program(one), &[Program(other)]);
        assert!(close(slowdown(0, 0), 1.0 + 0.8 * 0.75 * 0.75));
        assert!(close(slowdown(0, 1), 1.0 + 0.8 * 0.75 * 0.25));
    }

    #[test]
    fn a_program_without_a_stack_is_average() {
        let got = modelled(2).slowdown(Program(0), &[Program(2)]);
        assert!(close(got, 1.0 + 0.8 * 0.75 * 0.5), "{got}");
    }

    #[test]
    fn where_more_run_than_share_a_core_the_mean_is_predicted() {
        let others = [Program(0), Program(1), Program(1)];
        let got = modelled(2).slowdown(Program(0), &others);
        assert!(close(got, 1.0 + 0.8 * 0.75 * (0.75 + 0.25 + 0.25) / 3.0), "{got}");
        let all = modelled(4).slowdown(Program(0), &others);
        assert!(close(all, 1.0 + 0.8 * 0.75 * (0.75 + 0.25 + 0.25)), "{all}");
        assert_eq!(modelled(1).slowdown(Program(0), &others), 1.0);
    }

    #[test]
    fn a_stack_of_another_length_is_refused() {
        let odd = Some(Shares::new(vec![1.0; 3]).unwrap());
        assert!(Modelled::new(&coefficients(), &[odd], 2).is_err());
    }
}
