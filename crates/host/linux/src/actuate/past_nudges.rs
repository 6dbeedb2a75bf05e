//! The targets of recent nudges, kept for births that are reported late.

use std::collections::VecDeque;

use symbiont_topology::CpuSet;

use super::settings::Saved;
use crate::observe::Moment;

/// Nudges that are remembered for births reported late.
const REMEMBERED: usize = 1024;
/// Time from a child's copy of the mask to the moment that its report names, on the target of its maker: longer only
/// where that one loses the CPU in between. Of a thread that pins itself at birth so soon after a nudge to that target
/// it is not known that it did, and it loses the pin: so this is short.
const REPORT_LATER_NS: u64 = 300_000;

/// A target that a thread had for a moment.
#[derive(Debug)]
pub(super) struct Past {
    pub process: u32,
    pub narrow: CpuSet,
    pub saved: Saved,
    pub when: When,
}

/// When a thread was narrow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct When {
    from_ns: u64,
    to_ns: u64,
    /// Until when a birth in it may be reported.
    late_ns: u64,
}

impl When {
    /// One that was kept from running had no children.
    pub fn new(from_ns: u64, to_ns: u64, is_kept: bool) -> Self {
        let late_ns = to_ns.saturating_add(if is_kept { 0 } else { REPORT_LATER_NS });
        Self { from_ns, to_ns, late_ns }
    }

    /// Could the thread run, and see it?
    pub fn was_visible(self) -> bool {
        self.late_ns > self.to_ns
    }

    /// From the beginning of this one to the end of a later one.
    pub fn and(self, other: Self) -> Self {
        Self { from_ns: self.from_ns, late_ns: self.late_ns.max(other.late_ns), ..other }
    }
}

/// The last nudges.
#[derive(Debug, Default)]
pub(super) struct Nudges(VecDeque<Past>);

impl Nudges {
    pub fn remember(&mut self, past: Past) {
        if self.0.len() == REMEMBERED {
            self.0.pop_front();
        }
        self.0.push_back(past);
    }

    /// Those in which a child of this process may have got its mask.
    pub fn during(&self, process: u32, born: Moment) -> impl Iterator<Item = &Past> {
        let is_in = move |past: &&Past| {
            let When { from_ns, to_ns, late_ns } = past.when;
            let was_nudged = past.narrow.contains(born.cpu) && born.ns <= late_ns;
            let is_after = from_ns <= born.ns;
            past.process == process && is_after && (born.ns <= to_ns || was_nudged)
        };
        self.0.iter().rev().filter(is_in)
    }

    /// Could a thread of this process see such a mask of ours since then, on itself or on another one?
    pub fn showed(&self, process: u32, since_ns: u64, is_such: impl Fn(&CpuSet) -> bool) -> bool {
        let of_process = self.0.iter().filter(|past| past.process == process);
        let mut seen = of_process.filter(|p| p.when.to_ns >= since_ns && p.when.was_visible());
        seen.any(|past| is_such(&past.narrow))
    }
}

#[cfg(test)]
mod tests {
    use symbiont_topology::PuId;

    use super::super::settings::Mask;
    use super::super::thread::Class;
    use super::*;

    #[test]
    fn a_birth_soon_after_is_of_a_nudge_only_where_the_thread_could_run() {
        let saved = Saved { mask: Mask::All, nice: 0, class: Class::Other, reset_on_fork: false };
        let narrow: CpuSet = "1".parse().unwrap();
        for (is_kept, soon_after) in [(true, 0), (false, 1)] {
            let mut nudges = Nudges::default();
            let (narrow, saved) = (narrow.clone(), saved.clone());
            nudges.remember(Past { process: 1, narrow, saved, when: When::new(10, 20, is_kept) });
            let of = |ns, cpu| nudges.during(1, Moment { ns, cpu: PuId(cpu) }).count();
            assert_eq!([of(9, 1), of(10, 1), of(20, 0)], [0, 1, 1]);
            assert_eq!([of(21, 1), of(21, 0)], [soon_after, 0]);
        }
        let mut nudges = Nudges::default();
        for (process, is_kept) in [(1, false), (2, true)] {
            let (narrow, saved) = (narrow.clone(), saved.clone());
            nudges.remember(Past { process, narrow, saved, when: When::new(10, 20, is_kept) });
        }
        let showed = |process, since| nudges.showed(process, since, |mask| *mask == narrow);
        assert_eq!([showed(1, 20), showed(1, 21), showed(2, 0)], [true, false, false]);
        let both = When::new(10, 20, false).and(When::new(30, 40, true));
        assert_eq!(both, When { from_ns: 10, to_ns: 40, late_ns: 20 + REPORT_LATER_NS });
    }
}
