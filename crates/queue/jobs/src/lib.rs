//! Which queued jobs run together.
//!
//! # Problem
//! A queue holds more jobs than there are slots. Which jobs share a machine decides how fast each of
//! them runs; priorities decide which job is next, and no job may wait for ever.
//!
//! # Approach
//! [`choose`](choose()) fills free slots of nodes from a window of the queue, by predicted slowdowns
//! ([`Predict`]). Time is a parameter; except for the store, everything is a function over plain values.
//!
//! | what | where |
//! |---|---|
//! | jobs, nodes, bounds | [`Job`], [`Node`], [`Rules`] |
//! | jobs of one machine, the longest first | [`choose_of_batch`] |
//! | the slowdown of a program next to others | [`Predict`] |
//! | ... by the interference model, where CPI stacks are counted | [`StackPredictor`] |
//! | ... from run times, where no events are counted | [`RunTimeModel`] |
//! | ... from what managers of nodes have learned of programs on one core | [`SharedCores`] |
//! | ... from whichever of these is known | [`CombinedPredictor`] |
//! | what is known of each program of each user, in a file | [`Observations`], [`Store`] |
//! | which program a command runs | [`Identities`] |
//! | what ran next to what | [`Account`] |
//! | queue and nodes as Slurm's commands write them | [`slurm`] |
//! | logs of other clusters' queues | [`swf`] |
//! | jobs to release, each with its node and its reason; nodes that are kept | [`Choice`], [`Release`], [`Reason`] |
//!
//! # Terms and units
//! *Slot*: room on a node for one job of one CPU. *Slowdown*: time together / time alone. *Window*: the
//! first jobs in the order of the queue, which may start before each other. *Overdue*: of a job that has waited for
//! the stated maximum. Times are in seconds, on one clock.

mod account;
mod batch;
mod choose;
mod combined;
mod digest;
mod identity;
mod numbering;
mod observed;
mod predict;
mod program_key;
mod queue;
mod run_time_model;
mod shared_cores;
pub mod slurm;
mod stack_predictor;
mod store;
pub mod swf;

pub use account::{Account, ObservedRun};
pub use batch::{BatchJob, choose_of_batch};
pub use choose::{Admits, choose, choose_among};
pub use combined::{Basis, CombinedPredictor};
pub use digest::{digest, digest_of_text, work};
pub use identity::{Identities, Identity};
pub use numbering::{Numbering, learn};
pub use observed::{
    CompletedRun, MOST_PROGRAMS, MOST_RUNS, NextTo, Observations, ProgramRecord, Stack,
};
pub use predict::{Flat, Predict};
pub use program_key::{NotAKey, ProgramKey};
pub use queue::{Choice, Job, Node, ProgramNumber, Reason, Release, Rules, Running};
pub use run_time_model::{CoRun, Demand, RunTimeModel};
pub use shared_cores::SharedCores;
pub use stack_predictor::StackPredictor;
pub use store::{Store, StoreError};
