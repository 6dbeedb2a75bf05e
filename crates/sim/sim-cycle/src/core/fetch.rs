//! Fetch: one thread in each cycle, the next in turn that can (round-robin).

use symbiont_profile::OpClass;

use super::Core;
use super::thread::Waits;
use crate::levels::Levels;

/// What the front end delivers in a cycle, to one thread.
#[derive(Debug, Clone, Copy)]
pub(super) struct Front {
    /// Operations.
    pub(super) most: u32,
    /// Taken branches: the last ends it.
    pub(super) taken: u32,
    /// Branches: the last ends it.
    pub(super) branches: u32,
    /// Operations that are no branches.
    pub(super) others: u32,
}

impl Core<'_> {
    pub(super) fn fetch(&mut self, levels: &mut Levels) {
        (0..self.halves).for_each(|half| self.fetch_half(levels, half));
    }

    fn fetch_half(&mut self, levels: &mut Levels, half: usize) {
        let (halves, now) = (self.halves, self.now);
        let count = (self.threads.len() + halves - 1 - half) >> (halves - 1);
        let next = |at: usize| if at + 1 >= count { 0 } else { at + 1 };
        let mut at = self.turn[half];
        for _ in 0..count {
            let thread = at * halves + half;
            at = next(at);
            if self.threads[thread].can_fetch(now, self.front.most) {
                self.fetch_thread(levels, thread);
                self.turn[half] = at;
                break;
            }
        }
    }

    /// Fetches a group of a thread.
    fn fetch_thread(&mut self, levels: &mut Levels, thread: usize) {
        let ns = self.to_ns(self.now);
        let (per_ns, front) = (self.per_ns, self.front);
        let own = &mut self.threads[thread];
        if own.is_on_wrong_path(self.now) {
            self.moved = true;
            own.fetch_wrong_path(front.most);
            return;
        }
        let line_shift = levels.code_shift(own.user);
        let most = front.most.min(own.buffer_room());
        let (mut taken, mut branches, mut others) = (0, 0, 0);
        let mut fetched = 0;
        self.moved = true;
        while fetched < most {
            let Some(op) = &own.upcoming else { break };
            let branch = op.class == OpClass::Branch;
            if !branch && others >= front.others {
                break;
            }
            let line = op.pc >> line_shift;
            if line != own.line {
                own.line = line;
                let there = levels.code(own.user, ns, op.pc, op.code_page);
                if there > ns {
                    own.fetch_from = (there * per_ns - 1e-5).ceil() as u64;
                    own.front = Waits::Icache;
                    break;
                }
            }
            let wrong = self.predictor.wrong(thread, op.pc, op.branch);
            let goes_elsewhere = op.taken;
            let alone = !self.grouped;
            own.take_upcoming(wrong, alone || fetched == 0, alone);
            own.front = Waits::Flow;
            fetched += 1;
            if wrong {
                own.blind = true;
                own.front = Waits::Redirect;
                break;
            }
            others += u32::from(!branch);
            branches += u32::from(branch);
            taken += u32::from(goes_elsewhere);
            if taken >= front.taken || branch && branches >= front.branches {
                break;
            }
        }
        if fetched > 0 {
            own.slot_mut(own.fetched - 1).closes = true;
            own.groups = (own.groups.0 + u64::from(fetched), own.groups.1 + 1);
        }
    }
}
