//! Watching real programs, by both methods.
//!
//! The programs are this test binary run again ([`programs`]) and /bin/sh.
#![expect(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

mod census;
mod enrolment;
mod faults;
mod programs;
mod support;
