//! A phase of a profile as an endless stream of operations.
//!
//! # Problem
//! A profile holds a few micro-traces of a thousand instructions each, and the reuse times of their lines.
//! Looped, they would fit into any cache.
//!
//! # Approach
//! The micro-traces are replayed again and again, each time in another order. Classes, dependences and
//! mispredictions are their own. Addresses are chosen so that each access has the reuse time that the trace
//! says, so caches of any size, shared with anyone, see the profile's reuse times; the past that warms the
//! caches is made from the profile's histograms.
//!
//! # What this cannot show
//! Which sets a program really uses (its lines are spread evenly), which branches alias in the predictor (a
//! branch is mispredicted if the profile's predictor of the thread's share of entries mispredicted it), and
//! what micro-traces do not show: a phase is as its few thousand instructions. Captured traces have none of
//! these limits.
//!
//! # Properties
//! `a_phase_is_replayed_as_it_is`, `equal_seeds_give_equal_streams`.

mod places;

use std::collections::VecDeque;

use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use symbiont_profile::{FromStore, MicroOp, OpClass, Phase, ReuseBin};

use self::places::Places;
use crate::levels::Levels;
use crate::op::{Branch, Op};

/// How a phase is to be replayed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Setup {
    /// Distinguishes threads: they share no address. Below 256.
    pub space: u8,
    /// Bytes of the machine's lines: 128 or more, or less.
    pub line: u32,
    /// Lines of its caches, all levels of one thread together.
    pub lines: u64,
    /// The profile's predictor nearest to that of the thread, as an index into
    /// [`symbiont_profile::PREDICTOR_CONFIGS`].
    pub predictor: usize,
    /// The share of its mispredictions that remains.
    pub mispredicts: f64,
    /// Seed of the order of micro-traces.
    pub seed: u64,
}

/// Log₂ of the places of a stream.
const PLACE_BITS: u32 = 54;
/// Pages that are kept.
const PAGES: usize = 1 << 14;

/// An endless replay of a phase.
#[derive(Debug, Clone)]
pub struct Replay<'p> {
    phase: &'p Phase,
    wide: bool,
    shift: u32,
    base: u64,
    bit: usize,
    mispredicts: f64,
    /// Of the branches whose way is not seen in the trace, the share that is taken.
    unseen_taken: f64,
    random: Pcg64Mcg,
    order: Vec<usize>,
    /// Micro-traces of this round that were begun, and the operation in the present one.
    begun: usize,
    at: usize,
    /// Operations that were made, and which of the last ones were stores.
    made: u64,
    stores: VecDeque<u64>,
    data: Places,
    code: Places,
    pages: Places,
    code_pages: Places,
    pc: u64,
    code_page: u64,
}

/// The kinds of places: data and code have addresses of their own.
const CODE: u64 = 1 << 63;

/// Stores that are remembered, and operations within which one stands for a store from before a micro-trace.
const STORES: usize = 128;
const NEAR: u64 = 64;

/// Is it fetched from another line than the operation before? After a branch that
/// mostly means that the branch was taken.
fn leaves_line(op: &MicroOp) -> bool {
    op.fetch.is_some()
}

/// The share of branches that were taken among those after which the line stayed the same, so
/// that all make the share that the profile counted.
fn unseen_taken(phase: &Phase) -> f64 {
    let pairs = || phase.traces.iter().flat_map(|trace| trace.ops.windows(2));
    let branches = pairs().filter(|pair| pair[0].class == OpClass::Branch).count() as f64;
    let seen = |pair: &&[MicroOp]| pair[0].class == OpClass::Branch && leaves_line(&pair[1]);
    let seen = pairs().filter(seen).count() as f64;
    let taken = phase.branches.taken as f64 / phase.branches.executed.max(1) as f64;
    ((taken * branches - seen) / (branches - seen).max(1.0)).clamp(0.0, 1.0)
}

impl<'p> Replay<'p> {
    /// A replay; none of a phase without micro-traces.
    #[must_use]
    pub fn new(phase: &'p Phase, setup: &Setup) -> Option<Self> {
        let order: Vec<usize> =
            (0..phase.traces.len()).filter(|&n| !phase.traces[n].ops.is_empty()).collect();
        if order.is_empty() {
            return None;
        }
        let wide = setup.line >= 128;
        let (data, code) = if wide {
            (&phase.data.line_128, &phase.code.line_128)
        } else {
            (&phase.data.line_64, &phase.code.line_64)
        };
        // What has left all caches need not be known.
        let most = (setup.lines + setup.lines / 4).clamp(64, 1 << 22) as usize;
        let places = |histogram: &symbiont_profile::ReuseHistogram, most| {
            Places::new(&histogram.curve(), most)
        };
        Some(Self {
            phase,
            wide,
            shift: if wide { 7 } else { 6 },
            base: u64::from(setup.space) << PLACE_BITS,
            bit: setup.predictor,
            mispredicts: setup.mispredicts,
            unseen_taken: unseen_taken(phase),
            random: Pcg64Mcg::seed_from_u64(setup.seed),
            begun: order.len(),
            order,
            at: usize::MAX,
            made: 0,
            stores: VecDeque::new(),
            data: places(data, most),
            code: places(code, most),
            pages: places(&phase.data.page, PAGES),
            code_pages: places(&phase.code.page, PAGES),
            pc: 0,
            code_page: 0,
        })
    }

    fn next_trace(&mut self) {
        for places in [&mut self.data, &mut self.code, &mut self.pages, &mut self.code_pages] {
            places.end_pass();
        }
        if self.begun >= self.order.len() {
            self.order.shuffle(&mut self.random);
            self.begun = 0;
        }
        self.begun += 1;
        self.at = 0;
    }

    fn made(&mut self, op: &MicroOp, leaves: bool) -> Op {
        let wide = self.wide;
        if let Some(fetch) = &op.fetch {
            let (line, reuse) =
                if wide { (fetch.line / 2, fetch.reuse_128) } else { (fetch.line, fetch.reuse_64) };
            if reuse != ReuseBin::NONE {
                let place = self.code.access(line, reuse, self.random.random());
                self.pc = (CODE | self.base) + (place << self.shift);
            }
            if fetch.reuse_page != ReuseBin::NONE {
                let share = self.random.random();
                let place = self.code_pages.access(fetch.line / 64, fetch.reuse_page, share);
                self.code_page = (CODE | self.base) + place;
            }
        }
        let (mut address, mut page) = (0, 0);
        if let Some(access) = op.access.as_ref().filter(|_| op.class.is_memory()) {
            let (line, reuse) = if wide {
                (access.line / 2, access.reuse_128)
            } else {
                (access.line, access.reuse_64)
            };
            let place = self.data.access(line, reuse, self.random.random());
            address = self.base + (place << self.shift);
            let share = self.random.random();
            page = self.base + self.pages.access(access.line / 64, access.reuse_page, share);
        }
        let stored = op.stored.and_then(|from| self.store(from));
        if op.class == OpClass::Store {
            self.stores.push_back(self.made);
            if self.stores.len() > STORES {
                self.stores.pop_front();
            }
        }
        self.made += 1;
        let wrong = op.mispredicted_at(self.bit) && self.random.random::<f64>() < self.mispredicts;
        let taken = op.class == OpClass::Branch
            && (leaves || self.random.random::<f64>() < self.unseen_taken);
        Op {
            class: op.class,
            starts_instruction: op.starts_instruction,
            sources: op.sources,
            stored,
            branch: Branch::Given { wrong },
            taken,
            pc: self.pc,
            code_page: self.code_page,
            address,
            page,
        }
    }

    /// The store that the next operation's bytes are from. One from before the micro-trace is taken for the nearest
    /// store about so far back: what was executed before is another one.
    fn store(&self, from: FromStore) -> Option<FromStore> {
        let at = self.made.checked_sub(u64::from(from.back))?;
        let store = self.stores.iter().rev().find(|store| **store <= at)?;
        let near = at - store < NEAR || usize::from(from.back) <= self.at;
        let back = u16::try_from(self.made - store).ok().filter(|_| near)?;
        Some(FromStore { back, ..from })
    }

    /// Where its places begin: what is in the same place of two threads is as far apart as these.
    #[must_use]
    pub fn origin(&self) -> u64 {
        self.base
    }

    /// What a thread must touch, the least recently used first, for caches to be as if it had
    /// run for long.
    #[must_use]
    pub fn past(&self) -> Vec<Touch> {
        let rate = |accesses: u64| self.phase.per_instruction(accesses).max(1e-12);
        let (data, code) = (&self.phase.data, &self.phase.code);
        let lines = if self.wide {
            [data.line_128.accesses, code.line_128.accesses]
        } else {
            [data.line_64.accesses, code.line_64.accesses]
        };
        let rates = [lines[0], lines[1], data.page.accesses, code.page.accesses].map(rate);
        let mut touches = Vec::new();
        let streams = [&self.data, &self.code, &self.pages, &self.code_pages];
        // Every so many lines one that was written.
        let written = self.phase.written_share();
        let mut owed = 0.0;
        for (stream, (places, rate)) in streams.into_iter().zip(rates).enumerate() {
            for (back, place) in places.past() {
                let what = match stream {
                    0 => {
                        owed += written;
                        let writes = owed >= 1.0;
                        owed -= f64::from(u8::from(writes));
                        PastAccess::Data { address: self.base + (place << self.shift), writes }
                    }
                    1 => PastAccess::Code { address: (CODE | self.base) + (place << self.shift) },
                    2 => PastAccess::DataPage(self.base + place),
                    _ => PastAccess::CodePage((CODE | self.base) + place),
                };
                touches.push(Touch { instructions_ago: back as f64 / rate, what });
            }
        }
        touches.sort_by(|a, b| b.instructions_ago.total_cmp(&a.instructions_ago));
        touches
    }
}

/// Something that a thread used before.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Touch {
    /// How long ago.
    pub instructions_ago: f64,
    /// What it was.
    pub what: PastAccess,
}

/// An access to warm a cache with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PastAccess {
    /// A line of data.
    Data {
        /// An address in it.
        address: u64,
        /// Is it a store?
        writes: bool,
    },
    /// A line of instructions.
    Code {
        /// An address in it.
        address: u64,
    },
    /// A page of data.
    DataPage(u64),
    /// A page of instructions.
    CodePage(u64),
}

impl PastAccess {
    /// Touches it outside of time.
    pub fn warm(self, levels: &mut Levels, user: usize) {
        match self {
            Self::Data { address, writes } => levels.warm_data(user, address, writes),
            Self::Code { address } => levels.warm_code(user, address),
            Self::DataPage(page) => levels.warm_data_page(user, page),
            Self::CodePage(page) => levels.warm_code_page(user, page),
        }
    }
}

impl Iterator for Replay<'_> {
    type Item = Op;

    fn next(&mut self) -> Option<Op> {
        let phase = self.phase;
        let trace = |begun: usize, order: &[usize]| {
            begun.checked_sub(1).and_then(|n| order.get(n)).and_then(|&n| phase.traces.get(n))
        };
        let mut op = trace(self.begun, &self.order).and_then(|trace| trace.ops.get(self.at));
        if op.is_none() {
            self.next_trace();
            op = trace(self.begun, &self.order).and_then(|trace| trace.ops.first());
        }
        let next = trace(self.begun, &self.order).and_then(|trace| trace.ops.get(self.at + 1));
        let leaves = next.is_some_and(leaves_line);
        let made = op.map(|op| self.made(op, leaves));
        self.at += 1;
        made
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use symbiont_profile::test_support as synthetic;

    use super::*;

    const SETUP: Setup =
        Setup { space: 3, line: 64, lines: 10_000, predictor: 0, mispredicts: 1.0, seed: 1 };

    #[test]
    fn equal_seeds_give_equal_streams() {
        let profile = synthetic::branchy();
        let ops = |seed| {
            let replay = Replay::new(&profile.phases[0], &Setup { seed, ..SETUP }).unwrap();
            replay.take(30_000).collect::<Vec<_>>()
        };
        assert!(ops(1) == ops(1));
        assert!(ops(1) != ops(2));
    }

    #[test]
    fn a_phase_is_replayed_as_it_is() {
        for profile in [synthetic::pointer_chasing(1_000), synthetic::streaming()] {
            let phase = &profile.phases[0];
            let ops: Vec<Op> = Replay::new(phase, &SETUP).unwrap().take(200_000).collect();
            let loads = ops.iter().filter(|op| op.class == OpClass::Load).count() as f64;
            let expected = phase.per_instruction(phase.mix.count(OpClass::Load));
            assert!((loads / 2e5 - expected).abs() < 0.01, "{loads}");
            // Miss ratio of a cache of 512 lines, fully associative, by a plain list.
            let mut time = HashMap::new();
            let (mut clock, mut misses, mut accesses) = (0_u64, 0_u64, 0_u64);
            for op in ops.iter().filter(|op| op.class.is_memory()) {
                clock += 1;
                let before = time.insert(op.address >> 6, clock);
                let Some(before) = before else {
                    misses += u64::from(clock > 20_000);
                    accesses += u64::from(clock > 20_000);
                    continue;
                };
                accesses += u64::from(clock > 20_000);
                let window = clock - before;
                let reach = phase.data.line_64.curve().reach(512.0);
                misses += u64::from(clock > 20_000 && window as f64 > reach);
            }
            let (ratio, expected) =
                (misses as f64 / accesses as f64, phase.data.line_64.curve().misses(512.0));
            assert!((ratio - expected).abs() < 0.1 * expected.max(0.05), "{ratio} {expected}");
        }
    }
}
