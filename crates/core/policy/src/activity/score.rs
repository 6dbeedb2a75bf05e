//! The scoring scheduler (Settle et al., section 4.3): which jobs co-run in the next sample.
//!
//! # Approach
//! Fig. 5: a job's score is the sum of its factors, each times a weight; the lowest runs. Factors are
//! super-sets in which its predicted activity overlaps with that of the jobs that go on running, in each of several
//! vectors; samples for which it was resident so far; and the product of its misses with theirs, for a
//! scheduler that has counters alone. A job is predicted to do what it did in its last sample; of one
//! that has not run yet nothing is known, and nothing overlaps.
//!
//! Three phases: jobs that are complete leave; if none is, the running job that was resident longest is
//! the candidate to leave; it goes if a job that waits has a lower score than it. Empty hardware
//! threads are filled with the lowest scores, one after the other.
//!
//! Where the paper is silent: residence is counted since the job began, not since it was switched in;
//! one job leaves per sample, however many hardware threads there are; of equal scores the job that was resident
//! for less, then that of the smaller number.
//!
//! The baseline is *round robin* ([`rotate`]): the job that has run for longest makes room for the one that waits for longest.
//!
//! # Properties
//! - Fig. 6: the job with the fewest overlaps is chosen (`the_papers_example`).
//! - A job that waits runs within [`longest_wait`] samples (`no_job_starves`), unless residence has no weight.
//! - Round robin gives each job its turn (`round_robin_gives_each_two_of_four_samples`).

use super::Vector;

/// A job as the scheduler knows it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Job {
    /// Its vectors of its last sample, in the order of the weights; none before it ran.
    pub vectors: Option<Vec<Vector>>,
    /// What it missed in its last sample, in units of the average job; none before it ran.
    pub misses: Option<f64>,
    /// Samples for which it was resident.
    pub resident: u64,
    /// The sample since which it runs, or waits.
    pub since: u64,
    /// Is it complete?
    pub complete: bool,
}

/// What counts how much.
#[derive(Debug, Clone, PartialEq)]
pub struct Weights {
    /// A super-set that is active in both, by vector.
    pub overlap: Vec<f64>,
    /// The product of misses.
    pub misses: f64,
    /// A sample of residence.
    pub resident: f64,
}

/// The score of a job among its co-runners.
#[must_use]
pub fn score(job: &Job, co_runners: &[&Job], weights: &Weights) -> f64 {
    let interference = |other: &&Job| {
        let (own, theirs) = (job.vectors.as_deref(), other.vectors.as_deref());
        let pairs = own.unwrap_or_default().iter().zip(theirs.unwrap_or_default());
        let overlap: f64 = pairs
            .zip(&weights.overlap)
            .map(|((own, other), weight)| weight * f64::from(own.overlap(other)))
            .sum();
        let misses = job.misses.zip(other.misses).map_or(0.0, |(own, other)| own * other);
        overlap + weights.misses * misses
    };
    co_runners.iter().map(interference).sum::<f64>() + weights.resident * job.resident as f64
}

/// Round robin: of those that run, the one that has run for longest leaves; those enter that have waited for
/// longest. Complete jobs leave, and no other then, as in [`choose`].
#[must_use]
pub fn rotate(jobs: &[Job], running: &[Option<usize>]) -> Vec<Option<usize>> {
    let lives = |at: &usize| jobs.get(*at).is_some_and(|job| !job.complete);
    let mut next: Vec<Option<usize>> = running.iter().map(|at| at.filter(lives)).collect();
    let since = |at: &usize| jobs.get(*at).map(|job| (job.since, *at));
    let mut waiting: Vec<usize> =
        (0..jobs.len()).filter(lives).filter(|at| !next.contains(&Some(*at))).collect();
    waiting.sort_by_key(since);
    if next.iter().all(Option::is_some) && !waiting.is_empty() {
        let longest = (0..next.len()).min_by_key(|place| next[*place].as_ref().and_then(since));
        if let Some(place) = longest {
            next[place] = None;
        }
    }
    let mut waiting = waiting.into_iter();
    next.iter_mut().filter(|place| place.is_none()).for_each(|place| *place = waiting.next());
    next
}

/// The jobs of the next sample by scores: the job on each hardware thread.
#[must_use]
pub fn choose(jobs: &[Job], running: &[Option<usize>], weights: &Weights) -> Vec<Option<usize>> {
    let lives = |at: &usize| jobs.get(*at).is_some_and(|job| !job.complete);
    let mut next: Vec<Option<usize>> = running.iter().map(|at| at.filter(lives)).collect();
    let full = next.iter().all(Option::is_some);
    if full {
        let resident =
            |place: &usize| next[*place].and_then(|at| jobs.get(at)).map(|job| job.resident);
        // Of those that were resident equally long, the first.
        let longest = (0..next.len()).rev().max_by_key(resident);
        if let Some(place) = longest {
            let candidate = next[place].take();
            next[place] = lowest(jobs, &next, candidate, weights);
        }
    }
    for place in 0..next.len() {
        if next[place].is_none() {
            next[place] = lowest(jobs, &next, None, weights);
        }
    }
    next
}

/// The job with the lowest score among those that run: the candidate to leave, or one that waits and whose score
/// is lower than its.
fn lowest(
    jobs: &[Job],
    running: &[Option<usize>],
    candidate: Option<usize>,
    weights: &Weights,
) -> Option<usize> {
    let co_runners: Vec<&Job> = running.iter().flatten().filter_map(|at| jobs.get(*at)).collect();
    let waits = |at: &usize| !running.contains(&Some(*at)) && candidate != Some(*at);
    let pending = (0..jobs.len()).filter(|at| !jobs[*at].complete).filter(waits);
    let best = pending
        .map(|at| (score(&jobs[at], &co_runners, weights), jobs[at].resident, at))
        .min_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)).then(a.2.cmp(&b.2)));
    let own = candidate.and_then(|at| jobs.get(at)).map(|job| score(job, &co_runners, weights));
    match (best, own) {
        (Some((theirs, ..)), Some(own)) if theirs >= own => candidate,
        (Some((.., at)), _) => Some(at),
        (None, _) => candidate,
    }
}

/// Samples within which every job runs again, of so many on so many hardware threads, if nothing adds more than
/// `most` to a score but residence; none if residence has no weight.
///
/// While a job waits, its score is at most `most` more than its residence gives; each of the others that runs
/// then was resident for no longer than `most` / weight samples more than it, give or take the one that it
/// runs. So all of them together run for at most (jobs - 1) times that, `threads` at a time, more than what they
/// were behind, which is bounded in the same way.
#[must_use]
pub fn longest_wait(jobs: usize, threads: usize, most: f64, resident: f64) -> Option<u64> {
    let others = jobs.saturating_sub(1) as f64;
    let ahead = 2.0 * (most / resident + 1.0).ceil() + 1.0;
    let samples = (others * ahead / threads.max(1) as f64).ceil();
    (resident > 0.0 && samples.is_finite()).then(|| (samples as u64).saturating_add(jobs as u64))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn job(bits: &[u8], resident: u64) -> Job {
        let vector = Vector::above(bits.iter().map(|bit| u64::from(*bit)), 0);
        Job { vectors: Some(vec![vector]), misses: Some(1.0), resident, ..Job::default() }
    }

    fn overlaps() -> Weights {
        Weights { overlap: vec![1.0], misses: 0.0, resident: 0.0 }
    }

    #[test]
    fn the_papers_example() {
        // Job 0 stays; of 1 (the candidate), 2 and 3, job 2 conflicts with it in the fewest bits.
        let jobs = [
            job(&[1, 1, 0, 0, 1, 0, 1, 0], 1),
            job(&[1, 1, 0, 0, 1, 1, 0, 1], 2),
            job(&[0, 0, 1, 1, 0, 1, 1, 1], 0),
            job(&[1, 0, 1, 0, 1, 0, 0, 0], 0),
        ];
        let others = |at: usize| score(&jobs[at], &[&jobs[0]], &overlaps());
        assert_eq!([1, 2, 3].map(others), [3.0, 1.0, 2.0]);
        assert_eq!(choose(&jobs, &[Some(0), Some(1)], &overlaps()), [Some(0), Some(2)]);
    }

    #[test]
    fn a_candidate_stays_with_the_lowest_score() {
        let jobs = [job(&[1, 0], 1), job(&[0, 1], 2), job(&[1, 1], 0), job(&[0, 1], 0)];
        // Equal scores are not lower.
        assert_eq!(choose(&jobs, &[Some(0), Some(1)], &overlaps()), [Some(0), Some(1)]);
    }

    #[test]
    fn complete_jobs_leave_and_no_other() {
        let mut jobs = [job(&[1], 5), job(&[1], 9), job(&[1], 0), job(&[0], 3)];
        jobs[0].complete = true;
        assert_eq!(choose(&jobs, &[Some(0), Some(1)], &overlaps()), [Some(3), Some(1)]);
        jobs[2].complete = true;
        jobs[3].complete = true;
        assert_eq!(choose(&jobs, &[Some(0), Some(1)], &overlaps()), [None, Some(1)]);
        assert_eq!(choose(&[], &[None, Some(4)], &overlaps()), [None, None]);
    }

    #[test]
    fn counters_keep_those_apart_that_miss_much() {
        let weights = Weights { overlap: Vec::new(), misses: 1.0, resident: 0.0 };
        let mut jobs = [job(&[], 0), job(&[], 1), job(&[], 0), job(&[], 0)];
        let rates = [3.0, 2.0, 1.0, 0.2];
        jobs.iter_mut().zip(rates).for_each(|(job, rate)| job.misses = Some(rate));
        assert_eq!(choose(&jobs, &[Some(0), Some(1)], &weights), [Some(0), Some(3)]);
    }

    /// Lets a scheduler choose for so many samples; the samples in which each job ran.
    fn play(
        vectors: &[Vec<u8>],
        threads: usize,
        samples: u64,
        next: impl Fn(&[Job], &[Option<usize>]) -> Vec<Option<usize>>,
    ) -> Vec<Vec<u64>> {
        let mut jobs: Vec<Job> = vectors.iter().map(|bits| job(bits, 0)).collect();
        let mut running = vec![None; threads];
        let mut ran = vec![Vec::new(); jobs.len()];
        for sample in 0..samples {
            let now = next(&jobs, &running);
            let before = std::mem::replace(&mut running, now);
            for (at, job) in jobs.iter_mut().enumerate() {
                if before.contains(&Some(at)) != running.contains(&Some(at)) {
                    job.since = sample;
                }
            }
            for at in running.iter().flatten() {
                jobs[*at].resident += 1;
                ran[*at].push(sample);
            }
        }
        ran
    }

    #[test]
    fn round_robin_gives_each_two_of_four_samples() {
        let ran = play(&vec![vec![1]; 4], 2, 400, rotate);
        for (at, own) in ran.iter().enumerate() {
            assert!((199..=201).contains(&own.len()), "{at}: {}", own.len());
        }
        // Each runs with each of its two neighbours in turn.
        assert_eq!(ran[0][..6], [0, 3, 4, 7, 8, 11]);
        assert_eq!(ran[1][..6], [0, 1, 4, 5, 8, 9]);
        assert_eq!(ran[2][..6], [1, 2, 5, 6, 9, 10]);
    }

    #[test]
    fn round_robin_fills_the_places_of_complete_jobs() {
        let mut jobs = vec![job(&[1], 0); 3];
        jobs[0].complete = true;
        assert_eq!(rotate(&jobs, &[Some(0), Some(1)]), [Some(2), Some(1)]);
        assert_eq!(rotate(&jobs, &[Some(2), Some(1)]), [Some(2), Some(1)]);
        assert_eq!(rotate(&[], &[Some(7), None]), [None, None]);
    }

    proptest! {
        #[test]
        fn no_job_starves(
            vectors in prop::collection::vec(prop::collection::vec(0_u8..2, 16), 2..9),
            threads in 1_usize..4, resident in 0.3_f64..4.0,
        ) {
            let weights = Weights { overlap: vec![1.0], misses: 0.0, resident };
            // Each of the others overlaps in 16 bits at most.
            let most = 16.0 * (threads as f64 - 1.0);
            let bound = longest_wait(vectors.len(), threads, most, resident).unwrap();
            let samples = 4 * bound + 50;
            let next = |jobs: &[Job], running: &[Option<usize>]| choose(jobs, running, &weights);
            for own in play(&vectors, threads, samples, next) {
                let edges = own.iter().copied().chain([samples]);
                let mut before = 0;
                for at in edges {
                    prop_assert!(at - before <= bound + 1, "{before} to {at}, bound {bound}");
                    before = at;
                }
            }
        }
    }

    #[test]
    fn without_ageing_there_is_no_bound() {
        assert_eq!(longest_wait(4, 2, 32.0, 0.0), None);
    }
}
