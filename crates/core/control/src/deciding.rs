//! Where programs run while a decision is taken.

use std::time::Duration;

use symbiont_machine::{Assignment, Placement, Sample, Target};
use symbiont_topology::CpuSet;

/// Programs run on while a decision is taken (Feliu et al., section 4.3): where they were, or, so that they
/// do not slow the decision down, under the OS on all hardware threads but some.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Deciding {
    /// Hardware threads that are left to the decision; empty: none.
    pub reserved: CpuSet,
    /// How long it takes on a machine whose time is virtual. On a real one it takes what it takes.
    pub takes: Duration,
}

impl Deciding {
    /// Settled threads on what is left of the hardware threads that they may use, as urgent as they
    /// are. Whose limit leaves nothing stays.
    pub(crate) fn elsewhere(
        &self,
        sample: &Sample,
        online: &CpuSet,
        applied: &Placement,
    ) -> Placement {
        let settled = sample.threads.iter().filter(|thread| thread.lifecycle.is_settled());
        let elsewhere = settled.filter_map(|thread| {
            let left = thread.allowed.intersection(online).difference(&self.reserved);
            let have = applied.get(&thread.id).cloned().unwrap_or_default();
            let reason = "a decision is taken on a core of its own".into();
            let target = Target::Cpus(left.clone());
            let assignment = Assignment { mask: target.clone(), target, reason, ..have };
            (!left.is_empty()).then_some((thread.id, assignment))
        });
        elsewhere.collect()
    }
}
