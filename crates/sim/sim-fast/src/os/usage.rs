//! How busy hardware threads and threads were lately, as Linux's PELT averages show
//! (`util_avg` in kernel/sched/pelt.c).
//!
//! An average follows what it is of, 1 while that runs and 0 while it does not, and half of
//! a difference is gone after 32 periods of 1,024 × 1,024 ns. A thread that joins another
//! queue takes its own average along: the queue that it left had two that ran half of the
//! time each, and looks half idle until its average has caught up. Averages here do not run
//! slower on slower cores, and sleeping threads leave no estimate behind (`util_est`).

/// Half of a difference is gone after so long (`LOAD_AVG_PERIOD`).
const HALF_LIFE_NS: f64 = 32.0 * 1024.0 * 1024.0;

/// The share of an average that is left after a time.
pub(crate) fn left_after(ns: f64) -> f64 {
    (-ns / HALF_LIFE_NS).exp2()
}

/// An average after a time, of which so much of it is left.
pub(crate) fn follow(average: f64, left: f64, runs: bool) -> f64 {
    average * left + if runs { 1.0 - left } else { 0.0 }
}

/// What a new thread is taken for in a queue with this average: half of what is free there
/// (the limit in `post_init_entity_util_avg`).
pub(crate) fn newborn(queue: f64) -> f64 {
    (1.0 - queue).max(0.0) / 2.0
}
