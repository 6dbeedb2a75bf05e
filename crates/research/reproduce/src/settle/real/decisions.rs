//! What the scheduler of Linux chose from, by its tracepoints.
//!
//! # Approach
//! At each switch to a job while another job ran on another hardware thread, the pool is all jobs that were ready and
//! did not run. Overlaps are weighted as the policy `activity` weights them. Where a job is in its vectors follows
//! from its CPU time and from its instructions in a second alone.

use std::collections::{BTreeMap, BTreeSet};

use symbiont_linux::switches::{Event, Kind, ReadyThreads};
use symbiont_machine::Timestamp;
use symbiont_policy::activity::{Course, OVERLAP, Vector};

use crate::settle::scheduler::Decision;
use crate::settle::scoring::weighted;

/// A job, by the number of its thread.
#[derive(Debug, Clone, Copy)]
pub struct Job<'a> {
    /// Its vectors.
    pub course: &'a Course,
    /// Instructions that it executes in a second.
    pub rate: f64,
}

/// Follows the jobs.
pub struct Follower<'a> {
    jobs: BTreeMap<u32, Job<'a>>,
    ready: ReadyThreads,
    /// Since when those run that do.
    running: BTreeMap<u32, Timestamp>,
    /// Seconds that each has run.
    ran: BTreeMap<u32, f64>,
}

impl<'a> Follower<'a> {
    /// Of these jobs.
    pub fn new(jobs: BTreeMap<u32, Job<'a>>) -> Self {
        let ready = ReadyThreads::default();
        Self { jobs, ready, running: BTreeMap::new(), ran: BTreeMap::new() }
    }

    /// The decisions in these events, which are in the order of time.
    pub fn decisions(&mut self, events: &[Event]) -> Vec<Decision> {
        events.iter().filter_map(|event| self.follow(event)).collect()
    }

    fn follow(&mut self, event: &Event) -> Option<Decision> {
        let concerns = |thread: &u32| self.jobs.contains_key(thread);
        match event.kind {
            Kind::Switch { from, to, .. } if concerns(&from) || concerns(&to) => {}
            Kind::Wakeup { thread } if concerns(&thread) => {}
            _ => return None,
        }
        self.ready.apply(event);
        let Kind::Switch { from, to, .. } = event.kind else { return None };
        if let Some(since) = self.running.remove(&from) {
            *self.ran.entry(from).or_default() += event.at.since(since).as_secs_f64();
        }
        let decision = self.jobs.contains_key(&to).then(|| self.decision(to)).flatten();
        if self.jobs.contains_key(&to) {
            self.running.insert(to, event.at);
        }
        decision
    }

    fn decision(&self, chosen: u32) -> Option<Decision> {
        let other = *self.running.keys().find(|thread| **thread != chosen)?;
        let waits = |thread: &&u32| {
            **thread != chosen
                && !self.running.contains_key(*thread)
                && self.ready.is_ready(**thread) == Some(true)
        };
        let pool: BTreeSet<u32> = self.jobs.keys().filter(waits).copied().collect();
        let all = std::iter::once(chosen).chain(pool);
        let overlaps = all.map(|thread| self.overlap(thread, other)).collect::<Option<_>>()?;
        Some(Decision { overlaps, chosen: 0 })
    }

    fn vectors(&self, thread: u32) -> Option<&'a [Vector]> {
        let Job { course, rate } = self.jobs.get(&thread)?;
        let ran = self.ran.get(&thread).copied().unwrap_or(0.0);
        course.at((ran * rate) as u64)
    }

    fn overlap(&self, one: u32, other: u32) -> Option<f64> {
        let (one, other) = (self.vectors(one)?, self.vectors(other)?);
        Some(weighted(one, other, &OVERLAP))
    }
}

#[cfg(test)]
mod tests {
    use symbiont_policy::{ActivityInterval, KnownActivity};

    use super::*;

    fn switch(at: u64, from: u32, from_is_ready: bool, to: u32) -> Event {
        Event { at: Timestamp(at), kind: Kind::Switch { from, from_is_ready, to } }
    }

    #[test]
    fn decisions_are_of_jobs_that_were_ready_while_one_that_runs() {
        let interval = |active: u32| ActivityInterval {
            instructions: 100,
            // Uses of the L2.
            counts: (0..6_u32)
                .map(|vector| (0..4).map(|set| u32::from(vector == 4) & active >> set).collect())
                .collect(),
        };
        let programs = [
            ("a", vec![interval(0b0001), interval(0b1000)]),
            ("b", vec![interval(0b0011)]),
            ("c", vec![interval(0b1100)]),
        ];
        let named = programs.map(|(name, intervals)| (name.to_owned(), intervals));
        let courses = KnownActivity::new(named.into()).unwrap().vectors(4, 0.1);
        let jobs = (1..).zip(courses.values());
        // A hundred instructions take a microsecond.
        let jobs = jobs.map(|(thread, course)| (thread, Job { course, rate: 1e8 })).collect();
        let mut follower = Follower::new(jobs);
        let wakeup = |thread| Event { at: Timestamp(0), kind: Kind::Wakeup { thread } };
        let none = [wakeup(1), wakeup(2), wakeup(3), switch(0, 0, true, 1), switch(0, 9, true, 8)];
        assert_eq!(follower.decisions(&none), []);
        // Co-running with the first job the second one is chosen; the third would not overlap.
        let overlaps = |decisions: Vec<Decision>| -> Vec<Vec<f64>> {
            decisions.into_iter().map(|decision| decision.overlaps).collect()
        };
        assert_eq!(overlaps(follower.decisions(&[switch(0, 0, true, 2)])), [[1.0, 0.0]]);
        // It sleeps: the third one alone is left. The first job is not where it was by then.
        let events = [switch(1_500, 1, true, 0), switch(1_600, 0, true, 1)];
        assert_eq!(overlaps(follower.decisions(&events)), [[0.0, 0.0]]);
        let slept = follower.decisions(&[switch(1_700, 2, false, 3)]);
        assert_eq!(overlaps(slept), [[1.0]]);
    }
}
