//! Wrong paths: what is fetched and dispatched behind a mispredicted branch.
//!
//! # Approach
//! Until the branch resolves, the thread goes on taking cycles of the front end, slots of dispatch and entries
//! of the re-order buffer, which others then do without. What it would execute is unknown, so nothing of it
//! is executed: its groups are as full as the thread's are on average, and they wait. When the branch has
//! resolved, they are squashed.
//!
//! # Properties
//! `a_wrong_path_takes_turns_from_others`, `a_wrong_path_takes_entries_from_others` (tests of the
//! crate).

use super::Core;
use super::thread::{Thread, WrongPath};
use crate::pool::Pool;

impl Thread<'_> {
    /// Operations that it fetches in a turn on average, at most so many.
    fn usual_group(&self, most: u32) -> u32 {
        let (operations, groups) = self.groups;
        ((operations + groups / 2) / groups.max(1)).clamp(1, u64::from(most)) as u32
    }

    /// Fetches what lies on the wrong path; returns how many operations.
    pub(super) fn fetch_wrong_path(&mut self, most: u32) -> u32 {
        let count = self.usual_group(most);
        self.wrong_path.fetched += count;
        count
    }

    /// If its wrong path has ended, what lay on it is gone; has it ended just now?
    #[inline]
    pub(super) fn squash(&mut self, at: usize, now: u64, rob: &mut Pool) -> bool {
        self.wrong_path.dispatched = 0;
        let followed = self.wrong_path.fetched + self.wrong_path.entries > 0;
        let ended = followed && !self.is_on_wrong_path(now);
        if ended {
            rob.give_many(at, self.wrong_path.entries);
            self.wrong_path = WrongPath::default();
        }
        ended
    }
}

impl Core<'_> {
    /// Dispatches what lies on a thread's wrong path, in the slots that are left; is there no entry
    /// of the re-order buffer for it? `back`: does it hold back?
    pub(super) fn dispatch_wrong_path(&mut self, at: usize, left: &mut u32, back: bool) -> bool {
        let group = if self.grouped { self.threads[at].usual_group(self.front.most) } else { 1 };
        let rob = &mut self.pools.rob;
        let wrong_path = &mut self.threads[at].wrong_path;
        while *left > 0 && wrong_path.fetched > 0 {
            if wrong_path.open == 0 {
                let room = if back { rob.has_even_room(at) } else { rob.has_room(at) };
                if !room {
                    return true;
                }
                rob.take(at);
                wrong_path.entries += 1;
                wrong_path.open = group;
            }
            wrong_path.open -= 1;
            wrong_path.fetched -= 1;
            wrong_path.dispatched += 1;
            *left -= 1;
        }
        false
    }
}
