//! The memory hierarchy: caches and translation buffers, level by level, with memory behind them.
//!
//! # Approach
//! Each hardware thread (*user*) has a path of instances, by the scopes of the description. A miss goes down
//! the path, allocates in every cache that it passes, and is pending there until it arrives; a thread that finds
//! a pending line waits for it. Dirty lines are written back when they are evicted, at last to memory. The
//! levels are neither inclusive nor exclusive: evicting a line below leaves it where it is above.
//!
//! The prefetcher of a core sees the misses of its L1 data cache and brings lines into the L2.
//! Translation buffers add their latency; page walks go through no cache.
//!
//! # Terms and units
//! Times are nanoseconds; latencies are from a load's issue to its data.
//!
//! # Properties
//! See the crate's tests: `misses_by_set_equal_an_independent_model`, `misses_by_set_equal_a_naive_model`,
//! `a_pending_line_is_waited_for_once`, `twins_find_each_others_code`.

mod build;

pub use build::UserPlace;

use crate::cache::{Cache, SetCounts, Victim};
use crate::dram::Dram;
use crate::prefetch::Prefetcher;

/// The level that served a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CacheLevel {
    /// First level.
    L1,
    /// Second level.
    L2,
    /// Third level.
    L3,
    /// Memory.
    Memory,
}

/// The response to a memory request.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MemoryResponse {
    /// When its data arrive, ns.
    pub ns: f64,
    /// The level that served it.
    pub level: CacheLevel,
    /// Did it bring a line into the L1 that was neither there nor pending?
    pub missed: bool,
    /// Did translation hold it up?
    pub translated: bool,
}

/// Caches of which per-set counts can be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// L1 instruction cache.
    L1i,
    /// L1 data cache.
    L1d,
    /// Second level.
    L2,
    /// Third level.
    L3,
}

/// An instance and the user's number in it.
#[derive(Debug, Clone, Copy)]
struct Share {
    cache: usize,
    user: usize,
}

/// The way of a hardware thread to memory.
#[derive(Debug, Clone, Copy)]
struct Path {
    l1i: Share,
    l1d: Share,
    l2: Share,
    l3: Option<Share>,
    code_tlb: Share,
    data_tlb: Share,
    second_tlb: Option<Share>,
    /// Latencies of L1, L2 and L3, ns.
    latency: [f64; 3],
    second_tlb_latency: f64,
    walk_latency: f64,
    /// Its code lies so many bytes further on than its operations say.
    code_moved: u64,
    prefetcher: usize,
    /// The core's node, and its memory's.
    node: usize,
    home: usize,
}

impl Path {
    /// What a request at `ns` waits for that finds its line at `level`: the line, if it is
    /// pending beyond the level's own latency, comes from where it takes so long from.
    fn pending(&self, arrived: f64, ns: f64, soonest: f64, level: CacheLevel) -> CacheLevel {
        let wait = arrived - ns;
        if arrived <= soonest {
            level
        } else if wait <= self.latency[1] {
            level.max(CacheLevel::L2)
        } else if wait <= self.latency[2] {
            level.max(CacheLevel::L3)
        } else {
            CacheLevel::Memory
        }
    }
}

/// What a user asked of the levels.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Fetches that missed the L1 instruction cache.
    pub l1i_misses: u64,
    /// Fetches that missed the first-level translation buffer.
    pub itlb_misses: u64,
    /// Loads that missed the L1 data cache.
    pub l1d_misses: u64,
    /// Requests, data and code, that missed the L2.
    pub l2_misses: u64,
    /// Loads that missed the L2.
    pub l2_load_misses: u64,
    /// Loads that missed all caches.
    pub llc_load_misses: u64,
    /// Loads that memory of another node served.
    pub far_loads: u64,
    /// Lines read from memory of the own node, prefetched ones too.
    pub memory_near: u64,
    /// Lines read from memory of another node, prefetched ones too.
    pub memory_far: u64,
}

/// The purpose of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum For {
    Load,
    Store,
    Code,
}

/// The memory hierarchy of a machine.
#[derive(Debug, Clone)]
pub struct Levels {
    /// All instances of all levels and translation buffers.
    caches: Vec<Cache>,
    paths: Vec<Path>,
    traffic: Vec<Traffic>,
    prefetchers: Vec<Prefetcher>,
    dram: Dram,
}

impl Levels {
    /// A load or store at `ns`. None, and nothing happened, when it would need a miss
    /// register but `may_miss` says that there is none.
    pub fn data(
        &mut self,
        user: usize,
        ns: f64,
        address: u64,
        page: u64,
        writes: bool,
        may_miss: bool,
    ) -> Option<MemoryResponse> {
        let path = &self.paths[user];
        let l1d = &mut self.caches[path.l1d.cache];
        let found = l1d.find(address);
        if found.place.is_none() && !may_miss {
            return None;
        }
        l1d.count(path.l1d.user, &found);
        let arrived = found.place.map(|place| l1d.touch(place, writes));
        let translation = translate(&mut self.caches, path, path.data_tlb, page).unwrap_or(0.0);
        let translated = translation > 0.0;
        let soonest = ns + path.latency[0] + translation;
        if let Some(arrived) = arrived {
            let level = path.pending(arrived, ns, soonest, CacheLevel::L1);
            let ns = soonest.max(arrived);
            return Some(MemoryResponse { ns, level, missed: false, translated });
        }
        let path = *path;
        let what = if writes { For::Store } else { For::Load };
        if what == For::Load {
            self.traffic[user].l1d_misses += 1;
        }
        let (arrives, level) = self.below(user, ns + translation, address, what);
        let victim = self.caches[path.l1d.cache].insert(path.l1d.user, address, arrives, writes);
        self.displaced_by_l1(&path, ns, victim);
        self.prefetch(user, ns, address);
        Some(MemoryResponse { ns: arrives, level, missed: true, translated })
    }

    /// From now on a user's code lies so many bytes (modulo 2⁶⁴) further on than its operations say:
    /// where another's is that runs the same program. Pages are still translated for each apart.
    pub fn move_code(&mut self, user: usize, by: u64) {
        if let Some(path) = self.paths.get_mut(user) {
            path.code_moved = by;
        }
    }

    /// A fetch of an instruction line at `ns`: when it can go on.
    pub fn code(&mut self, user: usize, ns: f64, address: u64, page: u64) -> f64 {
        let path = &self.paths[user];
        let address = address.wrapping_add(path.code_moved);
        let l1i = &mut self.caches[path.l1i.cache];
        let found = l1i.find(address);
        l1i.count(path.l1i.user, &found);
        let arrived = found.place.map(|place| l1i.touch(place, false));
        let l1i = path.l1i;
        let translation = translate(&mut self.caches, path, path.code_tlb, page);
        self.traffic[user].itlb_misses += u64::from(translation.is_some());
        let start = ns + translation.unwrap_or(0.0);
        if let Some(arrived) = arrived {
            return start.max(arrived);
        }
        self.traffic[user].l1i_misses += 1;
        let (arrives, _) = self.below(user, start, address, For::Code);
        let victim = self.caches[l1i.cache].insert(l1i.user, address, arrives, false);
        debug_assert!(victim.is_none_or(|victim| !victim.dirty), "code is not written");
        arrives
    }

    /// What lies below the L1: when a line arrives, and from where.
    fn below(&mut self, user: usize, ns: f64, address: u64, what: For) -> (f64, CacheLevel) {
        let path = self.paths[user];
        let l2 = &mut self.caches[path.l2.cache];
        let found = l2.find(address);
        l2.count(path.l2.user, &found);
        if let Some(place) = found.place {
            let arrived = l2.touch(place, false);
            let soonest = ns + path.latency[1];
            return (soonest.max(arrived), path.pending(arrived, ns, soonest, CacheLevel::L2));
        }
        self.traffic[user].l2_misses += 1;
        self.traffic[user].l2_load_misses += u64::from(what == For::Load);
        let (arrives, level) = self.beyond_l2(user, ns, address, Some(what));
        let victim = self.caches[path.l2.cache].insert(path.l2.user, address, arrives, false);
        self.displaced_by_l2(&path, ns, victim);
        (arrives, level)
    }

    /// What lies beyond the L2. A prefetch (`what` is none) is not counted as demand.
    fn beyond_l2(
        &mut self,
        user: usize,
        ns: f64,
        address: u64,
        what: Option<For>,
    ) -> (f64, CacheLevel) {
        let path = self.paths[user];
        if let Some(share) = path.l3 {
            let l3 = &mut self.caches[share.cache];
            let found = l3.find(address);
            if what.is_some() {
                l3.count(share.user, &found);
            }
            if let Some(place) = found.place {
                let arrived = l3.touch(place, false);
                let soonest = ns + path.latency[2];
                return (soonest.max(arrived), path.pending(arrived, ns, soonest, CacheLevel::L3));
            }
        }
        let far = path.home != path.node;
        let traffic = &mut self.traffic[user];
        if far {
            traffic.memory_far += 1;
        } else {
            traffic.memory_near += 1;
        }
        if what == Some(For::Load) {
            traffic.llc_load_misses += 1;
            traffic.far_loads += u64::from(far);
        }
        let arrives = self.dram.read(path.home, path.node, ns);
        if let Some(share) = path.l3 {
            let victim = self.caches[share.cache].insert(share.user, address, arrives, false);
            self.displaced_by_l3(&path, ns, victim);
        }
        (arrives, CacheLevel::Memory)
    }

    fn displaced_by_l1(&mut self, path: &Path, ns: f64, victim: Option<Victim>) {
        let Some(Victim { address, dirty: true }) = victim else { return };
        let l2 = &mut self.caches[path.l2.cache];
        if !l2.write_back(address) {
            let victim = l2.insert(path.l2.user, address, ns, true);
            self.displaced_by_l2(path, ns, victim);
        }
    }

    fn displaced_by_l2(&mut self, path: &Path, ns: f64, victim: Option<Victim>) {
        let Some(Victim { address, dirty: true }) = victim else { return };
        let Some(share) = path.l3 else {
            self.dram.write(path.home, path.node, ns);
            return;
        };
        let l3 = &mut self.caches[share.cache];
        if !l3.write_back(address) {
            let victim = l3.insert(share.user, address, ns, true);
            self.displaced_by_l3(path, ns, victim);
        }
    }

    fn displaced_by_l3(&mut self, path: &Path, ns: f64, victim: Option<Victim>) {
        if victim.is_some_and(|victim| victim.dirty) {
            self.dram.write(path.home, path.node, ns);
        }
    }

    /// The prefetcher sees a line that missed the L1 data cache.
    fn prefetch(&mut self, user: usize, ns: f64, address: u64) {
        let path = self.paths[user];
        let shift = self.caches[path.l2.cache].shift();
        for line in self.prefetchers[path.prefetcher].saw(address >> shift) {
            let address = line << shift;
            if self.caches[path.l2.cache].find(address).place.is_some() {
                continue;
            }
            let (arrives, _) = self.beyond_l2(user, ns, address, None);
            let victim = self.caches[path.l2.cache].insert(path.l2.user, address, arrives, false);
            self.displaced_by_l2(&path, ns, victim);
        }
    }

    /// Uses a data line outside of time: no count, no latency, no prefetch.
    pub fn warm_data(&mut self, user: usize, address: u64, writes: bool) {
        let path = self.paths[user];
        let known = self.warm_line(path.l1d, address, writes);
        self.warm_below(&path, known, address);
    }

    /// Uses an instruction line outside of time.
    pub fn warm_code(&mut self, user: usize, address: u64) {
        let path = self.paths[user];
        let address = address.wrapping_add(path.code_moved);
        let known = self.warm_line(path.l1i, address, false);
        self.warm_below(&path, known, address);
    }

    /// Translates a page of data outside of time.
    pub fn warm_data_page(&mut self, user: usize, page: u64) {
        let path = self.paths[user];
        self.warm_page(path.data_tlb, &path, page);
    }

    /// Translates a page of instructions outside of time.
    pub fn warm_code_page(&mut self, user: usize, page: u64) {
        let path = self.paths[user];
        self.warm_page(path.code_tlb, &path, page);
    }

    fn warm_below(&mut self, path: &Path, known: bool, address: u64) {
        if !known && !self.warm_line(path.l2, address, false) {
            if let Some(l3) = path.l3 {
                self.warm_line(l3, address, false);
            }
        }
    }

    fn warm_page(&mut self, first: Share, path: &Path, page: u64) {
        translate(&mut self.caches, path, first, page);
    }

    fn warm_line(&mut self, share: Share, address: u64, writes: bool) -> bool {
        look_up(&mut self.caches, share, address, writes)
    }

    /// What a user asked for so far.
    #[must_use]
    pub fn traffic(&self, user: usize) -> Traffic {
        self.traffic.get(user).copied().unwrap_or_default()
    }

    /// What a user's job did to each set of one of the user's caches.
    #[must_use]
    pub fn sets(&self, user: usize, kind: Kind) -> &[SetCounts] {
        self.share(user, kind).map_or(&[], |share| self.caches[share.cache].counts(share.user))
    }

    /// Number of a user's cache among all of them, if it has one.
    pub(crate) fn instance(&self, user: usize, kind: Kind) -> Option<usize> {
        self.share(user, kind).map(|share| share.cache)
    }

    fn share(&self, user: usize, kind: Kind) -> Option<Share> {
        self.paths.get(user).and_then(|path| match kind {
            Kind::L1i => Some(path.l1i),
            Kind::L1d => Some(path.l1d),
            Kind::L2 => Some(path.l2),
            Kind::L3 => path.l3,
        })
    }

    /// log₂ of the bytes of a user's instruction lines.
    pub(crate) fn code_shift(&self, user: usize) -> u32 {
        self.caches[self.paths[user].l1i.cache].shift()
    }
}

/// Nanoseconds that translation adds; none if the first level knows the page.
#[inline]
fn translate(caches: &mut [Cache], path: &Path, first: Share, page: u64) -> Option<f64> {
    if look_up(caches, first, page, false) {
        return None;
    }
    match path.second_tlb {
        Some(second) if look_up(caches, second, page, false) => Some(path.second_tlb_latency),
        _ => Some(path.walk_latency),
    }
}

/// Uses a line or page outside of time and puts it in; was it there?
#[inline]
fn look_up(caches: &mut [Cache], share: Share, address: u64, writes: bool) -> bool {
    let cache = &mut caches[share.cache];
    match cache.find(address).place {
        Some(place) => {
            cache.touch(place, writes);
            true
        }
        None => {
            cache.insert(share.user, address, 0.0, writes);
            false
        }
    }
}
