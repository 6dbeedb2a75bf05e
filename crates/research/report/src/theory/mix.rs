//! Any cores, any programs: the model of sections 5 and 6 beyond one large
//! core and phases of 1 or n threads (the paper's future work, section 8).
//!
//! # Problem
//! How fast does each program run together with the others on cores of any speeds,
//! when each has any number of ready threads?
//!
//! # Approach
//! The assumptions are those that section 5 states for its special case.
//! - Ready threads are spread evenly: with t threads on n cores, t mod n cores
//!   have one thread more than the others. All such placements of the
//!   (distinguishable) threads are equally likely.
//! - Threads on one core share it equally.
//! - [`Scheduler::Proposed`]: where some threads are serial and others are
//!   not, the serial ones have the fastest cores, one each, as long as one core
//!   stays for the others, and both classes are spread evenly over theirs.
//!   Within a class no thread is preferred, so where all programs are in the same
//!   kind of phase it is the baseline.
//!
//! On average a program gets its share of what its class's cores give: `own / max(n, t)` of their sum. The extremes
//! are found exactly, by dynamic programming over the cores: per core, has it one more thread, and how many of its
//! threads are this program's.
//!
//! Table 3 has an average of 1 in (S,S), that of the baseline, although the
//! text next to it says that one serial thread has the large core; with n > 2
//! that would give (a+1)/2 · n/(n−1+a) on average. We follow the table.
//!
//! # Terms and units
//! Speeds have any unit; a *serial* program is one that the scheduler takes for
//! serial, whatever its number of ready threads. Speedups are relative to the
//! average of the same threads alone on the machine (eq. 3).
//!
//! # Properties
//! - With one large core and 1 or n threads it gives Tables 1, 2 and 3
//!   (`it_gives_the_papers_tables`).
//! - It equals an enumeration of all placements of labelled threads
//!   (`it_equals_an_enumeration_of_all_placements`), and for up to 64 cores all three tables
//!   equal an enumeration of the kinds of core that a placement can have
//!   (`it_equals_an_enumeration_by_kinds_of_core_up_to_64_cores`).

use super::{Scheduler, Speedups};
use crate::metrics;

#[cfg(test)]
mod tests;

/// Speeds of a machine's cores, fastest first.
#[derive(Debug, Clone, PartialEq)]
pub struct Cores(Vec<f64>);

/// One program's ready threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Load {
    /// How many threads are ready, at least one.
    pub ready: u32,
    /// Does the proposed scheduler take it for serial?
    pub serial: bool,
}

/// A question that the model cannot answer.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum MixError {
    /// No cores, or a speed that is no positive number.
    #[error("a machine needs at least one core, and each core a finite speed above 0")]
    Cores,
    /// A program without ready threads gets nothing and has no speedup.
    #[error("each program needs at least one ready thread")]
    NoThreads,
    /// The extremes would take too long to find.
    #[error("{cores} cores and {threads} threads are too many for the exact extremes")]
    TooLarge {
        /// Cores asked for.
        cores: usize,
        /// Threads asked for.
        threads: u64,
    },
}

impl Cores {
    /// Cores of these speeds, in any order.
    pub fn new(mut speeds: Vec<f64>) -> Result<Self, MixError> {
        if speeds.is_empty() || !speeds.iter().all(|s| s.is_finite() && *s > 0.0) {
            return Err(MixError::Cores);
        }
        speeds.sort_by(|a, b| b.total_cmp(a));
        Ok(Self(speeds))
    }

    /// The speeds, fastest first.
    #[must_use]
    pub fn speeds(&self) -> &[f64] {
        &self.0
    }
}

/// Speedups of a program co-running with others.
pub fn speedups(
    scheduler: Scheduler,
    cores: &Cores,
    own: Load,
    others: &[Load],
) -> Result<Speedups, MixError> {
    if own.ready == 0 || others.iter().any(|other| other.ready == 0) {
        return Err(MixError::NoThreads);
    }
    let all = cores.speeds();
    let threads = |serial: bool| -> u64 {
        others.iter().filter(|o| o.serial == serial).map(|o| u64::from(o.ready)).sum()
    };
    let others = threads(own.serial);
    let apart = threads(!own.serial);
    let prefers = scheduler == Scheduler::Proposed && apart > 0;
    let (cores, others) = if prefers {
        let serial = if own.serial { u64::from(own.ready) + others } else { apart };
        let given = usize::try_from(serial).unwrap_or(usize::MAX).min(all.len() - 1);
        let (fast, rest) = all.split_at(given);
        match (own.serial, given) {
            // One core alone cannot be divided between the classes.
            (_, 0) => (all, others + apart),
            (true, _) => (fast, others),
            (false, _) => (rest, others),
        }
    } else {
        (all, others + apart)
    };
    let alone = average(all, own.ready, 0);
    let (min, max) = extremes(cores, own.ready, others)?;
    Ok(Speedups {
        min: min / alone,
        avg: average(cores, own.ready, others) / alone,
        max: max / alone,
    })
}

/// Worst fairness of two programs over the placements: the smaller of each
/// one's least speedup over the other's largest.
///
/// The two happen together. Within a class, the cores that are used give a sum
/// that does not depend on which thread has which, or the threads have cores of their
/// own, and one program can have the slowest while the other has the fastest.
/// Programs of two classes do not share cores.
pub fn worst_fairness(
    scheduler: Scheduler,
    cores: &Cores,
    loads: [Load; 2],
) -> Result<f64, MixError> {
    let [first, second] = fairness_cases(scheduler, cores, loads)?;
    Ok(first.min(second))
}

/// The two cases of Table 2: the first program's least speedup over the
/// second's largest, and the other way round.
pub fn fairness_cases(
    scheduler: Scheduler,
    cores: &Cores,
    loads: [Load; 2],
) -> Result<[f64; 2], MixError> {
    let [a, b] = both(scheduler, cores, loads)?;
    Ok([a.min / b.max, b.min / a.max])
}

/// Fairness (eq. 4) of two programs' average speedups.
pub fn expected_fairness(
    scheduler: Scheduler,
    cores: &Cores,
    loads: [Load; 2],
) -> Result<f64, MixError> {
    let [a, b] = both(scheduler, cores, loads)?;
    Ok(metrics::fairness(&[a.avg, b.avg]).unwrap_or(0.0))
}

fn both(scheduler: Scheduler, cores: &Cores, [a, b]: [Load; 2]) -> Result<[Speedups; 2], MixError> {
    Ok([speedups(scheduler, cores, a, &[b])?, speedups(scheduler, cores, b, &[a])?])
}

/// Average performance of `own` threads co-running with `others` equal ones.
fn average(cores: &[f64], own: u32, others: u64) -> f64 {
    let threads = f64::from(own) + others as f64;
    cores.iter().sum::<f64>() * f64::from(own) / threads.max(cores.len() as f64)
}

/// Least and largest performance of `own` threads co-running with `others` equal ones.
fn extremes(cores: &[f64], own: u32, others: u64) -> Result<(f64, f64), MixError> {
    /// Steps of the search that take about a second.
    const MOST: u64 = 200_000_000;
    let threads = u64::from(own) + others;
    let count = cores.len() as u64;
    let (each, extra) = (threads / count, threads % count);
    let steps = [count, extra + 1, u64::from(own) + 1, each.min(u64::from(own)) + 2];
    let steps = steps.iter().try_fold(1u64, |product, &f| product.checked_mul(f));
    if steps.is_none_or(|steps| steps > MOST) {
        return Err(MixError::TooLarge { cores: cores.len(), threads });
    }
    // Both fit: their product does.
    let (extra, own) = (extra as usize, own as usize);
    let best = |sign: f64| sign * search(cores, each, extra, own, sign);
    Ok((best(-1.0), best(1.0)))
}

/// The largest `sign` × performance. `best[j][k]`: over the cores so far, with
/// j of them having one thread more, and k own threads placed.
fn search(cores: &[f64], each: u64, extra: usize, own: usize, sign: f64) -> f64 {
    let width = own + 1;
    let mut best = vec![f64::NEG_INFINITY; (extra + 1) * width];
    best[0] = 0.0;
    for &speed in cores {
        let mut next = vec![f64::NEG_INFINITY; best.len()];
        for (at, &so_far) in best.iter().enumerate().filter(|(_, v)| v.is_finite()) {
            let (j, k) = (at / width, at % width);
            for more in 0..=usize::from(j < extra) {
                let load = each as usize + more;
                for mine in 0..=load.min(own - k) {
                    let share = if load == 0 { 0.0 } else { mine as f64 / load as f64 };
                    let cell = &mut next[(j + more) * width + k + mine];
                    *cell = cell.max(so_far + sign * speed * share);
                }
            }
        }
        best = next;
    }
    best.last().copied().unwrap_or(0.0)
}
