//! What the actuator promises, on real processes.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a failed test panics")]

mod acting;
mod cpuset;
mod crashing;
mod namespaces;
mod nudging;
mod reusing;
mod roles;
mod support;
