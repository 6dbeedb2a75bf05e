//! The dual of a perfect matching: what proves that none is cheaper.

use crate::matrix::Matrix;

/// A set of an odd number of vertices, and the price of an edge inside it.
///
/// At most (size − 1)/2 edges of a matching lie inside, so a price there makes
/// room for the duals of its members and costs (size − 1) × price.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OddSet {
    pub members: Vec<u32>,
    pub price: i64,
}

/// Duals: a number for each vertex, a price for each of some nested odd sets.
///
/// Feasible if for each pair `y_i + y_j ≤ w_ij + 2 × (prices of the sets that
/// hold both)`; then the sum of vertex duals, less `price × (size − 1)` of each
/// set, is at most the weight of any perfect matching.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Dual {
    pub vertices: Vec<i64>,
    pub odd_sets: Vec<OddSet>,
}

/// A pair whose dual constraint is broken, and by how much.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Violation {
    pub pair: (u32, u32),
    pub by: i64,
}

impl Dual {
    /// Its bound on the weight of any perfect matching, if feasible.
    pub(crate) fn value(&self) -> i128 {
        let vertices: i128 = self.vertices.iter().map(|&y| i128::from(y)).sum();
        let sets =
            self.odd_sets.iter().map(|set| i128::from(set.price) * (set.members.len() as i128 - 1));
        vertices - sets.sum::<i128>()
    }

    /// Checks all pairs; says which constraints are broken.
    pub(crate) fn violations(&self, matrix: &Matrix) -> Vec<Violation> {
        let mut sets_of: Vec<Vec<u32>> = vec![Vec::new(); self.vertices.len()];
        for (k, set) in self.odd_sets.iter().enumerate() {
            for &v in &set.members {
                sets_of[v as usize].push(k as u32);
            }
        }
        let price_of = |i: usize, j: usize| -> i64 {
            let shared = sets_of[i].iter().filter(|k| sets_of[j].contains(k));
            shared.map(|&k| self.odd_sets[k as usize].price).sum()
        };
        let mut found = Vec::new();
        for (i, &y) in self.vertices.iter().enumerate() {
            let row = &matrix.row(i)[i + 1..];
            for (k, (&w, &z)) in row.iter().zip(&self.vertices[i + 1..]).enumerate() {
                let short = y + z - w;
                if short > 0 {
                    let j = i + 1 + k;
                    let by = short - 2 * price_of(i, j);
                    if by > 0 {
                        found.push(Violation { pair: (i as u32, j as u32), by });
                    }
                }
            }
        }
        found
    }

    /// The dual without odd sets that is nearest to it: feasible where it was.
    pub(crate) fn without_odd_sets(mut self) -> Vec<i64> {
        for set in &self.odd_sets {
            for &v in &set.members {
                self.vertices[v as usize] -= set.price;
            }
        }
        self.vertices
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two triangles of weight 2 (doubled), far from each other.
    fn triangles() -> Matrix {
        Matrix::doubled(6, |i, j| if i / 3 == j / 3 { 1 } else { 10 })
    }

    fn dual() -> Dual {
        // Across: 20 = 10 + 10; inside: 10 + 10 ≤ 2 + 2 × 9.
        let odd_set = |members| OddSet { members, price: 9 };
        Dual {
            vertices: vec![10; 6],
            odd_sets: vec![odd_set(vec![0, 1, 2]), odd_set(vec![3, 4, 5])],
        }
    }

    #[test]
    fn odd_sets_prove_what_vertices_alone_cannot() {
        // One edge across and one inside each triangle: 20 + 2 + 2.
        assert_eq!(dual().violations(&triangles()), []);
        assert_eq!(dual().value(), 24);
    }

    #[test]
    fn each_broken_pair_is_named_with_its_shortage() {
        let mut dual = dual();
        dual.odd_sets[0].price = 8;
        let by = |i, j| Violation { pair: (i, j), by: 2 };
        assert_eq!(dual.violations(&triangles()), [by(0, 1), by(0, 2), by(1, 2)]);
        dual.odd_sets[0].price = 9;
        dual.vertices[5] += 3;
        let broken = dual.violations(&triangles());
        let found: Vec<_> = broken.iter().map(|v| (v.pair, v.by)).collect();
        assert_eq!(found, [((0, 5), 3), ((1, 5), 3), ((2, 5), 3), ((3, 5), 3), ((4, 5), 3)]);
    }

    #[test]
    fn without_odd_sets_it_is_feasible_still() {
        let vertices = dual().without_odd_sets();
        assert_eq!(vertices, [1; 6]);
        assert_eq!(Dual { vertices, odd_sets: Vec::new() }.violations(&triangles()), []);
    }
}
