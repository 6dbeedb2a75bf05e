//! Rename and dispatch.

use symbiont_profile::OpClass;
use symbiont_sim_fast::activity::Cycle;

use super::thread::{Bytes, Full, InFlight, LINKS, NEVER, NONE, StoreEntry, Thread};
use super::{Core, Pools, ReadyOp};
use crate::op::Op;
use crate::pool::Pool;

/// What a wait of a class is charged to as long as nothing better is known.
fn cause(class: OpClass) -> Cycle {
    match class {
        OpClass::Load => Cycle::L1,
        OpClass::Store => Cycle::Store,
        class if Op::is_vector(class) => Cycle::Vector,
        _ => Cycle::Integer,
    }
}

impl Core<'_> {
    pub(super) fn dispatch(&mut self) {
        let mut left = [self.width; 2];
        for step in 0..self.threads.len() {
            let (thread, half) = self.in_turn(step);
            let left = &mut left[half];
            let before = *left;
            let back = self.holds_back(thread);
            self.dispatch_thread(thread, left, back);
            self.threads[thread].dispatched = before - *left;
            let is_empty = self.threads[thread].fetched == self.threads[thread].tail;
            if is_empty && self.dispatch_wrong_path(thread, left, back) {
                self.threads[thread].full = Some(Full::Other);
            }
            self.moved |= *left < before;
        }
    }

    /// Dispatches what a thread has fetched, in the slots that are left. `back`: does it hold back?
    #[inline]
    fn dispatch_thread(&mut self, thread: usize, left: &mut u32, back: bool) {
        let own = &mut self.threads[thread];
        own.full = None;
        while *left > 0 && own.tail < own.fetched {
            let number = own.tail;
            let &InFlight { class, opens, .. } = own.slot(number);
            own.full = self.pools.full(thread, class, opens, back);
            if own.full.is_some() {
                break;
            }
            self.pools.enter(thread, class, opens);
            if let Some(ready) = own.dispatch_next(self.now, self.age, self.renames) {
                let item = ReadyOp { age: self.age, number, thread: thread as u32, class };
                self.wheel.put(ready, item);
            }
            self.age += 1;
            *left -= 1;
        }
    }

    /// Must a thread leave the others their part of shared queues? While loads of it wait for long,
    /// if there are others.
    fn holds_back(&self, thread: usize) -> bool {
        self.threads[thread].far_until > self.now
            && self.threads.iter().enumerate().any(|(at, other)| at != thread && !other.is_done())
    }
}

impl Pools {
    /// What keeps an operation of a thread from entering.
    #[inline]
    fn full(&self, thread: usize, class: OpClass, opens: bool, back: bool) -> Option<Full> {
        let room =
            |pool: &Pool| if back { pool.has_even_room(thread) } else { pool.has_room(thread) };
        let has_room = (!opens || room(&self.rob))
            && room(self.queue(class))
            && (class != OpClass::Load || self.lq.has_room(thread));
        if !has_room {
            Some(Full::Other)
        } else if class == OpClass::Store && !self.sq.has_room(thread) {
            Some(Full::Stores)
        } else {
            None
        }
    }

    /// Takes the entries of an operation that enters.
    #[inline]
    fn enter(&mut self, thread: usize, class: OpClass, opens: bool) {
        if opens {
            self.rob.take(thread);
        }
        self.queue_mut(class).take(thread);
        match class {
            OpClass::Load => self.lq.take(thread),
            OpClass::Store => self.sq.take(thread),
            _ => {}
        }
    }
}

impl Thread<'_> {
    /// The next operation enters the re-order buffer; when its sources are ready, if that is known.
    #[inline]
    fn dispatch_next(&mut self, now: u64, age: u64, renames: bool) -> Option<u64> {
        let number = self.tail;
        let &InFlight { class, sources: [first, second], .. } = self.slot(number);
        let (first, second) = (self.maker(first), self.maker(second));
        let (from, makes) = self.bytes(class, first, renames);
        let slot = self.slot_mut(number);
        slot.done = NEVER;
        slot.ready = now + 1;
        slot.age = age;
        slot.waiting = NONE;
        slot.missing = 0;
        slot.cause = cause(class);
        slot.from = from;
        slot.makes = makes;
        self.wait_for(first, 0);
        self.wait_for(second, 1);
        if let Bytes::Store(back) = from {
            let store = number - u64::from(back);
            self.wait_for(Some(store).filter(|store| *store >= self.head), 2);
        }
        self.tail += 1;
        self.vectors += u32::from(Op::is_vector(class));
        if class == OpClass::Store {
            self.stores.push_back(StoreEntry { number, arrives: NEVER });
        }
        let slot = self.slot(number);
        (slot.missing == 0).then_some(slot.ready)
    }

    /// The next operation waits for this one, if there is one that was not issued yet.
    #[inline]
    fn wait_for(&mut self, source: Option<u64>, which: usize) {
        // What has retired is ready.
        let Some(source) = source else { return };
        let (number, index) = (self.tail, self.index(self.tail));
        let source = self.slot_mut(source);
        let (done, waiting) = (source.done, source.waiting);
        if done == NEVER {
            source.waiting = index * LINKS + which as u32;
            let slot = self.slot_mut(number);
            slot.missing += 1;
            slot.next[which] = waiting;
        } else {
            let slot = self.slot_mut(number);
            slot.ready = slot.ready.max(done);
        }
    }
}
