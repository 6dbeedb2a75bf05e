//! How a group compares with groups by chance, for reasons and reports.

use std::collections::BTreeMap;
use std::fmt;

use super::knowledge::Knowledge;
use super::row::Kind;
use super::scores::Member;

/// Groups by chance of some threads.
#[derive(Debug, Clone)]
pub(super) struct ByChance {
    threads: f64,
    of_kind: BTreeMap<Kind, f64>,
    /// Sum of what all of them take from one that has not met them.
    unmet: f64,
}

/// What was learned of a group.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Learned {
    threads: usize,
    /// By how much the sum of ln IPC of its threads exceeds that next to co-runners by chance.
    pub gain: f64,
    /// Its standard deviation.
    deviation: f64,
    /// Did all of its kinds meet?
    is_known: bool,
}

impl ByChance {
    pub fn of(known: &Knowledge, members: &[Member]) -> Self {
        let mut of_kind: BTreeMap<Kind, f64> = BTreeMap::new();
        for member in members {
            *of_kind.entry(member.kind).or_default() += 1.0;
        }
        let unmet = of_kind.iter().map(|(kind, many)| many * known.unmet(*kind).mean).sum();
        Self { threads: members.len() as f64, of_kind, unmet }
    }

    /// What a co-runner by chance adds to the ln IPC of a thread of a kind.
    fn mean(&self, known: &Knowledge, kind: Kind) -> f64 {
        let more = known.met(kind).filter_map(|(other, met)| {
            Some(self.of_kind.get(&other)? * (met.mean - known.unmet(other).mean))
        });
        let all = self.unmet + more.sum::<f64>();
        (all - known.next_to(kind, kind).0.mean) / (self.threads - 1.0).max(1.0)
    }

    /// Compares a group of as many threads.
    pub fn compare(&self, known: &Knowledge, members: &[Member], group: &[usize]) -> Learned {
        let mut learned =
            Learned { threads: group.len(), gain: 0.0, deviation: 0.0, is_known: true };
        if group.len() < 2 {
            return learned;
        }
        let mut variance = 0.0;
        for &at in group {
            let kind = members[at].kind;
            let mean = self.mean(known, kind);
            for &other in group.iter().filter(|other| **other != at) {
                let (next, met) = known.next_to(kind, members[other].kind);
                learned.gain += next.mean - mean;
                variance += next.variance;
                learned.is_known &= met;
            }
        }
        learned.deviation = variance.sqrt();
        learned
    }
}

impl fmt::Display for Learned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |ln: f64| (ln.exp() - 1.0) * 100.0;
        match self.threads {
            0 | 1 => write!(f, "alone on its core"),
            _ if !self.is_known => write!(f, "tried: not all of them have run together yet"),
            threads => {
                let each = threads as f64;
                let (gain, deviation) = (percent(self.gain / each), percent(self.deviation / each));
                write!(
                    f,
                    "together {gain:+.1} ± {deviation:.1} % in speed against co-runners by chance"
                )
            }
        }
    }
}
