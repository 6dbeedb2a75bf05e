//! What a policy is shown.

use symbiont_counters::{Characterization, Characterizations, Measured, Measurements};
use symbiont_machine::{
    Assignment, Placement, Program, ProgramId, RunState, Sample, Stage, ThreadId,
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
    pub limit: &'a CpuSet,
    /// What of it may be set now.
    pub stage: Stage,
    /// Where it runs or ran last, where known.
    pub cpu: Option<PuId>,
    /// What Symbiont has in force for it; none if it is as the user left it.
    pub in_force: Option<&'a Assignment>,
    /// What it did over the last quantum; none if that is not known, as for a
    /// thread that was just born.
    pub did: Option<Characterization>,
    /// What was measured of it by counting events, as far as the policy needs
    /// it; none if nothing was, as on a machine that does not count.
    pub measured: Option<&'a Measured>,
}

impl<'a> View<'a> {
    /// A view of the last sample.
    #[must_use]
    pub fn new(
        topology: &'a Topology,
        sample: &'a Sample,
        known: &Characterizations,
        in_force: &'a Placement,
    ) -> Self {
        let thread = |t: &'a symbiont_machine::ThreadSample| ThreadView {
            id: t.id,
            program: t.program,
            state: t.state,
            limit: &t.limit,
            stage: t.stage,
            cpu: t.cpu,
            in_force: in_force.get(&t.id),
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
    /// sample does not tell.
    #[must_use]
    pub fn program_name(&self, thread: &ThreadView<'_>) -> &'a str {
        let known = self.programs.iter().find(|program| program.id == thread.program);
        known.map_or("", |program| program.name.as_str())
    }

    /// The online hardware threads within the thread's limit. Empty for a
    /// thread whose whole limit went offline, until the OS widens it.
    #[must_use]
    pub fn allowed(&self, thread: &ThreadView<'_>) -> CpuSet {
        thread.limit.intersection(&self.online)
    }
}
