//! Micro-traces prepared for the window model.
//!
//! # Problem
//! A profile counts reuse times in accesses and bins; the window model compares them with reaches, in
//! instructions, millions of times.
//!
//! # Approach
//! All micro-traces of a phase are laid end to end, so that filling and draining the window at their ends
//! counts little. A source that lies before its own micro-trace is ready. Reuse times become
//! instructions: divided by the stream's accesses per instruction, and spread over their bin by the
//! golden ratio, as the reuse curve spreads them.
//!
//! Accesses that a prefetcher covers are marked, with how long their stream rested ([`streams`]). A branch
//! is taken if the next instruction line is not the following one; of the others as many are marked taken
//! as the profile counted.
//!
//! [`streams`]: super::streams

use std::collections::HashMap;

use symbiont_profile::{
    Access, FromStore, MicroOp, MicroTrace, OpClass, Phase, ReuseBin, ReuseHistogram,
};

use super::pipeline::CacheLevel;
use super::streams::{self, CoveredAccesses, LastTouch, NO_TRIGGER};

/// A reuse time, in instructions, that no L1 cache bridges.
const LONG: f32 = 1e5;
/// Operations within which a store stands for one from before its piece.
const NEAR: usize = 64;

/// One micro-operation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Op {
    /// Reuse time of the data line, instructions; infinite if cold.
    pub reuse: f32,
    /// Of the data page.
    pub page: f32,
    /// Of the instruction line; 0 where no other line is fetched.
    pub fetch: f32,
    /// Of the instruction page; 0 where no other page is fetched.
    pub fetch_page: f32,
    /// The data line, by number in this trace.
    pub line: u32,
    /// How many operations before this one the prefetch of its line was
    /// triggered; or [`NO_TRIGGER`] or [`EARLIER`](super::streams::EARLIER).
    pub trigger: u32,
    /// For how many instructions its stream had rested; 0 where no prefetch covers it.
    pub rested: f32,
    /// How many operations before this one its sources were made; 0: none.
    pub sources: [u16; 2],
    /// The store that wrote what it reads.
    pub stored: Option<FromStore>,
    /// What it does.
    pub class: OpClass,
    /// Bit i: mispredicted by a predictor of the profile's i-th size.
    pub mispredicted: u8,
    /// Does fetch go on elsewhere after it?
    pub taken: bool,
}

/// One of the micro-traces.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Piece {
    /// Operations up to its end.
    pub end: usize,
    /// Instructions that it makes.
    pub instructions: f64,
}

/// The micro-traces of a phase, end to end.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Trace {
    /// In program order.
    pub ops: Vec<Op>,
    /// Which of them belong together.
    pub pieces: Vec<Piece>,
    /// Instructions that they make.
    pub instructions: f64,
    /// Different data lines, numbered from 0.
    pub lines: u32,
    /// Share of the accesses that open a line not used for long that a prefetch covers.
    pub covered: f64,
    /// Lines that a prefetcher brings in vain, with the reuse times of the runs that they are at the
    /// end of; times are counted in such lines.
    pub overshoot: ReuseHistogram,
    /// Streams that the prefetcher sees, with how long they rested; times are counted in such looks.
    pub streams: ReuseHistogram,
}

/// Reuse times in instructions.
struct Clock {
    /// Instructions per access of each stream: data lines, data pages,
    /// instruction lines, instruction pages.
    step: [f64; 4],
    drawn: u32,
}

impl Clock {
    fn instructions(&mut self, bin: ReuseBin, stream: usize) -> f32 {
        let (Some(low), Some(high)) = (bin.shortest(), bin.longest()) else {
            return f32::INFINITY;
        };
        if bin == ReuseBin::NONE {
            return 0.0;
        }
        self.drawn = self.drawn.wrapping_add(0x9E37_79B9);
        let share = f64::from(self.drawn) / f64::from(u32::MAX);
        let accesses = low as f64 + share * (high - low) as f64;
        (accesses * self.step[stream]) as f32
    }
}

fn line_of(access: &Access, wide: bool) -> u64 {
    if wide { access.line / 2 } else { access.line }
}

/// Operations that touch data, and which line.
fn accesses(piece: &MicroTrace, wide: bool) -> Vec<(u32, u64)> {
    let data = |(index, op): (usize, &MicroOp)| {
        let access = op.access.as_ref().filter(|_| op.class.is_memory())?;
        Some((index as u32, line_of(access, wide)))
    };
    piece.ops.iter().enumerate().filter_map(data).collect()
}

/// Lines that come in vain; so many accesses are made meanwhile.
fn overshoot(
    phase: &Phase,
    wide: bool,
    ahead: u32,
    triggers: &[CoveredAccesses],
    all: f64,
) -> ReuseHistogram {
    let mut lines: Vec<(ReuseBin, u32)> = Vec::new();
    for (piece, covered) in phase.traces.iter().zip(triggers) {
        let end = piece.ops.len() as u32;
        let ends = streams::overshoots(&accesses(piece, wide), covered, end, ahead);
        lines.extend(ends.into_iter().filter_map(|(index, count)| {
            let access = piece.ops.get(index as usize)?.access.as_ref()?;
            let reuse = if wide { access.reuse_128 } else { access.reuse_64 };
            // The prefetcher sees what misses the first cache.
            streams::for_long(reuse).then_some((reuse, count))
        }));
    }
    let count: u32 = lines.iter().map(|(_, count)| count).sum();
    let part = f64::from(count) / all.max(1.0);
    let mut histogram = ReuseHistogram { accesses: count.into(), ..ReuseHistogram::default() };
    for (reuse, count) in lines {
        let time = reuse.shortest().zip(reuse.longest());
        let scaled = |(low, high): (u64, u64)| (low as f64 + high as f64) / 2.0 * part;
        let bin = time.map_or(ReuseBin::COLD, |time| ReuseBin::of(scaled(time).max(1.0) as u64));
        histogram.add(bin, count.into());
    }
    histogram
}

/// By micro-trace: what a prefetcher covers.
fn triggers(phase: &Phase, wide: bool, ahead: u32) -> Vec<CoveredAccesses> {
    let of_piece = |piece: &MicroTrace| streams::triggers(&accesses(piece, wide), ahead);
    let mut triggers: Vec<_> = phase.traces.iter().map(of_piece).collect();
    if ahead > 0 {
        streams::slow_runs(&phase.traces, &mut triggers);
    }
    triggers
}

impl Trace {
    /// The micro-traces of `phase` for a machine with lines of `line` bytes
    /// whose prefetcher runs `ahead` lines ahead.
    #[must_use]
    pub fn new(phase: &Phase, line: u32, ahead: u32) -> Self {
        let wide = line >= 128;
        let lines = if wide {
            [&phase.data.line_128, &phase.code.line_128]
        } else {
            [&phase.data.line_64, &phase.code.line_64]
        };
        let streams = [lines[0], &phase.data.page, lines[1], &phase.code.page];
        let rate = streams.map(|histogram| phase.per_instruction(histogram.accesses));
        let step = rate.map(|rate| if rate > 0.0 { 1.0 / rate } else { 1.0 });
        let mut clock = Clock { step, drawn: 0 };
        let mut trace = Self::default();
        let triggers = triggers(phase, wide, ahead);
        for (piece, triggers) in phase.traces.iter().zip(&triggers) {
            trace.append(piece, wide, triggers, &mut clock);
        }
        trace.overshoot = overshoot(phase, wide, ahead, &triggers, trace.instructions * rate[0]);
        if ahead > 0 {
            trace.streams = trace.streams(phase, wide);
        }
        trace.mark_taken(phase.branches.taken as f64 / phase.branches.executed.max(1) as f64);
        let long = || trace.ops.iter().filter(|op| op.class.is_memory() && op.reuse > LONG);
        let covered = long().filter(|op| op.trigger != NO_TRIGGER).count();
        trace.covered = covered as f64 / long().count().max(1) as f64;
        trace
    }

    fn append(
        &mut self,
        piece: &MicroTrace,
        wide: bool,
        triggers: &CoveredAccesses,
        clock: &mut Clock,
    ) {
        let mut numbers: HashMap<u64, u32> = HashMap::new();
        let mut code = None;
        let before = self.instructions;
        let begin = piece.ops.iter().filter(|op| op.starts_instruction).count();
        let per_op = begin as f32 / piece.ops.len().max(1) as f32;
        // What is drawn of rests changes nothing that is drawn of reuse times.
        let mut rests = Clock { step: clock.step, drawn: 0 };
        for (index, op) in piece.ops.iter().enumerate() {
            let reuse = |access: &Access| if wide { access.reuse_128 } else { access.reuse_64 };
            let mut new = Op {
                reuse: 0.0,
                page: 0.0,
                fetch: 0.0,
                fetch_page: 0.0,
                line: 0,
                trigger: NO_TRIGGER,
                rested: 0.0,
                sources: op.sources.map(|d| if usize::from(d) > self.ops.len() { 0 } else { d }),
                stored: op.stored.and_then(|from| self.store(from, index)),
                class: op.class,
                mispredicted: op.mispredicted,
                taken: false,
            };
            if let Some(access) = op.access.as_ref().filter(|_| op.class.is_memory()) {
                let line = line_of(access, wide);
                let next = self.lines;
                new.line = *numbers.entry(line).or_insert(next);
                self.lines = self.lines.max(new.line + 1);
                new.reuse = clock.instructions(reuse(access), 0);
                new.page = clock.instructions(access.reuse_page, 1);
                if let Some(covered) = triggers.get(&(index as u32)) {
                    new.trigger = covered.trigger;
                    new.rested = match covered.rested {
                        LastTouch::Operations(count) => count as f32 * per_op,
                        LastTouch::Pair => rests.instructions(access.reuse_128, 0),
                        LastTouch::Page => rests.instructions(access.reuse_page, 1),
                    };
                }
            }
            if let Some(fetch) = &op.fetch {
                let here = fetch.line;
                if code.is_some_and(|line: u64| here != line && Some(here) != line.checked_add(1)) {
                    self.leave();
                }
                code = Some(here);
                new.fetch = clock.instructions(reuse(fetch), 2);
                new.fetch_page = clock.instructions(fetch.reuse_page, 3);
            }
            self.ops.push(new);
            self.instructions += f64::from(u8::from(op.starts_instruction));
        }
        let instructions = self.instructions - before;
        self.pieces.push(Piece { end: self.ops.len(), instructions });
    }

    /// The store that the next operation's bytes are from, at some place of its piece. One from before the piece is
    /// taken for the nearest store about so far back: what was executed before is another piece.
    fn store(&self, from: FromStore, place: usize) -> Option<FromStore> {
        if usize::from(from.back) <= place {
            return Some(from);
        }
        let at = self.ops.len().checked_sub(usize::from(from.back))?;
        let before = self.ops.get(..=at)?.iter().rev().take(NEAR);
        let further = before.map(|op| op.class).position(|class| class == OpClass::Store)?;
        Some(FromStore { back: from.back.checked_add(u16::try_from(further).ok()?)?, ..from })
    }

    /// Streams as the prefetcher sees them: lines that a first cache has lost.
    fn streams(&self, phase: &Phase, wide: bool) -> ReuseHistogram {
        let lost = |op: &&MicroOp| {
            let access = op.access.as_ref().filter(|_| op.class.is_memory());
            access.is_some_and(|access| {
                streams::for_long(if wide { access.reuse_128 } else { access.reuse_64 })
            })
        };
        let recorded = phase.traces.iter().flat_map(|piece| &piece.ops);
        let both = self.ops.iter().zip(recorded);
        let covered = both.filter(|(op, recorded)| op.trigger != NO_TRIGGER && lost(recorded));
        let rests: Vec<f32> = covered.map(|(op, _)| op.rested).collect();
        let begun = phase.traces.iter().map(|piece| {
            let accesses = accesses(piece, wide);
            streams::begun(&accesses)
                .filter(|index| piece.ops.get(*index as usize).as_ref().is_some_and(lost))
                .count()
        });
        let begun: usize = begun.sum();
        let looks = rests.len() + begun;
        let mut histogram = ReuseHistogram { accesses: looks as u64, ..ReuseHistogram::default() };
        histogram.add(ReuseBin::COLD, begun as u64);
        let part = looks as f64 / self.instructions.max(1.0);
        for rested in rests {
            histogram.add(ReuseBin::of((f64::from(rested) * part).max(1.0) as u64), 1);
        }
        histogram
    }

    /// Some of its pieces, named by their places, end to end.
    #[must_use]
    pub fn part(&self, places: &[usize]) -> Self {
        let mut part = Self { lines: self.lines, covered: self.covered, ..Self::default() };
        for &place in places {
            let Some(piece) = self.pieces.get(place) else { continue };
            let begin = place.checked_sub(1).map_or(0, |before| self.pieces[before].end);
            part.ops.extend_from_slice(&self.ops[begin..piece.end]);
            part.instructions += piece.instructions;
            part.pieces.push(Piece { end: part.ops.len(), ..*piece });
        }
        part
    }
}

impl Trace {
    /// The last branch was taken: what follows it lies elsewhere.
    fn leave(&mut self) {
        let last = self.ops.iter_mut().rev().find(|op| op.class == OpClass::Branch);
        if let Some(branch) = last {
            branch.taken = true;
        }
    }

    /// Of the branches that may have been taken within their line, marks so many that
    /// all together make the share that the profile counted, evenly spread.
    fn mark_taken(&mut self, share: f64) {
        let branches = self.ops.iter().filter(|op| op.class == OpClass::Branch).count();
        let sure = self.ops.iter().filter(|op| op.taken).count();
        let doubtful = branches.saturating_sub(sure);
        let missing = share * branches as f64 - sure as f64;
        let part = (missing / doubtful.max(1) as f64).clamp(0.0, 1.0);
        let mut due = 0.5;
        let may = |op: &&mut Op| op.class == OpClass::Branch && !op.taken;
        for branch in self.ops.iter_mut().filter(may) {
            due += part;
            if due >= 1.0 {
                due -= 1.0;
                branch.taken = true;
            }
        }
    }

    /// Shortest and longest reuse time, log₂ instructions, that a level's reach is
    /// compared with: beyond them it changes nothing. Cold accesses do not count.
    #[must_use]
    pub fn reuses(&self, level: CacheLevel) -> Option<(f64, f64)> {
        let times = |op: &Op| match level {
            CacheLevel::L1d => [op.reuse, 0.0],
            CacheLevel::L1i => [op.fetch, 0.0],
            CacheLevel::L2 | CacheLevel::Last => [op.reuse, op.fetch],
            CacheLevel::DataTlb => [op.page, 0.0],
            CacheLevel::CodeTlb => [op.fetch_page, 0.0],
            CacheLevel::Tlb2 => [op.page, op.fetch_page],
            CacheLevel::Streams => [op.rested, 0.0],
        };
        let known = self.ops.iter().flat_map(times).filter(|time| *time > 0.0 && time.is_finite());
        let widen = |range: Option<(f64, f64)>, time: f32| {
            let time = f64::from(time);
            Some(range.map_or((time, time), |(low, high)| (low.min(time), high.max(time))))
        };
        known.fold(None, widen).map(|(low, high)| (low.log2() - 0.01, high.log2() + 0.01))
    }
}
