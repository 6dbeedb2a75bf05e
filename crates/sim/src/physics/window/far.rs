//! Loads that wait for data from beyond the L2.
//!
//! While one of them waits, a thread that has co-runners keeps to an even part of re-order buffer and
//! issue queue: else what depends on its misses would fill them, and others stood still. (The cycle
//! level says where that is known from.)
//!
//! # Properties
//! `a_load_waits_from_its_issue_to_its_data`; what it does to a thread:
//! `a_thread_with_co_runners_keeps_to_its_part_while_loads_are_far_away`.

/// Issued when, with data when.
#[derive(Debug, Clone, Default)]
pub struct Far {
    waits: Vec<(u32, u32)>,
}

impl Far {
    /// Nothing waits.
    pub fn clear(&mut self) {
        self.waits.clear();
    }

    /// A load issued at `issue` that has its data at `done`.
    #[inline]
    pub fn add(&mut self, issue: u32, done: u32) {
        self.waits.push((issue, done));
    }

    /// Until when any waits that was issued by `cycle`; none if none does. Calls must come in the order
    /// of time.
    #[inline]
    pub fn until(&mut self, cycle: u32) -> Option<u32> {
        if self.waits.is_empty() {
            return None;
        }
        self.waits.retain(|(_, done)| *done > cycle);
        let issued = self.waits.iter().filter(|(issue, _)| *issue <= cycle);
        issued.map(|(_, done)| *done).max()
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
