//! The results of two levels compared.

use serde::Serialize;
use symbiont_sim_fast::activity::{CAUSES, CYCLES};

use super::{Case, Group, Matrix, Performance, Plan};

/// The values of two levels for the same.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BothLevels<T> {
    /// The case.
    pub of: T,
    /// What the fast level says.
    pub fast: f64,
    /// What the cycle level says.
    pub cycle: f64,
}

/// How well two levels agree on a figure.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Agreement<T> {
    /// Values compared.
    pub values: usize,
    /// Mean of fast / cycle − 1: which way it errs.
    pub bias: f64,
    /// Mean of its size.
    pub error: f64,
    /// Spearman's rank correlation; none of fewer than three values, or of equal ones.
    pub rank: Option<f64>,
    /// All cases, the furthest apart first.
    pub cases: Vec<BothLevels<T>>,
}

impl<T: Clone> Agreement<T> {
    fn new(values: &[(T, f64, f64)]) -> Self {
        let error = |(_, fast, cycle): &(T, f64, f64)| fast / cycle - 1.0;
        let count = values.len().max(1) as f64;
        let mut order: Vec<&(T, f64, f64)> = values.iter().collect();
        order.sort_by(|a, b| error(b).abs().total_cmp(&error(a).abs()));
        let fast: Vec<f64> = values.iter().map(|value| value.1).collect();
        let cycle: Vec<f64> = values.iter().map(|value| value.2).collect();
        Self {
            values: values.len(),
            bias: values.iter().map(error).sum::<f64>() / count,
            error: values.iter().map(|value| error(value).abs()).sum::<f64>() / count,
            rank: rank_correlation(&fast, &cycle),
            cases: order
                .into_iter()
                .map(|(of, fast, cycle)| BothLevels { of: of.clone(), fast: *fast, cycle: *cycle })
                .collect(),
        }
    }
}

/// A component of the CPI stacks.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Component {
    /// Its name.
    pub name: &'static str,
    /// Mean share of the cycles of threads in groups, at the fast level and at the cycle level.
    pub fast: f64,
    /// See `fast`.
    pub cycle: f64,
    /// Mean size of the difference.
    pub error: f64,
    /// Where it is largest.
    pub worst: Option<BothLevels<Case>>,
}

/// The fast level against the cycle level.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LevelComparison {
    /// Threads of a group.
    pub threads: usize,
    /// Groups.
    pub groups: usize,
    /// CPI alone.
    pub alone: Agreement<String>,
    /// CPI throttled.
    pub throttled: Agreement<String>,
    /// Slowdowns of all members of all groups.
    pub slowdown: Agreement<Case>,
    /// STP of the groups.
    pub stp: Agreement<Group>,
    /// CPI stacks.
    pub stack: Vec<Component>,
}

/// Compares what two levels say of the same plan.
#[must_use]
pub fn compare(plan: &Plan, fast: &Matrix, cycle: &Matrix) -> LevelComparison {
    let named = |numbers: &[usize]| -> Vec<String> {
        numbers.iter().filter_map(|n| plan.programs.get(*n)).cloned().collect()
    };
    let single = |fast: &[Performance], cycle: &[Performance]| {
        let pairs = plan.programs.iter().zip(fast.iter().zip(cycle));
        let values: Vec<_> =
            pairs.map(|(name, (fast, cycle))| (name.clone(), fast.cpi, cycle.cpi)).collect();
        Agreement::new(&values)
    };
    let (mut slowdowns, mut stps) = (Vec::new(), Vec::new());
    let mut shares: Vec<(Case, [f64; CYCLES], [f64; CYCLES])> = Vec::new();
    for (number, group) in plan.groups.iter().enumerate() {
        let (Some(f), Some(c)) = (fast.together.get(number), cycle.together.get(number)) else {
            continue;
        };
        let mut stp = [0.0; 2];
        for (member, (f, c)) in group.iter().zip(f.iter().zip(c)) {
            let case = Case { program: named(&[*member]).concat(), group: named(group) };
            let of = |level: &Matrix, cpi: f64| {
                let throttled = level.throttled.get(*member).map_or(f64::NAN, |m| m.cpi);
                let alone = level.alone.get(*member).map_or(f64::NAN, |m| m.cpi);
                (cpi / throttled, alone / cpi)
            };
            let ((slow_f, part_f), (slow_c, part_c)) = (of(fast, f.cpi), of(cycle, c.cpi));
            stp[0] += part_f;
            stp[1] += part_c;
            shares.push((case.clone(), f.shares, c.shares));
            slowdowns.push((case, slow_f, slow_c));
        }
        stps.push((Group(named(group)), stp[0], stp[1]));
    }
    let component = |(cause, name): (usize, &'static str)| {
        let count = shares.len().max(1) as f64;
        let apart = |s: &&(Case, [f64; CYCLES], [f64; CYCLES])| (s.1[cause] - s.2[cause]).abs();
        let worst = shares.iter().max_by(|a, b| apart(a).total_cmp(&apart(b)));
        Component {
            name,
            fast: shares.iter().map(|s| s.1[cause]).sum::<f64>() / count,
            cycle: shares.iter().map(|s| s.2[cause]).sum::<f64>() / count,
            error: shares.iter().map(|s| apart(&s)).sum::<f64>() / count,
            worst: worst.map(|s| BothLevels {
                of: s.0.clone(),
                fast: s.1[cause],
                cycle: s.2[cause],
            }),
        }
    };
    LevelComparison {
        threads: plan.threads,
        groups: plan.groups.len(),
        alone: single(&fast.alone, &cycle.alone),
        throttled: single(&fast.throttled, &cycle.throttled),
        slowdown: Agreement::new(&slowdowns),
        stp: Agreement::new(&stps),
        stack: CAUSES.into_iter().enumerate().map(component).collect(),
    }
}

/// Ranks from 0; equal values share their mean rank.
fn ranks(values: &[f64]) -> Vec<f64> {
    let below = |a: f64| values.iter().filter(|b| **b < a).count() as f64;
    let equal = |a: f64| values.iter().filter(|b| **b == a).count() as f64;
    values.iter().map(|&a| below(a) + (equal(a) - 1.0) / 2.0).collect()
}

/// Spearman's rank correlation.
#[must_use]
pub fn rank_correlation(left: &[f64], right: &[f64]) -> Option<f64> {
    if left.len() < 3 || left.len() != right.len() {
        return None;
    }
    let (left, right) = (ranks(left), ranks(right));
    let middle = (left.len() as f64 - 1.0) / 2.0;
    let product = |a: &[f64], b: &[f64]| -> f64 {
        a.iter().zip(b).map(|(a, b)| (a - middle) * (b - middle)).sum()
    };
    let spread = (product(&left, &left) * product(&right, &right)).sqrt();
    (spread > 0.0).then(|| product(&left, &right) / spread)
}
