//! How far groups of four are from the best ones, and from those that are built anew.

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

/// Groups of four that are built up: as many threads are named as that is done for.
fn built_up(threads: usize, cost: impl Fn(&[usize]) -> f64) -> f64 {
    let request = Request { sweeps: 0, ..Request::new(threads, threads / 4, 4) };
    // Without sweeps nothing is rearranged, so that is done here, two by two.
    let mut groups = group(&request, &cost).unwrap().groups;
    for b in 1..groups.len() {
        for a in 0..b {
            let both = [groups[a].clone(), groups[b].clone()].concat();
            let of = |part: &[usize]| cost(&part.iter().map(|at| both[*at]).collect::<Vec<_>>());
            let two = Request::new(8, 2, 4);
            let found = group(&Request { sweeps: 1, ..two }, of).unwrap();
            if found.cost < cost(&groups[a]) + cost(&groups[b]) - 1e-12 {
                let named = |group: &Vec<usize>| group.iter().map(|at| both[*at]).collect();
                (groups[a], groups[b]) = (named(&found.groups[0]), named(&found.groups[1]));
            }
        }
    }
    groups.iter().map(|group| cost(group)).sum()
}

/// What rearranged groups cost more than built-up ones, as shares of what random ones cost more, by
/// quantum: noise of 1 % on each stack and a new phase in every twentieth thread.
fn excess(threads: usize, quanta: u64, begin: impl Fn(&Stacks) -> Vec<Vec<usize>>) -> Vec<f64> {
    let request = Request::new(threads, threads / 4, 4);
    let mut excess = vec![0.0; quanta as usize];
    let seeds = 3;
    for seed in 0..seeds {
        let (mut stacks, mut random) = (Stacks::new(threads, seed), Random::new(seed));
        let mut previous = begin(&stacks);
        for (quantum, excess) in (0..quanta).zip(&mut excess) {
            stacks.later(0.01, 0.05, &mut random);
            let cost = |g: &[usize]| stacks.loss(g);
            let found = group(&Request { previous: &previous, ..request }, cost).unwrap();
            assert_partition(&found.groups, threads, threads / 4, 4);
            let anew = built_up(threads, cost);
            let lot = mean_of_random(threads, quantum, cost);
            *excess += (found.cost - anew) / (lot - anew) / seeds as f64;
            previous = found.groups;
        }
    }
    println!("{threads} threads, excess by quantum, of what random groups lose: {excess:.4?}");
    excess
}

#[test]
fn rearranged_groups_keep_up_with_noise_and_new_phases() {
    let built = |stacks: &Stacks| {
        let request = Request { sweeps: 0, ..Request::new(160, 40, 4) };
        group(&request, |g| stacks.loss(g)).unwrap().groups
    };
    let excess = excess(160, 12, built);
    assert!(excess.iter().sum::<f64>() / 12.0 < 0.005, "{excess:?}");
}

/// Where nothing was decided before, groups are any.
#[test]
fn groups_of_chance_are_rearranged() {
    let excess = excess(160, 4, |_| Vec::new());
    assert!(excess[0] < 0.02 && excess[1..].iter().all(|excess| *excess < 0.01), "{excess:?}");
}

/// Half of the threads end and free half of the cores; the others were packed.
#[test]
fn idle_cores_are_used_at_once() {
    let stacks = Stacks::new(200, 1);
    let packed: Vec<Vec<usize>> =
        (0..50).map(|group| (4 * group..4 * group + 4).collect()).collect();
    let request = Request { previous: &packed, ..Request::new(200, 90, 4) };
    let found = group(&request, |g| stacks.loss(g)).unwrap();
    assert_partition(&found.groups, 200, 90, 4);
    assert_eq!(found.groups.len(), 90);
    // However large they are.
    let uneven: Vec<Vec<usize>> = [vec![0]].into_iter().chain(packed[1..].to_vec()).collect();
    let request = Request { previous: &uneven, ..Request::new(200, 190, 4) };
    let found = group(&request, |g| stacks.loss(g)).unwrap();
    assert_eq!(found.groups.len(), 190);
    // Where each core costs, some stay idle.
    let found = group(&request, |_| 1.0).unwrap();
    assert!(found.groups.len() < 60, "{found:?}");
}
