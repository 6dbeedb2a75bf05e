//! Counting: hardware and software events of other threads.
//!
//! # Problem
//! Policies need to know what a thread does to its core: instructions, stalls, misses. The kernel counts such
//! events for any thread, but counters and descriptors are few, some events are refused, and some read 0 where
//! they should be refused; none of that may pass for a count of zero.
//!
//! # Approach
//! - **A group** ([`Group`]) is opened on one thread and read by one call. An event that is refused is absent
//!   with a reason ([`Reason`]); the rest of the group lives. Events that happen in the kernel are refused
//!   where only the user's side may be counted, since they would read 0 for ever.
//! - **A watch** ([`Watch`]) opens groups on threads that outlived a quantum, and closes them at the threads'
//!   end. All groups are enabled and the kernel multiplexes, or one group counts at a time ([`Sharing`]).
//! - **Descriptors** have a budget ([`descriptor_budget`]). Beyond it threads wait in line and take turns.
//! - **What can be counted** is found by asking ([`support()`]); the catalogue for this host by its processors'
//!   names ([`processors`], [`select`]), and the words for the kernel from the two ([`Choice`]); a single event
//!   by the name that a user gives it ([`event()`]).
//!
//! # Terms and units
//! *Enabled*: time in which the thread ran and its group was to count. *Running*: the part of it in which the
//! group did. *Coverage*: running time over the thread's run time. *Age*: quanta since a count was taken.
//! Counts are raw; [`Reading::estimate`] scales them to the time enabled. (perf_event_open(2).)
//!
//! # Properties
//! (Tests in `tests/perf` unless they stand next to the code.)
//! - Counts are right (`touched_pages_are_counted`, `the_task_clock_is_the_cpu_time`,
//!   `rotation_covers_each_group`, `counts_of_some_cpus_are_not_scaled`).
//! - A missing event is absent with its reason (`a_refused_event_leaves_the_others`,
//!   `kernel_side_events_are_absent_without_the_kernels_side`, `what_the_chip_lacks_is_not_asked_for`,
//!   `a_group_that_never_counts_is_starved_and_one_that_had_no_chance_is_not`).
//! - Each paranoid level is reported with what it allows (`each_paranoid_level_says_what_it_allows`).
//! - The last counts of a thread are reported once (`the_last_counts_of_a_thread_are_reported_once`).
//! - Descriptors stay within the budget (`threads_come_and_go`, `two_thousand_threads_share_the_budget`,
//!   `few_descriptors_are_enough`).
//! - A reused number yields no count for another thread (`a_number_used_again_is_another_thread`).

mod ability;
mod choice;
mod error;
mod event;
mod group;
mod host;
mod libpfm;
mod pmu;
mod reading;
mod rotation;
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
