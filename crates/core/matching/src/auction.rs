//! Starting duals: an auction for the relaxation without odd sets.
//!
//! # Approach
//! Without odd sets, a matching is an assignment in which each vertex buys a
//! partner and the two sides have equal duals. Vertices bid for their cheapest
//! partner (weight + price) and raise its price by the distance to the second
//! best plus a step (Bertsekas, *The auction algorithm*, 1988), in rounds of
//! ever smaller steps. Whatever the prices `p`, half of `min_j (w_ij + p_j) −
//! p_i` is feasible for all pairs; after the last round its sum is within
//! vertices × step / 2 of the best, but for what single precision and weights that are far from the usual ones
//! ([`Usual`]) add. Nearly each bid looks at all partners, so prices are single-precision numbers, many of which
//! are compared at once.

use crate::matrix::Matrix;

/// Steps of the rounds, as parts of the spread of weights around their means.
/// What is left to the search is cheap after the last of them; smaller first
/// steps make prices creep, larger ones overshoot.
const STEPS: [f32; 4] = [4.0, 40.0, 400.0, 1000.0];

/// Rests beyond this, in spreads and of either sign, count as this much. Prices grow to some times as much, and
/// in single precision the last step has to raise them still.
const LARGEST: f32 = 64.0;

/// Partners that are looked at at once.
const LANES: usize = 16;

/// Duals that are feasible for all pairs and nearly best without odd sets, and
/// by how much duals of equal vertices may differ.
pub(crate) fn starting_duals(matrix: &Matrix) -> (Vec<i64>, i64) {
    let n = matrix.len();
    let usual = Usual::of(matrix);
    let mean = mean_duals(matrix, usual);
    let spread = spread(matrix, &mean, usual);
    let rests = Rests::new(matrix, &mean, spread);
    let mut prices = vec![0.0; rests.width];
    for part in STEPS {
        rests.sell(&mut prices, part.recip());
    }
    let raised = prices.iter().map(|&price| (f64::from(price) * spread as f64) as i64);
    let prices: Vec<i64> = raised.zip(&mean).map(|(raised, y)| raised - y).collect();
    let y = (0..n)
        .map(|i| {
            let costs = matrix.row(i).iter().zip(&prices).map(|(w, p)| w + p);
            (costs.min().unwrap_or(0) - prices[i]).div_euclid(2)
        })
        .collect();
    let last = STEPS[STEPS.len() - 1];
    (y, ((spread as f64 / f64::from(last)) as i64).max(1))
}

/// What weights are beyond the duals from means, in units of their spread.
///
/// In single precision, as only prices come of it: whatever they are, the duals made of them are exact.
struct Rests {
    /// Length of a row: the vertices and some that no one can buy.
    width: usize,
    cells: Vec<f32>,
}

impl Rests {
    fn new(matrix: &Matrix, mean: &[i64], spread: i64) -> Self {
        let n = matrix.len();
        let width = n.next_multiple_of(LANES);
        let mut cells = vec![f32::INFINITY; n * width];
        let unit = (spread as f32).recip();
        for (i, row) in cells.chunks_exact_mut(width.max(1)).enumerate() {
            for ((cell, w), y) in row.iter_mut().zip(matrix.row(i)).zip(mean) {
                *cell = ((w - mean[i] - y) as f32 * unit).clamp(-LARGEST, LARGEST);
            }
            row[i] = f32::INFINITY;
        }
        Self { width, cells }
    }

    /// Every vertex buys a partner; each bid raises a price by at least `step`.
    fn sell(&self, prices: &mut [f32], step: f32) {
        let mut buyers: Vec<Option<usize>> = vec![None; self.width];
        let mut waiting: Vec<usize> = (0..self.cells.len() / self.width.max(1)).collect();
        while let Some(i) = waiting.pop() {
            let (partner, best, second) = self.best_two(i, prices);
            // With two vertices there is no second-best partner.
            prices[partner] += step + if second.is_finite() { second - best } else { 0.0 };
            waiting.extend(buyers[partner].replace(i));
        }
    }

    /// The cheapest partner of a vertex, its cost and that of the next. Of equally cheap ones the first
    /// that follows the vertex, so that vertices without preference do not all choose the same.
    fn best_two(&self, i: usize, prices: &[f32]) -> (usize, f32, f32) {
        let row = &self.cells[i * self.width..(i + 1) * self.width];
        let least = |a: f32, b: f32| if a < b { a } else { b };
        let (mut bests, mut seconds) = ([f32::INFINITY; LANES], [f32::INFINITY; LANES]);
        for (rests, prices) in row.chunks_exact(LANES).zip(prices.chunks_exact(LANES)) {
            for lane in 0..LANES {
                let cost = rests[lane] + prices[lane];
                let dearer = if bests[lane] > cost { bests[lane] } else { cost };
                seconds[lane] = least(seconds[lane], dearer);
                bests[lane] = least(bests[lane], cost);
            }
        }
        let (mut best, mut second) = (f32::INFINITY, f32::INFINITY);
        for (own, next) in bests.into_iter().zip(seconds) {
            second = least(second, least(next, if best > own { best } else { own }));
            best = least(best, own);
        }
        let lanes = (0..LANES).filter(|&lane| bests[lane] == best);
        let equals = lanes.flat_map(|lane| (lane..self.width).step_by(LANES));
        let cheapest = equals.filter(|&j| row[j] + prices[j] == best);
        let partner = cheapest.min_by_key(|&j| (j < i, j));
        (partner.unwrap_or(i), best, second)
    }
}

/// Weights as most are: others count as the nearest of these for means, which a single pair out of all
/// proportion would else govern.
#[derive(Debug, Clone, Copy)]
struct Usual {
    least: i64,
    most: i64,
}

impl Usual {
    /// Of some pairs all but 2 %, and as far again on either side some times over.
    fn of(matrix: &Matrix) -> Self {
        let n = matrix.len();
        let pairs = (0..n).flat_map(|i| (i + 1..n).map(move |j| (i, j)));
        let count = n * n.saturating_sub(1) / 2;
        let some = pairs.step_by((count / SAMPLED).max(1));
        let mut weights: Vec<i64> = some.map(|(i, j)| matrix.row(i)[j]).collect();
        weights.sort_unstable();
        let at = |percent: usize| weights.get(weights.len() * percent / 100).copied();
        match at(1).zip(at(99)) {
            Some((low, high)) if low < high => {
                let reach = REACH * (high - low);
                Self { least: low - reach, most: high + reach }
            }
            _ => Self { least: i64::MIN, most: i64::MAX },
        }
    }

    fn nearest(self, weight: i64) -> i64 {
        weight.clamp(self.least, self.most)
    }
}

/// Pairs that are looked at for what is usual.
const SAMPLED: usize = 4_000;
/// How far from the usual weights is usual, too, in their range.
const REACH: i64 = 2;

/// Duals from row means: exact where weights are sums of a share of each end.
fn mean_duals(matrix: &Matrix, usual: Usual) -> Vec<i64> {
    let n = matrix.len();
    let others = (n as i64 - 1).max(1);
    // No sum overflows: n times the largest weight is far less than the largest number.
    let sum = |weights: &[i64]| weights.iter().map(|&w| usual.nearest(w)).sum::<i64>();
    let sums: Vec<i64> =
        (0..n).map(|i| sum(&matrix.row(i)[..i]) + sum(&matrix.row(i)[i + 1..])).collect();
    let all: i128 = sums.iter().map(|&sum| i128::from(sum)).sum();
    let mean = (all / (i128::from(others) * n.max(1) as i128)) as i64;
    sums.iter().map(|sum| sum / others - mean / 2).collect()
}

/// Mean distance of the weights from the sums of duals, over some rows; at least 1.
fn spread(matrix: &Matrix, y: &[i64], usual: Usual) -> i64 {
    let n = matrix.len();
    let rows = (0..n).step_by((n / 64).max(1));
    let pairs = rows.flat_map(|i| (0..n).filter(move |&j| j != i).map(move |j| (i, j)));
    let (sum, count) = pairs.fold((0_i128, 0_i128), |(sum, count), (i, j)| {
        (sum + i128::from((usual.nearest(matrix.row(i)[j]) - y[i] - y[j]).abs()), count + 1)
    });
    ((sum / count.max(1)) as i64).max(1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::dual::Dual;

    proptest! {
        #[test]
        fn starting_duals_are_feasible_for_all_pairs(
            half in 1_usize..=20, top in 1_i64..1 << 40, cells in prop::collection::vec(0.0..1.0, 780),
        ) {
            let mut cells = cells.iter().map(|x: &f64| (x * x * top as f64) as i64);
            let matrix = Matrix::doubled(2 * half, |_, _| cells.next().unwrap());
            let dual = Dual { vertices: starting_duals(&matrix).0, odd_sets: Vec::new() };
            prop_assert_eq!(dual.violations(&matrix), []);
        }
    }

    #[test]
    fn pairs_out_of_all_proportion_change_little() {
        let weight = |i: usize, j: usize| ((i * 37 + j * 101 + i * j * 13) % 1000) as i64;
        let sum = |far: i64| {
            let odd = |i: usize, j: usize| (i + 2 * j) % 251 == 0;
            let matrix = Matrix::doubled(200, |i, j| if odd(i, j) { far } else { weight(i, j) });
            starting_duals(&matrix).0.iter().sum::<i64>()
        };
        let (near, far) = (sum(2000), sum(1 << 40));
        assert!((near - far).abs() < near / 20, "{near} {far}");
    }

    #[test]
    fn additive_weights_need_no_auction() {
        let share = |i: usize| (i * i) as i64;
        let matrix = Matrix::doubled(30, |i, j| share(i) + share(j));
        let sum: i64 = starting_duals(&matrix).0.iter().sum();
        let best: i64 = (0..30).map(|i| 2 * share(i)).sum();
        assert!((best - 30..=best).contains(&sum), "{sum} of {best}");
    }
}
