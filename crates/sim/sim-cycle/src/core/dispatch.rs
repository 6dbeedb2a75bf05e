//! Rename and dispatch.

use symbiont_profile::OpClass;
use symbiont_sim_fast::activity::Cycle;

use super::thread::{Bytes, FetchedOp, Full, InFlight, LINKS, NEVER, NONE, SOURCES, StoreEntry};
use super::{Core, ReadyOp};
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
        let count = self.threads.len();
        let mut left = [self.width; 2];
        for step in 0..count {
            let (thread, half) = self.in_turn(step);
            self.threads[thread].full = None;
            let left = &mut left[half];
            let before = *left;
            let back = self.holds_back(thread);
            while *left > 0 {
                let Some(&fetched) = self.threads[thread].buffer.front() else { break };
                if let Some(full) = self.is_full(thread, &fetched, back) {
                    self.threads[thread].full = Some(full);
                    break;
                }
                self.enter(thread, &fetched);
                *left -= 1;
            }
            self.threads[thread].dispatched = before - *left;
            if self.threads[thread].buffer.is_empty()
                && self.dispatch_wrong_path(thread, left, back)
            {
                self.threads[thread].full = Some(Full::Other);
            }
            self.moved |= *left < before;
        }
    }

    /// Must a thread leave the others their part of shared queues? While loads of it wait for long,
    /// if there are others.
    fn holds_back(&self, thread: usize) -> bool {
        self.threads[thread].far_until > self.now
            && self.threads.iter().enumerate().any(|(at, other)| at != thread && !other.is_done())
    }

    fn is_full(&mut self, thread: usize, fetched: &FetchedOp, back: bool) -> Option<Full> {
        let class = fetched.op.class;
        let pools = &mut self.pools;
        let room = |pool: &Pool| {
            if back { pool.has_even_room(thread) } else { pool.has_room(thread) }
        };
        let room = (!fetched.opens || room(&pools.rob))
            && room(pools.queue(Op::is_vector(class)))
            && (class != OpClass::Load || pools.lq.has_room(thread));
        if !room {
            Some(Full::Other)
        } else if class == OpClass::Store && !pools.sq.has_room(thread) {
            Some(Full::Stores)
        } else {
            None
        }
    }

    fn enter(&mut self, thread: usize, fetched: &FetchedOp) {
        let FetchedOp { op, wrong, opens, closes } = *fetched;
        let vector = Op::is_vector(op.class);
        if opens {
            self.pools.rob.take(thread);
        }
        self.pools.queue(vector).take(thread);
        match op.class {
            OpClass::Load => self.pools.lq.take(thread),
            OpClass::Store => self.pools.sq.take(thread),
            _ => {}
        }
        let now = self.now;
        let own = &mut self.threads[thread];
        own.buffer.pop_front();
        let number = own.tail;
        let makers = op.sources.map(|back| own.maker(back));
        let (from, makes) = own.bytes(&op, makers[0], self.renames);
        own.tail += 1;
        own.vectors += u32::from(vector);
        if op.class == OpClass::Store {
            own.stores.push_back(StoreEntry { number, arrives: NEVER });
        }
        let mut new = InFlight {
            done: NEVER,
            ready: now + 1,
            age: self.age,
            address: op.address,
            page: op.page,
            waiting: NONE,
            next: [NONE; SOURCES],
            missing: 0,
            from,
            makes,
            class: op.class,
            cause: cause(op.class),
            starts_instruction: op.starts_instruction,
            wrong,
            closes,
        };
        self.age += 1;
        let index = own.index(number);
        let store = match from {
            Bytes::Store(store) => Some(store).filter(|store| *store >= own.head),
            _ => None,
        };
        for (which, source) in makers.into_iter().chain([store]).enumerate() {
            // What has retired is ready.
            let Some(source) = source else { continue };
            let source = own.slot_mut(source);
            if source.done == NEVER {
                new.missing += 1;
                new.next[which] = source.waiting;
                source.waiting = index * LINKS + which as u32;
            } else {
                new.ready = new.ready.max(source.done);
            }
        }
        *own.slot_mut(number) = new;
        if new.missing == 0 {
            let item = ReadyOp { age: new.age, number, thread: thread as u32, class: op.class };
            self.wheel.put(new.ready, item);
        }
    }
}
