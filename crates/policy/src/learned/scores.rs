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

use std::collections::BTreeMap;
use std::ops::Range;

use rand::Rng;
use rand_distr::StandardNormal;
use rand_pcg::Pcg64Mcg;
use symbiont_matching::GroupCosts;

use super::knowledge::Knowledge;
use super::row::Kind;

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
        let unmet: Vec<f64> = members.iter().map(|member| known.unmet(member.kind).mean).collect();
        let row = |mine: f64| unmet.iter().map(move |other| mine + other);
        let mut scores =
            Self { threads, pairs: unmet.iter().flat_map(|mine| row(*mine)).collect() };
        let mut of_kind: BTreeMap<Kind, Vec<usize>> = BTreeMap::new();
        for (at, member) in members.iter().enumerate() {
            of_kind.entry(member.kind).or_default().push(at);
        }
        for ((one, other), lot) in lots(known, &of_kind, explore, random) {
            let mean = known.next_to(one, other).0.mean + known.next_to(other, one).0.mean;
            for &a in &of_kind[&one] {
                for &b in of_kind[&other].iter().filter(|b| **b != a) {
                    let lot = if lot == 0.0 { 0.0 } else { lot * surprise(known, members, a, b) };
                    scores.set(a, b, mean + lot);
                }
            }
        }
        for (a, member) in members.iter().enumerate() {
            for &b in &member.with {
                scores.pairs[a * threads + b] += STAYS;
            }
        }
        scores
    }

    fn set(&mut self, a: usize, b: usize, score: f64) {
        self.pairs[a * self.threads + b] = score;
        self.pairs[b * self.threads + a] = score;
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
fn surprise(known: &Knowledge, members: &[Member], a: usize, b: usize) -> f64 {
    let one_way = |of: usize, other: usize| {
        let present = members[of].with.first().map(|with| members[*with].kind);
        known.contrast(members[of].kind, members[other].kind, present)
    };
    let variance = one_way(a, b) + one_way(b, a);
    let noise = members[a].noise.max(members[b].noise);
    if variance > 0.0 { variance / (variance + noise).sqrt() } else { 0.0 }
}

/// Lots for pairs of kinds that met, and for some that did not.
fn lots(
    known: &Knowledge,
    of_kind: &BTreeMap<Kind, Vec<usize>>,
    explore: bool,
    random: &mut Pcg64Mcg,
) -> BTreeMap<(Kind, Kind), f64> {
    let kinds: Vec<Kind> = of_kind.keys().copied().collect();
    let mut lots = BTreeMap::new();
    let mut draw = |one: Kind, other: Kind, random: &mut Pcg64Mcg| {
        let pair = (one.min(other), one.max(other));
        let lot = || if explore { LOTS * random.sample::<f64, _>(StandardNormal) } else { 0.0 };
        lots.entry(pair).or_insert_with(lot);
    };
    for kind in &kinds {
        for (other, _) in known.met(*kind) {
            if of_kind.contains_key(&other) {
                draw(*kind, other, random);
            }
        }
        let few = kinds.len() <= UNMET + 1;
        for at in 0..UNMET.min(kinds.len()) {
            let other = kinds[if few { at } else { random.random_range(0..kinds.len()) }];
            draw(*kind, other, random);
        }
        draw(*kind, *kind, random);
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
