//! The event counters of one thread.
//!
//! # Approach
//! As in the kernel: groups of events are multiplexed, in turns of [`TURN_NS`] of the thread's own run time, and
//! each reading comes with the time for which the group was enabled and for which it counted. On top of that,
//! three errors of real counting, as configured ([`Errors`]): noise on each increment; a part of each cause
//! that no event counts, so that causes leave a residue; and readings that lag behind the end of the quantum,
//! by a different time for each group.
//!
//! Counts never run backwards, whatever the errors.

use std::sync::Arc;
use std::time::Duration;

use rand::Rng;
use rand_pcg::Pcg64Mcg;
use serde::{Deserialize, Serialize};
use symbiont_machine::{GroupReading, Timestamp};

use crate::activity::Activity;
use crate::events::{Precision, Reader};

/// Length of a group's turn: perf_event_mux_interval_ms of Linux.
const TURN_NS: f64 = 4e6;

/// Errors of the counters.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Errors {
    /// Standard deviation of an increment over its true value.
    pub noise: f64,
    /// Mean part of each cause that no event counts.
    pub residue: f64,
    /// Most that a reading lags behind, nanoseconds.
    pub lag_ns: f64,
    /// Do groups share the counters? Otherwise each counts all the time.
    pub multiplex: bool,
    /// Do cycles with a busy floating-point unit count for all threads of the core, as on a Bulldozer
    /// module? Otherwise for those threads alone whose operations it holds.
    #[serde(default)]
    pub fpu_of_core: bool,
}

impl Errors {
    /// None: every event is counted all the time and exactly.
    pub const NONE: Self =
        Self { noise: 0.0, residue: 0.0, lag_ns: 0.0, multiplex: false, fpu_of_core: false };
}

impl Default for Errors {
    /// As on an idle real machine: 1 % noise, 2 % residue, readings up to 50 µs
    /// late, groups that take turns.
    fn default() -> Self {
        Self { noise: 0.01, residue: 0.02, lag_ns: 5e4, multiplex: true, fpu_of_core: false }
    }
}

/// One group's part.
#[derive(Debug, Clone)]
struct Share {
    sums: Activity,
    enabled_ns: f64,
    running_ns: f64,
    /// What was counted last.
    counted: Vec<f64>,
    counted_at: Activity,
}

/// What was counted of a thread.
#[derive(Debug, Clone)]
pub(super) struct Meter {
    opened: Timestamp,
    reader: Arc<Reader>,
    shares: Vec<Share>,
    ran_ns: f64,
}

impl Meter {
    /// Opens all groups of a reader.
    pub(super) fn new(reader: Arc<Reader>, opened: Timestamp) -> Self {
        let share = |events: &usize| Share {
            sums: Activity::default(),
            enabled_ns: 0.0,
            running_ns: 0.0,
            counted: vec![0.0; *events],
            counted_at: Activity::default(),
        };
        let shares = reader.group_sizes().iter().map(share).collect();
        Self { opened, reader, shares, ran_ns: 0.0 }
    }

    /// The thread ran for `ns` and did this.
    pub(super) fn count(&mut self, ns: f64, activity: &Activity, errors: &Errors) {
        let groups = self.shares.len();
        if ns <= 0.0 || groups == 0 {
            return;
        }
        let (from, to) = (self.ran_ns, self.ran_ns + ns);
        self.ran_ns = to;
        for (number, share) in self.shares.iter_mut().enumerate() {
            share.enabled_ns += ns;
            let on = if errors.multiplex { turns(from, to, number, groups) } else { ns };
            if on > 0.0 {
                share.running_ns += on;
                share.sums.add_times(activity, on / ns);
            }
        }
    }

    /// Reads all groups; `thread_rate` is what the thread does now per nanosecond.
    pub(super) fn read(
        &mut self,
        thread_rate: Option<&Activity>,
        errors: &Errors,
        random: &mut Pcg64Mcg,
    ) -> Vec<GroupReading> {
        let reader = Arc::clone(&self.reader);
        let mut readings = Vec::with_capacity(self.shares.len());
        for (number, share) in self.shares.iter_mut().enumerate() {
            let lag =
                if errors.lag_ns > 0.0 { random.random_range(0.0..errors.lag_ns) } else { 0.0 };
            let part =
                if share.enabled_ns > 0.0 { share.running_ns / share.enabled_ns } else { 0.0 };
            let mut seen = share.sums;
            if let Some(thread_rate) = thread_rate {
                seen.add_times(thread_rate, -lag * part);
            }
            let mut step = seen;
            step.add_times(&share.counted_at, -1.0);
            for (event, counted) in share.counted.iter_mut().enumerate() {
                let (more, how) = reader.count(number, event, &step);
                let uncounted = match how {
                    Precision::AsCause => errors.residue * random.random_range(0.0..2.0),
                    Precision::Exactly | Precision::Plainly => 0.0,
                };
                let noise = match how {
                    Precision::Exactly => 0.0,
                    Precision::AsCause | Precision::Plainly => errors.noise * normal(random),
                };
                *counted += (more * (1.0 - uncounted + noise)).max(0.0);
            }
            share.counted_at = seen;
            readings.push(GroupReading {
                opened: self.opened,
                enabled: Duration::from_nanos(share.enabled_ns as u64),
                running: Duration::from_nanos(share.running_ns as u64),
                counts: share.counted.iter().map(|counted| *counted as u64).collect(),
            });
        }
        readings
    }
}

/// Nanoseconds of [from, to) that belong to the turns of group `number`.
fn turns(from: f64, to: f64, number: usize, groups: usize) -> f64 {
    let round = TURN_NS * groups as f64;
    let start = TURN_NS * number as f64;
    let until = |t: f64| {
        let rounds = (t / round).floor();
        rounds * TURN_NS + (t - rounds * round - start).clamp(0.0, TURN_NS)
    };
    until(to) - until(from)
}

/// A standard normal number (Box and Muller).
fn normal(random: &mut Pcg64Mcg) -> f64 {
    let (u, v): (f64, f64) = (random.random_range(f64::MIN_POSITIVE..1.0), random.random());
    (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn turns_of_all_groups_make_up_the_time(
            from in 0.0..1e9_f64, length in 0.0..1e8_f64, groups in 1_usize..9,
        ) {
            let all: f64 = (0..groups).map(|g| turns(from, from + length, g, groups)).sum();
            prop_assert!((all - length).abs() < 1e-3, "{all} of {length}");
        }
    }

    #[test]
    fn normal_numbers_have_mean_0_and_deviation_1() {
        use rand::SeedableRng;
        let mut random = Pcg64Mcg::seed_from_u64(1);
        let drawn: Vec<f64> = (0..20_000).map(|_| normal(&mut random)).collect();
        let mean = drawn.iter().sum::<f64>() / 2e4;
        let square = drawn.iter().map(|x| x * x).sum::<f64>() / 2e4;
        assert!(mean.abs() < 0.03 && (square - 1.0).abs() < 0.05, "{mean} {square}");
    }
}
