//! The fast level: the window model and its fixed point, as the machine uses them.
//!
//! # Approach
//! A [`TableBuilder`] holds the physics of a machine and the phases that were prepared for it; preparing a phase
//! takes long and is done once, however many runs need it ([`crate::ready`]). [`Fast`] is one run's view of it,
//! with the state of that run's caches.

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use symbiont_profile::Phase;
use symbiont_topology::NodeId;

use crate::activity::Activity;
use crate::description::Description;
use crate::machine::{Contention, Fidelity, Runner, ThreadRate};
use crate::physics::domains::Physics;
use crate::physics::prepared::{PrepareError, Prepared};
use crate::physics::rates::Rates;
use crate::physics::solve::{Moment, State, Tables};
use crate::physics::tasks::{CoreLoad, RunningThread};

pub use crate::physics::tasks::Switches;

/// A machine's physics, and phases that were prepared for it.
#[derive(Debug)]
pub struct TableBuilder<'p> {
    description: Description,
    physics: Physics,
    /// By the phase's address, which is its own for as long as it is borrowed.
    ready: Mutex<BTreeMap<usize, Arc<Prepared>>>,
    phases: PhantomData<&'p Phase>,
}

impl<'p> TableBuilder<'p> {
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
        let (state, thread_rates) = (State::default(), Vec::new());
        Fast { builder: self, switches, phases: Vec::new(), pages, nodes, state, thread_rates }
    }

    /// The physics.
    pub(crate) fn physics(&self) -> &Physics {
        &self.physics
    }

    /// A phase, prepared for the machine.
    pub(crate) fn prepared(&self, phase: &'p Phase) -> Result<Arc<Prepared>, PrepareError> {
        let address = std::ptr::from_ref(phase) as usize;
        let known = self.ready().get(&address).cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        // Others may make the same meanwhile; the first one's stays.
        let made = Arc::new(Prepared::new(&self.description, phase)?);
        Ok(Arc::clone(self.ready().entry(address).or_insert(made)))
    }

    fn ready(&self) -> MutexGuard<'_, BTreeMap<usize, Arc<Prepared>>> {
        // What is in it is whole, even if a thread panicked meanwhile.
        self.ready.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The fast level of one run.
#[derive(Debug)]
pub struct Fast<'w, 'p> {
    builder: &'w TableBuilder<'p>,
    switches: Switches,
    phases: Vec<Arc<Prepared>>,
    /// For each node, the shares of the pages of a program whose memory it is.
    pages: Vec<Vec<f64>>,
    nodes: Vec<NodeId>,
    state: State,
    /// The rates that were reported last, in the order of the state's rates.
    thread_rates: Vec<Arc<ThreadRate>>,
}

impl<'p> Fidelity<'p> for TableBuilder<'p> {
    type Run<'a>
        = Fast<'a, 'p>
    where
        Self: 'a;

    const NAME: &'static str = "fast level";

    fn description(&self) -> &Description {
        &self.description
    }

    fn begin(&self, private: Switches) -> Option<Fast<'_, 'p>> {
        Some(self.fast(private))
    }
}

impl<'p> Contention<'p> for Fast<'_, 'p> {
    type Error = PrepareError;

    fn prepare(&mut self, phase: &'p Phase) -> Result<usize, PrepareError> {
        self.phases.push(self.builder.prepared(phase)?);
        Ok(self.phases.len() - 1)
    }

    fn thread_rates(&mut self, runners: &[Runner], span_ns: f64) -> Vec<Arc<ThreadRate>> {
        self.ask(runners, span_ns, Moment::Next)
    }

    fn instead(&mut self, runners: &[Runner], span_ns: f64) -> Option<Vec<Arc<ThreadRate>>> {
        self.state.minds(span_ns).then(|| self.ask(runners, span_ns, Moment::Same))
    }

    fn lasted(&mut self, ns: f64) {
        self.state.lasted(ns);
    }

    fn fills(&self) -> bool {
        self.state.fills()
    }

    fn forget(&mut self, thread: u64) {
        self.state.forget(thread);
    }

    fn unsettled(&self) -> f64 {
        self.state.unsettled as f64 / self.state.calls.max(1) as f64
    }
}

impl Fast<'_, '_> {
    fn ask(&mut self, runners: &[Runner], span_ns: f64, moment: Moment) -> Vec<Arc<ThreadRate>> {
        let mut order: Vec<usize> = (0..runners.len()).collect();
        order.sort_by_key(|&at| runners[at].core);
        // Core by core: its mode, and how many run there.
        let mut cores: Vec<(usize, u32, usize)> = Vec::with_capacity(runners.len());
        let mut threads: Vec<RunningThread<'_>> = Vec::with_capacity(runners.len());
        for runner in order.iter().map(|&at| &runners[at]) {
            let node = self.nodes.iter().position(|node| *node == runner.home);
            let (Some(prepared), Some(pages)) =
                (self.phases.get(runner.phase), self.pages.get(node.unwrap_or(0)))
            else {
                continue;
            };
            threads.push(RunningThread { thread: runner.thread, prepared, pages });
            let here = runner.core.0 as usize;
            match cores.last_mut() {
                Some((core, mode, count)) if *core == here => {
                    *mode = runner.mode.max(*mode);
                    *count += 1;
                }
                _ => cores.push((here, runner.mode, 1)),
            }
        }
        let mut rest = &threads[..];
        let load = |&(core, mode, count): &(usize, u32, usize)| {
            let (threads, others) = rest.split_at(count);
            rest = others;
            CoreLoad { core, mode, threads }
        };
        let loads: Vec<CoreLoad<'_>> = cores.iter().map(load).collect();
        let physics = &self.builder.physics;
        let mut tables = Tables { physics };
        let span = ((!self.switches.warm_caches).then_some(span_ns), moment);
        physics.settle(&mut tables, self.switches, &loads, span, &mut self.state);
        // A thread whose rates are as before keeps its value.
        let mut thread_rates = vec![None; runners.len()];
        // Rates come in the same order; a thread that the physics cannot place has none.
        let mut order = order.into_iter();
        let mut count = 0;
        for (thread, rates, renewed) in self.state.rates() {
            match self.thread_rates.get_mut(count) {
                Some(known) if renewed => *known = Arc::new(thread_rate(rates)),
                Some(_) => {}
                None => self.thread_rates.push(Arc::new(thread_rate(rates))),
            }
            if let Some(at) = order.find(|&at| runners[at].thread == thread) {
                thread_rates[at] = Some(Arc::clone(&self.thread_rates[count]));
            }
            count += 1;
        }
        self.thread_rates.truncate(count);
        let still =
            || ThreadRate { speed: 1e-6, activity: Activity::default(), ghz: 1.0, width: 1.0 };
        thread_rates
            .into_iter()
            .map(|thread_rate| thread_rate.unwrap_or_else(|| Arc::new(still())))
            .collect()
    }
}

/// What a thread does per instruction, in the terms of the counters.
fn thread_rate(rates: &Rates) -> ThreadRate {
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
    ThreadRate { speed, activity, ghz: rates.ghz, width: rates.width }
}
