//! A prefetcher that follows sequential streams of lines.
//!
//! # Approach
//! It sees the lines that miss the L1 data cache. A line next to one that it saw makes
//! a stream, up or down; from then on it asks for the lines up to so many ahead, each
//! once. The stream that was unused longest makes room for a new one.
//!
//! # Properties
//! `a_stream_is_followed_from_its_second_line`, `scattered_lines_are_left_alone`.

/// A stream, or a line that may begin one.
#[derive(Debug, Clone, Copy)]
struct Followed {
    /// The line seen last.
    last: u64,
    /// The furthest line that was asked for.
    asked: u64,
    /// Up (1), down (−1), or not known yet.
    step: i64,
    used: u64,
}

/// The prefetcher of a core.
#[derive(Debug, Clone)]
pub struct Prefetcher {
    streams: Vec<Followed>,
    most: usize,
    ahead: u64,
    clock: u64,
}

impl Prefetcher {
    /// Follows at most so many streams, so many lines ahead; with 0 of either, none.
    #[must_use]
    pub fn new(streams: u32, ahead: u32) -> Self {
        let most = if ahead == 0 { 0 } else { streams as usize };
        Self { streams: Vec::with_capacity(most), most, ahead: ahead.into(), clock: 0 }
    }

    /// A line missed the L1 data cache: the lines to ask for now.
    pub fn saw(&mut self, line: u64) -> impl Iterator<Item = u64> + use<> {
        let (first, step, count) = self.follow(line);
        (0..count).map(move |n| first.wrapping_add_signed(step * n as i64))
    }

    fn follow(&mut self, line: u64) -> (u64, i64, u64) {
        if self.most == 0 {
            return (0, 1, 0);
        }
        self.clock += 1;
        let follows = |stream: &Followed| {
            let moved = line.wrapping_sub(stream.last) as i64;
            match stream.step {
                0 => moved.abs() == 1,
                // Prefetching runs ahead, so that misses may skip a line.
                step => moved == step || moved == 2 * step,
            }
        };
        let known = self.streams.iter().position(|s| s.last == line);
        let found = known.or_else(|| self.streams.iter().position(follows));
        let Some(at) = found else {
            let new = Followed { last: line, asked: line, step: 0, used: self.clock };
            if self.streams.len() < self.most {
                self.streams.push(new);
            } else if let Some(oldest) = self.streams.iter_mut().min_by_key(|s| s.used) {
                *oldest = new;
            }
            return (0, 1, 0);
        };
        let stream = &mut self.streams[at];
        stream.used = self.clock;
        if stream.last == line {
            return (0, 1, 0);
        }
        if stream.step == 0 {
            stream.step = line.wrapping_sub(stream.last) as i64;
            stream.asked = line;
        }
        stream.last = line;
        let step = stream.step;
        let until = line.wrapping_add_signed(step * self.ahead as i64);
        // Where it had asked less far than it is now, it goes on from here.
        let asked = (stream.asked.wrapping_sub(line) as i64 * step).max(0);
        let count = (self.ahead as i64 - asked).max(0) as u64;
        stream.asked = until;
        (line.wrapping_add_signed(step * (asked + 1)), step, count)
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
        assert_eq!(saw(&mut up, 11), [12, 13, 14]);
        assert_eq!(saw(&mut up, 12), [15]);
        assert_eq!(saw(&mut up, 14), [16, 17]);
        let mut down = Prefetcher::new(4, 2);
        assert!(saw(&mut down, 10).is_empty());
        assert_eq!(saw(&mut down, 9), [8, 7]);
        assert_eq!(saw(&mut down, 8), [6]);
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
}
