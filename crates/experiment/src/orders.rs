//! Two programs in both orders (Morad et al., Fig. 5), under two policies.
//!
//! # Approach
//! Two sequences run side by side: the first program then the second, and the second
//! then the first. Both do the same work, so they end at about the same time, and
//! each program runs twice. A program's speedup is its time alone over its mean time
//! in the two (eq. 5), fairness is that of the speedups (eq. 4), jitter that of a
//! program's mean times over the rounds (eq. 6), and the time until both sequences
//! are through (eq. 2) is what the policies are compared by.
//!
//! All intervals: rounds drawn anew (percentile bootstrap), those of both policies
//! together.

use serde::{Deserialize, Serialize};

use crate::metrics;
use crate::stats::{self, Estimate, StatsError, mean};

/// What a round of both orders took, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Took {
    /// Of each program, its time in each of the two sequences.
    pub programs: [[f64; 2]; 2],
    /// Until both sequences were through.
    pub completion: f64,
}

/// What stands under the baseline, and under the policy that is tried.
pub type Under<T> = [T; 2];

/// Both policies compared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Compared {
    /// Completion under the baseline over that under the policy.
    pub completion: Estimate,
    /// Speedup of each program.
    pub speedup: Under<[Estimate; 2]>,
    /// Fairness.
    pub fairness: Under<Estimate>,
    /// Jitter, mean of both programs.
    pub jitter: Under<Estimate>,
}

/// Compares rounds; `alone` are the programs' mean times alone. Rounds beyond the
/// shorter list are left out.
///
/// # Errors
/// When there is no round.
pub fn compare(alone: [f64; 2], rounds: Under<&[Took]>, seed: u64) -> Result<Compared, StatsError> {
    let count = rounds[0].len().min(rounds[1].len());
    let over = |statistic: &dyn Fn(&[usize]) -> f64| stats::over_rounds(count, seed, statistic);
    let drawn = |policy: usize, drawn: &[usize], of: &dyn Fn(&Took) -> f64| -> Vec<f64> {
        drawn.iter().filter_map(|round| rounds[policy].get(*round)).map(of).collect()
    };
    let mean_of = |policy: usize, rounds: &[usize], of: &dyn Fn(&Took) -> f64| {
        mean(&drawn(policy, rounds, of)).unwrap_or(f64::NAN)
    };
    let own = |program: usize| move |took: &Took| took.programs[program].iter().sum::<f64>() / 2.0;
    let speedup = |policy: usize, program: usize, rounds: &[usize]| {
        alone[program] / mean_of(policy, rounds, &own(program))
    };
    let fairness = |policy: usize| {
        over(&|rounds| {
            let both = [0, 1].map(|program| speedup(policy, program, rounds));
            metrics::fairness(&both).unwrap_or(f64::NAN)
        })
    };
    let jitter = |policy: usize| {
        over(&|rounds| {
            let both = [0, 1].map(|program| metrics::jitter(&drawn(policy, rounds, &own(program))));
            both.iter().map(|jitter| jitter.unwrap_or(f64::NAN)).sum::<f64>() / 2.0
        })
    };
    let speedups = |policy: usize| -> Result<[Estimate; 2], StatsError> {
        let one = |program: usize| over(&|rounds| speedup(policy, program, rounds));
        Ok([one(0)?, one(1)?])
    };
    let completion = |took: &Took| took.completion;
    Ok(Compared {
        completion: over(&|rounds| {
            mean_of(0, rounds, &completion) / mean_of(1, rounds, &completion)
        })?,
        speedup: [speedups(0)?, speedups(1)?],
        fairness: [fairness(0)?, fairness(1)?],
        jitter: [jitter(0)?, jitter(1)?],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn took(a: [f64; 2], b: [f64; 2]) -> Took {
        Took { programs: [a, b], completion: (a[0] + b[0]).max(a[1] + b[1]) }
    }

    #[test]
    fn a_program_is_judged_by_both_of_its_runs() {
        let stay = [took([2.0, 4.0], [1.0, 1.0]); 3];
        let phases = [took([2.0, 2.0], [1.0, 1.0]); 3];
        let compared = compare([1.5, 1.0], [&stay, &phases], 1).unwrap();
        assert_eq!(compared.completion.value, 5.0 / 3.0);
        assert_eq!(compared.speedup.map(|s| s.map(|s| s.value)), [[0.5, 1.0], [0.75, 1.0]]);
        assert_eq!(compared.fairness.map(|f| f.value), [0.5, 0.75]);
        assert_eq!(compared.jitter.map(|j| j.value), [0.0, 0.0]);
    }

    #[test]
    fn jitter_is_that_of_rounds() {
        let stay = [took([1.0, 1.0], [1.0, 1.0]), took([3.0, 3.0], [1.0, 1.0])];
        let compared = compare([1.0, 1.0], [&stay, &stay], 1).unwrap();
        assert_eq!(compared.jitter[0].value, 0.25);
        assert!(compare([1.0, 1.0], [&stay, &[]], 1).is_err());
    }
}
