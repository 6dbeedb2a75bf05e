//! From two cumulative samples to what each thread did between them.
//!
//! # Problem
//! A machine counts since a thread was born. A policy wants to know what the
//! thread did over the last quantum, and must not take a missing count for a
//! count of zero.
//!
//! # Approach
//! [`characterize`] compares two samples, thread by thread, and gives rates.
//! It is a pure function. A thread has no entry when nothing can be said about
//! it: it is in one sample only, no time passed, or its counts ran backwards.
//!
//! Counts of events need a memory: a group may have been counted some quanta
//! ago, or wait for descriptors. [`History`] folds sample after sample, keeps
//! each group's last difference, and derives from it what the machine's event
//! [`catalogue`] has formulas for ([`Measured`]). What is missing is absent with
//! its reason ([`Unmeasured`]).
//!
//! # Terms and units
//! *Difference*: what a group counted of a thread between the last two readings
//! between which it counted at all. *Age*: samples since the later one.
//! *Coverage*: share of the thread's CPU time between the two in which the group
//! counted; where a group sees half of a quantum, its counts are half the
//! truth. So counts are compared within a group, raw, and only a bare count is
//! scaled to the time in which its group was to count. *Ready fraction*: share of the quantum in which the thread ran or could
//! have run, 0 to 1. Linux credits the time that a thread waited only when it
//! next runs, and running time only at ticks and switches. So the difference
//! of two counts may be far too small for a thread that waits all the time, or
//! exceed the quantum for one that just got its turn. Hence: 1 if the thread
//! was runnable at both samples, else min(1, Δ(ran + waited) / Δt). *Running fraction*: min(1, Δran / Δt).
//! *Ready threads* of a program: sum of its threads' ready fractions, that is
//! the mean number of threads that were ready over the quantum.
//!
//! # Properties
//! - Fractions lie between 0 and 1, and ready ≥ running
//!   (`fractions_are_fractions`).
//! - What is not in both samples, or ran backwards, is absent, never zero
//!   (`a_new_thread_has_no_characterization`, `counts_that_run_backwards_are_absent`).
//! - Differences are told with coverage and age, also under rotation, after a
//!   pause and of sleepers (`groups_in_rotation_show_half_coverage_and_their_age`,
//!   `a_group_that_was_closed_meanwhile_starts_over`,
//!   `a_sleeper_keeps_its_last_counts_which_grow_old`).
//! - Counts of different groups are never compared
//!   (`later_readings_are_differences_and_raw_counts_stay_within_their_group`).
//! - What was never counted is absent with its reason
//!   (`what_was_never_counted_is_absent_with_its_reason`); whatever is read,
//!   coverage is a share and values are finite
//!   (`whatever_is_read_coverage_is_a_share_and_values_are_finite`).
//! - Only what is wanted is counted (`only_what_is_wanted_is_counted`).
//! - Where counts are credited at once, cutting a span of time in two changes
//!   nothing: the rates of the whole are the weighted means of the parts'
//!   (`a_lost_sample_loses_nothing`).

pub mod catalogue;
mod history;
mod measured;
mod scheme;
mod track;

use std::collections::BTreeMap;
use std::time::Duration;

pub use history::History;
pub use measured::{Measured, Measurement, Outputs, Stack, Unmeasured};
use serde::{Deserialize, Serialize};
use symbiont_machine::{RunState, Sample, ThreadId, ThreadSample};

/// What one thread did over one quantum.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Characterization {
    /// Length of the quantum as the machine's clock saw it.
    pub over: Duration,
    /// Share of the quantum in which the thread ran or could have run, 0 to 1.
    pub ready: f64,
    /// Share of the quantum in which the thread ran, 0 to 1.
    pub running: f64,
    /// Times that it was put on a hardware thread.
    pub switches: u64,
    /// Was it last seen on another hardware thread than before? Absent where
    /// the machine does not know where it ran.
    pub migrated: Option<bool>,
}

/// What the threads did over one quantum, as far as it is known.
pub type Characterizations = BTreeMap<ThreadId, Characterization>;

/// What was measured of the threads by counting events.
pub type Measurements = BTreeMap<ThreadId, Measured>;

/// What each thread did between two samples of one machine.
#[must_use]
pub fn characterize(before: &Sample, after: &Sample) -> Characterizations {
    let over = after.at.since(before.at);
    if over.is_zero() {
        return Characterizations::new();
    }
    let earlier: BTreeMap<ThreadId, &ThreadSample> =
        before.threads.iter().map(|t| (t.id, t)).collect();
    after
        .threads
        .iter()
        .filter_map(|now| Some((now.id, between(earlier.get(&now.id)?, now, over)?)))
        .collect()
}

/// None if a count ran backwards.
fn between(
    before: &ThreadSample,
    after: &ThreadSample,
    over: Duration,
) -> Option<Characterization> {
    let ran = after.ran.checked_sub(before.ran)?;
    let waited = after.waited.checked_sub(before.waited)?;
    let switches = after.switches.checked_sub(before.switches)?;
    let share = |time: Duration| (time.as_nanos() as f64 / over.as_nanos() as f64).min(1.0);
    let runnable = |t: &ThreadSample| t.state == RunState::Runnable;
    let ready =
        if runnable(before) && runnable(after) { 1.0 } else { share(ran.saturating_add(waited)) };
    let migrated = before.cpu.zip(after.cpu).map(|(from, to)| from != to);
    Some(Characterization { over, ready, running: share(ran), switches, migrated })
}

#[cfg(test)]
mod tests;
