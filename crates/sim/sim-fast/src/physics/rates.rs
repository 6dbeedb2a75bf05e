//! What a thread does per instruction while it runs: what performance counters read.

use super::aet::FOREVER;
use super::memory;
use super::pipeline::{CacheLevel, Environment, Group};
use super::tasks::Task;
use super::window::Outcome;

/// Rates of one thread; all per instruction unless said otherwise.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Rates {
    /// Cycles of its core.
    pub cpi: f64,
    /// Clock of its core, 10⁹ cycles per second.
    pub ghz: f64,
    /// Micro-ops that the core dispatches per cycle, for all threads.
    pub width: f64,
    /// Stacks, and what is held.
    pub window: Outcome,
    /// Micro-operations.
    pub ops: f64,
    /// Loads.
    pub loads: f64,
    /// Stores.
    pub stores: f64,
    /// Branches.
    pub branches: f64,
    /// Mispredicted branches.
    pub mispredicts: f64,
    /// Floating-point operations.
    pub flops: f64,
    /// Floating-point and vector micro-operations.
    pub vector_ops: f64,
    /// Scalar floating-point micro-operations.
    pub fp_scalar: f64,
    /// Packed floating-point micro-operations.
    pub fp_packed: f64,
    /// Floating-point divisions.
    pub fp_divisions: f64,
    /// Cycles for which dividers are busy.
    pub divider_cycles: f64,
    /// Misses of the L1 data cache.
    pub l1d_misses: f64,
    /// Those of them that are loads.
    pub l1d_load_misses: f64,
    /// Misses of the L1 instruction cache.
    pub l1i_misses: f64,
    /// Misses of the L2, data and instructions.
    pub l2_misses: f64,
    /// Loads that missed the L2.
    pub l2_load_misses: f64,
    /// Misses of the last level: lines fetched from memory, prefetched ones too.
    pub llc_misses: f64,
    /// Loads that missed all caches and that no prefetch covered.
    pub llc_load_misses: f64,
    /// Those of the lines from memory that another node's memory served.
    pub remote_misses: f64,
    /// Lines written back to memory.
    pub write_backs: f64,
    /// First-level translation misses of instructions.
    pub itlb_misses: f64,
    /// Cycles from a load to its data from memory, queueing included.
    pub memory_latency: f64,
}

/// Misses per instruction at a level.
pub(super) fn misses(task: &Task<'_>, environment: &Environment, level: CacheLevel) -> f64 {
    task.phase.footprints[level as usize].misses(environment.reach[level as usize])
}

/// Of the accesses that continue a stream, the share whose stream the prefetcher has forgotten.
fn forgotten(task: &Task<'_>, environment: &Environment) -> f64 {
    let streams = &task.phase.footprints[CacheLevel::Streams as usize];
    let begun = streams.misses(FOREVER);
    let lost = misses(task, environment, CacheLevel::Streams) - begun;
    (lost / (streams.accesses() - begun).max(1e-12)).clamp(0.0, 1.0)
}

/// An outcome scaled to another CPI.
pub(super) fn with_cpi(window: &Outcome, cpi: f64) -> Outcome {
    let part = cpi / window.cpi.max(1e-9);
    Outcome {
        cpi,
        cycles: window.cycles.map(|cycles| cycles * part),
        slots: window.slots.map(|slots| slots * part),
        vector_cycles: window.vector_cycles * part,
        ..*window
    }
}

impl Rates {
    pub(super) fn new(task: &Task<'_>, environment: &Environment, window: Outcome) -> Self {
        let facts = task.facts;
        let at = |level| misses(task, environment, level);
        let memory_ops = (facts.loads + facts.stores).max(1e-12);
        let covered = task.phase.trace.covered * (1.0 - forgotten(task, environment));
        let vain =
            |level: CacheLevel| task.phase.overshoot.misses(environment.reach[level as usize]);
        let (l1d_misses, llc_misses) = (at(CacheLevel::L1d), at(CacheLevel::Last));
        let l2_misses = (at(CacheLevel::L2) - vain(CacheLevel::L2)).max(0.0);
        let wanted = (llc_misses - vain(CacheLevel::Last)).max(0.0);
        // Of what a shared level misses, data has the part that the L1s miss.
        let data = l1d_misses / (l1d_misses + at(CacheLevel::L1i)).max(1e-12);
        let loads = facts.loads / memory_ops * data;
        Self {
            cpi: window.cpi,
            ghz: task.ghz,
            width: task.pipeline.width,
            window,
            ops: facts.ops,
            loads: facts.loads,
            stores: facts.stores,
            branches: facts.branches,
            mispredicts: facts.mispredicted.get(environment.predictor).copied().unwrap_or(0.0)
                * task.pipeline.mispredicts,
            flops: facts.flops,
            vector_ops: facts.vector_ops,
            fp_scalar: facts.fp_scalar,
            fp_packed: facts.fp_packed,
            fp_divisions: facts.fp_divisions,
            divider_cycles: window.port_cycles[Group::Divider as usize],
            l1d_misses,
            l1d_load_misses: l1d_misses * facts.loads / memory_ops,
            l1i_misses: at(CacheLevel::L1i),
            l2_misses,
            l2_load_misses: l2_misses * loads,
            llc_misses,
            llc_load_misses: wanted * loads * (1.0 - covered),
            remote_misses: llc_misses * (1.0 - memory::share(task, task.node)),
            write_backs: llc_misses * facts.written,
            itlb_misses: at(CacheLevel::CodeTlb),
            memory_latency: environment.memory_latency,
        }
    }

    /// Instructions per second.
    #[must_use]
    pub fn instructions_per_second(&self) -> f64 {
        if self.cpi > 0.0 { self.ghz * 1e9 / self.cpi } else { 0.0 }
    }
}
