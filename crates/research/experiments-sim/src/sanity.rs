//! Is a simulated machine within reason? What each program does on it, alone and in copies.
//!
//! This is for a person to look at, and proves nothing: no limit is enforced. What multithreading gains is shown by
//! [`super::multithreading`].

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;
use symbiont_machine::Machine;
use symbiont_profile::Profile;
use symbiont_sim_fast::PrepareError;
use symbiont_sim_fast::activity::{Activity, Slot};
use symbiont_sim_fast::description::Description;
use symbiont_sim_fast::fast::{Switches, TableBuilder};
use symbiont_sim_fast::machine::{Errors, SimError, SimMachine, SimOptions};
use symbiont_sim_fast::program::{Shape, SimProgram};
use symbiont_topology::CpuSet;

use super::{Provenance, Setup};

/// Simulated time of one run.
const TIME: Duration = Duration::from_secs(2);

/// What programs do on a machine.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Sanity {
    /// What it rests on.
    pub provenance: Provenance,
    /// Each program alone.
    pub alone: Vec<Alone>,
}

/// A program alone.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Alone {
    /// The program.
    pub program: String,
    /// Instructions per cycle.
    pub ipc: f64,
    /// Misses of the L2 for each 1,000 instructions.
    pub l2_mpki: f64,
    /// Lines read from memory for each 1,000 instructions.
    pub memory_mpki: f64,
    /// Top-Down, level 1: shares of slots of the front end, bad speculation,
    /// retiring, back end.
    pub top_down: [f64; 4],
    /// With a copy on each hardware thread of the machine: the share of its
    /// slots that others had.
    pub contention: f64,
    /// With these copies: their STP, over the number of cores.
    pub copies_per_core: f64,
}

/// Looks at a machine through some programs.
///
/// # Errors
/// When the machine cannot run one of them.
pub fn look(
    description: &Description,
    profiles: &BTreeMap<String, Profile>,
) -> Result<Sanity, SimError<PrepareError>> {
    let builder = TableBuilder::new(description.clone());
    let all: Vec<(&str, &Profile)> = profiles.iter().map(|(n, p)| (n.as_str(), p)).collect();
    let fastest = description.topology.cores_by_speed();
    let everywhere = description.topology.cpus();
    let core: CpuSet = fastest.first().map(|core| core.cpus.clone()).unwrap_or_default();
    let mut alone = Vec::new();
    for program in &all {
        let done = run(&builder, &[*program], &core)?;
        let Some(done) = done.first() else { continue };
        let copies = run(&builder, &vec![*program; everywhere.len()], &everywhere)?;
        alone.push(Alone {
            contention: contention(&copies),
            copies_per_core: copies.iter().map(|copy| copy.instructions).sum::<f64>()
                / done.instructions.max(1.0)
                / description.topology.cores().len() as f64,
            ..characterize(program.0, done)
        });
    }
    Ok(Sanity { provenance: Provenance::new(description, &Setup::default()), alone })
}

/// What programs do together on a core in the second half of a run, by program.
fn run<'p>(
    builder: &TableBuilder<'p>,
    programs: &[(&str, &'p Profile)],
    core: &CpuSet,
) -> Result<Vec<Activity>, SimError<PrepareError>> {
    let programs: Vec<SimProgram<'p>> = programs
        .iter()
        .map(|(name, profile)| SimProgram {
            name: (*name).to_owned(),
            profile,
            shape: Shape::Single,
            target: None,
        })
        .collect();
    // One hardware thread for each, so that no thread shares one.
    let allowed: CpuSet = core.iter().take(programs.len()).collect();
    let options = SimOptions {
        seed: 1,
        errors: Errors::NONE,
        allowed: Some(allowed),
        ..SimOptions::default()
    };
    let fast = builder.fast(Switches::default());
    let mut machine = SimMachine::new(builder.description(), fast, programs, &[], options)?;
    let done = |machine: &SimMachine<'p, _>| {
        machine.truth().map(|truth| (truth.slot, truth.done)).collect::<BTreeMap<_, _>>()
    };
    machine.wait(TIME / 2)?;
    let before = done(&machine);
    machine.wait(TIME / 2)?;
    let mut after = done(&machine);
    for (slot, sum) in &mut after {
        if let Some(before) = before.get(slot) {
            *sum += &before.times(-1.0);
        }
    }
    Ok(after.into_values().collect())
}

/// Share of all slots that other threads had.
fn contention(copies: &[Activity]) -> f64 {
    let all: f64 = copies.iter().map(Activity::all_slots).sum();
    copies.iter().map(|copy| copy.slot(Slot::OtherThread)).sum::<f64>() / all.max(1.0)
}

fn characterize(program: &str, done: &Activity) -> Alone {
    let per_1000 = |count: f64| 1000.0 * count / done.instructions.max(1.0);
    let slots = (done.all_slots() - done.slot(Slot::OtherThread)).max(1.0);
    let share = |causes: &[Slot]| done.slots_of(causes) / slots;
    Alone {
        program: program.to_owned(),
        ipc: done.instructions / done.all_cycles().max(1.0),
        l2_mpki: per_1000(done.l2_misses),
        memory_mpki: per_1000(done.memory_near + done.memory_far),
        top_down: [
            share(&[Slot::FetchLatency, Slot::FetchBandwidth]),
            share(&[Slot::BadSpeculation]),
            share(&[Slot::Retiring]),
            share(&[Slot::Core, Slot::L1, Slot::L2, Slot::L3, Slot::Memory, Slot::Store]),
        ],
        contention: 0.0,
        copies_per_core: 1.0,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::Library;
    use super::*;

    #[test]
    fn a_machine_is_looked_at_through_programs() {
        let library = Library::open(Path::new("/nonexistent")).unwrap();
        let names: Vec<String> = library.list().into_iter().map(|listed| listed.name).collect();
        let profiles = library.load_all(names.iter().map(String::as_str)).unwrap();
        let sanity = look(&Description::named("power8-s812l").unwrap(), &profiles).unwrap();
        assert_eq!(sanity.alone.len(), names.len());
        for alone in &sanity.alone {
            assert!(alone.ipc > 0.01 && alone.ipc <= 8.0, "{alone:?}");
            assert!((alone.top_down.iter().sum::<f64>() - 1.0).abs() < 1e-6, "{alone:?}");
        }
    }
}
