//! Watching: which threads belong to the enrolled programs, and what they do.
//!
//! # Problem
//! A program makes processes and threads whenever it likes, thousands a second
//! perhaps, and Linux gives their numbers away again. Symbiont must know, at
//! each quantum's end, every thread of each enrolled program, what it does and
//! how long it ran and waited, for at most a few microseconds a thread. It
//! must also hear of newborns *before* they look at the mask that they
//! inherited.
//!
//! # Approach
//! - **Births, execs and ends** come from the kernel's process connector on a
//!   thread of its own ([`Method::Connector`]), once it has proved that it
//!   reports. Else /proc is listed at each read ([`Method::Scan`]). Both feed
//!   one pure state machine, which knows who is enrolled.
//! - **Losses** of reports are noticed and made good by a complete scan at the
//!   next read ([`Losses`]).
//! - **Reading** is one `pread` of `stat` and one of `schedstat` for each
//!   thread, on files that stay open; of a thread that slept and has not run since
//!   just `schedstat`, if no other thread is ready than those read. Only threads alive at a read have files:
//!   short-lived ones cost two reports each and nothing else.
//! - **Enrolment** subscribes first, then scans, then applies what was
//!   reported meanwhile, so that nothing is born unseen in between.
//!
//! # Terms and units
//! *Read*: one call of [`Watcher::read`], made once per quantum; ages are
//! counted in reads ([`Ages`]). *Report*: one message of the connector.
//! Identity is a [`ThreadId`](symbiont_machine::ThreadId): numbers, start time
//! in clock ticks since boot, and execs since enrolment.
//!
//! # What is not known
//! - Which thread made a thread, and which thread called exec: the kernel does
//!   not report it ([`Birth::parent_thread`], [`Exec::candidates`]).
//! - A child made with `CLONE_PARENT` is reported as its maker's sibling, and
//!   is not enrolled if the maker's parent is not.
//! - By scanning: a process whose parents all ended since the last read,
//!   unless it is in a session that an enrolled process was seen to have made;
//!   an exec where addresses are not randomised or may not be seen.
//!
//! # Properties
//! (Tests in `tests/observe`, each by both methods where it can be.)
//! - Threads and children are found, present and future ones, and others are
//!   not (`threads_present_and_future_are_found`,
//!   `children_are_found_and_leave`).
//! - A thread is not taken for an earlier one with its number
//!   (`a_thread_in_the_place_of_another_is_found`).
//! - An exec makes another identity, also from a thread that is not the leader
//!   (`an_exec_from_another_thread_leaves_the_leader`); a number that is used
//!   again is another thread (`a_number_used_again_is_another_thread`).
//! - Each thread alive at two consecutive reads is in the second, counted by
//!   other code ([`census`]; `who_lives_through_a_quantum_is_read_at_its_end`).
//! - A thread that waits without having run since it slept is seen ready
//!   (`a_sleeper_that_waits_for_a_cpu_is_seen_ready`).
//! - Lost reports are made good (`an_overrun_is_made_good_by_a_scan`), and
//!   threads that come and go leave nothing behind
//!   (`short_lived_threads_leave_nothing_behind`).
//! - It works without privilege, in containers, and with few descriptors
//!   (`an_ordinary_user_can_watch`, `in_another_pid_namespace_it_scans`,
//!   `few_descriptors_are_enough`).

mod bystanders;
mod census;
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
mod stat;
mod state;
mod sys;
mod tree;
#[cfg(any(test, fuzzing))]
mod tree_world;
mod watcher;

pub(crate) use bystanders::read_bystanders;
pub use census::{Counted, census};
pub use connector::Losses;
#[cfg(any(test, fuzzing))]
pub(crate) use event::Event;
pub use files::raise_descriptor_limit;
pub use hook::{Birth, BirthHook, Exec};
pub use observed::Observed;
pub use options::{Choice, Method, WatchError, WatchOptions};
pub use reader::{Haste, PAUSE};
pub(crate) use stat::number as unsigned;
pub(crate) use sys::{
    run_all_at_realtime_priority, run_at_normal_priority, run_at_realtime_priority,
};
pub use tree::Ages;
#[cfg(any(test, fuzzing))]
pub(crate) use tree::{Live, Seen, Tree};
pub use watcher::Watcher;
