//! Cores for serial threads.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use symbiont_machine::{ProgramId, ThreadId};
use symbiont_topology::{Core, CoreId, CpuSet};

use super::speeds::Speeds;
use super::turns::{Rules, Turn};
use super::{Phase, ProgramPhase, is_busy, reach};
use crate::{ThreadView, View};

/// The busy threads of serial programs.
#[derive(Debug, Clone)]
pub(super) struct SerialThreads {
    /// Quanta decided so far.
    quanta: u64,
    known: BTreeMap<ThreadId, Serial>,
    /// Of turns on the fastest cores; none: the thread that became serial first keeps one.
    rules: Option<Rules>,
}

/// What is remembered of a serial thread while it stays one.
#[derive(Debug, Clone, Copy)]
struct Serial {
    /// The quantum in which it became one.
    since: u64,
    /// The core that it was given last.
    home: Option<CoreId>,
    /// Its turn on the fastest cores.
    turn: Turn,
}

impl SerialThreads {
    /// `timeout`: within which each gets a fastest core, where they take turns; none: they take none.
    pub(super) fn new(timeout: Option<Duration>) -> Self {
        Self { quanta: 0, known: BTreeMap::new(), rules: timeout.map(Rules::new) }
    }

    /// The settled serial threads in the order in which they choose a core: where
    /// cores differ by whose turn it is, then by which became serial first. `over`:
    /// the quantum that has passed.
    pub(super) fn queue<'v, 'a>(
        &mut self,
        view: &'v View<'a>,
        programs: &BTreeMap<ProgramId, ProgramPhase>,
        speeds: &Speeds,
        over: Duration,
    ) -> Vec<&'v ThreadView<'a>> {
        let serial = |t: &&ThreadView<'_>| {
            is_busy(t) && programs.get(&t.program).is_some_and(|p| p.phase == Phase::Serial)
        };
        let mut queue: Vec<_> = view.threads.iter().filter(serial).collect();
        self.quanta += 1;
        let newcomer = Serial { since: self.quanta, home: None, turn: Turn::default() };
        self.known = queue
            .iter()
            .map(|t| (t.id, self.known.get(&t.id).copied().unwrap_or(newcomer)))
            .collect();
        queue.retain(|t| t.lifecycle.is_settled());
        let cores = cores(view);
        let fastest = fastest(&cores);
        let wants = |t: &ThreadView<'_>| {
            fastest.as_ref().is_some_and(|cpus| !cpus.is_disjoint(&view.allowed(t)))
        };
        let mut wanting = 0;
        for t in queue.iter().filter(|t| wants(t)) {
            wanting += 1;
            if let Some(serial) = self.known.get_mut(&t.id).filter(|s| s.since != self.quanta) {
                serial.turn.pass(over);
            }
        }
        let known = |t: &ThreadView<'_>| self.known.get(&t.id).copied().unwrap_or(newcomer);
        let since = |t: &ThreadView<'_>| (known(t).since, t.id);
        let Some(rules) = &self.rules else {
            queue.sort_by_cached_key(|t| since(t));
            return queue;
        };
        queue.sort_by_cached_key(|t| {
            let gain = speeds.gain(t.program, view.topology);
            let rank = wants(t).then(|| rules.rank(&known(t).turn, wanting, gain));
            (rank.is_none(), rank, since(t))
        });
        // Whose turn it is on the fastest cores says nothing about the others.
        let turns = cores.iter().filter(|core| is_of(core, fastest.as_ref())).count().min(wanting);
        queue[turns..].sort_by_cached_key(|t| since(t));
        queue
    }

    /// Gives cores to the serial threads, as many as may be given.
    pub(super) fn give_cores<'v>(
        &mut self,
        view: &'v View<'_>,
        queue: &[&ThreadView<'_>],
        programs: &BTreeMap<ProgramId, ProgramPhase>,
    ) -> BTreeMap<ThreadId, &'v Core> {
        let reach = reach(view);
        let cores = cores(view);
        let fastest = fastest(&cores);
        let is_fastest = |core: &Core| is_of(core, fastest.as_ref());
        let is_parallel = |t: &ThreadView<'_>| {
            programs.get(&t.program).is_some_and(|p| p.phase == Phase::Parallel)
        };
        let parallel = view.threads.iter().any(is_parallel);
        let spare = if !parallel && queue.len() == 1 && fastest.is_none() {
            0
        } else {
            cores.len().saturating_sub(usize::from(parallel || queue.len() > cores.len()))
        };
        // Where parallel threads are not allowed to go elsewhere.
        let contested = (view.threads.iter().filter(|t| is_parallel(t)))
            .map(|t| view.allowed(t))
            .filter(|allowed| *allowed != reach)
            .fold(CpuSet::new(), |all, allowed| all.union(&allowed));

        // A thread that has to leave a fastest core has no home there any more.
        let turns = cores.iter().filter(|core| is_fastest(core)).count();
        let leaves = queue.iter().skip(turns).map(|t| t.id).collect::<BTreeSet<_>>();
        let homes: BTreeSet<CoreId> = (self.known.iter())
            .filter(|(id, serial)| !(serial.turn.has && leaves.contains(id)))
            .filter_map(|(_, serial)| serial.home)
            .collect();
        let loads: BTreeMap<CoreId, u64> =
            cores.iter().map(|core| (core.id, load(view, core, &self.known))).collect();
        let mut free = cores;
        let mut given = BTreeMap::new();
        for thread in queue {
            let Some(memory) = self.known.get_mut(&thread.id) else { continue };
            let home = memory.home.take();
            if given.len() == spare {
                continue;
            }
            let allowed = view.allowed(thread);
            let here = thread.cpu.and_then(|pu| view.topology.core_of(pu)).map(|core| core.id);
            let best = (free.iter().enumerate())
                .filter(|(_, core)| !core.cpus.is_disjoint(&allowed))
                .min_by_key(|(_, core)| {
                    let id = Some(core.id);
                    let in_the_way = !core.cpus.is_disjoint(&contested);
                    let others_home = id != home && homes.contains(&core.id);
                    let stays = (id != home, others_home, loads.get(&core.id), id != here);
                    (Reverse(core.capacity), in_the_way, stays, id)
                })
                .map(|(index, _)| index);
            if let Some(index) = best {
                let core = free.swap_remove(index);
                memory.home = Some(core.id);
                given.insert(thread.id, core);
            }
        }
        for (id, serial) in &mut self.known {
            serial.turn.give(given.get(id).is_some_and(|core| is_fastest(core)));
        }
        given
    }
}

/// The cores that the programs can reach.
fn cores<'v>(view: &'v View<'_>) -> Vec<&'v Core> {
    let reach = reach(view);
    (view.topology.cores().iter()).filter(|core| !core.cpus.is_disjoint(&reach)).collect()
}

/// The hardware threads of the fastest of these cores, if some are slower.
fn fastest(cores: &[&Core]) -> Option<CpuSet> {
    let most = cores.iter().map(|core| core.capacity).max()?;
    let (fast, slow): (Vec<&Core>, Vec<&Core>) =
        cores.iter().partition(|core| core.capacity == most);
    let all = |cores: &[&Core]| cores.iter().fold(CpuSet::new(), |all, c| all.union(&c.cpus));
    (!slow.is_empty()).then(|| all(&fast))
}

/// Is it one of the fastest cores?
fn is_of(core: &Core, fastest: Option<&CpuSet>) -> bool {
    fastest.is_some_and(|cpus| core.cpus.is_subset(cpus))
}

/// How busy a core was kept over the last quantum by threads without a core of
/// their own, in quarters of a hardware thread: less is noise, and no reason to
/// move. (A thread that has a core may be shown as elsewhere, from before it moved.)
fn load(view: &View<'_>, core: &Core, serial: &BTreeMap<ThreadId, Serial>) -> u64 {
    let there = |t: &&ThreadView<'_>| {
        !serial.contains_key(&t.id) && t.cpu.is_some_and(|pu| core.cpus.contains(pu))
    };
    let running = view.threads.iter().filter(there).filter_map(|t| t.did).map(|did| did.running);
    // Each share is 0 to 1, so the sum is small and not negative.
    (4.0 * running.sum::<f64>()).round() as u64
}
