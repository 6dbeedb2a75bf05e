//! Threads whose co-running stacks are made by the equations of the model, for
//! tests of what predicts by them.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use rand::seq::SliceRandom;
use rand_pcg::Pcg64Mcg;
use symbiont_counters::catalogue::{Unit, Value};
use symbiont_counters::{Characterization, Characterizations, Measured, Measurements};
use symbiont_machine::test_support::thread;
use symbiont_machine::{Placement, Program, ProgramId, RunState, Sample, Target, ThreadId};
use symbiont_model::{
    Coefficients, Components, Model, Shares, SmtMode, Throttling, TrainedMode, Training,
};
use symbiont_topology::{CoreKind, CpuSet, PuId, Topology};
use symbiont_training::synthetic::World;
use symbiont_training::{Weighting, fit_weighted};

use crate::{Policy, View};

/// The components of the stacks.
pub(crate) const STACK: [&str; 5] =
    ["cpi_base", "cpi_stall", "cpi_empty", "cpi_thread", "cpi_other"];

/// Throttled over isolated time of every thread.
pub(crate) const THROTTLING: f64 = 1.1;

/// How threads really hurt each other.
fn law() -> Coefficients {
    Coefficients::new(World::law(STACK.len(), 0.6)).unwrap()
}

/// A model that was trained on synthetic programs under that law, without noise.
pub(crate) fn model() -> Model {
    static MODEL: LazyLock<Model> = LazyLock::new(train);
    MODEL.clone()
}

fn train() -> Model {
    let world = World::new(12, 2, law(), 5);
    let trained = |mode: SmtMode| {
        let groups = world.some_groups(mode.threads(), 120, 6);
        TrainedMode {
            // Relative errors are what tests ask for.
            fit: fit_weighted(mode, &world.observe(&groups, 3, 7), Weighting::Relative).unwrap(),
            throttling: Some(Throttling { weights: vec![THROTTLING; STACK.len()], error: 0.0 }),
            scores: Vec::new(),
        }
    };
    Model {
        machine: "a synthetic machine".into(),
        core: CoreKind::Performance,
        catalogue: "synthetic".into(),
        components: Components::named(STACK).unwrap(),
        training: Training {
            date: "2026-01-02T03:04:05Z".into(),
            programs: Vec::new(),
            quantum_ms: 100,
            note: String::new(),
        },
        modes: [SmtMode::Smt2, SmtMode::Smt4].map(|mode| (mode, trained(mode))).into(),
    }
}

/// A machine with threads that always run; the first ones are on its first
/// hardware threads.
pub(crate) struct Bench {
    world: World,
    machine: Topology,
    stacks: Vec<Shares>,
    cpus: Vec<PuId>,
    asleep: Vec<bool>,
    reported: Vec<BTreeMap<&'static str, f64>>,
    placement: Placement,
}

impl Bench {
    pub(crate) fn new(machine: &str, stacks: &[[f64; 5]]) -> Self {
        let machine = Topology::synthetic(machine).unwrap();
        let stacks: Vec<Shares> =
            stacks.iter().map(|parts| Shares::new(parts.to_vec()).unwrap()).collect();
        let online: Vec<PuId> = machine.cpus().iter().collect();
        let cpus = (0..stacks.len()).map(|at| online[at % online.len()]).collect();
        let world = World::new(1, 1, law(), 1);
        let asleep = vec![false; stacks.len()];
        let mut bench = Self {
            world,
            machine,
            stacks,
            cpus,
            asleep,
            reported: vec![],
            placement: BTreeMap::new(),
        };
        bench.measure();
        bench
    }

    /// A quantum passes, and the policy decides on what was measured of it.
    pub(crate) fn step(&mut self, policy: &mut dyn Policy) {
        self.measure();
        self.decide(policy);
    }

    /// Measures what threads do to each other where they are.
    pub(crate) fn measure(&mut self) {
        self.reported = vec![BTreeMap::new(); self.stacks.len()];
        for group in self.groups() {
            let shares: Vec<&Shares> = group.iter().map(|&at| &self.stacks[at]).collect();
            for (&at, parts) in group.iter().zip(self.world.truth(&shares)) {
                let parts = if shares.len() == 1 { shares[0].parts().to_vec() } else { parts };
                self.reported[at] = STACK.into_iter().zip(parts).collect();
            }
        }
    }

    /// The policy decides, and threads go where it wants them.
    pub(crate) fn decide(&mut self, policy: &mut dyn Policy) {
        let placement = self.show(|view| policy.place(view));
        for (id, assignment) in &placement {
            if let Target::Cpus(cpus) = &assignment.target {
                self.cpus[id.thread as usize] = cpus.first().unwrap();
            }
        }
        self.placement = placement;
    }

    /// Shows what was measured last.
    pub(crate) fn show<T>(&self, look: impl FnOnce(&View<'_>) -> T) -> T {
        let mut measurements = Measurements::new();
        let mut threads = Vec::new();
        let online = self.machine.cpus();
        for (at, reported) in self.reported.iter().enumerate() {
            let mut t = thread(at as u32, at as u32, &online);
            let asleep = self.asleep[at];
            t.state = if asleep { RunState::Sleeping } else { RunState::Runnable };
            t.cpu = Some(self.cpus[at]);
            let value = |value: f64| Value { value, unit: Unit::Fraction };
            let measured = Measured::of(reported.iter().map(|(name, v)| (*name, value(*v))));
            measurements.insert(t.id, measured.with_stack(&STACK));
            threads.push(t);
        }
        let programs = (0..threads.len() as u32)
            .map(|at| Program::new(ProgramId(at), format!("program-{at}")))
            .collect();
        let over = std::time::Duration::from_millis(100);
        let ran = Characterization { over, ready: 1.0, running: 1.0, switches: 0, migrated: None };
        let awake = threads.iter().filter(|thread| thread.state == RunState::Runnable);
        let did: Characterizations = awake.map(|thread| (thread.id, ran)).collect();
        let sample = Sample { threads, programs, ..Sample::default() };
        let view = View::new(&self.machine, &sample, &did, &self.placement);
        look(&view.measured(&measurements))
    }

    /// Threads do something else from now on.
    pub(crate) fn change(&mut self, stacks: &[[f64; 5]]) {
        self.stacks = stacks.iter().map(|parts| Shares::new(parts.to_vec()).unwrap()).collect();
    }

    pub(crate) fn placement(&self) -> &Placement {
        &self.placement
    }

    pub(crate) fn predicted(&self) -> Vec<Option<f64>> {
        self.placement.values().map(|assignment| assignment.predicted_slowdown).collect()
    }

    pub(crate) fn targets(&self) -> BTreeMap<ThreadId, Target> {
        self.placement.iter().map(|(id, a)| (*id, a.target.clone())).collect()
    }

    /// The threads of each core that has any.
    pub(crate) fn groups(&self) -> Vec<Vec<usize>> {
        let mut groups: BTreeMap<_, Vec<usize>> = BTreeMap::new();
        for (at, cpu) in self.cpus.iter().enumerate() {
            groups.entry(self.machine.core_of(*cpu).unwrap().id).or_default().push(at);
        }
        groups.into_values().collect()
    }

    /// True slowdown of a thread where it is, over throttled.
    pub(crate) fn slowdown(&self, thread: usize) -> f64 {
        let group = self.groups().into_iter().find(|group| group.contains(&thread)).unwrap();
        let shares: Vec<&Shares> = group.iter().map(|&at| &self.stacks[at]).collect();
        let place = group.iter().position(|at| *at == thread).unwrap();
        if group.len() == 1 { 1.0 } else { self.world.truth(&shares)[place].iter().sum() }
    }

    /// True throughput.
    pub(crate) fn stp(&self) -> f64 {
        (0..self.stacks.len()).map(|at| 1.0 / self.slowdown(at)).sum()
    }

    /// The hardware threads where a thread is.
    pub(crate) fn cpus(&self, thread: usize) -> CpuSet {
        self.cpus[thread].into()
    }

    pub(crate) fn set(&mut self, thread: usize, parts: [f64; 5]) {
        self.reported[thread].extend(STACK.into_iter().zip(parts));
    }

    /// All parts of what was measured of a thread are so many times as long.
    pub(crate) fn stretch(&mut self, thread: usize, factor: f64) {
        self.reported[thread].values_mut().for_each(|part| *part *= factor);
    }

    /// Something else is measured of a thread too.
    pub(crate) fn set_signal(&mut self, thread: usize, name: &'static str, value: f64) {
        self.reported[thread].insert(name, value);
    }

    pub(crate) fn forget(&mut self, thread: usize, names: &[&'static str]) {
        self.reported[thread].retain(|name, _| !names.contains(name));
    }

    pub(crate) fn sleep(&mut self, thread: usize) {
        self.asleep[thread] = true;
    }

    /// Each thread is shown what was measured of another one.
    pub(crate) fn shuffle(&mut self, random: &mut Pcg64Mcg) {
        self.reported.shuffle(random);
    }
}
