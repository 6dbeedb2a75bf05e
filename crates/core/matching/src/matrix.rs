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

    /// The cheapest partners of a vertex by weight + `added`.
    pub(crate) fn partners_of<'m>(&'m self, i: usize, added: &'m [i64]) -> Partners<'m> {
        let sums = self.row(i).chunks(BLOCK).zip(added.chunks(BLOCK)).map(|(weights, added)| {
            let sums = weights.iter().zip(added).map(|(w, a)| w + a);
            // Without a branch, as no other is as easily foreseen.
            sums.fold(i64::MAX, i64::min)
        });
        Partners { i, weights: self.row(i), added, least: sums.collect() }
    }

    /// Doubles the weight of a pair and sets it.
    pub(crate) fn set_doubled(&mut self, i: usize, j: usize, weight: i64) {
        self.cells[i * self.n + j] = 2 * weight;
        self.cells[j * self.n + i] = 2 * weight;
    }

    pub(crate) fn at(&self, i: u32, j: u32) -> i64 {
        self.cells[i as usize * self.n + j as usize]
    }
}

/// Vertices whose least sum is noted.
const BLOCK: usize = 16;

/// A row of the matrix with something added, and the least sum of each block of it.
pub(crate) struct Partners<'m> {
    i: usize,
    weights: &'m [i64],
    added: &'m [i64],
    least: Vec<i64>,
}

impl Partners<'_> {
    /// The `count` partners of least sum, (sum, vertex), in order.
    pub(crate) fn cheapest(&self, count: usize) -> Vec<(i64, usize)> {
        let mut least = self.least.clone();
        // As many blocks have a sum that is no larger than this, so as many sums are not.
        let bound = match count {
            1.. if count <= least.len() => *least.select_nth_unstable(count - 1).1 + 1,
            _ => FAR / 2,
        };
        self.below(0, count, bound.min(FAR / 2))
    }

    /// Up to `count` partners of least sum in units of 2^`grain`, rounded down, that is less than
    /// `bound`; in order. Where sums are equal the vertices that follow `i` come first, so that
    /// vertices without preference do not all choose the same.
    pub(crate) fn below(&self, grain: u32, count: usize, bound: i64) -> Vec<(i64, usize)> {
        let mut partners: Vec<(i64, usize)> = Vec::with_capacity(count + 1);
        let mut bound = bound;
        let mut scan = |from: usize, to: usize| {
            for (block, &least) in self.least.iter().enumerate().skip(from / BLOCK) {
                let first = block * BLOCK;
                if first >= to {
                    break;
                }
                if least >> grain >= bound {
                    continue;
                }
                for j in first.max(from)..(first + BLOCK).min(to) {
                    let sum = (self.weights[j] + self.added[j]) >> grain;
                    if sum < bound {
                        let at = partners.partition_point(|&(s, _)| s <= sum);
                        partners.insert(at, (sum, j));
                        if partners.len() > count {
                            bound = partners.pop().map_or(bound, |(sum, _)| sum);
                        }
                    }
                }
            }
        };
        scan(self.i + 1, self.weights.len());
        scan(0, self.i);
        partners
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
            let found = |count, bound| {
                all.iter().copied().filter(|&(sum, _)| sum < bound).take(count).collect::<Vec<_>>()
            };
            let partners = matrix.partners_of(i, &added);
            for count in [0, 1, 2, 12, 50] {
                assert_eq!(partners.cheapest(count), found(count, FAR / 2));
                assert_eq!(partners.below(0, count, 9), found(count, 9));
            }
        }
    }
}
