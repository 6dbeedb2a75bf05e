//! Messages between `symbiontd` and its clients, as plain values.
//!
//! # Problem
//! An untrusted client sends bytes to a process that may change any thread. What it sends
//! must be bounded before it is parsed, and refused with a reason where it is not understood.
//!
//! # Approach
//! The framing and the envelopes are varlink's (varlink.org): a JSON object, then a zero byte.
//! Generic tools (`varlinkctl`) can call the read-only methods. The code is our own because the
//! protocol needs what the published crates do not offer: process descriptors with a message
//! (`SCM_RIGHTS`), peer credentials, one deadline for a whole message and quotas for each user.
//! This crate holds the values, the framing and the bounds, and does no I/O.
//!
//! [`FrameBuffer`] cuts received bytes into frames. [`Call`] and [`Reply`] are the envelopes.
//! [`Request`] is a call of the interface with its parameters, [`Failure`] an error of it.
//! [`INTERFACE`] describes both for generic clients; [`STATUS_SCHEMA`], [`WHY_SCHEMA`],
//! [`SNAPSHOT_SCHEMA`] and [`ADVICE_SCHEMA`] are JSON schemas of what `symbiont status`, `why`, `top` and
//! `advise` print with `--json`. [`advice`] is no message: it is made without a daemon. [`jobs`] is what the
//! daemon of a node reports of its jobs over HTTP, described by [`JOBS_SCHEMA`].
//!
//! # Terms and units
//! *Frame*: the bytes of one message without the zero byte, at most [`MOST_BYTES`]. *Descriptor*: an
//! open file that travels with a message; a process is named by its pidfd, never by its number
//! alone. Slowdowns are time together / time alone (1 or more as a rule), times are seconds.
//!
//! # Properties
//! - However bytes are cut, the same frames come out (`frames_do_not_depend_on_how_bytes_arrive`).
//! - A frame that is too long is refused before it is complete (`an_endless_frame_is_refused`).
//! - What is written is read back equal (`requests_survive_the_wire`, `failures_survive_the_wire`).
//! - Any bytes are read or refused (`any_bytes_are_read_or_refused`).
//! - The description names each method and error, with its parameters
//!   (`the_description_names_each_method_and_error`).
//! - The published schemas are those of the types (`the_schemas_are_those_of_the_types`).

pub mod advice;
mod call;
mod failure;
mod frame;
pub mod jobs;
mod reply;
mod request;
mod snapshot;

pub use call::{Call, CallError, Reply};
pub use failure::Failure;
pub use frame::{FrameBuffer, FrameTooLong, MOST_BYTES, to_frame};
pub use reply::{
    Attached, CoRunner, Container, Enrolled, Explanations, Info, Intruder, KernelScheduler,
    NextToProgram, ProgramStatus, Quiet, Released, Reloaded, RunnerUp, Score, Status, Throttled,
    Usage, Waits, Why,
};
pub use request::Request;
pub use snapshot::{CoreStatus, ManagerStatus, MoveStatus, Snapshot, ThreadStatus};

/// Name of the interface that [`Request`] calls.
pub const INTERFACE_NAME: &str = "io.symbiont.Manager";
/// Name of the interface that every varlink service has.
pub const SERVICE_NAME: &str = "org.varlink.service";
/// JSON schema of [`Status`], as `symbiont status --json` prints it.
pub const STATUS_SCHEMA: &str = include_str!("status.schema.json");
/// JSON schema of [`Explanations`], as `symbiont why --json` prints it.
pub const WHY_SCHEMA: &str = include_str!("why.schema.json");
/// JSON schema of [`Snapshot`], as `symbiont top --json` prints it.
pub const SNAPSHOT_SCHEMA: &str = include_str!("snapshot.schema.json");
/// JSON schema of [`advice::Advice`], as `symbiont advise --json` prints it.
pub const ADVICE_SCHEMA: &str = include_str!("advice.schema.json");
/// JSON schema of [`jobs::NodeJobs`], as the daemon answers `GET /jobs`.
pub const JOBS_SCHEMA: &str = include_str!("jobs.schema.json");
/// What `varlinkctl introspect` shows.
pub const INTERFACE: &str = include_str!("io.symbiont.Manager.varlink");

#[cfg(test)]
mod schema_tests;
#[cfg(test)]
mod tests;
