//! Watches which threads belong to the enrolled programs, and what they do.
//!
//! # Problem
//! A program makes processes and threads at any time, perhaps thousands a second, and Linux reuses their numbers.
//! At the end of each quantum, Symbiont must know every thread of each enrolled program, its state, run time and
//! wait time, for at most a few microseconds a thread. And it must hear of newborns *before* they read the mask
//! that they inherited.
//!
//! # Approach
//! - **Births, execs and ends** are reported by the kernel's process connector to a thread of its own
//!   ([`Method::Connector`]), once the connector has proved that it reports. Else /proc is listed at each read
//!   ([`Method::Scan`]). Both feed one pure state machine, which knows the enrolled processes.
//! - **Lost reports** are noticed, and made good by a complete scan at the next read ([`Losses`]).
//! - **Reading** a thread is one `pread` of `stat` and one of `schedstat`, from files that stay open. For a
//!   thread that slept and has not run since, `schedstat` is enough as long as no thread of the machine is ready
//!   but those read; otherwise both are read now and then. For a process that has not run since the last read,
//!   neither is.
//! - **Enrolment** first subscribes, then scans, then applies what was reported meanwhile.
//!
//! `LIMITATIONS.md` lists what is not known.
//!
//! # Terms and units
//! *Read*: one call of [`Watcher::read`], once per quantum; ages are counted in reads ([`Ages`]). *Report*:
//! one message of the connector. Identity is a [`ThreadId`](symbiont_machine::ThreadId): numbers, start time
//! in clock ticks since boot, and execs since enrolment.
//!
//! # Properties
//! (Tests in `tests/observe`, each by both methods where possible.)
//! - Threads and children are found, and others are not (`threads_present_and_future_are_found`,
//!   `children_are_found_and_leave`).
//! - Identities are not mixed up (`a_thread_in_the_place_of_another_is_found`,
//!   `a_number_used_again_is_another_thread`, `an_exec_from_another_thread_leaves_the_leader`).
//! - Each thread alive at two consecutive reads is in the second
//!   (`census` in the tests; `a_thread_that_lives_through_a_quantum_is_read_at_its_end`).
//! - A waiting thread is seen ready (`a_sleeper_that_waits_for_a_cpu_is_seen_ready`).
//! - Lost reports are repaired (`an_overrun_is_made_good_by_a_scan`), and nothing is left behind
//!   (`short_lived_threads_leave_nothing_behind`).
//! - It works without privilege, in containers, and with few descriptors (`an_ordinary_user_can_watch`,
//!   `in_another_pid_namespace_it_scans`, `few_descriptors_are_enough`).

mod bystanders;
mod clocks;
mod connector;
mod event;
mod files;
#[cfg(fuzzing)]
pub(crate) mod fuzzing;
mod hook;
mod observed;
mod options;
mod reader;
mod released;
mod running;
mod scan;
mod seen;
mod stat;
mod state;
mod sys;
mod tree;
#[cfg(any(test, fuzzing))]
#[path = "worlds/tree_world.rs"]
mod tree_world;
mod watcher;

pub use bystanders::Bystander;
pub(crate) use bystanders::read_bystanders;
pub use connector::Losses;
#[cfg(any(test, fuzzing))]
pub(crate) use event::Event;
pub use files::raise_descriptor_limit;
pub use hook::{Birth, BirthHook, Exec, Moment};
pub use observed::Observed;
pub use options::{Choice, Method, WatchError, WatchOptions};
pub use reader::{Haste, PAUSE};
#[cfg(any(test, fuzzing))]
pub(crate) use seen::Seen;
pub use stat::Scheduling;
pub(crate) use stat::{number as unsigned, parse_stat};
pub(crate) use sys::{
    run_all_at_realtime_priority, run_at_normal_priority, run_at_realtime_priority,
};
pub use tree::Ages;
#[cfg(any(test, fuzzing))]
pub(crate) use tree::{Live, Tree};
pub use watcher::Watcher;
