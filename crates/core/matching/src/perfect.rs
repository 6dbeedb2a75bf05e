//! Perfect matching of least weight, for callers.
//!
//! # Approach
//! 1. Weights become whole numbers ([`Weights`]), so that no sum is rounded. Below the last step of the
//!    grid there is room for a preference for each pair, which breaks ties.
//! 2. An auction finds duals that are feasible for all pairs and nearly best without odd sets (module
//!    `auction`).
//! 3. The ten partners of least slack of each vertex make a sparse graph. Vertices that tight edges do
//!    not match are matched by Edmonds' algorithm, one tree at a time (modules `search` and `blossom`;
//!    as in Applegate and Cook, *Solving large-scale matching problems*, 1993).
//! 4. The duals are checked on all pairs. Pairs that violate them join the sparse graph, and the search
//!    goes on from there (pricing, as in Cook and Rohe, *Computing minimum-weight perfect matchings*,
//!    1999). When none does, the value of the duals equals the weight, which proves that it is least.
//!
//! # Properties
//! - A matching weighs what brute force finds (`weight_equals_brute_force`), what other implementations
//!   find (`rustworkx_finds_the_same_weight`, `networkx_found_the_same_weight`), and what its own duals
//!   prove (`weight_equals_the_lower_bound`).
//! - Starting duals are feasible (`starting_duals_are_feasible_for_all_pairs`), and a violated pair is
//!   found (`each_broken_pair_is_named_with_its_shortage`). A few pairs out of all proportion do not spoil them
//!   (`pairs_out_of_all_proportion_change_little`).
//! - Floats are matched within the stated rounding (`floats_are_matched_within_the_stated_rounding`),
//!   whole ones exactly (`whole_floats_equal_integers`); nothing overflows within the range
//!   (`the_whole_range_is_matched_without_overflow`).
//! - Ties keep as many previous pairs as possible (`ties_keep_as_many_previous_pairs_as_brute_force`).
//! - A weight that is no number is refused (`weights_that_are_no_numbers_are_refused_with_their_pair`).

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
/// the most `preferred` pairs (such as those of before).
///
/// # Errors
/// An odd number of vertices.
pub fn perfect_matching(
    weights: &Weights,
    preferred: impl IntoIterator<Item = (usize, usize)>,
) -> Result<Matching, OddVertices> {
    let vertices = weights.vertices();
    if vertices % 2 == 1 {
        return Err(OddVertices { vertices });
    }
    let matrix = weights.matrix(preferred);
    let solved = solve(&matrix);
    let edges = (0..).zip(&solved.mate).filter(|&(i, &j)| i < j);
    let sum: i128 = edges.map(|(i, &j)| i128::from(matrix.at(i, j))).sum();
    Ok(Matching {
        mates: solved.mate.iter().map(|&j| j as usize).collect(),
        weight: weights.total(sum),
        lower_bound: weights.total(solved.dual.value()),
    })
}
