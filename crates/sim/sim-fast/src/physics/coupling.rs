//! How the threads of a core share its front end, ports, queues and branch predictor.
//!
//! # Approach
//! Front end, ports and queues are shared max-min fairly ([`offers`]). Of the front end, which serves one
//! thread per cycle, a thread demands the cycles that its fetch groups or its micro-ops take, those of
//! wrong paths included; of a group of ports the cycles for which it occupies them; of a queue the
//! entries that it occupies on average (entries · cycles per instruction · IPC). A partitioned queue
//! gives a thread its partition, a capped one no more than the cap. The predictor is divided by the
//! threads that run. Ports of which each thread has its own are not shared.
//!
//! *Halves*: a core that divides its threads between two halves gives every other one to each, in the
//! order of their hardware threads. A half is shared by its own threads alone; what is not halved is
//! shared by all. So it matters which threads share a half; of three threads one has a half to itself.
//!
//! # Properties
//! `threads_of_a_half_meet_each_other_only`; those of the whole are in [`physics`](super).

use super::max_min_fair::offers;
use super::pipeline::{Environment, FIRST_ENTRIES, FIRST_PORT, GROUPS, STRUCTURES};
use super::response_table::Summary;
use super::tasks::{Switches, Task};
use crate::description::MOST_THREADS;

/// Most threads of a core.
const MOST: usize = MOST_THREADS;

/// Threads of a core that share structures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Coupling {
    members: [usize; MOST],
    count: usize,
}

impl Coupling {
    /// Every `step`-th of the threads, in the order of their hardware threads.
    fn of(peers: usize, first: usize, step: usize) -> Self {
        let (mut members, mut count) = ([0; MOST], 0);
        for (slot, member) in members.iter_mut().zip((first..peers).step_by(step)) {
            *slot = member;
            count += 1;
        }
        Self { members, count }
    }

    /// Those of each half.
    fn halves(peers: usize) -> [Self; 2] {
        [Self::of(peers, 0, 2), Self::of(peers, 1, 2)]
    }

    /// All of them.
    fn all(peers: usize) -> [Self; 1] {
        [Self::of(peers, 0, 1)]
    }

    /// Numbers of its threads.
    fn members(&self) -> &[usize] {
        &self.members[..self.count.min(MOST)]
    }

    /// The max-min fair offer to each, in the order of the members; 0 for others.
    fn offered(&self, capacity: f64, demand: impl Fn(usize) -> f64) -> [f64; MOST] {
        let (mut demands, mut shares) = ([0.0; MOST], [0.0; MOST]);
        let members = self.members();
        demands.iter_mut().zip(members).for_each(|(slot, member)| *slot = demand(*member));
        offers(capacity, &demands[..members.len()], &mut shares[..members.len()]);
        shares
    }
}

/// Sets the shares of each thread of a core. `active`: inputs that
/// affect any of them, one bit each; the others are left alone.
pub fn set(
    tasks: &[Task<'_>],
    ipc: &[f64],
    summaries: &[Summary],
    switches: Switches,
    active: u32,
    environments: &mut [Environment],
) {
    let peers = tasks.len();
    let Some(core) = tasks.first().map(|task| task.pipeline) else { return };
    let parts = if switches.private_predictor { 1.0 } else { peers as f64 };
    let predictor = core.predictor_of(parts);
    for environment in &mut *environments {
        environment.predictor = predictor;
    }
    if switches.private_units || !(2..=MOST).contains(&peers) {
        return;
    }
    let (halves, all) = (Coupling::halves(peers), Coupling::all(peers));
    let meetings = |halved: bool| if halved { &halves[..] } else { &all[..] };
    for coupling in meetings(core.halved) {
        let turns = coupling.offered(1.0, |thread| summaries[thread].front * ipc[thread]);
        for (thread, share) in coupling.members().iter().zip(turns) {
            environments[*thread].dispatch = share * core.width;
        }
        for group in 0..GROUPS {
            let ports = core.group_size(group);
            let is_active = active >> (FIRST_PORT + group) & 1 == 1;
            if !is_active || ports == 0.0 || core.private_groups[group] {
                continue;
            }
            let demand = |thread: usize| summaries[thread].port_cycles[group] * ipc[thread];
            for (thread, share) in coupling.members().iter().zip(coupling.offered(ports, demand)) {
                environments[*thread].ports[group] = share / ports;
            }
        }
    }
    for queue in 0..STRUCTURES {
        let room = core.rooms[queue];
        let is_active = active >> (FIRST_ENTRIES + queue) & 1 == 1;
        if !is_active || !room.shared {
            continue;
        }
        for coupling in meetings(room.halved) {
            let demand = |thread: usize| summaries[thread].held[queue] * ipc[thread];
            for (thread, share) in
                coupling.members().iter().zip(coupling.offered(room.total, demand))
            {
                environments[*thread].entries[queue] = share.min(room.most);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offered(coupling: Coupling, demands: &[f64]) -> Vec<(usize, f64)> {
        let offered = coupling.offered(1.0, |thread| demands[thread]);
        coupling.members().iter().copied().zip(offered).collect()
    }

    #[test]
    fn threads_of_a_half_meet_each_other_only() {
        let demands = [0.875, 0.125, 0.25];
        let [even, odd] = Coupling::halves(3);
        assert_eq!(offered(even, &demands), [(0, 0.75), (2, 0.5)]);
        assert_eq!(offered(odd, &demands), [(1, 1.0)]);
        assert_eq!(Coupling::all(3)[0].members(), [0, 1, 2]);
        // A core of two threads has one in each half.
        for half in Coupling::halves(2) {
            assert_eq!(half.members().len(), 1);
            assert_eq!(half.offered(1.0, |_| 0.75)[0], 1.0);
        }
    }
}
