//! Matchings and groupings against exhaustive search and other implementations.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a failed test panics")]

mod brute_force;
mod families;
mod groups;
mod instances;
mod oracles;
mod pairs;
mod quality;
