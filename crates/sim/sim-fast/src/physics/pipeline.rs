//! A core as one of its threads sees it, in a given SMT mode.
//!
//! # Problem
//! The window model needs a core's parameters from the view of one thread: partitioned resources already
//! divided, and shared ones of adjustable size.
//!
//! # Approach
//! [`Pipeline`] is fixed by the core type, the SMT mode and whether others run there; [`Environment`] is
//! what co-runners change: shares of slots, ports and structures, the reach of the caches, and memory.
//! The environment of a thread that is alone in this mode is [`Pipeline::alone`]: throttled ST.
//!
//! # Terms and units
//! Times are cycles of this core. *Share of a port*: fraction of the cycles in which the thread may issue
//! there. *Reach*: the longest reuse time, in instructions of the thread (as log₂), after which a line
//! is still cached.

use symbiont_profile::{OpClass, Prediction, PredictorConfig};

use crate::description::{CoreType, Forwarding, Port, SmtRule, Structure};

/// Groups of ports that threads compete for.
pub const GROUPS: usize = 5;
/// Structures that threads may share.
pub const STRUCTURES: usize = 6;
/// Caches, translation buffers and the table of streams.
pub const REACHES: usize = 8;

/// The group of a port, by what sets it apart from others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    /// Integer work and branches only.
    Integer,
    /// Anything on floating-point or vector registers.
    Vector,
    /// Loads, perhaps stores too.
    Load,
    /// Stores alone.
    Store,
    /// Dividers, which stay busy.
    Divider,
}

/// Structures in the order of [`Environment::entries`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Queue {
    /// Re-order buffer.
    Rob,
    /// Issue queue.
    Iq,
    /// Issue queue of the floating-point side.
    FpIq,
    /// Load queue.
    Lq,
    /// Store queue.
    Sq,
    /// Miss registers (MSHRs) of the L1 data cache.
    Mshr,
}

/// Caches in the order of [`Environment::reach`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheLevel {
    /// L1 data cache.
    L1d,
    /// L1 instruction cache.
    L1i,
    /// Second level.
    L2,
    /// All levels together: beyond is memory.
    Last,
    /// First-level translation of data.
    DataTlb,
    /// First-level translation of instructions.
    CodeTlb,
    /// Second-level translation.
    Tlb2,
    /// Streams that the prefetcher follows.
    Streams,
}

impl CacheLevel {
    /// All of them.
    pub const ALL: [Self; REACHES] = [
        Self::L1d,
        Self::L1i,
        Self::L2,
        Self::Last,
        Self::DataTlb,
        Self::CodeTlb,
        Self::Tlb2,
        Self::Streams,
    ];

    /// Index of its occupancy, if that takes notable time to become steady.
    #[must_use]
    pub fn occupancy_index(self) -> Option<usize> {
        match self {
            Self::L2 => Some(0),
            Self::Last => Some(1),
            _ => None,
        }
    }
}

/// Is a thread alone on its core?
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CoreSharing {
    /// It does.
    Alone,
    /// Others run there too.
    Others,
}

impl CoreSharing {
    /// Of one of so many threads.
    #[must_use]
    pub fn of(threads: usize) -> Self {
        if threads > 1 { Self::Others } else { Self::Alone }
    }
}

/// A structure as one thread of the mode sees it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Room {
    /// Entries of all threads together that compete for it.
    pub total: f64,
    /// Most that one thread may hold in this mode.
    pub most: f64,
    /// An even part of it.
    pub even: f64,
    /// Do threads compete for it?
    pub shared: bool,
    /// Only those of the same half of the core?
    pub halved: bool,
}

impl Room {
    fn of(structure: Structure, mode: u32, sharing: CoreSharing) -> Self {
        let total = f64::from(structure.entries);
        let n = f64::from(mode.max(1));
        let (most, shared) = match structure.smt {
            SmtRule::Private => (total, false),
            SmtRule::Partitioned => (total / n, false),
            SmtRule::Shared => (total, mode > 1),
            SmtRule::Capped(share) if mode > 1 => (total * share.max(1.0 / n), true),
            SmtRule::Halved if mode > 1 => (total / 2.0, mode > 2),
            SmtRule::Capped(_) | SmtRule::Halved => (total, false),
        };
        let halved = structure.smt == SmtRule::Halved && mode > 1;
        let (total, sharers) = if halved { (total / 2.0, n / 2.0) } else { (total, n) };
        let most = most.max(1.0);
        let even = if shared { (total / sharers).min(most) } else { most };
        Self { total, most, even, shared: shared && sharing == CoreSharing::Others, halved }
    }
}

/// A core as one of its threads sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct Pipeline {
    /// Threads that the core is set up for.
    pub mode: u32,
    /// Do others run there?
    pub sharing: CoreSharing,
    /// Do threads share only with those in the same half of the core? Width, fetch and
    /// ports are then those of a half.
    pub halved: bool,
    /// Micro-ops of one thread fetched per cycle.
    pub fetch: u32,
    /// Taken branches that are passed in a cycle.
    pub taken: u32,
    /// Branches of a group, if operations are dispatched and completed in groups.
    pub group_branches: Option<u32>,
    /// Micro-ops dispatched per cycle, by all threads together.
    pub width: f64,
    /// Micro-ops retired per cycle, by all threads together.
    pub retire: f64,
    /// Micro-ops between fetch and dispatch, of one thread.
    ///
    /// Assumed, for all machines: what dispatch takes in 16 cycles, split evenly among the threads
    /// of the mode, and 8 at least. No description has it. It is how far fetch runs ahead of
    /// dispatch: a larger buffer hides more of the misses of the instruction cache behind what is
    /// fetched already, a smaller one fewer.
    pub fetch_buffer: usize,
    /// Cycles from a mispredicted branch's resolution to the dispatch of the
    /// right path.
    pub refill: f64,
    /// Structures by [`Queue`].
    pub rooms: [Room; STRUCTURES],
    /// Has the floating-point side an issue queue of its own?
    pub split_iq: bool,
    /// Ports that can start an operation of each class, one bit each; low bits
    /// are ports with few duties, to be taken first.
    pub ports: [u32; OpClass::COUNT],
    /// Ports of each group, one bit each.
    pub group_ports: [u32; GROUPS],
    /// Groups whose ports each thread has for itself.
    pub private_groups: [bool; GROUPS],
    /// Cycles from issue to result by class (a load's: L1 hit).
    pub latency: [u32; OpClass::COUNT],
    /// Cycles for which a divider is busy, by class; 0 for what is no division.
    pub divider_busy: [u32; OpClass::COUNT],
    /// Load-to-use latency of L1, L2 and L3 (L2's where there is none).
    pub cache_latency: [u32; 3],
    /// From a store to a load of what it wrote.
    pub forwarding: Forwarding,
    /// Cycles that a hit in the second-level TLB adds, and a walk.
    pub tlb_latency: [u32; 2],
    /// Lines that the prefetcher runs ahead; 0: there is none.
    pub prefetch_lines: u32,
    /// How branches are predicted.
    pub prediction: Prediction,
    /// Entries of the predictor, for all threads together.
    pub predictor: f64,
    /// Of the mispredictions of the profile's predictor of that kind and size, the share that remains.
    pub mispredicts: f64,
    /// Bytes of a cache line.
    pub line: u32,
}

/// What co-runners change for a thread.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Environment {
    /// Micro-ops that may be dispatched per cycle.
    pub dispatch: f64,
    /// Share of the ports of each [`Group`], above 0 to 1.
    pub ports: [f64; GROUPS],
    /// Entries of each [`Queue`].
    pub entries: [f64; STRUCTURES],
    /// Reach of each [`CacheLevel`], log₂ instructions.
    pub reach: [f64; REACHES],
    /// The branch predictor, as an index into [`symbiont_profile::PREDICTOR_CONFIGS`].
    pub predictor: usize,
    /// From a load's issue to its data from memory, cycles.
    pub memory_latency: f64,
    /// Between two requests that memory grants, cycles.
    pub memory_interval: f64,
}

/// The group that a port is counted in.
fn group(does: &[OpClass]) -> Group {
    use OpClass::{FpAdd, FpFma, FpMultiply, Load, Store, Vector};
    if does.contains(&Load) {
        Group::Load
    } else if does.contains(&Store) {
        Group::Store
    } else if does.iter().any(|class| matches!(class, FpAdd | FpMultiply | FpFma | Vector)) {
        Group::Vector
    } else {
        Group::Integer
    }
}

impl Pipeline {
    /// A core of this type, set up for `mode` threads.
    #[must_use]
    pub fn new(core: &CoreType, mode: u32, sharing: CoreSharing) -> Self {
        // Ports with few duties first, so that a low bit is the better choice.
        let halved = core.halves_from.is_some_and(|from| mode >= from);
        let part = |count: u32| if halved { count.div_ceil(2) } else { count }.max(1);
        // Of ports that are alike each half has every other.
        let in_half = |(index, port): &(usize, &Port)| {
            !halved || core.ports[..*index].iter().filter(|other| other == port).count() % 2 == 0
        };
        let ports = core.ports.iter().enumerate().filter(in_half).map(|(_, port)| port);
        let mut order: Vec<_> = ports.take(u32::BITS as usize).collect();
        order.sort_by_key(|port| port.does.len());
        let mut ports = [0; OpClass::COUNT];
        let mut group_ports = [0; GROUPS];
        let mut private_groups = [false; GROUPS];
        for (bit, port) in order.iter().enumerate() {
            for &class in &port.does {
                ports[class as usize] |= 1 << bit;
            }
            let group = group(&port.does) as usize;
            group_ports[group] |= 1 << bit;
            private_groups[group] |= port.private;
        }
        let dividers = ports[OpClass::Divide as usize] | ports[OpClass::FpDivide as usize];
        group_ports[Group::Divider as usize] = dividers;
        let fp_iq = core.fp_iq.unwrap_or(core.iq);
        let structures = [core.rob, core.iq, fp_iq, core.lq, core.sq, core.mshrs];
        let busy = |class| match class {
            OpClass::Divide | OpClass::FpDivide => core.latency.busy(class),
            _ => 0,
        };
        let l3 = core.l3.map_or(core.l2.latency, |l3| l3.latency);
        Self {
            mode,
            sharing,
            halved,
            fetch: part(core.fetch),
            taken: core.taken_per_fetch.max(1),
            group_branches: core.group_branches.map(part),
            width: f64::from(part(core.dispatch)),
            retire: f64::from(part(core.retire)),
            fetch_buffer: (16 * core.dispatch.max(1) / mode.max(1)).max(8) as usize,
            refill: f64::from(core.refill),
            rooms: structures.map(|structure| Room::of(structure, mode, sharing)),
            split_iq: core.fp_iq.is_some(),
            ports,
            group_ports,
            private_groups,
            latency: OpClass::ALL.map(|c| core.latency.of(c).unwrap_or(core.l1d.latency).max(1)),
            divider_busy: OpClass::ALL.map(busy),
            cache_latency: [core.l1d.latency, core.l2.latency, l3],
            forwarding: core.forwarding,
            tlb_latency: [core.tlb.second_latency, core.tlb.walk],
            prefetch_lines: if core.prefetch_streams == 0 { 0 } else { core.prefetch_lines },
            prediction: core.prediction,
            predictor: f64::from(core.predictor.max(1)),
            mispredicts: core.mispredicts.clamp(0.0, 1.0),
            line: core.l1d.line,
        }
    }

    /// Most threads that share what a half has, or the core if it is whole.
    #[must_use]
    pub fn sharers(&self) -> f64 {
        let all = if self.sharing == CoreSharing::Alone { 1 } else { self.mode };
        f64::from(if self.halved { all.div_ceil(2) } else { all }.max(1))
    }

    /// The simulated predictor of the profile nearest to each thread's part of the core's predictor, as
    /// an index into [`symbiont_profile::PREDICTOR_CONFIGS`].
    #[must_use]
    pub fn predictor_of(&self, threads: f64) -> usize {
        PredictorConfig::nearest(self.prediction, self.predictor / threads)
    }

    /// Ports of a group.
    #[must_use]
    pub fn group_size(&self, group: usize) -> f64 {
        f64::from(self.group_ports[group].count_ones())
    }

    /// What a thread sees that is alone on a core in this mode, with these
    /// reaches and this memory.
    #[must_use]
    pub fn alone(&self, reach: [f64; REACHES], latency: f64, interval: f64) -> Environment {
        Environment {
            dispatch: self.width,
            ports: [1.0; GROUPS],
            entries: self.rooms.map(|room| room.most),
            reach,
            predictor: self.predictor_of(1.0),
            memory_latency: latency,
            memory_interval: interval,
        }
    }
}

/// The inputs of an [`Environment`], in order: dispatch, ports from here on,
/// queues, reaches, the predictor, memory's latency and interval.
pub const FIRST_PORT: usize = 1;
/// See [`FIRST_PORT`].
pub const FIRST_ENTRIES: usize = FIRST_PORT + GROUPS;
/// See [`FIRST_PORT`].
pub const FIRST_REACH: usize = FIRST_ENTRIES + STRUCTURES;

impl Environment {
    /// Does it differ from another by no more than a share `most` of each value?
    #[must_use]
    pub fn is_near(&self, other: &Self, most: f64) -> bool {
        let near = |a: f64, b: f64| (a - b).abs() <= most * a.abs();
        let all = |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(a, b)| near(*a, *b));
        near(self.dispatch, other.dispatch)
            && near(self.memory_latency, other.memory_latency)
            && near(self.memory_interval, other.memory_interval)
            && self.predictor == other.predictor
            && all(&self.ports, &other.ports)
            && all(&self.entries, &other.entries)
            && all(&self.reach, &other.reach)
    }
}
