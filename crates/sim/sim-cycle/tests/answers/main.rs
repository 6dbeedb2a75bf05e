//! Experiments whose answer is known to the cycle.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a failed test panics")]

mod cachegrind;
mod caches;
mod core;
mod digest;
mod forwarding;
mod model;
mod smt;
mod support;
