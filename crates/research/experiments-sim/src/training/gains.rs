//! How much of what pairing can gain a trained model captures.
//!
//! Workloads of eight programs are drawn; pairing by a predictor is rated by the mean slowdowns
//! that were observed, against throttled speed. *Left out*: the
//! model is trained without any of the workload's programs. *Known*: it is trained on all, the
//! published case. *Shuffled*: each program of a workload left out is predicted by the stack of
//! another one, drawn at random; a control, for nothing may be gained by that.
//!
//! Stacks are *profiled*, measured alone; or *inverted* from what was measured with co-runners, where
//! programs ran in pairs that were drawn at random; or *normalised*, taken from there as they are
//! (Feliu et al., section 3.3). Only the first are the model's own affair; the second are what a
//! scheduler has.
//!
//! Workloads share programs, and intervals respect that: what the oracle and what the predictor
//! gain is a sum over programs, and workloads and programs are drawn apart ([`crossed`]).

use std::collections::BTreeSet;
use std::sync::Arc;

use rand::SeedableRng;
use rand::seq::{IteratorRandom, SliceRandom};
use rand_pcg::Pcg64Mcg;
use symbiont_matching::{Request, group};
use symbiont_model::{Form, Interference, Inversion, Objective};
use symbiont_training::{Fold, Predictor, TrainingSet, ValidationError};

use symbiont_report::stats::{Estimate, crossed};

/// Programs of a workload.
pub(super) const PROGRAMS: usize = 8;
/// Workloads that are drawn for the forms of throttled stacks; each takes several fits.
pub(super) const WORKLOADS: usize = 40;
pub(super) const SEED: u64 = 1;

/// Where the stacks come from that a prediction is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stacks {
    /// Measured alone.
    Profiled,
    /// From random pairs, by the inverse that the policy uses.
    Inverted,
    /// From random pairs, as they are.
    Normalised,
}

impl Stacks {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Profiled, Self::Inverted, Self::Normalised];

    /// The name that reports use.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Profiled => "profiled",
            Self::Inverted => "inverted",
            Self::Normalised => "normalised",
        }
    }

    /// How co-running stacks become them; none where they were measured alone.
    fn inversion(self) -> Option<Inversion> {
        match self {
            Self::Profiled => None,
            Self::Inverted => Some(Inversion::Published),
            Self::Normalised => Some(Inversion::Normalised),
        }
    }
}

/// Shares of the gain of the oracle over random pairing.
#[derive(Debug, Clone, PartialEq)]
pub struct CapturedGain {
    /// The predictor that chose the pairs.
    pub predictor: Predictor,
    /// From which stacks.
    pub stacks: Stacks,
    /// What pairs were chosen for.
    pub objective: Objective,
    /// Of programs that were left out of training.
    pub left_out: Estimate,
    /// Of programs that it was trained on.
    pub known: Estimate,
    /// Of programs that were left out, with stacks shuffled between them.
    pub shuffled: Estimate,
}

/// For each predictor, where its stacks come from, and objective; nothing where there are too few
/// programs, or not all of their pairs were observed. Predictors that know no stacks are there
/// once.
///
/// # Errors
/// When nothing can be fitted.
pub(super) fn captured(
    set: &TrainingSet<'_>,
    workloads: usize,
) -> Result<Vec<CapturedGain>, ValidationError> {
    let all = set.programs().len();
    let mut pairing = Pcg64Mcg::seed_from_u64(SEED + 1);
    let mut all_drawn = Vec::with_capacity(workloads);
    for workload in draw(set, workloads) {
        all_drawn.push(DrawnWorkload {
            left_out: set.leave_out(&workload.programs)?,
            known: set.keep_in(&workload.programs)?,
            workload,
            partners: partners(&mut pairing),
        });
    }
    if all_drawn.is_empty() {
        return Ok(Vec::new());
    }
    let in_order: Vec<usize> = (0..PROGRAMS).collect();
    let mut found = Vec::new();
    for (predictor, stacks) in predictors() {
        for objective in Objective::ALL {
            let of_all = |of: fn(&DrawnWorkload) -> &Fold, order: Option<&[usize]>| {
                let rooms = all_drawn.iter().filter_map(|drawn| {
                    let order = order.unwrap_or(&drawn.workload.order);
                    let fold = of(drawn);
                    let predicted = predicted(fold, predictor, stacks, &drawn.partners)?;
                    let guess = Interference::measured(&shuffled(&predicted, order)?)?;
                    let measured = fold.pairs(Predictor::Constant)?.measured;
                    rooms(&measured, &guess, objective, &drawn.workload.places)
                });
                share(&rooms.collect::<Vec<_>>(), all)
            };
            let left_out = of_all(|drawn| &drawn.left_out, Some(in_order.as_slice()));
            let known = of_all(|drawn| &drawn.known, Some(in_order.as_slice()));
            let shuffled = of_all(|drawn| &drawn.left_out, None);
            if let (Some(left_out), Some(known), Some(shuffled)) = (left_out, known, shuffled) {
                found.push(CapturedGain {
                    predictor,
                    stacks,
                    objective,
                    left_out,
                    known,
                    shuffled,
                });
            }
        }
    }
    Ok(found)
}

/// Predictors with the stacks that they may predict from.
fn predictors() -> impl Iterator<Item = (Predictor, Stacks)> {
    Predictor::ALL.into_iter().flat_map(|predictor| {
        let of_stacks = of_stacks(&predictor);
        let stacks = Stacks::ALL.into_iter().filter(move |s| of_stacks || *s == Stacks::Profiled);
        stacks.map(move |stacks| (predictor, stacks))
    })
}

/// Does it predict from throttled stacks?
pub(super) fn of_stacks(predictor: &Predictor) -> bool {
    match predictor {
        Predictor::Model(_) => true,
        Predictor::Constant | Predictor::VictimPlusAggressor => false,
    }
}

/// A workload that was drawn.
pub(super) struct Workload {
    pub(super) programs: BTreeSet<Arc<str>>,
    /// The places of its programs among all.
    pub(super) places: Vec<usize>,
    /// Which program each is taken for, as a control.
    pub(super) order: Vec<usize>,
}

/// Draws workloads, the first ones always the same; none where there are too few programs.
pub(super) fn draw(set: &TrainingSet<'_>, workloads: usize) -> Vec<Workload> {
    let programs: Vec<Arc<str>> = set.programs().into_iter().collect();
    let mut random = Pcg64Mcg::seed_from_u64(SEED);
    let mut one = |_| {
        let drawn = programs.iter().cloned().choose_multiple(&mut random, PROGRAMS);
        let drawn: BTreeSet<Arc<str>> = drawn.into_iter().collect();
        let mut order: Vec<usize> = (0..PROGRAMS).collect();
        order.shuffle(&mut random);
        let place = |program: &Arc<str>| programs.iter().position(|known| known == program);
        Workload { places: drawn.iter().filter_map(place).collect(), programs: drawn, order }
    };
    let workloads = if programs.len() < PROGRAMS + 4 { 0 } else { workloads };
    (0..workloads).map(&mut one).collect()
}

/// A workload with the models that it is predicted by.
struct DrawnWorkload {
    /// By models that know none of its programs, and by one that knows all.
    left_out: Fold,
    known: Fold,
    workload: Workload,
    /// The co-runner of each when it was measured.
    partners: Vec<usize>,
}

/// Pairs drawn at random: for each program its partner.
fn partners(random: &mut Pcg64Mcg) -> Vec<usize> {
    let mut order: Vec<usize> = (0..PROGRAMS).collect();
    order.shuffle(random);
    let mut partners = vec![0; PROGRAMS];
    for pair in order.chunks_exact(2) {
        if let [a, b] = *pair {
            partners[a] = b;
            partners[b] = a;
        }
    }
    partners
}

/// Slowdowns of pairs, victim by co-runner.
fn predicted(
    fold: &Fold,
    predictor: Predictor,
    stacks: Stacks,
    partners: &[usize],
) -> Option<Vec<Vec<f64>>> {
    let form = match predictor {
        Predictor::Model(form) => Some(form),
        Predictor::Constant | Predictor::VictimPlusAggressor => None,
    };
    match stacks.inversion().zip(form) {
        Some((inversion, form)) => from_co_running(fold, form, inversion, partners),
        None => fold.pairs(predictor).map(|tables| tables.predicted),
    }
}

fn from_co_running(
    fold: &Fold,
    form: Form,
    inversion: Inversion,
    partners: &[usize],
) -> Option<Vec<Vec<f64>>> {
    let stacks = fold.inverted(inversion, partners)?;
    let table = Interference::predict(fold.model.form(form), &stacks).ok()?;
    let all = 0..stacks.len();
    let row = |victim: usize| -> Vec<f64> {
        all.clone().map(|other| table.slowdown(victim, &[victim, other])).collect()
    };
    Some(all.clone().map(row).collect())
}

/// Each program is taken for the one at its place in `order`.
fn shuffled(table: &[Vec<f64>], order: &[usize]) -> Option<Vec<Vec<f64>>> {
    let row = |&victim: &usize| -> Option<Vec<f64>> {
        let row = table.get(victim)?;
        order.iter().map(|&other| row.get(other).copied()).collect()
    };
    order.iter().map(row).collect()
}

/// What a program gains over the mean of all its partners, in parts of its throttled speed.
pub(super) struct Room {
    /// Its place among all programs.
    program: usize,
    /// By the pairs of the prediction.
    gained: f64,
    /// By the best pairs.
    best: f64,
}

/// Rates pairs by what was measured, victim by co-runner.
pub(super) fn rooms(
    measured: &[Vec<f64>],
    guess: &Interference,
    objective: Objective,
    places: &[usize],
) -> Option<Vec<Room>> {
    let truth = Interference::measured(measured)?;
    let chosen = speeds(measured, &matched(guess, objective));
    let best = speeds(measured, &matched(&truth, Objective::Stp));
    let random = |victim: usize, row: &[f64]| {
        let others = row.iter().enumerate().filter(|(other, _)| *other != victim);
        others.map(|(_, slowdown)| slowdown.recip()).sum::<f64>()
            / row.len().saturating_sub(1) as f64
    };
    let of = |(at, (row, &program)): (usize, (&Vec<f64>, &usize))| {
        let random = random(at, row);
        Some(Room { program, gained: chosen.get(at)? - random, best: best.get(at)? - random })
    };
    measured.iter().zip(places).enumerate().map(of).collect()
}

/// The cheapest pairs.
fn matched(table: &Interference, objective: Objective) -> Vec<(usize, usize)> {
    let n = table.len();
    let cost = |members: &[usize]| match *members {
        [a, b] => table.pair_cost(objective, a, b),
        // All share a core: as many cores as pairs.
        _ => 0.0,
    };
    let found = group(&Request::new(n, n / 2, 2), cost);
    let groups = found.map(|found| found.groups).unwrap_or_default();
    groups.iter().filter_map(|g| Some((*g.first()?, *g.get(1)?))).collect()
}

/// Speed of each program co-running with its partner, in parts of its throttled speed.
fn speeds(slowdowns: &[Vec<f64>], pairs: &[(usize, usize)]) -> Vec<f64> {
    let mut speeds = vec![1.0; slowdowns.len()];
    for &(a, b) in pairs {
        for (victim, other) in [(a, b), (b, a)] {
            let slowdown = slowdowns.get(victim).and_then(|row| row.get(other));
            if let (Some(speed), Some(slowdown)) = (speeds.get_mut(victim), slowdown) {
                *speed = slowdown.recip();
            }
        }
    }
    speeds
}

/// Σ gained / Σ headroom, of so many programs altogether.
pub(super) fn share(rooms: &[Vec<Room>], programs: usize) -> Option<Estimate> {
    let sums = |workloads: &[f64], programs: &[f64]| -> f64 {
        let mut sums = (0.0, 0.0);
        for (rooms, workload) in rooms.iter().zip(workloads) {
            for room in rooms {
                let weight = workload * programs.get(room.program).copied().unwrap_or(0.0);
                sums = (sums.0 + weight * room.gained, sums.1 + weight * room.best);
            }
        }
        sums.0 / sums.1
    };
    crossed((rooms.len(), programs), SEED, sums).ok()
}

#[cfg(test)]
mod tests {
    use symbiont_model::{Coefficients, SmtMode};
    use symbiont_training::Weighting;
    use symbiont_training::synthetic::World;

    use super::*;

    /// Programs that behave just as the equations say, without noise.
    #[test]
    fn who_knows_the_law_captures_all_and_who_takes_programs_for_others_does_not() {
        let law = Coefficients::new(World::law(4, 0.8)).unwrap();
        let world = World::new(13, 1, law, 3);
        let observations = world.observe(&world.all_pairs(), 2, 4);
        let set = TrainingSet::new(SmtMode::Smt2, &observations, Weighting::Plain).unwrap();
        // Of one workload: no interval, which would take most of the time.
        let all = captured(&set, 1).unwrap();
        // Two forms from three kinds of stacks, two baselines; three objectives.
        assert_eq!(all.len(), (2 * 3 + 2) * 3);
        let of = |form: Form, stacks: Stacks| {
            let wanted = |c: &&CapturedGain| {
                (c.predictor, c.stacks, c.objective)
                    == (Predictor::Model(form), stacks, Objective::Stp)
            };
            all.iter().find(wanted).unwrap()
        };
        let exact = of(Form::Delta, Stacks::Profiled);
        assert!((exact.left_out.value - 1.0).abs() < 1e-3, "{exact:?}");
        assert!((exact.known.value - 1.0).abs() < 1e-3, "{exact:?}");
        assert!(exact.shuffled.value < 0.9, "{exact:?}");
        assert_eq!((exact.left_out.n, exact.left_out.interval), (1, None));
        let inverted = of(Form::Delta, Stacks::Inverted);
        assert!(inverted.known.value > inverted.shuffled.value, "{inverted:?}");
    }

    #[test]
    fn too_few_programs_have_no_headroom_to_speak_of() {
        let law = Coefficients::new(World::law(3, 0.5)).unwrap();
        let world = World::new(6, 1, law, 1);
        let observations = world.observe(&world.all_pairs(), 1, 1);
        let set = TrainingSet::new(SmtMode::Smt2, &observations, Weighting::Plain).unwrap();
        assert!(captured(&set, 4).unwrap().is_empty());
    }
}
