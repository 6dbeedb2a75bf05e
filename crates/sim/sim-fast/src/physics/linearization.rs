//! Linearization of the core model around an environment.
//!
//! # Problem
//! Each round changes the environments of all threads a little. Walking through a table for each such
//! change would cost more than everything else.
//!
//! # Approach
//! A look-up in a table also yields its gradient. While the environment stays near in every input that
//! affects the thread ([`Linearization::reaches`]), the CPI is extrapolated from there; the lower bound
//! that front end and ports set is evaluated exactly, since it has kinks. An input of next to no effect
//! may move further; a kink of the table on the way is missed.
//!
//! # Properties
//! The extrapolation agrees with the table: closely next to where it was looked up
//! (`what_follows_is_what_the_table_says`), and nearly as far away as it is used
//! (`what_follows_from_afar_is_nearly_what_the_table_says`).

use serde::{Deserialize, Serialize};

use super::pipeline::{Environment, FIRST_ENTRIES, FIRST_PORT, FIRST_REACH, REACHES};

/// Inputs of an environment.
pub(super) const INPUTS: usize = FIRST_REACH + REACHES + 3;

/// Relative differences within which the linearization holds.
const SHARE: f64 = 0.05;
/// Octaves by which reaches may differ.
const OCTAVES: f64 = 0.05;
/// An input that changes the CPI by no more than this part, by its slope, may differ by [`WIDE`] times as much.
const SLIGHT: f64 = 1e-3;
/// See [`SLIGHT`].
const WIDE: f64 = 4.0;

/// The least CPI that the front end and ports allow.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) struct Bound {
    /// Of the front end and of each group's ports, cycles of all of it that an instruction
    /// takes at least; by input.
    least: [f32; FIRST_ENTRIES],
    /// At the anchor.
    anchor: f32,
}

impl Bound {
    /// From what is asked of the front end and of each group's ports; it adds nothing at the anchor.
    pub(super) fn new(least: [f32; FIRST_ENTRIES], anchor: &Environment) -> Self {
        let bound = Self { least, anchor: 0.0 };
        Self { anchor: bound.at(anchor) as f32, ..bound }
    }

    /// Is it as [`Bound::new`] makes them?
    pub(super) fn is_sound(&self) -> bool {
        let mut all = self.least.iter().chain([&self.anchor]);
        all.all(|bound| bound.is_finite() && *bound >= 0.0)
    }

    /// Inputs that it depends on.
    pub(super) fn inputs(&self) -> impl Iterator<Item = usize> {
        (0..FIRST_ENTRIES).filter(|&input| self.least[input] > 0.0)
    }

    fn at(&self, environment: &Environment) -> f64 {
        let front = f64::from(self.least[0]) / environment.dispatch;
        let ports = self.least[FIRST_PORT..].iter().zip(&environment.ports);
        ports.map(|(least, share)| f64::from(*least) / share).fold(front, f64::max)
    }

    /// The excess over the CPI of the table.
    pub(super) fn beyond_anchor(&self, environment: &Environment) -> f64 {
        self.at(environment) - f64::from(self.anchor)
    }
}

/// A look-up with its gradient.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Linearization {
    /// The CPI without the bound's excess.
    base: f64,
    /// Its change per unit of each part of the environment.
    slopes: [f32; INPUTS],
    bound: Bound,
    fastest: f32,
    /// Inputs that affect the CPI, one bit each.
    active: u32,
}

impl Linearization {
    /// From the slopes by the parts of the environment.
    pub(super) fn new(
        base: f64,
        slopes: [f32; INPUTS],
        bound: Bound,
        fastest: f32,
        active: u32,
    ) -> Self {
        Self { base, slopes, bound, fastest, active }
    }

    /// Is all alike that matters of the inputs from the `first` on? `alike` gets two values and how
    /// many times as much as usual they may differ.
    fn alike(
        &self,
        first: usize,
        from: &[f64],
        to: &[f64],
        alike: impl Fn(f64, f64, f64) -> bool,
    ) -> bool {
        let active = |index: usize| self.active >> (first + index) & 1 == 1;
        // What does next to nothing here may differ by more.
        let wide = |index: usize, step: f64| {
            let effect = f64::from(self.slopes[first + index]) * step;
            if effect.abs() <= SLIGHT * self.base { WIDE } else { 1.0 }
        };
        let mut pairs = from.iter().zip(to).enumerate();
        pairs.all(|(index, (from, to))| {
            !active(index) || from == to || alike(*from, *to, wide(index, to - from))
        })
    }

    /// Does the linearization hold in this environment, memory's interval aside?
    #[must_use]
    pub fn reaches(&self, from: &Environment, to: &Environment) -> bool {
        self.alike(0, &[from.dispatch], &[to.dispatch], near)
            && self.alike(
                INPUTS - 3,
                &[from.predictor as f64],
                &[to.predictor as f64],
                |a, b, _| a == b,
            )
            && self.reaches_beyond(from, to)
            && self.alike(FIRST_PORT, &from.ports, &to.ports, near)
            && self.alike(FIRST_ENTRIES, &from.entries, &to.entries, near)
    }

    /// The same for caches and memory alone.
    #[must_use]
    pub fn reaches_beyond(&self, from: &Environment, to: &Environment) -> bool {
        let close = |from: f64, to: f64, wide: f64| (from - to).abs() <= wide * OCTAVES;
        self.alike(INPUTS - 2, &[from.memory_latency], &[to.memory_latency], near)
            && self.alike(FIRST_REACH, &from.reach, &to.reach, close)
    }

    /// Does memory grant about as much, as far as that matters? It changes much, often without any
    /// effect.
    #[must_use]
    pub fn is_granted_alike(&self, from: &Environment, to: &Environment) -> bool {
        self.alike(INPUTS - 1, &[from.memory_interval], &[to.memory_interval], near)
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

    /// Cycles per instruction where it was looked up.
    #[must_use]
    pub fn there(&self, from: &Environment) -> f64 {
        (self.base + self.bound.beyond_anchor(from)).max(f64::from(self.fastest))
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

fn near(a: f64, b: f64, wide: f64) -> bool {
    (a - b).abs() <= wide * SHARE * a.abs()
}
