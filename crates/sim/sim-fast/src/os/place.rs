//! Where a new thread starts, and where one goes on that wakes.

use std::cmp::Reverse;

use rand::Rng;

use super::{Map, Queues, Task};

/// The idlest place for a new thread; none only if it may run nowhere here.
pub(crate) fn place(
    map: &Map,
    queues: &Queues,
    task: &Task<'_>,
    random: &mut impl Rng,
) -> Option<usize> {
    best(map, queues, task, random, |_| true)
}

/// Where a thread goes on that slept; `task.at` is where it was.
pub(crate) fn wake(
    map: &Map,
    queues: &Queues,
    task: &Task<'_>,
    random: &mut impl Rng,
) -> Option<usize> {
    let was = task.at;
    let allowed = task.allowed.contains(map.place(was).pu);
    if allowed && queues.len(was) == 0 && queues.siblings(map, was) == 0 {
        return Some(was);
    }
    let llc = map.place(was).llc;
    let near = best(map, queues, task, random, |at| map.place(at).llc == llc);
    match near {
        Some(at) if queues.len(at) == 0 => {
            let better = queues.siblings(map, at) < queues.siblings(map, was);
            let was_idle = allowed && queues.len(was) == 0;
            Some(if was_idle && !better { was } else { at })
        }
        _ if allowed => Some(was),
        _ => place(map, queues, task, random),
    }
}

/// The best of the places that the thread may use and that `within` accepts.
fn best(
    map: &Map,
    queues: &Queues,
    task: &Task<'_>,
    random: &mut impl Rng,
    within: impl Fn(usize) -> bool,
) -> Option<usize> {
    let rank = |at: usize| {
        let place = map.place(at);
        let shared = u64::from(queues.len(at) > 0 || queues.siblings(map, at) > 0);
        // Threads in relation to capacity, so that a fast core may take more.
        let load = u64::from(queues.len(at)) * 1024 / u64::from(place.capacity);
        (load, shared, Reverse(place.capacity), place.node != task.home, queues.siblings(map, at))
    };
    let mut found = None;
    let mut ties = 0_u32;
    for (at, place) in map.iter() {
        if !task.allowed.contains(place.pu) || !within(at) {
            continue;
        }
        let here = rank(at);
        match &found {
            Some((_, there)) if here > *there => {}
            Some((_, there)) if here == *there => {
                ties += 1;
                if random.random_range(0..=ties) == 0 {
                    found = Some((at, here));
                }
            }
            _ => {
                ties = 0;
                found = Some((at, here));
            }
        }
    }
    found.map(|(at, _)| at)
}
