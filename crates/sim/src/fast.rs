//! The fast level: the window model and its fixed point behind the machine.
//!
//! # Approach
//! A [`Workshop`] holds a machine's physics and the phases that were made ready for
//! it; preparing a phase takes long and is done once, however many runs need it.
//! [`Fast`] is one run's view of it, with the state of that run's caches.

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use symbiont_profile::Phase;
use symbiont_topology::NodeId;

use crate::activity::Activity;
use crate::description::Description;
use crate::machine::{Contention, Pace, Runner};
use crate::physics::domains::Physics;
use crate::physics::prepared::{PrepareError, Prepared};
use crate::physics::rates::Rates;
use crate::physics::response::ResponseTable;
use crate::physics::solve::{State, Tables};
use crate::physics::tasks::{Load, Running};

pub use crate::physics::tasks::Switches;

/// A machine's physics, and phases that were made ready for it.
#[derive(Debug)]
pub struct Workshop<'p> {
    description: Description,
    physics: Physics,
    /// By the phase's address, which is its own for as long as it is borrowed.
    ready: Mutex<BTreeMap<usize, Arc<Prepared>>>,
    phases: PhantomData<&'p Phase>,
}

impl<'p> Workshop<'p> {
    /// For a described machine.
    #[must_use]
    pub fn new(description: Description) -> Self {
        let physics = Physics::new(&description);
        Self { description, physics, ready: Mutex::default(), phases: PhantomData }
    }

    /// The machine.
    #[must_use]
    pub fn description(&self) -> &Description {
        &self.description
    }

    /// The physics of one run.
    #[must_use]
    pub fn fast(&self, switches: Switches) -> Fast<'_, 'p> {
        let nodes: Vec<NodeId> = self.physics.nodes.clone();
        let whole = |at: usize| (0..nodes.len()).map(|node| f64::from(node == at)).collect();
        let pages = (0..nodes.len()).map(whole).collect();
        Fast { workshop: self, switches, phases: Vec::new(), pages, nodes, state: State::default() }
    }

    /// Makes tables of some phases ahead of time, for these SMT modes of each sort of
    /// core, by several workers; `done` is told how many of how many are made. What
    /// is not made ahead is made when it is first needed.
    ///
    /// # Errors
    /// When a phase cannot be simulated.
    pub fn make_ready(
        &self,
        phases: &[&'p Phase],
        modes: &[u32],
        workers: usize,
        done: &(dyn Fn(usize, usize) + Sync),
    ) -> Result<(), PrepareError> {
        let sorts = 0..self.description.core_types.len();
        let mut tables = Vec::new();
        for phase in phases {
            let prepared = self.prepared(phase)?;
            let wanted = sorts.clone().flat_map(|sort| modes.iter().map(move |mode| (sort, *mode)));
            tables.extend(wanted.map(|(sort, mode)| (Arc::clone(&prepared), sort, mode)));
        }
        let (next, made) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let work = || {
            while let Some((prepared, sort, mode)) =
                tables.get(next.fetch_add(1, Ordering::Relaxed))
            {
                let _ = self.physics.prepare(prepared, *sort, *mode);
                done(made.fetch_add(1, Ordering::Relaxed) + 1, tables.len());
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..workers.max(1) {
                scope.spawn(work);
            }
            work();
        });
        Ok(())
    }

    /// The tables that were made of a phase so far: sort of core, SMT mode, table.
    #[must_use]
    pub fn tables(&self, phase: &'p Phase) -> Vec<(usize, u32, ResponseTable)> {
        let prepared = self.prepared(phase).ok();
        let made = |prepared: Arc<Prepared>| {
            prepared.tables().map(|(sort, mode, table)| (sort, mode, table.clone())).collect()
        };
        prepared.map_or_else(Vec::new, made)
    }

    /// Takes over tables that were made before, of this very phase, machine and
    /// program.
    pub fn take_over(&self, phase: &'p Phase, tables: Vec<(usize, u32, ResponseTable)>) {
        if let Ok(prepared) = self.prepared(phase) {
            for (sort, mode, table) in tables {
                prepared.put_table(sort, mode, table);
            }
        }
    }

    fn prepared(&self, phase: &'p Phase) -> Result<Arc<Prepared>, PrepareError> {
        let address = std::ptr::from_ref(phase) as usize;
        // What is in it is whole, whoever panicked meanwhile.
        let mut ready = self.ready.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = ready.get(&address) {
            return Ok(Arc::clone(known));
        }
        let made = Arc::new(Prepared::new(&self.description, phase)?);
        ready.insert(address, Arc::clone(&made));
        Ok(made)
    }
}

/// The fast level of one run.
#[derive(Debug)]
pub struct Fast<'w, 'p> {
    workshop: &'w Workshop<'p>,
    switches: Switches,
    phases: Vec<Arc<Prepared>>,
    /// For each node, the shares of the pages of a program whose memory it is.
    pages: Vec<Vec<f64>>,
    nodes: Vec<NodeId>,
    state: State,
}

impl Fast<'_, '_> {
    /// Share of the questions so far for which no fixed point was found.
    #[must_use]
    pub fn unsettled(&self) -> f64 {
        self.state.unsettled as f64 / self.state.calls.max(1) as f64
    }
}

impl<'p> Contention<'p> for Fast<'_, 'p> {
    type Error = PrepareError;

    fn prepare(&mut self, phase: &'p Phase) -> Result<usize, PrepareError> {
        self.phases.push(self.workshop.prepared(phase)?);
        Ok(self.phases.len() - 1)
    }

    fn paces(&mut self, runners: &[Runner], span_ns: f64) -> Vec<Pace> {
        let mut cores: BTreeMap<usize, (u32, Vec<Running<'_>>)> = BTreeMap::new();
        for runner in runners {
            let node = self.nodes.iter().position(|node| *node == runner.home);
            let (Some(prepared), Some(pages)) =
                (self.phases.get(runner.phase), self.pages.get(node.unwrap_or(0)))
            else {
                continue;
            };
            let core = cores.entry(runner.core.0 as usize).or_default();
            core.0 = core.0.max(runner.mode);
            core.1.push(Running { thread: runner.thread, prepared, pages });
        }
        let loads: Vec<Load<'_>> = cores
            .iter()
            .map(|(core, (mode, threads))| Load { core: *core, mode: *mode, threads })
            .collect();
        let physics = &self.workshop.physics;
        let mut tables = Tables { physics };
        let solution =
            physics.solve(&mut tables, self.switches, &loads, Some(span_ns), &mut self.state);
        let known: BTreeMap<u64, Pace> =
            solution.rates.iter().map(|(thread, rates)| (*thread, pace(rates))).collect();
        let still = Pace { speed: 1e-6, activity: Activity::default(), ghz: 1.0, width: 1.0 };
        let pace = |runner: &Runner| known.get(&runner.thread).copied().unwrap_or(still);
        runners.iter().map(pace).collect()
    }

    fn forget(&mut self, thread: u64) {
        self.state.forget(thread);
    }
}

/// What a thread does per instruction, in the terms of the counters.
fn pace(rates: &Rates) -> Pace {
    let far = if rates.llc_misses > 0.0 { rates.remote_misses / rates.llc_misses } else { 0.0 };
    let activity = Activity {
        cycles: rates.window.cycles,
        slots: rates.window.slots,
        modes: [0.0; 4],
        instructions: 1.0,
        uops: rates.ops,
        loads: rates.loads,
        stores: rates.stores,
        mispredicted: rates.mispredicts,
        flops: rates.flops,
        fp_scalar: rates.fp_scalar,
        fp_packed: rates.fp_packed,
        fp_divisions: rates.fp_divisions,
        vector_cycles: rates.window.vector_cycles,
        divider_cycles: rates.divider_cycles,
        l1i_misses: rates.l1i_misses,
        itlb_misses: rates.itlb_misses,
        l1d_misses: rates.l1d_load_misses,
        l2_misses: rates.l2_misses,
        l2_load_misses: rates.l2_load_misses,
        llc_load_misses: rates.llc_load_misses,
        far_loads: rates.llc_load_misses * far,
        memory_near: rates.llc_misses - rates.remote_misses,
        memory_far: rates.remote_misses,
    };
    let speed = rates.instructions_per_second() / 1e9;
    Pace { speed, activity, ghz: rates.ghz, width: rates.width }
}
