//! What Hy-Sched (Navarro et al.) gains on the simulated machine of its authors, and why.
//!
//! # Problem
//! The paper pairs programs by their dominant Top-Down category. Does that gain
//! as much as the paper says, how much is that of what could be gained, and does
//! the gain have the cause that the paper names?
//!
//! # Approach
//! Everything runs on the simulated Xeon E5-2620 v4, in a cpuset of as many cores
//! as there are pairs of programs ([`Scene`]); the paper does not say how it
//! confined its mixes, and eight programs on eight cores leave nothing to pair.
//! Every policy, and the OS, has the same cpuset, the same quantum, and the same
//! random starts ([`HyschedRun::repeat`]), so that they are compared start by start.
//!
//! | part | what is run | paper |
//! |---|---|---|
//! | alone | each program by itself, all categories measured | Fig. 1 |
//! | pairs | all pairs on one core | section 4.1, the premise |
//! | pinned | two copies of two programs on two cores, pinned and under the OS | Table 1 |
//! | mixes | eight programs, drawn with replacement, on four cores | Fig. 2, Table 2, section 6.1 |
//!
//! Two references show how much there is to gain: `random`, and pairs fixed by exact
//! matching over the measured STP of all pairs, which knows more than any policy
//! may. Negative controls: the measurements are shuffled between the programs
//! ([`Contender::Shuffled`]); or execution units and caches are made private to
//! each thread, so that there is nothing to gain. To show how much the order
//! matters in which the OS reads the programs, all of them start at once, so that
//! repeats differ in nothing else.
//!
//! # Terms and units
//! *STP*: sum of the speedups relative to running alone. *Gain*: STP over the OS's from the
//! same start, minus 1. *Mix*: programs that run together. *Changes*: share of threads
//! whose dominant category differs from that of the quantum before.
//! Counters err as configured; groups of events take turns of 4 ms.
//!
//! # Properties
//! - A trial has every part, and its seed repeats it (`a_trial_has_every_part`).
//! - A program without any effect gains nothing (`private_resources_leave_no_gain`).
//! - Shuffled measurements are those of another program, for good
//!   (`measurements_are_exchanged_between_programs`).

mod evaluate;
mod plan;
mod play;
#[cfg(test)]
mod tests;
mod trial;
mod watch;

pub use evaluate::{Premise, alone, categories, finding, premises, rows};
pub use plan::{BEST, Contender, FINEST, HyschedRun, HyschedSize, Part, Scene, Start, plan};
pub use play::HyschedRecord;
pub use trial::Trial;
pub use watch::{Alone, VariantShares};
