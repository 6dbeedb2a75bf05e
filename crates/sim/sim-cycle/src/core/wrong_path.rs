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
}

impl Core<'_> {
    /// What lay on wrong paths that ended is gone.
    pub(super) fn squash(&mut self) {
        for (at, thread) in self.threads.iter_mut().enumerate() {
            let wrong_path = &mut thread.wrong_path;
            wrong_path.dispatched = 0;
            if wrong_path.fetched + wrong_path.entries == 0
                || thread.blind
                || thread.resolved > self.now
            {
                continue;
            }
            (0..wrong_path.entries).for_each(|_| self.pools.rob.give(at));
            *wrong_path = WrongPath::default();
            self.moved = true;
        }
    }

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
