//! How well groups of threads run together, with a lot drawn for what is not known well.
//!
//! # Approach
//! The score of a group is the sum, over its pairs, of what each of the two adds to the ln IPC of the other; of more
//! than two, co-runners add up. Thompson's way to explore (1933): to the mean of a pair is added a normal value,
//! drawn for each two kinds, times how much the mean may change once the pair is measured,
//!
//! ```text
//! v / √(v + σ²)      v: variance of the contrast to the co-runners that both have now; σ²: of a measurement
//! ```
//!
//! and not times √v, so that threads whose measurements say nothing are not moved for them. Pairs that are
//! together now are preferred by what a move costs. Of kinds that were not met, lots are drawn for some only.
//!
//! Property: a lot is drawn for pairs of kinds, once (`threads_of_one_kind_have_one_lot`).

use std::collections::BTreeSet;
use std::ops::Range;

use rand::Rng;
use rand_distr::StandardNormal;
use rand_pcg::Pcg64Mcg;
use symbiont_matching::GroupCosts;

use super::knowledge::Knowledge;
use super::row::{Belief, Kind, OneWay};

/// What staying together is worth, in ln IPC of both: more than a move costs in a quantum of 100 ms.
const STAYS: f64 = 0.02;
/// How much lots count.
const LOTS: f64 = 1.2;
/// Kinds that were not met that a lot is drawn for, for each kind.
const UNMET: usize = 8;

/// A thread that is to be grouped.
#[derive(Debug, Clone)]
pub(super) struct Member {
    pub kind: Kind,
    /// Variance of a measurement of it.
    pub noise: f64,
    /// The threads that it shares a core with now, by number.
    pub with: Vec<usize>,
}

/// Scores of all pairs.
#[derive(Debug, Clone)]
pub(super) struct Scores {
    threads: usize,
    /// Row by row, symmetric.
    pairs: Vec<f64>,
}

impl Scores {
    /// Scores of these threads; `explore`: are lots drawn?
    pub fn draw(
        known: &Knowledge,
        members: &[Member],
        explore: bool,
        random: &mut Pcg64Mcg,
    ) -> Self {
        let threads = members.len();
        let kinds: BTreeSet<Kind> = members.iter().map(|member| member.kind).collect();
        let kinds: Vec<(Kind, Belief)> =
            kinds.into_iter().map(|kind| (kind, known.unmet(kind))).collect();
        let lots =
            if explore { lots(known, &kinds, random) } else { vec![0.0; kinds.len().pow(2)] };
        let at_kind = |member: &Member| kinds.partition_point(|(kind, _)| *kind < member.kind);
        let at_kinds: Vec<usize> = members.iter().map(at_kind).collect();
        let one_ways = |member: &Member| {
            let present = member.with.first().map(|with| members[*with].kind);
            known.one_ways(member.kind, present, &kinds)
        };
        let one_ways: Vec<Vec<OneWay>> = members.iter().map(one_ways).collect();
        let mut scores = Self { threads, pairs: vec![0.0; threads * threads] };
        for a in 0..threads {
            for b in 0..a {
                let [there, back] = [one_ways[a][at_kinds[b]], one_ways[b][at_kinds[a]]];
                let noise = members[a].noise.max(members[b].noise);
                let lot = lots[at_kinds[a] * kinds.len() + at_kinds[b]];
                let score = there.mean + back.mean + lot * surprise(there, back, noise);
                scores.pairs[a * threads + b] = score;
                scores.pairs[b * threads + a] = score;
            }
        }
        for (a, member) in members.iter().enumerate() {
            for &b in &member.with {
                scores.pairs[a * threads + b] += STAYS;
            }
        }
        scores
    }

    fn pair(&self, a: usize, b: usize) -> f64 {
        self.pairs[a * self.threads + b]
    }
}

impl GroupCosts for Scores {
    fn cost(&mut self, group: &[usize]) -> f64 {
        let rest = |(at, a): (usize, &usize)| -> f64 {
            group[at + 1..].iter().map(|b| self.pair(*a, *b)).sum()
        };
        -group.iter().enumerate().map(rest).sum::<f64>()
    }

    fn pairs(&mut self, thread: usize, others: Range<usize>, costs: &mut [f64]) {
        let from = thread * self.threads;
        let row = self.pairs.get(from + others.start..from + others.end).unwrap_or_default();
        costs.iter_mut().zip(row).for_each(|(cost, score)| *cost = -score);
    }
}

/// How much the mean of a pair may change once it is measured.
fn surprise(there: OneWay, back: OneWay, noise: f64) -> f64 {
    let variance = there.contrast + back.contrast;
    if variance > 0.0 { variance / (variance + noise).sqrt() } else { 0.0 }
}

/// Lots for pairs of kinds that met, and for some that did not; 0 for all others. Row by row, symmetric.
fn lots(known: &Knowledge, kinds: &[(Kind, Belief)], random: &mut Pcg64Mcg) -> Vec<f64> {
    let many = kinds.len();
    let mut lots = vec![0.0; many * many];
    let mut draw = |one: usize, other: usize, random: &mut Pcg64Mcg| {
        if lots[one * many + other] == 0.0 {
            let lot = LOTS * random.sample::<f64, _>(StandardNormal);
            lots[one * many + other] = lot;
            lots[other * many + one] = lot;
        }
    };
    for (one, (kind, _)) in kinds.iter().enumerate() {
        for (other, _) in known.met(*kind) {
            if let Ok(other) = kinds.binary_search_by_key(&other, |(kind, _)| *kind) {
                draw(one, other, random);
            }
        }
        let few = many <= UNMET + 1;
        for at in 0..UNMET.min(many) {
            draw(one, if few { at } else { random.random_range(0..many) }, random);
        }
        draw(one, one, random);
    }
    lots
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    #[test]
    fn threads_of_one_kind_have_one_lot() {
        let known = Knowledge::default();
        let member = |kind| Member { kind: Kind(kind), noise: 0.001, with: Vec::new() };
        let members = [0, 0, 1, 1].map(member);
        let mut random = Pcg64Mcg::seed_from_u64(1);
        let scores = Scores::draw(&known, &members, true, &mut random);
        let [same, other] = [scores.pair(0, 1), scores.pair(0, 2)];
        assert_eq!([scores.pair(0, 3), scores.pair(1, 2), scores.pair(3, 1)], [other; 3]);
        assert_ne!(same, other);
        assert_ne!(same, scores.pair(2, 3));
        let calm = Scores::draw(&known, &members, false, &mut random);
        assert_eq!(calm.pair(0, 1), calm.pair(1, 3));
    }
}
