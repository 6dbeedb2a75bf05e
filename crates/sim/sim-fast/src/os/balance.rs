//! Idle balancing: an idle hardware thread takes work at once.
//!
//! Linux searches for work when a CPU becomes idle, and every few milliseconds from then on; here idle hardware
//! threads search at each tick, and take whatever helps most.

use super::{Map, Queues, Shift, Task};

/// What a tick moves: threads to queues, in order. Empty when all is balanced.
pub(crate) fn balance(map: &Map, tasks: &[Task<'_>]) -> Vec<Shift> {
    let mut queues = Queues::new(map, tasks.iter().map(|task| task.at));
    let mut at: Vec<usize> = tasks.iter().map(|task| task.at).collect();
    let mut shifts = Vec::new();
    // Each shift lowers, in this order: the sum of length²/capacity of queues, the
    // sum of squares of threads per core, that of threads per node of equal size (but for
    // few threads), the threads away from home. So it ends.
    for _ in 0..2 * tasks.len() {
        let Some((task, to)) = next(map, &queues, tasks, &at) else { break };
        queues.remove(map, at[task]);
        queues.add(map, to);
        at[task] = to;
        shifts.push((task, to));
    }
    shifts
}

/// The shift that helps most.
fn next(map: &Map, queues: &Queues, tasks: &[Task<'_>], at: &[usize]) -> Option<Shift> {
    let mut best: Option<(Gain, Shift)> = None;
    let even = !queues.uneven_nodes(map);
    for (number, task) in tasks.iter().enumerate() {
        let from = at[number];
        let alone = queues.len(from) == 1 && queues.siblings(map, from) == 0;
        let place = map.place(from);
        if alone && even && place.node == task.home && place.capacity == 1024 {
            continue;
        }
        for (to, target) in map.iter() {
            if queues.len(to) > 0 || !task.allowed.contains(target.pu) {
                continue;
            }
            let Some(gain) = gain(map, queues, task, from, to) else { continue };
            if best.as_ref().is_none_or(|(most, _)| gain > *most) {
                best = Some((gain, (number, to)));
            }
        }
    }
    best.map(|(_, shift)| shift)
}

/// What a shift is good for, the most important first; nearer is better.
type Gain = (u32, i64);

fn gain(map: &Map, queues: &Queues, task: &Task<'_>, from: usize, to: usize) -> Option<Gain> {
    let (here, there) = (map.place(from), map.place(to));
    let near = -i64::from(map.distance(from, to));
    let capacity = |place: super::CpuLocation| u64::from(place.capacity);
    // Threads per capacity, cross-multiplied: a queue gives if the other stays
    // the shorter one.
    if capacity(here) < u64::from(queues.len(from)) * capacity(there) {
        return Some((3, near));
    }
    let alike = here.capacity == there.capacity && here.core != there.core;
    if !alike || queues.len(from) > 1 {
        return None;
    }
    // With how many others it runs on its core, and would there.
    let (siblings, would) = (queues.siblings(map, from), queues.siblings(map, to));
    if would < siblings {
        return Some((2, near));
    }
    if would == siblings && queues.evens_nodes(map, from, to) {
        return Some((1, near));
    }
    let homeward = here.node != task.home && there.node == task.home;
    let may = would == siblings && homeward && queues.may_return(map, from, to);
    may.then_some((0, near))
}
