//! What each program gains from fast cores, learned where instructions are
//! counted (Morad et al., section 8: "different speedups for different
//! applications on each core type").
//!
//! A program's speed on a type of core is the mean rate of instructions, per
//! second of running, of its threads while they stayed there for a quantum, of
//! which they ran half or more: an exponential mean over about eight quanta. Only quanta count in
//! which the program was serial: its parallel code is other code, and runs on other cores.
//! The types are distinguished by
//! capacity. A program that was serial on the fastest and on the slowest type has
//! a gain: the quotient of the two speeds. A program that was not is taken to gain as much
//! as the capacities say.

use std::collections::BTreeMap;

use symbiont_machine::ProgramId;
use symbiont_topology::Topology;

use super::{Phase, ProgramPhase};
use crate::View;

/// Weight of a new quantum in the mean.
const WEIGHT: f64 = 1.0 / 8.0;
/// Least share of a thread's time in which its instructions were counted.
const COVERED: f64 = 0.9;
/// Least share of a quantum that a thread must have run.
const RAN: f64 = 0.5;

/// Speeds by program and by capacity of the core, in instructions per second.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Speeds(BTreeMap<(ProgramId, u32), f64>);

impl Speeds {
    /// Learns from a quantum.
    pub(super) fn learn(&mut self, view: &View<'_>, programs: &BTreeMap<ProgramId, ProgramPhase>) {
        if !is_asymmetric(view.topology) {
            return;
        }
        let speeds = view.topology.speed_groups();
        let serial = |id| programs.get(&id).is_some_and(|program| program.phase == Phase::Serial);
        for thread in view.threads.iter().filter(|thread| serial(thread.program)) {
            let Some((did, measured)) = thread.did.zip(thread.measured) else { continue };
            let Some(core) = thread.cpu.and_then(|pu| view.topology.core_of(pu)) else { continue };
            if did.migrated != Some(false) || did.running < RAN {
                continue;
            }
            let Ok(counted) = measured.get("instructions") else { continue };
            if counted.age > 0 || counted.coverage < COVERED {
                continue;
            }
            let speed = counted.value / (did.running * did.over.as_secs_f64());
            if speed.is_finite() && speed > 0.0 {
                let capacity = *speeds.of_core(core).end();
                let mean = self.0.entry((thread.program, capacity)).or_insert(speed);
                *mean += WEIGHT * (speed - *mean);
            }
        }
        self.0.retain(|(program, _), _| view.threads.iter().any(|t| t.program == *program));
    }

    /// How many times as fast the program is on the fastest type of core as on
    /// the slowest, in eighths, so that noise does not change an order.
    pub(super) fn gain(&self, program: ProgramId, topology: &Topology) -> u64 {
        let speeds = topology.speed_groups();
        let mut capacities = speeds.iter().map(|group| *group.end());
        let Some(slowest) = capacities.next() else { return 0 };
        let fastest = capacities.next_back().unwrap_or(slowest);
        let speed = |capacity| self.0.get(&(program, capacity));
        let gain = match (speed(fastest), speed(slowest)) {
            (Some(fast), Some(slow)) => fast / slow,
            _ => f64::from(fastest) / f64::from(slowest),
        };
        // Positive, and saturating where it is absurd.
        (8.0 * gain).round() as u64
    }

    /// What is known, in instructions per second.
    pub(super) fn iter(&self) -> impl Iterator<Item = (ProgramId, u32, f64)> {
        self.0.iter().map(|(&(program, capacity), &speed)| (program, capacity, speed))
    }
}

/// Are there several types of core?
pub(super) fn is_asymmetric(topology: &Topology) -> bool {
    !topology.speed_groups().is_one()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use symbiont_counters::catalogue::{Quantity, Unit, Value};
    use symbiont_counters::{Characterization, Characterizations, Measured, Measurements};
    use symbiont_machine::test_support::thread;
    use symbiont_machine::{Placement, Sample};
    use symbiont_topology::PuId;

    use super::*;
    use crate::phases::Phases;

    const MACHINE: &str = "core:1 | core:1 capacity:512";
    const P: ProgramId = ProgramId(1);

    /// A quantum of 20 ms in which a thread of `program` ran all the time on a
    /// hardware thread and retired instructions.
    fn quantum(speeds: &mut Speeds, program: u32, cpu: u32, instructions: f64, migrated: bool) {
        let machine = Topology::synthetic(MACHINE).unwrap();
        let mut t = thread(program, 1, &machine.cpus());
        t.cpu = Some(PuId(cpu));
        let over = Duration::from_millis(20);
        let migrated = Some(migrated);
        let did = Characterization { over, ready: 1.0, running: 1.0, switches: 0, migrated };
        let unit = Unit::Of(Quantity::Instructions);
        let measured = Measured::of([("instructions", Value { value: instructions, unit })]);
        let (known, measured): (Characterizations, Measurements) =
            ([(t.id, did)].into(), [(t.id, measured)].into());
        let sample = Sample { threads: vec![t], ..Sample::default() };
        let applied = Placement::new();
        let view = View::new(&machine, &sample, &known, &applied).measured(&measured);
        let programs = Phases::new(None).programs(&view);
        assert_eq!(programs[&ProgramId(program)].phase, Phase::Serial);
        speeds.learn(&view, &programs);
        let parallel = ProgramPhase { phase: Phase::Parallel, ready: 4.0 };
        let before = speeds.clone();
        speeds.learn(&view, &programs.into_keys().map(|id| (id, parallel)).collect());
        assert_eq!(*speeds, before, "parallel code is other code");
    }

    fn gain(speeds: &Speeds) -> f64 {
        speeds.gain(P, &Topology::synthetic(MACHINE).unwrap()) as f64 / 8.0
    }

    #[test]
    fn a_program_is_taken_for_average_until_both_types_are_known() {
        let mut speeds = Speeds::default();
        assert_eq!(gain(&speeds), 2.0);
        quantum(&mut speeds, 1, 0, 3e7, false);
        assert_eq!(gain(&speeds), 2.0);
        quantum(&mut speeds, 1, 1, 2e7, false);
        assert_eq!(gain(&speeds), 1.5);
        let reported: Vec<_> = speeds.iter().collect();
        assert_eq!(reported, [(P, 512, 1e9), (P, 1024, 1.5e9)]);
    }

    #[test]
    fn the_mean_follows_slowly() {
        let mut speeds = Speeds::default();
        quantum(&mut speeds, 1, 0, 1e7, false);
        quantum(&mut speeds, 1, 1, 1e7, false);
        quantum(&mut speeds, 1, 0, 9e7, false);
        assert_eq!(gain(&speeds), 2.0);
    }

    #[test]
    fn who_moved_within_the_quantum_teaches_nothing() {
        let mut speeds = Speeds::default();
        quantum(&mut speeds, 1, 0, 3e7, true);
        assert_eq!(speeds.iter().count(), 0);
    }

    #[test]
    fn programs_that_are_gone_are_forgotten() {
        let mut speeds = Speeds::default();
        quantum(&mut speeds, 1, 0, 3e7, false);
        quantum(&mut speeds, 2, 0, 3e7, false);
        assert_eq!(speeds.iter().map(|(program, ..)| program).collect::<Vec<_>>(), [ProgramId(2)]);
    }

    /// The serial thread that gains more gets the fast core, whichever was first.
    #[test]
    fn who_gains_most_from_the_fast_core_gets_it() {
        use crate::Policy;
        use symbiont_machine::Target;

        let machine = Topology::synthetic(MACHINE).unwrap();
        let mut policy = Phases::online(&crate::Settings::default());
        for (program, fast) in [(ProgramId(1), 1.1e9), (ProgramId(2), 3e9)] {
            policy.speeds.0.extend([((program, 1024), fast), ((program, 512), 1e9)]);
        }
        let threads: Vec<_> = [1, 2].map(|p| thread(p, p, &machine.cpus())).into();
        let did = Characterization {
            over: Duration::from_millis(20),
            ready: 1.0,
            running: 1.0,
            switches: 0,
            migrated: None,
        };
        let known: Characterizations = threads.iter().map(|t| (t.id, did)).collect();
        let sample = Sample { threads, ..Sample::default() };
        let applied = Placement::new();
        let placement = policy.place(&View::new(&machine, &sample, &known, &applied));
        let cpus: Vec<_> = placement.values().map(|a| a.target.clone()).collect();
        assert_eq!(cpus, ["1", "0"].map(|cpu| Target::Cpus(cpu.parse().unwrap())));
    }
}
