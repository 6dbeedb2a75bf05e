//! Predicted and measured slowdowns.
//!
//! A prediction holds for a set of co-runners. It is compared only where the recording then ran the
//! thread with just these: the recorded placement, not the decided one, says what was measured. The
//! measured slowdown of a program is its mean CPI in these thread quanta over its mean CPI in thread
//! quanta in which a thread of it had a core to itself. So programs that never had one have none.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use symbiont_control::Step;
use symbiont_counters::Measured;
use symbiont_machine::{Placement, ProgramId, Target, ThreadId};
use symbiont_topology::{CoreId, Topology};

/// Predicted and measured slowdowns of a program.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Prediction {
    /// The program.
    pub program: String,
    /// Thread quanta in which a thread ran with the co-runners of its prediction and was measured.
    pub compared: u64,
    /// Mean slowdown that was predicted for these.
    pub predicted: f64,
    /// Mean cycles per instruction in these.
    pub cpi: f64,
    /// Thread quanta in which a thread had a core to itself and was measured.
    pub alone: u64,
    /// Mean cycles per instruction in those; none if there are none.
    pub cpi_alone: Option<f64>,
    /// `cpi` / `cpi_alone`.
    pub measured: Option<f64>,
}

#[derive(Debug, Default)]
struct Sums {
    name: String,
    predicted: f64,
    cpi: f64,
    compared: u32,
    cpi_alone: f64,
    alone: u32,
}

/// What is expected of a thread in the next quantum.
#[derive(Debug)]
struct Expected {
    slowdown: f64,
    with: BTreeSet<ThreadId>,
}

/// Compares, step after step.
#[derive(Debug)]
pub struct Predictions {
    topology: Topology,
    expected: BTreeMap<ThreadId, Expected>,
    programs: BTreeMap<ProgramId, Sums>,
}

impl Predictions {
    pub fn new(topology: &Topology) -> Self {
        let topology = topology.clone();
        Self { topology, expected: BTreeMap::new(), programs: BTreeMap::new() }
    }

    pub fn add(&mut self, step: &Step) {
        for program in &step.sample.programs {
            self.programs.entry(program.id).or_default().name.clone_from(&program.name);
        }
        let groups = self.ran_together(step);
        for thread in &step.sample.threads {
            let core = thread.cpu.and_then(|cpu| self.topology.core_of(cpu));
            let group = core.and_then(|core| groups.get(&core.id));
            let Some(group) = group.filter(|group| group.contains(&thread.id)) else { continue };
            let Some(cpi) = step.measurements.get(&thread.id).and_then(cpi) else { continue };
            let sums = self.programs.entry(thread.program).or_default();
            if group.len() == 1 {
                sums.cpi_alone += cpi;
                sums.alone += 1;
            } else if let Some(expected) = self.expected.get(&thread.id) {
                let with = group.iter().filter(|other| **other != thread.id);
                if with.eq(&expected.with) {
                    sums.predicted += expected.slowdown;
                    sums.cpi += cpi;
                    sums.compared += 1;
                }
            }
        }
        self.expected = expected(&step.placement, &self.topology);
    }

    /// The threads that ran on each core in the last quantum.
    fn ran_together(&self, step: &Step) -> BTreeMap<CoreId, BTreeSet<ThreadId>> {
        let mut groups: BTreeMap<CoreId, BTreeSet<ThreadId>> = BTreeMap::new();
        for thread in &step.sample.threads {
            let did = step.characterizations.get(&thread.id);
            let ran = did.is_some_and(|did| did.running > 0.0);
            let core = thread.cpu.and_then(|cpu| self.topology.core_of(cpu));
            if let Some(core) = core.filter(|_| ran) {
                groups.entry(core.id).or_default().insert(thread.id);
            }
        }
        groups
    }

    /// The programs for which there is something to compare.
    pub fn report(self) -> Vec<Prediction> {
        let mean = |sum: f64, count: u32| (count > 0).then(|| sum / f64::from(count));
        let compared = |sums: Sums| {
            let (predicted, cpi) =
                mean(sums.predicted, sums.compared).zip(mean(sums.cpi, sums.compared))?;
            let cpi_alone = mean(sums.cpi_alone, sums.alone);
            Some(Prediction {
                program: sums.name,
                compared: sums.compared.into(),
                predicted,
                cpi,
                alone: sums.alone.into(),
                cpi_alone,
                measured: cpi_alone.map(|alone| cpi / alone),
            })
        };
        self.programs.into_values().filter_map(compared).collect()
    }
}

/// The co-runners that a placement with predictions gives each thread.
fn expected(placement: &Placement, topology: &Topology) -> BTreeMap<ThreadId, Expected> {
    let mut cores: BTreeMap<CoreId, BTreeSet<ThreadId>> = BTreeMap::new();
    let mut predicted = Vec::new();
    for (id, assignment) in placement {
        let Target::Cpus(cpus) = &assignment.target else { continue };
        let Some(core) = cpus.first().and_then(|cpu| topology.core_of(cpu)) else { continue };
        if !cpus.is_subset(&core.cpus) {
            continue;
        }
        cores.entry(core.id).or_default().insert(*id);
        predicted.extend(assignment.predicted_slowdown.map(|slowdown| (*id, core.id, slowdown)));
    }
    let expect = |(id, core, slowdown): (ThreadId, CoreId, f64)| {
        let mut with = cores.get(&core).cloned().unwrap_or_default();
        with.remove(&id);
        (id, Expected { slowdown, with })
    };
    predicted.into_iter().map(expect).collect()
}

/// Cycles per instruction over the last quantum.
fn cpi(measured: &Measured) -> Option<f64> {
    let fresh = |name: &str| measured.get(name).ok().filter(|m| m.age == 0).map(|m| m.value);
    let cpi = fresh("cpi").or_else(|| fresh("ipc").map(|ipc| 1.0 / ipc));
    cpi.filter(|cpi| cpi.is_finite() && *cpi > 0.0)
}

#[cfg(test)]
mod tests;
