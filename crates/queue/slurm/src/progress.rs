//! What is new in the sums that a node reports of a job.
//!
//! A node reports sums since a job's start, and the store adds up what it is given: so each answer is compared with
//! what the store has already. A sum that has become smaller is that of a daemon that has begun anew. What is new adds
//! up to what was reported last (`what_is_new_adds_up_to_what_was_reported_last`).

use std::collections::BTreeMap;

use symbiont_wire::jobs::{JobStack, NextToJob};

/// CPU time that is worth a write to the store, seconds; at a job's end any is.
const LEAST_GAIN_S: f64 = 1.0;

/// How much the store has of what a node reports of one job.
#[derive(Debug)]
pub struct JobProgress {
    /// The only node whose reports of the job count: two nodes may be one machine by two names.
    pub node: String,
    /// When the node last reported it, seconds since 1970.
    pub at_s: f64,
    /// Had the job ended then?
    pub is_over: bool,
    /// The stack that the store has.
    counted: JobStack,
    /// CPU times next to other jobs that the store has, seconds.
    together_s: BTreeMap<u64, f64>,
}

impl JobProgress {
    /// Nothing of it is in the store yet.
    pub fn new(node: &str, at_s: f64) -> Self {
        Self {
            node: node.to_owned(),
            at_s,
            is_over: false,
            counted: JobStack::default(),
            together_s: BTreeMap::new(),
        }
    }

    /// CPU time next to another job that the store does not have, seconds; none: not worth a write.
    pub fn new_time_next_to(&mut self, next: &NextToJob, has_ended: bool) -> Option<f64> {
        let stored_s = self.together_s.entry(next.job).or_default();
        if next.together_s < *stored_s {
            *stored_s = 0.0;
        }
        let new_s = next.together_s - *stored_s;
        if !is_worth_a_write(new_s, has_ended) {
            return None;
        }
        *stored_s = next.together_s;
        Some(new_s)
    }

    /// The mean stack over the CPU time that the store does not have, and that time, seconds; none: not worth a write.
    pub fn new_stack(
        &mut self,
        stack: &JobStack,
        has_ended: bool,
    ) -> Option<(BTreeMap<String, f64>, f64)> {
        if stack.counted_s < self.counted.counted_s {
            self.counted = JobStack::default();
        }
        let stored = &self.counted;
        let new_s = stack.counted_s - stored.counted_s;
        if !is_worth_a_write(new_s, has_ended) {
            return None;
        }
        let part = |(name, mean): (&String, &f64)| {
            let before = stored.components.get(name).copied().unwrap_or(0.0) * stored.counted_s;
            (name.clone(), ((mean * stack.counted_s - before) / new_s).max(0.0))
        };
        let components = stack.components.iter().map(part).collect();
        self.counted = stack.clone();
        Some((components, new_s))
    }
}

fn is_worth_a_write(new_s: f64, has_ended: bool) -> bool {
    new_s > 0.0 && (new_s >= LEAST_GAIN_S || has_ended)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// CPU times between answers, with the mean share of memory in each.
        #[test]
        fn what_is_new_adds_up_to_what_was_reported_last(
            parts in proptest::collection::vec((0.0..3.0_f64, 0.0..1.0_f64), 1..20),
        ) {
            let mut progress = JobProgress::new("n1", 0.0);
            let (mut sum_s, mut memory_s) = (0.0, 0.0);
            let (mut stored_s, mut stored_memory_s, mut together_s) = (0.0, 0.0, 0.0);
            for (at, (part_s, memory)) in parts.iter().enumerate() {
                sum_s += part_s;
                memory_s += part_s * memory;
                let mean = if sum_s > 0.0 { memory_s / sum_s } else { 0.0 };
                let components = [("memory".to_owned(), mean)].into();
                let stack = JobStack { core: String::new(), counted_s: sum_s, components };
                let next = NextToJob { job: 2, ln: 0.0, together_s: sum_s };
                let has_ended = at + 1 == parts.len();
                if let Some((new, new_s)) = progress.new_stack(&stack, has_ended) {
                    stored_s += new_s;
                    stored_memory_s += new["memory"] * new_s;
                }
                together_s += progress.new_time_next_to(&next, has_ended).unwrap_or(0.0);
            }
            for (stored, reported) in
                [(stored_s, sum_s), (together_s, sum_s), (stored_memory_s, memory_s)]
            {
                prop_assert!((stored - reported).abs() < 1e-9, "{stored} of {reported}");
            }
        }
    }
}
