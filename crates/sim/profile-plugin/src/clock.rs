//! When each line of a stream was last accessed.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use symbiont_profile::trace::{Line, MOST_LINES};
use symbiont_profile::{Access, ReuseBin, Stream};

/// Lines of 64 bytes in a page of 4 KiB.
const LINES: usize = 64;
/// Entries of the cache of recently used pages: a power of two.
const RECENT: usize = 4096;

/// Times of the last accesses to the lines of one page; 0 is never.
#[derive(Debug, Clone)]
struct Page {
    lines: [u64; LINES],
    /// Of code only: data has one time for all, so the later one of two lines is that of both.
    doubles: [u64; LINES / 2],
    page: u64,
    /// Bit i: line i was written in the last interval in which the page was touched.
    written: u64,
}

/// Spreads page numbers over a hash table; nothing hostile chooses them.
#[derive(Debug, Default)]
struct PageHasher(u64);

impl Hasher for PageHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }
    fn write_u64(&mut self, value: u64) {
        self.0 = (self.0 ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(26);
    }
}

/// What was counted in an interval: accesses by bin and by cache set.
#[derive(Debug, Clone)]
pub struct Counts {
    /// By bin, for lines of 64 and 128 bytes and pages; index 255 is cold.
    pub bins: [[u64; 256]; 3],
    /// By set of a cache of 1,024 sets and octave of the bin; see [`octave`].
    pub sets: Vec<[u32; OCTAVES]>,
    /// Distinct lines touched, written, and pages touched.
    pub touched: [u64; 3],
}

/// Octaves of bins, the last one for cold accesses.
pub const OCTAVES: usize = ReuseBin::COUNT / 4 + 1;
/// Sets that accesses are counted by.
pub const SETS: usize = 1024;

/// The octave of a bin: its index / 4.
#[inline]
pub fn octave(bin: ReuseBin) -> usize {
    usize::from(bin.code() / 4).min(OCTAVES - 1)
}

impl Counts {
    fn new() -> Self {
        Self { bins: [[0; 256]; 3], sets: vec![[0; OCTAVES]; SETS], touched: [0; 3] }
    }
}

/// The line that was accessed last, whose times are written when it is left.
#[derive(Debug, Clone, Copy)]
struct Current {
    line: u64,
    page: usize,
}

/// The clock of one stream.
///
/// Each granularity has its own time: the data stream advances all three with
/// every access; the code stream only those whose line (or page) changed.
#[derive(Debug)]
pub struct Clock {
    now: [u64; 3],
    pages: Vec<Page>,
    index: HashMap<u64, usize, BuildHasherDefault<PageHasher>>,
    recent: Vec<(u64, usize)>,
    current: Option<Current>,
    /// Accesses to the current line since it was entered, the first excepted.
    repeats: u64,
    /// The time at which the interval began.
    start: [u64; 3],
    counts: Counts,
}

impl Default for Clock {
    fn default() -> Self {
        Self::new()
    }
}

/// The bin's slot in [`Counts::bins`].
#[inline]
fn slot(bin: ReuseBin) -> usize {
    usize::from(bin.code())
}

impl Clock {
    /// A clock before the first access.
    pub fn new() -> Self {
        Self {
            now: [0; 3],
            pages: Vec::new(),
            index: HashMap::default(),
            recent: vec![(u64::MAX, 0); RECENT],
            current: None,
            repeats: 0,
            start: [0; 3],
            counts: Counts::new(),
        }
    }

    /// The line that was accessed last.
    pub fn current(&self) -> Option<u64> {
        self.current.map(|current| current.line)
    }

    #[inline]
    fn page(&mut self, number: u64) -> usize {
        let (tag, found) = self.recent[number as usize % RECENT];
        if tag == number { found } else { self.look_up(number) }
    }

    #[cold]
    fn look_up(&mut self, number: u64) -> usize {
        let next = self.pages.len();
        let index = *self.index.entry(number).or_insert(next);
        if index == next {
            self.pages.push(Page {
                lines: [0; LINES],
                doubles: [0; LINES / 2],
                page: 0,
                written: 0,
            });
        }
        self.recent[number as usize % RECENT] = (number, index);
        index
    }

    /// Writes the times of the current line, which is being left.
    #[inline]
    fn leave(&mut self, stream: Stream) {
        let Some(Current { line, page }) = self.current else { return };
        let page = &mut self.pages[page];
        let within = line as usize % LINES;
        page.lines[within] = self.now[0];
        if stream == Stream::Instruction {
            page.doubles[within / 2] = self.now[1];
        }
        page.page = self.now[2];
    }

    /// One data access to the 64-byte line `line`.
    #[inline(always)]
    pub fn data(&mut self, line: u64, store: bool) -> Access {
        if let Some(current) = self.current.filter(|current| current.line == line) {
            self.now = self.now.map(|now| now + 1);
            self.repeats += 1;
            if store {
                self.pages[current.page].written |= 1 << (line as usize % LINES);
            }
            let again = ReuseBin::of(1);
            return Access { line, reuse_64: again, reuse_128: again, reuse_page: again };
        }
        self.settle();
        self.enter(Stream::Data, line, store, [true; 3])
    }

    /// One fetch, from another line than the fetch before.
    pub fn fetch(&mut self, line: u64) -> Access {
        let before = self.current();
        let left = |factor: u64| before.is_none_or(|before| before / factor != line / factor);
        self.enter(Stream::Instruction, line, false, [true, left(2), left(LINES as u64)])
    }

    /// In each of the two callers, what the other one needs is left out.
    #[inline(always)]
    fn enter(&mut self, stream: Stream, line: u64, store: bool, counted: [bool; 3]) -> Access {
        self.leave(stream);
        let index = self.page(line / LINES as u64);
        for (now, counted) in self.now.iter_mut().zip(counted) {
            *now += u64::from(counted);
        }
        let now = self.now;
        let page = &mut self.pages[index];
        let within = line as usize % LINES;
        let double = match stream {
            Stream::Data => page.lines[within].max(page.lines[within ^ 1]),
            Stream::Instruction => page.doubles[within / 2],
        };
        let last = [page.lines[within], double, page.page];
        if stream == Stream::Data {
            if page.page <= self.start[2] {
                page.written = 0;
            }
            page.written |= u64::from(store) << within;
        }
        let mut bins = [ReuseBin::NONE; 3];
        for level in 0..3 {
            if counted[level] {
                bins[level] = match last[level] {
                    0 => ReuseBin::COLD,
                    last => ReuseBin::of(now[level] - last),
                };
                self.counts.bins[level][slot(bins[level])] += 1;
            }
        }
        self.counts.sets[line as usize % SETS][octave(bins[0])] += 1;
        self.current = Some(Current { line, page: index });
        Access { line, reuse_64: bins[0], reuse_128: bins[1], reuse_page: bins[2] }
    }

    /// Counts the repeated accesses to the current line.
    #[inline]
    fn settle(&mut self) {
        let Some(current) = self.current else { return };
        if self.repeats > 0 {
            let again = ReuseBin::of(1);
            for bins in &mut self.counts.bins {
                bins[slot(again)] += self.repeats;
            }
            let set = &mut self.counts.sets[current.line as usize % SETS][octave(again)];
            *set = set.saturating_add(u32::try_from(self.repeats).unwrap_or(u32::MAX));
            self.repeats = 0;
        }
    }

    /// What was counted since the last [`Clock::take`].
    pub fn so_far(&mut self) -> Counts {
        self.settle();
        self.leave(Stream::Instruction);
        let [start, _, page_start] = self.start;
        self.counts.touched = [0; 3];
        for page in self.pages.iter().filter(|page| page.page > page_start) {
            let lines = page.lines.iter().filter(|time| **time > start).count() as u64;
            let more = [lines, u64::from(page.written.count_ones()), 1];
            for (sum, more) in self.counts.touched.iter_mut().zip(more) {
                *sum += more;
            }
        }
        self.counts.clone()
    }

    /// The lines that were accessed last, at most [`MOST_LINES`], the least recently
    /// used first.
    pub fn recent(&mut self) -> Vec<Line> {
        self.leave(Stream::Instruction);
        let mut times: Vec<(u64, Line)> = Vec::new();
        for (number, index) in &self.index {
            let page = &self.pages[*index];
            for (within, time) in page.lines.iter().enumerate().filter(|(_, time)| **time > 0) {
                let line = number * LINES as u64 + within as u64;
                times.push((*time, Line { line, written: page.written >> within & 1 == 1 }));
            }
        }
        let spare = times.len().saturating_sub(MOST_LINES);
        if spare > 0 {
            times.select_nth_unstable_by_key(spare, |(time, _)| *time);
            times.drain(..spare);
        }
        times.sort_unstable_by_key(|(time, _)| *time);
        times.into_iter().map(|(_, line)| line).collect()
    }

    /// What was counted since the last call. Times of accesses are kept; a line that is accessed again counts as
    /// touched once more.
    pub fn take(&mut self) -> Counts {
        let counts = self.so_far();
        self.current = None;
        self.start = self.now;
        self.counts = Counts::new();
        counts
    }
}

#[cfg(test)]
mod tests;
