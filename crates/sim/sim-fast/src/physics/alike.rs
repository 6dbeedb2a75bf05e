//! Environments that the window model cannot distinguish.
//!
//! # Problem
//! While a table is made, the window model is asked for the same more than once: all axes cross at the
//! anchor, and between two coordinates of a reach there may be no access of the micro-traces.
//!
//! # Approach
//! An environment is reduced to what the window model makes of it ([`Alike`]): of a reach, how many of the
//! trace's reuse times it covers; of entries and latency, whole numbers where they are rounded; of a
//! share, its value within its bounds. Where these are equal, so are the results, bit for bit.
//!
//! # Properties
//! - What is taken for alike gives the same result, and what makes a difference is not taken for alike
//!   (`what_is_alike_is_answered_alike`).

use super::pipeline::{CacheLevel, Environment, GROUPS, REACHES, STRUCTURES};
use super::trace::{Op, Trace};
use super::window::Course;

/// Numbers that distinguish environments: dispatch, predictor, latency and interval take one each.
const NUMBERS: usize = 4 + GROUPS + STRUCTURES + REACHES;

/// An environment as the window model distinguishes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Alike([u64; NUMBERS]);

/// The reuse times of a trace that are compared with the reach of each level, ascending.
#[derive(Debug, Clone)]
pub struct Reuses([Vec<f32>; REACHES]);

impl Reuses {
    /// Of a trace; they serve for any part of it, too.
    #[must_use]
    pub fn new(trace: &Trace) -> Self {
        let held = |level: CacheLevel, op: &Op| match level {
            CacheLevel::L1d => [op.reuse; 2],
            CacheLevel::L1i => [op.fetch; 2],
            CacheLevel::L2 | CacheLevel::Last => [op.reuse, op.fetch],
            CacheLevel::DataTlb => [op.page; 2],
            CacheLevel::CodeTlb => [op.fetch_page; 2],
            CacheLevel::Tlb2 => [op.page, op.fetch_page],
            CacheLevel::Streams => [op.rested; 2],
        };
        Self(CacheLevel::ALL.map(|level| {
            let mut times: Vec<f32> = trace.ops.iter().flat_map(|op| held(level, op)).collect();
            times.sort_unstable_by(f32::total_cmp);
            times.dedup();
            times
        }))
    }

    /// An environment as the window model distinguishes it along this course.
    #[must_use]
    pub fn alike(&self, course: &Course<'_>, environment: &Environment) -> Alike {
        let seen = course.seen(environment);
        let bridged = self
            .0
            .iter()
            .zip(seen.reach)
            .map(|(times, reach)| times.partition_point(|time| *time <= reach) as u64);
        let entries = seen.environment.entries.iter().map(|entries| entries.to_bits());
        let ports = seen.environment.ports.iter().map(|share| share.to_bits());
        let rest = [
            seen.environment.dispatch.to_bits(),
            seen.environment.predictor as u64,
            seen.environment.memory_latency.to_bits(),
            seen.environment.memory_interval.to_bits(),
        ];
        let mut numbers = [0; NUMBERS];
        let all = rest.into_iter().chain(ports).chain(entries).chain(bridged);
        numbers.iter_mut().zip(all).for_each(|(to, from)| *to = from);
        Alike(numbers)
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use symbiont_profile::test_support;

    use super::*;
    use crate::description::Description;
    use crate::physics::domains::Physics;
    use crate::physics::pipeline::{CoreSharing, Queue};
    use crate::physics::prepared::Prepared;
    use crate::physics::window::Window;

    #[test]
    fn what_is_alike_is_answered_alike() {
        // It completes groups.
        let machine = Description::named("power7-755").unwrap();
        let physics = Physics::new(&machine);
        let pipeline = physics.pipeline(0, 2, CoreSharing::Others).unwrap();
        let prepared = Prepared::new(&machine, &test_support::branchy().phases[0]).unwrap();
        let trace = &prepared.cores[0].trace;
        let (course, reuses) = (Course::new(pipeline, Cow::Borrowed(trace)), Reuses::new(trace));
        let at = pipeline.alone([9.0; REACHES], 300.0, 4.0);
        let mut window = Window::default();
        let mut alike = |other: Environment| {
            let [a, b] = [at, other].map(|of| reuses.alike(&course, &of));
            if a == b {
                assert_eq!(window.follow(&course, &at), window.follow(&course, &other));
            }
            a == b
        };
        let with = |queue: Queue, more: f64| {
            let mut other = at;
            other.entries[queue as usize] += more;
            other
        };
        for queue in [Queue::Rob, Queue::Lq, Queue::Sq] {
            assert!(alike(with(queue, 1e-3)), "{queue:?}");
            assert!(!alike(with(queue, -3.0)), "{queue:?}");
        }
        assert!(!alike(with(Queue::Mshr, -0.5)), "a part of an entry serves part of the misses");
        assert!(alike(Environment { memory_latency: 300.4, ..at }));
        assert!(!alike(Environment { memory_latency: 300.6, ..at }));
        assert!(alike(Environment { dispatch: 2.0 * pipeline.width, ..at }));
        assert!(!alike(Environment { dispatch: 0.9 * pipeline.width, ..at }));
        assert!(!alike(Environment { predictor: (at.predictor + 1) % 3, ..at }));
        for level in 0..REACHES {
            let (times, [from, to]) = (&reuses.0[level], [9.0_f64, 9.5].map(|at| at.exp2() as f32));
            let mut other = at;
            other.reach[level] = 9.5;
            let between = times.iter().any(|time| *time > from && *time <= to);
            assert_eq!(alike(other), !between, "{level}");
        }
    }
}
