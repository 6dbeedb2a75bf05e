//! Whole rounds of the loop. Each scenario runs on each machine through the
//! macro at the end; a new machine is one more line there.

#![expect(clippy::unwrap_used, reason = "tests may")]

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use symbiont_control::{ControlError, Controller, Deciding, Holding};
use symbiont_machine::test_support::FakeMachine;
use symbiont_machine::{
    Ability, Assignment, Change, CoreCookie, Machine, Move, Outcome, Placement, Priority, Signal,
    Signals, Target, ThreadId,
};
use symbiont_planner::{Bounds, Planner, Setting, Why};
use symbiont_policy::{Classes, Phases, Policy, Random, Settings, Stay, View};
use symbiont_topology::{CpuSet, PuId, Topology};

const QUANTUM: Duration = Duration::from_millis(20);

/// A machine on which a scenario can make things happen.
trait ScenarioMachine: Machine {
    /// A machine of two cores without threads.
    fn new() -> Self;
    /// Starts a thread that is ready at all times.
    fn start(&mut self, program: u32, number: u32) -> ThreadId;
    /// Ends a thread.
    fn end(&mut self, thread: ThreadId);
    /// The mask that holds a thread; none if it has its user's own.
    fn place_of(&self, thread: ThreadId) -> Option<CpuSet>;
}

impl ScenarioMachine for FakeMachine {
    fn new() -> Self {
        Self::new(Topology::synthetic("core:2").unwrap())
    }

    fn start(&mut self, program: u32, number: u32) -> ThreadId {
        Self::start(self, program, number)
    }

    fn end(&mut self, thread: ThreadId) {
        self.threads.remove(&thread);
    }

    fn place_of(&self, thread: ThreadId) -> Option<CpuSet> {
        self.masks.get(&thread).cloned()
    }
}

/// Sends every thread to cpu 0 and boosts it.
struct Many;

impl Policy for Many {
    fn name(&self) -> &'static str {
        "many"
    }

    fn place(&mut self, view: &View<'_>) -> Placement {
        let here = Assignment {
            priority: Priority::Boosted(10),
            ..Assignment::on(PuId(0).into(), "the more the merrier")
        };
        view.threads.iter().map(|t| (t.id, here.clone())).collect()
    }
}

/// That holds what the policy places: what is applied can be read from the machine.
fn controller<M: Machine>(machine: M, policy: impl Policy + 'static) -> Controller<M> {
    nudging(machine, policy).holding(Holding::Always)
}

fn nudging<M: Machine>(machine: M, policy: impl Policy + 'static) -> Controller<M> {
    Controller::new(machine, Box::new(policy), Planner::new(Bounds::none()))
}

/// Runs this many quanta.
fn quanta<M: Machine>(controller: &mut Controller<M>, count: usize) {
    let mut left = count;
    controller
        .run(QUANTUM, |_| {
            left -= 1;
            if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })
        .unwrap();
    controller.machine_mut().wait(QUANTUM).unwrap();
}

fn cpu(number: u32) -> Option<CpuSet> {
    Some(PuId(number).into())
}

fn a_serial_thread_gets_a_core_and_gives_it_back<M: ScenarioMachine>() {
    let mut machine = M::new();
    let serial = machine.start(1, 10);
    let parallel = [machine.start(2, 20), machine.start(2, 21)];
    let mut c = controller(machine, Phases::new(None));
    quanta(&mut c, 1);
    assert_eq!(c.machine().place_of(serial), None);
    quanta(&mut c, 1);
    assert_eq!(c.machine().place_of(serial), cpu(0));
    assert!(parallel.iter().all(|&t| c.machine().place_of(t) == cpu(1)));

    c.machine_mut().end(serial);
    quanta(&mut c, 1);
    assert!(parallel.iter().all(|&t| c.machine().place_of(t).is_none()));
    assert!(c.applied().is_empty());
}

fn a_nudged_thread_has_no_mask_of_ours<M: ScenarioMachine>() {
    let mut machine = M::new();
    let serial = machine.start(1, 10);
    let parallel = [machine.start(2, 20), machine.start(2, 21)];
    let mut c = nudging(machine, Phases::new(None));
    quanta(&mut c, 4);
    let target = |id: ThreadId| c.applied()[&id].target.cpus().cloned();
    assert_eq!(target(serial), cpu(0));
    assert!(parallel.iter().all(|&t| target(t) == cpu(1)));
    assert!([serial].iter().chain(&parallel).all(|&t| c.machine().place_of(t).is_none()));
    let done = c.tally().done;
    quanta(&mut c, 10);
    assert_eq!(c.tally().done, done, "they stay, so that no nudge is made again");
    c.release().unwrap();
    assert!(c.applied().is_empty());
}

fn a_thread_born_mid_run_is_placed<M: ScenarioMachine>() {
    let mut machine = M::new();
    machine.start(1, 10);
    let mut c = controller(machine, Random::new(3));
    quanta(&mut c, 2);
    let young = c.machine_mut().start(1, 11);
    quanta(&mut c, 1);
    assert!(c.machine().place_of(young).is_some());
    assert_eq!(c.tally().threads, 2);
}

fn release_undoes_everything<M: ScenarioMachine>() {
    let mut machine = M::new();
    let threads: Vec<_> = (0..5).map(|n| machine.start(1, n)).collect();
    let mut c = controller(machine, Many);
    quanta(&mut c, 2);
    assert!(threads.iter().all(|&t| c.machine().place_of(t) == cpu(0)));
    let released = c.release().unwrap();
    assert_eq!(released.len(), 10);
    assert!(c.applied().is_empty());
    assert!(threads.iter().all(|&t| c.machine().place_of(t).is_none()));
    assert!(c.release().unwrap().is_empty());
}

fn nothing_is_kept_of_threads_that_are_gone<M: ScenarioMachine>() {
    let mut c = controller(M::new(), Many);
    for round in 0..20 {
        let young: Vec<_> = (0..10).map(|n| c.machine_mut().start(1, round * 10 + n)).collect();
        quanta(&mut c, 1);
        assert_eq!(c.applied().len(), young.len());
        young.into_iter().for_each(|t| c.machine_mut().end(t));
    }
    quanta(&mut c, 1);
    assert!(c.applied().is_empty());
    assert_eq!(c.tally().threads, 200);
}

fn a_machine_without_threads_is_left_in_peace<M: ScenarioMachine>() {
    let mut c = controller(M::new(), Stay);
    quanta(&mut c, 3);
    assert_eq!((c.tally().quanta, c.tally().moves()), (3, 0));
}

/// Keeps each thread where it is first put, and notes where it saw them applied.
#[derive(Default)]
struct Settler(Arc<Mutex<Vec<Placement>>>);

impl Policy for Settler {
    fn name(&self) -> &'static str {
        "settler"
    }

    fn place(&mut self, view: &View<'_>) -> Placement {
        let seen = view.threads.iter().filter_map(|t| Some((t.id, t.applied?.clone())));
        self.0.lock().unwrap().push(seen.collect());
        let on = |at: usize| Assignment::on([PuId(at as u32 % 2)].into_iter().collect(), "settled");
        view.threads.iter().enumerate().map(|(at, thread)| (thread.id, on(at))).collect()
    }
}

fn a_reserved_core_is_left_while_it_is_decided<M: ScenarioMachine>() {
    let mut machine = M::new();
    let threads = [1, 2].map(|number| machine.start(0, number));
    let settler = Settler::default();
    let seen = Arc::clone(&settler.0);
    let last: CpuSet = [PuId(1)].into_iter().collect();
    let deciding = Deciding { reserved: last.clone(), takes: QUANTUM / 10 };
    let planner = Planner::new(Bounds::none());
    let controller = Controller::new(machine, Box::new(settler), planner).deciding(deciding);
    let mut controller = controller.holding(Holding::Always);
    for _ in 0..3 {
        controller.step().unwrap();
        controller.machine_mut().wait(QUANTUM).unwrap();
    }
    let place = |at: usize| controller.machine().place_of(threads[at]);
    assert_eq!((place(0), place(1)), (Some([PuId(0)].into_iter().collect()), Some(last)));
    // Both leave the reserved core at first, the second comes back; then it leaves and comes back.
    assert_eq!(controller.tally().done, 3 + 2 + 2);
    let seen = seen.lock().unwrap();
    assert_eq!((seen[0].len(), seen[1].len()), (0, 2));
    assert_eq!(seen[1][&threads[1]].target, Target::Cpus([PuId(1)].into_iter().collect()));
    assert_eq!(seen[1], seen[2], "the policy sees what was applied before");
}

macro_rules! each_scenario_on_each_machine {
    (scenarios $scenarios:tt machines { $($name:ident: $machine:ty,)* }) => {
        $(each_scenario_on_each_machine!(@one $name $machine, $scenarios);)*
    };
    (@one $name:ident $machine:ty, { $($scenario:ident)* }) => {
        mod $name {
            use super::*;
            $(#[test]
            fn $scenario() {
                super::$scenario::<$machine>();
            })*
        }
    };
}

each_scenario_on_each_machine! {
    scenarios {
        a_serial_thread_gets_a_core_and_gives_it_back
        a_nudged_thread_has_no_mask_of_ours
        a_thread_born_mid_run_is_placed
        release_undoes_everything
        a_reserved_core_is_left_while_it_is_decided
        nothing_is_kept_of_threads_that_are_gone
        a_machine_without_threads_is_left_in_peace
    }
    machines {
        fake: FakeMachine,
    }
}

/// What only a scripted machine can do: answer moves as the test specifies.
mod answers {
    use super::*;

    fn many_with(answer: impl FnMut(&Move) -> Outcome + Send + 'static) -> Controller<FakeMachine> {
        let mut machine = FakeMachine::new(Topology::synthetic("core:2").unwrap());
        machine.start(1, 10);
        machine.answer = Some(Box::new(answer));
        controller(machine, Many)
    }

    fn is_affinity(m: &Move) -> bool {
        matches!(m.change, Change::Affinity(_))
    }

    #[test]
    fn a_thread_that_exits_between_sample_and_move_is_forgotten() {
        let mut c = many_with(|_| Outcome::Gone);
        let step = c.step().unwrap();
        assert_eq!(step.outcomes, [Outcome::Gone, Outcome::Gone]);
        assert!(c.applied().is_empty());
        assert_eq!(c.tally().gone, 2);
    }

    #[test]
    fn a_foreign_setting_is_left_alone_for_good() {
        let mut c =
            many_with(|m| if is_affinity(m) { Outcome::ExternallyChanged } else { Outcome::Done });
        quanta(&mut c, 50);
        assert_eq!(c.tally().externally_changed, 1);
        assert_eq!(c.tally().done, 1);
        assert_eq!(c.tally().withheld[&Why::ExternallyChanged], 49);
        let applied: Vec<_> = c.applied().values().collect();
        assert_eq!(applied[0].target, Target::Os);
        assert_eq!(applied[0].priority, Priority::Boosted(10));
    }

    #[test]
    fn a_setting_that_was_changed_externally_is_no_longer_applied() {
        let mut c = many_with(|_| Outcome::Done);
        quanta(&mut c, 1);
        assert_eq!(c.applied().len(), 1);
        c.machine_mut().answer = Some(Box::new(|_| Outcome::ExternallyChanged));
        c.release().unwrap();
        assert!(c.applied().is_empty());
    }

    fn to_os(thread: ThreadId) -> Move {
        Move { thread, change: Change::Affinity(Target::Os) }
    }

    #[test]
    fn threads_of_an_offline_cpu_are_placed_on_the_others() {
        let machine = |text: &str| Topology::synthetic(text).unwrap();
        let mut fake = FakeMachine::new(machine("core:4"));
        let threads: Vec<_> = (0..4).map(|number| fake.start(1, number)).collect();
        let mut c = controller(fake, Random::new(1));
        quanta(&mut c, 1);
        let stranded = |c: &Controller<FakeMachine>| {
            let gone: CpuSet = [PuId(2), PuId(3)].into_iter().collect();
            let masks = &c.machine().masks;
            let is_gone = |id: &ThreadId| masks[id].is_subset(&gone);
            threads.iter().copied().filter(is_gone).collect::<Vec<_>>()
        };
        let lost = stranded(&c);
        assert_eq!(lost.len(), 2);
        c.machine_mut().change_topology(machine("core:2"));
        c.machine_mut().log.clear();
        quanta(&mut c, 1);
        let log = &c.machine().log;
        let undone: Vec<_> = log.iter().take(2).map(|(asked, _)| asked.clone()).collect();
        assert_eq!(undone, lost.into_iter().map(to_os).collect::<Vec<_>>());
        assert_eq!(stranded(&c), []);
        for placed in c.applied().values() {
            let Target::Cpus(cpus) = &placed.target else { panic!("{placed:?}") };
            assert!(cpus.is_subset(&c.machine().topology().cpus()), "{cpus}");
        }
        // Back again: all of it is used.
        c.machine_mut().change_topology(machine("core:4"));
        quanta(&mut c, 1);
        let used: CpuSet =
            c.applied().values().fold(CpuSet::new(), |all, placed| match &placed.target {
                Target::Cpus(cpus) => all.union(cpus),
                Target::Os => all,
            });
        assert_eq!(used, c.machine().topology().cpus());
    }

    #[test]
    fn a_change_from_outside_is_noticed_without_a_move_and_counted_once() {
        let mut c = many_with(|_| Outcome::Done);
        quanta(&mut c, 1);
        let thread = *c.applied().keys().next().unwrap();
        c.machine_mut().lapsed = vec![(to_os(thread), Outcome::ExternallyChanged)];
        c.machine_mut().log.clear();
        quanta(&mut c, 5);
        assert_eq!(c.machine().log, [], "it is left alone");
        assert_eq!(c.applied()[&thread].target, Target::Os);
        assert_eq!(c.tally().externally_changed, 1);
        assert_eq!(c.externally_changed().collect::<Vec<_>>(), [(thread, Setting::Affinity)]);
        c.machine_mut().threads.clear();
        quanta(&mut c, 1);
        assert_eq!(c.externally_changed().count(), 0, "nothing is kept of threads that are gone");
    }

    #[test]
    fn what_the_kernel_undid_is_done_again() {
        let mut c = many_with(|_| Outcome::Done);
        quanta(&mut c, 1);
        let thread = *c.applied().keys().next().unwrap();
        c.machine_mut().lapsed = vec![(to_os(thread), Outcome::Done)];
        c.machine_mut().log.clear();
        quanta(&mut c, 1);
        let to_cpu = Change::Affinity(Target::Cpus(PuId(0).into()));
        assert_eq!(c.machine().log, [(Move { thread, change: to_cpu }, Outcome::Done)]);
    }

    #[test]
    fn a_refused_setting_is_tried_ever_less_often() {
        let mut c = many_with(|m| {
            if is_affinity(m) { Outcome::Refused("EINVAL".into()) } else { Outcome::Done }
        });
        let mut tries = Vec::new();
        for quantum in 0..200 {
            if c.step().unwrap().outcomes.iter().any(|o| matches!(o, Outcome::Refused(_))) {
                tries.push(quantum);
            }
        }
        // Left alone for 2, 4, 8, 16, 32, 64 and 64 quanta between them.
        assert_eq!(tries, [0, 3, 8, 17, 34, 67, 132, 197]);
        assert_eq!(c.tally().refused, 8);
    }

    #[test]
    fn a_success_ends_the_pauses_between_tries() {
        fn refuse(_: &Move) -> Outcome {
            Outcome::Refused("EINVAL".into())
        }
        // Quanta in which something was tried.
        fn tries(c: &mut Controller<FakeMachine>, quanta: usize) -> Vec<usize> {
            (0..quanta).filter(|_| !c.step().unwrap().outcomes.is_empty()).collect()
        }
        let mut c = many_with(refuse);
        assert_eq!(tries(&mut c, 8), [0, 3]);
        c.machine_mut().answer = None;
        assert_eq!(tries(&mut c, 8), [0]);
        c.release().unwrap();
        c.machine_mut().answer = Some(Box::new(refuse));
        assert_eq!(tries(&mut c, 8), [0, 3]);
    }

    #[test]
    fn a_thread_that_comes_back_is_a_new_one() {
        let mut c = many_with(|_| Outcome::ExternallyChanged);
        quanta(&mut c, 2);
        assert_eq!(c.tally().externally_changed, 2);
        let (id, t) = c.machine_mut().threads.pop_first().unwrap();
        quanta(&mut c, 1);
        c.machine_mut().threads.insert(id, t);
        quanta(&mut c, 1);
        assert_eq!(c.tally().externally_changed, 4);
    }

    #[test]
    fn what_is_applied_is_what_was_done() {
        let mut c = many_with(|m| {
            if is_affinity(m) { Outcome::Done } else { Outcome::Refused("EACCES".into()) }
        });
        quanta(&mut c, 1);
        let applied: Vec<_> = c.applied().values().collect();
        assert_eq!(applied.len(), 1);
        assert_eq!(applied[0].target, Target::Cpus(PuId(0).into()));
        assert_eq!(applied[0].priority, Priority::Normal);
        assert_eq!(applied[0].reason, "the more the merrier");
    }

    /// Whether random groups on two cores of SMT2 put threads with different cookies of core scheduling together, in
    /// any of some quanta: `policy` makes the policy for a seed.
    fn mixes(policy: fn(u64) -> Box<dyn Policy>) -> bool {
        let topology = Topology::synthetic("core:2 smt:2").unwrap();
        let mut machine = FakeMachine::new(topology.clone());
        let threads = [1, 2, 1, 2].into_iter().zip(10..);
        let cookies: BTreeMap<ThreadId, u64> =
            threads.map(|(cookie, number)| (machine.start(number, number), cookie)).collect();
        for (id, cookie) in &cookies {
            machine.threads.get_mut(id).unwrap().cookie = CoreCookie::new(*cookie);
        }
        let planner = Planner::new(Bounds::none());
        let mut c = Controller::new(machine, policy(1), planner).holding(Holding::Always);
        (0..20).any(|_| {
            quanta(&mut c, 1);
            topology.cores().iter().any(|core| {
                let there = c.machine().masks.iter().filter(|(_, mask)| mask.is_subset(&core.cpus));
                there.map(|(id, _)| cookies[id]).collect::<BTreeSet<_>>().len() > 1
            })
        })
    }

    #[test]
    fn threads_with_other_cookies_share_no_core() {
        assert!(!mixes(|seed| Box::new(Classes::new(Box::new(Random::new(seed))))));
        assert!(mixes(|seed| Box::new(Random::new(seed))), "a policy by itself knows no cookies");
    }

    #[test]
    fn a_machine_that_does_not_act_leaves_nothing_applied() {
        let mut c = many_with(|_| Outcome::NotEnforced);
        quanta(&mut c, 3);
        assert!(c.applied().is_empty());
        assert_eq!(c.tally().not_enforced, 6);
    }

    #[test]
    fn after_an_exec_nothing_is_applied() {
        let mut c = many_with(|_| Outcome::Done);
        quanta(&mut c, 1);
        // Thread 10 replaces its program; it lives on as the process's leader.
        let machine = c.machine_mut();
        let (id, mut t) = machine.threads.pop_first().unwrap();
        t.id = ThreadId { thread: id.process, generation: id.generation + 1, ..id };
        t.lifecycle = symbiont_machine::Lifecycle::Fresh;
        let heir = t.id;
        machine.threads.insert(heir, t);
        quanta(&mut c, 1);
        assert!(!c.applied().contains_key(&heir), "{:?}", c.applied());
    }

    #[test]
    fn the_signals_are_specified_before_the_first_sample() {
        let machine = FakeMachine::new(Topology::synthetic("core:1").unwrap());
        let phases = Box::new(Phases::new(None));
        let extra = Signals::from([Signal::Ipc]);
        let mut controller =
            Controller::new(machine, phases, Planner::new(Bounds::none())).measuring(&extra);
        assert_eq!(controller.machine().measured, None);
        controller.step().unwrap();
        let expected = Signals::from([Signal::RunStates, Signal::Ipc]);
        assert_eq!(controller.machine().measured, Some(expected));
        // What the machine cannot measure of it is no reason to refuse.
        let mut machine = FakeMachine::new(Topology::synthetic("core:1").unwrap());
        machine.support.signals.insert(Signal::Ipc, Ability::Absent("no counters".into()));
        let controller = Controller::new(machine, Box::new(Stay), Planner::new(Bounds::none()));
        assert!(controller.measuring(&extra).step().is_ok());
    }

    #[test]
    fn optional_signals_of_a_policy_are_measured_too() {
        let cores_differ = Topology::synthetic("core:1 | core:1 capacity:512").unwrap();
        let mut controller =
            controller(FakeMachine::new(cores_differ), Phases::online(&Settings::default()));
        controller.step().unwrap();
        let measured = Signals::from([Signal::RunStates, Signal::Ipc]);
        assert_eq!(controller.machine().measured, Some(measured));
    }

    #[test]
    fn a_missing_signal_is_reported_before_anything_is_done() {
        let mut machine = FakeMachine::new(Topology::synthetic("core:1").unwrap());
        let why = "/proc is not mounted".to_owned();
        machine.support.signals.insert(Signal::RunStates, Ability::Absent(why));
        let planner = Planner::new(Bounds::none());
        let mut controller = Controller::new(machine, Box::new(Phases::new(None)), planner);
        let error = controller.step().unwrap_err();
        assert!(matches!(error, ControlError::MissingSignal { policy: "phases", .. }));
        assert_eq!(
            error.to_string(),
            "policy 'phases' cannot run here: it needs run states, but /proc is not mounted"
        );
    }
}
