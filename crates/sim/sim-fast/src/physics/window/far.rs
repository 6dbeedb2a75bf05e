//! Loads that wait for data from beyond the L2.
//!
//! While one of them waits, a thread with co-runners keeps to an even part of the re-order buffer and
//! the issue queue: otherwise what depends on its misses would fill them and stall the others. (The
//! cycle level says where that is known from.)
//!
//! # Properties
//! `a_load_waits_from_its_issue_to_its_data`; the effect on a thread:
//! `a_thread_with_co_runners_keeps_to_its_part_while_loads_are_far_away`.

/// Of the loads that were issued by the last call only the latest data matter.
#[derive(Debug, Clone, Default)]
pub struct Far {
    /// When the last of them has its data.
    latest: u32,
    /// Loads that are issued later: when, with data when.
    later: Vec<(u32, u32)>,
    /// When the first of these is issued.
    next: u32,
}

impl Far {
    /// Nothing waits.
    pub fn clear(&mut self) {
        self.later.clear();
        (self.latest, self.next) = (0, u32::MAX);
    }

    /// A load issued at `issue` that has its data at `done`.
    #[inline]
    pub fn add(&mut self, issue: u32, done: u32) {
        self.later.push((issue, done));
        self.next = self.next.min(issue);
    }

    /// Until when any waits that was issued by `cycle`; none if none does. Calls must come in the order
    /// of time.
    #[inline]
    pub fn until(&mut self, cycle: u32) -> Option<u32> {
        if self.next <= cycle {
            self.pass(cycle);
        }
        (self.latest > cycle).then_some(self.latest)
    }

    fn pass(&mut self, cycle: u32) {
        let (mut latest, mut next) = (self.latest, u32::MAX);
        self.later.retain(|&(issue, done)| {
            let issued = issue <= cycle;
            if issued {
                latest = latest.max(done);
            } else {
                next = next.min(issue);
            }
            !issued
        });
        (self.latest, self.next) = (latest, next);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_waits_from_its_issue_to_its_data() {
        let mut far = Far::default();
        assert_eq!(far.until(0), None);
        far.add(10, 100);
        far.add(20, 60);
        assert_eq!(far.until(9), None);
        assert_eq!(far.until(10), Some(100));
        far.add(70, 170);
        assert_eq!(far.until(60), Some(100));
        assert_eq!(far.until(70), Some(170));
        assert_eq!(far.until(170), None);
    }
}
