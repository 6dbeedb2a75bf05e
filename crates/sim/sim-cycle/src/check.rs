//! The simulated machine's fast level, judged by its cycle level.
//!
//! # Problem
//! The fast level is a model of described hardware. Its figures are believed as far as a
//! cycle-by-cycle simulation of the same description agrees with it.
//!
//! # Approach
//! Both levels are asked the same through the machine's seam: how fast is each program alone, alone on a core that
//! is set up for n threads (*throttled*), and co-running with others on such a core? Of each program its
//! most frequent phase is taken. Groups of n programs are all there are, or so many drawn with a seed.
//!
//! The fast level knows a program by a profile alone. Where a window was captured of it, the cycle
//! level runs that, and the profile is to be of nothing but it
//! ([`Captured::as_profiled`](crate::Captured::as_profiled)), for else the choice of the window would count as
//! a fault of the model. Without one the cycle level replays the profile's micro-traces, with addresses
//! made to fit their reuse times. Either way this checks pipelines, queues, sharing and caches, not
//! whether a profile stands for its program.
//!
//! A description whose fast level passes the gates ([`Gates`]) may carry the line that [`mark`]
//! makes as its `checked`; it goes with every figure from then on.
//!
//! *Programs that took part*: a gate means little for programs by whose figures a mechanism of either level was
//! found. Those were lbm and cg (prefetching), gzip and openssl (what is fetched in a turn), openssl (twins),
//! stream and zstd (groups), gcc and zstd (how old lines are), chase and perl (what is prefetched in vain),
//! cg and network (what a thread holds while it waits for memory). A claim of
//! agreement rests on others.
//!
//! # Terms and units
//! *Error*: fast / cycle − 1. *Slowdown*: CPI together / CPI throttled. *STP* of a group: sum of CPI alone / CPI
//! together. *Rank*: Spearman's correlation. Stack components are compared as shares
//! of a thread's cycles.
//!
//! # Properties
//! `equal_levels_agree`, `a_level_that_errs_is_reported_with_its_worst_case`,
//! `only_what_passes_is_marked`.

mod compare;
mod gates;
mod matrix;
#[cfg(test)]
mod tests;

pub use compare::{Agreement, BothLevels, Compared, Component, compare, rank_correlation};
pub use gates::{Gates, mark};
pub use matrix::{Case, Group, Matrix, Measured, Plan, alone, measure, most_frequent};
