//! `l1-bandwidth`: balances the accesses to the first-level data caches.
//!
//! The baseline that symbiotic schedulers are compared with (Feliu et al.,
//! section 6.2; Navarro et al., section 6.1): threads of one core share its L1
//! data cache, so the sums of their accesses per cycle shall be equal from core
//! to core.
//!
//! Threads are taken in falling order of accesses per cycle; each goes to the
//! core with the smallest sum so far, no core getting another thread for one of
//! its hardware threads before all have one. With two threads for each core of
//! SMT2 that is the published pairing, highest with lowest
//! (`with_smt2_the_highest_meets_the_lowest`); with SMT4 and beyond it is the
//! greedy balance that they extend it by. A thread that fits several cores
//! equally well stays on the one where it ran, so that equal quanta move no thread
//! (`no_thread_moves_when_nothing_changes`).
//!
//! A thread that was not measured, as one just born, is taken for the mean of
//! those that were. Sleeping threads come last: they disturb no other thread now.
//!
//! Negative control: with the signal shuffled between threads the true sums are
//! no more balanced than by lot (`a_shuffled_signal_balances_nothing`).

use std::time::Duration;

use symbiont_counters::Unmeasured;
use symbiont_machine::{Assignment, Placement, RunState, Signal, ThreadId};
use symbiont_topology::CpuSet;

use crate::{Entry, Placeable, Policy, Requirements, ThreadView, View};

pub(crate) const ENTRY: Entry = Entry {
    name: "l1-bandwidth",
    summary: "balances the accesses to the L1 data caches from core to core",
    paper: Some(
        "Feliu et al., Improving IBM POWER8 performance through symbiotic job scheduling, section 6.2: the L1-bandwidth aware baseline",
    ),
    quantum: Duration::from_millis(100),
    boosts: false,
    parameters: &[],
    make: |_| Box::new(L1Bandwidth),
};

/// Balances the accesses to the L1 data caches.
#[derive(Debug, Clone, Copy, Default)]
pub struct L1Bandwidth;

/// A core of the machine, and what is to run there.
struct CoreLoad {
    cpus: CpuSet,
    taken: usize,
    sum: f64,
}

/// A thread to be assigned.
struct Candidate<'a> {
    thread: &'a ThreadView<'a>,
    allowed: CpuSet,
    /// What it asks of a cache, or why it is not known.
    measured: Result<(f64, String), Unmeasured>,
    demand: f64,
}

impl Policy for L1Bandwidth {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn requirements(&self) -> Requirements {
        Requirements::of([Signal::L1dBandwidth])
    }

    fn place(&mut self, view: &View<'_>) -> Placement {
        let (threads, mut placement) = view.placeable();
        let candidate = |Placeable { thread, allowed, .. }| {
            let measured = measure(thread);
            let demand = measured.as_ref().map_or(0.0, |(value, _)| *value);
            Candidate { thread, allowed, measured, demand }
        };
        let mut candidates: Vec<Candidate<'_>> = threads.into_iter().map(candidate).collect();
        guess(&mut candidates);
        candidates.sort_by(|a, b| {
            let asleep = |c: &Candidate<'_>| c.thread.state != RunState::Runnable;
            let by_demand = b.demand.total_cmp(&a.demand);
            asleep(a).cmp(&asleep(b)).then(by_demand).then(a.thread.id.cmp(&b.thread.id))
        });

        let cores = view.topology.cores().iter();
        let mut slots: Vec<CoreLoad> =
            cores.map(|core| CoreLoad { cpus: core.cpus.clone(), taken: 0, sum: 0.0 }).collect();
        let mut assigned: Vec<(ThreadId, usize, &Candidate<'_>)> = Vec::new();
        for candidate in &candidates {
            if let Some(at) = best(&slots, candidate) {
                slots[at].taken += 1;
                slots[at].sum += candidate.demand;
                assigned.push((candidate.thread.id, at, candidate));
            }
        }
        for (id, at, candidate) in assigned {
            let cpus = slots[at].cpus.intersection(&candidate.allowed);
            let reason = match &candidate.measured {
                Ok((value, unit)) => {
                    format!("L1D bandwidth {value:.3} {unit}; {:.3} on its core", slots[at].sum)
                }
                Err(why) => {
                    format!("L1D bandwidth taken for the mean of the others: {why}")
                }
            };
            placement.insert(id, Assignment::on(cpus, reason));
        }
        placement
    }
}

/// A thread's accesses per cycle, with their unit.
fn measure(thread: &ThreadView<'_>) -> Result<(f64, String), Unmeasured> {
    let unknown = || Unmeasured::Unknown("l1d_bandwidth".to_owned());
    let measurement = thread.measured.ok_or_else(unknown)?.get("l1d_bandwidth")?;
    Ok((measurement.value, measurement.unit.to_string()))
}

/// Takes a thread that was not measured for the mean of the others.
fn guess(candidates: &mut [Candidate<'_>]) {
    let known: Vec<f64> =
        candidates.iter().filter(|c| c.measured.is_ok()).map(|c| c.demand).collect();
    let mean = known.iter().sum::<f64>() / known.len().max(1) as f64;
    for candidate in candidates.iter_mut().filter(|c| c.measured.is_err()) {
        candidate.demand = mean;
    }
}

/// The core where a thread balances best.
fn best(slots: &[CoreLoad], candidate: &Candidate<'_>) -> Option<usize> {
    let fits = |load: &CoreLoad| !load.cpus.intersection(&candidate.allowed).is_empty();
    let open = slots.iter().enumerate().filter(|(_, load)| fits(load));
    let best = open.min_by(|(_, a), (_, b)| {
        // Hardware threads of a core that are not allowed are no places.
        let places = |load: &CoreLoad| load.cpus.intersection(&candidate.allowed).len();
        let rounds = |load: &CoreLoad| load.taken / places(load).max(1);
        let away = |load: &CoreLoad| candidate.thread.cpu.is_none_or(|pu| !load.cpus.contains(pu));
        (rounds(a).cmp(&rounds(b)))
            .then(a.sum.total_cmp(&b.sum))
            .then(a.taken.cmp(&b.taken))
            .then(away(a).cmp(&away(b)))
    });
    best.map(|(at, _)| at)
}

#[cfg(test)]
mod tests;
