//! Groups intervals that behave alike.
//!
//! # Approach
//! Each interval is a point: the shares of its instructions in 64 random groups of
//! basic blocks (Sherwood et al., SimPoint), and how often what matters to
//! performance happened. Weighted k-means, made deterministic: the first centre
//! is the mean; each next one is the point whose instructions times squared
//! distance to its nearest centre is largest. No centre is added once every
//! point lies within [`ALIKE`] of one.

use crate::raw::Signature;

/// Kinds of phases that a profile has at most.
pub(super) const MOST: usize = 16;
/// Distance below which intervals count as alike.
const ALIKE: f64 = 0.02;
/// Rounds of moving centres.
const ROUNDS: usize = 40;
/// What one event per instruction weighs, in addition to the shares of blocks (the
/// order is that of [`Signature::events`]): about the cycles that it may cost,
/// in tens.
const WEIGHTS: [f64; 9] = [2.0, 0.2, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 2.0];
/// What the shares of blocks weigh.
const BLOCKS: f64 = 0.3;

/// One group of intervals.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Cluster {
    /// Indices of its members, the one nearest to the centre first.
    pub(super) members: Vec<usize>,
}

fn point(signature: &Signature) -> Vec<f64> {
    let per = 1.0 / (signature.instructions.max(1) as f64);
    let blocks = signature.blocks.iter().map(|count| *count as f64 * per * BLOCKS);
    let events = signature.events.iter().zip(WEIGHTS).map(|(n, weight)| *n as f64 * per * weight);
    blocks.chain(events).collect()
}

fn squared(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum()
}

/// Index of the nearest centre, the first of equals, and the squared distance.
fn nearest(point: &[f64], centres: &[Vec<f64>]) -> (usize, f64) {
    let distances = centres.iter().map(|centre| squared(point, centre)).enumerate();
    distances.fold((0, f64::INFINITY), |best, next| if next.1 < best.1 { next } else { best })
}

fn mean<'a>(points: impl Iterator<Item = (&'a Vec<f64>, f64)>) -> Option<Vec<f64>> {
    let mut sum: Vec<f64> = Vec::new();
    let mut total = 0.0;
    for (point, weight) in points {
        sum.resize(point.len(), 0.0);
        sum.iter_mut().zip(point).for_each(|(sum, value)| *sum += value * weight);
        total += weight;
    }
    (total > 0.0).then(|| sum.iter().map(|value| value / total).collect())
}

/// Groups the intervals; the group with the most instructions comes first. Every
/// interval is in exactly one group, and no group is empty.
pub(super) fn cluster(signatures: &[&Signature]) -> Vec<Cluster> {
    let points: Vec<Vec<f64>> = signatures.iter().map(|signature| point(signature)).collect();
    let weights: Vec<f64> =
        signatures.iter().map(|signature| signature.instructions.max(1) as f64).collect();
    let weighted = || points.iter().zip(weights.iter().copied());
    let Some(first) = mean(weighted()) else { return Vec::new() };
    let mut centres = vec![first];
    while centres.len() < MOST {
        let far = points.iter().map(|point| nearest(point, &centres).1).collect::<Vec<f64>>();
        let worst = far.iter().zip(&weights).map(|(far, weight)| far * weight).enumerate();
        let (worst, _) =
            worst.fold((0, 0.0), |best, next| if next.1 > best.1 { next } else { best });
        if far.iter().all(|far| *far < ALIKE * ALIKE) {
            break;
        }
        centres.push(points[worst].clone());
        settle(&points, &weights, &mut centres, 4);
    }
    let assigned = settle(&points, &weights, &mut centres, ROUNDS);
    let mut clusters: Vec<Cluster> = (0..centres.len())
        .map(|centre| {
            let mut members: Vec<usize> =
                (0..points.len()).filter(|index| assigned[*index] == centre).collect();
            let distance = |index: &usize| squared(&points[*index], &centres[centre]);
            members.sort_by(|a, b| distance(a).total_cmp(&distance(b)));
            Cluster { members }
        })
        .filter(|cluster| !cluster.members.is_empty())
        .collect();
    let size = |cluster: &Cluster| -> u64 {
        cluster.members.iter().map(|index| signatures[*index].instructions).sum()
    };
    clusters.sort_by_key(|cluster| std::cmp::Reverse(size(cluster)));
    clusters
}

/// Moves centres to the means of their points until nothing changes; the centre
/// of each point.
fn settle(
    points: &[Vec<f64>],
    weights: &[f64],
    centres: &mut [Vec<f64>],
    rounds: usize,
) -> Vec<usize> {
    let assign = |centres: &[Vec<f64>]| -> Vec<usize> {
        points.iter().map(|point| nearest(point, centres).0).collect()
    };
    let mut assigned = assign(centres);
    for _ in 0..rounds {
        for (index, centre) in centres.iter_mut().enumerate() {
            let own = (0..points.len()).filter(|point| assigned[*point] == index);
            if let Some(moved) = mean(own.map(|point| (&points[point], weights[point]))) {
                *centre = moved;
            }
        }
        let next = assign(centres);
        if next == assigned {
            break;
        }
        assigned = next;
    }
    assigned
}

#[cfg(test)]
mod tests;
