use symbiont_counters::{History, characterize};

use super::*;

/// Slowdown of victim v next to c: 1 + a tenth for each of (v + 1)(c + 2).
fn matrix() -> Matrix {
    let row = |victim: usize| {
        (0..3).map(|other| 1.0 + 0.1 * ((victim + 1) * (other + 2)) as f64).collect()
    };
    Matrix {
        programs: ["a", "b", "c"].map(str::to_owned).to_vec(),
        slowdowns: (0..3).map(row).collect(),
    }
}

const QUANTUM: Duration = Duration::from_millis(100);

fn quiet() -> Events {
    Events { noise: 0.0, move_costs: Duration::ZERO, ..Events::default() }
}

fn machine(programs: &[usize], events: Events, seed: u64) -> MeasuredMachine {
    MeasuredMachine::new(matrix(), programs, events, seed).unwrap()
}

fn on(machine: &MeasuredMachine, at: usize, cpu: u32) -> Move {
    let cpus = Target::Cpus(CpuSet::from(PuId(cpu)));
    Move { thread: machine.threads[at].id, change: Change::Affinity(cpus) }
}

#[test]
fn pairs_run_as_measured() {
    let mut machine = machine(&[0, 1, 2], quiet(), 1);
    machine.measure(&Signals::from([Signal::Ipc, Signal::RunStates]));
    // Threads 0 and 1 share a core, 2 is alone.
    let moves = [on(&machine, 0, 0), on(&machine, 1, 1), on(&machine, 2, 2)];
    assert_eq!(machine.apply(&moves).unwrap(), vec![Outcome::Done; 3]);
    let mut history = History::default();
    let before = machine.sample().unwrap();
    history.take(&before).unwrap();
    machine.wait(QUANTUM).unwrap();
    let after = machine.sample().unwrap();
    let measured = history.take(&after).unwrap();
    let speeds = [1.0 / 1.3, 1.0 / 1.4, 1.0];
    assert!((machine.throughput() - speeds.iter().sum::<f64>()).abs() < 1e-9);
    for (thread, (speed, program)) in after.threads.iter().zip(speeds.iter().zip(0..)) {
        let ipc = measured[&thread.id].value("ipc").unwrap();
        assert!((ipc / machine.alone[program] - speed).abs() < 1e-3, "{ipc} {speed}");
        assert_eq!(characterize(&before, &after)[&thread.id].running, 1.0);
    }
}

#[test]
fn threads_that_share_a_hardware_thread_take_turns() {
    let mut machine = machine(&[0, 1], quiet(), 1);
    let moves = [on(&machine, 0, 0), on(&machine, 1, 0)];
    assert_eq!(machine.apply(&moves).unwrap(), vec![Outcome::Done; 2]);
    machine.wait(QUANTUM).unwrap();
    assert!((machine.throughput() - 1.0).abs() < 1e-9);
    let released = machine
        .threads
        .iter()
        .map(|thread| Move { thread: thread.id, change: Change::Affinity(Target::Os) });
    let _ = machine.apply(&released.collect::<Vec<_>>()).unwrap();
    machine.wait(QUANTUM).unwrap();
    assert!((machine.throughput() - 1.0 / 1.3 - 1.0 / 1.4).abs() < 1e-9, "the OS uses what idles");
}

#[test]
fn what_was_set_up_happens() {
    let costs = Events { move_costs: Duration::from_millis(10), ..quiet() };
    let mut moved = machine(&[0, 0, 1, 1], costs, 1);
    for (at, cpu) in [(0, 0), (1, 1), (2, 2), (3, 3)] {
        let asked = on(&moved, at, cpu);
        let _ = moved.apply(&[asked]).unwrap();
    }
    moved.wait(QUANTUM).unwrap();
    moved.wait(QUANTUM).unwrap();
    let before = moved.throughput();
    let swap = [on(&moved, 1, 2), on(&moved, 2, 1)];
    let _ = moved.apply(&swap).unwrap();
    moved.wait(QUANTUM).unwrap();
    let after = moved.throughput();
    moved.wait(QUANTUM).unwrap();
    assert!((after / moved.throughput() - 0.9).abs() < 1e-9);
    assert_ne!(before, moved.throughput());

    let second = Some(Duration::from_secs(1));
    let events = Events { phases: second, arrivals: second, drift: 0.1, ..quiet() };
    let mut busy = machine(&[0, 1, 2, 0], events, 1);
    let ids = |machine: &MeasuredMachine| machine.threads.iter().map(|t| t.id).collect::<Vec<_>>();
    let (begun, does) = (ids(&busy), busy.does().collect::<Vec<_>>());
    (0..9).for_each(|_| busy.wait(QUANTUM).unwrap());
    assert_eq!((ids(&busy), busy.does().collect::<Vec<_>>()), (begun.clone(), does));
    (0..200).for_each(|_| busy.wait(QUANTUM).unwrap());
    let new = ids(&busy).iter().filter(|id| !begun.contains(id)).count();
    assert!(new > 1 && busy.born > 20, "{new}");
    assert!(busy.threads.iter().any(|thread| thread.does != thread.program));
    assert!(busy.threads.iter().all(|thread| thread.drift != 0.0));
}

#[test]
fn equal_seeds_give_equal_samples() {
    let events = Events {
        phases: Some(QUANTUM * 3),
        arrivals: Some(QUANTUM * 5),
        drift: 0.1,
        ..Events::default()
    };
    let play = |seed| {
        let mut machine = machine(&[0, 1, 2, 1], events, seed);
        machine.measure(&Signals::from([Signal::Ipc]));
        (0..40).for_each(|_| machine.wait(QUANTUM).unwrap());
        serde_json::to_string(&machine.sample().unwrap()).unwrap()
    };
    assert_eq!(play(1), play(1));
    assert_ne!(play(1), play(2));
}
