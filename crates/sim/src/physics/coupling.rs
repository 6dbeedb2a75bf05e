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

use super::pipeline::{Environment, FIRST_ENTRIES, FIRST_PORT, GROUPS, STRUCTURES};
use super::response::Response;
use super::shares::offers;
use super::tasks::{Switches, Task};

/// Most threads of a core.
const MOST: usize = 8;

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
    let in_half = core.near(peers);
    let offered = |capacity: f64, near: f64, demand: &dyn Fn(usize) -> f64| {
        let (mut demands, mut shares) = ([0.0; MOST], [0.0; MOST]);
        for (thread, slot) in demands[..peers].iter_mut().enumerate() {
            *slot = demand(thread);
        }
        offers(capacity, &demands[..peers], near, &mut shares[..peers]);
        shares
    };
    let turns = offered(1.0, in_half, &|thread| responses[thread].front * ipc[thread]);
    for (environment, share) in environments.iter_mut().zip(turns) {
        environment.dispatch = share * core.width;
    }
    for group in 0..GROUPS {
        let ports = core.group_size(group);
        let cared = cares >> (FIRST_PORT + group) & 1 == 1;
        if !cared || ports == 0.0 || core.private_groups[group] {
            continue;
        }
        let demand = |thread: usize| responses[thread].port_cycles[group] * ipc[thread];
        let share = offered(ports, in_half, &demand);
        for (environment, share) in environments.iter_mut().zip(share) {
            environment.ports[group] = share / ports;
        }
    }
    for queue in 0..STRUCTURES {
        let room = core.rooms[queue];
        let cared = cares >> (FIRST_ENTRIES + queue) & 1 == 1;
        if !cared || !room.shared {
            continue;
        }
        let near = if room.halved { in_half } else { 1.0 };
        let demand = |thread: usize| responses[thread].held[queue] * ipc[thread];
        let share = offered(room.total, near, &demand);
        for (environment, share) in environments.iter_mut().zip(share) {
            environment.entries[queue] = share.min(room.most);
        }
    }
}
