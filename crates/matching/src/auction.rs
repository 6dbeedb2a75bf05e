//! Starting duals: an auction for the relaxation without odd sets.
//!
//! # Approach
//! Without odd sets, a matching is an assignment in which each vertex buys a
//! partner and the two sides have equal duals. Vertices bid for their cheapest
//! partner (weight + price) and raise its price by the distance to the second
//! best plus a step (Bertsekas, *The auction algorithm*, 1988), in rounds of
//! ever smaller steps. Whatever the prices `p`, half of `min_j (w_ij + p_j) −
//! p_i` is feasible for all pairs; after the last round its sum is within
//! vertices × step / 2 of the best.

use crate::matrix::{Cheapest, FAR, Matrix};

/// Steps of the rounds, as parts of the spread of weights around their means.
/// What is left to the search is cheap after the last of them; smaller first
/// steps make prices creep, larger ones overshoot.
const STEPS: [i64; 4] = [4, 40, 400, 1000];

/// How many of the cheapest partners of a vertex are kept at hand.
const KEPT: usize = 12;

/// The cheapest partners of one vertex, at the prices of when it was scanned.
///
/// Prices only rise, so a partner that was not kept never costs less than
/// `others`.
struct Shortlist {
    /// (weight, vertex)
    partners: Vec<(i64, usize)>,
    others: i64,
}

impl Shortlist {
    /// Looks at all partners. At least `KEPT` of them, or all, must cost less
    /// than `bound`.
    fn scan(matrix: &Matrix, i: usize, prices: &[i64], bound: i64) -> Self {
        let Cheapest { mut partners, others } = matrix.cheapest(i, prices, KEPT, bound);
        for (cost, j) in &mut partners {
            *cost -= prices[*j];
        }
        Self { partners, others }
    }

    /// What the dearest of the kept partners costs by now.
    fn bound(&self, prices: &[i64]) -> i64 {
        self.partners.iter().map(|&(w, j)| w + prices[j]).max().map_or(FAR / 2, |c| c + 1)
    }

    /// The cheapest partner, its cost and that of the next.
    fn best_two(&self, prices: &[i64]) -> (usize, i64, i64) {
        let (mut partner, mut best, mut second) = (0, FAR, FAR);
        for &(w, j) in &self.partners {
            let cost = w + prices[j];
            if cost < best {
                (second, best, partner) = (best, cost, j);
            } else if cost < second {
                second = cost;
            }
        }
        (partner, best, second)
    }
}

/// Duals that are feasible for all pairs and nearly best without odd sets, and
/// by how much duals of equal vertices may differ.
pub(crate) fn starting_duals(matrix: &Matrix) -> (Vec<i64>, i64) {
    let n = matrix.len();
    let mean = mean_duals(matrix);
    let spread = spread(matrix, &mean);
    let mut prices: Vec<i64> = mean.iter().map(|y| -y).collect();
    let mut lists: Vec<Shortlist> =
        (0..n).map(|i| Shortlist::scan(matrix, i, &prices, FAR / 2)).collect();
    let mut step = 1;
    for part in STEPS {
        step = (spread / part).max(1);
        sell(matrix, &mut prices, &mut lists, step);
    }
    let y = (0..n)
        .map(|i| {
            let costs = matrix.row(i).iter().zip(&prices).map(|(w, p)| w + p);
            (costs.min().unwrap_or(0) - prices[i]).div_euclid(2)
        })
        .collect();
    (y, step)
}

/// Every vertex buys a partner; each bid raises a price by at least `step`.
fn sell(matrix: &Matrix, prices: &mut [i64], lists: &mut [Shortlist], step: i64) {
    let n = prices.len();
    let mut buyers: Vec<Option<usize>> = vec![None; n];
    let mut waiting: Vec<usize> = (0..n).collect();
    while let Some(i) = waiting.pop() {
        let (mut partner, mut best, mut second) = lists[i].best_two(prices);
        if second > lists[i].others {
            let bound = lists[i].bound(prices);
            lists[i] = Shortlist::scan(matrix, i, prices, bound);
            (partner, best, second) = lists[i].best_two(prices);
        }
        // With two vertices there is no second-best partner.
        prices[partner] += step + if second < FAR / 2 { second - best } else { 0 };
        waiting.extend(buyers[partner].replace(i));
    }
}

/// Duals from row means: exact where weights are sums of a share of each end.
fn mean_duals(matrix: &Matrix) -> Vec<i64> {
    let n = matrix.len() as i128;
    let others = (n - 1).max(1);
    let sums: Vec<i128> = (0..matrix.len())
        .map(|i| matrix.row(i).iter().map(|&w| i128::from(w)).sum::<i128>() - i128::from(FAR))
        .collect();
    let mean = sums.iter().sum::<i128>() / (others * n.max(1));
    sums.iter().map(|sum| (sum / others - mean / 2) as i64).collect()
}

/// Mean distance of the weights from the sums of duals, over some rows.
fn spread(matrix: &Matrix, y: &[i64]) -> i64 {
    let n = matrix.len();
    let rows = (0..n).step_by((n / 64).max(1));
    let pairs = rows.flat_map(|i| (0..n).filter(move |&j| j != i).map(move |j| (i, j)));
    let (sum, count) = pairs.fold((0_i128, 0_i128), |(sum, count), (i, j)| {
        (sum + i128::from((matrix.row(i)[j] - y[i] - y[j]).abs()), count + 1)
    });
    (sum / count.max(1)) as i64
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
    fn additive_weights_need_no_auction() {
        let share = |i: usize| (i * i) as i64;
        let matrix = Matrix::doubled(30, |i, j| share(i) + share(j));
        let sum: i64 = starting_duals(&matrix).0.iter().sum();
        let best: i64 = (0..30).map(|i| 2 * share(i)).sum();
        assert!((best - 30..=best).contains(&sum), "{sum} of {best}");
    }
}
