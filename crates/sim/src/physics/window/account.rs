//! Where cycles and slots went.
//!
//! # Approach
//! Cycles are charged at retirement, each to one cause, in this order (POWER8):
//! something retires; the re-order buffer is empty; the oldest operation is done
//! and waits to retire; else the oldest operation's own wait. Slots are charged at
//! dispatch (Top-Down; Yasin, 2014): a slot that the front end left empty, one that an
//! operation of a wrong path took, one that another thread had,
//! else what the oldest operation waits for.
//!
//! # Terms and units
//! All results are per instruction. *Slot*: a place for one micro-op at dispatch;
//! slots = width · cycles.

use super::super::pipeline::{GROUPS, Queue, STRUCTURES};

/// Causes of cycles.
pub const CYCLE_CAUSES: usize = 13;
/// Causes of slots.
pub const SLOT_CAUSES: usize = 11;

/// What a cycle of a thread went to, charged at retirement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cycle {
    /// At least one operation retired.
    Retiring,
    /// Nothing to retire after an instruction-cache or translation miss.
    EmptyIcache,
    /// Nothing to retire after a mispredicted branch.
    EmptyMispredict,
    /// Nothing to retire, for other reasons.
    EmptyOther,
    /// Another thread had the turn.
    Turn,
    /// The oldest operation was done but had not retired.
    Finish,
    /// The oldest operation waits for an integer unit or its result.
    Integer,
    /// For a floating-point or vector unit or its result.
    Vector,
    /// For the L1 data cache.
    L1,
    /// For the L2, or for translation.
    L2,
    /// For the L3.
    L3,
    /// For memory.
    Memory,
    /// Stores hold it up.
    Store,
}

/// What a slot went to, charged at dispatch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Slot {
    /// A micro-op that retired.
    Retiring,
    /// Between a mispredicted branch and its resolution.
    BadSpeculation,
    /// The front end had nothing: instruction misses, refill after a redirect.
    FetchLatency,
    /// The front end had too little.
    FetchBandwidth,
    /// Another thread's.
    OtherThread,
    /// The back end was full; the oldest operation executed.
    Core,
    /// It waited for the L1 data cache.
    L1,
    /// For the L2, or for translation.
    L2,
    /// For the L3.
    L3,
    /// For memory.
    Memory,
    /// Stores held it up.
    Store,
}

/// What the dispatch of an operation waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    Flow,
    Icache,
    Redirect,
    Back,
}

/// What an operation waits for between dispatch and done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wait {
    Execute,
    Vector,
    L1,
    L2,
    L3,
    Memory,
    Store,
}

impl Wait {
    fn cycle(self) -> Cycle {
        match self {
            Self::Execute => Cycle::Integer,
            Self::Vector => Cycle::Vector,
            Self::L1 => Cycle::L1,
            Self::L2 => Cycle::L2,
            Self::L3 => Cycle::L3,
            Self::Memory => Cycle::Memory,
            Self::Store => Cycle::Store,
        }
    }

    fn slot(self) -> Slot {
        match self {
            Self::Execute | Self::Vector => Slot::Core,
            Self::L1 => Slot::L1,
            Self::L2 => Slot::L2,
            Self::L3 => Slot::L3,
            Self::Memory => Slot::Memory,
            Self::Store => Slot::Store,
        }
    }
}

/// What the window model says of a trace in an environment; all per instruction.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Outcome {
    /// Cycles.
    pub cpi: f64,
    /// Cycles by [`Cycle`]; they sum to `cpi`.
    pub cycles: [f64; CYCLE_CAUSES],
    /// Slots by [`Slot`]; they sum to `cpi` times the width.
    pub slots: [f64; SLOT_CAUSES],
    /// Entries of each [`Queue`] times the cycles for which they are held.
    pub held: [f64; STRUCTURES],
    /// Cycles for which the ports of each group are taken.
    pub port_cycles: [f64; GROUPS],
    /// Cycles in which a floating-point or vector operation stands between dispatch
    /// and issue.
    pub vector_cycles: f64,
    /// Cycles of the front end that groups, or operations, take, of wrong paths too.
    pub front: f64,
}

/// A wrong path: fetched and dispatched until its branch is resolved or the re-order buffer is
/// full.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wrong {
    /// When the branch was done.
    pub resolved: f64,
    /// Entries that the re-order buffer has left.
    pub room: f64,
    /// Cycles for each operation.
    pub pace: f64,
}

#[derive(Debug)]
pub(super) struct Account {
    width: f64,
    step: f64,
    crowded: bool,
    sums: Outcome,
    dispatched: f64,
    retired: i64,
    vector_until: f64,
}

impl Account {
    pub(super) fn new(width: f64, step: f64) -> Self {
        Self {
            width,
            step,
            crowded: step * width > 1.0 + 1e-9,
            sums: Outcome::default(),
            dispatched: 0.0,
            retired: -1,
            vector_until: 0.0,
        }
    }

    fn slots(&mut self, slot: Slot, cycles: f64) {
        self.sums.slots[slot as usize] += cycles.max(0.0) * self.width;
    }

    /// An operation was dispatched, after a wrong path perhaps; tells how many operations
    /// that took.
    pub(super) fn dispatched(
        &mut self,
        at: f64,
        stage: Stage,
        wrong: Option<Wrong>,
        oldest: Wait,
    ) -> f64 {
        let own = 1.0 / self.width;
        self.sums.slots[Slot::Retiring as usize] += 1.0;
        self.slots(Slot::OtherThread, self.step - own);
        let from = self.dispatched + self.step;
        let mut lost = 0.0;
        match stage {
            // Groups that are not full, and turns of others.
            Stage::Flow => {
                let mine = own / self.step;
                self.slots(Slot::FetchBandwidth, (at - from) * mine);
                self.slots(Slot::OtherThread, (at - from) * (1.0 - mine));
            }
            Stage::Icache => self.slots(Slot::FetchLatency, at - from),
            Stage::Redirect => {
                let resolved = wrong.map_or(from, |wrong| wrong.resolved.clamp(from, at.max(from)));
                self.slots(Slot::FetchLatency, at - resolved);
                if let Some(Wrong { room, pace, .. }) = wrong {
                    let busy = (resolved - from).min(room * pace);
                    lost = busy / pace;
                    self.slots(Slot::BadSpeculation, lost * own);
                    self.slots(Slot::OtherThread, lost * (self.step - own));
                    self.slots(Slot::FetchBandwidth, lost * (pace - self.step));
                    // It fills the re-order buffer.
                    self.slots(oldest.slot(), resolved - from - busy);
                    self.held(Queue::Rob, lost * (resolved - from - busy / 2.0));
                }
            }
            Stage::Back => self.slots(oldest.slot(), at - from),
        }
        self.dispatched = at;
        lost
    }

    /// An operation retired.
    pub(super) fn retired(&mut self, at: f64, dispatch: f64, done: u32, stage: Stage, wait: Wait) {
        let cycle = at as i64;
        if cycle == self.retired {
            return;
        }
        let first = self.retired + 1;
        let gap = cycle - first;
        let dispatch = dispatch as i64;
        let done = i64::from(done);
        let empty = (dispatch - first).clamp(0, gap);
        let finished = (cycle - done.max(first)).clamp(0, gap - empty);
        let own = gap - empty - finished;
        let turn_or = |cause| if self.crowded { Cycle::Turn } else { cause };
        let empty_for = match stage {
            Stage::Flow => turn_or(Cycle::EmptyOther),
            Stage::Icache => Cycle::EmptyIcache,
            Stage::Redirect => Cycle::EmptyMispredict,
            Stage::Back => Cycle::Store,
        };
        let direct = stage == Stage::Flow && wait == Wait::Execute && done <= dispatch + 2;
        let own_for = if direct { turn_or(wait.cycle()) } else { wait.cycle() };
        let finished_for = turn_or(Cycle::Finish);
        let cycles = &mut self.sums.cycles;
        cycles[Cycle::Retiring as usize] += 1.0;
        cycles[empty_for as usize] += empty as f64;
        cycles[finished_for as usize] += finished as f64;
        cycles[own_for as usize] += own as f64;
        self.retired = cycle;
    }

    /// An operation was issued.
    pub(super) fn issued(&mut self, vector: bool, dispatch: f64, issue: u32) {
        if vector {
            let until = f64::from(issue);
            self.sums.vector_cycles += (until - dispatch.max(self.vector_until)).max(0.0);
            self.vector_until = self.vector_until.max(until);
        }
    }

    /// An entry was held for so long.
    pub(super) fn held(&mut self, queue: Queue, cycles: f64) {
        self.sums.held[queue as usize] += cycles;
    }

    /// Sums over a trace of so many instructions.
    pub(super) fn finish(mut self, instructions: f64, ports: [f64; GROUPS], front: f64) -> Outcome {
        let cycles = (self.retired + 1) as f64;
        // What is left after the last dispatch is execution.
        self.slots(Slot::Core, cycles - self.dispatched);
        let slots: f64 = self.sums.slots.iter().sum();
        let fit = if slots > 0.0 { cycles * self.width / slots } else { 1.0 };
        let per = 1.0 / instructions.max(1.0);
        Outcome {
            cpi: cycles * per,
            cycles: self.sums.cycles.map(|cycles| cycles * per),
            slots: self.sums.slots.map(|slots| slots * fit * per),
            held: self.sums.held.map(|held| held * per),
            port_cycles: ports.map(|cycles| cycles * per),
            vector_cycles: self.sums.vector_cycles * per,
            front: front * per,
        }
    }
}
