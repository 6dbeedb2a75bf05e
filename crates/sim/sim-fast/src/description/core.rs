//! One core type.

use symbiont_profile::{OpClass, Prediction};
use symbiont_topology::CoreKind;

/// One core type with its private levels and its way to the shared ones.
#[derive(Debug, Clone, PartialEq)]
pub struct CoreType {
    /// Which cores of the topology are of this type.
    pub kind: CoreKind,
    /// The event catalogue whose events its threads emit.
    pub catalogue: String,
    /// Clock, GHz.
    pub ghz: f64,
    /// Micro-ops of one thread that the front end delivers in a cycle.
    pub fetch: u32,
    /// Taken branches that it passes in a cycle.
    pub taken_per_fetch: u32,
    /// Branches of a group, of those cores that dispatch and complete operations in groups:
    /// the last of them ends it, and the rest of its places hold no branch.
    pub group_branches: Option<u32>,
    /// The SMT mode from which on threads are divided among two halves of the core, each with
    /// half of its places for dispatch, of its ports and of its halved queues.
    pub halves_from: Option<u32>,
    /// Micro-ops dispatched per cycle by the core.
    pub dispatch: u32,
    /// Micro-ops retired per cycle by the core.
    pub retire: u32,
    /// Cycles from a mispredicted branch's resolution to the dispatch of the
    /// right path.
    pub refill: u32,
    /// Re-order buffer (completion table), in micro-ops.
    pub rob: Structure,
    /// Issue queue (scheduler, reservation stations).
    pub iq: Structure,
    /// Of the floating-point side, where it has one of its own.
    pub fp_iq: Option<Structure>,
    /// Load queue.
    pub lq: Structure,
    /// Store queue.
    pub sq: Structure,
    /// Miss registers (MSHRs) of the L1 data cache.
    pub mshrs: Structure,
    /// The issue ports.
    pub ports: Vec<Port>,
    /// Execution latencies.
    pub latency: Latencies,
    /// How a load gets what a store before it wrote.
    pub forwarding: Forwarding,
    /// How branches are predicted.
    pub prediction: Prediction,
    /// Two-bit counters of a gshare, or tagged entries of a TAGE, of equal accuracy, shared by the threads.
    pub predictor: u32,
    /// Of the mispredictions of such a predictor of that size, the share that it makes too.
    pub mispredicts: f64,
    /// L1 instruction cache.
    pub l1i: Cache,
    /// L1 data cache.
    pub l1d: Cache,
    /// Second level; on a machine with two levels the last.
    pub l2: Cache,
    /// Third level.
    pub l3: Option<Cache>,
    /// Address translation.
    pub tlb: Tlb,
    /// Sequential streams that the prefetcher follows for the core; 0: none.
    pub prefetch_streams: u32,
    /// How many lines it runs ahead of each.
    pub prefetch_lines: u32,
}

/// From a store to a load of the same bytes, before they are in the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Forwarding {
    /// Cycles from the store's issue to the load's result, if the store wrote all that is read.
    pub latency: u32,
    /// If it did not: cycles to the load's result once the store is in the cache, for which it waits.
    pub partial: u32,
    /// Is the stored register forwarded at once where both form their address from the same
    /// registers (memory renaming)?
    pub renames: bool,
}

/// A queue or buffer of a core.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Structure {
    /// Its entries.
    pub entries: u32,
    /// How threads share it.
    pub smt: SmtRule,
}

/// How the threads of a core share a structure; n of them are active.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum SmtRule {
    /// Each thread has one of its own.
    Private,
    /// Each thread has an n-th.
    Partitioned,
    /// First come, first served.
    Shared,
    /// Shared, but no thread may hold more than this fraction.
    Capped(f64),
    /// Two halves, each shared by half of the threads; a single thread has
    /// both.
    Halved,
}

/// An issue port: one micro-op per cycle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Port {
    /// What it can issue; [`OpClass::Other`] needs no port.
    pub does: Vec<OpClass>,
    /// Does each thread have one of its own (the integer side of a Bulldozer
    /// module)?
    pub private: bool,
}

/// Cycles from issue to result; the load's is the L1 data cache's.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Latencies {
    /// Simple integer and logic, branches, stores.
    pub integer: u32,
    /// Integer multiplication.
    pub multiply: u32,
    /// Integer division; the unit is busy as long.
    pub divide: u32,
    /// Floating-point addition.
    pub fp_add: u32,
    /// Floating-point multiplication.
    pub fp_multiply: u32,
    /// Fused multiply-add; without such a unit, both in turn.
    pub fp_fma: u32,
    /// Floating-point division.
    pub fp_divide: u32,
    /// Cycles for which a floating-point division keeps its unit.
    pub fp_divide_busy: u32,
    /// Vector integer and logic.
    pub vector: u32,
}

impl Latencies {
    /// Cycles from issue to result; none for a load, whose cache decides.
    #[must_use]
    pub fn of(&self, class: OpClass) -> Option<u32> {
        Some(match class {
            OpClass::Integer | OpClass::Store | OpClass::Branch | OpClass::Other => self.integer,
            OpClass::Multiply => self.multiply,
            OpClass::Divide => self.divide,
            OpClass::FpAdd => self.fp_add,
            OpClass::FpMultiply => self.fp_multiply,
            OpClass::FpFma => self.fp_fma,
            OpClass::FpDivide => self.fp_divide,
            OpClass::Vector => self.vector,
            OpClass::Load => return None,
        })
    }

    /// Cycles for which the port is taken.
    #[must_use]
    pub fn busy(&self, class: OpClass) -> u32 {
        match class {
            OpClass::Divide => self.divide,
            OpClass::FpDivide => self.fp_divide_busy,
            _ => 1,
        }
    }
}

/// Which threads share a cache or buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// Each hardware thread has one.
    Thread,
    /// The hardware threads of a core.
    Core,
    /// This many neighbouring cores.
    Cores(u32),
    /// The LLC domain.
    Llc,
}

/// One cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cache {
    /// Size of one instance.
    pub bytes: u64,
    /// Ways of a set.
    pub ways: u32,
    /// Line.
    pub line: u32,
    /// Cycles from a load's issue to its data.
    pub latency: u32,
    /// Which threads share an instance.
    pub scope: Scope,
}

impl Cache {
    /// Lines of one instance.
    #[must_use]
    pub fn lines(&self) -> u64 {
        self.bytes / u64::from(self.line.max(1))
    }
}

/// Address translation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tlb {
    /// Page size that the OS uses, bytes.
    pub page: u64,
    /// First level, data.
    pub data: TlbEntries,
    /// First level, instructions.
    pub instruction: TlbEntries,
    /// Second level, both.
    pub second: Option<TlbEntries>,
    /// Cycles that the second level adds.
    pub second_latency: u32,
    /// Cycles of a page walk.
    pub walk: u32,
}

/// Entries of a translation buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TlbEntries {
    /// How many.
    pub entries: u32,
    /// Which threads share them.
    pub scope: Scope,
}
