//! What programs did beside each other: all that a kernel form is fitted on.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::baseline::Case;
use crate::{Observed, Shares};

/// A program among certain co-runners, over all quanta.
#[derive(Debug, Clone, Default)]
pub(crate) struct Meeting {
    count: f64,
    speed: f64,
    slowdown: f64,
    shares: Vec<f64>,
}

impl Meeting {
    /// Adds a quantum.
    pub(crate) fn add(&mut self, thread: &Observed) {
        let slowdown = thread.slowdown();
        self.count += 1.0;
        self.slowdown += slowdown;
        self.speed += slowdown.recip();
        let shares = thread.together.shares();
        self.shares.resize(shares.parts().len(), 0.0);
        self.shares.iter_mut().zip(shares.parts()).for_each(|(sum, share)| *sum += share);
    }

    /// Mean slowdown.
    pub(crate) fn slowdown(&self) -> f64 {
        self.slowdown / self.count
    }

    /// Mean shares in company.
    pub(crate) fn shares(&self) -> impl Iterator<Item = f64> + '_ {
        self.shares.iter().map(|sum| sum / self.count)
    }
}

/// The mean stack of some meetings of a program, each of the same weight; none of none.
pub(crate) fn mean<'m>(meetings: impl Iterator<Item = &'m Meeting>) -> Option<Shares> {
    let mut sums: Vec<f64> = Vec::new();
    for meeting in meetings {
        sums.resize(meeting.shares.len(), 0.0);
        sums.iter_mut().zip(meeting.shares()).for_each(|(sum, share)| *sum += share);
    }
    Shares::new(sums).ok()
}

/// A meeting, programs by their number.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub(crate) victim: usize,
    pub(crate) others: Vec<usize>,
    pub(crate) speed: f64,
    shares: Vec<f64>,
}

impl Row {
    /// Its programs.
    pub(super) fn members(&self) -> impl Iterator<Item = usize> + '_ {
        self.others.iter().copied().chain([self.victim])
    }
}

/// Meetings of numbered programs.
#[derive(Debug, Clone)]
pub(crate) struct Table {
    pub(crate) programs: Vec<Arc<str>>,
    pub(crate) rows: Vec<Row>,
}

impl Table {
    pub(crate) fn of<'m>(meetings: impl Iterator<Item = (&'m Case, &'m Meeting)>) -> Self {
        let mut places: BTreeMap<&Arc<str>, usize> = BTreeMap::new();
        let mut programs = Vec::new();
        let mut rows = Vec::new();
        for ((victim, others), meeting) in meetings {
            let mut place = |program: &'m Arc<str>| {
                *places.entry(program).or_insert_with(|| {
                    programs.push(Arc::clone(program));
                    programs.len() - 1
                })
            };
            rows.push(Row {
                victim: place(victim),
                others: others.iter().map(place).collect(),
                speed: meeting.speed / meeting.count,
                shares: meeting.shares().collect(),
            });
        }
        Self { programs, rows }
    }

    /// Mean shares in company of each program over the rows that are kept; none of who has none.
    pub(super) fn company(&self, keep: impl Fn(&Row) -> bool) -> Vec<Option<Vec<f64>>> {
        let mut sums: Vec<(f64, Vec<f64>)> = vec![(0.0, Vec::new()); self.programs.len()];
        for row in self.rows.iter().filter(|row| keep(row)) {
            let Some((count, sum)) = sums.get_mut(row.victim) else { continue };
            *count += 1.0;
            sum.resize(row.shares.len(), 0.0);
            sum.iter_mut().zip(&row.shares).for_each(|(sum, share)| *sum += share);
        }
        let mean = |(count, sum): (f64, Vec<f64>)| {
            (count > 0.0).then(|| sum.into_iter().map(|sum| sum / count).collect())
        };
        sums.into_iter().map(mean).collect()
    }
}
