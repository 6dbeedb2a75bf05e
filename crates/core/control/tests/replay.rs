//! The loop over a recording.

#![expect(clippy::unwrap_used, reason = "tests may")]

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use symbiont_control::{ControlError, Controller, Step};
use symbiont_counters::Measurements;
use symbiont_counters::catalogue::Catalogue;
use symbiont_machine::test_support::FakeMachine;
use symbiont_machine::{GroupReading, Machine, Placement, Program, ProgramId, RunState, Timestamp};
use symbiont_planner::{Bounds, Planner};
use symbiont_policy::{Settings, find};
use symbiont_topology::Topology;
use symbiont_trace::{Header, Reader, Recorder, Replay, TraceError};

const QUANTUM: Duration = Duration::from_millis(20);

fn controller<M: Machine>(machine: M, policy: &str) -> Controller<M> {
    let made = (find(policy).unwrap().make)(&Settings::default());
    Controller::new(machine, made, Planner::new(Bounds::none()))
}

/// Records ten quanta in which programs go through their phases; gives the
/// recording and what was wanted in each.
fn record(policy: &str) -> (Vec<u8>, Vec<Placement>) {
    let mut machine = FakeMachine::new(Topology::synthetic("core:4 smt:2").unwrap());
    let ids: Vec<_> = (0..6).map(|n| machine.start(n / 3, n)).collect();
    let header = Header {
        topology: machine.topology().clone(),
        support: machine.support().clone(),
        policy: policy.to_owned(),
        quantum: QUANTUM,
        programs: vec![Program::new(ProgramId(0), "make")],
        processor: None,
    };
    let mut recorder = Recorder::new(Vec::new(), "test", &header).unwrap();
    let mut c = controller(machine, policy);
    let mut wanted = Vec::new();
    for quantum in 0..10 {
        for (n, id) in ids.iter().enumerate() {
            let asleep = n % 3 > 0 && (quantum / 3 + n / 3) % 2 == 0;
            let thread = c.machine_mut().threads.get_mut(id).unwrap();
            thread.state = if asleep { RunState::Sleeping } else { RunState::Runnable };
        }
        let step = c.step().unwrap();
        recorder.record(&step.sample, &step.placement, step.moves()).unwrap();
        wanted.push(step.placement.clone());
        c.machine_mut().wait(QUANTUM).unwrap();
    }
    (recorder.into_inner(), wanted)
}

fn replay(recording: &[u8], policy: &str) -> (Vec<Step>, Result<(), ControlError<TraceError>>) {
    let mut steps = Vec::new();
    let mut c = controller(Replay::new(Reader::new(recording, "test").unwrap()), policy);
    let result = c.run(QUANTUM, |step| {
        steps.push(step.clone());
        ControlFlow::Continue(())
    });
    assert!(c.applied().is_empty());
    (steps, result)
}

#[test]
fn a_replay_repeats_the_decisions_and_ends() {
    for policy in ["stay", "random", "phases"] {
        let (recording, wanted) = record(policy);
        let (steps, result) = replay(&recording, policy);
        result.unwrap();
        assert_eq!(steps.into_iter().map(|s| s.placement).collect::<Vec<_>>(), wanted);
    }
}

/// Records ten quanta of four threads that are counted; the last of them sleeps
/// through every other quantum. Gives what was measured and wanted in each.
fn record_counted() -> (Vec<u8>, Vec<(Measurements, Placement)>) {
    let text = include_str!("../../../host/linux/tests/counting/stand-in.toml");
    let catalogue = Catalogue::parse("stand-in", text).unwrap();
    let mut machine = FakeMachine::new(Topology::synthetic("core:2 smt:2").unwrap());
    let needs = find("l1-bandwidth").unwrap().requirements().required;
    machine.counting = Some(Arc::new(catalogue.counting(&needs)));
    let ids: Vec<_> = (0..4).map(|n| machine.start(0, n)).collect();
    let header = Header {
        topology: machine.topology().clone(),
        support: machine.support().clone(),
        policy: "l1-bandwidth".to_owned(),
        quantum: QUANTUM,
        programs: vec![],
        processor: None,
    };
    let mut recorder = Recorder::new(Vec::new(), "test", &header).unwrap();
    let mut c = controller(machine, "l1-bandwidth");
    let mut seen = Vec::new();
    for quantum in 0u32..10 {
        for (n, id) in (0u32..).zip(&ids) {
            let thread = c.machine_mut().threads.get_mut(id).unwrap();
            let quanta = if n == 3 { quantum / 2 } else { quantum };
            thread.run_time = QUANTUM * quanta;
            let clock = u64::try_from(thread.run_time.as_nanos()).unwrap();
            let faults = u64::from(n * 1000 * quanta + n * quanta * quanta);
            let reading = GroupReading {
                opened: Timestamp(0),
                enabled: thread.run_time,
                running: thread.run_time,
                counts: vec![clock, faults],
            };
            let new = quantum == 0;
            thread.counts = vec![if new { Err("just born".into()) } else { Ok(reading) }];
        }
        let step = c.step().unwrap();
        recorder.record(&step.sample, &step.placement, step.moves()).unwrap();
        seen.push((step.measurements.clone(), step.placement.clone()));
        c.machine_mut().wait(QUANTUM).unwrap();
    }
    (recorder.into_inner(), seen)
}

#[test]
fn a_replay_measures_what_was_measured() {
    let (recording, seen) = record_counted();
    let ages: Vec<_> = seen
        .iter()
        .map(|(known, _)| {
            let sleeper = known.values().last().unwrap();
            sleeper.get("l1d_bandwidth").ok().map(|measured| measured.age)
        })
        .collect();
    assert_eq!(ages[1..5], [None, Some(0), Some(1), Some(0)]);
    let first = seen[1].0.values().nth(1).unwrap().value("l1d_bandwidth");
    assert_eq!(first, Some(1001.0 / 20e6));
    let (steps, result) = replay(&recording, "l1-bandwidth");
    result.unwrap();
    assert_eq!(steps.into_iter().map(|s| (s.measurements, s.placement)).collect::<Vec<_>>(), seen);
}

#[test]
fn another_policy_decides_over_the_same_recording() {
    let (recording, _) = record("stay");
    let (steps, result) = replay(&recording, "phases");
    result.unwrap();
    assert!(steps.iter().any(|s| !s.plan.moves.is_empty()));
}

#[test]
fn a_damaged_recording_ends_the_loop_with_its_line() {
    let (recording, _) = record("stay");
    let text = String::from_utf8(recording).unwrap();
    let (good, _) = text.split_at(text.match_indices('\n').nth(4).unwrap().0 + 1);
    let (steps, result) = replay(format!("{good}oops\n").as_bytes(), "stay");
    assert_eq!(steps.len(), 4);
    let error = result.unwrap_err().to_string();
    assert!(error.starts_with("test, line 6: damaged: "), "{error}");
}
