//! From runs to gains.
//!
//! Workloads are drawn from the same programs, so what one program gains counts in several of them.
//! All figures are sums over the places of workloads, and their intervals come from a bootstrap in
//! which workloads and programs are drawn apart ([`crossed`]). Who else is on a program's core
//! changes from quantum to quantum, and is not drawn.

use std::collections::BTreeMap;

use super::campaign::{Place, Record};
use super::plan::{BASELINE, BOTH_NODES, BOUND, CONTROLLED, Case, NEAR, OS, Terms, WIDE};
use crate::stats::{Estimate, crossed};

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
    /// How it compares with random placement.
    pub over: Contrast,
}

/// A policy beside another one on the same workloads.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Contrast {
    /// STP over that of the other, minus 1, mean over workloads.
    pub stp: Estimate,
    /// ANTT over that of the other, minus 1, mean over workloads: below 0 is better.
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

/// What the controlled policy gains over random placement on the workloads that were run as negative
/// controls.
#[derive(Debug, Clone, PartialEq)]
pub struct Control {
    /// Programs for each core.
    pub width: usize,
    /// Under which terms it decides.
    pub terms: Terms,
    /// How it compares with random placement under the same terms, as far as those concern the machine.
    pub over: Contrast,
}

/// What placing by memory gains over another policy where cores of both nodes are used.
#[derive(Debug, Clone, PartialEq)]
pub struct Near {
    /// Programs for each core.
    pub width: usize,
    /// The other policy.
    pub other: &'static str,
    /// How the two compare.
    pub over: Contrast,
}

/// SMT8 beside SMT4, under the OS.
#[derive(Debug, Clone, PartialEq)]
pub struct Wide {
    /// Cores.
    pub cores: usize,
    /// Eight hardware threads of each core over four of each, for the same programs.
    pub over: Contrast,
}

/// What came out.
#[derive(Debug, Clone, PartialEq)]
pub struct Evaluation {
    /// By width, cores and policy.
    pub gains: Vec<Gain>,
    /// In workloads of two programs per core.
    pub captured: Vec<Captured>,
    /// By width and terms.
    pub controls: Vec<Control>,
    /// What decisions cost that take time: the controlled policy over itself where they take none.
    pub decisions: Vec<Control>,
    /// By width and policy.
    pub near: Vec<Near>,
    /// By cores.
    pub wide: Vec<Wide>,
    /// Repeats that did not end in time.
    pub unfinished: usize,
}

/// The runs of a workload, by policy and terms.
type Results<'r> = BTreeMap<(&'r str, Terms), &'r Record>;

/// A policy as it is.
fn plain(policy: &str) -> (&str, Terms) {
    (policy, Terms::Plain)
}

/// Compares policies, workload by workload.
#[must_use]
pub fn evaluate(records: &[Record]) -> Evaluation {
    let mut cases: BTreeMap<&Case, Results<'_>> = BTreeMap::new();
    for record in records {
        let by = (record.run.policy.as_str(), record.run.terms);
        cases.entry(&record.run.case).or_default().insert(by, record);
    }
    let mut policies: Vec<&str> = records.iter().map(|r| r.run.policy.as_str()).collect();
    policies.sort_unstable();
    policies.dedup();
    let mut groups: Vec<(usize, Option<usize>)> =
        cases.keys().flat_map(|c| [(c.width, Some(c.cores)), (c.width, None)]).collect();
    groups.sort_unstable();
    groups.dedup();
    let among = |of: &dyn Fn(&Case) -> bool| -> Vec<&Results<'_>> {
        cases.iter().filter(|(case, _)| of(case)).map(|(_, results)| results).collect()
    };
    let mut gains = Vec::new();
    for (width, cores) in groups {
        let among =
            among(&|case| case.width == width && cores.is_none_or(|cores| case.cores == cores));
        for policy in policies.iter().filter(|policy| **policy != BASELINE) {
            let over = contrast(&among, plain(policy), plain(BASELINE));
            let policy = (*policy).to_owned();
            gains.extend(over.map(|over| Gain { width, cores, policy, over }));
        }
    }
    let (mut controls, mut decisions) = (Vec::new(), Vec::new());
    for width in [2, 4] {
        // The same workloads for all.
        let mut among = among(&|case| case.width == width);
        among.retain(|results| results.contains_key(&(CONTROLLED, Terms::Exchanged)));
        for (terms, baseline) in [
            (Terms::Plain, Terms::Plain),
            (Terms::Free, Terms::Free),
            (Terms::Exchanged, Terms::Free),
            (Terms::Shuffled, Terms::Free),
            (Terms::Private, Terms::Private),
        ] {
            let over = contrast(&among, (CONTROLLED, terms), (BASELINE, baseline));
            controls.extend(over.map(|over| Control { width, terms, over }));
        }
        for terms in [Terms::Late, Terms::Reserved] {
            let over = contrast(&among, (CONTROLLED, terms), plain(CONTROLLED));
            decisions.extend(over.map(|over| Control { width, terms, over }));
        }
    }
    let mut near = Vec::new();
    for width in [2, 4] {
        let among = among(&|case| case.width == width && case.cores >= BOTH_NODES);
        for other in [CONTROLLED, "l1-bandwidth", "stay", BASELINE] {
            let over = contrast(&among, plain(NEAR), plain(other));
            near.extend(over.map(|over| Near { width, other, over }));
        }
    }
    let mut counts: Vec<usize> = cases.keys().map(|case| case.cores).collect();
    counts.sort_unstable();
    counts.dedup();
    let wide = counts.into_iter().filter_map(|cores| {
        let among = among(&|case| case.width == WIDE && case.cores == cores);
        Some(Wide { cores, over: contrast(&among, (OS, Terms::Plain), (OS, Terms::Narrow))? })
    });
    let wide = wide.collect();
    let pairs = among(&|case| case.width == 2);
    let bounded = |policy: &&&str| ![BASELINE, BOUND].contains(*policy);
    let captured = policies
        .iter()
        .filter(bounded)
        .map(|policy| Captured { policy: (*policy).to_owned(), share: captured(policy, &pairs) });
    Evaluation {
        gains,
        captured: captured.collect(),
        controls,
        decisions,
        near,
        wide,
        unfinished: records.iter().map(|record| record.unfinished).sum(),
    }
}

/// A place of a workload under several policies.
struct Cell<'r, const N: usize> {
    workload: usize,
    program: usize,
    under: [&'r Place; N],
}

/// The places of all workloads that ran under each of these policies, and how many workloads and
/// programs there are.
fn cells<'r, const N: usize>(
    among: &[&Results<'r>],
    policies: [(&str, Terms); N],
) -> (Vec<Cell<'r, N>>, (usize, usize)) {
    let (mut cells, mut workloads) = (Vec::new(), 0);
    let mut programs: BTreeMap<&str, usize> = BTreeMap::new();
    for results in among {
        let found: Vec<&'r Record> =
            policies.iter().filter_map(|policy| results.get(policy).copied()).collect();
        let Ok(found) = <[&'r Record; N]>::try_from(found) else { continue };
        let names = found.first().map(|record| record.programs.as_slice()).unwrap_or_default();
        for (at, name) in names.iter().enumerate() {
            let next = programs.len();
            let program = *programs.entry(name).or_insert(next);
            let places = found.map(|record| record.places.get(at));
            if let Some(under) = whole(places) {
                cells.push(Cell { workload: workloads, program, under });
            }
        }
        workloads += 1;
    }
    let programs = programs.len();
    (cells, (workloads, programs))
}

/// All of them, if none is missing.
fn whole<const N: usize>(places: [Option<&Place>; N]) -> Option<[&Place; N]> {
    places.into_iter().collect::<Option<Vec<_>>>()?.try_into().ok()
}

fn contrast(among: &[&Results<'_>], own: (&str, Terms), other: (&str, Terms)) -> Option<Contrast> {
    let (cells, size) = cells(among, [own, other]);
    let over = |figure: fn(&Place) -> f64| {
        let gain = |workloads: &[f64], programs: &[f64]| -> f64 {
            let mut sums = vec![(0.0, 0.0); workloads.len()];
            for Cell { workload, program, under: [own, other] } in &cells {
                let (Some(sum), Some(weight)) = (sums.get_mut(*workload), programs.get(*program))
                else {
                    continue;
                };
                *sum = (sum.0 + weight * figure(own), sum.1 + weight * figure(other));
            }
            let there = sums.iter().zip(workloads).filter(|((_, other), _)| *other > 0.0);
            let (gained, all) = there.fold((0.0, 0.0), |(gained, all), ((own, other), weight)| {
                (gained + weight * (own / other - 1.0), all + weight)
            });
            gained / all
        };
        crossed(size, SEED, gain).ok()
    };
    let moves: Vec<f64> = among
        .iter()
        .filter(|results| results.contains_key(&other))
        .filter_map(|results| Some(results.get(&own)?.moves))
        .collect();
    Some(Contrast {
        stp: over(|place| place.speedup)?,
        antt: over(|place| place.turnaround)?,
        moves: moves.iter().sum::<f64>() / moves.len().max(1) as f64,
    })
}

/// Σ gained / Σ headroom.
fn captured(policy: &str, among: &[&Results<'_>]) -> Option<Estimate> {
    let (cells, size) = cells(among, [policy, BASELINE, BOUND].map(plain));
    let sums = |workloads: &[f64], programs: &[f64]| -> (f64, f64) {
        let mut sums = (0.0, 0.0);
        for Cell { workload, program, under: [own, random, oracle] } in &cells {
            let weight = workloads.get(*workload).zip(programs.get(*program));
            let weight = weight.map_or(0.0, |(workload, program)| workload * program);
            sums.0 += weight * (own.speedup - random.speedup);
            sums.1 += weight * (oracle.speedup - random.speedup);
        }
        sums
    };
    let (_, room) = sums(&vec![1.0; size.0], &vec![1.0; size.1]);
    if room <= 0.0 {
        return None;
    }
    let share = |workloads: &[f64], programs: &[f64]| {
        let (gained, room) = sums(workloads, programs);
        gained / room
    };
    crossed(size, SEED, share).ok()
}
