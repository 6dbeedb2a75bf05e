//! Workloads, drawn from a seed.
//!
//! [`generate`] draws run times as Lublin and Feitelson model them (*The workload on parallel supercomputers*,
//! JPDC 63(11), 2003: the exponential of a hyper-gamma variate, A1 to B2 as published, cut at [`LONGEST_S`]).
//! Jobs ask for one slot or for two, so the model's sizes are not used, and its daily cycle is not either:
//! jobs come at random, at a stated load. A user asks for up to five times of what the job takes, evenly
//! (Mu'alem and Feitelson, IEEE TPDS 12(6), 2001).

use rand::{Rng, SeedableRng};
use rand_distr::{Distribution, Exp, Gamma};
use rand_pcg::Pcg64Mcg;

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

fn run_time(random: &mut Pcg64Mcg) -> f64 {
    let (shape, scale) = if random.random_bool(SHORT_SHARE) { SHORT } else { LONG };
    let log = Gamma::new(shape, scale).map_or(0.0, |gamma| gamma.sample(random));
    log.exp().clamp(1.0, LONGEST_S).ceil()
}
