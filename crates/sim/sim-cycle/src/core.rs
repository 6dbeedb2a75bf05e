//! One core, a cycle at a time.
//!
//! # Approach
//! A cycle goes from the back to the front, so that an operation moves on by one stage a cycle.
//!
//! - *drain*: each thread's oldest store leaves its queue if it has retired and its line is there; one a cycle;
//! - *retire*: in order within a thread; the retire width goes to the threads in turn, beginning with another
//!   one each cycle;
//! - *issue*: of all operations whose sources are ready, the oldest first, each to a free port; a load or store
//!   that misses the L1 also needs a miss register. A load of bytes in the store queue waits for that store; if
//!   that wrote only some of them, until it has drained. A core that renames memory hands the stored register on
//!   at once, if both make their address from the same registers;
//! - *dispatch*: in order within a thread, threads in turn as above, as long as re-order buffer, issue queue,
//!   load and store queue have room. A thread with loads from beyond the L2 may hold no more than an even part of
//!   re-order buffer and issue queue, unless it is alone. POWER5 throttles such a thread (Sinharoy et al., IBM
//!   J. R&D 49, 2005), Intel limits its entries in each queue (Marr et al., Intel Technology Journal 6, 2002);
//!   that the limit is an even part, and that later cores do the same, is assumed;
//! - *fetch*: a thread fills its buffer; they take turns. It gets no more than the front end delivers in a
//!   cycle, up to a taken branch, or a group with its most branches; without room for as much, a thread leaves
//!   its turn to others. Another instruction line is looked up in the L1 instruction cache. A mispredicted branch
//!   is the last: the first operation behind it is dispatched `refill` cycles after it was done, and a wrong path
//!   is followed until then (`wrong_path`).
//!
//! An operation that is fetched in cycle t is dispatched in t + 1, issued in t + 2 and, with latency l, retired
//! in t + 2 + l at the earliest. Cores that complete operations in groups have a re-order buffer of groups: a
//! fetched group takes one entry until its last operation retires. A core that divides its threads among two
//! halves does all that in each half, with half the width and every other of equal ports.
//!
//! Nothing is searched for: a waiting operation is on the list of the one that it waits for, and goes into a
//! calendar when that is issued. If nothing moved in a cycle, time jumps to where something can. Not modelled:
//! execution on wrong paths, mispredicted store dependences, banks of caches, rename registers, decoders.
//!
//! # Terms and units
//! Cycles of the core. An operation's *number* counts its thread's operations from 0.
//!
//! # Properties
//! `skipping_idle_cycles_changes_nothing`, `causes_sum_to_the_cycles_and_slots`,
//! `a_group_takes_an_entry_of_its_own`; other known answers are in the crate's tests.

mod account;
mod dispatch;
mod fetch;
mod issue;
mod retire;
mod thread;
mod wrong_path;

use symbiont_profile::OpClass;
use symbiont_sim_fast::description::{CoreType, Structure};

use self::fetch::Front;
use self::thread::NEVER;
pub(crate) use self::thread::{Thread, Work};
use crate::levels::Levels;
use crate::op::Op;
use crate::pool::Pool;
use crate::ports::Ports;
use crate::predictor::Predictor;
use crate::wheel::Wheel;

/// An operation whose sources are ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ReadyOp {
    /// Older operations of the core have smaller ones.
    age: u64,
    number: u64,
    thread: u32,
    class: OpClass,
}

/// The queues of a core.
#[derive(Debug, Clone)]
struct Pools {
    rob: Pool,
    iq: Pool,
    fp_iq: Option<Pool>,
    lq: Pool,
    sq: Pool,
    mshrs: Pool,
}

impl Pools {
    /// The issue queue of a class.
    #[inline]
    fn queue(&self, class: OpClass) -> &Pool {
        match &self.fp_iq {
            Some(queue) if Op::is_vector(class) => queue,
            _ => &self.iq,
        }
    }

    /// The same, to take entries or give them back.
    #[inline]
    fn queue_mut(&mut self, class: OpClass) -> &mut Pool {
        match &mut self.fp_iq {
            Some(queue) if Op::is_vector(class) => queue,
            _ => &mut self.iq,
        }
    }
}

/// A core and its threads.
pub struct Core<'s> {
    now: u64,
    period: f64,
    per_ns: f64,
    /// Halves that threads are divided among, in turn, each with its part of what follows.
    halves: usize,
    width: u32,
    retire: u32,
    front: Front,
    /// Are operations completed in groups, as they are fetched?
    grouped: bool,
    refill: u64,
    latency: [u64; OpClass::COUNT],
    /// Cycles of a load that gets its bytes from a store.
    forwarded: u64,
    /// Cycles of one that had to wait until a store had drained.
    partial: u64,
    /// Is a stored register handed on at once to a load by the same registers?
    renames: bool,
    turn: [usize; 2],
    /// The thread that has priority in this cycle: another one in the next.
    first: usize,
    threads: Vec<Thread<'s>>,
    pools: Pools,
    ports: Ports,
    predictor: Predictor,
    wheel: Wheel<ReadyOp>,
    /// Ready, the oldest first.
    ready: Vec<ReadyOp>,
    /// Ready, but without a miss register.
    starved: Vec<ReadyOp>,
    /// Misses in flight: until when, whose.
    misses: Vec<(u64, u32)>,
    /// When the first of them ends; [`NEVER`] without any.
    arrival: u64,
    age: u64,
    moved: bool,
}

/// Operations between fetch and dispatch for each slot, of all threads together.
///
/// Assumed, for all machines, as the fast level does: what dispatch takes in 16 cycles. No
/// description has it. A larger buffer hides more of the misses of the instruction cache behind what
/// is fetched already, a smaller one fewer. Both levels have the same, so holding one against the
/// other does not check it.
const BUFFER: u32 = 16;

impl<'s> Core<'s> {
    /// A core of this type, set up for `mode` threads. `works`: what each executes.
    pub(crate) fn new(core_type: &CoreType, ghz: f64, mode: u32, works: Vec<Work<'s>>) -> Self {
        let count = works.len();
        let mode = mode.max(count as u32).max(1);
        let halves = if core_type.halves_from.is_some_and(|from| mode >= from) { 2 } else { 1 };
        let part = |count: u32| count.div_ceil(halves as u32).max(1);
        let fetch = part(core_type.fetch);
        // A completion table has an entry for each group, full or not.
        let grouped = core_type.group_branches.is_some();
        let group = if grouped { fetch } else { 1 };
        let rob = Structure { entries: (core_type.rob.entries / group).max(1), ..core_type.rob };
        let pool = |structure| Pool::new(structure, count, mode);
        let pools = Pools {
            rob: pool(rob),
            iq: pool(core_type.iq),
            fp_iq: core_type.fp_iq.map(pool),
            lq: pool(core_type.lq),
            sq: pool(core_type.sq),
            mshrs: pool(core_type.mshrs),
        };
        let branches = core_type.group_branches.map(|most| part(most).min(fetch));
        let front = Front {
            most: fetch,
            taken: core_type.taken_per_fetch.max(1),
            branches: branches.unwrap_or(fetch),
            others: branches.map_or(fetch, |branches| (fetch - branches).max(1)),
        };
        let width = core_type.dispatch.max(1);
        let buffer = (BUFFER * width / mode).max(8).max(2 * fetch);
        let most = pools.rob.most() * group;
        let thread = |work| Thread::new(work, most, buffer);
        Self {
            now: 0,
            period: 1.0 / ghz,
            per_ns: ghz,
            halves,
            width: part(width),
            retire: part(core_type.retire),
            front,
            grouped,
            refill: u64::from(core_type.refill.max(1)),
            latency: OpClass::ALL
                .map(|class| u64::from(core_type.latency.of(class).unwrap_or(1).max(1))),
            forwarded: u64::from(core_type.forwarding.latency.saturating_sub(1).max(1)),
            partial: u64::from(core_type.forwarding.partial.max(1)),
            renames: core_type.forwarding.renames,
            turn: [0; 2],
            first: 0,
            threads: works.into_iter().map(thread).collect(),
            pools,
            ports: Ports::new(core_type, count, halves),
            predictor: Predictor::new(
                (core_type.prediction, core_type.predictor),
                count,
                core_type.mispredicts,
            ),
            wheel: Wheel::default(),
            ready: Vec::new(),
            starved: Vec::new(),
            misses: Vec::new(),
            arrival: NEVER,
            age: 0,
            moved: false,
        }
    }

    /// The cycle that comes next.
    #[must_use]
    pub fn now(&self) -> u64 {
        self.now
    }

    /// Nanoseconds per cycle.
    #[must_use]
    pub fn period(&self) -> f64 {
        self.period
    }

    pub(crate) fn threads(&self) -> &[Thread<'s>] {
        &self.threads
    }

    pub(crate) fn threads_mut(&mut self) -> &mut [Thread<'s>] {
        &mut self.threads
    }

    /// So many of a thread's next instructions go by outside of time: caches, translation buffers and
    /// the predictor see them, nothing is counted.
    pub(crate) fn skim(&mut self, levels: &mut Levels, thread: usize, instructions: u64) {
        let own = &mut self.threads[thread];
        let (user, shift) = (own.user, levels.code_shift(own.user));
        let mut begun = 0;
        while let Some(op) = own.upcoming {
            begun += u64::from(op.starts_instruction);
            if begun > instructions {
                break;
            }
            if op.pc >> shift != own.line {
                own.line = op.pc >> shift;
                levels.warm_code(user, op.pc);
                levels.warm_code_page(user, op.code_page);
            }
            if op.class.is_memory() {
                levels.warm_data(user, op.address, op.class == OpClass::Store);
                levels.warm_data_page(user, op.page);
            }
            self.predictor.wrong(thread, op.pc, op.branch);
            own.advance_stream();
        }
    }

    /// One cycle; then on to the next one in which anything can happen, but not beyond `until`
    /// (unless `skip` is false: then to the very next). False when all threads are done.
    pub(crate) fn step(&mut self, levels: &mut Levels, until: u64, skip: bool) -> bool {
        self.moved = false;
        self.first = (self.now % self.threads.len() as u64) as usize;
        self.retire();
        self.issue(levels);
        self.dispatch();
        self.fetch(levels);
        let next = if self.moved { Some(self.now + 1) } else { self.next() };
        let to = next.unwrap_or(until).min(until).max(self.now + 1);
        let to = if skip { to } else { self.now + 1 };
        self.account(to - self.now);
        self.now = to;
        next.is_some()
    }

    /// The next cycle in which anything can happen; none if nothing ever will.
    fn next(&self) -> Option<u64> {
        let mut next = u64::MAX;
        let mut at = |cycle: u64| {
            if cycle > self.now {
                next = next.min(cycle);
            }
        };
        if !self.ready.is_empty() {
            at(self.now + 1);
        }
        if let Some(cycle) = self.wheel.next() {
            at(cycle);
        }
        if !self.starved.is_empty() {
            at(self.arrival);
        }
        for thread in &self.threads {
            thread.next(&mut at);
        }
        (next < u64::MAX).then_some(next)
    }

    /// The thread so many behind the one with priority, and its half.
    #[inline]
    fn in_turn(&self, step: usize) -> (usize, usize) {
        let (thread, count) = (self.first + step, self.threads.len());
        let thread = if thread >= count { thread - count } else { thread };
        (thread, self.half(thread))
    }

    /// The half of a thread, of one or two.
    #[inline]
    fn half(&self, thread: usize) -> usize {
        thread & (self.halves - 1)
    }

    fn to_ns(&self, cycle: u64) -> f64 {
        cycle as f64 * self.period
    }
}
