//! Issue: the oldest ready operations first.

use symbiont_profile::OpClass;
use symbiont_sim_fast::activity::Cycle;

use super::thread::{Bytes, LINKS, NONE, Waits};
use super::{Core, ReadyOp};
use crate::levels::{CacheLevel, Levels, MemoryResponse};
use crate::op::Op;

impl Core<'_> {
    pub(super) fn issue(&mut self, levels: &mut Levels) {
        self.collect();
        if self.ready.is_empty() {
            return;
        }
        self.ports.open(self.now);
        // Those that stay move up.
        let (mut kept, mut at) = (0, 0);
        while at < self.ready.len() && !self.ports.exhausted() {
            let item = self.ready[at];
            at += 1;
            if !self.start(levels, &item) {
                self.ready[kept] = item;
                kept += 1;
            }
        }
        self.ready.drain(kept..at);
    }

    /// What has become ready joins those that are, in order of age.
    fn collect(&mut self) {
        let now = self.now;
        if !self.misses.is_empty() {
            let mshrs = &mut self.pools.mshrs;
            let before = self.misses.len();
            self.misses.retain(|&(until, thread)| {
                if until <= now {
                    mshrs.give(thread as usize);
                }
                until > now
            });
            if self.misses.len() < before {
                self.came.append(&mut self.starved);
            }
        }
        let came = &mut self.came;
        self.wheel.take(now, |item| came.push(item));
        if came.is_empty() {
            return;
        }
        if self.ready.is_empty() {
            std::mem::swap(&mut self.ready, came);
        } else {
            self.ready.append(came);
        }
        self.ready.sort_unstable_by_key(|item| item.age);
    }

    /// Issues an operation. False: there is no port, or a store must drain first. (It may also be
    /// put aside for want of a miss register.)
    fn start(&mut self, levels: &mut Levels, item: &ReadyOp) -> bool {
        let (thread, class) = (item.thread as usize, item.class);
        let own = &mut self.threads[thread];
        if let Bytes::Drained(store) | Bytes::Blocked(store) = own.slot(item.number).from {
            if own.holds(store) {
                own.slot_mut(item.number).from = Bytes::Blocked(store);
                return false;
            }
        }
        let Some(port) = self.ports.find(thread, class) else { return false };
        let done = match class {
            OpClass::Load | OpClass::Store => match self.access(levels, item) {
                Some(done) => done,
                None => {
                    self.starved.push(*item);
                    return true;
                }
            },
            _ => self.now + self.latency[class.index()],
        };
        self.ports.take(port, class, self.now);
        self.moved = true;
        let vector = Op::is_vector(class);
        self.pools.queue(vector).give(thread);
        let own = &mut self.threads[thread];
        own.vectors -= u32::from(vector);
        own.counts.divider_cycles += u64::from(self.ports.busy(class));
        let slot = own.slot_mut(item.number);
        slot.done = done;
        let wrong = slot.wrong;
        let mut link = std::mem::replace(&mut slot.waiting, NONE);
        while link != NONE {
            let (index, which) = (link / LINKS, (link % LINKS) as usize);
            let number = own.number(index);
            let waits = own.at(index);
            link = waits.next[which];
            waits.ready = waits.ready.max(done);
            waits.missing -= 1;
            if waits.missing == 0 {
                let ready =
                    ReadyOp { age: waits.age, number, thread: item.thread, class: waits.class };
                self.wheel.put(waits.ready, ready);
            }
        }
        if wrong {
            own.blind = false;
            own.resolved = done;
            own.fetch_from = done + self.refill - 1;
            own.front = Waits::Redirect;
        }
        true
    }

    /// A load or store goes to the caches: when it is done; none without a miss
    /// register.
    fn access(&mut self, levels: &mut Levels, item: &ReadyOp) -> Option<u64> {
        let thread = item.thread as usize;
        let ns = self.to_ns(self.now);
        let room = self.pools.mshrs.has_room(thread);
        let own = &self.threads[thread];
        let slot = own.slot(item.number);
        let writes = item.class == OpClass::Store;
        if let Bytes::Store(store) = slot.from {
            if own.holds(store) {
                // The caches see it, but what they answer is not waited for.
                levels.data(own.user, ns, slot.address, slot.page, false, true);
                return Some(self.now + self.forwarded);
            }
        }
        let MemoryResponse { ns, level, missed, translated } =
            levels.data(own.user, ns, slot.address, slot.page, writes, room)?;
        let arrives = self.to_cycle(ns).max(self.now + 1);
        if missed {
            self.pools.mshrs.take(thread);
            self.misses.push((arrives, item.thread));
        }
        let blocked = matches!(slot.from, Bytes::Blocked(_));
        let own = &mut self.threads[thread];
        if writes {
            // It is done when it has address and data; the line may come later.
            let at = own.stores.partition_point(|stored| stored.number < item.number);
            if let Some(stored) = own.stores.get_mut(at) {
                stored.arrives = arrives;
            }
            return Some(self.now + self.latency[item.class.index()]);
        }
        if matches!(level, CacheLevel::L3 | CacheLevel::Memory) {
            own.far_until = own.far_until.max(arrives);
        }
        own.slot_mut(item.number).cause = match level {
            CacheLevel::L1 if translated => Cycle::L2,
            CacheLevel::L1 => Cycle::L1,
            CacheLevel::L2 => Cycle::L2,
            CacheLevel::L3 => Cycle::L3,
            CacheLevel::Memory => Cycle::Memory,
        };
        Some(if blocked { arrives.max(self.now + self.partial) } else { arrives })
    }
}
