//! How much of what pairing can gain the kernel form captures, from stacks in company.
//!
//! As for the other forms ([`gains`](super::gains)), on more workloads of eight programs, since each
//! takes but one small fit. What a scheduler has is what programs did beside each other: in so many
//! quanta, each of other pairs, every program met so many different partners of its workload
//! ([`PARTNERS`]), and its stack is the mean beside them. One quantum is the least that there can be;
//! after seven of them everybody has met everybody, those with whom it is then predicted, too: that is
//! what a scheduler has that tried them all, not what it knows of pairs that were never together.
//!
//! *Left out*: the form was chosen and fitted without any of the workload's programs; nothing of them is
//! known but these stacks. *Known*: on all programs. *Shuffled*: left out, each predicted by the
//! stack of another one.

use std::collections::BTreeSet;
use std::sync::Arc;

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64Mcg;
use symbiont_model::{Interference, Kernel, Objective, Shares, TrainingSet, ValidationError};

use super::gains::{PROGRAMS, Room, SEED, Workload, draw, rooms, share};
use crate::stats::Estimate;

/// Workloads that are drawn.
pub(super) const WORKLOADS: usize = 400;

/// Different partners of each program; of seven others.
pub const PARTNERS: [usize; 2] = [1, 7];

/// Lower ends of intervals have to be above this part of the oracle's gain.
pub const GATE: f64 = 0.5;

/// Shares of the gain of the oracle over random pairing.
#[derive(Debug, Clone, PartialEq)]
pub struct InCompany {
    /// Partners that each program met.
    pub partners: usize,
    /// What pairs were chosen for.
    pub objective: Objective,
    /// Of programs that were left out of training.
    pub left_out: Estimate,
    /// Of programs that it was trained on.
    pub known: Estimate,
    /// Of programs that were left out, with stacks shuffled between them.
    pub shuffled: Estimate,
}

impl InCompany {
    /// Is it sure to capture more than the gate asks for?
    #[must_use]
    pub fn passes(&self) -> bool {
        self.left_out.low().is_some_and(|low| low > GATE)
    }
}

/// Ways to predict a workload.
#[derive(Default)]
struct Rooms {
    left_out: Vec<Vec<Room>>,
    known: Vec<Vec<Room>>,
    shuffled: Vec<Vec<Room>>,
}

/// For each number of partners and each objective; nothing where there are too few programs, or not
/// all of their pairs were observed.
///
/// # Errors
/// When nothing can be fitted.
pub(super) fn in_company(
    set: &TrainingSet<'_>,
    workloads: usize,
) -> Result<Vec<InCompany>, ValidationError> {
    let drawn = draw(set, workloads);
    if drawn.is_empty() {
        return Ok(Vec::new());
    }
    let cases: Vec<(usize, Objective)> = PARTNERS
        .into_iter()
        .flat_map(|partners| Objective::ALL.map(|objective| (partners, objective)))
        .collect();
    let mut found: Vec<Rooms> = cases.iter().map(|_| Rooms::default()).collect();
    let all = set.kernel_without(&BTreeSet::new())?;
    let mut random = Pcg64Mcg::seed_from_u64(SEED + 2);
    for workload in &drawn {
        let rounds = rounds(&mut random);
        let kernel = set.kernel_without(&workload.programs)?;
        for (&(partners, objective), rooms) in cases.iter().zip(&mut found) {
            let met = rounds.get(..partners).unwrap_or(&rounds);
            let Some(stacks) = stacks(set, workload, met) else { continue };
            let exchanged: Vec<Shares> =
                workload.order.iter().filter_map(|&at| stacks.get(at).cloned()).collect();
            let of = |kernel, stacks| of(set, workload, (kernel, stacks), objective);
            rooms.left_out.extend(of(&kernel, &stacks));
            rooms.known.extend(of(&all, &stacks));
            rooms.shuffled.extend(of(&kernel, &exchanged));
        }
    }
    let programs = set.programs().len();
    let of = |((partners, objective), rooms): ((usize, Objective), Rooms)| {
        let Rooms { left_out, known, shuffled } = rooms;
        Some(InCompany {
            partners,
            objective,
            left_out: share(&left_out, programs)?,
            known: share(&known, programs)?,
            shuffled: share(&shuffled, programs)?,
        })
    };
    Ok(cases.into_iter().zip(found).filter_map(of).collect())
}

/// Rounds of pairs in which everybody meets everybody once, in an order that is drawn: for each
/// program its partner (the circle method of round-robin tournaments).
fn rounds(random: &mut Pcg64Mcg) -> Vec<Vec<usize>> {
    const TURNING: usize = PROGRAMS - 1;
    let mut order: Vec<usize> = (0..PROGRAMS).collect();
    order.shuffle(random);
    let round = |round: usize| {
        let mut partners = vec![0; PROGRAMS];
        for step in 0..PROGRAMS / 2 {
            let a = order[(round + step) % TURNING];
            let b = if step == 0 { TURNING } else { (round + TURNING - step) % TURNING };
            let b = order[b];
            (partners[a], partners[b]) = (b, a);
        }
        partners
    };
    (0..TURNING).map(round).collect()
}

/// The mean stack of each program beside those that it met.
fn stacks(
    set: &TrainingSet<'_>,
    workload: &Workload,
    rounds: &[Vec<usize>],
) -> Option<Vec<Shares>> {
    let programs: Vec<&Arc<str>> = workload.programs.iter().collect();
    let met = |(at, program): (usize, &&Arc<str>)| {
        let partner = |round: &Vec<usize>| Some(Arc::clone(programs.get(*round.get(at)?)?));
        let partners: Vec<Arc<str>> = rounds.iter().map(partner).collect::<Option<_>>()?;
        set.beside(program, &partners)
    };
    programs.iter().enumerate().map(met).collect()
}

fn of(
    set: &TrainingSet<'_>,
    workload: &Workload,
    (kernel, stacks): (&Kernel, &[Shares]),
    objective: Objective,
) -> Option<Vec<Room>> {
    let programs: Vec<Arc<str>> = workload.programs.iter().cloned().collect();
    let guess = Interference::predict(kernel, stacks).ok()?;
    rooms(&set.measured(&programs)?, &guess, objective, &workload.places)
}

#[cfg(test)]
mod tests {
    use symbiont_model::synthetic::World;
    use symbiont_model::{Coefficients, SmtMode};

    use super::*;

    #[test]
    fn everybody_meets_everybody_once() {
        let rounds = rounds(&mut Pcg64Mcg::seed_from_u64(1));
        let mut met = BTreeSet::new();
        for round in &rounds {
            for (one, &other) in round.iter().enumerate() {
                assert_ne!(one, other);
                assert_eq!(round[other], one);
                assert!(met.insert((one, other)));
            }
        }
        assert_eq!((rounds.len(), met.len()), (7, 8 * 7));
        assert_ne!(rounds, super::rounds(&mut Pcg64Mcg::seed_from_u64(2)));
    }

    /// Nothing of this world is a Gaussian, but programs that are alike behave alike.
    #[test]
    fn who_goes_by_what_is_alike_captures_much_and_who_takes_programs_for_others_nothing() {
        let law = Coefficients::new(World::law(4, 0.8)).unwrap();
        let world = World::new(24, 1, law, 3);
        let observations = world.observe(&world.all_pairs(), 2, 4);
        let set = TrainingSet::new(SmtMode::Smt2, &observations).unwrap();
        let all = in_company(&set, 30).unwrap();
        assert_eq!(all.len(), PARTNERS.len() * Objective::ALL.len());
        for found in all.iter().filter(|found| found.objective == Objective::Stp) {
            assert!(found.left_out.value > 0.6 && found.known.value > 0.8, "{found:?}");
            let shuffled = found.shuffled.interval.unwrap();
            assert!(shuffled.low < 0.0 && found.shuffled.value.abs() < 0.3, "{found:?}");
            assert_eq!(found.left_out.n, 30);
            assert_eq!(found.passes(), found.left_out.low().unwrap() > GATE);
        }
    }

    #[test]
    fn too_few_programs_have_no_headroom_to_speak_of() {
        let law = Coefficients::new(World::law(3, 0.5)).unwrap();
        let world = World::new(6, 1, law, 1);
        let observations = world.observe(&world.all_pairs(), 1, 1);
        let set = TrainingSet::new(SmtMode::Smt2, &observations).unwrap();
        assert!(in_company(&set, 4).unwrap().is_empty());
    }
}
