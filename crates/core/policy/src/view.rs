//! What a policy is shown.

use symbiont_counters::{Characterization, Characterizations, Measured, Measurements};
use symbiont_machine::{
    Assignment, CoreCookie, Lifecycle, Placement, Program, ProgramId, RunState, Sample, ThreadId,
};
use symbiont_topology::{CpuSet, PuId, Topology};

/// The machine and its enrolled threads at the start of a quantum.
#[derive(Debug, Clone)]
pub struct View<'a> {
    /// The machine.
    pub topology: &'a Topology,
    /// All online hardware threads of it.
    pub online: CpuSet,
    /// The threads, ordered by identity.
    pub threads: Vec<ThreadView<'a>>,
    /// The programs that they belong to.
    pub programs: &'a [Program],
}

/// One enrolled thread.
#[derive(Debug, Clone)]
pub struct ThreadView<'a> {
    /// Which thread.
    pub id: ThreadId,
    /// The program that it belongs to.
    pub program: ProgramId,
    /// What it does now.
    pub state: RunState,
    /// Where the user and the cpuset let it run.
    pub allowed: &'a CpuSet,
    /// What of it may be set now.
    pub lifecycle: Lifecycle,
    /// Its cookie of core scheduling, where it has one.
    pub cookie: Option<CoreCookie>,
    /// Where it runs or ran last, where known.
    pub cpu: Option<PuId>,
    /// What Symbiont has applied for it; none if it is as the user left it.
    pub applied: Option<&'a Assignment>,
    /// What it did over the last quantum; none if that is not known, as for a
    /// thread that was just born.
    pub did: Option<Characterization>,
    /// What was measured of it by counting events, as far as the policy needs
    /// it; none if nothing was, as on a machine that does not count.
    pub measured: Option<&'a Measured>,
}

/// A thread that may be placed now.
#[derive(Debug, Clone)]
pub struct Placeable<'v, 'a> {
    /// Its index in the view.
    pub index: usize,
    /// The thread.
    pub thread: &'v ThreadView<'a>,
    /// The hardware threads that it may be sent to; never empty.
    pub allowed: CpuSet,
}

/// Why no policy places an unsettled thread.
pub(crate) const NOT_SETTLED: &str = "not settled yet";
/// Why no policy places a thread that is scheduled in a class of its own.
pub(crate) const SPECIAL: &str =
    "real-time and deadline threads, and those that others have set idle, are never touched";
/// Why no policy places a thread that has no hardware thread left.
pub(crate) const OFFLINE: &str = "none of its allowed CPUs is online";

/// Why a thread that is allowed on these online hardware threads must be left to the OS, if it must.
pub(crate) fn refused(thread: &ThreadView<'_>, allowed: &CpuSet) -> Option<&'static str> {
    match thread.lifecycle {
        Lifecycle::Special => Some(SPECIAL),
        Lifecycle::Fresh | Lifecycle::Starting => Some(NOT_SETTLED),
        Lifecycle::Settled if allowed.is_empty() => Some(OFFLINE),
        Lifecycle::Settled => None,
    }
}

impl<'a> View<'a> {
    /// The threads that may be placed now, in the order of the view, and a placement that leaves all
    /// others to the OS, with the reason. A policy decides on the former and adds them to the latter.
    #[must_use]
    pub fn placeable(&self) -> (Vec<Placeable<'_, 'a>>, Placement) {
        let (mut placeable, mut left) = (Vec::new(), Placement::new());
        for (index, thread) in self.threads.iter().enumerate() {
            match self.places(thread) {
                Ok(allowed) => placeable.push(Placeable { index, thread, allowed }),
                Err(why) => {
                    left.insert(thread.id, Assignment::os(why));
                }
            }
        }
        (placeable, left)
    }

    /// The hardware threads that a thread may be sent to now; at least one.
    ///
    /// # Errors
    /// Why it must be left to the OS.
    pub fn places(&self, thread: &ThreadView<'_>) -> Result<CpuSet, &'static str> {
        let allowed = self.allowed(thread);
        refused(thread, &allowed).map_or(Ok(allowed), Err)
    }

    /// A view of the last sample.
    #[must_use]
    pub fn new(
        topology: &'a Topology,
        sample: &'a Sample,
        known: &Characterizations,
        applied: &'a Placement,
    ) -> Self {
        let thread = |t: &'a symbiont_machine::ThreadSample| ThreadView {
            id: t.id,
            program: t.program,
            state: t.state,
            allowed: &t.allowed,
            lifecycle: t.lifecycle,
            cookie: t.cookie,
            cpu: t.cpu,
            applied: applied.get(&t.id),
            did: known.get(&t.id).copied(),
            measured: None,
        };
        Self {
            topology,
            online: topology.cpus(),
            threads: sample.threads.iter().map(thread).collect(),
            programs: &sample.programs,
        }
    }

    /// The same with what was measured by counting events.
    #[must_use]
    pub fn measured(mut self, measurements: &'a Measurements) -> Self {
        for thread in &mut self.threads {
            thread.measured = measurements.get(&thread.id);
        }
        self
    }

    /// What people call the program that a thread belongs to; empty if the
    /// sample does not say.
    #[must_use]
    pub fn program_name(&self, thread: &ThreadView<'_>) -> &'a str {
        let known = self.programs.iter().find(|program| program.id == thread.program);
        known.map_or("", |program| program.name.as_str())
    }

    /// What a thread's program is known by from one run to the next: its identity, or else its name.
    #[must_use]
    pub fn identity(&self, thread: &ThreadView<'_>) -> &'a str {
        let known = self.programs.iter().find(|program| program.id == thread.program);
        known.map_or("", |program| program.identity.as_ref().unwrap_or(&program.name))
    }

    /// The user whose program a thread belongs to, where the sample says.
    #[must_use]
    pub fn user(&self, thread: &ThreadView<'_>) -> Option<u32> {
        let known = self.programs.iter().find(|program| program.id == thread.program);
        known.and_then(|program| program.user)
    }

    /// The online hardware threads within the thread's allowed CPUs. Empty for a
    /// thread whose allowed CPUs all went offline, until the OS widens it.
    #[must_use]
    pub fn allowed(&self, thread: &ThreadView<'_>) -> CpuSet {
        thread.allowed.intersection(&self.online)
    }
}

#[cfg(test)]
mod tests {
    use symbiont_machine::ThreadSample;
    use symbiont_machine::test_support::thread;

    use super::*;

    #[test]
    fn only_settled_threads_with_an_online_cpu_are_placeable() {
        let machine = Topology::synthetic("core:2").unwrap();
        let born = |n: u32, allowed: &str, lifecycle: Lifecycle| -> ThreadSample {
            ThreadSample { lifecycle, ..thread(1, n, &allowed.parse().unwrap()) }
        };
        let threads = vec![
            born(1, "0-1", Lifecycle::Settled),
            born(2, "0-1", Lifecycle::Starting),
            born(3, "7", Lifecycle::Settled),
            born(4, "1,7", Lifecycle::Settled),
        ];
        let sample = Sample { threads, ..Sample::default() };
        let (known, applied) = (Characterizations::new(), Placement::new());
        let view = View::new(&machine, &sample, &known, &applied);
        let (placeable, left) = view.placeable();
        let listed: Vec<_> =
            placeable.iter().map(|it| (it.index, it.allowed.to_string())).collect();
        assert_eq!(listed, [(0, "0-1".to_owned()), (3, "1".to_owned())]);
        let reasons: Vec<&str> = left.values().map(|left| left.reason.as_ref()).collect();
        assert_eq!(reasons, [NOT_SETTLED, OFFLINE]);
    }
}
