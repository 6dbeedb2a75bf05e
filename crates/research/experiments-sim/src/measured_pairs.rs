//! Policies on a machine of measured pairs: how much of what pairing can gain they get, and how soon.
//!
//! # Problem
//! A policy that learns which programs suit each other loses throughput while it tries, and must not learn from
//! noise. Both show only over time, with slowdowns as real programs have them.
//!
//! # Approach
//! Mixes of programs of a matrix, drawn with repeats, run on [`MeasuredMachine`] under a policy, which is shown
//! instructions and cycles alone. After every quantum the throughput is compared with that of all pairings on average
//! and of the best pairing.
//!
//! ```text
//! captured until t = Σ (throughput − mean of all pairings) / Σ (best pairing − mean of all pairings)
//! ```
//!
//! There are two controls: measurements shuffled between programs, and a matrix in which co-runners make no
//! difference (each victim has its mean slowdown with every co-runner). What is lost there is given as a share of
//! the headroom of the true matrix.
//!
//! # Properties
//! - The best pairing captures all, and the mean of all pairings nothing (`the_best_pairing_captures_all`); learning
//!   captures most, and its controls little (`learning_captures_most_and_controls_nothing`).
//! - Equal seeds give equal results (`equal_trials_give_equal_results`).

use std::time::Duration;

use rand::{Rng, SeedableRng};
use rand_distr::StandardNormal;
use rand_pcg::Pcg64Mcg;
use serde::{Deserialize, Serialize};
use symbiont_control::{Controller, Holding};
use symbiont_machine::Machine;
use symbiont_matching::{Weights, perfect_matching};
use symbiont_planner::{Bounds, Planner};
use symbiont_policy::{Entry, Policy, Settings, policies};
use symbiont_report::stats::{Estimate, StatsError, over_rounds};
pub use symbiont_sim_fast::measured::{Events, Matrix, MeasuredMachine};

use crate::ShownMeasurements;

/// What is run.
#[derive(Debug, Clone)]
pub struct Trial<'m> {
    /// What programs do to each other.
    pub matrix: &'m Matrix,
    /// Do co-runners make a difference? Otherwise it is a control.
    pub interacts: bool,
    /// Threads, two for each core.
    pub threads: usize,
    /// What happens meanwhile.
    pub events: Events,
    /// Mixes of programs.
    pub mixes: u32,
    /// Until when, in increasing order, it is looked at what was captured.
    pub until: Vec<Duration>,
    /// Seed of everything that is random.
    pub seed: u64,
}

/// Throughputs that differ by less than this share are the same.
const SAME: f64 = 1e-6;

/// A policy as it takes part.
#[derive(Debug, Clone)]
pub struct Rival {
    /// What it is called.
    pub name: String,
    /// The policy.
    pub policy: &'static Entry,
    /// What it is set to.
    pub settings: Settings,
    /// Whose measurements it is shown.
    pub shown: ShownMeasurements,
}

impl Rival {
    /// A policy as it is.
    #[must_use]
    pub fn new(policy: &'static Entry) -> Self {
        let (name, settings) = (policy.name.to_owned(), Settings::default());
        Self { name, policy, settings, shown: ShownMeasurements::Own }
    }
}

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
pub enum TrialError {
    /// Too few programs or threads.
    #[error(
        "a trial needs two programs, and threads in pairs; there are {programs} programs and {threads} threads"
    )]
    Size {
        /// Programs of the matrix.
        programs: usize,
        /// Threads asked for.
        threads: usize,
    },
    /// Slowdowns are no numbers.
    #[error("slowdowns must be numbers above 0")]
    Slowdowns,
    /// The loop could not go on.
    #[error("the policy could not go on: {0}")]
    Control(String),
    /// All pairings do the same.
    #[error("no pairing of these programs gains anything over another one")]
    Alike,
    /// The results give no estimate.
    #[error(transparent)]
    Stats(#[from] StatsError),
}

/// What pairs of some programs can give.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Bound {
    chance: f64,
    best: f64,
}

impl Bound {
    /// What the best pairing gains; 0 if that is but rounding.
    fn headroom(self) -> f64 {
        let headroom = self.best - self.chance;
        if headroom > SAME * self.chance { headroom } else { 0.0 }
    }
}

/// Sums over a mix until some time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Sums {
    /// Throughput above the mean of all pairings.
    pub gained: f64,
    /// What the best pairing has above it.
    pub headroom: f64,
}

/// Share of the headroom that was captured until the time of this number, with a bootstrap interval over the mixes in
/// which pairings differ.
///
/// # Errors
/// When there are too few mixes, or there is no headroom in any.
pub fn captured(mixes: &[Vec<Sums>], time: usize, seed: u64) -> Result<Estimate, TrialError> {
    let all = mixes.iter().filter_map(|mix| mix.get(time));
    let sums: Vec<Sums> = all.filter(|sums| sums.headroom > 0.0).copied().collect();
    if sums.is_empty() && !mixes.is_empty() {
        return Err(TrialError::Alike);
    }
    Ok(over_rounds(sums.len(), seed, |drawn| {
        let drawn = || drawn.iter().filter_map(|at| sums.get(*at));
        let (gained, headroom): (f64, f64) =
            (drawn().map(|sums| sums.gained).sum(), drawn().map(|sums| sums.headroom).sum());
        gained / headroom
    })?)
}

/// Policies that need no more than instructions and cycles, and nothing from their user.
pub fn candidates(matrix: &Matrix) -> impl Iterator<Item = &'static Entry> {
    let machine = MeasuredMachine::new(matrix.clone(), &[0, 0], Events::default(), 0).ok();
    policies().iter().filter(move |entry| {
        let Some(machine) = &machine else { return false };
        let mut policy = (entry.make)(&Settings::default());
        policy.offer(machine.support(), machine.topology());
        let needs = policy.requirements();
        needs.missing_input.is_none() && machine.support().missing(&needs.required).is_none()
    })
}

impl Trial<'_> {
    /// Share of the headroom that a policy captured until each time; below 0: less than chance.
    ///
    /// # Errors
    /// See [`TrialError`].
    pub fn captured(&self, rival: &Rival) -> Result<Vec<Estimate>, TrialError> {
        let mixes: Vec<Vec<Sums>> =
            (0..self.mixes).map(|mix| self.mix(rival, mix)).collect::<Result<_, _>>()?;
        (0..self.until.len()).map(|time| captured(&mixes, time, self.seed)).collect()
    }

    /// One mix of programs under a policy: sums until each time.
    ///
    /// # Errors
    /// See [`TrialError`].
    pub fn mix(&self, rival: &Rival, mix: u32) -> Result<Vec<Sums>, TrialError> {
        let count = self.matrix.programs.len();
        if count < 2 || self.threads < 2 || self.threads % 2 == 1 {
            return Err(TrialError::Size { programs: count, threads: self.threads });
        }
        let seed = self.seed.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(mix.into());
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let programs: Vec<usize> =
            (0..self.threads).map(|_| random.random_range(0..count)).collect();
        let played =
            if self.interacts { self.matrix.clone() } else { without_interaction(self.matrix) };
        let machine = MeasuredMachine::new(played.clone(), &programs, self.events, seed);
        let machine =
            machine.map_err(|_| TrialError::Size { programs: count, threads: self.threads })?;
        let settings = Settings { seed, ..rival.settings.clone() };
        let policy: Box<dyn Policy> = rival.shown.to((rival.policy.make)(&settings), seed);
        let quantum = rival.policy.quantum;
        let mut controller =
            Controller::new(machine, policy, Planner::new(Bounds::none())).holding(Holding::Always);
        let (mut sums, mut all) = (Sums::default(), Vec::new());
        let mut known: Option<(Vec<usize>, Bound, f64)> = None;
        let mut now = Duration::ZERO;
        for until in &self.until {
            while now < *until {
                controller.step().map_err(|error| TrialError::Control(error.to_string()))?;
                let machine = controller.machine_mut();
                let does: Vec<usize> = machine.does().collect();
                let (chance, headroom) = match known.take() {
                    Some((same, bound, headroom)) if same == does => {
                        known = Some((same, bound, headroom));
                        (bound.chance, headroom)
                    }
                    _ => {
                        let bound = bound(&played, &does)?;
                        let true_bound =
                            if self.interacts { bound } else { self::bound(self.matrix, &does)? };
                        let headroom = true_bound.headroom();
                        known = Some((does, bound, headroom));
                        (bound.chance, headroom)
                    }
                };
                // The machine never fails.
                let Ok(()) = machine.wait(quantum);
                now += quantum;
                sums.gained += machine.throughput() - chance;
                sums.headroom += headroom;
            }
            all.push(sums);
        }
        Ok(all)
    }
}

/// Mean throughput of all pairings of these programs, and that of the best.
fn bound(matrix: &Matrix, programs: &[usize]) -> Result<Bound, TrialError> {
    let one =
        |victim: usize, other: usize| matrix.slowdowns[programs[victim]][programs[other]].recip();
    let count = programs.len();
    let mut sum = 0.0;
    for victim in 0..count {
        sum += (0..count)
            .filter(|other| *other != victim)
            .map(|other| one(victim, other))
            .sum::<f64>();
    }
    let weights = Weights::from_floats(count, |i, j| -(one(i, j) + one(j, i)));
    let weights = weights.map_err(|_| TrialError::Slowdowns)?;
    let matching = perfect_matching(&weights, [])
        .map_err(|_| TrialError::Size { programs: matrix.programs.len(), threads: count })?;
    let best = matching.pairs().map(|(i, j)| one(i, j) + one(j, i)).sum();
    Ok(Bound { chance: sum / (count - 1) as f64, best })
}

/// Each victim has its mean speed next to each.
fn without_interaction(matrix: &Matrix) -> Matrix {
    let mean = |row: &Vec<f64>| {
        let speeds = row.iter().map(|slowdown| slowdown.recip());
        row.len() as f64 / speeds.sum::<f64>()
    };
    let slowdowns = matrix.slowdowns.iter().map(|row| vec![mean(row); row.len()]).collect();
    Matrix { slowdowns, ..matrix.clone() }
}

/// Pairs that were not measured but drawn: programs that suffer and hurt more or less, and pairs of them that differ
/// from that, in the proportions of real ones.
#[must_use]
pub fn drawn_pairs(programs: usize, seed: u64) -> Matrix {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let mut draw = |deviation: f64| deviation * random.sample::<f64, _>(StandardNormal);
    let both: Vec<[f64; 2]> = (0..programs).map(|_| [draw(0.12), draw(0.08)]).collect();
    let row = |victim: &[f64; 2]| -> Vec<f64> {
        let one = |hurts: &[f64; 2]| (0.4 + victim[0] + hurts[1] + draw(0.05)).exp();
        both.iter().map(one).collect()
    };
    let slowdowns = both.iter().map(row).collect();
    Matrix { programs: (0..programs).map(|at| format!("drawn-{at}")).collect(), slowdowns }
}

#[cfg(test)]
mod tests {
    use rand::seq::SliceRandom;
    use symbiont_machine::{Change, Move, Target};
    use symbiont_policy::find;
    use symbiont_topology::PuId;

    use super::captured as captured_of;
    use super::*;

    fn trial(matrix: &Matrix) -> Trial<'_> {
        Trial {
            matrix,
            interacts: true,
            threads: 8,
            events: Events::default(),
            mixes: 4,
            until: [5, 20].map(Duration::from_secs).to_vec(),
            seed: 1,
        }
    }

    fn captured(trial: &Trial<'_>, policy: &str) -> Vec<f64> {
        let rival = Rival::new(find(policy).unwrap());
        trial.captured(&rival).unwrap().iter().map(|estimate| estimate.value).collect()
    }

    #[test]
    fn the_best_pairing_captures_all() {
        let matrix = drawn_pairs(8, 1);
        let programs: Vec<usize> = (0..8).collect();
        let bound = bound(&matrix, &programs).unwrap();
        let played = |pairs: &[usize]| {
            let free = Events { move_costs: Duration::ZERO, ..Events::default() };
            let mut machine = MeasuredMachine::new(matrix.clone(), &programs, free, 1).unwrap();
            let ids: Vec<_> = machine.sample().unwrap().threads.iter().map(|t| t.id).collect();
            let cores: Vec<_> =
                machine.topology().cores().iter().flat_map(|core| core.cpus.iter()).collect();
            let on = |(at, cpu): (&usize, &PuId)| Move {
                thread: ids[*at],
                change: Change::Affinity(Target::Cpus((*cpu).into())),
            };
            let moves: Vec<Move> = pairs.iter().zip(&cores).map(on).collect();
            let _ = machine.apply(&moves).unwrap();
            machine.wait(Duration::from_millis(100)).unwrap();
            machine.throughput()
        };
        let mut random = Pcg64Mcg::seed_from_u64(1);
        let mut order = programs.clone();
        let mut all: Vec<f64> = Vec::new();
        for _ in 0..2000 {
            order.shuffle(&mut random);
            all.push(played(&order));
        }
        let most = all.iter().copied().fold(0.0, f64::max);
        let mean = all.iter().sum::<f64>() / all.len() as f64;
        assert!(
            (most - bound.best).abs() < 1e-9,
            "105 pairings, all of them played: {most} {bound:?}"
        );
        assert!((mean / bound.chance - 1.0).abs() < 0.002, "{mean} {bound:?}");
    }

    #[test]
    fn learning_captures_most_and_controls_nothing() {
        let matrix = drawn_pairs(8, 2);
        let mut trial = trial(&matrix);
        let learned = captured(&trial, "learned");
        assert!(learned[1] > 0.75 && learned[1] > learned[0], "{learned:?}");
        let random = captured(&trial, "random");
        assert!(random[1] < 0.3, "{random:?}");
        let mut rival = Rival::new(find("learned").unwrap());
        rival.shown = ShownMeasurements::Shuffled;
        let shuffled = trial.captured(&rival).unwrap()[1].value;
        assert!(shuffled < learned[1] - 0.4, "{shuffled} {learned:?}");
        trial.interacts = false;
        let control = captured(&trial, "learned");
        assert!(control[1].abs() < 0.15, "{control:?}");
    }

    #[test]
    fn equal_trials_give_equal_results() {
        let matrix = drawn_pairs(5, 3);
        let second = Some(Duration::from_secs(2));
        let events = Events { phases: second, arrivals: second, drift: 0.1, ..Events::default() };
        let play = |seed| captured(&Trial { events, seed, ..trial(&matrix) }, "learned");
        assert_eq!(play(1), play(1));
        assert_ne!(play(1), play(2));
    }

    #[test]
    fn odd_trials_are_refused() {
        let matrix = drawn_pairs(5, 3);
        let rival = Rival::new(find("learned").unwrap());
        for threads in [0, 1, 7] {
            let refused = Trial { threads, ..trial(&matrix) }.captured(&rival);
            assert!(matches!(refused, Err(TrialError::Size { .. })), "{refused:?}");
        }
        let one = drawn_pairs(1, 1);
        assert!(trial(&one).captured(&rival).is_err());
    }

    #[test]
    fn only_policies_that_need_no_more_take_part() {
        let names: Vec<&str> = candidates(&drawn_pairs(2, 1)).map(|entry| entry.name).collect();
        for name in ["stay", "random", "never-twice", "learned", "auto"] {
            assert!(names.contains(&name), "{names:?}");
        }
        for name in ["symbiotic", "symbiotic-online", "hysched", "oracle", "activity"] {
            assert!(!names.contains(&name), "{names:?}");
        }
    }

    #[test]
    fn where_pairings_are_alike_nothing_is_captured() {
        let mut matrix = drawn_pairs(6, 1);
        for row in &mut matrix.slowdowns {
            row.fill(1.3);
        }
        let rival = Rival::new(find("stay").unwrap());
        let nothing = trial(&matrix).captured(&rival).unwrap_err().to_string();
        assert!(nothing.contains("no pairing of these programs gains anything"), "{nothing}");
        // Mixes without headroom do not count.
        let sums = |headroom: f64| vec![Sums { gained: headroom / 2.0, headroom }];
        let mixes = [sums(0.0), sums(1.0), sums(0.0), sums(2.0), sums(3.0)];
        let share = captured_of(&mixes, 0, 1).unwrap();
        assert_eq!((share.value, share.n), (0.5, 3));
    }
}
