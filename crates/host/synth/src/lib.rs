//! The synthetic benchmark of serial and parallel phases.
//!
//! # Problem
//! The gain of a scheduler that knows phases can only be measured with programs whose phases are known.
//! Morad, Kolodny and Weiser (CCIT report 701, 2008, section 3 and Fig. 3) made one: a loop that alternates
//! between serial phases (one thread works) and parallel phases (n threads work), in a chosen ratio.
//!
//! # Approach
//! [`sequence`] draws the lengths of the phases as work, from a seed. [`pool`] does the parallel ones on n
//! threads, which take chunks from a shared counter (a dynamic schedule) and sleep in between. [`work`] is
//! the calculation, in registers. [`run()`] combines them, [`many`] is a second load (many threads that
//! mostly sleep) for the cost of managing, [`churn`] a third (threads that end as soon as they began). [`requests`] measures how long
//! a thread that waits for requests takes to answer them, and [`kernel`] how long the operations of
//! a small kernel take (a chain of adds, loads from one cache level, and so on).
//!
//! # Terms and units
//! *Iteration*: the unit of work, about one microsecond of one thread.
//! *Ratio*: parallel to serial work with the parallel part divided by n (eq. 1),
//! so on an idle machine also the ratio of times. *Cycle*: one parallel and one
//! serial phase. *Rate*: iterations per second of one thread on an idle
//! machine. *Progress*: serial iterations plus parallel iterations divided by n.
//!
//! # Conditions of a fair comparison
//! - A program is its sequence of phases, fixed by ratio, threads, mean phase
//!   length and seed, and given as *work*. Compare runs with equal seeds.
//! - Phase lengths must not depend on the load at the start of a run: measure
//!   the rate once on the idle machine (`calibrate`) and give it to each run
//!   (`--rate`), or give the length as work (`--iterations-per-phase`). A run
//!   that has to calibrate itself says so in its report.
//! - Programs that run at the same time should be measured over the same time:
//!   give both the same `--start-at` and `--duration`. Threads stand before the
//!   start, and each program starts at a random moment of its first cycle.
//! - The clock runs from the time to start, not from the first instruction: a
//!   program that the OS lets begin late is slow, not short.
//! - Waiting threads are asleep.
//!
//! # Properties
//! - Work is split as eq. 1 says (`work_is_split_as_equation_1_says`).
//! - A seed fixes the phases (`a_seed_always_gives_the_same_sequence`).
//! - A phase does exactly its work, on any number of threads
//!   (`a_phase_does_exactly_its_iterations_on_any_team`).
//! - In serial phases one thread at most is ready (`threads_sleep_through_serial_phases`).

pub mod calibrate;
pub mod churn;
pub mod kernel;
pub mod many;
pub mod pool;
pub mod requests;
pub mod sequence;
pub mod usage;
pub mod work;

mod ratio;
mod report;
mod run;

use std::time::Duration;

pub use ratio::{ParseRatioError, Ratio};
pub use report::{Calibration, Ended, Report, Span, Work};
pub use run::{LONGEST_WAIT, MeanPhase, RunOptions, Until, run};

/// How [`Error::Past`] begins, so that a caller of the benchmark can know it.
pub const LATE: &str = "the time to start was ";

/// Errors of a run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A thread could not be started.
    #[error("the system refuses another thread: {0}; ask for fewer, or see `ulimit -u`")]
    Thread(#[source] std::io::Error),
    /// There is no memory for a kernel.
    #[error("no memory for the kernel: {0}")]
    Memory(#[source] std::io::Error),
    /// The time to begin is over.
    #[error("{LATE}{0:?} ago; give a later --start-at")]
    Past(Duration),
    /// The time to begin is too far off.
    #[error("the time to start is {0:?} away; at most {LONGEST_WAIT:?} is allowed")]
    TooFar(Duration),
}
