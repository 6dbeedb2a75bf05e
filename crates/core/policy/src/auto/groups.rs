//! Groups on cores: the chosen policy decides in its own period, and within domains.
//!
//! The policy is shown steady threads only, and as allowed to each the CPUs of its domain: policies group
//! threads with equal allowed CPUs, so that groups stay within domains. A thread is kept on the core
//! that it was given, not on a hardware thread of it, so that the OS can still balance inside the core.
//! Between two decisions of the policy threads stay where they are; it decides earlier where other
//! threads, or other CPUs, take part.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use symbiont_machine::{Target, ThreadId};
use symbiont_topology::CpuSet;

use super::choice::Choice;
use crate::{ThreadView, View};

/// What was decided for a thread.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Held {
    /// The core that it is kept on; none: left to the OS.
    pub core: Option<CpuSet>,
    pub reason: Cow<'static, str>,
    pub predicted: Option<f64>,
}

/// The last decision.
#[derive(Debug, Clone, Default)]
pub(super) struct Groups {
    held: BTreeMap<ThreadId, Held>,
    shown: Vec<(ThreadId, CpuSet)>,
    since: Duration,
    /// Decisions so far.
    pub decisions: u64,
}

impl Groups {
    /// Decides, where the time has come; `shown`: threads of the view by index, each with the CPUs among
    /// which its core is to be.
    pub fn decide(
        &mut self,
        choice: &mut Choice,
        view: &View<'_>,
        shown: &[(usize, CpuSet)],
        over: Duration,
    ) -> &BTreeMap<ThreadId, Held> {
        let Some((entry, policy)) = &mut choice.groups else {
            self.held.clear();
            return &self.held;
        };
        self.since += over;
        let thread = |at: usize| view.threads.get(at);
        let now: Vec<(ThreadId, CpuSet)> =
            (shown.iter()).filter_map(|(at, cpus)| Some((thread(*at)?.id, cpus.clone()))).collect();
        if self.since < entry.quantum && now == self.shown {
            return &self.held;
        }
        self.since = Duration::ZERO;
        self.shown = now;
        self.decisions += 1;
        let threads: Vec<ThreadView<'_>> = (shown.iter())
            .filter_map(|(at, cpus)| Some(ThreadView { allowed: cpus, ..thread(*at)?.clone() }))
            .collect();
        let online = view.online.clone();
        let narrow = View { topology: view.topology, online, threads, programs: view.programs };
        let placement = policy.place(&narrow);
        let allowed: BTreeMap<ThreadId, &CpuSet> =
            self.shown.iter().map(|(id, cpus)| (*id, cpus)).collect();
        let held = placement.into_iter().filter_map(|(id, assignment)| {
            let allowed = allowed.get(&id)?;
            let core = match &assignment.target {
                Target::Cpus(cpus) => {
                    let cores = cpus.iter().filter_map(|pu| view.topology.siblings(pu));
                    let cores = cores.fold(CpuSet::new(), |all, core| all.union(core));
                    Some(cores.intersection(allowed))
                }
                Target::Os => None,
            };
            let predicted = assignment.predicted_slowdown;
            Some((id, Held { core, reason: assignment.reason, predicted }))
        });
        self.held = held.collect();
        &self.held
    }
}
