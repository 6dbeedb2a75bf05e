//! The experiment `symbiont bench self decision`: how long a decision of `symbiotic-online` takes.
//!
//! # Problem
//! Once a quantum stacks are characterised and inverted, all pairs predicted and matched, groups of
//! four made of them, and moves planned. How long does that take, and how does it grow with the
//! number of threads?
//!
//! # Approach
//! The product's own loop (`symbiont_control`) on 16 to 1,024 threads, on cores that run two and four
//! of them, by the coarse stack of POWER8 and by its fine one. The threads are made up ([`Load`]):
//! stacks that lean to one or the other component and change by some percent each quantum, shown as
//! raw counts of groups that take turns, and every twentieth thread enters a new phase; moves are
//! carried out at no cost. Taking in a quantum's
//! counts and carrying moves out on Linux are other experiments (`counters`, `overhead`).
//!
//! Each run makes so many decisions; its figure is their median. The first one, for which there are no
//! groups yet, is distinguished. Loads are interleaved: each round holds each of them once, in random
//! order.
//!
//! # Terms and units
//! *Decision*: [`symbiont_control::Controller::step`], in ms of wall time on one CPU. *Growth*: the
//! exponent b in time ∝ threadsᵇ from one number of threads to the next.
//!
//! # Properties
//! - Verdicts follow from the runs alone (`verdicts_follow_the_runs`).
//! - All threads are grouped in each decision that is timed (`real_decisions_are_timed`).

mod campaign;
pub mod evaluate;
mod measure;
pub mod page;
pub mod plan;
mod synthetic_threads;
#[cfg(test)]
mod tests;

pub use campaign::{DecisionOptions, run};
pub use evaluate::{Evaluation, evaluate};
pub use plan::{Load, Size};
