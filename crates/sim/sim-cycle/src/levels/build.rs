//! The memory hierarchy of a described machine.

use std::collections::BTreeMap;

use symbiont_sim_fast::description::{self, CoreType, Description, Scope, TlbEntries};
use symbiont_topology::Core;

use super::{Levels, Path, Share, Traffic};
use crate::cache::Cache;
use crate::dram::Dram;
use crate::prefetch::Prefetcher;

/// Size of the pages that operations name, log₂ bytes.
const PAGE: u32 = 12;
/// Ways of translation buffers.
const TLB_WAYS: u64 = 4;

/// Where a user is. Several users of one job are one in each cache that they share.
#[derive(Debug, Clone, Copy)]
pub struct UserPlace<'d> {
    /// Its hardware thread, by number.
    pub thread: usize,
    /// Its job, by number.
    pub job: usize,
    /// Its core.
    pub core: &'d Core,
    /// The core's type.
    pub core_type: &'d CoreType,
    /// Nanoseconds per cycle.
    pub period: f64,
    /// Node of its memory, by index.
    pub home: usize,
}

/// Which caches there are: what they are for, and the first thing that uses them.
type Key = (u8, u8, usize);

#[derive(Default)]
struct Builder {
    caches: Vec<Cache>,
    known: BTreeMap<Key, usize>,
    /// A job's number in a cache.
    jobs: BTreeMap<(usize, usize), usize>,
    /// Does each job have caches of its own?
    private: bool,
}

impl Builder {
    fn share(
        &mut self,
        level: u8,
        scope: Scope,
        place: &UserPlace<'_>,
        make: impl FnOnce() -> Cache,
    ) -> Share {
        let core = place.core.id.0 as usize;
        let key = match scope {
            _ if self.private => (level, 4, place.job),
            Scope::Thread => (level, 0, place.thread),
            Scope::Core => (level, 1, core),
            Scope::Cores(count) => (level, 2, core / (count.max(1) as usize)),
            Scope::Llc => (level, 3, place.core.llc.0 as usize),
        };
        let caches = &mut self.caches;
        let cache = *self.known.entry(key).or_insert_with(|| {
            caches.push(make());
            caches.len() - 1
        });
        let user = *self.jobs.entry((cache, place.job)).or_insert_with(|| caches[cache].add_user());
        Share { cache, user }
    }

    fn cache(&mut self, level: u8, described: &description::Cache, place: &UserPlace<'_>) -> Share {
        self.share(level, described.scope, place, || Cache::new(described))
    }

    fn tlb(&mut self, level: u8, entries: TlbEntries, place: &UserPlace<'_>) -> Share {
        let shift = place.core_type.tlb.page.max(1).ilog2().saturating_sub(PAGE);
        let make = || Cache::uncounted(entries.entries.max(1).into(), TLB_WAYS, shift);
        self.share(level, entries.scope, place, make)
    }
}

impl Levels {
    /// The levels of a machine as these users see them. `private`: each job has caches and translation
    /// buffers of its own, of full size.
    #[must_use]
    pub fn new(
        machine: &Description,
        users: &[UserPlace<'_>],
        prefetching: bool,
        private: bool,
    ) -> Self {
        let mut builder = Builder { private, ..Builder::default() };
        let mut prefetchers = Vec::new();
        let mut of_core = BTreeMap::new();
        let nodes = machine.topology.nodes();
        let mut line = 1;
        let mut path = |place: &UserPlace<'_>| {
            let core_type = place.core_type;
            let prefetcher = *of_core.entry(place.core.id).or_insert_with(|| {
                let streams = if prefetching { core_type.prefetch_streams } else { 0 };
                prefetchers.push(Prefetcher::new(streams, core_type.prefetch_lines));
                prefetchers.len() - 1
            });
            let l3 = core_type.l3.as_ref();
            line = l3.map_or(core_type.l2.line, |l3| l3.line).max(line);
            let cycles = |cycles: u32| f64::from(cycles) * place.period;
            let latency =
                [core_type.l1d.latency, core_type.l2.latency, l3.map_or(0, |l3| l3.latency)];
            Path {
                l1i: builder.cache(0, &core_type.l1i, place),
                l1d: builder.cache(1, &core_type.l1d, place),
                l2: builder.cache(2, &core_type.l2, place),
                l3: l3.map(|l3| builder.cache(3, l3, place)),
                code_tlb: builder.tlb(4, core_type.tlb.instruction, place),
                data_tlb: builder.tlb(5, core_type.tlb.data, place),
                second_tlb: core_type.tlb.second.map(|second| builder.tlb(6, second, place)),
                latency: latency.map(cycles),
                second_tlb_latency: cycles(core_type.tlb.second_latency),
                walk_latency: cycles(core_type.tlb.walk),
                prefetcher,
                code_moved: 0,
                node: nodes.iter().position(|node| node.id == place.core.node).unwrap_or(0),
                home: place.home,
            }
        };
        let paths: Vec<Path> = users.iter().map(&mut path).collect();
        Self {
            caches: builder.caches,
            traffic: vec![Traffic::default(); paths.len()],
            paths,
            prefetchers,
            dram: Dram::new(&machine.memory, nodes.len(), line),
        }
    }
}
