//! How a manager speaks with `symbiont-scx`, the program that loads Symbiont's `sched_ext` scheduler.
//!
//! # Problem
//! A scheduler in the kernel keeps a thread on its CPUs without any mask, but loading one takes libbpf and
//! privileges, and the kernel returns to its own scheduler as soon as its loader dies. The manager must build and
//! run without either, and must never wait for the loader.
//!
//! # Approach
//! The loader is a program of its own. It reads [`Request`]s from its standard input and writes [`Report`]s to its
//! standard output, one JSON document a line. [`Scheduler`] starts it and speaks with it. It unloads the scheduler
//! and ends when its input ends, so that it never outlives its manager.
//!
//! # Terms and units
//! *Own CPUs* of a thread: where it shall run. *Group*: threads with the same number are partners, 0 is that of
//! threads of which nothing is said. Times are in nanoseconds, running times are sums over all CPUs.
//!
//! # Properties
//! - Requests and reports are read back as they were written (`what_is_written_is_read_back`).
//! - A loader that refuses, ends, is silent or writes nonsense is an error, never a wait
//!   (`a_loader_that_does_not_load_is_an_error_with_its_words`, `a_loader_that_ends_later_says_why`,
//!   `a_loader_that_does_not_read_is_given_up`).
//! - Why there can be none here is said (`a_kernel_says_why_it_has_no_place`).

mod message;
mod obstacle;
mod scheduler;

pub use message::{Ended, Placed, Report, Request, SiblingTime, Statistics};
pub use obstacle::{loader, obstacle};
pub use scheduler::{Scheduler, SchedulerError};

/// The name by which the kernel knows the scheduler (`/sys/kernel/sched_ext/root/ops`).
pub const NAME: &str = "symbiont_partner";
