//! The exact solver: sparse searches, and duals checked on all pairs.

use std::cmp::Reverse;

use crate::auction::starting_duals;
use crate::blossom::{NONE, State};
use crate::dual::{Dual, Violation};
use crate::matrix::{FAR, Matrix};
use crate::search::{Neighbours, augment};

/// How many partners of least slack each vertex has in the sparse graph.
const NEAREST: usize = 10;

/// How many more it has of those that are as near but for what is left of the
/// auction. Among many equal threads all would else be near to the same few.
const EQUALS: usize = 6;

/// A perfect matching and the dual that proves it best.
#[derive(Debug)]
pub(crate) struct Solved {
    pub mate: Vec<u32>,
    pub dual: Dual,
}

/// Solves for an even number of vertices.
pub(crate) fn solve(matrix: &Matrix) -> Solved {
    let (mut y, step) = starting_duals(matrix);
    let grain = step.ilog2() + 3;
    let mut near = nearest(matrix, &mut y, grain);
    let mut state = State::new(y);
    loop {
        match_tight(matrix, &near, &mut state);
        complete(matrix, &near, &mut state);
        let dual = state.dual_solution();
        let broken = dual.violations(matrix);
        if broken.is_empty() {
            return Solved { mate: state.mate, dual };
        }
        state = mend(matrix, &mut near, &state.mate, dual, broken, grain);
    }
}

/// The sparse graph. Also raises the duals by the slack that it finds.
fn nearest(matrix: &Matrix, y: &mut [i64], grain: u32) -> Neighbours {
    let n = matrix.len();
    let mut near: Neighbours = vec![Vec::new(); n];
    let mut slack = vec![0; n];
    let minus: Vec<i64> = y.iter().map(|y| -y).collect();
    for (i, slack) in slack.iter_mut().enumerate() {
        let partners = matrix.partners_of(i, &minus);
        let kept = partners.cheapest(NEAREST);
        *slack = kept.first().map_or(0, |&(rest, _)| rest - y[i]);
        // Rounded, so many are no dearer than these.
        let bound = kept.get(EQUALS - 1).map_or(FAR / 2, |&(rest, _)| (rest >> grain) + 1);
        let equals = partners.below(grain, EQUALS, bound);
        for (_, j) in kept.into_iter().chain(equals) {
            near[i].push(j as u32);
            near[j].push(i as u32);
        }
    }
    // Both ends of a pair may take half of the slack that each has everywhere.
    for (y, slack) in y.iter_mut().zip(&slack) {
        *y += slack.div_euclid(2);
    }
    for list in &mut near {
        list.sort_unstable();
        list.dedup();
    }
    near
}

/// Raises the duals of unmatched vertices as far as the sparse graph lets them
/// and matches tight pairs as they come.
fn match_tight(matrix: &Matrix, near: &Neighbours, state: &mut State) {
    for i in 0..matrix.len() as u32 {
        if state.mate[i as usize] != NONE {
            continue;
        }
        let slack = |j: u32| matrix.at(i, j) - state.y[i as usize] - state.y[j as usize];
        let list = &near[i as usize];
        let least = list.iter().map(|&j| slack(j)).min().unwrap_or(0);
        let mate = list.iter().find(|&&j| slack(j) == least && state.mate[j as usize] == NONE);
        let mate = mate.copied();
        state.y[i as usize] += least;
        if let Some(j) = mate {
            state.pair(i, j);
        }
    }
}

/// Matches what is unmatched, two vertices with each search.
fn complete(matrix: &Matrix, near: &Neighbours, state: &mut State) {
    let mut open: Vec<u32> =
        (0..matrix.len() as u32).filter(|&v| state.mate[v as usize] == NONE).collect();
    let mut events = Vec::new();
    while let Some(root) = open.pop() {
        let row = matrix.row(root as usize);
        let rest = |v: &&u32| row[**v as usize] - state.y[**v as usize];
        let Some(&fallback) = open.iter().min_by_key(rest) else { return };
        augment(matrix, near, state, &mut events, root, fallback);
        open.retain(|&v| state.mate[v as usize] == NONE);
    }
}

/// Makes the duals feasible again, without odd sets, keeps the mates that are
/// still tight, and extends the sparse graph by what is near now and by the
/// worst of the broken pairs.
fn mend(
    matrix: &Matrix,
    near: &mut Neighbours,
    mate: &[u32],
    dual: Dual,
    mut broken: Vec<Violation>,
    grain: u32,
) -> State {
    let mut y = dual.without_odd_sets();
    let mut added = vec![0; y.len()];
    let mut times = vec![0; y.len()];
    for &Violation { pair: (i, j), .. } in &broken {
        times[i as usize] += 1;
        times[j as usize] += 1;
    }
    broken.sort_unstable_by_key(|v| Reverse((v.by, v.pair)));
    for Violation { pair: (i, j), .. } in broken {
        let (a, b) = (i as usize, j as usize);
        if added[a].min(added[b]) < NEAREST {
            near[a].push(j);
            near[b].push(i);
            added[a] += 1;
            added[b] += 1;
        }
        // The end that breaks more pairs gives way.
        let gives = if times[a] >= times[b] { a } else { b };
        y[gives] -= (y[a] + y[b] - matrix.at(i, j)).max(0);
    }
    let fresh = nearest(matrix, &mut y, grain);
    for (list, fresh) in near.iter_mut().zip(fresh) {
        list.extend(fresh);
        list.sort_unstable();
        list.dedup();
    }
    let mut state = State::new(y);
    for (i, &j) in (0..).zip(mate) {
        if i < j && matrix.at(i, j) == state.y[i as usize] + state.y[j as usize] {
            state.pair(i, j);
        }
    }
    state
}
