//! Counts what one thread does.

use symbiont_profile::predict::Predictors;
use symbiont_profile::raw::Interval;
use symbiont_profile::trace;
use symbiont_profile::trace::RawWindow;
use symbiont_profile::vectors::Hierarchy;
use symbiont_profile::vectors::caches::Caches;
use symbiont_profile::{MicroTrace, OpClass};

use crate::block::{Block, Leaves, Repeat};
use crate::clock::{Clock, Counts};
use crate::executed::{BlockCount, BranchCounts};
use crate::interval::{Tally, interval};
use crate::recorder::{DataAccess, LEAD, Recorder};
use crate::window::{Plan, Windows};

/// Instructions of an interval.
pub const BUDGET: u64 = 50_000_000;
/// Micro-traces of an interval.
pub const TRACES: u64 = 8;
/// The backlog is observed when it has as many blocks, or accesses to data.
const MOST_BLOCKS: usize = 512;
const MOST_ACCESSES: usize = 1024;
/// Where further micro-traces of a thread's first interval begin, for programs
/// that end early. An interval that has enough without them drops them.
const EARLY: [u64; 4] = [0, 5_000, 50_000, 500_000];

/// The pieces of one access that qemu makes in several.
#[derive(Debug, Clone, Copy, Default)]
struct Pieces {
    instruction: usize,
    class: Option<OpClass>,
    /// Where the next piece would start.
    next: u64,
    /// Bytes that are still to come.
    left: u32,
}

/// What was executed and is still to be observed. Blocks and accesses to data are observed apart, many at once: the
/// tables of the one then do not push those of the other out of the first cache.
#[derive(Debug)]
struct Backlog {
    blocks: Vec<&'static Block>,
    /// Lines; the lowest bit is set for a store.
    data: Vec<u64>,
}

impl Backlog {
    fn new() -> Self {
        Self { blocks: Vec::with_capacity(MOST_BLOCKS), data: Vec::with_capacity(MOST_ACCESSES) }
    }
}

/// The meter of one thread.
#[derive(Debug)]
pub struct Meter {
    thread: u32,
    budget: u64,
    instructions: u64,
    /// Instructions of the thread before this interval.
    before: u64,
    /// Count of instructions at which something is due.
    alarm: u64,
    /// Count of instructions at which a micro-trace is due, or the interval complete.
    place: u64,
    /// Micro-traces begun in this interval.
    begun: u64,
    intervals: u64,
    /// By number of the block.
    executed: Vec<BlockCount>,
    last: Option<&'static Block>,
    /// The last block that was observed.
    observed: Option<&'static Block>,
    backlog: Backlog,
    /// Was the last block one more round of a repeated string instruction?
    again: bool,
    accesses: [u64; 2],
    rounds: u64,
    branches: BranchCounts,
    predictors: Predictors,
    data: Clock,
    code: Clock,
    pieces: Pieces,
    /// The 32-byte blocks that a repeated string instruction read and wrote last.
    moved: [Option<u64>; 2],
    /// Accesses of a repeated string instruction in this round.
    in_round: usize,
    recorder: Option<Box<Recorder>>,
    traces: Vec<MicroTrace>,
    windows: Windows,
    caches: Option<Box<Caches>>,
    done: Vec<Interval>,
}

impl Meter {
    /// The meter of thread `thread`, whose intervals have `budget` instructions.
    pub fn new(thread: u32, budget: u64) -> Self {
        let mut meter = Self {
            thread,
            budget: budget.max(1),
            instructions: 0,
            before: 0,
            alarm: 0,
            place: 0,
            begun: 0,
            intervals: 0,
            executed: Vec::new(),
            last: None,
            observed: None,
            backlog: Backlog::new(),
            again: false,
            accesses: [0; 2],
            rounds: 0,
            branches: BranchCounts::default(),
            predictors: Predictors::new(),
            data: Clock::new(),
            code: Clock::new(),
            pieces: Pieces::default(),
            moved: [None; 2],
            in_round: 0,
            recorder: None,
            traces: Vec::new(),
            windows: Windows::default(),
            caches: None,
            done: Vec::new(),
        };
        meter.set_alarm();
        meter
    }

    /// Records windows of the thread from now on.
    pub fn record_windows(&mut self, plan: Plan) {
        self.windows = Windows::new(plan);
        self.set_alarm();
    }

    /// Simulates caches from now on.
    pub fn simulate_caches(&mut self, hierarchy: &Hierarchy) {
        self.caches = Some(Box::new(Caches::new(hierarchy)));
    }

    /// A block begins to execute. Returns whether an interval or a window is complete, which [`Meter::take`] and
    /// [`Meter::take_windows`] then return.
    #[inline]
    pub fn execute(&mut self, block: &'static Block) -> bool {
        if self.at_once() {
            return self.execute_at_once(block);
        }
        self.count(block);
        self.backlog.blocks.push(block);
        if self.backlog.blocks.len() >= MOST_BLOCKS {
            self.observe_blocks();
        }
        self.instructions >= self.alarm && self.ring(block)
    }

    #[cold]
    fn execute_at_once(&mut self, block: &'static Block) -> bool {
        self.leave(block.start);
        self.count(block);
        self.enter(block);
        self.instructions >= self.alarm && self.ring(block)
    }

    /// Counts the instructions of a block that begins to execute.
    #[inline]
    fn count(&mut self, block: &'static Block) {
        self.again = block.is_repeat()
            && self.last.is_some_and(|last| last.ends_with_repeat() && last.last == block.start);
        self.last = Some(block);
        if self.again {
            self.rounds += 1;
        } else {
            self.moved = [None; 2];
            self.instructions += block.instructions.len() as u64;
        }
        self.pieces.left = 0;
        self.in_round = 0;
    }

    /// Is all observed as it happens? A micro-trace needs blocks and accesses in their order, and so do caches for both.
    #[inline]
    fn at_once(&self) -> bool {
        self.recorder.is_some() || self.windows.is_recording() || self.caches.is_some()
    }

    /// Observes the backlog: before anything else than counting instructions.
    fn catch_up(&mut self) {
        self.observe_blocks();
        self.observe_data();
    }

    #[inline(never)]
    fn observe_blocks(&mut self) {
        let mut blocks = std::mem::take(&mut self.backlog.blocks);
        for block in blocks.drain(..) {
            if let Some(left) = self.observed {
                self.predict(left, block.start);
            }
            self.enter(block);
        }
        self.backlog.blocks = blocks;
    }

    #[inline(never)]
    fn observe_data(&mut self) {
        for access in self.backlog.data.drain(..) {
            let store = access & 1 == 1;
            self.accesses[usize::from(store)] += 1;
            self.data.data(access >> 1, store);
        }
    }

    /// Observes that a block begins.
    #[inline]
    fn enter(&mut self, block: &'static Block) {
        self.observed = Some(block);
        for &line in &block.lines {
            if self.code.current() != Some(line) {
                let access = self.code.fetch(line);
                if let Some(caches) = &mut self.caches {
                    caches.code(line * 64);
                }
                if let Some(recorder) = &mut self.recorder {
                    recorder.fetched(access);
                }
            }
        }
        match self.executed.get_mut(block.id) {
            Some(executed) if executed.times > 0 => executed.times += 1,
            _ => self.meet(block),
        }
    }

    /// Counts the first execution of a block in an interval.
    #[cold]
    fn meet(&mut self, block: &'static Block) {
        if self.executed.len() <= block.id {
            self.executed.resize(2 * (block.id + 1), BlockCount::default());
        }
        if let Some(executed) = self.executed.get_mut(block.id) {
            *executed = BlockCount { times: 1, block: Some(block) };
        }
    }

    /// The last block was left for `next`.
    fn leave(&mut self, next: u64) {
        let Some(block) = self.last else { return };
        let wrong = self.predict(block, next);
        if self.recorder.is_some() {
            self.record_block(block, wrong);
        }
        if self.windows.is_recording() && self.windows.executed(block, self.again, next) {
            // It is to be taken, and the next one may be due.
            self.alarm = 0;
        }
    }

    #[cold]
    fn record_block(&mut self, block: &Block, wrong: u8) {
        let Some(recorder) = &mut self.recorder else { return };
        if let Some(trace) = recorder.executed(block, self.again, wrong) {
            self.traces.push(trace);
            self.recorder = None;
        }
    }

    #[inline(always)]
    fn predict(&mut self, block: &Block, next: u64) -> u8 {
        if block.leaves == Leaves::Onward {
            return 0;
        }
        let mut taken = true;
        let wrong = match block.leaves {
            Leaves::Onward | Leaves::Jump => 0,
            Leaves::Conditionally => {
                self.branches.conditional += 1;
                taken = next != block.after;
                self.predictors.conditional(block.last, taken)
            }
            Leaves::Call => {
                self.predictors.call(block.after);
                0
            }
            Leaves::IndirectJump => {
                self.branches.indirect += 1;
                self.predictors.indirect(block.last, next)
            }
            Leaves::IndirectCall => {
                self.branches.indirect += 1;
                self.predictors.call(block.after);
                self.predictors.indirect(block.last, next)
            }
            Leaves::Return => self.predictors.returned(next),
        };
        self.branches.executed += 1;
        self.branches.taken += u64::from(taken);
        self.branches.wrong[usize::from(wrong)] += 1;
        wrong
    }

    /// A load or store of the instruction `instruction` of the block that is
    /// executing, at `address`.
    #[inline]
    pub fn access(&mut self, instruction: usize, class: OpClass, address: u64) {
        let store = class == OpClass::Store;
        if !self.at_once() {
            self.backlog.data.push((address / 64) << 1 | u64::from(store));
            if self.backlog.data.len() >= MOST_ACCESSES {
                self.observe_data();
            }
        } else {
            self.access_at_once(instruction, class, address);
        }
    }

    #[cold]
    fn access_at_once(&mut self, instruction: usize, class: OpClass, address: u64) {
        let store = class == OpClass::Store;
        self.accesses[usize::from(store)] += 1;
        let access = self.data.data(address / 64, store);
        if let Some(caches) = &mut self.caches {
            caches.data(address);
        }
        if self.recorder.is_some() {
            self.record(DataAccess { instruction, class, address, access });
        }
        if self.windows.is_recording() {
            self.windows.accessed(trace::DataAccess { instruction, class, address });
        }
    }

    #[cold]
    fn record(&mut self, access: DataAccess) {
        if let Some(recorder) = &mut self.recorder {
            recorder.accessed(access);
        }
    }

    /// As [`Meter::access`], of `bytes` bytes that may be a piece of an access
    /// of `whole` bytes: only the first piece counts.
    pub fn piece(
        &mut self,
        instruction: usize,
        class: OpClass,
        address: u64,
        bytes: u32,
        whole: u32,
    ) {
        let pieces = &mut self.pieces;
        let goes_on = pieces.left >= bytes
            && pieces.next == address
            && pieces.instruction == instruction
            && pieces.class == Some(class);
        if goes_on {
            pieces.left -= bytes;
            pieces.next = address.wrapping_add(u64::from(bytes));
            return;
        }
        *pieces = Pieces {
            instruction,
            class: Some(class),
            next: address.wrapping_add(u64::from(bytes)),
            left: whole.saturating_sub(bytes),
        };
        self.access(instruction, class, address);
    }

    /// As [`Meter::access`], of a repeated string instruction: counts once per
    /// 32 bytes.
    pub fn string(&mut self, instruction: usize, class: OpClass, address: u64) {
        let moved = &mut self.moved[usize::from(class == OpClass::Store)];
        if moved.replace(address / 32) != Some(address / 32) {
            self.access(instruction, class, address);
        }
    }

    /// As [`Meter::string`], where qemu may make any number of rounds within one execution of a block, as since
    /// version 10.0: the first access of each further one executes the instruction alone, as qemu does before. Is
    /// there anything to take?
    pub fn repeated(&mut self, repeat: &'static Repeat, class: OpClass, address: u64) -> bool {
        let begins = self.in_round >= repeat.accesses.max(1);
        let complete = begins && self.execute(repeat.round);
        self.in_round += 1;
        let alone = self.last.is_some_and(|last| std::ptr::eq(last, repeat.round));
        self.string(if alone { 0 } else { repeat.instruction }, class, address);
        complete
    }

    /// Something is due as `block` begins: a micro-trace or a window begins, or
    /// the interval is complete. Is there anything to take?
    #[cold]
    fn ring(&mut self, block: &Block) -> bool {
        self.catch_up();
        let complete = self.instructions >= self.budget;
        if complete {
            self.end_interval();
        } else if self.instructions >= self.place {
            let lead = if self.place == 0 { 0 } else { LEAD };
            self.recorder.get_or_insert_with(|| Box::new(Recorder::new(lead)));
            self.begun += 1;
        }
        let so_far = self.before + self.instructions;
        if self.windows.due().is_some_and(|due| due <= so_far) {
            let lines = [self.data.recent(), self.code.recent()];
            let before = so_far.saturating_sub(block.instructions.len() as u64);
            self.windows.begin(self.thread, before, lines);
        }
        self.set_alarm();
        complete || self.windows.has_done()
    }

    /// Micro-traces begin in the middles of equal parts of the interval.
    fn set_alarm(&mut self) {
        let early: &[u64] = if self.intervals == 0 { &EARLY } else { &[] };
        let place = match early.get(self.begun as usize) {
            Some(place) => *place,
            None => {
                let part = self.begun - early.len() as u64;
                self.budget / (2 * TRACES) * (2 * part + 1)
            }
        };
        let all = early.len() as u64 + TRACES;
        self.place = if self.begun < all { place.min(self.budget) } else { self.budget };
        let window = self.windows.due().map(|due| due.saturating_sub(self.before));
        self.alarm = window.map_or(self.place, |window| window.min(self.place));
    }

    /// Ends the interval before it is complete, as the thread ends.
    pub fn flush(&mut self) {
        self.windows.flush();
        if self.instructions > 0 {
            self.end_interval();
            self.set_alarm();
        }
    }

    /// The interval so far, which goes on unless another program is executed.
    pub fn so_far(&mut self) -> Interval {
        self.catch_up();
        let (data, code) = (self.data.so_far(), self.code.so_far());
        let caches = self.caches.as_ref().map(|caches| caches.so_far());
        interval(Tally { caches, ..self.tally(&data, &code, self.traces.clone(), true) })
    }

    /// The intervals that ended since the last call.
    pub fn take(&mut self) -> Vec<Interval> {
        std::mem::take(&mut self.done)
    }

    /// The windows that ended since the last call.
    pub fn take_windows(&mut self) -> Vec<RawWindow> {
        self.windows.take()
    }

    /// Goes on as thread 0 of a process that was just forked off: what was
    /// counted is the parent's, predictors and times stay.
    pub fn fork(&mut self) {
        self.end_interval();
        self.done.clear();
        self.windows = Windows::default();
        self.before = 0;
        self.thread = 0;
        self.intervals = 0;
        self.set_alarm();
    }

    fn tally<'a>(
        &'a self,
        data: &'a Counts,
        code: &'a Counts,
        traces: Vec<MicroTrace>,
        before_exec: bool,
    ) -> Tally<'a> {
        Tally {
            thread: self.thread,
            instructions: self.instructions,
            executed: &self.executed,
            accesses: self.accesses,
            rounds: self.rounds,
            branches: &self.branches,
            data,
            code,
            traces,
            caches: None,
            before_exec,
        }
    }

    fn end_interval(&mut self) {
        self.catch_up();
        let cut = self.recorder.take().map(|recorder| recorder.cut());
        if self.traces.is_empty() {
            self.traces.extend(cut.filter(|trace| !trace.ops.is_empty()));
        }
        let spare = self.traces.len().saturating_sub(TRACES as usize);
        self.traces.drain(..spare);
        let (data, code) = (self.data.take(), self.code.take());
        let traces = std::mem::take(&mut self.traces);
        let caches = self.caches.as_mut().map(|caches| caches.take());
        let ended = interval(Tally { caches, ..self.tally(&data, &code, traces, false) });
        self.done.push(ended);
        for executed in &mut self.executed {
            executed.times = 0;
        }
        self.before += self.instructions;
        self.instructions = 0;
        self.begun = 0;
        self.intervals += 1;
        self.accesses = [0; 2];
        self.rounds = 0;
        self.branches = BranchCounts::default();
    }
}

#[cfg(test)]
mod tests;
