//! Perfect matching of least weight, for callers.

use crate::solve::solve;
use crate::weights::Weights;

/// A perfect matching that needs an even number of vertices was asked for an
/// odd one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{vertices} vertices cannot all be paired; add one to stand for \"alone\"")]
pub struct OddVertices {
    /// How many vertices there are.
    pub vertices: usize,
}

/// A perfect matching of least weight, with its proof.
#[derive(Debug, Clone, PartialEq)]
pub struct Matching {
    /// Mate of each vertex.
    pub mates: Vec<usize>,
    /// Sum of the weights of its pairs, as rounded to the grid.
    pub weight: f64,
    /// No perfect matching weighs less than this: the value of a dual that was
    /// checked on all pairs. As the matching is exact it equals `weight`; on
    /// the weights as given the excess is at most [`Weights::rounding`].
    pub lower_bound: f64,
}

impl Matching {
    /// The pairs, each with its smaller vertex first, in order.
    pub fn pairs(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        self.mates.iter().enumerate().filter(|(i, j)| i < j).map(|(i, &j)| (i, j))
    }
}

/// Finds a perfect matching of least weight; among equally light ones, one with
/// the most pairs that are `wished` for (such as those of before).
///
/// # Errors
/// An odd number of vertices.
pub fn perfect_matching(
    weights: &Weights,
    wished: impl FnMut(usize, usize) -> bool,
) -> Result<Matching, OddVertices> {
    let vertices = weights.vertices();
    if vertices % 2 == 1 {
        return Err(OddVertices { vertices });
    }
    let matrix = weights.matrix(wished);
    let solved = solve(&matrix);
    let edges = (0..).zip(&solved.mate).filter(|&(i, &j)| i < j);
    let sum: i128 = edges.map(|(i, &j)| i128::from(matrix.at(i, j))).sum();
    Ok(Matching {
        mates: solved.mate.iter().map(|&j| j as usize).collect(),
        weight: weights.total(sum),
        lower_bound: weights.total(solved.dual.value()),
    })
}
