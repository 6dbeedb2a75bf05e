//! How much of what pairing can gain a trained model captures.
//!
//! Workloads of eight programs are drawn; who pairs by a predictor is rated by the mean slowdowns
//! that were observed, against throttled speed (`symbiont_model::headroom`). *Left out*: the
//! model is trained without any of the workload's programs. *Known*: it is trained on all, the
//! published case. *Shuffled*: each program of a workload left out is predicted by the stack of
//! another one, drawn at random; a control, for nothing may be gained by that.

use std::collections::BTreeSet;
use std::sync::Arc;

use rand::SeedableRng;
use rand::seq::{IteratorRandom, SliceRandom};
use rand_pcg::Pcg64Mcg;
use symbiont_matching::{Request, group};
use symbiont_model::{
    Fold, Headroom, Interference, Objective, Predictor, TrainingSet, ValidationError, headroom,
};

use crate::stats::{Estimate, over_rounds};

/// Programs of a workload.
const PROGRAMS: usize = 8;
/// Workloads that are drawn.
const WORKLOADS: usize = 40;
const SEED: u64 = 1;

/// Shares of the gain of the oracle over random pairing.
#[derive(Debug, Clone, PartialEq)]
pub struct Captured {
    /// What predicted.
    pub predictor: Predictor,
    /// What pairs were chosen for.
    pub objective: Objective,
    /// Of programs that were left out of training.
    pub left_out: Estimate,
    /// Of programs that it was trained on.
    pub known: Estimate,
    /// Of programs that were left out, with stacks shuffled between them.
    pub shuffled: Estimate,
}

/// For each predictor and objective; nothing where there are too few programs, or not all of
/// their pairs were observed.
///
/// # Errors
/// When nothing can be fitted.
pub(super) fn captured(set: &TrainingSet<'_>) -> Result<Vec<Captured>, ValidationError> {
    let programs = set.programs();
    if programs.len() < PROGRAMS + 4 {
        return Ok(Vec::new());
    }
    let mut random = Pcg64Mcg::seed_from_u64(SEED);
    let mut folds = Vec::new();
    for _ in 0..WORKLOADS {
        let drawn = programs.iter().cloned().choose_multiple(&mut random, PROGRAMS);
        let drawn: BTreeSet<Arc<str>> = drawn.into_iter().collect();
        let mut order: Vec<usize> = (0..PROGRAMS).collect();
        order.shuffle(&mut random);
        folds.push(Drawn { left_out: set.leave_out(&drawn)?, known: set.keep_in(&drawn)?, order });
    }
    let mut all = Vec::new();
    for predictor in Predictor::ALL {
        for objective in Objective::ALL {
            let in_order: Vec<usize> = (0..PROGRAMS).collect();
            let of = |fold: &Fold, order: &[usize]| room(fold, predictor, objective, order);
            let of_all = |of: &dyn Fn(&Drawn) -> Option<Headroom>| {
                share(&folds.iter().filter_map(of).collect::<Vec<_>>())
            };
            let left_out = of_all(&|drawn| of(&drawn.left_out, &in_order));
            let known = of_all(&|drawn| of(&drawn.known, &in_order));
            let shuffled = of_all(&|drawn| of(&drawn.left_out, &drawn.order));
            if let (Some(left_out), Some(known), Some(shuffled)) = (left_out, known, shuffled) {
                all.push(Captured { predictor, objective, left_out, known, shuffled });
            }
        }
    }
    Ok(all)
}

/// A workload that was drawn.
struct Drawn {
    /// By models that know none of its programs, and by one that knows all.
    left_out: Fold,
    known: Fold,
    /// Which program each is taken for, as a control.
    order: Vec<usize>,
}

/// Each program is taken for the one at its place in `order`.
fn room(
    fold: &Fold,
    predictor: Predictor,
    objective: Objective,
    order: &[usize],
) -> Option<Headroom> {
    let tables = fold.pairs(predictor)?;
    let truth = Interference::measured(&tables.measured)?;
    let row = |&victim: &usize| -> Option<Vec<f64>> {
        let row = tables.predicted.get(victim)?;
        order.iter().map(|&other| row.get(other).copied()).collect()
    };
    let predicted: Vec<Vec<f64>> = order.iter().map(row).collect::<Option<_>>()?;
    let guess = Interference::measured(&predicted)?;
    headroom(&truth, &guess, objective, |n, cost| {
        let cost = |members: &[usize]| match *members {
            [a, b] => cost(a, b),
            // All share a core: as many cores as pairs.
            _ => 0.0,
        };
        let found = group(&Request::new(n, n / 2, 2), cost);
        let groups = found.map(|found| found.groups).unwrap_or_default();
        groups.iter().filter_map(|g| Some((*g.first()?, *g.get(1)?))).collect()
    })
}

/// Σ gained / Σ headroom, with an interval over the workloads.
fn share(rooms: &[Headroom]) -> Option<Estimate> {
    let sums = |drawn: &[usize]| -> f64 {
        let rooms = drawn.iter().filter_map(|&at| rooms.get(at));
        let (gained, room) = rooms.fold((0.0, 0.0), |(gained, room), one| {
            (gained + one.achieved - one.random, room + one.oracle - one.random)
        });
        gained / room
    };
    over_rounds(rooms.len(), SEED, sums).ok()
}
