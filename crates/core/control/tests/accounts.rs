//! What the controller counts and keeps, and which changes it accepts between steps.

#![expect(clippy::unwrap_used, reason = "tests may")]

use std::time::Duration;

use symbiont_control::{ControlError, Controller, Deciding, Holding, Tally};
use symbiont_machine::test_support::FakeMachine;
use symbiont_machine::{Ability, Machine, Outcome, Signal, Signals};
use symbiont_planner::{Bounds, Planner};
use symbiont_policy::{NeverTwice, Phases, Stay};
use symbiont_topology::Topology;

fn machine() -> FakeMachine {
    let mut machine = FakeMachine::new(Topology::synthetic("core:2 smt:2").unwrap());
    for (program, number) in [(1, 10), (1, 11), (2, 20)] {
        machine.start(program, number);
    }
    machine
}

fn planner() -> Planner {
    Planner::new(Bounds::none())
}

#[test]
fn moves_are_counted_by_what_became_of_them() {
    let tally = Tally {
        done: 1,
        gone: 2,
        externally_changed: 4,
        refused: 8,
        not_enforced: 16,
        ..Tally::default()
    };
    assert_eq!(tally.moves(), 31);
}

#[test]
fn the_last_step_is_kept_with_its_moves() {
    let mut controller = Controller::new(machine(), Box::new(NeverTwice), planner());
    assert!(controller.last().is_none());
    let counted = controller.step().unwrap().moves().count();
    assert_eq!(counted, 3);
    let last = controller.last().unwrap();
    assert!(last.moves().all(|(_, outcome)| *outcome == Outcome::Done));
}

#[test]
fn nudges_are_counted_among_the_moves_done() {
    let counts = |holding: Holding| {
        let policy = Box::new(NeverTwice);
        let mut controller = Controller::new(machine(), policy, planner()).holding(holding);
        controller.step().unwrap();
        (controller.tally().done, controller.tally().nudges)
    };
    assert_eq!(counts(Holding::AsDecided), (3, 3));
    assert_eq!(counts(Holding::Always), (3, 0));
}

#[test]
fn time_passes_while_it_is_decided() {
    let takes = Duration::from_millis(5);
    let deciding = Deciding { takes, ..Deciding::default() };
    let begin = machine().now;
    let mut controller = Controller::new(machine(), Box::new(Stay), planner()).deciding(deciding);
    controller.step().unwrap();
    assert_eq!(controller.machine().now.since(begin), takes);
    let mut controller = Controller::new(machine(), Box::new(Stay), planner());
    controller.step().unwrap();
    assert_eq!(controller.machine().now.since(begin), Duration::ZERO);
}

#[test]
fn another_policy_decides_from_the_next_step_on() {
    let mut controller = Controller::new(machine(), Box::new(Stay), planner());
    controller.step().unwrap();
    assert!(controller.applied().is_empty());
    controller.replace(Box::new(NeverTwice), planner()).unwrap();
    controller.step().unwrap();
    assert_eq!((controller.policy().name(), controller.applied().len()), ("never-twice", 3));
    controller.replace(Box::new(Stay), planner()).unwrap();
    controller.step().unwrap();
    assert!(controller.applied().is_empty(), "the new policy leaves all to the OS");
}

#[test]
fn a_policy_that_cannot_run_here_replaces_nothing() {
    let mut machine = machine();
    let why = "no schedstat".to_owned();
    machine.support.signals.insert(Signal::RunStates, Ability::Absent(why));
    let mut controller = Controller::new(machine, Box::new(NeverTwice), planner());
    controller.step().unwrap();
    let refused = controller.replace(Box::new(Phases::new(None)), planner()).unwrap_err();
    assert!(matches!(refused, ControlError::MissingSignal { policy: "phases", .. }));
    assert_eq!(controller.policy().name(), "never-twice");
    assert_eq!(controller.machine().measured, Some(Signals::new()), "as before");
    controller.step().unwrap();
}

#[test]
fn a_thread_that_is_moved_away_again_and_again_is_insisted_on_until_the_end() {
    let mut machine = FakeMachine::new(Topology::synthetic("core:2").unwrap());
    let serial = machine.start(1, 10);
    for number in [20, 21] {
        machine.start(2, number);
    }
    let mut controller = Controller::new(machine, Box::new(Phases::new(None)), planner());
    let mut most = 0;
    for _ in 0..40 {
        controller.step().unwrap();
        controller.machine_mut().wait(Duration::from_millis(20)).unwrap();
        // The OS moves it.
        let target = controller.applied().get(&serial).and_then(|a| a.target.cpus()).cloned();
        let away = controller.machine().topology().cpus().difference(&target.unwrap_or_default());
        controller.machine_mut().threads.get_mut(&serial).unwrap().cpu = away.first();
        let insisted = &controller.machine().insisted;
        assert!(insisted.iter().all(|(thread, cpus)| *thread == serial && cpus.len() == 1));
        most = most.max(insisted.len());
    }
    assert_eq!(most, 1);
    let done = controller.tally().done;
    controller.machine_mut().insist(vec![(serial, "0".parse().unwrap())]);
    controller.release().unwrap();
    assert!(controller.machine().insisted.is_empty(), "nothing is nudged after the release");
    assert!(controller.tally().done > done);
}

#[test]
fn a_machine_that_keeps_threads_is_given_the_decision_and_nudges_none() {
    let mut machine = machine();
    machine.support.scheduler = Ability::Full;
    machine.threads.values_mut().for_each(|thread| thread.kept = true);
    let mut controller = Controller::new(machine, Box::new(NeverTwice), planner());
    let placement = controller.step().unwrap().placement.clone();
    assert_eq!(controller.machine().kept, placement);
    assert!(controller.machine().log.is_empty(), "no move is asked for");
    assert_eq!(controller.applied().len(), placement.len(), "and all are where they belong");
    controller.release().unwrap();
    assert!(controller.machine().kept.is_empty() && controller.applied().is_empty());
}

#[test]
fn threads_that_such_a_machine_does_not_keep_are_nudged() {
    let mut machine = machine();
    machine.support.scheduler = Ability::Full;
    let quota = machine.threads.values_mut().next().unwrap();
    let unkept = quota.id;
    machine.threads.values_mut().for_each(|thread| thread.kept = thread.id != unkept);
    let mut controller = Controller::new(machine, Box::new(NeverTwice), planner());
    controller.step().unwrap();
    let moved = controller.machine().log.iter().map(|(moved, _)| moved.thread);
    assert_eq!(moved.collect::<Vec<_>>(), [unkept]);
}
