//! From runs to gains.

use std::collections::BTreeMap;

use super::campaign::Record;
use super::plan::{BASELINE, BOUND, Case};
use crate::stats::{Estimate, mean_estimate, over_rounds};

/// Seed of the bootstrap.
const SEED: u64 = 1;

/// What a policy gains over random placement on some cores.
#[derive(Debug, Clone, PartialEq)]
pub struct Gain {
    /// Programs for each core.
    pub width: usize,
    /// Cores; none: all counts together.
    pub cores: Option<usize>,
    /// The policy.
    pub policy: String,
    /// STP over that of random, minus 1, mean over workloads.
    pub stp: Estimate,
    /// ANTT over that of random, minus 1, mean over workloads: below 0 is better.
    pub antt: Estimate,
    /// Moves per quantum.
    pub moves: f64,
}

/// Share of the headroom between random and oracle that a policy captures.
#[derive(Debug, Clone, PartialEq)]
pub struct Captured {
    /// The policy.
    pub policy: String,
    /// The share; none where the oracle gains nothing.
    pub share: Option<Estimate>,
}

/// What came out.
#[derive(Debug, Clone, PartialEq)]
pub struct Evaluation {
    /// By width, cores and policy.
    pub gains: Vec<Gain>,
    /// In workloads of two programs per core.
    pub captured: Vec<Captured>,
    /// Repeats that did not end in time.
    pub unfinished: usize,
}

/// STP and ANTT of each policy on a workload.
type Results<'r> = BTreeMap<&'r str, &'r Record>;

/// Compares policies, workload by workload.
#[must_use]
pub fn evaluate(records: &[Record]) -> Evaluation {
    let mut cases: BTreeMap<&Case, Results<'_>> = BTreeMap::new();
    for record in records {
        cases.entry(&record.run.case).or_default().insert(&record.run.policy, record);
    }
    let mut policies: Vec<&str> = records.iter().map(|r| r.run.policy.as_str()).collect();
    policies.sort_unstable();
    policies.dedup();
    let mut groups: Vec<(usize, Option<usize>)> =
        cases.keys().flat_map(|c| [(c.width, Some(c.cores)), (c.width, None)]).collect();
    groups.sort_unstable();
    groups.dedup();
    let mut gains = Vec::new();
    for (width, cores) in groups {
        let of = |case: &Case| case.width == width && cores.is_none_or(|cores| case.cores == cores);
        let among: Vec<&Results<'_>> =
            cases.iter().filter(|(case, _)| of(case)).map(|(_, results)| results).collect();
        for policy in policies.iter().filter(|policy| **policy != BASELINE) {
            gains.extend(gain((width, cores), policy, &among));
        }
    }
    let pairs: Vec<&Results<'_>> =
        cases.iter().filter(|(case, _)| case.width == 2).map(|(_, results)| results).collect();
    let bounded = |policy: &&&str| ![BASELINE, BOUND].contains(*policy);
    let captured = policies
        .iter()
        .filter(bounded)
        .map(|policy| Captured { policy: (*policy).to_owned(), share: captured(policy, &pairs) });
    Evaluation {
        gains,
        captured: captured.collect(),
        unfinished: records.iter().map(|record| record.unfinished).sum(),
    }
}

fn gain(
    (width, cores): (usize, Option<usize>),
    policy: &str,
    among: &[&Results<'_>],
) -> Option<Gain> {
    let both: Vec<(&Record, &Record)> = among
        .iter()
        .filter_map(|results| Some((*results.get(policy)?, *results.get(BASELINE)?)))
        .collect();
    let over = |figure: fn(&Record) -> f64| -> Option<Estimate> {
        let ratios: Vec<f64> =
            both.iter().map(|(own, random)| figure(own) / figure(random) - 1.0).collect();
        mean_estimate(&ratios).ok()
    };
    let moves = both.iter().map(|(own, _)| own.moves).sum::<f64>() / both.len().max(1) as f64;
    Some(Gain {
        width,
        cores,
        policy: policy.to_owned(),
        stp: over(|record| record.stp.value)?,
        antt: over(|record| record.antt.value)?,
        moves,
    })
}

/// Σ gained / Σ headroom, with an interval over the workloads.
fn captured(policy: &str, among: &[&Results<'_>]) -> Option<Estimate> {
    let stp = |results: &Results<'_>, policy: &str| Some(results.get(policy)?.stp.value);
    let rooms: Vec<(f64, f64)> = among
        .iter()
        .filter_map(|results| {
            let random = stp(results, BASELINE)?;
            Some((stp(results, policy)? - random, stp(results, BOUND)? - random))
        })
        .collect();
    if rooms.iter().map(|(_, room)| room).sum::<f64>() <= 0.0 {
        return None;
    }
    let share = |drawn: &[usize]| -> f64 {
        let sums = drawn.iter().filter_map(|&at| rooms.get(at));
        let (gained, room) = sums.fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        gained / room
    };
    over_rounds(rooms.len(), SEED, share).ok()
}
