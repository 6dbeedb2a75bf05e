//! What happened in each quantum, as JSON lines.
//!
//! One object per quantum: `simulated`, which is always true, `at_ms`, and `threads` with program,
//! hardware thread, instructions per cycle and the share of cycles that each cause took. The causes
//! are the simulated machine's own, without the errors of counters.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde::Serialize;
use symbiont_machine::{ThreadId, Timestamp};
use symbiont_sim_fast::activity::{Activity, CAUSES};
use symbiont_sim_fast::machine::{Contention, SimMachine};

/// Writes a timeline.
pub(super) struct Timeline<'w> {
    to: &'w mut dyn Write,
    before: BTreeMap<ThreadId, Activity>,
}

#[derive(Serialize)]
struct Quantum<'a> {
    /// Always true: nothing of this was measured on hardware.
    simulated: bool,
    at_ms: f64,
    threads: Vec<Entry<'a>>,
}

#[derive(Serialize)]
struct Entry<'a> {
    program: &'a str,
    slot: usize,
    cpu: Option<u32>,
    instructions: f64,
    ipc: Option<f64>,
    cycles: BTreeMap<&'static str, f64>,
}

impl<'w> Timeline<'w> {
    pub(super) fn new(to: &'w mut dyn Write) -> Self {
        Self { to, before: BTreeMap::new() }
    }

    /// Adds the quantum that ended at `at`.
    pub(super) fn add<'p, C: Contention<'p>>(
        &mut self,
        machine: &SimMachine<'p, C>,
        at: Timestamp,
    ) -> io::Result<()> {
        let mut threads = Vec::new();
        let mut now = BTreeMap::new();
        for truth in machine.truth() {
            let mut step = truth.done;
            if let Some(before) = self.before.get(&truth.id) {
                step += &before.times(-1.0);
            }
            let cycles = step.all_cycles();
            let share = |cause: &f64| cause / cycles;
            let causes = CAUSES.into_iter().zip(step.cycles.iter().map(share));
            threads.push(Entry {
                program: machine.programs().get(truth.slot).map_or("", |p| p.name.as_str()),
                slot: truth.slot,
                cpu: truth.cpu.map(|pu| pu.0),
                instructions: step.instructions,
                ipc: (cycles > 0.0).then(|| step.instructions / cycles),
                cycles: if cycles > 0.0 { causes.collect() } else { BTreeMap::new() },
            });
            now.insert(truth.id, truth.done);
        }
        self.before = now;
        let quantum = Quantum { simulated: true, at_ms: at.0 as f64 / 1e6, threads };
        serde_json::to_writer(&mut *self.to, &quantum)?;
        self.to.write_all(b"\n")
    }
}
