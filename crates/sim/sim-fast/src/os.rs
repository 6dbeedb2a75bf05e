//! Where unplaced threads go: a baseline like Linux's scheduler.
//!
//! # Problem
//! A policy is compared with the operating system. So the simulated machine needs a scheduler that treats
//! threads as Linux does: it knows topology, capacity and where memory is, and nothing of contention.
//!
//! # Approach
//! The rules, each after the kernel's documentation (Documentation/scheduler):
//!
//! | rule | as in |
//! |---|---|
//! | a new thread goes to the idlest place: an idle hardware thread, of an idle core if there is one, of the highest capacity, on the node that holds its memory | sched-domains.rst; sched-capacity.rst, wakeup; find_idlest_cpu, select_idle_core |
//! | a thread that wakes goes where it was if that is idle, else to an idle core, then an idle hardware thread of the same LLC domain, else where it was | select_idle_sibling |
//! | idle hardware threads take threads, by number in relation to capacity, so that a busy thread leaves a slow core when a fast one is idle; the nearest queue gives | sched-domains.rst; sched-capacity.rst, misfit; sched-energy.rst does not apply |
//! | busy hardware threads look at intervals, core by core, LLC domain by LLC domain, node by node, whether another has more than they; so waiting threads change places (`load_balancer`) | sched-domains.rst; kernel/sched/fair.c, sched_balance_rq |
//! | threads that share a core are spread to idle cores | SD_PREFER_SIBLING |
//! | idle hardware threads take threads of a node with more than theirs | sibling_imbalance, adjust_numa_imbalance |
//! | a thread goes to the node of its memory when a core is as free there, and the nodes stay even | numa_balancing in admin-guide/sysctl/kernel.rst, task_numa_migrate |
//! | threads of one hardware thread take turns by weight, 1.25 for each nice level, idle class 3 of 1024 | sched-nice-design.rst; sched-design-CFS.rst |
//!
//! What Linux has beyond that (autogroups, cgroups, energy, swaps between nodes) is left out. Ties are broken by a
//! seeded draw. [`Generation::Older`] is like 2.6.18 (kernel/sched.c, `find_busiest_group`): it knows no capacities, and
//! moves a waiting thread only where queues become more even: of three threads on two CPUs two share one for good.
//!
//! # Terms and units
//! *Queue*: the ready threads of one hardware thread, the running one included.
//! *Tick*: 4 ms (CONFIG_HZ=250), the length of a turn too.
//!
//! # Properties
//! - No thread leaves its allowed set (`threads_stay_where_they_may_run`).
//! - Idle cores fill first (`idle_cores_fill_before_siblings_share`), fast ones before slow ones
//!   (`fast_cores_fill_before_slow_ones`), those near the memory before others (`cores_near_the_memory_fill_first`).
//! - Nodes are evened (`nodes_are_evened_but_for_a_few_threads`).
//! - Moves to idle ones end, and then no thread waits next to an idle one
//!   (`balancing_reaches_a_state_that_it_leaves_alone`).
//! - Waiting threads go on changing places, but all queues stay about even (`waiting_threads_end_about_even`);
//!   under the older one they stay (`waiting_threads_stay_under_the_older_scheduler`).
//! - What differs from the kernel is known
//!   (`the_report_against_linux_is_what_this_scheduler_does`).

mod balance;
mod balance_pass;
mod load_balancer;
#[cfg(test)]
mod load_balancer_tests;
mod map;
mod nodes;
mod place;
mod sched_domains;
#[cfg(test)]
mod tests;
mod usage;

use serde::{Deserialize, Serialize};

pub(crate) use balance::balance;
pub(crate) use load_balancer::{LoadBalancer, ReadyThread};
pub(crate) use map::{CpuLocation, Map, Queues};
pub(crate) use place::{place, wake};
use symbiont_machine::Priority;
use symbiont_topology::{CpuSet, NodeId};
pub(crate) use usage::{follow, left_after, newborn};

/// Which version of Linux the scheduler resembles.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Generation {
    /// 6.12 to 7.2.
    #[default]
    Today,
    /// 2.6.18.
    Older,
}

/// Nanoseconds between two ticks.
pub(crate) const TICK_NS: u64 = 4_000_000;

/// A thread, by its place in the list, and where it goes.
pub(crate) type Shift = (usize, usize);

/// A ready thread, as the scheduler sees it.
#[derive(Debug, Clone)]
pub(crate) struct Task<'a> {
    /// Its queue, by the index of the hardware thread.
    pub at: usize,
    /// Where it may run; not empty.
    pub allowed: &'a CpuSet,
    /// The node that holds its memory.
    pub home: NodeId,
}

/// Weight of a thread in its queue; 1024 is nice 0.
pub(crate) fn weight(priority: Priority) -> f64 {
    match priority {
        Priority::Normal => 1024.0,
        Priority::Boosted(levels) => 1024.0 * 1.25_f64.powi(i32::from(levels.min(40))),
        Priority::Idle => 3.0,
    }
}
