//! Real programs, run by the built `symbiont`: they give the same results as
//! unmanaged, all their threads are enrolled, and their children count the
//! CPUs that they count unmanaged.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod compared;
mod cpus;
mod enrolment;
mod results;
mod support;
mod witness;
