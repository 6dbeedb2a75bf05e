//! Which queued jobs run together.
//!
//! # Problem
//! A queue holds more jobs than there are slots. Which jobs share a machine decides how fast each of
//! them runs; which job is next is decided by priorities, and no job may wait for ever.
//!
//! # Approach
//! [`choose`](choose()) fills free slots of nodes from a window of the queue, by predicted slowdowns
//! ([`Predict`]). Time is a parameter; but for the store, everything is a function over plain values.
//!
//! | step | here |
//! |---|---|
//! | jobs, nodes, bounds | [`Job`], [`Node`], [`Rules`] |
//! | jobs of one machine, the longest first | [`choose_of_batch`] |
//! | the slowdown of a program next to others | [`Predict`] |
//! | by the interference model, where CPI stacks are counted | [`Modelled`] |
//! | from runs that took longer next to some than to others, where not | [`Learned`] |
//! | from what managers of nodes have learned of programs on one core | [`SharedCores`] |
//! | whichever of these is known | [`Combined`] |
//! | what is known of each program of each user, in a file | [`Observations`], [`Store`] |
//! | what ran next to what | [`Account`] |
//! | queue and nodes as Slurm's commands write them | [`slurm`] |
//! | logs of the queues of others | [`swf`] |
//! | jobs to release, each with its node and its reason; nodes that are kept | [`Choice`], [`Release`], [`Reason`] |
//!
//! # Terms and units
//! *Slot*: room for one job of one CPU on a node. *Slowdown*: time together / time alone. *Window*: the
//! jobs, first in order of priority, that may start before each other. *Overdue*: has waited for the
//! stated maximum. Times in seconds, on one clock.

mod account;
mod batch;
mod choose;
mod combined;
mod digest;
mod learned;
mod modelled;
mod observed;
mod predict;
mod queue;
mod shared_cores;
pub mod slurm;
mod store;
pub mod swf;

pub use account::{Account, Ran};
pub use batch::{BatchJob, choose_of_batch};
pub use choose::{Admits, choose, choose_among};
pub use combined::{Basis, Combined};
pub use digest::{digest, digest_of_text, work};
pub use learned::{CoRun, Demand, Learned};
pub use modelled::Modelled;
pub use observed::{
    MOST_PROGRAMS, MOST_RUNS, NextTo, NotAKey, Numbering, Observations, ProgramKey, ProgramRecord,
    Run, Stack, learn,
};
pub use predict::{Flat, Predict};
pub use queue::{Choice, Job, Node, Program, Reason, Release, Rules, Running};
pub use shared_cores::SharedCores;
pub use store::{Store, StoreError};
