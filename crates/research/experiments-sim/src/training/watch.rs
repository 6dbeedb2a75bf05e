//! What programs did in each quantum, as the counters report it.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use symbiont_control::ControlError;
use symbiont_counters::{History, Measured};
use symbiont_machine::{Machine, Signal, Signals, ThreadId};
use symbiont_model::{Components, CpiStack};
use symbiont_training::Quantum;

/// What each program of a run did, in the order in which they were enrolled.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WatchedRun {
    /// The quanta of each program's thread.
    pub programs: Vec<Vec<Quantum>>,
}

/// What is counted in training.
fn signals(components: &Components) -> Signals {
    [Signal::RunStates, Signal::Ipc, components.signal()].into()
}

/// Watches a machine for some quanta. Of a program with several threads, the
/// one that completes the most instructions counts.
///
/// # Errors
/// When the machine fails, or cannot count what is needed.
pub fn watch<M: Machine>(
    machine: &mut M,
    components: &Components,
    quanta: usize,
    quantum: Duration,
) -> Result<WatchedRun, ControlError<M::Error>> {
    let signals = signals(components);
    machine.measure(&signals);
    if let Some((signal, why)) = machine.support().missing(&signals) {
        return Err(ControlError::MissingSignal { policy: "training", signal, why });
    }
    let mut history = History::default();
    let mut threads: BTreeMap<(u32, ThreadId), Vec<Quantum>> = BTreeMap::new();
    let mut programs = 0;
    for at in 0..=quanta {
        if at > 0 {
            machine.wait(quantum).map_err(ControlError::Machine)?;
        }
        let sample = machine.sample().map_err(ControlError::Machine)?;
        let measurements = history.take(&sample)?;
        programs = programs.max(sample.programs.len());
        for thread in sample.threads.iter().filter(|_| at > 0) {
            let reported = threads.entry((thread.program.0, thread.id)).or_default();
            // What ran before it was first seen is a gap.
            reported.resize(at - 1, NOTHING);
            reported.push(measurements.get(&thread.id).map_or(NOTHING, |m| read(m, components)));
        }
    }
    let completed =
        |reported: &[Quantum]| reported.iter().map(|quantum| quantum.instructions).sum::<f64>();
    let mut ran = vec![Vec::new(); programs];
    for ((program, _), mut reported) in threads {
        reported.resize(quanta, NOTHING);
        if let Some(best) = ran.get_mut(program as usize) {
            if completed(&reported) > completed(best) {
                *best = reported;
            }
        }
    }
    Ok(WatchedRun { programs: ran })
}

const NOTHING: Quantum = Quantum { instructions: 0.0, stack: None };

/// Groups of events that take turns see different parts of a quantum; cycles and instructions are
/// in all of them, so the whole CPI is known better than its parts: they are scaled to it.
fn read(measured: &Measured, components: &Components) -> Quantum {
    let fresh = |name: &str| measured.get(name).ok().filter(|m| m.age == 0).map(|m| m.value);
    let whole = components.names().all(|name| fresh(name).is_some());
    let instructions = fresh("instructions").unwrap_or(0.0);
    let cpi = fresh("cycles").map(|cycles| cycles / instructions).filter(|cpi| cpi.is_finite());
    let stack = components.read(measured).ok().filter(|_| whole);
    let scaled = stack.zip(cpi).and_then(|(stack, cpi)| {
        CpiStack::new(stack.shares().parts().iter().map(|share| share * cpi).collect()).ok()
    });
    Quantum { instructions, stack: scaled }
}
