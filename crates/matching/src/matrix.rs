//! The dense symmetric matrix of integer weights that the solver works on.

/// Weight of a vertex with itself: larger than any edge, small enough to add.
pub(crate) const FAR: i64 = 1 << 60;

/// Side of the squares in which pairs are looked at where both ends' rows are: what has been read of
/// a row is still in the cache when it is needed again.
pub(crate) const TILE: usize = 32;

/// Weights of all pairs of `n` vertices, as a full row-major matrix.
///
/// Entries off the diagonal are even and lie in `0..=limit(n)`; evenness makes
/// every dual change of a search with one tree a whole number.
#[derive(Debug, Clone)]
pub(crate) struct Matrix {
    n: usize,
    cells: Vec<i64>,
}

/// Some partners of a vertex: (sum, vertex).
pub(crate) struct Cheapest {
    pub partners: Vec<(i64, usize)>,
    /// No partner that was left out has a sum less than this.
    pub others: i64,
}

impl Matrix {
    /// Largest weight for which no dual can overflow: a search raises a dual
    /// by at most three times the largest weight, and there are at most n.
    pub(crate) fn limit(n: usize) -> i64 {
        FAR / (16 * n.max(1) as i64)
    }

    /// Asks `weight` for each pair `i < j` once and doubles what it says.
    pub(crate) fn doubled(n: usize, mut weight: impl FnMut(usize, usize) -> i64) -> Self {
        let mut cells = vec![FAR; n * n];
        for i in 0..n {
            for j in i + 1..n {
                cells[i * n + j] = 2 * weight(i, j);
            }
        }
        // Mirrored tile by tile: whole columns would miss the cache each time.
        let tile = |k: usize| k..(k + TILE).min(n);
        for low in (0..n).step_by(TILE) {
            for high in (low..n).step_by(TILE) {
                for i in tile(low) {
                    for j in tile(high).filter(|&j| j > i) {
                        cells[j * n + i] = cells[i * n + j];
                    }
                }
            }
        }
        Self { n, cells }
    }

    pub(crate) fn len(&self) -> usize {
        self.n
    }

    pub(crate) fn row(&self, i: usize) -> &[i64] {
        &self.cells[i * self.n..(i + 1) * self.n]
    }

    /// The `count` partners of `i` for which weight + `added` is least, and less
    /// than `bound`; in order, dearer ones left out.
    ///
    /// Where sums are equal the vertices that follow `i` come first, so that
    /// vertices without preference do not all choose the same.
    pub(crate) fn cheapest(&self, i: usize, added: &[i64], count: usize, bound: i64) -> Cheapest {
        self.cheapest_by(0, i, added, count, bound)
    }

    /// The same with sums in units of 2^`grain`, rounded down.
    pub(crate) fn cheapest_by(
        &self,
        grain: u32,
        i: usize,
        added: &[i64],
        count: usize,
        bound: i64,
    ) -> Cheapest {
        let mut partners: Vec<(i64, usize)> = Vec::with_capacity(count + 1);
        let mut others = bound;
        let mut scan = |first: usize, weights: &[i64], added: &[i64]| {
            for (k, (&w, &a)) in weights.iter().zip(added).enumerate() {
                let sum = (w + a) >> grain;
                if sum < others {
                    let at = partners.partition_point(|&(s, _)| s <= sum);
                    partners.insert(at, (sum, first + k));
                    if partners.len() > count {
                        others = partners.pop().map_or(others, |(s, _)| s);
                    }
                }
            }
        };
        let row = self.row(i);
        scan(i + 1, &row[i + 1..], &added[i + 1..]);
        scan(0, &row[..i], &added[..i]);
        Cheapest { partners, others }
    }

    pub(crate) fn at(&self, i: u32, j: u32) -> i64 {
        self.cells[i as usize * self.n + j as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_matrix_of_any_size_is_symmetric() {
        for n in [0, 1, 2, 31, 32, 33, 70] {
            let matrix = Matrix::doubled(n, |i, j| (100 * i + j) as i64);
            for i in 0..n {
                for j in 0..n {
                    let doubled = 2 * (100 * i.min(j) + i.max(j)) as i64;
                    assert_eq!(matrix.row(i)[j], if i == j { FAR } else { doubled });
                }
            }
        }
    }

    #[test]
    fn the_cheapest_partners_are_as_sorting_finds_them() {
        let matrix = Matrix::doubled(40, |i, j| ((i * 7 + j * 13) % 17) as i64);
        let added: Vec<i64> = (0..40).map(|j| j % 5).collect();
        for i in 0..40 {
            let mut all: Vec<(i64, usize)> =
                (0..40).filter(|&j| j != i).map(|j| (matrix.row(i)[j] + added[j], j)).collect();
            all.sort_by_key(|&(sum, j)| (sum, (j + 40 - i) % 40));
            for (count, bound) in [(12, FAR / 2), (12, 9), (50, FAR / 2)] {
                let found = matrix.cheapest(i, &added, count, bound);
                let kept: Vec<_> =
                    all.iter().copied().filter(|&(sum, _)| sum < bound).take(count).collect();
                assert_eq!(found.partners, kept);
                let rest = all.iter().filter(|pair| !kept.contains(pair)).map(|&(sum, _)| sum);
                assert!(rest.min().is_none_or(|least| least >= found.others));
            }
        }
    }
}
