//! Load balancing of busy hardware threads, when there are more threads than places.
//!
//! # Problem
//! Of 24 equal threads on 16 hardware threads 8 have one for themselves and 16 do not. No move makes that
//! better at once, but moves in turn give all the same in the long run, and cost caches.
//!
//! # Approach
//! Linux's periodic balancing as a busy hardware thread carries it out (kernel/sched/fair.c, the same in 6.12
//! and 7.2, between which the recorded kernel lies):
//!
//! | rule | as in |
//! |---|---|
//! | each balances for itself, at each level that is due, the lowest first; above the lowest only the first of its group, and none whose group has an idle one | `sched_balance_domains`, `should_we_balance` |
//! | a level is due 16 × its interval, less a tick, after its last pass; an interval is as many ms as its domain has hardware threads, doubles once where nothing was to do, and is short again where something was | `get_sd_balance_interval`, `sd_init`, `sched_balance_rq` |
//! | a group is overloaded if it has more threads than hardware threads; it has room if it was not fully used lately | `group_is_overloaded`, `group_has_capacity` |
//! | the overloaded group of the highest load gives, if the own one has no room and less than the mean | `sched_balance_find_src_group`, `update_sd_pick_busiest` |
//! | as much load as brings the nearer of both to the mean | `calculate_imbalance` (`migrate_load`) |
//! | of its fullest queue those go that waited longest; at first none that weighs more than that load, then none of more than twice, four times, … it | `sched_balance_find_src_rq`, `detach_tasks` |
//! | a thread that would leave the node of its memory stays for a while, if the queue holds others | `migrate_degrades_locality`, `cache_nice_tries` |
//!
//! So one of two that share a hardware thread changes over to a sibling at its second pass: half of its load is
//! missing to the mean. A queue that gave has room, and takes none back, until its average has caught up
//! ([`super::usage`]). Not modelled: idle ones ([`super::balance`] does that at once); passes over a queue from
//! which no thread may come (`LBF_DST_PINNED`, `group_imbalanced`); `migrate_util`; `task_hot`;
//! `task_is_ineligible_on_dst_cpu`; averages of load. Two unsettled facts are drawn: the last passes before time
//! 0, and whether the source has already switched to its next thread at this tick.
//!
//! # Properties
//! - Waiting threads are moved in turn (`all_waiting_threads_get_about_as_much`); a running thread never, and
//!   none to where it may not run (`no_thread_that_runs_or_may_not_is_moved`).
//! - Cores end about even (`waiting_threads_end_about_even`).
//! - Moves are about as frequent as Linux's (`the_report_against_linux_is_what_this_scheduler_does`).

use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::balance_pass::{BalancePass, DestinationCpu, Now};
use super::sched_domains::{SchedDomains, sched_domains};
use super::{Generation, Map, Shift, TICK_NS, Task};

/// A busy hardware thread balances so many times less often (`busy_factor`).
const BUSY_FACTOR: u64 = 16;
/// Where no thread may come an interval does not double beyond this (`MAX_PINNED_INTERVAL`).
const MAX_PINNED_MS: u64 = 512;

/// A ready thread, as busy hardware threads see it.
#[derive(Debug, Clone)]
pub(crate) struct ReadyThread<'a> {
    pub task: Task<'a>,
    pub weight: u64,
    /// How much it ran lately, 0 … 1.
    pub used: f64,
    pub runs: bool,
    /// A thread with less waited longer.
    pub turn: f64,
}

/// When a hardware thread balances a level.
#[derive(Debug, Clone, Copy, Default)]
struct Timer {
    /// Ticks since its last pass.
    age: u64,
    interval_ms: u64,
    failures: u32,
}

impl Timer {
    /// Ticks between two passes.
    fn period(interval_ms: u64, places: usize) -> u64 {
        let ticks = (interval_ms * BUSY_FACTOR * 1_000_000).div_ceil(TICK_NS) - 1;
        let most = 1_000_000_000 / TICK_NS * places as u64 / 10;
        ticks.clamp(1, most.max(1))
    }

    /// Time passes. Passes in between had nothing to balance.
    fn pass(&mut self, ticks: u64, weight: u64, places: usize) {
        self.age += ticks;
        let longest = Self::period(2 * weight, places);
        if ticks > 1 && self.age > longest {
            *self = Self { age: self.age % longest, interval_ms: 2 * weight, failures: 0 };
        }
    }

    fn note(&mut self, pass: BalancePass, weight: u64) {
        let limit =
            if pass == BalancePass::Pinned { MAX_PINNED_MS.max(2 * weight) } else { 2 * weight };
        self.age = 0;
        self.failures = if pass == BalancePass::Failed { self.failures + 1 } else { 0 };
        self.interval_ms = match pass {
            BalancePass::Moved | BalancePass::Failed => weight,
            BalancePass::Even | BalancePass::Pinned if self.interval_ms < limit => {
                2 * self.interval_ms
            }
            BalancePass::Even | BalancePass::Pinned => self.interval_ms,
        };
    }
}

/// The balance passes of all hardware threads.
#[derive(Debug, Clone)]
pub(crate) struct LoadBalancer {
    levels: Vec<SchedDomains>,
    /// For each level and hardware thread.
    timers: Vec<Vec<Timer>>,
    /// The tick of the last call.
    ticked: u64,
    random: Pcg64Mcg,
    generation: Generation,
}

impl LoadBalancer {
    pub(crate) fn new(map: &Map, generation: Generation, seed: u64) -> Self {
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let levels = sched_domains(map);
        let mut timer = |level: &SchedDomains, at| {
            let interval_ms = level.weight(at).unwrap_or(1);
            let age = random.random_range(0..Timer::period(interval_ms, map.len()));
            Timer { age, interval_ms, failures: 0 }
        };
        let timers = levels
            .iter()
            .map(|level| (0..map.len()).map(|at| timer(level, at)).collect())
            .collect();
        Self { levels, timers, ticked: 0, random, generation }
    }

    /// What is moved at a tick, in order. `used` says of each hardware thread how much it
    /// ran lately, 0 … 1.
    pub(crate) fn tick(
        &mut self,
        map: &Map,
        ready: &[ReadyThread<'_>],
        used: &[f64],
        tick: u64,
    ) -> Vec<Shift> {
        let ticks = tick.saturating_sub(self.ticked);
        self.ticked = tick;
        let mut now = Now::new(map, ready, used, self.generation);
        for at in 0..map.len() {
            let mut continues = true;
            for (level, timers) in self.levels.iter().zip(&mut self.timers) {
                let Some(weight) = level.weight(at) else { continue };
                let timer = &mut timers[at];
                timer.pass(ticks, weight, map.len());
                if now.queues.len(at) == 0 {
                    // Idle ones balance all the time.
                    timer.note(BalancePass::Even, weight);
                    continue;
                }
                let due = timer.age >= Timer::period(timer.interval_ms, map.len());
                if !due || !continues {
                    continue;
                }
                let group = level.group(at);
                continues =
                    group.first() == Some(&at) && group.iter().all(|&at| now.queues.len(at) > 0);
                let switched = self.random.random_bool(0.5);
                let destination = DestinationCpu { level, at, failures: timer.failures, switched };
                timer.note(
                    if continues { now.balance(&destination) } else { BalancePass::Even },
                    weight,
                );
            }
        }
        now.shifts
    }
}
