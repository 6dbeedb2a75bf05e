//! Which thread fetches, and how.

use super::Core;
use super::thread::{Fetched, Front};
use crate::levels::Levels;
use crate::op::Branch;

/// Which threads fetch in a cycle. All together fetch no more than the dispatch width.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Fetch {
    /// One, the next in turn that can.
    #[default]
    RoundRobin,
    /// Those with the fewest operations between fetch and issue (Tullsen et al., 1996:
    /// ICOUNT.x.y).
    Icount {
        /// At most so many threads.
        threads: u32,
        /// At most so many operations of each.
        each: u32,
    },
}

impl Core<'_> {
    pub(super) fn fetch(&mut self, levels: &mut Levels) {
        let count = self.threads.len();
        let mut left = self.width;
        match self.fetch {
            Fetch::RoundRobin => {
                for step in 0..count {
                    let thread = (self.turn + step) % count;
                    if self.threads[thread].can_fetch(self.now) {
                        self.fetch_thread(levels, thread, left);
                        self.turn = (thread + 1) % count;
                        break;
                    }
                }
            }
            Fetch::Icount { threads, each } => {
                let mut chosen = 0_u64;
                for _ in 0..threads {
                    // Ties go to another one each cycle.
                    let first = self.now as usize;
                    let able = (0..count).map(|step| (first + step) % count).filter(|&t| {
                        t < 64 && chosen >> t & 1 == 0 && self.threads[t].can_fetch(self.now)
                    });
                    let fewest = able.min_by_key(|&t| {
                        self.threads[t].buffer.len() + self.threads[t].queued as usize
                    });
                    let Some(thread) = fewest.filter(|_| left > 0) else { break };
                    chosen |= 1 << thread;
                    left -= self.fetch_thread(levels, thread, left.min(each));
                }
            }
        }
    }

    /// Fetches at most so many operations of a thread; tells how many.
    fn fetch_thread(&mut self, levels: &mut Levels, thread: usize, most: u32) -> u32 {
        let ns = self.to_ns(self.now);
        let per_ns = self.per_ns;
        let own = &mut self.threads[thread];
        let line_shift = levels.code_shift(own.user);
        let most = (most as usize).min(own.buffer_room());
        let mut fetched = 0;
        self.moved = true;
        while fetched < most {
            let Some(op) = own.upcoming else { break };
            let line = op.pc >> line_shift;
            if line != own.line {
                own.line = line;
                let there = levels.code(own.user, ns, op.pc, op.code_page);
                if there > ns {
                    own.fetch_from = (there * per_ns - 1e-5).ceil() as u64;
                    own.front = Front::Icache;
                    break;
                }
            }
            let wrong = match op.branch {
                Branch::Foreseen => false,
                Branch::Conditional { taken } => self.predictor.wrong(thread, op.pc, taken),
                Branch::Told { wrong } => wrong,
            };
            own.buffer.push_back(Fetched { op, wrong });
            own.advance_stream();
            own.front = Front::Flow;
            fetched += 1;
            if wrong {
                own.blind = true;
                own.front = Front::Redirect;
                break;
            }
        }
        fetched as u32
    }
}
