//! What a table says near an environment at which it was looked up.
//!
//! # Problem
//! Each round changes the surroundings of all threads a little. Walking through a table for each
//! such change costs more than all else that is to be solved.
//!
//! # Approach
//! A table that is looked up tells its slopes, too. While the surroundings are near
//! ([`Local::reaches`]), the CPI follows straight from there; what the front end and ports
//! allow at least is counted anew, since that has edges.
//!
//! # Properties
//! What follows is what the table says, nearly (`what_follows_is_what_the_table_says`).

use super::pipeline::{Environment, FIRST_ENTRIES, FIRST_PORT, FIRST_REACH, REACHES};
use super::response::Bound;

/// Inputs of an environment.
pub(super) const INPUTS: usize = FIRST_REACH + REACHES + 3;

/// Shares by which surroundings may differ.
const SHARE: f64 = 0.05;
/// Octaves by which reaches may differ.
const OCTAVES: f64 = 0.05;

/// A look-up and what follows from it nearby.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Local {
    /// The CPI without what the bound adds.
    base: f64,
    /// Its change per unit of each part of the environment.
    slopes: [f32; INPUTS],
    bound: Bound,
    fastest: f32,
    /// Does anything of memory matter? Its interval changes much, often without any effect.
    memory: bool,
}

impl Local {
    /// From the slopes by the parts of the environment.
    pub(super) fn new(
        base: f64,
        slopes: [f32; INPUTS],
        bound: Bound,
        fastest: f32,
        cares: u32,
    ) -> Self {
        let memory = cares >> (INPUTS - 2) & 0b11 != 0;
        Self { base, slopes, bound, fastest, memory }
    }

    /// Is this environment near enough to the one where it was looked up, but for memory's interval?
    #[must_use]
    pub fn reaches(&self, from: &Environment, to: &Environment) -> bool {
        let all = |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(a, b)| near(*a, *b));
        near(from.dispatch, to.dispatch)
            && from.predictor == to.predictor
            && self.reaches_beyond(from, to)
            && all(&from.ports, &to.ports)
            && all(&from.entries, &to.entries)
    }

    /// The same of caches and memory alone.
    #[must_use]
    pub fn reaches_beyond(&self, from: &Environment, to: &Environment) -> bool {
        let mut reaches = from.reach.iter().zip(&to.reach);
        (!self.memory || near(from.memory_latency, to.memory_latency))
            && reaches.all(|(from, to)| (from - to).abs() <= OCTAVES)
    }

    /// Does memory grant about as much, as far as that matters?
    #[must_use]
    pub fn is_granted_alike(&self, from: &Environment, to: &Environment) -> bool {
        !self.memory || near(from.memory_interval, to.memory_interval)
    }

    /// Cycles per instruction there.
    #[must_use]
    pub fn cpi(&self, from: &Environment, to: &Environment) -> f64 {
        let steps = self.along(0, &[from.dispatch], &[to.dispatch])
            + self.along(FIRST_PORT, &from.ports, &to.ports)
            + self.along(FIRST_ENTRIES, &from.entries, &to.entries)
            + self.beyond(from, to);
        (self.base + steps + self.bound.beyond_anchor(to)).max(f64::from(self.fastest))
    }

    /// By how many cycles caches and memory change the CPI between two environments near by.
    #[must_use]
    pub fn beyond(&self, from: &Environment, to: &Environment) -> f64 {
        self.along(FIRST_REACH, &from.reach, &to.reach)
            + self.along(INPUTS - 2, &[from.memory_latency], &[to.memory_latency])
            + self.along(INPUTS - 1, &[from.memory_interval], &[to.memory_interval])
    }

    /// By how many cycles the inputs from the `first` on change the CPI.
    fn along(&self, first: usize, from: &[f64], to: &[f64]) -> f64 {
        let steps = from.iter().zip(to).map(|(from, to)| to - from);
        let slopes = self.slopes[first..].iter();
        slopes.zip(steps).map(|(slope, step)| f64::from(*slope) * step).sum()
    }
}

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() <= SHARE * a.abs()
}
