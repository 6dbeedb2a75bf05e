//! Which settings of a thread may be changed without surprising its program.

use std::time::Duration;

use symbiont_machine::Lifecycle;

use super::quantum_timer::QuantumTimer;
use super::start::Starts;
use crate::observe::{Method, Observed};

/// The shortest time for which a thread is left alone after it forked a process or its process called exec:
/// programs count the CPUs when they start.
pub const SETTLE: Duration = Duration::from_millis(100);
/// The same after a fork where births are found by scanning: a process that forked of late
/// will fork again, and its children keep what they inherit until a scan.
const SETTLE_SCANNING: Duration = Duration::from_secs(2);
/// [`SETTLE`] in quanta, at least.
const SETTLE_QUANTA: u64 = 3;

/// The lifecycle of a thread of the last sample; `may_fork`: its process is one that makes others.
pub(super) fn lifecycle(
    thread: &Observed,
    may_fork: bool,
    timer: &QuantumTimer,
    method: &Method,
    starts: &Starts,
) -> Lifecycle {
    let is_past = |age: Option<u64>, time: Duration| {
        age.is_none_or(|age| age >= SETTLE_QUANTA && timer.since(age) >= time)
    };
    let after_fork = match method {
        Method::Connector { .. } => SETTLE,
        Method::Scan { .. } => SETTLE_SCANNING,
    };
    let ages = &thread.ages;
    let inherited =
        ages.seen < 1 || !is_past(ages.forked, after_fork) || !is_past(ages.execed, SETTLE);
    match starts.is_over(thread.id.process) {
        _ if inherited || may_fork => Lifecycle::Fresh,
        false => Lifecycle::Starting,
        true => Lifecycle::Settled,
    }
}
