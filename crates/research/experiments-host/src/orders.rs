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
//! All intervals are by the jackknife ([`stats::jackknife`]): each round is left out in turn, under both policies at
//! once, and each run of a program alone.

use serde::{Deserialize, Serialize};

use symbiont_report::metrics;
use symbiont_report::stats::{self, Estimate, StatsError, mean};

/// What a round of both orders took, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct OrderTimes {
    /// Of each program, its time in each of the two sequences.
    pub programs: [[f64; 2]; 2],
    /// Until both sequences were through.
    pub completion: f64,
}

/// What stands under the baseline, and under the policy that is tried.
pub type Under<T> = [T; 2];

/// Both policies compared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OrderComparison {
    /// Completion under the baseline over that under the policy.
    pub completion: Estimate,
    /// Speedup of each program.
    pub speedup: Under<[Estimate; 2]>,
    /// Fairness.
    pub fairness: Under<Estimate>,
    /// How much the policy changes it.
    pub fairness_change: Estimate,
    /// Jitter, mean of both programs.
    pub jitter: Under<Estimate>,
}

/// Completion under the baseline over that under the policy, of the rounds with these numbers.
#[must_use]
pub fn completion(rounds: Under<&[OrderTimes]>, taken: &[usize]) -> f64 {
    let [stay, tried] = rounds.map(|rounds| mean_of(rounds, taken, |took| took.completion));
    stay / tried
}

fn of_rounds(rounds: &[OrderTimes], taken: &[usize], of: impl Fn(&OrderTimes) -> f64) -> Vec<f64> {
    taken.iter().filter_map(|round| rounds.get(*round)).map(of).collect()
}

fn mean_of(rounds: &[OrderTimes], taken: &[usize], of: impl Fn(&OrderTimes) -> f64) -> f64 {
    mean(&of_rounds(rounds, taken, of)).unwrap_or(f64::NAN)
}

/// Compares rounds; `alone` are the programs' times alone. Rounds beyond the
/// shorter list are left out.
///
/// # Errors
/// When there is no round, or a program did not run alone.
pub fn compare(
    alone: [&[f64]; 2],
    rounds: Under<&[OrderTimes]>,
) -> Result<OrderComparison, StatsError> {
    let count = rounds[0].len().min(rounds[1].len());
    let own =
        |program: usize| move |took: &OrderTimes| took.programs[program].iter().sum::<f64>() / 2.0;
    let speedup = |policy: usize, program: usize, taken: &[usize], apart: &[usize]| {
        let apart: Vec<f64> =
            apart.iter().filter_map(|run| alone[program].get(*run).copied()).collect();
        mean(&apart).unwrap_or(f64::NAN) / mean_of(rounds[policy], taken, own(program))
    };
    let all = [count, alone[0].len(), alone[1].len()];
    let fairness = |policy: usize, taken: &[Vec<usize>]| match taken {
        [taken, first, second] => {
            let both = [speedup(policy, 0, taken, first), speedup(policy, 1, taken, second)];
            metrics::fairness(&both).unwrap_or(f64::NAN)
        }
        _ => f64::NAN,
    };
    let fairness_under = |policy: usize| stats::jackknife(&all, |taken| fairness(policy, taken));
    let over_rounds = |statistic: &dyn Fn(&[usize]) -> f64| {
        stats::jackknife(&[count], |taken| taken.first().map_or(f64::NAN, |taken| statistic(taken)))
    };
    let jitter = |policy: usize| {
        over_rounds(&|taken| {
            let both = [0, 1]
                .map(|program| metrics::jitter(&of_rounds(rounds[policy], taken, own(program))));
            both.iter().map(|jitter| jitter.unwrap_or(f64::NAN)).sum::<f64>() / 2.0
        })
    };
    let speedups = |policy: usize| -> Result<[Estimate; 2], StatsError> {
        let one = |program: usize| {
            stats::jackknife(&[count, alone[program].len()], |taken| match taken {
                [taken, apart] => speedup(policy, program, taken, apart),
                _ => f64::NAN,
            })
        };
        Ok([one(0)?, one(1)?])
    };
    Ok(OrderComparison {
        completion: over_rounds(&|taken| completion(rounds, taken))?,
        speedup: [speedups(0)?, speedups(1)?],
        fairness: [fairness_under(0)?, fairness_under(1)?],
        fairness_change: stats::jackknife(&all, |taken| fairness(1, taken) - fairness(0, taken))?,
        jitter: [jitter(0)?, jitter(1)?],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn took(a: [f64; 2], b: [f64; 2]) -> OrderTimes {
        OrderTimes { programs: [a, b], completion: (a[0] + b[0]).max(a[1] + b[1]) }
    }

    #[test]
    fn a_program_is_judged_by_both_of_its_runs() {
        let stay = [took([2.0, 4.0], [1.0, 1.0]); 3];
        let phases = [took([2.0, 2.0], [1.0, 1.0]); 3];
        let compared = compare([&[1.5, 1.5], &[1.0, 1.0]], [&stay, &phases]).unwrap();
        assert_eq!(compared.completion.value, 5.0 / 3.0);
        assert_eq!(compared.speedup.map(|s| s.map(|s| s.value)), [[0.5, 1.0], [0.75, 1.0]]);
        assert_eq!(compared.fairness.map(|f| f.value), [0.5, 0.75]);
        assert_eq!(compared.fairness_change.value, 0.25);
        assert_eq!(compared.fairness_change.interval.map(|i| i.width()), Some(0.0));
        assert_eq!(compared.jitter.map(|j| j.value), [0.0, 0.0]);
    }

    #[test]
    fn jitter_is_that_of_rounds() {
        let stay = [took([1.0, 1.0], [1.0, 1.0]), took([3.0, 3.0], [1.0, 1.0])];
        let alone: [&[f64]; 2] = [&[1.0], &[1.0]];
        let compared = compare(alone, [&stay, &stay]).unwrap();
        assert_eq!(compared.jitter[0].value, 0.25);
        assert_eq!(compared.speedup[0][0].interval, None, "once alone has no spread");
        assert!(compare(alone, [&stay, &[]]).is_err());
        assert!(compare([&[1.0], &[]], [&stay, &stay]).is_err());
    }
}
