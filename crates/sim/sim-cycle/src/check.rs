//! The fast level of the simulated machine, checked against the cycle level.
//!
//! # Problem
//! The fast level is a model of described hardware. Its figures are believed as far as a cycle-by-cycle
//! simulation of the same description agrees with it.
//!
//! # Approach
//! Both levels are asked the same through the machine's interface: how fast is each program alone, alone on a
//! core in the SMT mode of n threads (*throttled*), and co-running with others on such a core? Each program is
//! represented by its most frequent phase. The groups of n programs are all there are, or a random sample.
//!
//! The fast level knows a program by its profile alone. Where a window of it was captured, the cycle level
//! runs that window, and the profile should be of nothing but the window
//! ([`CapturedWindow::as_profiled`](crate::CapturedWindow::as_profiled)), lest the choice of the window
//! count as an error of the model. Otherwise the cycle level replays the profile's micro-traces, with
//! addresses made to fit their reuse times. Either way this checks pipelines, queues, sharing and caches, not
//! whether a profile represents its program.
//!
//! A description whose fast level passes the gates ([`Gates`]) may carry the line that [`mark`] makes as its
//! `checked`; it accompanies every figure from then on.
//!
//! *Programs used in development*: a gate means little for programs by whose figures a mechanism of either
//! level was found. Those were lbm and cg (prefetching), gzip and openssl (fetch groups), openssl (twins),
//! stream and zstd (dispatch groups), gcc and zstd (age of lines), chase and perl (useless prefetches), cg
//! and network (queues while memory is awaited). A claim of agreement rests on others.
//!
//! # Terms and units
//! *Error*: fast / cycle − 1. *Slowdown*: CPI together / CPI throttled. *STP* of a group: sum of CPI alone /
//! CPI together. *Rank*: Spearman's correlation. Stack components are compared as shares of a thread's cycles.
//!
//! # Properties
//! `equal_levels_agree`, `a_level_that_errs_is_reported_with_its_worst_case`,
//! `only_what_passes_is_marked`.

mod compare;
mod gates;
mod matrix;
#[cfg(test)]
mod tests;

pub use compare::{Agreement, BothLevels, Component, LevelComparison, compare, rank_correlation};
pub use gates::{Gates, mark};
pub use matrix::{Case, Group, Matrix, Performance, Plan, alone, measure, most_frequent};
