//! What threads of one core leave each other of slots, ports, queues and predictor.
//!
//! # Approach
//! The front end, ports and queues are shared max-min ([`offers`]): of the front end, which
//! serves one thread a cycle, a thread demands the cycles that its fetch groups or its
//! micro-ops take, those of wrong paths too; of a group of ports the cycles for which it
//! takes them; of a queue the entries that it holds on average (entries ·
//! cycles per instruction · IPC). A queue that is split leaves a thread its part,
//! a capped one no more than the cap. The predictor is divided by the threads that
//! run. Ports of which each thread has one of its own are not shared.
//!
//! *Halves*: a core that divides its threads among two halves gives every other one to each, in the order
//! of their hardware threads. Those of a half meet there, and nobody else; what is not halved all
//! share. So it matters who sits beside whom, and of three threads one has a half for itself.
//!
//! # Properties
//! `threads_of_a_half_meet_each_other_only`; those of the whole are in [`physics`](super).

use super::pipeline::{Environment, FIRST_ENTRIES, FIRST_PORT, GROUPS, STRUCTURES};
use super::response::Response;
use super::shares::offers;
use super::tasks::{Switches, Task};

/// Most threads of a core.
const MOST: usize = 8;

/// Threads of a core that meet each other: every so manieth, in the order of their hardware threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Meeting {
    first: usize,
    step: usize,
    /// Threads of the core.
    peers: usize,
}

impl Meeting {
    /// Who meets whom, of so many: those of each half, or all.
    fn of(peers: usize, halved: bool) -> impl Iterator<Item = Self> {
        let step = if halved { 2 } else { 1 };
        (0..step).map(move |first| Self { first, step, peers })
    }

    /// Numbers of its threads.
    fn members(self) -> impl Iterator<Item = usize> {
        (self.first..self.peers).step_by(self.step)
    }

    /// What is offered to each, max-min, in the order of the members; others are left at 0.
    fn offered(self, capacity: f64, demand: impl Fn(usize) -> f64) -> [f64; MOST] {
        let (mut demands, mut shares) = ([0.0; MOST], [0.0; MOST]);
        let mut count = 0;
        for (slot, member) in demands.iter_mut().zip(self.members()) {
            *slot = demand(member);
            count += 1;
        }
        offers(capacity, &demands[..count], &mut shares[..count]);
        shares
    }
}

/// Sets what the threads of one core leave each other. `cares`: inputs that
/// do anything to any of them, one bit each; the others are left alone.
pub fn set(
    tasks: &[Task<'_>],
    ipc: &[f64],
    responses: &[Response],
    switches: Switches,
    cares: u32,
    environments: &mut [Environment],
) {
    let peers = tasks.len();
    let Some(core) = tasks.first().map(|task| task.pipeline) else { return };
    let parts = if switches.private_predictor { 1.0 } else { peers as f64 };
    for environment in &mut *environments {
        environment.predictor = core.predictor / parts;
    }
    if switches.private_units || !(2..=MOST).contains(&peers) {
        return;
    }
    for meeting in Meeting::of(peers, core.halved) {
        let turns = meeting.offered(1.0, |thread| responses[thread].front * ipc[thread]);
        for (thread, share) in meeting.members().zip(turns) {
            environments[thread].dispatch = share * core.width;
        }
        for group in 0..GROUPS {
            let ports = core.group_size(group);
            let cared = cares >> (FIRST_PORT + group) & 1 == 1;
            if !cared || ports == 0.0 || core.private_groups[group] {
                continue;
            }
            let demand = |thread: usize| responses[thread].port_cycles[group] * ipc[thread];
            for (thread, share) in meeting.members().zip(meeting.offered(ports, demand)) {
                environments[thread].ports[group] = share / ports;
            }
        }
    }
    for queue in 0..STRUCTURES {
        let room = core.rooms[queue];
        let cared = cares >> (FIRST_ENTRIES + queue) & 1 == 1;
        if !cared || !room.shared {
            continue;
        }
        for meeting in Meeting::of(peers, room.halved) {
            let demand = |thread: usize| responses[thread].held[queue] * ipc[thread];
            for (thread, share) in meeting.members().zip(meeting.offered(room.total, demand)) {
                environments[thread].entries[queue] = share.min(room.most);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offered(meeting: Meeting, demands: &[f64]) -> Vec<(usize, f64)> {
        meeting.members().zip(meeting.offered(1.0, |thread| demands[thread])).collect()
    }

    #[test]
    fn threads_of_a_half_meet_each_other_only() {
        let demands = [0.875, 0.125, 0.25];
        let [even, odd] = Meeting::of(3, true).collect::<Vec<_>>()[..] else {
            panic!("two halves")
        };
        assert_eq!(offered(even, &demands), [(0, 0.75), (2, 0.5)]);
        assert_eq!(offered(odd, &demands), [(1, 1.0)]);
        let [all] = Meeting::of(3, false).collect::<Vec<_>>()[..] else { panic!("one core") };
        assert_eq!(all.members().collect::<Vec<_>>(), [0, 1, 2]);
        // A core of two threads has one in each half.
        for half in Meeting::of(2, true) {
            assert_eq!(half.members().count(), 1);
            assert_eq!(half.offered(1.0, |_| 0.75)[0], 1.0);
        }
    }
}
