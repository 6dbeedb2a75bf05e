use std::collections::BTreeSet;
use std::time::Duration;

use symbiont_control::{Controller, Holding};
use symbiont_machine::{Machine, Target};
use symbiont_planner::{Bounds, Planner};
use symbiont_policy::{Phases, Settings};
use symbiont_profile::Profile;
use symbiont_sim_fast::description::Description;
use symbiont_sim_fast::fast::{Switches, TableBuilder};
use symbiont_sim_fast::machine::{Errors, SimMachine, SimOptions};
use symbiont_sim_fast::program::{Alternating, Shape, SimProgram};
use symbiont_synth::Ratio;
use symbiont_topology::{CoreKind, CpuSet};

use super::plan::{CORES, ratios};
use super::{
    CONTENDERS, CalibratedMachine, Pair, Part, PhasesRecord, RunKind, Runs, SYSTEMS,
    SimulatedPhasesRun, SimulatedPhasesSize, plan, stages,
};
use crate::Library;
use crate::turns::{Story, Turns};
use symbiont_campaign::FinishedRun;
use symbiont_report::theory::{JointState, Scheduler, speedups};

fn calculation() -> Profile {
    Library::default().load("synthetic-integer").unwrap()
}

fn small() -> SimulatedPhasesSize {
    SimulatedPhasesSize {
        cores: vec![4],
        cores_rounds: 4,
        cores_time: Duration::from_millis(500),
        matrix_ratios: ratios(&["1:1"]),
        matrix_rounds: 4,
        matrix_time: Duration::from_secs(4),
    }
}

#[test]
fn equal_seeds_give_equal_records() {
    let profile = calculation();
    let stages = stages(&profile).unwrap();
    let mut run = plan(&small(), 1).into_iter().find(|run| run.part == Part::Matrix).unwrap();
    let first = stages[0].carry_out(&run).unwrap();
    assert_eq!(first, stages[0].carry_out(&run).unwrap());
    run.seed += 1;
    assert_ne!(first.performance, stages[0].carry_out(&run).unwrap().performance);
}

#[test]
fn contenders_meet_the_same_runs() {
    let runs = plan(&SimulatedPhasesSize::full(), 7);
    let ids: BTreeSet<String> =
        runs.iter().map(|run| format!("{:?} {} {run}", run.part, run.round)).collect();
    assert_eq!(ids.len(), runs.len());
    // By machine and OS: 7 points × 20, and 5 rounds of 9 alone and 45 pairs.
    assert_eq!(runs.len(), 2 * 2 * (7 * 20 * 2 + 5 * (9 + 3 * 45)));
    for stay in runs.iter().filter(|run| run.contender() == Some("stay")) {
        let same =
            |run: &&SimulatedPhasesRun| run.seed == stay.seed && run.contender() == Some("phases");
        let phases = runs.iter().find(same).unwrap();
        assert_eq!((phases.ratios(), phases.round), (stay.ratios(), stay.round));
    }
}

#[test]
fn the_sizes_hold_all_their_ratios() {
    assert_eq!(SimulatedPhasesSize::full().matrix_ratios.len(), 9);
    assert_eq!(SimulatedPhasesSize::quick().matrix_ratios.len(), 5);
}

#[test]
fn serial_phases_first_gain_on_eight_simulated_cores() {
    let profile = calculation();
    let stages = stages(&profile).unwrap();
    let finish = |run: SimulatedPhasesRun| {
        let record: PhasesRecord = stages[run.machine].carry_out(&run).unwrap();
        FinishedRun { run, record }
    };
    let finished: Vec<_> = plan(&small(), 1).into_iter().map(finish).collect();
    let factors: Vec<f64> = stages.iter().map(CalibratedMachine::factor).collect();
    assert!((factors[0] - 1.0).abs() < 0.01 && (factors[1] - 2.0).abs() < 0.1, "{factors:?}");
    let runs = Runs { finished: &finished, factors: &factors, seed: 1 };
    let [os, own, _] = CONTENDERS;
    for machine in 0..2 {
        // Table 3: the serial program has a core of its own, the fastest.
        let speedup =
            |contender| runs.serial_speedup(machine, 4, (SYSTEMS[1], contender)).unwrap().value;
        let said = speedups(Scheduler::Proposed, runs.model(machine, 4).unwrap(), JointState::SP);
        assert!((speedup(own) / said.avg - 1.0).abs() < 0.03, "{} {said:?}", speedup(own));
        assert!(speedup(os) < speedup(own) + 0.01, "{}", speedup(os));
        let pairs = runs.pairs(machine, SYSTEMS[1], &small().matrix_ratios).unwrap();
        let mean = |of: fn(&Pair, &str, &[usize]) -> f64, contender| {
            runs.over(&pairs, |pair, drawn| of(pair, contender, drawn)).unwrap().value
        };
        assert!(mean(Pair::throughput, own) > mean(Pair::throughput, os));
        assert!(mean(Pair::idle, own) < mean(Pair::idle, os));
        assert!((0.8..=1.0).contains(&mean(Pair::fairness, own)));
        assert!(mean(Pair::fairness_of_runs, own) <= mean(Pair::fairness, own) + 1e-9);
        assert!(mean(Pair::jitter, own).is_finite());
    }
}

/// Negative control.
#[test]
fn without_serial_phases_there_is_no_gain() {
    let profile = calculation();
    let stages = stages(&profile).unwrap();
    let throughput = |policy: &str| -> f64 {
        let run = SimulatedPhasesRun {
            part: Part::Matrix,
            machine: 0,
            cores: CORES,
            round: 0,
            time: Duration::from_secs(2),
            phase: Duration::from_millis(200),
            seed: 3,
            what: RunKind::Together {
                ratios: [Ratio::PARALLEL; 2],
                os: SYSTEMS[1],
                contender: policy.to_owned(),
            },
        };
        stages[0].carry_out(&run).unwrap().performance.iter().sum()
    };
    let gain = throughput("phases") / throughput("stay") - 1.0;
    assert!(gain.abs() < 0.01, "{gain}");
}

/// What becomes of programs on two cores over some seconds, with turns of a timeout.
fn turns(programs: &[Ratio], seconds: u64, timeout: Duration) -> Turns {
    let profile = calculation();
    let builder = TableBuilder::new(Description::named("morad-8-symmetric").unwrap());
    // Phases that do not end.
    let shape = |ratio: Ratio| {
        let serial = if ratio == Ratio::SERIAL { f64::INFINITY } else { 0.0 };
        Shape::Alternating(Alternating { threads: 2, parallel: (1e18, 1e18), serial })
    };
    let all: Vec<u32> =
        (0..).zip(programs).filter(|(_, r)| **r == Ratio::PARALLEL).map(|(n, _)| n).collect();
    let program = |ratio: &Ratio| SimProgram {
        name: ratio.to_string(),
        profile: &profile,
        shape: shape(*ratio),
        target: None,
    };
    let options = SimOptions {
        allowed: Some("0-1".parse().unwrap()),
        errors: Errors::NONE,
        ..SimOptions::default()
    };
    let programs = programs.iter().map(program).collect();
    let fast = builder.fast(Switches::default());
    let machine = SimMachine::new(builder.description(), fast, programs, &[], options).unwrap();
    let settings = Settings::default().with(&Phases::SENIORITY, &timeout).unwrap();
    let entry = symbiont_policy::find("phases").unwrap();
    let planner = Planner::new(Bounds::none());
    let controller = Controller::new(machine, (entry.make)(&settings), planner);
    let mut controller = controller.holding(Holding::Always);
    let mut story = Story::default();
    let end = controller.machine().now().0 + seconds * 1_000_000_000;
    while controller.machine().now().0 < end {
        let step = controller.step().unwrap();
        story.add(&step.sample, &step.placement);
        controller.machine_mut().wait(entry.quantum).unwrap();
    }
    story.turns(&all)
}

#[test]
fn no_program_starves_on_a_simulated_machine() {
    let second = Duration::from_secs(1);
    let quantum = 0.02;
    // Ten minutes.
    let judged = turns(&[Ratio::PARALLEL; 3], 600, second);
    assert!(judged.longest_wait <= 2.0 * (1.0 + 2.0 * quantum), "{judged:?}");
    assert!(judged.turns.len() > 550, "{}", judged.turns.len());
    assert!(judged.turns.iter().all(|turn| *turn <= 1.0 + 2.0 * quantum), "{judged:?}");
    // In any five seconds each has at least one turn.
    assert!(judged.least.unwrap() > 1.5, "{:?}", judged.least);
    assert!(judged.held_share.unwrap() > 0.8, "{judged:?}");

    let judged = turns(&[Ratio::PARALLEL, Ratio::PARALLEL, Ratio::SERIAL], 20, second);
    assert!(judged.least.unwrap() > 1.0, "the serial one stops no other program: {judged:?}");
    assert!(judged.cpus > 1.98, "{judged:?}");
    // Without the timeout the second would wait for ever.
    let judged = turns(&[Ratio::PARALLEL; 2], 20, 3600 * second);
    assert!(judged.longest_wait > 19.0, "{judged:?}");
    // Weights of nice -10 and 0 (sched_prio_to_weight in the kernel).
    let share = 9548.0 / (9548.0 + 1024.0);
    assert!((judged.held_share.unwrap() - share).abs() < 0.01, "{judged:?}");
}

/// One fast core with two hardware threads and two slow ones: two serial programs, in turns on the fast
/// core, and a parallel one.
#[test]
fn serial_threads_take_turns_on_the_fast_core_of_a_hybrid_machine() {
    let profile = calculation();
    let builder = TableBuilder::new(Description::named("alder-lake").unwrap());
    let topology = &builder.description().topology;
    let [fast, slow] = [CoreKind::Performance, CoreKind::Efficiency].map(|kind| {
        let cores = topology.cores().iter().filter(|core| core.kind == kind);
        cores.map(|core| core.cpus.clone()).collect::<Vec<CpuSet>>()
    });
    let allowed = fast[0].union(&slow[0]).union(&slow[1]);
    let program = |serial: f64| SimProgram {
        name: "calculation".to_owned(),
        profile: &profile,
        shape: Shape::Alternating(Alternating { threads: 4, parallel: (1e18, 1e18), serial }),
        target: None,
    };
    let programs = [f64::INFINITY, f64::INFINITY, 0.0].map(program).into();
    let options =
        SimOptions { allowed: Some(allowed), errors: Errors::NONE, ..SimOptions::default() };
    let physics = builder.fast(Switches::default());
    let machine = SimMachine::new(builder.description(), physics, programs, &[], options).unwrap();
    let entry = symbiont_policy::find("phases-online").unwrap();
    let timeout = Duration::from_millis(500);
    let settings = Settings::default().with(&Phases::SENIORITY, &timeout).unwrap();
    let policy = (entry.make)(&settings);
    let controller = Controller::new(machine, policy, Planner::new(Bounds::none()));
    let mut controller = controller.holding(Holding::Always);
    let mut quanta = [0; 3];
    for _ in 0..500 {
        let step = controller.step().unwrap();
        for (id, assignment) in &step.placement {
            let thread = step.sample.threads.iter().find(|thread| thread.id == *id).unwrap();
            if let Target::Cpus(cpus) = &assignment.target {
                let at = thread.program.0 as usize;
                quanta[at] += u32::from(cpus.is_subset(&fast[0]));
            }
        }
        controller.machine_mut().wait(entry.quantum).unwrap();
    }
    let [one, other, parallel] = quanta;
    assert!(one + other > 450 && one.min(other) > 200, "{quanta:?}");
    assert_eq!(parallel, 0, "the fast core is kept for serial threads");
    // On each core type it was learned how fast they are there.
    let findings = controller.policy().findings();
    let speed = |program: u32, capacity: u32| {
        let name = format!("serial speed of program {program} on cores of capacity {capacity}");
        findings.iter().find(|finding| finding.name == name).map(|finding| finding.value)
    };
    let capacity = |cpus: &CpuSet| topology.core_of(cpus.first().unwrap()).unwrap().capacity;
    for program in [0, 1] {
        let [fast, slow] = [&fast[0], &slow[0]].map(|cpus| speed(program, capacity(cpus)));
        assert!(fast.unwrap() > 1.1 * slow.unwrap(), "{program}: {fast:?} {slow:?}");
    }
}
