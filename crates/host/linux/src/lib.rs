//! The real machine: starts programs, watches their threads, moves them, and restores what it changed.

pub mod actuate;
mod birth;
pub mod confines;
pub mod cookies;
#[cfg(fuzzing)]
pub mod fuzzing;
mod inheriting;
pub mod kernels;
pub mod launch;
pub mod machine;
mod nops;
pub mod observe;
pub mod occupancy;
mod online;
mod peer;
pub mod perf;
pub mod slow;
pub mod switches;
mod usage;

pub use birth::{ProcessBirth, boot_id, has_ended};
pub use nops::nops;
pub use peer::{PeerCredentials, peer_credentials};
pub use usage::{EndedChild, cpu_time_of_children, reap, user_time_of_children};
