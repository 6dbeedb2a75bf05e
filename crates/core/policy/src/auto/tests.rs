mod caches;
mod choosing;
mod placing;
mod trials;

use std::collections::BTreeSet;

use symbiont_counters::catalogue::{Quantity, Unit, Value};
use symbiont_counters::{Characterization, Characterizations, Measured, Measurements};
use symbiont_machine::test_support::{full_support, thread};
use symbiont_machine::{Program, Sample, ThreadSample};
use symbiont_topology::{CoreId, PuId};

use super::*;

const COUNTED: [Signal; 2] = [Signal::RunStates, Signal::Ipc];
const NO_COUNTERS: [Signal; 1] = [Signal::RunStates];

/// What is offered where just these signals are measured.
fn offering(signals: &[Signal]) -> Support {
    let mut support = full_support();
    support.signals = signals.iter().map(|signal| (*signal, Ability::Full)).collect();
    support
}

/// A thread and what it does in each quantum.
#[derive(Debug, Clone)]
struct Actor {
    sample: ThreadSample,
    ready: f64,
    running: f64,
    /// Misses per cycle, by the number of the LLC domain where it runs.
    misses: [f64; 2],
}

/// Threads on a machine; what the policy places is applied, and thread number n is of program n / 10.
struct Scene {
    machine: Topology,
    policy: Auto,
    actors: BTreeMap<u32, Actor>,
    applied: Placement,
    over: Duration,
    counts: bool,
}

impl Scene {
    fn on(line: &str, signals: &[Signal]) -> Self {
        let machine = Topology::synthetic(line).unwrap();
        let mut policy = Auto::new(&Settings::default());
        policy.offer(&offering(signals), &machine);
        let counts = signals.contains(&Signal::Ipc);
        let (actors, applied, over) = (BTreeMap::new(), Placement::new(), ENTRY.quantum);
        Self { machine, policy, actors, applied, over, counts }
    }

    /// Adds threads that are always ready, each where the fewest others are.
    fn with(mut self, numbers: impl IntoIterator<Item = u32>) -> Self {
        for number in numbers {
            let mut sample = thread(number / 10, number, &self.machine.cpus());
            sample.state = RunState::Runnable;
            sample.cpu = self.emptiest(&self.machine.cpus());
            self.actors
                .insert(number, Actor { sample, ready: 1.0, running: 1.0, misses: [0.0; 2] });
        }
        self
    }

    fn emptiest(&self, cpus: &CpuSet) -> Option<PuId> {
        let load = |pu: &PuId| self.actors.values().filter(|a| a.sample.cpu == Some(*pu)).count();
        cpus.iter().min_by_key(load)
    }

    fn actor(&mut self, number: u32) -> &mut Actor {
        self.actors.get_mut(&number).unwrap()
    }

    /// A quantum passes.
    fn step(&mut self) -> &Placement {
        let (mut known, mut measured) = (Characterizations::new(), Measurements::new());
        let asked = self.policy.requirements().measured().contains(&Signal::CacheMisses);
        for actor in self.actors.values() {
            let (ready, running) = (actor.ready, actor.running);
            let did =
                Characterization { over: self.over, ready, running, switches: 0, migrated: None };
            known.insert(actor.sample.id, did);
            if self.counts {
                let llc = actor.sample.cpu.and_then(|cpu| self.machine.llc_of(cpu));
                let misses = llc.and_then(|llc| actor.misses.get(llc.id.0 as usize).copied());
                let measures = measure(running * 1e8, misses.filter(|_| asked));
                measured.insert(actor.sample.id, measures);
            }
        }
        let threads: Vec<ThreadSample> = self.actors.values().map(|a| a.sample.clone()).collect();
        let ids: BTreeSet<ProgramId> = threads.iter().map(|t| t.program).collect();
        let program = |id: ProgramId| Program::new(id, format!("p{}", id.0));
        let programs = ids.into_iter().map(program).collect();
        let sample = Sample { threads, programs, ..Sample::default() };
        let view = View::new(&self.machine, &sample, &known, &self.applied).measured(&measured);
        let placement = self.policy.place(&view);
        for (id, assignment) in &placement {
            let Target::Cpus(cpus) = &assignment.target else { continue };
            if !self.actors[&id.thread].sample.cpu.is_some_and(|cpu| cpus.contains(cpu)) {
                self.actor(id.thread).sample.cpu = None;
                self.actor(id.thread).sample.cpu = self.emptiest(cpus);
            }
        }
        self.applied = placement;
        &self.applied
    }

    /// Some quanta pass.
    fn run(mut self, quanta: usize) -> Self {
        for _ in 0..quanta {
            self.step();
        }
        self
    }

    fn assignment(&self, number: u32) -> &Assignment {
        self.applied.iter().find(|(id, _)| id.thread == number).unwrap().1
    }

    /// Each thread's CPUs, "os" if it is left to it, with a `+` if it is boosted.
    fn places(&self) -> Vec<(u32, String)> {
        let place = |a: &Assignment| match &a.target {
            Target::Os => "os".to_owned(),
            Target::Cpus(cpus) => cpus.to_string(),
        };
        let boost = |a: &Assignment| if a.priority == Priority::Normal { "" } else { "+" };
        self.applied.iter().map(|(id, a)| (id.thread, place(a) + boost(a))).collect()
    }

    #[track_caller]
    fn gives(&self, expected: &[(u32, &str)]) {
        let expected: Vec<_> = expected.iter().map(|&(n, t)| (n, t.to_owned())).collect();
        assert_eq!(self.places(), expected, "{:?}", self.applied);
    }

    /// The core that each thread is kept on.
    fn cores(&self) -> BTreeMap<u32, CoreId> {
        let core = |(id, assignment): (&ThreadId, &Assignment)| match &assignment.target {
            Target::Cpus(cpus) => {
                let core = self.machine.core_of(cpus.first().unwrap()).unwrap();
                assert!(cpus.is_subset(&core.cpus), "{assignment:?}");
                (id.thread, core.id)
            }
            Target::Os => panic!("{id:?} is left to the OS: {}", assignment.reason),
        };
        self.applied.iter().map(core).collect()
    }
}

fn measure(instructions: f64, misses: Option<f64>) -> Measured {
    let unit = Unit::Of(Quantity::Instructions);
    let fraction = |value| Value { value, unit: Unit::Fraction };
    let misses = misses.map(|misses| ("llc_miss_rate", fraction(misses)));
    let counted = [("ipc", fraction(1.0)), ("instructions", Value { value: instructions, unit })];
    Measured::of(counted.into_iter().chain(misses))
}
