use symbiont_control::Controller;
use symbiont_machine::test_support::FakeMachine;
use symbiont_machine::{DryRun, Machine};
use symbiont_model::Objective;
use symbiont_planner::{Bounds, Planner};
use symbiont_policy::Foresight;
use symbiont_topology::{CoreKind, PuId};

use super::*;

const QUANTUM: Duration = Duration::from_millis(100);

/// Keeps thread n on the given CPU, and predicts: a thread with another one on its core is
/// slowed down to 1.5, one alone to 1.
struct Fixed(BTreeMap<u32, u32>);

struct Pairs;

impl Foresight for Pairs {
    fn objective(&self) -> Objective {
        Objective::Stp
    }

    fn slowdowns(&self, _: CoreKind, group: &[ThreadId]) -> Option<Vec<f64>> {
        Some(vec![if group.len() > 1 { 1.5 } else { 1.0 }; group.len()])
    }
}

impl Policy for Fixed {
    fn name(&self) -> &'static str {
        "fixed"
    }

    fn place(&mut self, view: &View<'_>) -> Placement {
        let place = |id: ThreadId| match self.0.get(&id.thread) {
            Some(cpu) => Assignment {
                predicted_slowdown: Some(1.1),
                ..Assignment::on(PuId(*cpu).into(), format!("on {cpu}"))
            },
            None => Assignment::os("left alone"),
        };
        view.threads.iter().map(|thread| (thread.id, place(thread.id))).collect()
    }

    fn foresight(&self, _: &View<'_>) -> Option<Box<dyn Foresight>> {
        Some(Box::new(Pairs))
    }
}

/// Threads of programs on two cores of two hardware threads: number, program, CPU, running share.
type Threads<'t> = &'t [(u32, u32, u32, f64)];

/// Steps over some quanta, all the same.
pub fn accounted(threads: Threads<'_>, plan: &[(u32, u32)], quanta: u32) -> Account {
    let mut machine = FakeMachine::new(Topology::synthetic("core:2 smt:2").unwrap());
    for (number, program, cpu, _) in threads {
        let id = machine.start(*program, *number);
        machine.threads.get_mut(&id).unwrap().cpu = Some(PuId(*cpu));
    }
    let policy = Box::new(Fixed(plan.iter().copied().collect()));
    let planner = Planner::new(Bounds::none());
    let mut controller = Controller::new(DryRun(machine), policy, planner);
    let mut account = Account::new(controller.machine().topology());
    for _ in 0..quanta {
        controller.step().unwrap();
        let (machine, step) = (controller.machine(), controller.last().unwrap());
        account.add(step, controller.policy(), machine.topology(), machine.support());
        let machine = controller.machine_mut();
        for thread in machine.0.threads.values_mut() {
            let share = threads.iter().find(|given| given.0 == thread.id.thread).unwrap().3;
            thread.run_time += QUANTUM.mul_f64(share);
            if share == 0.0 {
                thread.state = symbiont_machine::RunState::Sleeping;
            }
        }
        machine.wait(QUANTUM).unwrap();
    }
    account
}

/// A CPU of the first core's sibling pair, and one of the other core.
pub fn siblings() -> (u32, u32, u32) {
    let topology = Topology::synthetic("core:2 smt:2").unwrap();
    let cores = topology.cores();
    let cpus = |at: usize| cores[at].cpus.iter().map(|cpu| cpu.0).collect::<Vec<u32>>();
    (cpus(0)[0], cpus(0)[1], cpus(1)[0])
}

#[test]
fn decisions_are_weighted_by_ready_time() {
    let (one, _, other) = siblings();
    let account = accounted(&[(1, 7, one, 1.0), (2, 7, other, 0.0)], &[(1, one)], 11);
    let decided = &account.programs[&ProgramId(7)];
    let settings = decided.settings();
    assert_eq!(settings.len(), 1, "a sleeper does not count: {settings:?}");
    let (setting, share, reason) = settings[0];
    assert_eq!((setting.cpus.as_deref(), share), (Some(one.to_string().as_str()), 1.0));
    assert_eq!(reason, format!("on {one}"));
    assert_eq!((account.quanta, account.watched()), (11, QUANTUM * 10));
}

#[test]
fn what_is_allowed_anyway_is_no_change() {
    let support = symbiont_machine::test_support::full_support();
    let allowed: CpuSet = "0-3".parse().unwrap();
    let setting = |cpus: &str, priority| {
        let assignment = Assignment { priority, ..Assignment::on(cpus.parse().unwrap(), "") };
        Setting::of(&assignment, &allowed, &support)
    };
    assert_eq!(setting("0-7", Priority::Normal), Setting::default());
    assert_eq!(Setting::of(&Assignment::os(""), &allowed, &support), Setting::default());
    assert_eq!(setting("0-2", Priority::Normal).cpus.as_deref(), Some("0-2"));
    assert_eq!(setting("0-7", Priority::Boosted(5)).priority, Some("boosted"));
    let cannot = Support { affinity: symbiont_machine::Ability::Absent("no".into()), ..support };
    let kept = Assignment::on("0".parse().unwrap(), "");
    assert_eq!(Setting::of(&kept, &allowed, &cannot), Setting::default());
}

#[test]
fn predictions_compare_the_same_quanta() {
    let (one, sibling, other) = siblings();
    let threads = [(1, 1, one, 1.0), (2, 2, sibling, 1.0), (3, 3, other, 1.0)];
    // Of thread 3 nothing is planned.
    let account = accounted(&threads, &[(1, one), (2, other)], 11);
    let slowdowns = |program| account.programs[&ProgramId(program)].slowdowns();
    let near = |(now, planned): (f64, f64)| {
        assert!((now - 1.5).abs() < 1e-9 && (planned - 1.1).abs() < 1e-9, "{now} {planned}");
    };
    near(slowdowns(1).unwrap());
    near(slowdowns(2).unwrap());
    assert_eq!(slowdowns(3), None);
    let Speeds { now, planned, time } = account.speeds;
    assert!((now / time - 2.0 / 1.5).abs() < 1e-9 && (planned / time - 2.0 / 1.1).abs() < 1e-9);
}

#[test]
fn threads_that_take_turns_are_not_predicted() {
    let (one, sibling, other) = siblings();
    let crowded: Vec<(u32, u32, u32, f64)> =
        [one, one, sibling].iter().zip(1..).map(|(cpu, n)| (n, n, *cpu, 0.6)).collect();
    let account = accounted(&crowded, &[(1, other)], 5);
    assert_eq!(account.programs[&ProgramId(1)].slowdowns(), None);
    assert!(account.speeds.time == 0.0);
}
