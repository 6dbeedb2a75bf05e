//! How far each thread reaches in each cache that it shares.
//!
//! # Approach
//! The steady state is [`shared_reach`] of each instance. In the L2 and the last level
//! a thread's part takes time to become steady ([`Filling`]).
//!
//! Threads in the same phase of the same program have the same code, which the OS keeps once:
//! in instruction caches and buffers they count as one, the fastest of them.

use super::footprint::{Footprint, shared_reach};
use super::occupancy::Filling;
use super::pipeline::{Environment, Level, REACHES};
use super::tasks::{Groups, Task};

/// Lines that a thread holds of its L2 and its last level; absent: nothing is known, it
/// holds its steady part.
pub type Held = [Option<f64>; 2];

/// What a thread holds at the end of a span.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct After {
    /// Lines.
    pub held: Held,
    /// Is that not yet its steady part, by level?
    pub changing: [bool; 2],
}

/// Where the occupancy of a level is kept.
pub fn kept(level: Level) -> Option<usize> {
    match level {
        Level::L2 => Some(0),
        Level::Last => Some(1),
        _ => None,
    }
}

/// Does a thread's part of this level take notable time to settle?
pub fn relaxes(level: usize) -> bool {
    Level::ALL.get(level).is_some_and(|level| kept(*level).is_some())
}

/// How long what is held takes to change.
#[derive(Debug, Clone, Copy)]
pub struct Span<'a> {
    /// Over how many ns the mean is wanted; none: the steady state.
    pub ns: Option<f64>,
    /// What each thread held at its beginning.
    pub held: &'a [Held],
}

/// What the caches give each thread: per level the reach, log₂ instructions.
pub type Reaches = [f64; REACHES];

/// Sets the reaches of those that share each of the `groups` for which `wanted` says so;
/// `speeds` are log₂ of instructions per ns. Tells in `after` what is held at
/// the end of the span. `reaches` hold the last ones, from which the search begins.
pub fn set(
    groups: &Groups,
    tasks: &[Task<'_>],
    speeds: &[f64],
    span: Span<'_>,
    wanted: impl Fn(Level, &[usize]) -> bool,
    reaches: &mut [Reaches],
    after: &mut [After],
) {
    let mut threads: Vec<(&Footprint, f64)> = Vec::with_capacity(tasks.len());
    for (level, lines, members) in groups.iter() {
        if !wanted(level, members) {
            continue;
        }
        let at = level as usize;
        threads.clear();
        let footprint = |member: usize| &tasks[member].phase.footprints[at];
        if matches!(level, Level::L1i | Level::CodeTlb) {
            let of = |member: usize| tasks[member].phase.fingerprint;
            for (place, &member) in members.iter().enumerate() {
                if members[..place].iter().all(|&before| of(before) != of(member)) {
                    let alike = members[place..].iter().filter(|&&other| of(other) == of(member));
                    let fastest = alike.map(|&other| speeds[other]).fold(speeds[member], f64::max);
                    threads.push((footprint(member), fastest));
                }
            }
        } else {
            threads.extend(members.iter().map(|&member| (footprint(member), speeds[member])));
        }
        let guess = members.first().map(|&first| reaches[first][at] - speeds[first]);
        let time = shared_reach(lines, &threads, guess.filter(|guess| guess.is_finite()));
        let slot = kept(level);
        if let (Some(slot), Some(ns)) = (slot, span.ns) {
            let missed = |(f, speed): &(&Footprint, f64)| f.misses(time + speed) * speed.exp2();
            let all: f64 = threads.iter().map(missed).sum();
            for (&member, &(footprint, speed)) in members.iter().zip(&threads) {
                let steady = time + speed;
                let before = span.held[member][slot].unwrap_or_else(|| footprint.lines(steady));
                let refill = all / lines;
                let part = Filling { footprint, before, steady, speed, refill }.over(ns);
                reaches[member][at] = part.reach;
                after[member].held[slot] = Some(part.held);
                after[member].changing[slot] = part.changing;
            }
            continue;
        }
        for &member in members {
            reaches[member][at] = time + speeds[member];
        }
    }
}

/// Copies the reaches: what the L2 reaches, the last level does too.
pub fn hand_over(reaches: &Reaches, environment: &mut Environment) {
    environment.reach = *reaches;
    let last = &mut environment.reach[Level::Last as usize];
    *last = last.max(reaches[Level::L2 as usize]);
}
