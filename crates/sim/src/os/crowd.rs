//! What busy hardware threads do when there are more threads than places.
//!
//! # Problem
//! Of 24 equal threads on 16 hardware threads 8 have one for themselves and 16 do not. No
//! move makes that better at once, but moves in turn give all the same in the long run, and
//! cost caches. A baseline must do as much of that as Linux does.
//!
//! # Approach
//! Linux's periodic balancing as a busy hardware thread carries it out, after
//! kernel/sched/fair.c; what is told here is the same in 6.12 and 7.2, between which the
//! recorded kernel lies:
//!
//! | rule | as in |
//! |---|---|
//! | each looks for itself, at each level that is due, the lowest first; above the lowest only the first of its group, and none whose group has an idle one | `sched_balance_domains`, `should_we_balance` |
//! | a level is due 16 × its interval, less a tick, after it was last; an interval is as many ms as its domain has hardware threads, doubles once where nothing was to do, and is short again where something was | `get_sd_balance_interval`, `sd_init`, `sched_balance_rq` |
//! | a group is overloaded if it has more threads than hardware threads; it has room if it was not fully used lately | `group_is_overloaded`, `group_has_capacity` |
//! | the overloaded group of the highest load gives, if the own one has no room and less than the mean | `sched_balance_find_src_group`, `update_sd_pick_busiest` |
//! | as much load as brings the nearer of both to the mean | `calculate_imbalance` (`migrate_load`) |
//! | of its fullest queue those go that waited longest; at first none that weighs more than that load, then none of more than twice, four times, … it | `sched_balance_find_src_rq`, `detach_tasks` |
//! | who would leave the node of its memory stays for a while, if the queue holds others | `migrate_degrades_locality`, `cache_nice_tries` |
//!
//! So one of two that share a hardware thread changes over to a sibling that has one at that
//! one's second look: what is missing to the mean is half of its load. And a queue that gave
//! has room, and takes none back, until its average has caught up ([`super::usage`]).
//!
//! # What it leaves out
//! What idle ones do ([`super::balance`] does that at once); looks past a queue of which
//! nobody may come, and what that means for the level above (`LBF_DST_PINNED`,
//! `group_imbalanced`); moves by utilisation into a node that has room and no idle place
//! (`migrate_util`); threads that ran within the last 0.5 ms (`task_hot`: a turn takes a
//! tick) or had more than their share (`task_is_ineligible_on_dst_cpu`: who waited
//! longest has not); averages of load: who is ready counts in full. Two things that no rule
//! settles are drawn: when each looked last before time 0, and, as all ticks come at once,
//! whether who gives has already switched to the next at this tick.
//!
//! # Properties
//! - Who waits in a crowd is moved in turn, so that all get about as much
//!   (`all_in_a_crowd_get_about_as_much`).
//! - Nobody moves who runs, or to where it may not run
//!   (`nobody_who_runs_or_may_not_is_moved`).
//! - No core is left with more than others, but for what the rules leave
//!   (`a_crowd_ends_about_even`).
//! - How often it moves is about as Linux does
//!   (`the_report_beside_linux_is_what_this_scheduler_does`).

use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::levels::{Level, levels};
use super::look::{Look, Now, Taker};
use super::{Map, Shift, TICK_NS, Task};

/// A busy hardware thread looks so many times less often (`busy_factor`).
const BUSY_FACTOR: u64 = 16;
/// Where nobody may come an interval does not double beyond this (`MAX_PINNED_INTERVAL`).
const MAX_PINNED_MS: u64 = 512;

/// A ready thread, as busy hardware threads see it.
#[derive(Debug, Clone)]
pub(crate) struct Ready<'a> {
    pub task: Task<'a>,
    pub weight: u64,
    /// How much it ran lately, 0 … 1.
    pub used: f64,
    pub runs: bool,
    /// Who has less waited longer.
    pub turn: f64,
}

/// When a hardware thread looks at a level.
#[derive(Debug, Clone, Copy, Default)]
struct Timer {
    /// Ticks since it looked last.
    age: u64,
    interval_ms: u64,
    failures: u32,
}

impl Timer {
    /// Ticks between two looks.
    fn period(interval_ms: u64, places: usize) -> u64 {
        let ticks = (interval_ms * BUSY_FACTOR * 1_000_000).div_ceil(TICK_NS) - 1;
        let most = 1_000_000_000 / TICK_NS * places as u64 / 10;
        ticks.clamp(1, most.max(1))
    }

    /// Time passes. Who had nothing to balance in between looked in vain.
    fn pass(&mut self, ticks: u64, weight: u64, places: usize) {
        self.age += ticks;
        let longest = Self::period(2 * weight, places);
        if ticks > 1 && self.age > longest {
            *self = Self { age: self.age % longest, interval_ms: 2 * weight, failures: 0 };
        }
    }

    fn note(&mut self, look: Look, weight: u64) {
        let limit = if look == Look::Pinned { MAX_PINNED_MS.max(2 * weight) } else { 2 * weight };
        self.age = 0;
        self.failures = if look == Look::Failed { self.failures + 1 } else { 0 };
        self.interval_ms = match look {
            Look::Moved | Look::Failed => weight,
            Look::Even | Look::Pinned if self.interval_ms < limit => 2 * self.interval_ms,
            Look::Even | Look::Pinned => self.interval_ms,
        };
    }
}

/// The looks of all hardware threads.
#[derive(Debug, Clone)]
pub(crate) struct Crowd {
    levels: Vec<Level>,
    /// For each level and hardware thread.
    timers: Vec<Vec<Timer>>,
    /// The tick at which was last looked.
    ticked: u64,
    random: Pcg64Mcg,
}

impl Crowd {
    pub(crate) fn new(map: &Map, seed: u64) -> Self {
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let levels = levels(map);
        let mut timer = |level: &Level, at| {
            let interval_ms = level.weight(at).unwrap_or(1);
            let age = random.random_range(0..Timer::period(interval_ms, map.len()));
            Timer { age, interval_ms, failures: 0 }
        };
        let timers = levels
            .iter()
            .map(|level| (0..map.len()).map(|at| timer(level, at)).collect())
            .collect();
        Self { levels, timers, ticked: 0, random }
    }

    /// What is moved at a tick, in order. `used` says of each hardware thread how much it
    /// ran lately, 0 … 1.
    pub(crate) fn tick(
        &mut self,
        map: &Map,
        ready: &[Ready<'_>],
        used: &[f64],
        tick: u64,
    ) -> Vec<Shift> {
        let ticks = tick.saturating_sub(self.ticked);
        self.ticked = tick;
        let mut now = Now::new(map, ready, used);
        for at in 0..map.len() {
            let mut continues = true;
            for (level, timers) in self.levels.iter().zip(&mut self.timers) {
                let Some(weight) = level.weight(at) else { continue };
                let timer = &mut timers[at];
                timer.pass(ticks, weight, map.len());
                if now.queues.len(at) == 0 {
                    // Idle ones look all the time.
                    timer.note(Look::Even, weight);
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
                let taker = Taker { level, at, failures: timer.failures, switched };
                timer.note(if continues { now.look(&taker) } else { Look::Even }, weight);
            }
        }
        now.shifts
    }
}
