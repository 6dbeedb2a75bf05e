//! Slowdowns learnt from how long runs took, and next to what: for machines on which no events are counted.
//!
//! # Approach
//! The same work takes longer next to programs that disturb it. The logarithm of its time is modelled as
//!
//! `t(work) + Σ over co-runners q of f(q) · (g + v(p) + a(q) + d(p, q))`
//!
//! for a run of program p next to which q ran for the share f(q) of the time: g is what any co-runner costs, v how
//! sensitive p is, a how much q disturbs, d what is special to the pair. Ridge regression leaves at 0 what no run
//! speaks of. So an unknown program is as sensitive, and disturbs as much, as the average one; a pair that never ran
//! together is the sum of its parts; and a work that ran once says nothing, as nothing says how long it takes
//! otherwise.
//!
//! ```text
//! rest := ln time of each run − ln slowdown from sharing CPUs evenly, where more are used than there are (Demand)
//! terms := ridge regression of rest, with the spread of equal runs estimated alongside   (regression)
//! slowdown of p next to a set Q := that of sharing CPUs × exp(Σ over q in Q of g + v(p) + a(q) + d(p, q))
//! ```
//!
//! So the more equal runs spread, the less is concluded from them.
//!
//! # Properties
//! - A sum of parts is recovered (`parts_are_recovered_from_runs`), also for pairs that never ran
//!   (`a_pair_that_never_ran_is_the_sum_of_its_parts`).
//! - An unknown program is the average of the known (`an_unknown_program_is_average`).
//! - One run of a work says nothing (`a_work_that_ran_once_says_nothing`), and runs whose times spread for other
//!   reasons say little (`times_that_spread_for_other_reasons_say_little`).

mod regression;

use std::collections::{BTreeMap, HashMap};

use self::regression::{Kind, Term, solve};
use crate::{Predict, ProgramNumber};

/// Bounds of predictions, as logarithms of slowdowns: one outside of them would be a result of chance.
const BOUNDS: (f64, f64) = (-0.5, 3.0);

/// A run that ended.
#[derive(Debug, Clone, PartialEq)]
pub struct CoRun {
    /// Its program.
    pub program: ProgramNumber,
    /// What it was asked to do: runs of one work do the same.
    pub work: u64,
    /// How long it took, seconds.
    pub elapsed_s: f64,
    /// The error of that, seconds.
    pub error_s: f64,
    /// How many jobs of each other program ran meanwhile, averaged over its time.
    pub co_runners: Vec<(ProgramNumber, f64)>,
}

/// How many CPUs programs use while they run, and how many there are.
#[derive(Debug, Clone, PartialEq)]
pub struct Demand {
    /// CPU time / time, by the number of the program; none: not known.
    pub used: Vec<Option<f64>>,
    /// CPUs that there are.
    pub cpus: f64,
}

impl Demand {
    fn of(&self, program: ProgramNumber, average: f64) -> f64 {
        self.used.get(program.0 as usize).copied().flatten().unwrap_or(average)
    }

    /// What a program that is not known uses.
    fn average(&self) -> f64 {
        let known: Vec<f64> = self.used.iter().copied().flatten().collect();
        if known.is_empty() { 1.0 } else { known.iter().sum::<f64>() / known.len() as f64 }
    }

    /// Slowdown from sharing CPUs evenly.
    fn slowdown(&self, used: f64) -> f64 {
        if self.cpus > 0.0 { (used / self.cpus).max(1.0) } else { 1.0 }
    }
}

/// Predicts slowdowns from run times.
#[derive(Debug, Clone, PartialEq)]
pub struct RunTimeModel {
    general: f64,
    sensitivity: HashMap<ProgramNumber, f64>,
    disturbance: HashMap<ProgramNumber, f64>,
    pairs: HashMap<(ProgramNumber, ProgramNumber), f64>,
    demand: Demand,
    average: f64,
}

impl RunTimeModel {
    /// Learns from runs, except those whose times are not above 0, or no numbers.
    #[must_use]
    pub fn fit(runs: &[CoRun], demand: Demand) -> Self {
        let average = demand.average();
        let usable = |run: &&CoRun| {
            let shares = run.co_runners.iter().all(|(_, share)| share.is_finite());
            shares && run.elapsed_s.is_finite() && run.elapsed_s > 0.0
        };
        let mut columns: BTreeMap<Term, Vec<(usize, f64)>> = BTreeMap::new();
        let (mut rest, mut errors) = (Vec::new(), Vec::new());
        for (at, run) in runs.iter().filter(usable).enumerate() {
            let used =
                run.co_runners.iter().map(|(other, share)| demand.of(*other, average) * share);
            let used = demand.of(run.program, average) + used.sum::<f64>();
            rest.push(run.elapsed_s.ln() - demand.slowdown(used).ln());
            errors.push((run.error_s.max(0.0) / run.elapsed_s).powi(2));
            columns.entry(Term::Work(run.work)).or_default().push((at, 1.0));
            let shares: f64 = run.co_runners.iter().map(|(_, share)| share).sum();
            let none = ProgramNumber::default();
            let mut add = |term, share| columns.entry(term).or_default().push((at, share));
            add(Term::Effect(Kind::General, none, none), shares);
            add(Term::Effect(Kind::Victim, run.program, none), shares);
            for &(other, share) in &run.co_runners {
                add(Term::Effect(Kind::CoRunner, other, none), share);
                add(Term::Effect(Kind::Pair, run.program, other), share);
            }
        }
        let mut learned = Self {
            general: 0.0,
            sensitivity: HashMap::new(),
            disturbance: HashMap::new(),
            pairs: HashMap::new(),
            demand,
            average,
        };
        for (term, value) in solve(&columns, &errors, rest) {
            let Term::Effect(kind, one, other) = term else { continue };
            match kind {
                Kind::General => learned.general = value,
                Kind::Victim => drop(learned.sensitivity.insert(one, value)),
                Kind::CoRunner => drop(learned.disturbance.insert(one, value)),
                Kind::Pair => drop(learned.pairs.insert((one, other), value)),
            }
        }
        learned
    }

    /// Slowdown of a program next to as many average ones.
    pub(crate) fn next_to_average(
        &self,
        victim: ProgramNumber,
        co_runners: &[ProgramNumber],
    ) -> f64 {
        let sensitivity = self.sensitivity.get(&victim).copied().unwrap_or(0.0);
        self.with_effects(victim, co_runners, |_| self.general + sensitivity)
    }

    fn with_effects(
        &self,
        victim: ProgramNumber,
        co_runners: &[ProgramNumber],
        effect: impl Fn(ProgramNumber) -> f64,
    ) -> f64 {
        if co_runners.is_empty() {
            return 1.0;
        }
        let demand = |&program: &ProgramNumber| self.demand.of(program, self.average);
        let used = demand(&victim) + co_runners.iter().map(demand).sum::<f64>();
        let effects: f64 = co_runners.iter().map(|&other| effect(other)).sum();
        self.demand.slowdown(used) * effects.clamp(BOUNDS.0, BOUNDS.1).exp()
    }

    fn effect(&self, victim: ProgramNumber, other: ProgramNumber) -> f64 {
        let of = |terms: &HashMap<ProgramNumber, f64>, one| terms.get(&one).copied().unwrap_or(0.0);
        let pair = self.pairs.get(&(victim, other)).copied().unwrap_or(0.0);
        self.general + of(&self.sensitivity, victim) + of(&self.disturbance, other) + pair
    }
}

impl Predict for RunTimeModel {
    fn slowdown(&self, victim: ProgramNumber, co_runners: &[ProgramNumber]) -> f64 {
        self.with_effects(victim, co_runners, |other| self.effect(victim, other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn demand(cpus: f64) -> Demand {
        Demand { used: vec![Some(1.0); 4], cpus }
    }

    fn run(program: u32, elapsed_s: f64, other: Option<u32>) -> CoRun {
        let co_runners = other.map(|other| (ProgramNumber(other), 1.0)).into_iter().collect();
        CoRun {
            program: ProgramNumber(program),
            work: program.into(),
            elapsed_s,
            error_s: 0.0,
            co_runners,
        }
    }

    /// Slowdowns of victims 0 to 3 next to 0 to 3, that are sums of parts as logarithms.
    fn truth(victim: u32, other: u32) -> f64 {
        (0.05 + 0.06 * f64::from(victim) + 0.08 * f64::from(other)).exp()
    }

    fn runs(pairs: impl Fn(u32, u32) -> bool) -> Vec<CoRun> {
        let alone = |program| 10.0 * f64::from(program + 1);
        let all = (0..4).flat_map(|victim| (0..4).map(move |other| (victim, other)));
        let together = all
            .filter(|(victim, other)| pairs(*victim, *other))
            .map(|(victim, other)| run(victim, alone(victim) * truth(victim, other), Some(other)));
        let solo = (0..4).map(|program| run(program, alone(program), None));
        together.chain(solo).collect()
    }

    #[test]
    fn parts_are_recovered_from_runs() {
        let learned = RunTimeModel::fit(&runs(|_, _| true), demand(2.0));
        for victim in 0..4 {
            for other in 0..4 {
                let got = learned.slowdown(ProgramNumber(victim), &[ProgramNumber(other)]);
                let want = truth(victim, other);
                assert!((got / want - 1.0).abs() < 0.03, "{victim} {other}: {got} {want}");
            }
        }
    }

    #[test]
    fn a_pair_that_never_ran_is_the_sum_of_its_parts() {
        let learned =
            RunTimeModel::fit(&runs(|victim, other| (victim, other) != (3, 3)), demand(2.0));
        let got = learned.slowdown(ProgramNumber(3), &[ProgramNumber(3)]);
        assert!((got / truth(3, 3) - 1.0).abs() < 0.06, "{got} {}", truth(3, 3));
    }

    #[test]
    fn an_unknown_program_is_average() {
        let learned = RunTimeModel::fit(&runs(|_, _| true), demand(2.0));
        let got = learned.slowdown(ProgramNumber(9), &[ProgramNumber(8)]);
        let mean: f64 = (0..16).map(|at| truth(at / 4, at % 4).ln()).sum::<f64>() / 16.0;
        assert!((got / mean.exp() - 1.0).abs() < 0.05, "{got} {}", mean.exp());
    }

    #[test]
    fn a_work_that_ran_once_says_nothing() {
        let learned =
            RunTimeModel::fit(&[run(0, 90.0, Some(1)), run(1, 3.0, Some(0))], demand(2.0));
        assert!((learned.slowdown(ProgramNumber(0), &[ProgramNumber(1)]) - 1.0).abs() < 1e-6);
    }

    /// Programs that never ran alone, and slow each other down by a fifth. One run in 16 takes ten times as long as
    /// it would, for a reason that is not known.
    fn spread_runs(seed: u32) -> Vec<CoRun> {
        let mut state = seed;
        let mut draw = move || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            f64::from(state >> 8) / f64::from(1 << 24)
        };
        let one = |victim| run(victim, 1.0, None);
        let mut drawn = |at: u32| {
            let (victim, other) = (at % 4, (at / 4) % 4);
            let share = 0.6 + 0.4 * draw();
            let odd = if draw() < 1.0 / 16.0 { 10.0 } else { 1.0 };
            let time = f64::from(victim + 1) * 1.2_f64.powf(share) * odd * (1.0 + 0.1 * draw());
            CoRun {
                co_runners: vec![(ProgramNumber(other), share)],
                error_s: 1.0,
                // In whole seconds.
                elapsed_s: (time + draw()).floor().max(1.0),
                ..one(victim)
            }
        };
        (0..128).map(&mut drawn).collect()
    }

    #[test]
    fn times_that_spread_for_other_reasons_say_little() {
        for seed in 0..20 {
            let learned = RunTimeModel::fit(&spread_runs(seed), demand(2.0));
            for (victim, other) in (0..16).map(|at| (at / 4, at % 4)) {
                let got = learned.slowdown(ProgramNumber(victim), &[ProgramNumber(other)]);
                assert!((0.6..2.0).contains(&got), "{seed}: {victim} {other}: {got}");
            }
        }
    }

    #[test]
    fn a_run_whose_time_is_not_known_well_counts_less() {
        let slowdown = |error_s| {
            let coarse = |run: CoRun| CoRun { error_s, ..run };
            let runs = [coarse(run(0, 1.0, None)), coarse(run(0, 2.0, Some(1)))];
            RunTimeModel::fit(&runs, demand(2.0)).slowdown(ProgramNumber(0), &[ProgramNumber(1)])
        };
        let (exact, coarse) = (slowdown(0.0), slowdown(1.0));
        assert!(exact > 1.8 && coarse < 1.4, "{exact} {coarse}");
    }

    #[test]
    fn programs_that_use_more_cpus_than_there_are_share_them() {
        let mut demand = demand(2.0);
        demand.used = vec![Some(2.0), Some(1.0), None];
        let learned = RunTimeModel::fit(&[], demand);
        let slowdown = |one, other| learned.slowdown(ProgramNumber(one), &[ProgramNumber(other)]);
        assert_eq!((slowdown(0, 0), slowdown(0, 1), slowdown(1, 1)), (2.0, 1.5, 1.0));
        assert_eq!(slowdown(2, 2), 1.5);
        assert_eq!(learned.slowdown(ProgramNumber(0), &[]), 1.0);
    }

    #[test]
    fn runs_that_make_no_sense_are_left_out() {
        let odd = [run(0, f64::NAN, Some(1)), run(0, 0.0, None), run(1, -1.0, None)];
        let learned = RunTimeModel::fit(&odd, demand(2.0));
        assert_eq!(learned.slowdown(ProgramNumber(0), &[ProgramNumber(1)]), 1.0);
    }
}
