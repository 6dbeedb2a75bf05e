//! Issue: the oldest ready operations first.

use symbiont_profile::OpClass;
use symbiont_sim_fast::activity::Cycle;

use super::thread::{Access, Bytes, LINKS, NEVER, NONE, Waits};
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
        while at < self.ready.len() {
            self.ready[kept] = self.ready[at];
            (kept, at) = (kept + 1, at + 1);
        }
        self.ready.truncate(kept);
    }

    /// What has become ready joins those that are, in order of age.
    fn collect(&mut self) {
        let now = self.now;
        let ready = &mut self.ready;
        if self.arrival <= now {
            let mshrs = &mut self.pools.mshrs;
            self.arrival = NEVER;
            self.misses.retain(|&(until, thread)| {
                if until <= now {
                    mshrs.give(thread as usize);
                } else {
                    self.arrival = self.arrival.min(until);
                }
                until > now
            });
            if !self.starved.is_empty() {
                ready.append(&mut self.starved);
                ready.sort_unstable_by_key(|item| item.age);
            }
        }
        // One by one: there are few, and most are the youngest.
        self.wheel.take(now, |item| {
            let mut at = ready.len();
            ready.push(item);
            while at > 0 && ready[at - 1].age > item.age {
                ready[at] = ready[at - 1];
                at -= 1;
            }
            ready[at] = item;
        });
    }

    /// Issues an operation. False: there is no port, or a store must drain first. (It may also be
    /// put aside for want of a miss register.)
    #[inline]
    fn start(&mut self, levels: &mut Levels, item: &ReadyOp) -> bool {
        let (thread, class) = (item.thread as usize, item.class);
        let own = &mut self.threads[thread];
        let from = own.slot(item.number).from;
        if let Bytes::Drained(back) | Bytes::Blocked(back) = from {
            if own.holds(item.number - u64::from(back)) {
                own.slot_mut(item.number).from = Bytes::Blocked(back);
                return false;
            }
        }
        let Some(port) = self.ports.find(thread, class) else { return false };
        let done = if class.is_memory() {
            let Some(done) = self.access(levels, item) else {
                self.starved.push(*item);
                return true;
            };
            done
        } else {
            self.now + self.latency[class.index()]
        };
        self.ports.take(port, class, self.now);
        self.moved = true;
        self.pools.queue_mut(class).give(thread);
        let own = &mut self.threads[thread];
        own.vectors -= u32::from(Op::is_vector(class));
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

    /// A load or store goes to the caches: when it is done; none without a miss register.
    fn access(&mut self, levels: &mut Levels, item: &ReadyOp) -> Option<u64> {
        let (thread, now) = (item.thread as usize, self.now);
        let ns = self.to_ns(now);
        let room = self.pools.mshrs.has_room(thread);
        let own = &mut self.threads[thread];
        let user = own.user;
        let from = own.slot(item.number).from;
        let &Access { address, page, .. } = own.access(item.number);
        let writes = item.class == OpClass::Store;
        if let Bytes::Store(back) = from {
            if own.holds(item.number - u64::from(back)) {
                // The caches see it, but what they answer is not waited for.
                levels.data(user, ns, address, page, false, true);
                return Some(now + self.forwarded);
            }
        }
        let MemoryResponse { ns, level, missed, translated } =
            levels.data(user, ns, address, page, writes, room)?;
        let arrives = to_cycle(ns, self.per_ns).max(now + 1);
        if missed {
            self.pools.mshrs.take(thread);
            self.misses.push((arrives, item.thread));
            self.arrival = self.arrival.min(arrives);
        }
        if writes {
            // It is done when it has address and data; the line may come later.
            let at = own.stores.partition_point(|stored| stored.number < item.number);
            if let Some(stored) = own.stores.get_mut(at) {
                stored.arrives = arrives;
            }
            return Some(now + self.latency[item.class.index()]);
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
        let blocked = matches!(from, Bytes::Blocked(_));
        Some(if blocked { arrives.max(now + self.partial) } else { arrives })
    }
}

/// The first cycle that begins at or after `ns`.
#[inline]
fn to_cycle(ns: f64, per_ns: f64) -> u64 {
    // Far less than a cycle is a matter of rounding.
    let cycles = (ns * per_ns - 1e-5).max(0.0);
    let whole = cycles as u64;
    whole + u64::from((whole as f64) < cycles)
}
