//! CPI stack and slot stack: where cycles and slots went.
//!
//! # Approach
//! Cycles are charged at retirement, each to one cause, in this order (as POWER8 does): something
//! retires; the re-order buffer is empty; the oldest operation is done and waits to retire; else what the
//! oldest operation waits for. Slots are charged at dispatch (Top-Down; Yasin, 2014): a slot that the
//! front end left empty, one taken by an operation of a wrong path, one of another thread, else what the
//! oldest operation waits for.
//!
//! # Terms and units
//! All results are per instruction. *Slot*: room for one micro-op at dispatch; slots = width · cycles.

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
pub(super) enum DispatchWait {
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
    const ALL: [Self; 7] =
        [Self::Execute, Self::Vector, Self::L1, Self::L2, Self::L3, Self::Memory, Self::Store];

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

    const fn slot(self) -> Slot {
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

/// Idle slots that groups leave empty.
const FLOW: usize = SLOT_CAUSES;
/// Of a wrong path: distinguished by [`Account::misled`].
const MISLED: usize = FLOW + 1;

/// Kinds of waits.
const WAITS: usize = Wait::ALL.len();

/// What waits of dispatch are charged to: by [`DispatchWait`], and what the oldest operation waits for.
const CHARGED: [[u8; WAITS]; 4] = {
    let mut back = [0; WAITS];
    let mut wait = 0;
    while wait < back.len() {
        back[wait] = Wait::ALL[wait].slot() as u8;
        wait += 1;
    }
    [[FLOW as u8; WAITS], [Slot::FetchLatency as u8; WAITS], [MISLED as u8; WAITS], back]
};

/// The window model's result for a trace in an environment; all per instruction.
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

/// A moment, or a time, in 2⁻²⁰ cycles.
pub(super) type Ticks = u64;
/// Ticks of a cycle, as a power of two.
const TICK: u32 = 20;

/// A number of cycles.
pub(super) fn ticks(cycles: f64) -> Ticks {
    // A cast from a float saturates.
    (cycles * f64::from(1_u32 << TICK)).round() as Ticks
}

/// The cycle that a moment lies in.
#[inline]
pub(super) fn cycle(ticks: Ticks) -> u32 {
    (ticks >> TICK) as u32
}

/// When a cycle begins.
#[inline]
pub(super) fn begin(cycle: u32) -> Ticks {
    Ticks::from(cycle) << TICK
}

/// How many cycles that is.
pub(super) fn cycles(ticks: Ticks) -> f64 {
    ticks as f64 / f64::from(1_u32 << TICK)
}

/// A wrong path: fetched and dispatched until its branch is resolved or the re-order buffer is
/// full.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wrong {
    /// When the branch was done.
    pub resolved: Ticks,
    /// Entries that the re-order buffer has left.
    pub room: f64,
    /// Cycles for each operation.
    pub rate: f64,
}

/// Sums over a trace.
#[derive(Debug)]
pub(super) struct Account {
    width: f64,
    step: f64,
    crowded: bool,
    operations: u64,
    /// Cycles by cause.
    cycles: [u64; CYCLE_CAUSES],
    /// Time between dispatches by cause; then what groups leave empty, and turns of others; then wrong paths.
    idle: [Ticks; MISLED + 1],
    /// Entries of each queue times the time for which they are held.
    held: [Ticks; STRUCTURES],
    vector: Ticks,
    vector_until: Ticks,
    dispatched: Ticks,
    /// The next cycle to be charged.
    next: u32,
    /// Slots and entries of wrong paths.
    wrong: Outcome,
}

impl Account {
    pub(super) fn new(width: f64, step: f64) -> Self {
        Self {
            width,
            step,
            crowded: step * width > 1.0 + 1e-9,
            operations: 0,
            cycles: [0; CYCLE_CAUSES],
            idle: [0; MISLED + 1],
            held: [0; STRUCTURES],
            vector: 0,
            vector_until: 0,
            dispatched: 0,
            next: 0,
            wrong: Outcome::default(),
        }
    }

    /// An operation was dispatched `late` after its turn.
    #[inline]
    pub(super) fn dispatched(&mut self, at: Ticks, late: Ticks, front: DispatchWait, oldest: Wait) {
        self.operations += 1;
        self.dispatched = at;
        let charged = CHARGED[front as usize][oldest as usize];
        self.idle[usize::from(charged)] += late;
    }

    /// Between two dispatches, of which the next was due at `from`, a wrong path was followed;
    /// returns how many operations that took.
    pub(super) fn misled(&mut self, from: Ticks, at: Ticks, wrong: Wrong, oldest: Wait) -> f64 {
        let own = 1.0 / self.width;
        let resolved = wrong.resolved.clamp(from, at.max(from));
        self.idle[Slot::FetchLatency as usize] += at.max(from) - resolved;
        let Wrong { room, rate, .. } = wrong;
        let time = cycles(resolved - from);
        let busy = time.min(room * rate);
        let lost = busy / rate;
        let mut slots = |slot: Slot, cycles: f64| {
            self.wrong.slots[slot as usize] += cycles.max(0.0) * self.width;
        };
        slots(Slot::BadSpeculation, lost * own);
        slots(Slot::OtherThread, lost * (self.step - own));
        slots(Slot::FetchBandwidth, lost * (rate - self.step));
        // It fills the re-order buffer.
        slots(oldest.slot(), time - busy);
        self.wrong.held[Queue::Rob as usize] += lost * (time - busy / 2.0);
        lost
    }

    /// An operation retired.
    #[inline]
    pub(super) fn retired(
        &mut self,
        at: Ticks,
        dispatch: Ticks,
        done: u32,
        front: DispatchWait,
        wait: Wait,
    ) {
        let now = cycle(at);
        if now < self.next {
            return;
        }
        let gap = now - self.next;
        let first = std::mem::replace(&mut self.next, now + 1);
        self.cycles[Cycle::Retiring as usize] += 1;
        if gap == 0 {
            return;
        }
        let dispatch = cycle(dispatch);
        let empty = dispatch.saturating_sub(first).min(gap);
        let finished = now.saturating_sub(done.max(first)).min(gap - empty);
        let own = gap - empty - finished;
        let turn_or = |cause| if self.crowded { Cycle::Turn } else { cause };
        let empty_for = match front {
            DispatchWait::Flow => turn_or(Cycle::EmptyOther),
            DispatchWait::Icache => Cycle::EmptyIcache,
            DispatchWait::Redirect => Cycle::EmptyMispredict,
            DispatchWait::Back => Cycle::Store,
        };
        let direct = front == DispatchWait::Flow && wait == Wait::Execute && done <= dispatch + 2;
        let own_for = if direct { turn_or(wait.cycle()) } else { wait.cycle() };
        let finished_for = turn_or(Cycle::Finish);
        self.cycles[empty_for as usize] += u64::from(empty);
        self.cycles[finished_for as usize] += u64::from(finished);
        self.cycles[own_for as usize] += u64::from(own);
    }

    /// A floating-point or vector operation was issued.
    #[inline]
    pub(super) fn issued(&mut self, dispatch: Ticks, issue: u32) {
        let until = begin(issue);
        self.vector += until.saturating_sub(dispatch.max(self.vector_until));
        self.vector_until = self.vector_until.max(until);
    }

    /// An entry was held for so long.
    #[inline]
    pub(super) fn held(&mut self, queue: Queue, time: Ticks) {
        self.held[queue as usize] += time;
    }

    /// Sums over a trace of so many instructions. `fill`: how full entries of the re-order buffer
    /// are; `registers`: cycles for which miss registers were held; `unfilled`: cycles' worth of slots that its own
    /// turns of the front end left empty.
    pub(super) fn finish(
        self,
        instructions: f64,
        fill: f64,
        registers: f64,
        ports: [f64; GROUPS],
        front: f64,
        unfilled: f64,
    ) -> Outcome {
        let all = f64::from(self.next);
        let own = 1.0 / self.width;
        let mut slots = self.wrong.slots;
        let mut add =
            |slot: Slot, cycles: f64| slots[slot as usize] += cycles.max(0.0) * self.width;
        let operations = self.operations as f64;
        add(Slot::Retiring, operations * own);
        let flow = cycles(self.idle[FLOW]);
        let mine = if self.crowded { unfilled.min(flow) } else { flow };
        add(Slot::OtherThread, flow - mine);
        add(Slot::FetchBandwidth, mine);
        // What is left after the last dispatch is execution.
        add(Slot::Core, all - cycles(self.dispatched));
        for (slot, idle) in slots.iter_mut().zip(self.idle) {
            *slot += cycles(idle) * self.width;
        }
        let mut held = self.held.map(cycles);
        held[Queue::Rob as usize] =
            held[Queue::Rob as usize] / fill + self.wrong.held[Queue::Rob as usize];
        held[Queue::Mshr as usize] = registers;
        let sum: f64 = slots.iter().sum();
        let fit = if sum > 0.0 { all * self.width / sum } else { 0.0 };
        let per = 1.0 / instructions.max(1.0);
        Outcome {
            cpi: all * per,
            cycles: self.cycles.map(|cycles| cycles as f64 * per),
            slots: slots.map(|slots| slots * fit * per),
            held: held.map(|held| held * per),
            port_cycles: ports.map(|cycles| cycles * per),
            vector_cycles: cycles(self.vector) * per,
            front: front * per,
        }
    }
}
