//! `symbiontd`: one manager for the programs of a machine, and its client.
//!
//! # Problem
//! A manager that is forked for each run cannot manage what already runs, cannot place the programs
//! of several users together, and cannot be asked what it does and why. One process that may change
//! any thread can, and must not change a thread for a user that may not change it.
//!
//! # Approach
//! The architecture is that of Peternier et al. (WorkOver, section 4.2, Fig. 5): a daemon that
//! monitors and schedules, and clients that enrol programs with it. [`serve()`] runs the daemon in one
//! thread: the loop of [`symbiont_control`] sleeps in [`Hub`], which wakes for clients as well as
//! for the end of a quantum, and [`Service`] carries out their requests between two steps.
//! [`Client`] is the other side. Where no daemon runs, [`manage`] steps the same loop for a single run.
//!
//! A process is named by a pidfd that the client passes; whose it is, the kernel says. The peer's
//! user must own the process (real and effective user id), or be root. A program whose process
//! comes to run as another user is released. Clients have quotas for each user and one deadline for
//! a whole message; trouble with one client is logged once and closes its connection only.
//!
//! # Terms and units
//! *Program*: what one call of `Enrol` or `Attach` named, with all its processes and their
//! descendants. *Peer*: the process at the other end of a connection, as the kernel reports it when
//! it connected.
//!
//! # Properties
//! - A user's processes are the user's and root's alone (`only_the_owner_and_root_may_manage`).
//! - No user takes what is another's share (`quotas_count_for_each_user`).
//! - A slow message is cut off at its deadline (`a_message_that_does_not_end_in_time_is_cut_off`).
//! - A request whose client has gone is not carried out (`a_client_that_only_sends_no_more_has_not_hung_up`).
//! - What a user sees is the user's own (`a_user_sees_own_programs_only`).
//! - A bad configuration changes nothing (`a_bad_configuration_is_refused_as_a_whole`).

mod access;
mod client;
mod config;
mod connection;
mod contained;
mod enrolments;
mod explain;
mod hub;
mod jobs;
mod learned;
mod log;
mod masks;
mod metrics;
mod notices;
mod occupants;
mod private;
mod process;
mod programs;
mod quiet;
mod quota;
mod ruled;
mod rules;
mod serve;
mod service;
mod snapshot;
mod surroundings;
mod throttles;
mod together;
mod toml_file;
mod waits;

pub use access::{Owner, Peer};
pub use client::{Client, ClientError, SOCKET, remove_dead_socket};
pub use config::{Config, ConfigError, ContainersConfig, MetricsConfig};
pub use hub::Hub;
pub use jobs::{JobAccounts, JobOf};
pub use learned::LearnedFile;
pub use metrics::{Published, Publisher};
pub use private::{
    LatenessMs, ManagerCost, ManagerReport, Moves, Plan, RestoreOutcome, Wakes, manage,
};
pub use process::{OwnedProcess, ProcessError};
pub use quiet::quiet_words;
#[cfg(fuzzing)]
pub use rules::fuzz as fuzz_rules;
pub use rules::{ContainerPatterns, FoundContainer, PatternError, can_be_a_pod, find_containers};
pub use serve::{ChosenPolicy, Daemon, ServeError, serve};
pub use service::Service;
pub use throttles::{is_mostly_throttled, throttled_words};
