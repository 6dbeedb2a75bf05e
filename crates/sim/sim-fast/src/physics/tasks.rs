//! The threads that run, laid out for the fixed point.

use super::domains::Physics;
use super::for_core::{Facts, ForCore};
use super::pipeline::{CacheLevel, CoreSharing, Environment, Pipeline, REACHES};
use super::prepared::{KeptTables, Prepared};

/// A thread that runs for the whole time that is solved.
#[derive(Debug, Clone, Copy)]
pub struct RunningThread<'a> {
    /// Names the thread from one call to the next.
    pub thread: u64,
    /// The phase that it is in.
    pub prepared: &'a Prepared,
    /// Shares of its pages by node of the topology; if they sum to nothing, all
    /// lie on the node of its core, or the first with memory.
    pub pages: &'a [f64],
}

/// A core and what runs on it.
#[derive(Debug, Clone, Copy)]
pub struct CoreLoad<'a> {
    /// Index of the core in the topology.
    pub core: usize,
    /// Hardware threads that the core is set up for; at least as many as run, or
    /// it is taken as that.
    pub mode: u32,
    /// Its threads.
    pub threads: &'a [RunningThread<'a>],
}

/// Which shared resources each thread gets for itself, and whether caches are ever cold, so that a
/// policy's gain can be shown to vanish with its cause.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Switches {
    /// Dispatch slots, ports, and what threads compete for of the queues.
    pub private_units: bool,
    /// All caches, translation buffers and tables of streams, which go with their thread wherever it
    /// moves.
    pub private_caches: bool,
    /// Memory and links.
    pub private_bandwidth: bool,
    /// The branch predictor.
    pub private_predictor: bool,
    /// Caches hold at once what they will in the long run: a move leaves nothing behind.
    pub warm_caches: bool,
}

impl Switches {
    /// Nothing is shared.
    pub const ALL_PRIVATE: Self = Self {
        private_units: true,
        private_caches: true,
        private_bandwidth: true,
        private_predictor: true,
        warm_caches: false,
    };
}

/// A thread in the fixed point.
#[derive(Debug, Clone, Copy)]
pub struct Task<'a> {
    /// Names it.
    pub thread: u64,
    /// Its core.
    pub core: usize,
    /// The core's type.
    pub core_type: usize,
    /// The SMT mode.
    pub mode: u32,
    /// Threads on the core.
    pub peers: usize,
    /// Clock, 10⁹ cycles per second.
    pub ghz: f64,
    /// Is the L2 the last level?
    pub two_levels: bool,
    /// Node of its core.
    pub node: usize,
    /// Node of its memory, if `pages` do not show it.
    pub home: usize,
    /// Its core in this mode.
    pub pipeline: &'a Pipeline,
    /// Its phase there.
    pub phase: &'a ForCore,
    /// What is known of it there.
    pub tables: &'a KeptTables,
    /// Its phase.
    pub facts: &'a Facts,
    /// Shares of its pages by node.
    pub pages: &'a [f64],
}

/// All threads, those of a core next to each other. A thread that has its units for itself is as good as alone
/// in its core.
pub fn flatten<'a>(
    physics: &'a Physics,
    loads: &[CoreLoad<'a>],
    switches: Switches,
) -> Vec<Task<'a>> {
    let mut tasks = Vec::with_capacity(loads.iter().map(|load| load.threads.len()).sum());
    for load in loads {
        let Some(core) = physics.cores.get(load.core) else { continue };
        let mode = load.mode.max(load.threads.len() as u32);
        let sharers = if switches.private_units { 1 } else { load.threads.len() };
        let sharing = CoreSharing::of(sharers);
        let Some(pipeline) = physics.pipeline(core.core_type, mode, sharing) else { continue };
        for running in load.threads {
            let of_type = core.core_type;
            let prepared = running.prepared;
            let Some((phase, tables)) =
                prepared.cores.get(of_type).zip(prepared.tables.get(of_type))
            else {
                continue;
            };
            tasks.push(Task {
                thread: running.thread,
                core: load.core,
                core_type: core.core_type,
                mode: pipeline.mode,
                peers: load.threads.len(),
                ghz: core.ghz,
                two_levels: core.caches[CacheLevel::L2 as usize]
                    == core.caches[CacheLevel::Last as usize],
                node: core.node,
                home: core.home,
                pipeline,
                phase,
                tables,
                facts: &prepared.facts,
                pages: running.pages,
            });
        }
    }
    tasks
}

/// Runs of tasks on one core.
pub fn by_core<'t>(tasks: &'t [Task<'_>]) -> impl Iterator<Item = std::ops::Range<usize>> + 't {
    let mut start = 0;
    tasks.chunk_by(|a, b| a.core == b.core).map(move |chunk| {
        let range = start..start + chunk.len();
        start = range.end;
        range
    })
}

/// The environment of a thread that is alone on the machine.
pub fn alone(physics: &Physics, task: &Task<'_>) -> Environment {
    let caches = physics.cores[task.core].caches;
    let mut reach = [0.0; REACHES];
    for level in CacheLevel::ALL {
        let index = level as usize;
        reach[index] = task.phase.footprints[index].reach(caches[index].lines);
    }
    reach[CacheLevel::Last as usize] =
        reach[CacheLevel::Last as usize].max(reach[CacheLevel::L2 as usize]);
    task.pipeline.alone(reach, 1.0, 1.0)
}
