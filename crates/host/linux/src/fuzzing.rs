//! Readers that are private to this crate, for fuzzing: each gets bytes as another process may have
//! written them, and panics where a property does not hold.

pub use crate::actuate::fuzzing::{holder, journal};
pub use crate::launch::fuzzing::frames;
pub use crate::observe::fuzzing::{proc_files, reports, world};
pub use crate::switches::fuzzing::tracepoints;
