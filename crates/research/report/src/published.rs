//! Figures that papers print, to be put next to ours.
//!
//! # Problem
//! A reproduction must show what was published next to what was measured, and
//! must not let the one influence the other.
//!
//! # Approach
//! One file per paper, named by its first author, holds its tables as data, cell by cell as printed, with
//! the place in the paper and the conditions they were measured under.
//! Nothing here is fitted, and nothing else reads these values but reports.
//!
//! # Terms and units
//! Percentages are kept as printed (16 for 16 %). *Gain*: speedup − 1.
//!
//! # Properties
//! - Averages and improvements that a paper prints next to its cells follow
//!   from the cells as kept here, within the rounding of the print
//!   (`printed_averages_follow_from_the_cells`,
//!   `printed_improvements_follow_from_the_cells`).

use crate::stats::Estimate;

pub mod feliu;
pub mod morad;
pub mod navarro;
pub mod peternier;
pub mod settle;

/// One figure of a paper's text.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Headline {
    /// What it says.
    pub what: &'static str,
    /// The figure.
    pub value: f64,
    /// Its unit.
    pub unit: &'static str,
    /// Where it is printed.
    pub place: &'static str,
}

/// A table of figures for pairs of programs, of which one half is printed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PairTable {
    /// Where it is printed.
    pub place: &'static str,
    /// What its cells are.
    pub what: &'static str,
    /// The programs, in the order of rows and columns.
    pub programs: &'static [&'static str],
    /// Row i holds the pairs of program i with programs 0…i, in %.
    pub cells: &'static [&'static [i8]],
    /// The averages that are printed for each program, in %.
    pub averages: &'static [i8],
    /// The average over all pairs that is printed, in %.
    pub average: f64,
}

impl PairTable {
    /// The figure of two programs, in either order, in %.
    #[must_use]
    pub fn percent(&self, one: &str, other: &str) -> Option<f64> {
        let index = |name: &str| self.programs.iter().position(|p| *p == name);
        let (one, other) = (index(one)?, index(other)?);
        self.cells.get(one.max(other))?.get(one.min(other)).copied().map(f64::from)
    }

    /// The speedup of two programs, 1.16 for 16 %, as a figure for tables and
    /// plots.
    #[must_use]
    pub fn speedup(&self, one: &str, other: &str) -> Option<Estimate> {
        self.percent(one, other).map(|percent| Estimate::exact(1.0 + percent / 100.0))
    }
}
