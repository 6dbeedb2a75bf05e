//! Retirement, and draining of stores.

use symbiont_profile::OpClass;

use super::Core;
use super::thread::Thread;
use crate::pool::Pool;

impl Thread<'_> {
    /// Its oldest store leaves the queue once it has retired and its line is there; did one?
    #[inline]
    fn drain(&mut self, at: usize, now: u64, queue: &mut Pool) -> bool {
        let drains = self
            .stores
            .front()
            .is_some_and(|store| store.number < self.head && store.arrives <= now);
        if drains {
            self.stores.pop_front();
            queue.give(at);
        }
        drains
    }
}

impl Core<'_> {
    pub(super) fn retire(&mut self) {
        let count = self.threads.len();
        let mut left = [self.retire; 2];
        for step in 0..count {
            let (at, half) = self.in_turn(step);
            let left = &mut left[half];
            let thread = &mut self.threads[at];
            self.moved |= thread.squash(at, self.now, &mut self.pools.rob);
            self.moved |= thread.drain(at, self.now, &mut self.pools.sq);
            thread.retired = 0;
            thread.outrun = false;
            let (mut loads, mut entries) = (0, 0);
            while thread.head < thread.tail {
                let slot = thread.slot(thread.head);
                if slot.done > self.now {
                    break;
                }
                if *left == 0 {
                    thread.outrun = thread.retired == 0;
                    break;
                }
                let (class, starts, wrong) = (slot.class, slot.starts_instruction, slot.wrong);
                entries += u32::from(slot.closes);
                loads += u32::from(class == OpClass::Load);
                thread.head += 1;
                thread.retired += 1;
                *left -= 1;
                let counts = &mut thread.counts;
                counts.instructions += u64::from(starts);
                counts.mispredicted += u64::from(wrong);
                counts.stores += u64::from(class == OpClass::Store);
                counts.fp_divisions += u64::from(class == OpClass::FpDivide);
            }
            if thread.retired > 0 {
                thread.counts.uops += u64::from(thread.retired);
                thread.counts.loads += u64::from(loads);
                thread.counts.last_retired = self.now;
                self.pools.rob.give_many(at, entries);
                self.pools.lq.give_many(at, loads);
                self.moved = true;
            }
        }
    }
}
