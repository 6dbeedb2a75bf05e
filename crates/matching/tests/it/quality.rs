//! How far groups of four are from the best ones.

use symbiont_matching::{Request, group};

use crate::brute_force::{assert_partition, least_cost};
use crate::instances::{Random, Stacks};

/// Costs of seeded instances, summed.
#[derive(Default)]
struct Sums {
    least: f64,
    random: f64,
    /// With each number of sweeps.
    found: [f64; SWEEPS.len()],
}

const SWEEPS: [usize; 3] = [0, 1, usize::MAX];

fn sums(threads: usize, instances: u64) -> Sums {
    let cores = threads / 4;
    let mut sums = Sums::default();
    for seed in 0..instances {
        let stacks = Stacks::new(threads, seed);
        let cost = |g: &[usize]| stacks.loss(g);
        let least = least_cost(threads, cores, 4, cost);
        sums.least += least;
        sums.random += mean_of_random(threads, seed, cost);
        for (sum, sweeps) in sums.found.iter_mut().zip(SWEEPS) {
            let request = Request { sweeps, ..Request::new(threads, cores, 4) };
            let found = group(&request, cost).unwrap();
            assert_partition(&found.groups, threads, cores, 4);
            assert!(found.cost >= least - 1e-9 * least.abs());
            *sum += found.cost;
        }
    }
    sums
}

fn mean_of_random(threads: usize, seed: u64, cost: impl Fn(&[usize]) -> f64) -> f64 {
    let mut random = Random::new(seed);
    let mut order: Vec<usize> = (0..threads).collect();
    let draws = 50;
    let mut sum = 0.0;
    for _ in 0..draws {
        for k in (1..threads).rev() {
            order.swap(k, random.below(k + 1));
        }
        sum += order.chunks(4).map(&cost).sum::<f64>();
    }
    sum / f64::from(draws)
}

#[test]
fn groups_of_four_are_near_the_best() {
    for (threads, instances) in [(12, 200), (16, 40)] {
        let sums = sums(threads, instances);
        for (found, sweeps) in sums.found.iter().zip(SWEEPS) {
            let of_cost = (found - sums.least) / sums.least;
            let of_headroom = (found - sums.least) / (sums.random - sums.least);
            println!(
                "{threads} threads, sweeps {sweeps}: mean excess {:.4} % of the least cost, \
                 {:.2} % of what random groups lose",
                100.0 * of_cost,
                100.0 * of_headroom
            );
            if sweeps > 0 {
                assert!(of_headroom < 0.05, "{threads} threads, sweeps {sweeps}: {of_headroom}");
            }
        }
    }
}
