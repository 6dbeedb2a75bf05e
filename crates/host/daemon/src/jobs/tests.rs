use symbiont_control::Controller;
use symbiont_machine::test_support::FakeMachine;
use symbiont_machine::{Assignment, Machine, Placement, ThreadId};
use symbiont_planner::{Bounds, Planner};
use symbiont_policy::View;
use symbiont_topology::PuId;

use super::*;

const QUANTUM: Duration = Duration::from_millis(100);

/// Estimates a stack for threads from 10 on: as many tenths of memory as the last digit says.
struct Estimating;

impl Policy for Estimating {
    fn name(&self) -> &'static str {
        "estimating"
    }

    fn place(&mut self, view: &View<'_>) -> Placement {
        view.threads.iter().map(|thread| (thread.id, Assignment::os("as it is"))).collect()
    }

    fn stack_alone(&self, thread: ThreadId) -> Option<Vec<(&str, f64)>> {
        let memory = f64::from(thread.thread % 10) / 10.0;
        (thread.thread >= 10).then(|| vec![("base", 1.0 - memory), ("memory", memory)])
    }

    fn learned_of(&self, thread: ThreadId, co_runner: ThreadId) -> Option<f64> {
        (thread.thread >= 10).then(|| -f64::from(co_runner.thread % 10) / 10.0)
    }
}

struct World {
    controller: Controller<FakeMachine>,
    accounts: JobAccounts,
    programs: BTreeMap<ProgramId, JobOf>,
}

impl World {
    /// A machine with two core types; threads by program, number and CPU.
    fn new(threads: &[(u32, u32, u32)]) -> Self {
        let hybrid = "core:1 smt:2 | core:2 kind:efficiency capacity:500";
        let mut machine = FakeMachine::new(Topology::synthetic(hybrid).unwrap());
        for &(program, number, cpu) in threads {
            let id = machine.start(program, number);
            machine.threads.get_mut(&id).unwrap().cpu = Some(PuId(cpu));
        }
        let planner = Planner::new(Bounds::none());
        let controller = Controller::new(machine, Box::new(Estimating), planner);
        let of = |&(program, ..): &(u32, u32, u32)| {
            (ProgramId(program), JobOf { job: u64::from(program), user: 1000 })
        };
        let programs = threads.iter().map(of).collect();
        Self { controller, accounts: JobAccounts::default(), programs }
    }

    /// A quantum passes in which each thread runs for so many tenths of it.
    fn step(&mut self, ran: impl Fn(u32) -> u32) -> NodeJobs {
        for (id, thread) in &mut self.controller.machine_mut().threads {
            thread.run_time += QUANTUM / 10 * ran(id.thread);
        }
        self.controller.machine_mut().wait(QUANTUM).unwrap();
        self.controller.step().unwrap();
        let topology = self.controller.machine().topology().clone();
        let step = self.controller.last().unwrap();
        self.accounts.observe(step, &topology, self.controller.policy(), &self.programs);
        self.accounts.report(Some("A processor"), "estimating", &topology)
    }

    fn machine(&mut self) -> &mut FakeMachine {
        self.controller.machine_mut()
    }
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-9
}

#[test]
fn stacks_are_means_over_run_time_by_core_type() {
    // Job 7 has a thread that waits for memory half as long as it runs, and one that never does.
    let mut world = World::new(&[(7, 15, 0), (7, 10, 1), (8, 18, 2)]);
    world.step(|_| 0);
    let quarter = |thread| if thread == 15 { 10 } else { 5 };
    world.step(quarter);
    let node = world.step(quarter);
    assert_eq!((node.version, node.policy.as_str()), (VERSION, "estimating"));
    assert_eq!(node.processor.as_deref(), Some("A processor"));
    let widths: Vec<_> =
        node.core_types.iter().map(|of| (of.core.as_str(), of.hardware_threads_per_core)).collect();
    assert_eq!(widths, [("performance", 2), ("efficiency", 1)]);
    let [seven, eight] = &node.jobs[..] else { panic!("{node:?}") };
    assert!((seven.job, seven.user, seven.ended) == (7, 1000, false));
    let [stack] = &seven.stacks[..] else { panic!("{seven:?}") };
    assert!(close(stack.counted_s, 0.3) && close(seven.run_time_s, 0.3), "{seven:?}");
    assert!(close(stack.components["memory"], 0.5 * 0.2 / 0.3), "{stack:?}");
    assert!(close(stack.components.values().sum(), 1.0));
    assert_eq!(eight.stacks[0].core, "efficiency");
    assert!(close(eight.stacks[0].components["memory"], 0.8));
    // On the other core type it is counted apart.
    for thread in world.machine().threads.values_mut() {
        thread.cpu = Some(PuId(2));
    }
    let moved = world.step(quarter);
    let cores: Vec<_> = moved.jobs[0].stacks.iter().map(|stack| stack.core.as_str()).collect();
    assert_eq!(cores, ["performance", "efficiency"]);
    assert_eq!(moved.jobs[0].stacks[0], *stack);
}

#[test]
fn a_policy_without_stacks_gives_run_times_only() {
    let mut world = World::new(&[(7, 3, 0)]);
    world.step(|_| 10);
    let node = world.step(|_| 10);
    assert_eq!(node.jobs[0].stacks, []);
    assert!(close(node.jobs[0].run_time_s, 0.2), "its time before the first step counts");
}

#[test]
fn what_was_learned_of_jobs_that_shared_a_core_is_reported() {
    // 7 and 8 on one core, 9 by itself, of 3 nothing is learned.
    let mut world = World::new(&[(7, 15, 0), (8, 18, 1), (9, 19, 2), (3, 4, 3)]);
    (0..3).for_each(|_| drop(world.step(|_| 10)));
    let near = |node: &NodeJobs, job: usize| -> Vec<(u64, i64, i64)> {
        let rounded = |value: f64| (value * 1e3).round() as i64;
        let of = |next: &NextToJob| (next.job, rounded(next.ln), rounded(next.together_s));
        node.jobs[job].next_to.iter().map(of).collect()
    };
    let node = world.step(|_| 10);
    let at = |job| node.jobs.iter().position(|one| one.job == job).unwrap();
    assert_eq!(near(&node, at(7)), [(8, -800, 300)]);
    assert_eq!(near(&node, at(8)), [(7, -500, 300)]);
    assert_eq!((near(&node, at(9)), near(&node, at(3))), (Vec::new(), Vec::new()));
    world.programs.remove(&ProgramId(8));
    let node = world.step(|_| 10);
    assert_eq!(near(&node, at(7)), [(8, -800, 300)], "also after its end");
    world.machine().wait(KEPT).unwrap();
    world.programs.remove(&ProgramId(7));
    let node = world.step(|_| 0);
    let seven = node.jobs.iter().find(|job| job.job == 7).unwrap();
    assert_eq!(seven.next_to, [], "until it is forgotten");
}

#[test]
fn time_before_an_exec_counts_once() {
    let mut world = World::new(&[(7, 15, 0)]);
    (0..2).for_each(|_| drop(world.step(|_| 10)));
    let machine = world.machine();
    let (id, mut thread) = machine.threads.pop_first().unwrap();
    thread.id.generation = 1;
    machine.threads.insert(thread.id, thread);
    // One that was born and has executed its program between two looks has not been seen before.
    let born = machine.start(7, 16);
    let mut newborn = machine.threads.remove(&born).unwrap();
    newborn.id.generation = 1;
    newborn.run_time = QUANTUM / 2;
    machine.threads.insert(newborn.id, newborn);
    assert!(!machine.threads.contains_key(&id));
    let node = world.step(|thread| if thread == 15 { 10 } else { 0 });
    assert!(close(node.jobs[0].run_time_s, 0.3 + 0.05), "{node:?}");
}

#[test]
fn jobs_that_ended_are_kept_for_a_while_and_are_bounded() {
    let mut world = World::new(&[(7, 15, 0), (8, 18, 2)]);
    (0..3).for_each(|_| drop(world.step(|_| 10)));
    world.programs.remove(&ProgramId(7));
    let node = world.step(|_| 10);
    assert!(node.jobs[0].ended && !node.jobs[1].ended);
    assert!(close(node.jobs[0].stacks[0].counted_s, 0.2), "it ended: {node:?}");
    world.machine().wait(KEPT).unwrap();
    let node = world.step(|_| 0);
    assert_eq!(node.jobs.iter().map(|job| job.job).collect::<Vec<_>>(), [8]);
    // Another user's job of the same number begins anew.
    world.programs.insert(ProgramId(8), JobOf { job: 8, user: 2000 });
    let node = world.step(|_| 0);
    assert_eq!((node.jobs[0].user, node.jobs[0].stacks.len()), (2000, 0));
    for job in 0..(MOST_JOBS as u64 + 5) {
        world.programs = [(ProgramId(8), JobOf { job: 100 + job, user: 2000 })].into();
        world.accounts.keep(Timestamp(1_000_000 + job), &world.programs);
    }
    let jobs = &world.accounts.jobs;
    let first = jobs.keys().next().copied();
    assert_eq!((jobs.len(), first), (MOST_JOBS, Some(105)), "the oldest went");
}
