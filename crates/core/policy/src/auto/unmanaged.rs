//! CPUs that are shared with load that Symbiont does not manage.
//!
//! # Approach
//! A thread that is kept on a set of hardware threads should not wait while no more managed threads are
//! ready there than the set has. If it does, for [`MARKED`] of the time that it is ready, something
//! else runs where it runs. After [`NOTICED`] of that, a CPU's core is avoided, if the rest has
//! room for all ready threads; after [`AVOIDED`] it is tried again, and avoided twice as long each time
//! that it turns out to be shared still. After [`FORGOTTEN`] without that, nothing is held against it.

use std::collections::BTreeMap;
use std::time::Duration;

use symbiont_machine::Target;
use symbiont_topology::{CpuSet, PuId};

use crate::{ThreadView, View};

/// Share of its ready time that a thread waits where a CPU is shared: a fair share with one other
/// thread is a half; the OS's own balancing costs some percent.
const MARKED: f64 = 0.25;
/// How long that must last.
const NOTICED: Duration = Duration::from_millis(500);
/// How long a CPU is avoided for the first time.
const AVOIDED: Duration = Duration::from_secs(5);
/// It is doubled this often at most: to 80 s.
const DOUBLED: u32 = 4;
/// After so long without a sign of other load it counts as never shared.
const FORGOTTEN: Duration = Duration::from_secs(120);
/// Least ready share of a thread that says something about its CPU.
const BUSY: f64 = 0.5;

/// What is known of CPUs.
#[derive(Debug, Clone, Default)]
pub(super) struct Unmanaged {
    waits: BTreeMap<PuId, Duration>,
    shared: BTreeMap<PuId, Shared>,
    /// How often a CPU was found to be shared.
    pub found: u64,
}

#[derive(Debug, Clone, Copy)]
struct Shared {
    /// How long it is avoided yet.
    left: Duration,
    /// How long it has been tried again without a sign.
    quiet: Duration,
    times: u32,
}

/// CPUs that are to be used.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Usable {
    pub cpus: CpuSet,
    /// Are CPUs shared with other load that there is no room to avoid?
    pub crowded: bool,
}

impl Unmanaged {
    /// Learns from a quantum.
    pub fn learn(&mut self, view: &View<'_>, over: Duration) {
        self.waits.retain(|pu, _| view.online.contains(*pu));
        self.shared.retain(|pu, shared| {
            let tried = shared.left.is_zero();
            shared.left = shared.left.saturating_sub(over);
            shared.quiet += if tried { over } else { Duration::ZERO };
            view.online.contains(*pu) && shared.quiet < FORGOTTEN
        });
        for thread in &view.threads {
            let (Some(cpu), Some(waited)) = (thread.cpu, waited(view, thread)) else { continue };
            if waited < MARKED {
                self.waits.remove(&cpu);
                continue;
            }
            let waits = self.waits.entry(cpu).or_default();
            *waits += over;
            if *waits >= NOTICED {
                self.waits.remove(&cpu);
                self.found += 1;
                let times = self.shared.get(&cpu).map_or(0, |shared| shared.times);
                let left = AVOIDED * 2u32.pow(times.min(DOUBLED));
                self.shared.insert(cpu, Shared { left, quiet: Duration::ZERO, times: times + 1 });
            }
        }
    }

    /// What is left of the online CPUs for so many ready threads.
    pub fn usable(&self, view: &View<'_>, ready: f64) -> Usable {
        let avoided = self.shared.iter().filter(|(_, shared)| !shared.left.is_zero());
        let cores = avoided.filter_map(|(pu, _)| view.topology.siblings(*pu));
        let rest = cores.fold(view.online.clone(), |rest, core| rest.difference(core));
        let room = !rest.is_empty() && rest.len() as f64 + 0.5 >= ready;
        let crowded = !room && rest != view.online;
        Usable { cpus: if crowded { view.online.clone() } else { rest }, crowded }
    }
}

/// The share of its ready time that a placed thread waited, where no more managed threads were ready than
/// it has CPUs; none where that is not so, or not known.
fn waited(view: &View<'_>, thread: &ThreadView<'_>) -> Option<f64> {
    let did = thread.did.filter(|did| did.ready >= BUSY && did.migrated != Some(true))?;
    let cpus = placed(thread).filter(|cpus| thread.cpu.is_some_and(|cpu| cpus.contains(cpu)))?;
    let there = |other: &&ThreadView<'_>| {
        placed(other)
            .map_or(other.cpu.is_some_and(|cpu| cpus.contains(cpu)), |its| !its.is_disjoint(cpus))
    };
    let ready: f64 =
        view.threads.iter().filter(there).filter_map(|other| other.did).map(|did| did.ready).sum();
    (ready <= cpus.len() as f64 + 0.1).then(|| (did.ready - did.running).max(0.0) / did.ready)
}

fn placed<'a>(thread: &ThreadView<'a>) -> Option<&'a CpuSet> {
    match &thread.applied?.target {
        Target::Cpus(cpus) => Some(cpus),
        Target::Os => None,
    }
}
