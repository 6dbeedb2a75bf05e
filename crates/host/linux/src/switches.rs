//! Follows which threads are ready, switch by switch, by the scheduler's tracepoints.
//!
//! # Problem
//! The scheduler's accounts ([`crate::observe`]) are read once a quantum. They do not show a phase that is
//! shorter than a quantum, and show a longer one a quantum late. Morad et al. (section 6) count ready threads in
//! the kernel, whenever a thread's state changes.
//!
//! # Approach
//! - **Events.** `sched_switch`, `sched_waking`, `sched_wakeup` and `sched_wakeup_new` of all threads go to one
//!   ring buffer per hardware thread, opened by perf_event_open(2), stamped with `CLOCK_MONOTONIC`. A wake-up is
//!   reported twice: by the waker (`sched_waking`), perhaps before the sleeper is switched off, and on the CPU
//!   where the thread will run (`sched_wakeup`). Idle threads' own events can be missing, so both are needed.
//! - **Their layout** is read from tracefs: the mounted one, or a detached one (fsmount(2)).
//! - **A thread of its own** ([`Reader`]) sleeps until there are events, at real-time priority where permitted;
//!   it reads at most once per [`PAUSE`]. The kernel filters out its own switches.
//! - **Counting** ([`ReadyThreads`]) is a pure function of the events: a thread is ready from its wake-up, or
//!   from running, until it is switched off in a state that is not runnable.
//! - **An alarm** ([`Alarm`]) informs the waiting loop that a program's number of ready threads crossed a
//!   threshold.
//!
//! All this takes CAP_PERFMON and CAP_SYS_ADMIN (root), and the initial PID namespace, whose numbers the kernel
//! writes. Else [`SwitchError`] says what is missing, and only the accounts remain.
//!
//! # Terms and units
//! *At*: when something happened. *Seen*: when the reader got it.
//!
//! # Properties
//! - Readiness follows from the last events in any order of arrival; time between late events is not counted
//!   (`events_that_arrive_late_leave_the_last_state`).
//! - A thread that sleeps and wakes is seen to do so (`a_thread_that_sleeps_and_wakes_is_seen`).
//! - The alarm rings when a program crosses the threshold, and only then
//!   (`crossing_the_threshold_either_way_rings`, `there_and_back_at_once_does_not_ring`,
//!   `others_threads_do_not_ring`).
//! - Lost events are counted (`lost_records_are_reported`).
//! - Impossible records do not panic (`any_bytes_are_decoded_or_refused`).

mod alarm;
mod format;
#[cfg(fuzzing)]
pub(crate) mod fuzzing;
mod open;
mod reader;
mod ready;
mod ring;
mod sys;

use symbiont_machine::Timestamp;

pub use alarm::{Alarm, Member};
pub use open::SwitchError;
pub use reader::{PAUSE, Reader};
pub use ready::ReadyThreads;

/// Something that the scheduler did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// When it happened.
    pub at: Timestamp,
    /// What it was.
    pub kind: Kind,
}

/// What the scheduler did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A hardware thread went from one thread to another (0: idle).
    Switch {
        /// The thread that ran.
        from: u32,
        /// Is it still ready?
        from_is_ready: bool,
        /// The thread that runs now.
        to: u32,
    },
    /// A thread became ready.
    Wakeup {
        /// The thread.
        thread: u32,
    },
}
