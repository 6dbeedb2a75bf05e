//! The real machine: threads, run states, affinity, priority, restore.

pub mod actuate;
mod inheriting;
pub mod launch;
pub mod machine;
mod nops;
pub mod observe;
pub mod perf;
pub mod slow;
pub mod switches;

pub use nops::nops;
