//! What counting promises, on real threads and the kernel's software events.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a failed test panics")]

mod counting;
mod support;
mod users;
mod watching;
