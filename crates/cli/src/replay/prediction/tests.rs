use std::sync::Arc;
use std::time::Duration;

use symbiont_counters::catalogue::{Unit, Value};
use symbiont_counters::{Characterization, Measured};
use symbiont_machine::{Assignment, Lifecycle, Program, RunState, Sample, ThreadSample};
use symbiont_planner::Plan;
use symbiont_topology::PuId;

use super::*;

fn id(number: u32) -> ThreadId {
    ThreadId { process: number, thread: number, born: 0, generation: 0 }
}

/// A quantum in which threads ran on CPUs with some CPI; thread and program have the same number.
fn step(ran: &[(u32, u32, f64)], placement: Placement) -> Step {
    let thread = |&(number, cpu, _): &(u32, u32, f64)| ThreadSample {
        id: id(number),
        program: ProgramId(number),
        state: RunState::Runnable,
        run_time: Duration::ZERO,
        wait_time: Duration::ZERO,
        switches: 0,
        cpu: Some(PuId(cpu)),
        allowed: Arc::new("0-3".parse().unwrap()),
        lifecycle: Lifecycle::Settled,
        kept: false,
        cookie: None,
        counts: Vec::new(),
    };
    let program = |&(n, ..): &(u32, u32, f64)| Program::new(ProgramId(n), format!("p{n}"));
    let did = Characterization {
        over: Duration::from_millis(100),
        ready: 1.0,
        running: 1.0,
        switches: 1,
        migrated: None,
    };
    let measured = |cpi: f64| Measured::of([("cpi", Value { value: cpi, unit: Unit::Fraction })]);
    Step {
        sample: Sample {
            threads: ran.iter().map(thread).collect(),
            programs: ran.iter().map(program).collect(),
            ..Sample::default()
        },
        characterizations: ran.iter().map(|(n, ..)| (id(*n), did)).collect(),
        measurements: ran.iter().map(|(n, _, cpi)| (id(*n), measured(*cpi))).collect(),
        placement,
        plan: Plan::default(),
        outcomes: Vec::new(),
    }
}

/// Threads on CPUs with predicted slowdowns.
fn placed(on: &[(u32, u32, f64)]) -> Placement {
    let assign = |&(n, cpu, slowdown): &(u32, u32, f64)| {
        let on = Assignment::on(PuId(cpu).into(), "why");
        (id(n), Assignment { predicted_slowdown: Some(slowdown), ..on })
    };
    on.iter().map(assign).collect()
}

fn report(steps: impl IntoIterator<Item = Step>) -> Vec<Prediction> {
    let mut predictions = Predictions::new(&Topology::synthetic("core:2 smt:2").unwrap());
    steps.into_iter().for_each(|step| predictions.add(&step));
    predictions.report()
}

#[test]
fn a_prediction_is_compared_where_its_co_runners_ran() {
    let together = placed(&[(1, 0, 1.4), (2, 1, 1.2)]);
    let found = report([
        step(&[(1, 0, 1.0), (2, 2, 2.0)], together.clone()),
        step(&[(1, 0, 1.5), (2, 1, 2.4)], together.clone()),
        // Other CPUs of one core do too.
        step(&[(1, 3, 1.5), (2, 2, 2.4)], Placement::new()),
    ]);
    let compared: Vec<_> =
        found.iter().map(|p| (p.program.as_str(), p.compared, p.alone)).collect();
    assert_eq!(compared, [("p1", 2, 1), ("p2", 2, 1)]);
    assert!((found[0].predicted - 1.4).abs() < 1e-9);
    assert!((found[0].measured.unwrap() - 1.5).abs() < 1e-9);
    assert!((found[1].measured.unwrap() - 1.2).abs() < 1e-9);
}

#[test]
fn other_co_runners_than_predicted_are_no_comparison() {
    let together = placed(&[(1, 0, 1.4), (2, 1, 1.2)]);
    let others = step(&[(1, 0, 1.5), (2, 2, 2.4), (3, 1, 1.0)], Placement::new());
    let more = step(&[(1, 0, 1.5), (2, 1, 2.4), (3, 1, 1.0)], Placement::new());
    let found = report([step(&[], together.clone()), others, step(&[], together), more]);
    assert_eq!(found, []);
}

#[test]
fn without_a_quantum_alone_there_is_no_measured_slowdown() {
    let together = placed(&[(1, 0, 1.4), (2, 1, 1.2)]);
    let found = report([step(&[], together), step(&[(1, 0, 1.5), (2, 1, 2.4)], Placement::new())]);
    assert_eq!((found.len(), found[0].compared), (2, 1));
    assert_eq!((found[0].cpi, found[0].cpi_alone, found[0].measured), (1.5, None, None));
}
