//! Costs of groups: asked for one by one or by parts of a union, and checked.

use std::ops::Range;

use crate::perfect::OddVertices;
use crate::weights::WeightError;

/// Why threads could not be grouped.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum GroupError {
    /// The width is zero or no power of two.
    #[error("groups of up to {width} threads cannot be built from pairs; use 1, 2, 4 or 8")]
    Width {
        /// What was asked for.
        width: usize,
    },
    /// More threads than places.
    #[error("{threads} threads do not fit on {cores} cores with {width} places each")]
    NoRoom {
        /// How many threads there are.
        threads: usize,
        /// How many cores there are.
        cores: usize,
        /// Places on each.
        width: usize,
    },
    /// The cost function gave infinity or no number.
    #[error("the cost of group {group:?} is {cost}; costs must be finite")]
    NotFinite {
        /// The group it was asked about.
        group: Vec<usize>,
        /// What it gave.
        cost: f64,
    },
    /// Costs that cannot be added.
    #[error(transparent)]
    Weights(#[from] WeightError),
    /// An odd number of vertices to be paired.
    #[error(transparent)]
    Odd(#[from] OddVertices),
}

/// What groups of threads cost on a core.
pub trait GroupCosts {
    /// Cost of one or more threads, given in order.
    fn cost(&mut self, group: &[usize]) -> f64;

    /// Writes the costs of a thread in pairs with each of some that follow it.
    ///
    /// Asked about all pairs of threads that are matched. Implement it where many are computed faster
    /// than one after the other.
    fn pairs(&mut self, thread: usize, others: Range<usize>, costs: &mut [f64]) {
        for (cost, other) in costs.iter_mut().zip(others) {
            *cost = self.cost(&[thread, other]);
        }
    }

    /// Costs of parts of a union of at most eight threads, given in order. All parts have `size`
    /// threads, one or more; which ones, the bits of each mask say, the lowest for the union's first.
    ///
    /// Asked about each two groups that are rearranged, so it decides how long that takes. Implement it
    /// where all parts of a union can be computed faster than one after the other.
    fn parts(&mut self, union: &[usize], size: usize, masks: &[u8], costs: &mut Vec<f64>) {
        let mut part = Vec::with_capacity(size);
        costs.clear();
        costs.extend(masks.iter().map(|&mask| {
            select(union, mask, &mut part);
            self.cost(&part)
        }));
    }
}

/// Writes the threads of a union that a mask names, in order.
pub(crate) fn select(union: &[usize], mask: u8, part: &mut Vec<usize>) {
    part.clear();
    let named = union.iter().enumerate().filter(|(k, _)| mask >> k & 1 == 1);
    part.extend(named.map(|(_, &thread)| thread));
}

/// Asks for costs and remembers the first that is not finite.
pub(crate) struct Costs<C> {
    ask: C,
    wrong: Option<GroupError>,
}

impl<C: GroupCosts> Costs<C> {
    pub(crate) fn new(ask: C) -> Self {
        Self { ask, wrong: None }
    }

    /// Cost of some threads, given in order; nothing for none.
    pub(crate) fn of(&mut self, group: &[usize]) -> f64 {
        if group.is_empty() {
            return 0.0;
        }
        let cost = self.ask.cost(group);
        self.checked(cost, || group.to_vec())
    }

    /// Writes the costs of a thread in pairs with each of some that follow it.
    pub(crate) fn pairs(&mut self, thread: usize, others: Range<usize>, costs: &mut [f64]) {
        self.ask.pairs(thread, others.clone(), costs);
        for (cost, other) in costs.iter_mut().zip(others) {
            *cost = self.checked(*cost, || vec![thread, other]);
        }
    }

    /// Costs of the parts of a union that masks name, all of `size` threads; nothing for none.
    pub(crate) fn parts(
        &mut self,
        union: &[usize],
        size: usize,
        masks: &[u8],
        costs: &mut Vec<f64>,
    ) {
        if size == 0 {
            costs.clear();
            costs.resize(masks.len(), 0.0);
            return;
        }
        self.ask.parts(union, size, masks, costs);
        for (cost, &mask) in costs.iter_mut().zip(masks) {
            *cost = self.checked(*cost, || {
                let mut part = Vec::new();
                select(union, mask, &mut part);
                part
            });
        }
    }

    fn checked(&mut self, cost: f64, group: impl FnOnce() -> Vec<usize>) -> f64 {
        if cost.is_finite() {
            return cost;
        }
        self.wrong.get_or_insert_with(|| GroupError::NotFinite { group: group(), cost });
        0.0
    }

    pub(crate) fn total(&mut self, groups: &[Vec<usize>]) -> f64 {
        groups.iter().map(|group| self.of(group)).sum()
    }

    pub(crate) fn check(&mut self) -> Result<(), GroupError> {
        self.wrong.take().map_or(Ok(()), Err)
    }
}
