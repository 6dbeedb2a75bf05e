//! A prefetcher that follows sequential streams of lines.
//!
//! # Approach
//! It sees the lines that miss the L1 data cache. A line next to one that it saw makes
//! a stream, up or down; from then on it asks for the lines up to so many ahead, each
//! once, but for no more than two at a time: Intel's streamer issues up to two requests for each look-up in
//! the L2 (Optimization Reference Manual, data prefetch to the L2), and POWER reaches its depth by and by
//! too (POWER7 Optimization and Tuning Guide, depth attainment urgency; how fast is assumed to be alike).
//! So what begins like a stream and ends there costs two lines.
//!
//! Lines that may begin a stream are kept apart from streams (the unit stride filter of
//! Palacharla and Kessler, ISCA 1994), so that scattered misses displace no stream: what was
//! unused longest makes room, among the lines for a line, among the streams for a stream.
//! Where scattered misses come between a stream's first lines, a small filter finds it late, by
//! chance: after more instructions than are simulated here, in which one of two equal threads would stay
//! without. So the filter is a large one: four lines for each stream.
//!
//! Most lines that miss are near none of those that are kept, so how many of these lie in each neighbourhood is
//! counted: only where there are any are they searched.
//!
//! # Properties
//! `a_stream_is_followed_from_its_second_line`, `scattered_lines_are_left_alone`,
//! `scattered_lines_displace_no_stream`, `neighbours_are_found_across_borders`.

use std::collections::VecDeque;

/// Lines that may begin a stream, for each stream that can be followed.
const FILTER: usize = 4;

/// Lines that are asked for at a time.
const AT_A_TIME: i64 = 2;

/// A stream.
#[derive(Debug, Clone, Copy)]
struct TrackedStream {
    /// The line seen last.
    last: u64,
    /// The furthest line that was asked for.
    asked: u64,
    /// Up (1) or down (−1).
    step: i64,
    used: u64,
}

impl TrackedStream {
    fn goes_on_with(&self, line: u64) -> bool {
        let moved = line.wrapping_sub(self.last) as i64;
        // Prefetching runs ahead, so that misses may skip a line.
        moved == 0 || moved == self.step || moved == 2 * self.step
    }
}

/// Counters of neighbourhoods, and log₂ of the lines of each.
const COUNTERS: usize = 1 << 10;
const NEIGHBOURHOOD: u32 = 2;
/// How far a line may be from one that it goes with.
const NEAR: u64 = 2;

/// How many lines are kept in each neighbourhood.
#[derive(Debug, Clone)]
struct Neighbourhoods {
    kept: Vec<u32>,
}

impl Neighbourhoods {
    fn new() -> Self {
        Self { kept: vec![0; COUNTERS] }
    }

    fn of(line: u64) -> usize {
        (line >> NEIGHBOURHOOD) as usize % COUNTERS
    }

    fn add(&mut self, line: u64) {
        self.kept[Self::of(line)] += 1;
    }

    fn remove(&mut self, line: u64) {
        self.kept[Self::of(line)] -= 1;
    }

    /// Might a line be kept that is near this one?
    fn may_hold_near(&self, line: u64) -> bool {
        let kept = |line: u64| self.kept[Self::of(line)];
        kept(line.wrapping_sub(NEAR)) + kept(line.wrapping_add(NEAR)) > 0
    }
}

/// The prefetcher of a core.
#[derive(Debug, Clone)]
pub struct Prefetcher {
    /// Lines seen last that belong to no stream, the oldest first.
    scattered: VecDeque<u64>,
    streams: Vec<TrackedStream>,
    /// Of the scattered lines, and of those that streams saw last.
    near: Neighbourhoods,
    most: usize,
    ahead: u64,
    clock: u64,
}

impl Prefetcher {
    /// Follows at most so many streams, so many lines ahead; with 0 of either, none.
    #[must_use]
    pub fn new(streams: u32, ahead: u32) -> Self {
        let most = if ahead == 0 { 0 } else { streams as usize };
        Self {
            scattered: VecDeque::with_capacity(FILTER * most),
            streams: Vec::with_capacity(most),
            near: Neighbourhoods::new(),
            most,
            ahead: ahead.into(),
            clock: 0,
        }
    }

    /// A line missed the L1 data cache: the lines to ask for now.
    pub fn saw(&mut self, line: u64) -> impl Iterator<Item = u64> + use<> {
        let (first, step, count) = if self.most == 0 { (0, 1, 0) } else { self.follow(line) };
        (0..count).map(move |n| first.wrapping_add_signed(step * n as i64))
    }

    fn follow(&mut self, line: u64) -> (u64, i64, u64) {
        self.clock += 1;
        if !self.near.may_hold_near(line) {
            self.scatter(line);
            return (0, 1, 0);
        }
        let known = self.streams.iter().position(|stream| stream.goes_on_with(line));
        let Some(at) = known.or_else(|| self.begin(line)) else { return (0, 1, 0) };
        let stream = &mut self.streams[at];
        stream.used = self.clock;
        if stream.last == line {
            return (0, 1, 0);
        }
        self.near.remove(stream.last);
        self.near.add(line);
        stream.last = line;
        let step = stream.step;
        // Where it had asked less far than it is now, it goes on from here.
        let asked = (stream.asked.wrapping_sub(line) as i64 * step).max(0);
        let count = (self.ahead as i64 - asked).clamp(0, AT_A_TIME);
        stream.asked = line.wrapping_add_signed(step * (asked + count));
        (line.wrapping_add_signed(step * (asked + 1)), step, count as u64)
    }

    /// The line makes a stream with one that was seen, or is kept because another may.
    fn begin(&mut self, line: u64) -> Option<usize> {
        let Some(at) = self.scattered.iter().position(|seen| seen.abs_diff(line) <= 1) else {
            self.scatter(line);
            return None;
        };
        let last = self.scattered[at];
        if last == line {
            return None;
        }
        // From now on it is what a stream saw last, so its neighbourhood keeps it.
        self.scattered.remove(at);
        let step = line.wrapping_sub(last) as i64;
        let new = TrackedStream { last, asked: last, step, used: self.clock };
        if self.streams.len() < self.most {
            self.streams.push(new);
            return Some(self.streams.len() - 1);
        }
        let oldest = (0..self.streams.len()).min_by_key(|&at| self.streams[at].used)?;
        let old = std::mem::replace(&mut self.streams[oldest], new);
        self.near.remove(old.last);
        Some(oldest)
    }

    /// Keeps a line because another may make a stream with it.
    fn scatter(&mut self, line: u64) {
        if self.scattered.len() == FILTER * self.most {
            if let Some(oldest) = self.scattered.pop_front() {
                self.near.remove(oldest);
            }
        }
        self.scattered.push_back(line);
        self.near.add(line);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn saw(prefetcher: &mut Prefetcher, line: u64) -> Vec<u64> {
        prefetcher.saw(line).collect()
    }

    #[test]
    fn a_stream_is_followed_from_its_second_line() {
        let mut up = Prefetcher::new(4, 3);
        assert!(saw(&mut up, 10).is_empty());
        assert_eq!(saw(&mut up, 11), [12, 13]);
        assert_eq!(saw(&mut up, 12), [14, 15]);
        assert_eq!(saw(&mut up, 14), [16, 17]);
        let mut down = Prefetcher::new(4, 2);
        assert!(saw(&mut down, 10).is_empty());
        assert_eq!(saw(&mut down, 9), [8, 7]);
        assert_eq!(saw(&mut down, 8), [6]);
    }

    /// Wherever a pair of lines lies, and whatever else is kept.
    #[test]
    fn neighbours_are_found_across_borders() {
        for first in 1000..1020 {
            let mut up = Prefetcher::new(8, 2);
            for line in (0..31).map(|other| 5000 + 7 * other) {
                assert!(saw(&mut up, line).is_empty());
            }
            assert!(saw(&mut up, first).is_empty());
            assert_eq!(saw(&mut up, first + 1), [first + 2, first + 3]);
            // One is skipped.
            assert_eq!(saw(&mut up, first + 3), [first + 4, first + 5]);
            let mut down = Prefetcher::new(8, 2);
            assert!(saw(&mut down, first).is_empty());
            assert_eq!(saw(&mut down, first - 1), [first - 2, first - 3]);
        }
    }

    #[test]
    fn scattered_lines_are_left_alone() {
        let mut prefetcher = Prefetcher::new(2, 4);
        for line in [5, 50, 500, 7, 52, 502, 9] {
            assert!(saw(&mut prefetcher, line).is_empty());
        }
        let mut off = Prefetcher::new(0, 4);
        assert!(saw(&mut off, 1).is_empty() && saw(&mut off, 2).is_empty());
    }

    #[test]
    fn scattered_lines_displace_no_stream() {
        let mut prefetcher = Prefetcher::new(4, 2);
        saw(&mut prefetcher, 100);
        saw(&mut prefetcher, 101);
        for line in 0..100 {
            assert!(saw(&mut prefetcher, 1000 + 7 * line).is_empty());
        }
        assert_eq!(saw(&mut prefetcher, 102), [104]);
    }
}
