//! The instruction-window model: how fast a core runs micro-traces.
//!
//! # Problem
//! The mean latency along a nominal critical path misjudges programs by 15 to 28 %: what counts is which
//! operations wait for each other, and what the window holds meanwhile.
//!
//! # Approach
//! One pass over the operations in program order: a dataflow model rather than a cycle-by-cycle one. It
//! computes when each is fetched, dispatched, issued, done and retired.
//!
//! - fetch: in groups (`fetch`), one in each cycle that is the thread's; a miss of the instruction cache
//!   adds its latency; after a mispredicted branch, when that is done plus the refill. Fetch runs
//!   ahead of dispatch by the fetch buffer at most. Until a mispredicted branch is done, the wrong path is
//!   fetched and dispatched as far as the re-order buffer has room: it takes cycles of the front end and
//!   entries, but nothing of it is executed here;
//! - dispatch: fetched, 1/width after the one before, when re-order buffer, issue queue, load and store
//!   queue have room. Other threads' cycles slow fetch; what was fetched meanwhile may be dispatched and
//!   retire at the full width, but of a full fetch buffer no more than the share of the slots. With
//!   co-runners a thread keeps to an even part of re-order buffer and issue queue while its loads wait
//!   for data from beyond the L2 (`far`);
//! - issue: the first cycle from dispatch + 1 with the sources ready, a free port and, for a miss, a free
//!   miss register;
//! - done: after the latency of its class, or of the level that its reuse time reaches; a hit on a line in
//!   flight waits for it; memory grants requests in slots; what a prefetcher requested in time costs as
//!   the L2, if it still followed that stream; a load of what an undrained store wrote is forwarded
//!   (`forward`); a store is done when issued and drains in order after it retired;
//! - retire: in order, 1/width after the one before.
//!
//! # Terms and units
//! Cycles of the core. Where cycles and slots went is described in [`account`].
//!
//! # Properties
//! Known results: `independent_work_runs_at_the_width`,
//! `a_chain_takes_its_latencies`, `a_divider_bounds_divisions`,
//! `miss_registers_bound_independent_misses`, `the_window_bounds_overlap`.
//! Both stacks sum to the cycles (`stacks_sum_to_the_cycles`). Run for the CPI alone, it gives the same
//! (`the_cpi_alone_is_that_of_a_run`).

pub mod account;
mod busy;
mod far;
mod fetch;
mod forward;
mod memory;
mod ports;
mod queue;
mod rounded;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::cell::OnceCell;

use account::{Account, DispatchWait, Ticks, Wait, Wrong, begin, cycle, ticks};
use far::Far;
use fetch::{BEGINS, Groups, MISLEADS};
use forward::IssuedStore;
use memory::Memory;
use ports::Ports;
use queue::IssueQueue;

use super::pipeline::{CacheLevel, CoreSharing, Environment, Pipeline, Queue};
use super::streams::{EARLIER, NO_TRIGGER};
use super::trace::{Op, Trace};
use symbiont_profile::{OpClass, PREDICTORS};

pub use account::Outcome;
pub use rounded::RoundedEnvironment;

/// A trace on a core, and what follows from these two alone.
#[derive(Debug, Clone)]
pub struct Course<'a> {
    pipeline: &'a Pipeline,
    trace: Cow<'a, Trace>,
    /// How full groups are.
    fill: f64,
    /// What the front end makes of each operation, by size of the predictor, as far as it was asked for.
    marks: [OnceCell<Box<[u8]>>; PREDICTORS],
}

impl<'a> Course<'a> {
    /// Of a trace on a core.
    #[must_use]
    pub fn new(pipeline: &'a Pipeline, trace: Cow<'a, Trace>) -> Self {
        let fill = Groups::fill(pipeline, &trace);
        Self { pipeline, trace, fill, marks: Default::default() }
    }

    /// The trace.
    #[must_use]
    pub fn trace(&self) -> &Trace {
        &self.trace
    }

    fn marks(&self, predictor: usize) -> &[u8] {
        let predictor = predictor.min(PREDICTORS - 1);
        self.marks[predictor].get_or_init(|| fetch::marks(self.pipeline, &self.trace, predictor))
    }
}

/// Operations of which times are kept; no structure is larger, and a source
/// further back has long been retired.
const HISTORY: usize = 1 << 11;

/// A number in 2⁻³² for each count, spread evenly by the golden ratio.
const fn spread(count: u32) -> u32 {
    count.wrapping_mul(0x9E37_79B9)
}

/// When an operation was issued, done, retired.
#[derive(Debug, Clone, Copy, Default)]
struct Times {
    retire: Ticks,
    done: u32,
    issue: u32,
}

/// Room to work in, to be used again.
#[derive(Debug, Clone)]
pub struct Window {
    times: Box<[Times; HISTORY]>,
    waits: Box<[Wait; HISTORY]>,
    dispatched: Box<[Ticks; HISTORY]>,
    loads: Box<[Ticks; HISTORY]>,
    stores: Box<[Ticks; HISTORY]>,
    stored: Box<[IssuedStore; HISTORY]>,
    ports: Ports,
    memory: Memory,
    queues: [IssueQueue; 2],
    far: Far,
    /// When each piece of the trace had retired.
    ends: Vec<u32>,
}

impl Default for Window {
    fn default() -> Self {
        Self {
            times: Box::new([Times::default(); HISTORY]),
            waits: Box::new([Wait::Execute; HISTORY]),
            dispatched: Box::new([0; HISTORY]),
            loads: Box::new([0; HISTORY]),
            stores: Box::new([0; HISTORY]),
            stored: Box::new([IssuedStore::default(); HISTORY]),
            ports: Ports::default(),
            memory: Memory::default(),
            queues: [IssueQueue::default(), IssueQueue::default()],
            far: Far::default(),
            ends: Vec::new(),
        }
    }
}

/// Where an access is served, by its reuse time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum HitLevel {
    L1,
    L2,
    L3,
    Memory,
}

/// What operations of a class are like.
#[derive(Debug, Clone, Copy)]
struct Kind {
    /// Ports that can start it.
    able: u32,
    /// Cycles from issue to result.
    latency: u32,
    /// Cycles for which it keeps a divider.
    busy: u32,
    /// On floating-point or vector registers?
    vector: bool,
    /// Which issue queue.
    queue: bool,
}

/// What does not change during a run.
struct RunContext<'a> {
    pipeline: &'a Pipeline,
    kinds: [Kind; OpClass::COUNT],
    seen: &'a RoundedEnvironment,
    memory_latency: u32,
}

/// What a thread with co-runners keeps to while loads are far away.
struct EvenPart {
    /// Operations in the re-order buffer.
    rob: usize,
    /// Entries of each issue queue.
    queues: [u32; 2],
}

impl EvenPart {
    /// `fill`: how full entries of the re-order buffer are. None of a thread alone.
    fn new(pipeline: &Pipeline, fill: f64) -> Option<Self> {
        let even = |queue: Queue| pipeline.rooms[queue as usize].even;
        let rob = (even(Queue::Rob) * fill).round().max(1.0) as usize;
        (pipeline.sharing == CoreSharing::Others).then(|| Self {
            rob: rob.min(HISTORY - 1),
            queues: [Queue::Iq, Queue::FpIq].map(|queue| even(queue).max(1.0) as u32),
        })
    }
}

impl<'a> RunContext<'a> {
    fn new(pipeline: &'a Pipeline, seen: &'a RoundedEnvironment) -> Self {
        let kinds = OpClass::ALL.map(|class| {
            let vector = is_vector(class);
            let (able, latency) =
                (pipeline.ports[class as usize], pipeline.latency[class as usize]);
            let busy = pipeline.divider_busy[class as usize];
            Kind { able, latency, busy, vector, queue: pipeline.split_iq && vector }
        });
        Self { pipeline, kinds, seen, memory_latency: seen.environment.memory_latency as u32 }
    }

    fn served(&self, reuse: f32, first: CacheLevel) -> HitLevel {
        if reuse <= self.seen.reach(first) {
            HitLevel::L1
        } else if reuse <= self.seen.reach(CacheLevel::L2) {
            HitLevel::L2
        } else if reuse <= self.seen.reach(CacheLevel::Last) {
            HitLevel::L3
        } else {
            HitLevel::Memory
        }
    }

    /// Cycles that translation adds.
    fn translation(&self, page: f32, first: CacheLevel) -> u32 {
        if page <= self.seen.reach(first) {
            0
        } else if page <= self.seen.reach(CacheLevel::Tlb2) {
            self.pipeline.tlb_latency[0]
        } else {
            self.pipeline.tlb_latency[1]
        }
    }
}

/// An operation on floating-point or vector registers.
fn is_vector(class: OpClass) -> bool {
    matches!(
        class,
        OpClass::FpAdd | OpClass::FpMultiply | OpClass::FpFma | OpClass::FpDivide | OpClass::Vector
    )
}

impl Window {
    /// Cycles that each piece of the trace took in the last run.
    pub fn cycles_of_pieces(&self) -> impl Iterator<Item = f64> {
        let begins = std::iter::once(0).chain(self.ends.iter().copied());
        self.ends.iter().zip(begins).map(|(end, begin)| f64::from(end - begin))
    }

    /// Runs a trace in an environment.
    #[must_use]
    pub fn run(
        &mut self,
        pipeline: &Pipeline,
        trace: &Trace,
        environment: &Environment,
    ) -> Outcome {
        self.follow(&Course::new(pipeline, Cow::Borrowed(trace)), environment)
    }

    /// The same, of a trace that is run more than once.
    #[must_use]
    pub fn follow(&mut self, course: &Course<'_>, environment: &Environment) -> Outcome {
        self.pass::<true>(course, environment)
    }

    /// The CPI alone, which is that of [`Window::follow`] and takes less time.
    #[must_use]
    pub fn cpi(&mut self, course: &Course<'_>, environment: &Environment) -> f64 {
        self.pass::<false>(course, environment).cpi
    }

    /// One pass; only with `ALL` what more than the CPI is known of it.
    fn pass<const ALL: bool>(&mut self, course: &Course<'_>, environment: &Environment) -> Outcome {
        let &Course { pipeline, ref trace, fill, .. } = course;
        let seen = course.seen(environment);
        let environment = &seen.environment;
        let [rob, lq, sq] = [Queue::Rob, Queue::Lq, Queue::Sq].map(|queue| seen.whole(queue));
        self.ports.reset(pipeline, environment);
        let registers = environment.entries[Queue::Mshr as usize];
        self.ends.clear();
        self.memory.reset(registers, environment.memory_interval);
        self.queues[0].reset(environment.entries[Queue::Iq as usize]);
        self.queues[1].reset(environment.entries[Queue::FpIq as usize]);
        self.far.clear();
        let fixed = RunContext::new(pipeline, &seen);
        let even = EvenPart::new(pipeline, fill);
        let marks = course.marks(environment.predictor);
        let cycles_per_op = 1.0 / environment.dispatch;
        let step = ticks(1.0 / pipeline.width).max(1);
        // From one cycle of the front end that is the thread's to the next.
        let cycles_per_turn = cycles_per_op * pipeline.width;
        let turn = ticks(cycles_per_turn);
        let retire_step = ticks(1.0 / pipeline.retire.max(pipeline.width)).max(1);
        let refill = ticks(pipeline.refill);
        let buffer = pipeline.fetch_buffer.min(HISTORY - 1);
        // So many operations take at least so long.
        let spell = ticks(cycles_per_op * buffer as f64);
        let mut account = Account::new(pipeline.width, cycles_per_op);

        let (mut fetched, mut dispatched, mut retired, mut drained) = (0, 0, 0, 0);
        let (mut loads, mut stores, mut head) = (0_usize, 0_usize, 0_usize);
        let mut redirect: Option<Ticks> = None;
        let (mut begun, mut wrong) = (0_u32, 0.0);
        let end_of = |piece: usize| trace.pieces.get(piece).map_or(usize::MAX, |piece| piece.end);
        let mut end = end_of(0);
        for (index, (op, mark)) in trace.ops.iter().zip(marks).enumerate() {
            let kind = fixed.kinds[op.class as usize];
            // Fetch.
            if mark & BEGINS != 0 {
                fetched += turn;
                begun += 1;
            }
            let mut front = DispatchWait::Flow;
            let mut share = 0;
            if index >= buffer {
                let before = self.dispatched[(index - buffer) % HISTORY];
                fetched = fetched.max(before);
                share = before + spell;
            }
            let resolved = redirect.take();
            if let Some(done) = resolved {
                fetched = done + refill;
                front = DispatchWait::Redirect;
            }
            if op.fetch > 0.0 {
                let wait = self.fetch(&fixed, op, cycle(fetched));
                if wait > 0 {
                    fetched += begin(wait);
                    front = DispatchWait::Icache;
                }
            }
            // Dispatch.
            let in_turn = dispatched + step;
            let mut dispatch = in_turn.max(share);
            let mut front_wait = DispatchWait::Flow;
            if fetched > dispatch {
                (dispatch, front_wait) = (fetched, front);
            }
            let mut room = 0;
            if index >= rob {
                room = self.times[(index - rob) % HISTORY].retire;
            }
            match op.class {
                OpClass::Load if loads >= lq => {
                    room = room.max(self.loads[(loads - lq) % HISTORY]);
                }
                OpClass::Store if stores >= sq => {
                    room = room.max(self.stores[(stores - sq) % HISTORY]);
                }
                _ => {}
            }
            if room > dispatch {
                (dispatch, front_wait) = (room, DispatchWait::Back);
            }
            let queue = &mut self.queues[usize::from(kind.queue)];
            let now = cycle(dispatch);
            let mut free = queue.room(now);
            if let Some(even) = &even {
                let before = index.checked_sub(even.rob);
                let room = before.map_or(0, |at| cycle(self.times[at % HISTORY].retire));
                free = self.kept_back(even.queues[usize::from(kind.queue)], kind.queue, room, free);
            }
            if free > now {
                (dispatch, front_wait) = (begin(free), DispatchWait::Back);
            }
            // Issue.
            let mut ready = free + 1;
            for source in op.sources.into_iter().map(usize::from) {
                if source > 0 && source <= index.min(HISTORY - 1) {
                    ready = ready.max(self.times[(index - source) % HISTORY].done);
                }
            }
            let from = self.source(&trace.ops, index, ready);
            let (issue, mut done, wait) = match from {
                Some(store) => self.forward(&fixed, op, &store, ready, free),
                None => self.execute(&fixed, op, index, ready, free),
            };
            self.queues[usize::from(kind.queue)].enter(issue);
            // Retire.
            let retire = (retired + retire_step).max(begin(done));
            let mut oldest = wait;
            if ALL && matches!(front_wait, DispatchWait::Back | DispatchWait::Redirect) {
                // What the oldest operation waits for when the stall begins.
                while head < index && self.times[head % HISTORY].retire <= in_turn {
                    head += 1;
                }
                if head < index {
                    oldest = self.waits[head % HISTORY];
                }
            }
            if ALL {
                account.dispatched(dispatch, dispatch - in_turn, front_wait, oldest);
                account.retired(retire, dispatch, done, front_wait, wait);
            }
            let misled = resolved.filter(|_| ALL && front_wait == DispatchWait::Redirect);
            if let Some(resolved) = misled {
                let room = rob.saturating_sub(index - head) as f64;
                let begun = f64::from(begun) / (index + 1) as f64;
                let rate = cycles_per_op.max(cycles_per_turn * begun);
                let path = Wrong { resolved, room, rate };
                wrong += account.misled(in_turn, dispatch, path, oldest);
            }
            match op.class {
                OpClass::Load => {
                    if even.is_some() && matches!(wait, Wait::L3 | Wait::Memory) {
                        self.far.add(issue, done);
                    }
                    self.loads[loads % HISTORY] = retire;
                    if ALL {
                        account.held(Queue::Lq, retire - dispatch);
                    }
                    loads += 1;
                }
                OpClass::Store => {
                    // The line was asked for at issue; stores drain in order.
                    let line =
                        self.memory.under_way(op.line, issue).map_or(issue, |(cycle, _)| cycle);
                    drained = (drained + begin(1)).max(retire).max(begin(line));
                    self.stores[stores % HISTORY] = drained;
                    let data = self.data(op, index).max(free);
                    self.stored[index % HISTORY] = IssuedStore { data, issue, drained };
                    if ALL {
                        account.held(Queue::Sq, drained - dispatch);
                    }
                    stores += 1;
                }
                _ => {}
            }
            if ALL {
                if kind.vector {
                    account.issued(dispatch, issue);
                }
                let queue = if kind.queue { Queue::FpIq } else { Queue::Iq };
                account.held(queue, begin(issue).saturating_sub(dispatch));
                account.held(Queue::Rob, retire - dispatch);
                self.waits[index % HISTORY] = wait;
            }
            if mark & MISLEADS != 0 {
                redirect = Some(begin(done));
            }
            if let Some(store) = from.filter(|store| store.renamed(pipeline)) {
                // What depends on it has the stored register.
                done = store.data.max(free);
            }
            self.times[index % HISTORY] = Times { retire, done, issue };
            self.dispatched[index % HISTORY] = dispatch;
            (dispatched, retired) = (dispatch, retire);
            if index + 1 == end {
                self.ends.push(cycle(retire) + 1);
                end = end_of(self.ends.len());
            }
        }
        if !ALL {
            let all = if trace.ops.is_empty() { 0 } else { cycle(retired) + 1 };
            let per = 1.0 / trace.instructions.max(1.0);
            return Outcome { cpi: f64::from(all) * per, ..Outcome::default() };
        }
        let ops = trace.ops.len().max(1) as f64;
        let cycles = f64::max(f64::from(begun), ops / pipeline.width);
        let front = cycles * (1.0 + wrong / ops);
        let ports = self.ports.taken_by_group(pipeline);
        let unfilled = cycles - ops / pipeline.width;
        account.finish(trace.instructions, fill, self.memory.held(), ports, front, unfilled)
    }

    /// The first cycle from `from` at which the issue queue has less than `entries` and an even part
    /// of the re-order buffer has room, as it has from `room` on, or no load is far away.
    fn kept_back(&mut self, entries: u32, queue: bool, room: u32, from: u32) -> u32 {
        let mut at = from;
        while let Some(until) = self.far.until(at) {
            let next = self.queues[usize::from(queue)].less_than(entries, at, until);
            let next = next.max(room).min(until);
            if next <= at {
                break;
            }
            at = next;
        }
        at
    }

    /// Cycles that fetching the line of `op` adds at `cycle`.
    fn fetch(&mut self, fixed: &RunContext<'_>, op: &Op, cycle: u32) -> u32 {
        let lines = match fixed.served(op.fetch, CacheLevel::L1i) {
            HitLevel::L1 => 0,
            HitLevel::L2 => fixed.pipeline.cache_latency[1],
            HitLevel::L3 => fixed.pipeline.cache_latency[2],
            HitLevel::Memory => self.memory.grant(cycle) - cycle + fixed.memory_latency,
        };
        let page = op.fetch_page;
        lines + if page > 0.0 { fixed.translation(page, CacheLevel::CodeTlb) } else { 0 }
    }

    /// Issues an operation that is `ready`: when it issues, when it is done, and
    /// what it waits for then.
    fn execute(
        &mut self,
        fixed: &RunContext<'_>,
        op: &Op,
        index: usize,
        ready: u32,
        now: u32,
    ) -> (u32, u32, Wait) {
        let pipeline = fixed.pipeline;
        let class = op.class;
        let kind = fixed.kinds[class as usize];
        if !matches!(class, OpClass::Load | OpClass::Store) {
            let issue = self.ports.issue(kind.able, kind.busy, ready, now);
            let wait = if kind.vector { Wait::Vector } else { Wait::Execute };
            return (issue, issue + kind.latency, wait);
        }
        let translation = fixed.translation(op.page, CacheLevel::DataTlb);
        let served = fixed.served(op.reuse, CacheLevel::L1d);
        let store = class == OpClass::Store;
        let hit = pipeline.cache_latency[0] + translation;
        if served == HitLevel::L1 {
            let issue = self.ports.issue(kind.able, kind.busy, ready, now);
            if store {
                return (issue, issue + 1, Wait::Store);
            }
            return match self.memory.under_way(op.line, issue) {
                Some((arrives, wait)) => (issue, arrives.max(issue + hit), wait),
                None => (issue, issue + hit, if translation > 0 { Wait::L2 } else { Wait::L1 }),
            };
        }
        let (latency, wait) = match served {
            HitLevel::L1 | HitLevel::L2 => (pipeline.cache_latency[1], Wait::L2),
            HitLevel::L3 => (pipeline.cache_latency[2], Wait::L3),
            HitLevel::Memory => (fixed.memory_latency, Wait::Memory),
        };
        let latency = latency + translation;
        let back = op.trigger as usize;
        // The prefetcher brings lines into the L2.
        let hit = pipeline.cache_latency[1] + translation;
        let followed =
            op.trigger != NO_TRIGGER && op.rested <= fixed.seen.reach(CacheLevel::Streams);
        let ahead = followed && served > HitLevel::L2;
        let long = if ahead { hit } else { latency };
        let (free, register) = self.memory.register(ready, long, now);
        let issue = self.ports.issue(kind.able, kind.busy, free, now);
        let mut grant =
            |cycle| if served == HitLevel::Memory { self.memory.grant(cycle) } else { cycle };
        let arrives = if !ahead {
            grant(issue) + latency
        } else if op.trigger == EARLIER || back > index.min(HISTORY - 1) {
            // Asked for long ago: only the rate of grants can hold it up.
            grant(now).max(issue + hit)
        } else {
            let asked = self.times[(index - back) % HISTORY].issue;
            (grant(asked) + latency).max(issue + hit)
        };
        // What comes in time waits for the L2 alone.
        let wait = if ahead && arrives <= issue + hit { Wait::L2 } else { wait };
        self.memory.hold(register, op.line, issue, arrives, wait);
        // A store does not wait for its line; a load does.
        if store { (issue, issue + 1, Wait::Store) } else { (issue, arrives, wait) }
    }
}
