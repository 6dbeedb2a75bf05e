//! Real programs under the real emulator. Needs qemu-user with plugins, and a C
//! compiler; without them each test prints why it skipped.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a failed test panics")]

mod behaviour;
mod processes;
mod support;
mod traces;
mod vectors;
