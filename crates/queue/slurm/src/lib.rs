//! Chooses which jobs of a Slurm cluster start together: the service behind `symbiont slurm`.
//!
//! # Problem
//! Slurm starts jobs where CPUs are free, whatever runs next to them. Which jobs share a node decides how fast each of
//! them runs. Slurm keeps the queue and its priorities, and no job may come to depend on Symbiont.
//!
//! # Approach
//! `job_submit.lua` puts off the start of batch jobs, and marks them. The [`Releaser`] looks at the queue every few
//! seconds and lets marked jobs start earlier: by Slurm's commands ([`Commands`]), each on the node where it suits what
//! runs there, as `symbiont_jobs` chooses. It learns from the runs of jobs that ended, and from what the daemons of the
//! nodes report ([`NodeDaemons`]).
//!
//! ```text
//! queue, nodes ─▶ Releaser::step ─▶ decisions ─▶ DecisionLog
//! runs, reports ─▶     │    ▲
//!                      ▼    │
//!            Journal of assignments ─▶ undone by the releaser, its guard or the next releaser
//! ```
//!
//! A job that was assigned a node waits for that node alone; so an assignment is noted in the [`Journal`] before Slurm
//! is asked for it, and is undone where the job does not start.
//!
//! # Terms and units
//! *Release*: to let a job start whose start was put off. *Assignment*: the node that it was released to. *Give back*:
//! to let Slurm choose the node of an assigned job again. *Look*: one pass over the queue. Times are seconds since
//! 1970, and a parameter; memory is in MB.

mod assignments;
mod cluster;
mod decision;
mod decision_log;
mod error;
mod guard;
mod knowledge;
mod lock;
mod metrics;
mod names;
mod nodes;
mod process;
mod programs;
mod progress;
mod releaser;
#[cfg(test)]
mod tests;
mod tracked;
mod waiting;

pub use assignments::{Assignment, Assignments, Journal};
pub use cluster::{Cluster, Commands};
pub use decision::Decision;
pub use decision_log::DecisionLog;
pub use error::{FileError, SlurmError};
pub use guard::undo_left_over;
pub use lock::StoreLock;
pub use metrics::{Metrics, NodeMetrics};
pub use names::{UnknownName, check_partition, check_qos};
pub use nodes::{NodeDaemons, NodePoller, model_doubt};
pub use releaser::{ReleaseOptions, Releaser};
pub use waiting::{NoSuchJob, explain_wait};
