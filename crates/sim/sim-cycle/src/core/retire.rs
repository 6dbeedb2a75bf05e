//! Retirement, and draining of stores.

use symbiont_profile::OpClass;

use super::Core;

impl Core<'_> {
    /// Each thread's oldest store leaves the queue once it has retired and its line is there.
    pub(super) fn drain(&mut self) {
        for (at, thread) in self.threads.iter_mut().enumerate() {
            let Some(store) = thread.stores.front() else { continue };
            if store.number < thread.head && store.arrives <= self.now {
                thread.stores.pop_front();
                self.pools.sq.give(at);
                self.moved = true;
            }
        }
    }

    pub(super) fn retire(&mut self) {
        let count = self.threads.len();
        let mut left = [self.retire; 2];
        for step in 0..count {
            let (at, half) = self.in_turn(step);
            let left = &mut left[half];
            let thread = &mut self.threads[at];
            thread.retired = 0;
            thread.outrun = false;
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
                let closes = slot.closes;
                thread.head += 1;
                thread.retired += 1;
                *left -= 1;
                let counts = &mut thread.counts;
                counts.uops += 1;
                counts.instructions += u64::from(starts);
                counts.mispredicted += u64::from(wrong);
                if closes {
                    self.pools.rob.give(at);
                }
                match class {
                    OpClass::Load => {
                        counts.loads += 1;
                        self.pools.lq.give(at);
                    }
                    OpClass::Store => counts.stores += 1,
                    OpClass::FpDivide => counts.fp_divisions += 1,
                    _ => {}
                }
            }
            if thread.retired > 0 {
                thread.counts.last_retired = self.now;
                self.moved = true;
            }
        }
    }
}
