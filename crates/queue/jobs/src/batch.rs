//! Which jobs of a batch start next on one machine.
//!
//! # Approach
//! The longest jobs start first, so that none of them runs alone at the end. Among all that wait, the one is chosen
//! that suits best what already runs, unless one job has to start now: one that takes as long as the whole rest would,
//! spread evenly over the slots.
//!
//! ```text
//! share := (sum of expected times) / slots
//! a job whose time ≥ share  →  overdue: it starts at once
//! the others, the longest first, are the window from which partners are chosen
//! ```
//!
//! # Properties
//! - The best partner of what runs starts (`the_best_partner_of_what_runs_starts`), unless another takes as long
//!   as the rest (`a_job_as_long_as_the_rest_starts_at_once`).
//! - Where nothing is known, jobs start as they are numbered
//!   (`without_knowledge_jobs_start_in_order`).

use crate::{Job, Node, Predict, ProgramNumber, Release, Rules, Running, choose};

/// A job of a batch that waits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BatchJob {
    /// Its number.
    pub id: u64,
    /// Its program.
    pub program: ProgramNumber,
    /// How long it is expected to take, seconds; none: not known, so as long as the average.
    pub expected_s: Option<f64>,
}

/// The wait that makes a job overdue which has to start now, seconds.
const MUST: f64 = 1.0;

/// The jobs to start on a machine of so many slots on which these programs run: of equally good partners the longest,
/// or without `by_length` the first.
#[must_use]
pub fn choose_of_batch(
    waiting: &[BatchJob],
    programs: Vec<ProgramNumber>,
    slots: usize,
    by_length: bool,
    predict: &impl Predict,
) -> Vec<Release> {
    let known: Vec<f64> = waiting.iter().filter_map(|job| job.expected_s).collect();
    let mean = if known.is_empty() { 0.0 } else { known.iter().sum::<f64>() / known.len() as f64 };
    let total: f64 = waiting.iter().map(|job| job.expected_s.unwrap_or(mean)).sum();
    let share = total / slots.max(1) as f64;
    let job = |job: &BatchJob| {
        let must = by_length && slots > 1 && job.expected_s.is_some_and(|one| one >= share);
        Job {
            id: job.id,
            program: job.program,
            // Milliseconds: jobs of equal length keep their order.
            priority: if by_length { (job.expected_s.unwrap_or(mean) * 1e3) as u64 } else { 0 },
            submitted_s: if must { -MUST } else { 0.0 },
            slots: 1,
            limit_s: f64::INFINITY,
        }
    };
    let jobs: Vec<Job> = waiting.iter().map(job).collect();
    let free = slots.saturating_sub(programs.len());
    let running = |program| Running { program, slots: 1, ends_s: f64::INFINITY };
    let running = programs.into_iter().map(running).collect();
    let node = Node { name: String::new(), slots, free, running };
    let rules = Rules { most_wait_s: MUST, window: waiting.len(), ..Rules::default() };
    choose(&jobs, std::slice::from_ref(&node), 0.0, &rules, predict).releases
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Flat;

    /// Two programs of one parity disturb each other.
    struct Parity;

    impl Predict for Parity {
        fn slowdown(&self, victim: ProgramNumber, co_runners: &[ProgramNumber]) -> f64 {
            let alike = co_runners.iter().filter(|other| other.0 % 2 == victim.0 % 2).count();
            1.0 + 0.5 * alike as f64
        }
    }

    fn waiting(jobs: &[(u32, Option<f64>)]) -> Vec<BatchJob> {
        let job = |(id, &(program, expected_s)): (u64, &(u32, Option<f64>))| BatchJob {
            id,
            program: ProgramNumber(program),
            expected_s,
        };
        (1..).zip(jobs).map(job).collect()
    }

    fn started(jobs: &[(u32, Option<f64>)], running: &[u32], by_length: bool) -> Vec<u64> {
        let running = running.iter().map(|&program| ProgramNumber(program)).collect();
        let releases = choose_of_batch(&waiting(jobs), running, 2, by_length, &Parity);
        releases.iter().map(|release| release.job).collect()
    }

    #[test]
    fn the_best_partner_of_what_runs_starts() {
        let jobs = [(0, Some(9.0)), (1, Some(8.0)), (0, Some(7.0)), (1, Some(9.0))];
        assert_eq!(started(&jobs, &[0], true), [4], "the longest of those that suit it");
        assert_eq!(started(&jobs, &[0], false), [2], "the first of those that suit it");
        assert_eq!(started(&jobs, &[1], true), [1]);
    }

    #[test]
    fn a_job_as_long_as_the_rest_starts_at_once() {
        let jobs = [(1, Some(3.0)), (1, None), (0, Some(90.0))];
        assert_eq!(started(&jobs, &[0], true), [3]);
        assert_eq!(started(&jobs, &[0], false), [1]);
    }

    #[test]
    fn without_knowledge_jobs_start_in_order() {
        let jobs = waiting(&[(0, None), (1, None), (0, None)]);
        let releases = choose_of_batch(&jobs, Vec::new(), 2, true, &Flat);
        let started: Vec<u64> = releases.iter().map(|release| release.job).collect();
        assert_eq!(started, [1, 2]);
        assert!(choose_of_batch(&[], Vec::new(), 2, true, &Flat).is_empty());
    }
}
