//! What each thread did between two cumulative samples.
//!
//! # Problem
//! A machine counts since a thread was born. A policy needs the rates of the last quantum, and must not
//! take a missing count for a count of zero.
//!
//! # Approach
//! [`characterize`] compares two samples, thread by thread, and gives rates. It is a pure function. A
//! thread has no entry if it is in one sample only, no time passed, or its counts decreased.
//!
//! Counts of events need a memory: a group may have been counted some quanta ago, or wait for
//! descriptors. [`History`] folds sample after sample, keeps each group's last difference, and computes
//! the formulas of the machine's event [`catalogue`] ([`Measured`]). A missing value is absent with its
//! reason ([`Unmeasured`]).
//!
//! # Terms and units
//! *Difference*: counts of a group between the last two readings between which it counted. *Age*:
//! samples since the later one. *Coverage*: share of the thread's run time between the two in which the
//! group counted. Counts are compared within a group, raw; only a bare count is scaled to the time in
//! which its group was to count. *Ready fraction*: share of the quantum in which the thread ran or could
//! have run. Linux credits wait time only when the thread next runs, and run time only at ticks and
//! switches, so the fraction is 1 if the thread was runnable at both samples, else
//! min(1, Δ(run time + wait time) / Δt). *Running fraction*: min(1, Δ run time / Δt). *Ready threads* of a
//! program: sum of its threads' ready fractions.
//!
//! # Properties
//! - Fractions lie between 0 and 1, and ready ≥ running (`fractions_are_fractions`).
//! - Missing or decreasing counts are absent, never zero (`a_new_thread_has_no_characterization`,
//!   `counts_that_run_backwards_are_absent`, `what_was_never_counted_is_absent_with_its_reason`).
//! - Differences come with coverage and age (`groups_in_rotation_show_half_coverage_and_their_age`,
//!   `a_group_that_was_closed_meanwhile_starts_over`,
//!   `a_sleeper_keeps_its_last_counts_which_grow_old`).
//! - Counts of different groups are never compared
//!   (`later_readings_are_differences_and_raw_counts_stay_within_their_group`).
//! - Coverage is a share, values are finite (`whatever_is_read_coverage_is_a_share_and_values_are_finite`).
//! - Only what is wanted is counted (`only_what_is_wanted_is_counted`).
//! - Cutting a span in two changes no rate (`a_lost_sample_loses_nothing`).

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

/// None if a count decreased.
fn between(
    before: &ThreadSample,
    after: &ThreadSample,
    over: Duration,
) -> Option<Characterization> {
    let run_time = after.run_time.checked_sub(before.run_time)?;
    let wait_time = after.wait_time.checked_sub(before.wait_time)?;
    let switches = after.switches.checked_sub(before.switches)?;
    let share = |time: Duration| (time.as_nanos() as f64 / over.as_nanos() as f64).min(1.0);
    let runnable = |t: &ThreadSample| t.state == RunState::Runnable;
    let ready = if runnable(before) && runnable(after) {
        1.0
    } else {
        share(run_time.saturating_add(wait_time))
    };
    let migrated = before.cpu.zip(after.cpu).map(|(from, to)| from != to);
    Some(Characterization { over, ready, running: share(run_time), switches, migrated })
}

#[cfg(test)]
mod tests;
