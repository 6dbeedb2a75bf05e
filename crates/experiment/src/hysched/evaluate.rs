//! From finished runs to figures.

use std::collections::BTreeMap;

use symbiont_policy::Variant;

use super::plan::{BEST, Contender, Part, Start};
use super::play::{PairStp, Record};
use super::watch::Alone;
use crate::harness::Error;
use crate::metrics;
use crate::stats::{Estimate, mean, mean_estimate, over_rounds, standard_deviation};

/// Seed of the bootstrap.
const SEED: u64 = 1;

/// All figures.
#[derive(Debug, Clone, Default)]
pub struct Evaluation {
    /// What each program is by itself (Fig. 1).
    pub alone: BTreeMap<String, Alone>,
    /// Section 4.1, for each variant.
    pub premises: Vec<Premise>,
    /// STP of each pair of programs, by the names of both.
    pub pairs: BTreeMap<(String, String), f64>,
    /// Table 1: the mix, STP pinned, STP under the OS.
    pub pinned: Vec<(String, Option<Estimate>, Option<Estimate>)>,
    /// The mixes, in order.
    pub mixes: Vec<String>,
    /// Fig. 2, in the order of [`Contender::FIGURE_2`] but the OS, then the
    /// negative controls.
    pub gains: Vec<Gain>,
    /// Reading order: standard deviation of STP over starts that differ in the
    /// order only, over its mean, by mix; under the OS and under TopB2M3L.
    pub order: [Option<Estimate>; 2],
    /// The largest difference that it makes to a mix under the OS, over its mean.
    pub order_most: Option<f64>,
    /// Table 2: share of pairs by category in the mix that the paper shows, and
    /// in all mixes.
    pub categories: [BTreeMap<(String, String), f64>; 2],
    /// The mix of the first of these.
    pub shown: String,
    /// By contender, what the policy found out, over all runs of mixes.
    pub findings: Vec<(Contender, BTreeMap<String, Estimate>)>,
    /// Runs that did not end in time.
    pub unfinished: usize,
    /// Mean share of moments without a fixed point.
    pub unsettled: f64,
}

/// Do programs of different categories suit each other better?
#[derive(Debug, Clone, PartialEq)]
pub struct Premise {
    /// By which categories.
    pub variant: Variant,
    /// Mean STP of pairs of different programs of different categories.
    pub different: Option<Estimate>,
    /// Of different programs of one category.
    pub same: Option<Estimate>,
    /// Difference of the two.
    pub difference: Option<Estimate>,
    /// Of two copies of one program.
    pub copies: Option<Estimate>,
}

/// What a contender gains over the OS.
#[derive(Debug, Clone, PartialEq)]
pub struct Gain {
    /// Who.
    pub contender: Contender,
    /// Are resources private?
    pub private: bool,
    /// By mix: the mean over the starts.
    pub mixes: Vec<Option<Estimate>>,
    /// The mean over the mixes.
    pub mean: Option<Estimate>,
    /// Share of what exact matching gains over random partitions, over the mixes.
    pub captured: Option<Estimate>,
    /// Mixes in which it is worse than the OS beyond the interval.
    pub worse: usize,
}

/// Evaluates finished runs.
///
/// # Errors
/// When there is none.
pub fn evaluate(records: &[Record]) -> Result<Evaluation, Error> {
    if records.is_empty() {
        return Err(Error::Evaluation("no run has finished".to_owned()));
    }
    let mut stp = PairStp::default();
    records.iter().for_each(|record| stp.add(record));
    let of = |part: Part| records.iter().filter(move |record| record.run.scene.part == part);
    let alone: BTreeMap<String, Alone> = of(Part::Alone)
        .filter_map(|record| Some((record.run.scene.name.clone(), record.alone.clone()?)))
        .collect();
    let pairs: BTreeMap<(String, String), f64> = of(Part::Pair)
        .filter_map(|record| match &record.run.scene.programs[..] {
            [one, other] => Some(((one.clone(), other.clone()), stp.of(one, other)?)),
            _ => None,
        })
        .collect();
    let premises = Variant::ALL.map(|variant| premise(variant, &pairs, &alone)).to_vec();
    let mut mixes: Vec<String> = Vec::new();
    for record in of(Part::Mix) {
        if !mixes.contains(&record.run.scene.name) {
            mixes.push(record.run.scene.name.clone());
        }
    }
    let stps = Stps::new(records);
    let rivals = Contender::FIGURE_2.into_iter().skip(1).map(|contender| (contender, false));
    let controls = [(Contender::Shuffled(BEST), false), (Contender::Hysched(BEST), true)];
    let gains = rivals.chain(controls).map(|(who, private)| stps.gain(who, private, &mixes));
    let order = |contender| {
        estimate(
            &stps.spread(contender, &mixes, |stps| Some(standard_deviation(stps)? / mean(stps)?)),
        )
    };
    let most = stps.spread(Contender::Os, &mixes, |stps| {
        // One start tells nothing of other orders.
        let starts = stps.get(1).map(|_| stps)?;
        let ends = |f: fn(f64, f64) -> f64| starts.iter().copied().reduce(f);
        Some((ends(f64::max)? - ends(f64::min)?) / mean(stps)?)
    });
    let shown = mixes.get(9).or(mixes.last()).cloned().unwrap_or_default();
    Ok(Evaluation {
        pinned: pinned(records),
        gains: gains.collect(),
        order: [Contender::Os, Contender::Hysched(BEST)].map(order),
        order_most: most.into_iter().reduce(f64::max),
        categories: [categories(records, Some(&shown)), categories(records, None)],
        findings: findings(records),
        unfinished: records.iter().filter(|record| record.speedups.is_none()).count(),
        unsettled: mean(&records.iter().map(|r| r.unsettled).collect::<Vec<_>>()).unwrap_or(0.0),
        alone,
        premises,
        pairs,
        mixes,
        shown,
    })
}

fn estimate(values: &[f64]) -> Option<Estimate> {
    mean_estimate(values).ok()
}

fn premise(
    variant: Variant,
    pairs: &BTreeMap<(String, String), f64>,
    alone: &BTreeMap<String, Alone>,
) -> Premise {
    let category = |program: &str| alone.get(program)?.seen.get(&variant.to_string())?.category();
    let number: BTreeMap<&str, usize> = alone.keys().map(String::as_str).zip(0..).collect();
    let (mut different, mut same, mut copies) = (Vec::new(), Vec::new(), Vec::new());
    for ((one, other), stp) in pairs {
        let numbers = number.get(one.as_str()).zip(number.get(other.as_str()));
        if one == other {
            copies.push(*stp);
        } else if let (Some(a), Some(b), Some((&i, &k))) = (category(one), category(other), numbers)
        {
            if a == b { same.push(([i, k], *stp)) } else { different.push(([i, k], *stp)) }
        }
    }
    let over = |statistic: &dyn Fn(&[f64]) -> f64| {
        let weigh = |drawn: &[usize]| {
            let mut weights = vec![0.0; number.len()];
            drawn.iter().for_each(|&program| weights[program] += 1.0);
            statistic(&weights)
        };
        over_rounds(number.len(), SEED, weigh).ok()
    };
    Premise {
        variant,
        different: over(&|weights| weighted(&different, weights)),
        same: over(&|weights| weighted(&same, weights)),
        difference: over(&|weights| weighted(&different, weights) - weighted(&same, weights)),
        copies: estimate(&copies),
    }
}

/// The mean over pairs of programs, each of which counts so many times; no number
/// if none of the pairs counts.
fn weighted(pairs: &[([usize; 2], f64)], weights: &[f64]) -> f64 {
    let weight = |[one, other]: [usize; 2]| weights[one] * weights[other];
    let sum: f64 = pairs.iter().map(|(pair, value)| weight(*pair) * value).sum();
    sum / pairs.iter().map(|(pair, _)| weight(*pair)).sum::<f64>()
}

fn pinned(records: &[Record]) -> Vec<(String, Option<Estimate>, Option<Estimate>)> {
    let mut rows: BTreeMap<String, [Vec<f64>; 2]> = BTreeMap::new();
    for record in records.iter().filter(|record| record.run.scene.part == Part::Pinned) {
        let row = rows.entry(record.run.scene.name.clone()).or_default();
        row[usize::from(record.run.contender == Contender::Os)].extend(record.stp());
    }
    rows.into_iter().map(|(name, [own, os])| (name, estimate(&own), estimate(&os))).collect()
}

/// STP of the runs of mixes.
struct Stps<'r>(BTreeMap<String, (&'r Record, f64)>);

impl<'r> Stps<'r> {
    fn new(records: &'r [Record]) -> Self {
        let mixes = records.iter().filter(|record| record.run.scene.part == Part::Mix);
        Self(mixes.filter_map(|r| Some((r.run.id(), (r, r.stp()?)))).collect())
    }

    fn runs(&self, mix: &str, who: Contender, start: Start, private: bool) -> Vec<&'r Record> {
        let is = |record: &&Record| {
            let run = &record.run;
            run.scene.name == mix
                && run.contender == who
                && (run.start, run.private) == (start, private)
        };
        self.0.values().map(|(record, _)| *record).filter(is).collect()
    }

    /// STP of a run like this one, but under another contender.
    fn beside(&self, record: &Record, who: Contender) -> Option<f64> {
        let mut run = record.run.clone();
        run.contender = who;
        self.0.get(&run.id()).map(|(_, stp)| *stp)
    }

    fn gain(&self, who: Contender, private: bool, mixes: &[String]) -> Gain {
        let (mut by_mix, mut captured) = (Vec::new(), Vec::new());
        for mix in mixes {
            let (mut gains, mut shares) = (Vec::new(), Vec::new());
            for record in self.runs(mix, who, Start::Apart, private) {
                let Some(own) = record.stp() else { continue };
                let beside = |other| self.beside(record, other);
                gains.extend(beside(Contender::Os).map(|os| own / os - 1.0));
                shares.extend(
                    beside(Contender::Random)
                        .zip(beside(Contender::Matched))
                        .map(|(random, matched)| [own, random, matched]),
                );
            }
            // Of the means: a ratio of differences of single runs means nothing.
            let column = |at: usize| mean(&shares.iter().map(|row| row[at]).collect::<Vec<_>>());
            let share =
                column(0).zip(column(1)).zip(column(2)).and_then(|((own, random), matched)| {
                    metrics::headroom_captured(own, random, matched)
                });
            captured.extend(share);
            by_mix.push(estimate(&gains));
        }
        let means: Vec<f64> = by_mix.iter().flatten().map(|gain| gain.value).collect();
        let worse = |gain: &&Estimate| gain.high().is_some_and(|high| high < 0.0);
        Gain {
            contender: who,
            private,
            worse: by_mix.iter().flatten().filter(worse).count(),
            mean: estimate(&means),
            captured: estimate(&captured),
            mixes: by_mix,
        }
    }

    /// A figure of the STP of starts that differ in order only, by mix.
    fn spread(
        &self,
        who: Contender,
        mixes: &[String],
        figure: impl Fn(&[f64]) -> Option<f64>,
    ) -> Vec<f64> {
        let of = |mix: &String| {
            let runs = self.runs(mix, who, Start::AtOnce, false);
            figure(&runs.iter().filter_map(|record| record.stp()).collect::<Vec<_>>())
        };
        mixes.iter().filter_map(of).collect()
    }
}

/// Share of the pairs made under TopB2M3L, by category.
fn categories(records: &[Record], mix: Option<&str>) -> BTreeMap<(String, String), f64> {
    let mut counts: BTreeMap<(String, String), u64> = BTreeMap::new();
    let shown = records.iter().filter(|record| {
        let run = &record.run;
        run.scene.part == Part::Mix
            && mix.is_none_or(|mix| run.scene.name == mix)
            && run.contender == Contender::Hysched(BEST)
            && (run.start, run.private) == (Start::Apart, false)
    });
    for (one, other, count) in shown.flat_map(|record| &record.pairs) {
        *counts.entry((one.clone(), other.clone())).or_default() += count;
    }
    let all = counts.values().sum::<u64>().max(1) as f64;
    counts.into_iter().map(|(pair, count)| (pair, count as f64 / all)).collect()
}

fn findings(records: &[Record]) -> Vec<(Contender, BTreeMap<String, Estimate>)> {
    let of = |contender: Contender| {
        let mut values: BTreeMap<String, Vec<f64>> = BTreeMap::new();
        let mixes = records.iter().filter(|record| {
            let run = &record.run;
            run.scene.part == Part::Mix
                && run.contender == contender
                && (run.start, run.private) == (Start::Apart, false)
        });
        for (name, value) in mixes.flat_map(|record| &record.findings) {
            values.entry(name.clone()).or_default().push(*value);
        }
        let means = values.into_iter().filter_map(|(name, of)| Some((name, estimate(&of)?)));
        (contender, means.collect::<BTreeMap<_, _>>())
    };
    let told = Contender::FIGURE_2.into_iter().map(of);
    told.filter(|(_, found)| !found.is_empty()).collect()
}
