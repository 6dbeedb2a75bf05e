//! Counting: hardware and software events of other threads.
//!
//! # Problem
//! Policies want to know what a thread does to its core: instructions, stalls,
//! misses. The kernel counts such events for any thread, but counters are few,
//! descriptors are few, some events are refused here and some read 0 where
//! they should be refused; and nothing of that may pass for a count of zero.
//!
//! # Approach
//! - **A group** ([`Group`]) is opened on one thread and read by one call. An
//!   event that is refused is absent, with a reason in plain words
//!   ([`Reason`]); the rest of the group lives.
//! - **Events that happen in the kernel** (context switches, migrations) read
//!   0 for ever where only the user's side may be counted. They are refused
//!   here before the kernel accepts them.
//! - **A watch** ([`Watch`]) opens groups on threads that outlived a quantum,
//!   and closes them at the threads' end. All groups are enabled and the kernel
//!   multiplexes, or one group counts at a time ([`Sharing`]).
//! - **Descriptors** have a budget ([`descriptor_budget`]). Beyond it threads
//!   wait in line and take turns.
//! - **What can be counted** is found by asking ([`support()`]); the catalogue for
//!   this host by what its processors call themselves ([`processors`],
//!   [`select`]), and the words for the kernel from the two ([`Choice`]); a single
//!   event by whatever name a user gives it ([`event()`]).
//!
//! # Terms and units
//! *Enabled*: time in which the thread ran and its group was to count.
//! *Running*: the part of it in which the group did. *Coverage*: running time
//! over the thread's CPU time. *Age*: quanta since a count was taken. Counts
//! are raw; [`Reading::estimate`] scales them to the time enabled.
//! (perf_event_open(2).)
//!
//! # Properties
//! (Tests in `tests/perf` unless they stand beside the code.)
//! - A program that touches N new pages shows N faults
//!   (`touched_pages_are_counted`), and a thread's task clock is its CPU time
//!   (`the_task_clock_is_the_cpu_time`).
//! - A refused event is absent with its reason, and never zero
//!   (`a_refused_event_leaves_the_others`,
//!   `kernel_side_events_are_absent_without_the_kernels_side`).
//! - Who may count what at each paranoid level is said
//!   (`each_paranoid_level_says_what_it_allows`).
//! - A group that is open and never gets a counter is absent with its reason
//!   (`a_group_that_never_counts_is_starved_and_one_that_had_no_chance_is_not`),
//!   and so is what the chip lacks (`what_the_chip_lacks_is_not_asked_for`).
//! - Counts of a PMU for some hardware threads only are never scaled
//!   (`counts_of_some_cpus_are_not_scaled`).
//! - The last counts of a thread that ended are told once
//!   (`the_last_counts_of_a_thread_are_told_once`).
//! - Threads come and go and leave no descriptor (`threads_come_and_go`);
//!   2,000 threads stay within the budget
//!   (`two_thousand_threads_share_the_budget`), and few descriptors are enough
//!   (`few_descriptors_are_enough`).
//! - Groups in rotation cover what they say (`rotation_covers_each_group`).
//! - A thread's number that is used again yields no count for another thread:
//!   counts are told only of threads that are seen alive after they were opened
//!   (`a_number_used_again_is_another_thread`).
//!
//! What it costs: `symbiont bench counters`.

mod ability;
mod choice;
mod error;
mod event;
mod group;
mod host;
mod libpfm;
mod pmu;
mod reading;
mod roster;
mod spec;
mod support;
mod sys;
mod watch;

pub use ability::abilities;
pub use choice::Choice;
pub use error::{OpenError, ReadError, Reason, paranoid_level};
pub use event::{UnknownEvent, event};
pub use group::{Group, GroupOptions};
pub use host::{Selection, processor_name, processors, select};
pub use pmu::{Pmu, pmus};
pub use reading::Reading;
pub use spec::{HARDWARE, Modes, SOFTWARE, Spec};
pub use support::{Support, support};
pub use watch::{
    Alive, Counted, GroupCount, Sharing, Standing, Watch, WatchOptions, descriptor_budget,
};
