//! From finished runs to figures.

use std::collections::BTreeMap;

use symbiont_policy::Variant;

use super::plan::{BEST, Contender, HyschedRun, Part, Start};
use super::play::{HyschedRecord, PairStp};
use super::watch::Alone;
use symbiont_campaign::{FinishedRun, Row, Rows};
use symbiont_report::stats::{Estimate, mean_estimate, over_rounds};

/// Seed of the bootstrap.
const SEED: u64 = 1;

type Runs<'r> = &'r [FinishedRun<HyschedRun, HyschedRecord>];

/// Do programs of different categories suit each other better?
#[derive(Debug, Clone, PartialEq)]
pub struct Premise {
    /// By which categories.
    pub variant: Variant,
    /// Mean STP of pairs of different programs of different categories over that of pairs of one
    /// category, minus 1.
    pub difference: Option<Estimate>,
}

/// Rows of all runs that ended, for comparisons.
#[must_use]
pub fn rows(finished: Runs<'_>) -> Rows {
    let row = |FinishedRun { run, record }: &FinishedRun<HyschedRun, HyschedRecord>| {
        Some(Row {
            workload: run.workload(),
            programs: run.scene.programs.clone(),
            contender: run.contender.to_string(),
            repeat: run.repeat,
            speedups: record.speedups.clone()?,
        })
    };
    Rows(finished.iter().filter_map(row).collect())
}

/// What was seen of each program by itself.
#[must_use]
pub fn alone(finished: Runs<'_>) -> BTreeMap<String, Alone> {
    let of = finished.iter().filter(|finished| finished.run.scene.part == Part::Alone);
    of.filter_map(|it| Some((it.run.scene.name.clone(), it.record.alone.clone()?))).collect()
}

/// Section 4.1, for each variant.
#[must_use]
pub fn premises(finished: Runs<'_>) -> Vec<Premise> {
    let stp = PairStp::of_runs(finished);
    let pairs: BTreeMap<(String, String), f64> = finished
        .iter()
        .filter_map(|it| match &it.run.scene.programs[..] {
            [one, other] if it.run.scene.part == Part::Pair => {
                Some(((one.clone(), other.clone()), stp.of(one, other)?))
            }
            _ => None,
        })
        .collect();
    let alone = alone(finished);
    Variant::ALL.map(|variant| premise(variant, &pairs, &alone)).to_vec()
}

fn premise(
    variant: Variant,
    pairs: &BTreeMap<(String, String), f64>,
    alone: &BTreeMap<String, Alone>,
) -> Premise {
    let category = |program: &str| alone.get(program)?.seen.get(&variant.to_string())?.category();
    let number: BTreeMap<&str, usize> = alone.keys().map(String::as_str).zip(0..).collect();
    let (mut different, mut same) = (Vec::new(), Vec::new());
    for ((one, other), stp) in pairs.iter().filter(|((one, other), _)| one != other) {
        let numbers = number.get(one.as_str()).zip(number.get(other.as_str()));
        let (Some(a), Some(b), Some((&i, &k))) = (category(one), category(other), numbers) else {
            continue;
        };
        if a == b { same.push(([i, k], *stp)) } else { different.push(([i, k], *stp)) }
    }
    let weigh = |drawn: &[usize]| {
        let mut weights = vec![0.0; number.len()];
        drawn.iter().for_each(|&program| weights[program] += 1.0);
        weighted(&different, &weights) / weighted(&same, &weights) - 1.0
    };
    Premise { variant, difference: over_rounds(number.len(), SEED, weigh).ok() }
}

/// The mean over pairs of programs, each of which counts so many times; no number
/// if none of the pairs counts.
fn weighted(pairs: &[([usize; 2], f64)], weights: &[f64]) -> f64 {
    let weight = |[one, other]: [usize; 2]| weights[one] * weights[other];
    let sum: f64 = pairs.iter().map(|(pair, value)| weight(*pair) * value).sum();
    sum / pairs.iter().map(|(pair, _)| weight(*pair)).sum::<f64>()
}

/// Share of the pairs made under TopB2M3L in all mixes, by category.
#[must_use]
pub fn categories(finished: Runs<'_>) -> BTreeMap<(String, String), f64> {
    let mut counts: BTreeMap<(String, String), u64> = BTreeMap::new();
    for (one, other, count) in
        mixes(finished, Contender::Hysched(BEST)).flat_map(|it| &it.record.pairs)
    {
        *counts.entry((one.clone(), other.clone())).or_default() += count;
    }
    let all = counts.values().sum::<u64>().max(1) as f64;
    counts.into_iter().map(|(pair, count)| (pair, count as f64 / all)).collect()
}

/// Mean of the policy's finding of this name, over the runs of mixes under a contender.
#[must_use]
pub fn finding(finished: Runs<'_>, contender: Contender, name: &str) -> Option<Estimate> {
    let values = mixes(finished, contender).filter_map(|it| it.record.findings.get(name).copied());
    mean_estimate(&values.collect::<Vec<_>>()).ok()
}

fn mixes(
    finished: Runs<'_>,
    contender: Contender,
) -> impl Iterator<Item = &FinishedRun<HyschedRun, HyschedRecord>> {
    finished.iter().filter(move |it| {
        it.run.scene.part == Part::Mix
            && it.run.contender == contender
            && (it.run.start, it.run.private) == (Start::Apart, false)
    })
}
