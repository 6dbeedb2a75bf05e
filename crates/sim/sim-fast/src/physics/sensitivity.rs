//! First-order sensitivity of a thread's CPI to its environment.
//!
//! # Problem
//! When one thread enters another phase, the environments of all others change a little. Evaluating the
//! core model takes a run of the window model or a walk through tables; most such changes are not worth
//! one.
//!
//! # Approach
//! [`change`] bounds the relative change of the CPI from above, to first order. Of the core (front end,
//! ports, queues, predictor) the CPI changes at most in proportion. A reach acts by the misses that it
//! adds or removes, each for as long as the next level takes to answer; memory's latency by the misses
//! that reach memory; memory's interval by the share of its bandwidth that the thread takes. Changes of
//! less than [`SAME`] are not evaluated; they are counted from the last evaluation, so that small ones
//! add up. Where the slopes of a table are known, they are used instead ([`super::linearization`]).
//!
//! # Properties
//! - A machine solved on from its last state is as if solved anew, over many changes of phase, and takes
//!   fewer evaluations (`what_changed_alone_is_solved_again`).
//! - A thread without misses is not sensitive to memory (`memory_counts_as_far_as_it_is_used`).

use super::pipeline::{
    CacheLevel, Environment, FIRST_ENTRIES, FIRST_PORT, FIRST_REACH, Pipeline, REACHES,
};
use super::rates::misses;
use super::tasks::Task;

/// A change of CPI by no more than this share is none.
pub(super) const SAME: f64 = 1e-3;
/// Reaches that differ by more octaves always differ: micro-traces have cliffs that footprints do
/// not show.
const FAR: f64 = 0.1;
/// A thread that takes no more than this part of its memory bandwidth does not wait for it.
const FREELY: f64 = 0.4;

/// An upper estimate of the relative change of a thread's CPI. `active`: inputs that affect
/// it, one bit each.
pub(super) fn change(
    task: &Task<'_>,
    active: u32,
    cpi: f64,
    from: &Environment,
    to: &Environment,
) -> f64 {
    let is_active = |input: usize| active >> input & 1 == 1;
    let most = |first: usize, from: &[f64], to: &[f64]| {
        let pairs = from.iter().zip(to).enumerate();
        let is_active = pairs.filter(|(index, _)| is_active(first + index));
        is_active.map(|(_, (from, to))| share(*from, *to)).fold(0.0, f64::max)
    };
    let core = share(from.dispatch, to.dispatch)
        .max(f64::from(u8::from(from.predictor != to.predictor)))
        .max(most(FIRST_PORT, &from.ports, &to.ports))
        .max(most(FIRST_ENTRIES, &from.entries, &to.entries));
    if core > SAME {
        return core;
    }
    let mut caches = 0.0;
    for level in CacheLevel::ALL {
        let at = level as usize;
        let far = (from.reach[at] - to.reach[at]).abs();
        if far == 0.0 || !is_active(FIRST_REACH + at) {
            continue;
        }
        if far > FAR {
            return f64::INFINITY;
        }
        let more = (misses(task, from, level) - misses(task, to, level)).abs();
        caches += more * next(task.pipeline, to, level);
    }
    let met = misses(task, to, CacheLevel::Last);
    let memory = met * to.memory_latency * share(from.memory_latency, to.memory_latency)
        + met * to.memory_interval * share(from.memory_interval, to.memory_interval);
    core + (caches + memory) / cpi.max(1e-9)
}

/// Does memory grant a thread of this CPI lines far faster than it fetches them?
pub(super) fn is_granted_enough(task: &Task<'_>, environment: &Environment, cpi: f64) -> bool {
    misses(task, environment, CacheLevel::Last) * environment.memory_interval <= FREELY * cpi
}

/// Cycles that a miss of a level takes.
fn next(pipeline: &Pipeline, environment: &Environment, level: CacheLevel) -> f64 {
    let latencies: [f64; REACHES] = {
        let [_, l2, last] = pipeline.cache_latency.map(f64::from);
        let [second, walk] = pipeline.tlb_latency.map(f64::from);
        let memory = environment.memory_latency;
        [l2, l2, last, memory, second, second, walk, memory]
    };
    latencies[level as usize]
}

fn share(from: f64, to: f64) -> f64 {
    if from == to { 0.0 } else { (from - to).abs() / from.abs().max(1e-12) }
}

#[cfg(test)]
mod tests {
    use symbiont_profile::test_support;

    use super::*;
    use crate::description::Description;
    use crate::physics::domains::Physics;
    use crate::physics::prepared::Prepared;
    use crate::physics::tasks::{self, CoreLoad, RunningThread, Switches};

    /// What twice the memory latency does to a program alone, estimated.
    fn minds_memory(profile: &symbiont_profile::Profile) -> f64 {
        let machine = Description::named("xeon-e5-2620v4").unwrap();
        let physics = Physics::new(&machine);
        let prepared = Prepared::new(&machine, &profile.phases[0]).unwrap();
        let threads = [RunningThread { thread: 1, prepared: &prepared, pages: &[] }];
        let load = [CoreLoad { core: 0, mode: 1, threads: &threads }];
        let tasks = tasks::flatten(&physics, &load, Switches::default());
        let near = Environment { memory_latency: 200.0, ..tasks::alone(&physics, &tasks[0]) };
        let far = Environment { memory_latency: 400.0, ..near };
        assert_eq!(change(&tasks[0], u32::MAX, 1.0, &near, &near), 0.0);
        change(&tasks[0], u32::MAX, 1.0, &near, &far)
    }

    #[test]
    fn memory_counts_as_far_as_it_is_used() {
        let [resident, streaming] =
            [test_support::cache_resident(), test_support::streaming()].map(|p| minds_memory(&p));
        assert!(resident < SAME, "{resident}");
        assert!(streaming > 0.1, "{streaming}");
    }
}
