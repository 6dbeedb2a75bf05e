//! From counted threads of a simulated node, over HTTP, to the job that is released.

use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use symbiont_control::Controller;
use symbiont_counters::catalogue::Catalogue;
use symbiont_daemon::{JobAccounts, JobOf, MetricsConfig, Published, Publisher};
use symbiont_machine::test_support::FakeMachine;
use symbiont_machine::{GroupReading, Machine, ProgramId, Timestamp};
use symbiont_planner::{Bounds, Planner};
use symbiont_policy::{Classes, Models, Settings, find};
use symbiont_topology::{PuId, Topology};

use super::*;
use crate::{NodeDaemons, NodePoller};

const QUANTUM: Duration = Duration::from_millis(100);

const CATALOGUE: &str = r#"
name = "two-causes"
title = "Cycles of two causes"
source = "synthetic"
caveats = "None: it counts what a test says."

[smt]
threads = 1
correction = "None needed."

[pmu]
type = "software"

[pmu.format]
config = "config:0-63"

[[event]]
name = "base_cycles"
what = "Cycles in which the thread goes on"
config = 1

[[event]]
name = "memory_cycles"
what = "Cycles in which it waits for memory"
config = 2

[[event]]
name = "instructions"
what = "Instructions"
config = 3

[[group]]
name = "stack"
events = ["base_cycles", "memory_cycles", "instructions"]

[formula.cpi]
expr = "(base_cycles + memory_cycles) / instructions"
unit = "cycles/instructions"
source = "synthetic"

[formula.ipc]
expr = "instructions / (base_cycles + memory_cycles)"
unit = "instructions/cycles"
source = "synthetic"

[formula.base]
expr = "base_cycles / instructions"
unit = "cycles/instructions"
source = "synthetic"

[formula.memory]
expr = "memory_cycles / instructions"
unit = "cycles/instructions"
source = "synthetic"

[[sum]]
name = "cpi_stack"
total = "cpi"
parts = ["base", "memory"]
"#;

/// What the daemon of a node answers after three seconds in which jobs each had a core: by job, the share of its
/// cycles in which it waits for memory.
fn answer(jobs: &[(u64, f64)]) -> String {
    let topology = Topology::synthetic(&format!("core:{} smt:2", jobs.len())).unwrap();
    let catalogue = Catalogue::parse("two-causes", CATALOGUE).unwrap();
    let settings =
        Settings { models: Some(Arc::new(Models::from(model()))), ..Settings::default() };
    let policy = Classes::new((find("auto").unwrap().make)(&settings));
    let mut machine = FakeMachine::new(topology);
    let wanted = [symbiont_machine::Signal::CpiStack, symbiont_machine::Signal::Ipc].into();
    machine.counting = Some(Arc::new(catalogue.counting(&wanted)));
    let mut programs = BTreeMap::new();
    let mut threads = Vec::new();
    for (at, &(job, memory)) in (0..).zip(jobs) {
        let thread = machine.start(at, at);
        machine.threads.get_mut(&thread).unwrap().cpu = Some(PuId(2 * at));
        threads.push((thread, memory));
        programs.insert(ProgramId(at), JobOf { job, user: 7 });
    }
    let mut controller = Controller::new(machine, Box::new(policy), Planner::new(Bounds::none()));
    let mut accounts = JobAccounts::default();
    for quantum in 0..30 {
        for (id, memory) in &threads {
            let thread = controller.machine_mut().threads.get_mut(id).unwrap();
            thread.run_time = QUANTUM * quantum;
            let cycles = 1e8 * f64::from(quantum);
            let counts = [cycles * (1.0 - memory), cycles * memory, cycles / 2.0];
            thread.counts = vec![Ok(GroupReading {
                opened: Timestamp(0),
                enabled: thread.run_time,
                running: thread.run_time,
                counts: counts.map(|count| count as u64).to_vec(),
            })];
        }
        controller.step().unwrap();
        let step = controller.last().unwrap();
        let topology = controller.machine().topology();
        accounts.observe(step, topology, controller.policy(), &programs);
        controller.machine_mut().wait(QUANTUM).unwrap();
    }
    let topology = controller.machine().topology();
    let node = accounts.report(Some("A processor"), "auto", topology);
    serde_json::to_string(&node).unwrap()
}

/// Serves an answer from now on, until it is dropped.
fn serve(answer: &str) -> (Publisher, u16) {
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let config = MetricsConfig { jobs: Some(address), ..MetricsConfig::default() };
    let publisher = Publisher::start(&config).unwrap();
    publisher.publish(Published { metrics: String::new(), jobs: answer.to_owned() });
    let begin = Instant::now();
    while TcpStream::connect(address).is_err() {
        assert!(begin.elapsed() < Duration::from_secs(60), "{:?}", publisher.trouble());
        std::thread::sleep(Duration::from_millis(2));
    }
    (publisher, address.port())
}

fn daemons(port: u16) -> NodeDaemons {
    NodeDaemons::new(Some(model()), NodePoller::start(port, Duration::from_millis(20)).unwrap())
}

/// Steps until this is so.
fn step_until<C: Cluster>(releaser: &mut Releaser<C>, is_so: impl Fn(&Releaser<C>) -> bool) {
    let begin = Instant::now();
    while !is_so(releaser) {
        assert!(begin.elapsed() < Duration::from_secs(60), "{:?}", releaser.troubles);
        assert_eq!(releaser.step(10.0).unwrap(), []);
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Job 9 runs on a node; 1 and 2 wait in the queue, whose programs run on another one as 5 and 6.
fn two_that_wait() -> Fake {
    let programs = [(1, "x"), (5, "x"), (2, "y"), (6, "y"), (9, "z")];
    Fake {
        jobs: vec![runs(5, "b"), runs(6, "b"), runs(9, "a"), waits(1, 0.0), waits(2, 0.0)],
        nodes: vec![node("a", 2, 0), node("b", 2, 0)],
        scripts: programs.map(|(job, name)| (job, script(name))).into(),
        ..Fake::default()
    }
}

/// Job 9 waits for memory and runs on a node with one more CPU; 1 and 2 wait in the queue. The programs of both
/// run elsewhere, and wait for memory for so much of their time. Which is released, and why?
fn released(first: f64, second: f64) -> (u64, String) {
    let (_publisher, port) = serve(&answer(&[(5, first), (6, second), (9, 0.75)]));
    let (_folder, store) = store();
    let mut cluster = two_that_wait();
    let mut releaser = releaser(&mut cluster, options(), store.clone(), Observations::default())
        .with_daemons(daemons(port));
    step_until(&mut releaser, |releaser| releaser.metrics.nodes.is_some_and(|of| of.programs == 3));
    assert_eq!(releaser.metrics.nodes.map(|of| of.answering), Some(2));
    assert_eq!(releaser.troubles, Vec::<String>::new());
    drop(releaser);
    let known = store.read().unwrap();
    let stack = known.records()[&key("x")].stack.as_ref().unwrap();
    assert!(
        (stack.components["memory"] - first).abs() < 1e-6 && stack.counted_s < 3.0,
        "{stack:?}"
    );
    // A CPU becomes free, and what was learnt outlives the one that learnt it.
    cluster.nodes[0].idle = 1;
    let mut releaser =
        super::releaser(&mut cluster, options(), store, known).with_daemons(daemons(port));
    let decisions = releaser.step(20.0).unwrap();
    (decisions[0].job, decisions[0].text())
}

#[test]
fn the_partner_that_the_stacks_of_the_nodes_favour_is_released() {
    let (job, text) = released(0.75, 0.25);
    assert_eq!(job, 2, "not the first of the queue: {text}");
    // By the model 1 + 0.8 · 0.25 · 0.75.
    assert!(text.contains("predicted slowdown 1.15 from CPI stacks"), "{text}");
    assert!(text.contains("it suits what runs there"), "{text}");
}

#[test]
fn with_stacks_swapped_the_other_one_is_released() {
    let (job, text) = released(0.25, 0.75);
    assert_eq!(job, 1, "{text}");
    assert!(text.contains("predicted slowdown 1.15 from CPI stacks"), "{text}");
}

/// Job 9 runs on a node with one more CPU; 1 and 2 wait in the queue. The programs of both ran next to that of 9, which
/// lost so much to each by what a node has learned, without a model. Which is released, and why?
fn released_by_cores(to_first: f64, to_second: f64) -> (u64, String) {
    use symbiont_wire::jobs::{CoreType, Job, NextToJob, NodeJobs, VERSION};
    let next = |job, ln| NextToJob { job, ln, together_s: 60.0 };
    let job = |job, next_to| Job { job, user: 7, run_time_s: 90.0, next_to, ..Job::default() };
    let core = "performance".to_owned();
    let node_jobs = NodeJobs {
        version: VERSION,
        processor: Some("A processor".to_owned()),
        policy: "auto".to_owned(),
        core_types: vec![CoreType { core, hardware_threads_per_core: 2 }],
        jobs: vec![
            job(5, vec![next(6, -0.3), next(9, -0.3)]),
            job(6, vec![next(5, -0.3), next(9, -0.3)]),
            job(9, vec![next(5, to_first), next(6, to_second)]),
        ],
    };
    let (_publisher, port) = serve(&serde_json::to_string(&node_jobs).unwrap());
    let (_folder, store) = store();
    let mut cluster = two_that_wait();
    let daemons =
        || NodeDaemons::new(None, NodePoller::start(port, Duration::from_millis(20)).unwrap());
    let mut releaser = releaser(&mut cluster, options(), store.clone(), Observations::default())
        .with_daemons(daemons());
    step_until(&mut releaser, |releaser| releaser.metrics.nodes.is_some_and(|of| of.pairs == 6));
    assert_eq!(releaser.troubles, Vec::<String>::new());
    drop(releaser);
    // A CPU becomes free, and what was learnt outlives the one that learnt it.
    cluster.nodes[0].idle = 1;
    let known = store.read().unwrap();
    let mut releaser =
        super::releaser(&mut cluster, options(), store, known).with_daemons(daemons());
    let decisions = releaser.step(20.0).unwrap();
    (decisions[0].job, decisions[0].text())
}

#[test]
fn the_partner_that_shared_cores_favour_is_released() {
    let (job, text) = released_by_cores(-0.5, -0.1);
    assert_eq!(job, 2, "not the first of the queue: {text}");
    assert!(text.contains("from shared cores"), "{text}");
    let (job, text) = released_by_cores(-0.1, -0.5);
    assert_eq!(job, 1, "{text}");
}

#[test]
fn cpu_times_of_jobs_that_ended_are_kept_with_their_runs() {
    use symbiont_wire::jobs::{Job, NodeJobs, VERSION};
    let job = Job { job: 1, user: 7, ended: true, run_time_s: 63.0, ..Job::default() };
    let node_jobs = NodeJobs { version: VERSION, jobs: vec![job], ..NodeJobs::default() };
    let (_publisher, port) = serve(&serde_json::to_string(&node_jobs).unwrap());
    let (_folder, store) = store();
    let mut cluster = Fake {
        jobs: vec![waits(2, 0.0)],
        nodes: vec![node("a", 2, 0)],
        scripts: [(1, script("x"))].into(),
        ended: [(1, EndedJob { ended_well: true, elapsed_s: 42.0 })].into(),
        ..Fake::default()
    };
    let first = Some(vec![runs(1, "a"), waits(2, 0.0)]);
    let mut both = TwoQueues { fake: &mut cluster, first };
    let mut releaser = releaser(&mut both, options(), store.clone(), Observations::default())
        .with_daemons(daemons(port));
    let cpus = || Some(store.read().unwrap().records().get(&key("x"))?.cpus());
    step_until(&mut releaser, |_| cpus() == Some(Some(1.5)));
}

#[test]
fn a_node_of_another_version_is_a_line_and_jobs_are_released_all_the_same() {
    let (_publisher, port) = serve("{\"version\":9}");
    let (_folder, store) = store();
    let mut cluster =
        Fake { jobs: vec![waits(1, 0.0)], nodes: vec![node("a", 1, 1)], ..Fake::default() };
    let mut releaser = releaser(&mut cluster, options(), store, Observations::default())
        .with_daemons(daemons(port));
    let decisions = releaser.step(10.0).unwrap();
    let [alone] = &decisions[..] else { panic!("{decisions:?}") };
    assert_eq!(alone.predicted_from, None, "there is nothing to predict");
    step_until(&mut releaser, |releaser| !releaser.troubles.is_empty());
    let line = "does not say what its jobs need: at 127.0.0.1";
    assert!(releaser.troubles[0].starts_with(&format!("node a {line}")), "{:?}", releaser.troubles);
    assert!(releaser.troubles[0].contains("has version 9, this symbiont reads version 1"));
    // The lines are taken by what logs them.
    releaser.troubles.clear();
    for _ in 0..10 {
        assert_eq!(releaser.step(10.0).unwrap(), []);
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(releaser.troubles, Vec::<String>::new(), "it is said once");
    assert_eq!(releaser.metrics.errors, 0);
}

#[test]
fn a_model_of_a_simulated_machine_is_doubted() {
    assert_eq!(crate::model_doubt(&model()), None);
    let machine = format!("xeon-silver-4110{}", symbiont_model::SIMULATED);
    let doubt = crate::model_doubt(&Model { machine, ..model() }).unwrap();
    assert!(doubt.contains("trained on xeon-silver-4110 (simulated)"), "{doubt}");
}
