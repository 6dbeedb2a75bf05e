//! Which hardware threads share a core, judged by how much a kernel slows itself down on pairs of them; pure
//! functions.
//!
//! # Approach
//! A kernel that asks for all of a part of a core runs at about half its speed on each of two hardware threads that
//! share it, and at nearly its own on two cores. What all pairs lose (clocks that fall when more cores run) is the
//! least that any pair loses, within bounds, and is taken off.
//!
//! ```text
//! common = least mean slowdown of all pairs, or 1 where that is too much
//! a pair is shared     if the interval of its slowdown lies above SHARED × common,
//!           apart      if it lies below APART × common,
//!           undecided  otherwise
//! cores = sets of CPUs that shared pairs connect
//! a set with a measured pair in it that is not shared is no core, and its shared pairs are undecided
//! ```
//!
//! # Properties
//! - Cores of any width are found in spite of noise (`cores_are_found_in_spite_of_noise`), in any order of pairs.
//! - What is too noisy is undecided, not wrong (`too_much_noise_is_undecided`).
//! - Contradictions are undecided (`a_core_whose_parts_do_not_fit_is_undecided`).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64Mcg;
use serde::{Deserialize, Serialize};
use symbiont_report::stats::Estimate;
use symbiont_topology::{CpuSet, PuId};

use super::evaluate::geometric_mean;

/// Slower than this: a core is shared; faster than that: it is not.
const SHARED: f64 = 1.4;
const APART: f64 = 1.25;
/// Most that may be lost wherever two run.
const COMMON: f64 = 1.2;
/// Up to this many CPUs, all pairs are measured.
const ALL_OF: usize = 8;

/// Two hardware threads, the lower number first.
pub type CpuPair = (PuId, PuId);

/// What was found of two hardware threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// They share a core.
    Shared,
    /// They are on two cores.
    Apart,
    /// Neither can be said.
    Undecided,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Shared => "share a core",
            Self::Apart => "two cores",
            Self::Undecided => "undecided",
        })
    }
}

/// A pair that was measured.
#[derive(Debug, Clone, PartialEq)]
pub struct JudgedPair {
    /// The two hardware threads.
    pub cpus: CpuPair,
    /// How many times as slow the kernel is there, geometric mean of both and of rounds.
    pub slowdown: Estimate,
    /// What that says.
    pub verdict: Verdict,
}

/// What was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Sharing {
    /// All pairs that were measured, in order.
    pub pairs: Vec<JudgedPair>,
    /// Sets of CPUs that share a core, in order.
    pub cores: Vec<CpuSet>,
}

impl Sharing {
    /// What was found of two hardware threads; none: they were not measured together.
    #[must_use]
    pub fn of(&self, cpus: CpuPair) -> Option<&JudgedPair> {
        self.pairs.iter().find(|pair| pair.cpus == cpus)
    }

    /// How far intervals of slowdowns reach to either side: the median over pairs; none without intervals.
    #[must_use]
    pub fn noise(&self) -> Option<f64> {
        let widths: Vec<f64> = self
            .pairs
            .iter()
            .filter_map(|pair| Some(pair.slowdown.interval?.width() / 2.0))
            .collect();
        symbiont_report::stats::median(&widths)
    }
}

/// Judges slowdowns, round by round, of pairs of CPUs.
#[must_use]
pub fn judge(measured: &BTreeMap<CpuPair, Vec<f64>>) -> Sharing {
    let estimates: Vec<(CpuPair, Estimate)> = measured
        .iter()
        .filter_map(|(cpus, slowdowns)| Some((*cpus, geometric_mean(slowdowns).ok()?)))
        .collect();
    let least = estimates.iter().map(|(_, it)| it.value).fold(f64::INFINITY, f64::min);
    // Where all pairs share a core, nothing is known of two cores.
    let common = if least <= COMMON { least.max(1.0) } else { 1.0 };
    let mut pairs: Vec<JudgedPair> = estimates
        .into_iter()
        .map(|(cpus, slowdown)| JudgedPair { cpus, slowdown, verdict: verdict(slowdown, common) })
        .collect();
    let sets = connected(&pairs);
    let contradicts = |pair: &JudgedPair| {
        let within = |set: &CpuSet| set.contains(pair.cpus.0) && set.contains(pair.cpus.1);
        (pair.verdict != Verdict::Shared).then(|| sets.iter().position(within)).flatten()
    };
    let contradicted: BTreeSet<usize> = pairs.iter().filter_map(contradicts).collect();
    let (mut cores, mut broken) = (Vec::new(), CpuSet::new());
    for (at, set) in sets.into_iter().enumerate() {
        if contradicted.contains(&at) { broken = broken.union(&set) } else { cores.push(set) }
    }
    for pair in &mut pairs {
        if pair.verdict == Verdict::Shared && broken.contains(pair.cpus.0) {
            pair.verdict = Verdict::Undecided;
        }
    }
    Sharing { pairs, cores }
}

fn verdict(slowdown: Estimate, common: f64) -> Verdict {
    match slowdown.interval {
        Some(interval) if interval.low >= SHARED * common => Verdict::Shared,
        Some(interval) if interval.high <= APART * common => Verdict::Apart,
        _ => Verdict::Undecided,
    }
}

/// Sets of CPUs that are connected by pairs that share a core.
fn connected(pairs: &[JudgedPair]) -> Vec<CpuSet> {
    let mut sets: Vec<CpuSet> = Vec::new();
    for JudgedPair { cpus: (one, other), .. } in
        pairs.iter().filter(|pair| pair.verdict == Verdict::Shared)
    {
        let (touched, mut rest): (Vec<_>, Vec<_>) =
            sets.into_iter().partition(|set| set.contains(*one) || set.contains(*other));
        let new: CpuSet = [*one, *other].into_iter().collect();
        rest.push(touched.iter().fold(new, |all, set| all.union(set)));
        sets = rest;
    }
    sets.sort_by_key(CpuSet::first);
    sets
}

fn pair(one: PuId, other: PuId) -> CpuPair {
    (one.min(other), one.max(other))
}

fn pairs_of(cpus: &CpuSet) -> Vec<CpuPair> {
    let cpus: Vec<PuId> = cpus.iter().collect();
    let all = cpus.iter().enumerate();
    all.flat_map(|(at, one)| cpus.iter().skip(at + 1).map(|other| (*one, *other))).collect()
}

/// Pairs to measure, at most so many: all of few CPUs; else in turn those that the topology calls siblings, those by
/// whose numbers machines mostly number siblings (neighbours, and a half apart), and some that are drawn.
#[must_use]
pub fn candidates(allowed: &CpuSet, cores: &[CpuSet], most: usize, seed: u64) -> Vec<CpuPair> {
    let all = allowed.len();
    if all <= ALL_OF && all * all.saturating_sub(1) / 2 <= most {
        return pairs_of(allowed);
    }
    let cpus: Vec<PuId> = allowed.iter().collect();
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let mut drawn = |mut pairs: Vec<CpuPair>| {
        pairs.shuffle(&mut random);
        pairs
    };
    let siblings: Vec<CpuPair> =
        cores.iter().flat_map(|core| pairs_of(&core.intersection(allowed))).collect();
    let next = cpus.iter().zip(cpus.iter().skip(1)).step_by(2);
    let neighbours: Vec<CpuPair> = next.map(|(one, other)| pair(*one, *other)).collect();
    let (low, high) = cpus.split_at(cpus.len() / 2);
    let halves: Vec<CpuPair> =
        low.iter().zip(high).map(|(one, other)| pair(*one, *other)).collect();
    let mut others = cpus.clone();
    others.rotate_left(cpus.len() / 3);
    let spread: Vec<CpuPair> = cpus
        .iter()
        .zip(&others)
        .filter(|(one, other)| one != other)
        .map(|(a, b)| pair(*a, *b))
        .collect();
    let kinds = [siblings, neighbours, halves, spread].map(&mut drawn);
    let longest = kinds.iter().map(Vec::len).max().unwrap_or(0);
    let mut chosen: Vec<CpuPair> = Vec::new();
    for one in (0..longest).flat_map(|at| kinds.iter().filter_map(move |kind| kind.get(at))) {
        if chosen.len() < most && !chosen.contains(one) {
            chosen.push(*one);
        }
    }
    chosen.sort_unstable();
    chosen
}

/// Pairs of which the topology says something else than was measured.
#[must_use]
pub fn disagreements<'s>(sharing: &'s Sharing, cores: &[CpuSet]) -> Vec<&'s JudgedPair> {
    let differs = |pair: &&JudgedPair| match pair.verdict {
        Verdict::Shared => !are_siblings(pair.cpus, cores),
        Verdict::Apart => are_siblings(pair.cpus, cores),
        Verdict::Undecided => false,
    };
    sharing.pairs.iter().filter(differs).collect()
}

/// Does the topology call these siblings?
#[must_use]
pub fn are_siblings((one, other): CpuPair, cores: &[CpuSet]) -> bool {
    cores.iter().any(|core| core.contains(one) && core.contains(other))
}

/// Two hardware threads that share a core, to measure programs on: where the topology agrees if possible, off CPU 0
/// (which the kernel keeps busiest) if possible.
#[must_use]
pub fn core_to_use(sharing: &Sharing, cores: &[CpuSet]) -> Option<CpuPair> {
    let shared = sharing.pairs.iter().filter(|pair| pair.verdict == Verdict::Shared);
    let order = |pair: &CpuPair| (!are_siblings(*pair, cores), pair.0 == PuId(0), *pair);
    shared.map(|pair| pair.cpus).min_by_key(order)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rand::Rng;

    use super::*;

    /// Slowdowns in five rounds of all pairs of CPUs of cores of this width, each with an error of at most so much.
    fn machine(
        cpus: u32,
        width: u32,
        noise: f64,
        common: f64,
        seed: u64,
    ) -> BTreeMap<CpuPair, Vec<f64>> {
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let all: CpuSet = (0..cpus).map(PuId).collect();
        let mut slowdowns = |(one, other): CpuPair| {
            let shared = one.0 / width == other.0 / width;
            let truth = common * if shared { random.random_range(1.75..2.1) } else { 1.0 };
            (0..5).map(|_| truth * (1.0 + noise * random.random_range(-1.0..=1.0))).collect()
        };
        pairs_of(&all).into_iter().map(|pair| (pair, slowdowns(pair))).collect()
    }

    fn cores(cpus: u32, width: u32) -> Vec<CpuSet> {
        let numbers: Vec<u32> = (0..cpus).collect();
        let wide = numbers.chunks(width as usize).filter(|core| core.len() > 1);
        wide.map(|core| core.iter().copied().map(PuId).collect()).collect()
    }

    proptest! {
        #[test]
        fn cores_are_found_in_spite_of_noise(
            cpus in 2_u32..12, width in 1_u32..5, noise in 0.0..0.06, common in 1.0..1.15, seed: u64,
        ) {
            let measured = machine(cpus, width, noise, common, seed);
            let sharing = judge(&measured);
            prop_assert_eq!(&sharing.cores, &cores(cpus, width));
            prop_assert!(sharing.pairs.iter().all(|pair| pair.verdict != Verdict::Undecided));
            prop_assert!(disagreements(&sharing, &cores(cpus, width)).is_empty());
            prop_assert_eq!(core_to_use(&sharing, &[]).is_some(), width > 1);
        }

        /// Whatever is decided is right as often as intervals say; with noise of this size hardly anything is.
        #[test]
        fn too_much_noise_is_undecided(seed: u64) {
            let measured = machine(8, 2, 0.9, 1.0, seed);
            let decided = judge(&measured).pairs.iter().filter(|it| it.verdict != Verdict::Undecided).count();
            prop_assert!(decided <= 14, "{}", decided);
        }

        #[test]
        fn pairs_to_measure_are_allowed_ones_and_not_too_many(
            cpus in prop::collection::btree_set(0_u32..200, 2..70), most in 1_usize..60, seed: u64,
        ) {
            let allowed: CpuSet = cpus.iter().copied().map(PuId).collect();
            let cores: Vec<CpuSet> = cores(200, 2);
            let chosen = candidates(&allowed, &cores, most, seed);
            prop_assert!(!chosen.is_empty() && chosen.len() <= most);
            let distinct: BTreeSet<&CpuPair> = chosen.iter().collect();
            prop_assert_eq!(distinct.len(), chosen.len());
            for (one, other) in &chosen {
                prop_assert!(one < other && allowed.contains(*one) && allowed.contains(*other));
            }
            let siblings = pairs_of(&allowed).into_iter().any(|pair| are_siblings(pair, &cores));
            let among = chosen.iter().any(|pair| are_siblings(*pair, &cores));
            prop_assert_eq!(siblings, among);
        }
    }

    #[test]
    fn a_single_pair_is_judged_by_itself() {
        let one = |slowdowns: &[f64]| {
            let measured = [((PuId(0), PuId(1)), slowdowns.to_vec())].into();
            judge(&measured).pairs[0].verdict
        };
        assert_eq!(one(&[1.9, 1.95, 1.92]), Verdict::Shared);
        assert_eq!(one(&[1.02, 1.0, 1.05]), Verdict::Apart);
        assert_eq!(one(&[1.9]), Verdict::Undecided, "one round has no interval");
        assert_eq!(one(&[1.0, 1.9, 1.4]), Verdict::Undecided);
        let none = judge(&BTreeMap::new());
        assert!(none.pairs.is_empty() && none.cores.is_empty() && none.noise().is_none());
    }

    #[test]
    fn a_core_whose_parts_do_not_fit_is_undecided() {
        let cpu =
            |a, b, slowdown: f64| ((PuId(a), PuId(b)), vec![slowdown, slowdown * 1.01, slowdown]);
        let measured =
            [cpu(0, 1, 2.0), cpu(1, 2, 2.0), cpu(0, 2, 1.0), cpu(3, 4, 2.0), cpu(0, 3, 1.0)];
        let sharing = judge(&measured.into());
        assert_eq!(sharing.cores, ["3-4".parse::<CpuSet>().unwrap()]);
        let of = |a, b| sharing.of((PuId(a), PuId(b))).unwrap().verdict;
        assert_eq!((of(0, 1), of(1, 2)), (Verdict::Undecided, Verdict::Undecided));
        assert_eq!((of(0, 2), of(3, 4)), (Verdict::Apart, Verdict::Shared));
    }

    #[test]
    fn the_topology_may_say_something_else() {
        let measured = machine(4, 2, 0.01, 1.0, 1);
        let sharing = judge(&measured);
        let said: Vec<CpuSet> = ["0,2", "1,3"].map(|set| set.parse().unwrap()).into();
        let wrong: Vec<CpuPair> = disagreements(&sharing, &said).iter().map(|it| it.cpus).collect();
        let pair = |a, b| (PuId(a), PuId(b));
        assert_eq!(wrong, [pair(0, 1), pair(0, 2), pair(1, 3), pair(2, 3)]);
        assert_eq!(core_to_use(&sharing, &said), Some(pair(2, 3)), "not CPU 0");
        let half: Vec<CpuSet> = vec!["0-1".parse().unwrap()];
        assert_eq!(core_to_use(&sharing, &half), Some(pair(0, 1)), "where the topology agrees");
    }
}
