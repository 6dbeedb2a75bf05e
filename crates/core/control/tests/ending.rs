//! How the loop ends.

#![expect(clippy::panic, clippy::unwrap_used, reason = "tests may")]

use std::ops::ControlFlow;
use std::time::Duration;

use symbiont_control::{ControlError, Controller};
use symbiont_machine::test_support::FakeMachine;
use symbiont_machine::{Machine, Move, Outcome, Sample, Support};
use symbiont_planner::{Bounds, Planner};
use symbiont_policy::Stay;
use symbiont_topology::Topology;

const QUANTUM: Duration = Duration::from_millis(20);

/// Ends with one of its samples, fails at others, and counts the calls.
struct Ending {
    inner: FakeMachine,
    /// Samples until the end.
    left: u32,
    waits: u32,
    /// Does the sample fail after which so many are left? Does the wait?
    fails: fn(u32) -> (bool, bool),
}

impl Ending {
    fn after(samples: u32, fails: fn(u32) -> (bool, bool)) -> Self {
        let inner = FakeMachine::new(Topology::synthetic("core:2").unwrap());
        Self { inner, left: samples, waits: 0, fails }
    }

    fn fail(&self, fails: bool) -> Result<(), Failure> {
        if fails { Err(Failure(self.left)) } else { Ok(()) }
    }
}

/// With so many samples left.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("failed with {0} left")]
struct Failure(u32);

impl Machine for Ending {
    type Error = Failure;

    fn topology(&self) -> &Topology {
        self.inner.topology()
    }

    fn support(&self) -> &Support {
        self.inner.support()
    }

    fn sample(&mut self) -> Result<Sample, Failure> {
        self.left -= 1;
        self.fail((self.fails)(self.left).0)?;
        Ok(self.inner.sample().unwrap())
    }

    fn apply(&mut self, moves: &[Move]) -> Result<Vec<Outcome>, Failure> {
        Ok(self.inner.apply(moves).unwrap())
    }

    fn wait(&mut self, quantum: Duration) -> Result<(), Failure> {
        self.waits += 1;
        self.inner.wait(quantum).unwrap();
        self.fail((self.fails)(self.left).1)
    }

    fn ended(&self) -> bool {
        self.left == 0
    }
}

/// Runs to the end; gives the steps made.
fn run(machine: Ending, tolerated: u32) -> (Controller<Ending>, usize, Result<(), u32>) {
    let c = Controller::new(machine, Box::new(Stay), Planner::new(Bounds::none()));
    let mut c = c.tolerating(tolerated);
    let mut steps = 0;
    let ended = c.run(QUANTUM, |_| {
        steps += 1;
        ControlFlow::Continue(())
    });
    let ended = ended.map_err(|error| match error {
        ControlError::Machine(Failure(left)) => left,
        other => panic!("{other}"),
    });
    (c, steps, ended)
}

#[test]
fn the_loop_does_not_wait_after_the_step_that_ended_the_machine() {
    let (c, steps, ended) = run(Ending::after(3, |_| (false, false)), 0);
    assert_eq!((steps, c.machine().waits, ended), (3, 2, Ok(())));
}

#[test]
fn a_failure_of_the_machine_is_passed_over_and_many_in_a_row_end_the_loop() {
    // Two samples in a row, then a wait.
    let fails = |left| ([7, 6].contains(&left), left == 2);
    let (c, steps, ended) = run(Ending::after(10, fails), 2);
    assert_eq!((steps, ended), (8, Ok(())));
    assert_eq!(c.tally().failures, 3);
    assert_eq!(c.tally().last_failure.as_deref(), Some("failed with 2 left"));

    let (_, steps, ended) = run(Ending::after(10, fails), 1);
    assert_eq!((steps, ended), (2, Err(6)));
    let (_, steps, ended) = run(Ending::after(10, fails), 0);
    assert_eq!((steps, ended), (2, Err(7)), "none is tolerated unless that is asked for");
    // A quantum whose sample and wait fail is one that failed, not one that went well.
    let (_, steps, ended) = run(Ending::after(10, |left| (left < 8, left < 8)), 5);
    assert_eq!((steps, ended), (2, Err(5)));
}
