//! Workloads, drawn from a seed or given as a log.
//!
//! [`generate`] draws run times as Lublin and Feitelson model them (*The workload on parallel supercomputers*,
//! JPDC 63(11), 2003: the exponential of a hyper-gamma variate, A1 to B2 as published, cut at [`LONGEST_S`]).
//! Jobs ask for one slot or for two, so the model's sizes are not used, and its daily cycle is not either:
//! jobs come at random, at a stated load. A user asks for up to five times of what the job takes, evenly
//! (Mu'alem and Feitelson, IEEE TPDS 12(6), 2001).
//!
//! [`given`] takes times and sizes from a log. No log says what its jobs need, so their programs are drawn.

use rand::{Rng, SeedableRng};
use rand_distr::{Distribution, Exp, Gamma};
use rand_pcg::Pcg64Mcg;
use symbiont_jobs::swf::LoggedJob;

use super::play::SLOTS;

/// Longest run time that is drawn, s.
const LONGEST_S: f64 = 6.0 * 3600.0;
/// Shape and scale of short and of long jobs' logarithms.
const SHORT: (f64, f64) = (4.2, 0.94);
const LONG: (f64, f64) = (312.0, 0.03);
/// Share of short jobs.
const SHORT_SHARE: f64 = 0.78;
/// Share of jobs that take one slot.
const ONE_SLOT: f64 = 0.8;
/// By how much users exceed a job's time at most.
const MOST_ASKED: f64 = 5.0;

/// A job of a workload.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct QueuedJob {
    /// Its number.
    pub id: u64,
    /// When it is submitted, s.
    pub submitted_s: f64,
    /// How long it runs alone, s.
    pub run_s: f64,
    /// Slots.
    pub slots: usize,
    /// What its user asked for, s.
    pub requested_s: f64,
    /// Its executable.
    pub program: u32,
}

/// Draws `count` jobs of `programs` programs that ask for `load` times what `slots` slots can do.
#[must_use]
pub fn generate(count: usize, programs: u32, slots: usize, load: f64, seed: u64) -> Vec<QueuedJob> {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let mut jobs: Vec<QueuedJob> = (1..=count as u64)
        .map(|id| {
            let run_s = run_time(&mut random);
            QueuedJob {
                id,
                submitted_s: 0.0,
                run_s,
                slots: if random.random_bool(ONE_SLOT) { 1 } else { 2 },
                requested_s: (run_s * random.random_range(1.0..=MOST_ASKED)).ceil(),
                program: random.random_range(0..programs.max(1)),
            }
        })
        .collect();
    let work: f64 = jobs.iter().map(|job| job.run_s * job.slots as f64).sum();
    let mean_s = work / (count.max(1) * slots.max(1)) as f64 / load;
    let mut now = 0.0;
    if let Ok(between) = Exp::new(1.0 / mean_s) {
        for job in &mut jobs {
            now += between.sample(&mut random);
            job.submitted_s = now.floor();
        }
    }
    jobs
}

/// The jobs of a log, each of a program that is drawn among so many. A job of more processors than a node has slots
/// takes all of one. What a user asked for is the run time where the log does not say it.
#[must_use]
pub fn given(log: &[LoggedJob], programs: u32, seed: u64) -> Vec<QueuedJob> {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let first_s = log.iter().map(|job| job.submitted_s).fold(f64::INFINITY, f64::min);
    let mut queued = |job: &LoggedJob| QueuedJob {
        id: job.id,
        submitted_s: job.submitted_s - first_s,
        run_s: job.run_s,
        slots: job.processors.clamp(1, SLOTS),
        requested_s: job.requested_s.unwrap_or(job.run_s),
        program: random.random_range(0..programs.max(1)),
    };
    log.iter().map(&mut queued).collect()
}

/// So many nodes that a workload asks for `load` times what their slots can do until its last submission.
#[must_use]
pub fn nodes_for(workload: &[QueuedJob], load: f64) -> usize {
    let work: f64 = workload.iter().map(|job| job.run_s * job.slots as f64).sum();
    let last_s = workload.iter().map(|job| job.submitted_s).fold(0.0, f64::max);
    let nodes = work / (SLOTS as f64 * last_s * load);
    // At least one, also where there are no jobs, and never more than could all be used.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bounded")]
    let nodes = nodes.round().max(1.0).min(workload.len().max(1) as f64) as usize;
    nodes
}

fn run_time(random: &mut Pcg64Mcg) -> f64 {
    let (shape, scale) = if random.random_bool(SHORT_SHARE) { SHORT } else { LONG };
    let log = Gamma::new(shape, scale).map_or(0.0, |gamma| gamma.sample(random));
    log.exp().clamp(1.0, LONGEST_S).ceil()
}
