//! Kinds of integer weights that have broken matching codes before.
//!
//! Made by operations that give the same bits on every machine.

use symbiont_matching::Weights;

use crate::instances::{Random, Stacks};

/// The kinds, by name.
pub const FAMILIES: [&str; 8] =
    ["uniform", "ties", "mostly zero", "large range", "negative", "duplicates", "plane", "stacks"];

/// All weights of a seeded instance, as a full symmetric matrix.
pub fn instance(family: usize, vertices: usize, seed: u64) -> Vec<Vec<i64>> {
    let mut random = Random::new(seed);
    let stacks = Stacks::new(vertices, seed);
    let places: Vec<[usize; 2]> =
        (0..vertices).map(|_| [random.below(1000), random.below(1000)]).collect();
    let kind: Vec<usize> = (0..vertices).map(|_| random.below(4)).collect();
    let top = Weights::max_range(vertices.max(2)).min(1 << 52).ilog2() as usize;
    let mut cells = vec![vec![0; vertices]; vertices];
    for i in 0..vertices {
        for j in i + 1..vertices {
            let x = random.unit();
            let weight = match FAMILIES[family] {
                "uniform" => (x * 1e6) as i64,
                "ties" => (x * 4.0) as i64,
                "mostly zero" => (x * 10.0 - 8.0).max(0.0) as i64,
                "large range" => (random.bits() >> (63 - random.below(top))) as i64,
                "negative" => (x * 2e6 - 1.5e6) as i64,
                "duplicates" => (kind[i] * kind[j] + (kind[i] + 1) * (kind[j] + 1)) as i64,
                "plane" => {
                    let far = |axis: usize| places[i][axis].abs_diff(places[j][axis]);
                    (far(0) + far(1)) as i64
                }
                _ => (stacks.slowdown(&[i, j]) * 1e6) as i64,
            };
            cells[i][j] = weight;
            cells[j][i] = weight;
        }
    }
    cells
}

/// The 200 instances that other implementations are asked about: family,
/// vertices (16 to 160, even, small ones more often), seed.
pub fn two_hundred() -> impl Iterator<Item = (usize, usize, u64)> {
    (0..200).map(|k: usize| {
        let vertices = 16 + 2 * (72 * k.pow(3) / 199_usize.pow(3));
        (k % FAMILIES.len(), vertices, k as u64)
    })
}
