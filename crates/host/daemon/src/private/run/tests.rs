//! The loop goes wrong.

use std::path::Path;

use symbiont_linux::actuate::Lock;
use symbiont_linux::machine::CountOptions;
use symbiont_linux::observe::Choice;
use symbiont_machine::Placement;
use symbiont_machine::test_support::FakeMachine;
use symbiont_machine::{Move, Outcome, Sample, Support};
use symbiont_planner::Bounds;
use symbiont_policy::{LearnedPairs, LearnedProgram, NextTo, Settings, View};
use symbiont_topology::{CoreKind, Topology};

use super::*;
use crate::learned::LearnedFile;
use crate::private::Wakes;
use symbiont_control::Holding;

/// Fails at its second sample, and says how at its third.
struct Broken {
    inner: FakeMachine,
    samples: u32,
    /// Or fails again and again.
    panics: bool,
}

impl Machine for Broken {
    type Error = LinuxError;

    fn topology(&self) -> &Topology {
        self.inner.topology()
    }

    fn support(&self) -> &Support {
        self.inner.support()
    }

    fn sample(&mut self) -> Result<Sample, LinuxError> {
        self.samples += 1;
        match (self.samples, self.inner.sample()) {
            (3, _) if self.panics => panic!("sample {} is wrong", self.samples),
            (2.., _) if self.samples == 2 || !self.panics => {
                Err(LinuxError::Wait(std::io::Error::other("no memory")))
            }
            (_, Ok(sample)) => Ok(sample),
        }
    }

    fn apply(&mut self, moves: &[Move]) -> Result<Vec<Outcome>, LinuxError> {
        let Ok(outcomes) = self.inner.apply(moves);
        Ok(outcomes)
    }

    fn wait(&mut self, quantum: Duration) -> Result<(), LinuxError> {
        let Ok(()) = self.inner.wait(quantum);
        Ok(())
    }
}

fn plan_of(folder: &Path) -> Plan<'static> {
    Plan {
        policy: symbiont_policy::find("stay").unwrap(),
        settings: Settings::default(),
        quantum: Duration::from_millis(20),
        bounds: Bounds::none(),
        holding: Holding::default(),
        keeping: symbiont_linux::machine::Keeping::default(),
        choice: Choice::Best,
        counting: CountOptions::default(),
        dry_run: false,
        class: symbiont_machine::Class::Normal,
        linger: false,
        summarise: true,
        wakes: Wakes::Quanta,
        slower: Vec::new(),
        state_dir: folder.join("state"),
        learned: None,
        processor: None,
        record: None,
    }
}

#[test]
fn a_panic_in_the_loop_is_reported_and_gives_the_machine_back_to_be_restored() {
    let folder = tempfile::tempdir().unwrap();
    let plan = plan_of(folder.path());
    let mut lock = Lock::acquire(&plan.state_dir, &[]).unwrap();
    let inner = FakeMachine::new(Topology::synthetic("core:2").unwrap());
    let policy = (plan.policy.make)(&plan.settings);
    let held = RunLock::new(&mut lock, &[]);
    let broken = Broken { inner, samples: 0, panics: true };
    let (machine, report, _) = run(broken, policy, &plan, vec![], held);
    assert_eq!((machine.samples, report.quanta), (3, 1));
    let [panic, failure] = &report.trouble[..] else { panic!("{:?}", report.trouble) };
    assert!(panic.contains("panicked") && panic.contains("sample 3 is wrong"), "{panic}");
    assert!(
        failure.contains("1 quantum had to be skipped") && failure.contains("no memory"),
        "{failure}"
    );
}

/// Has learned something.
struct Learner;

impl Policy for Learner {
    fn name(&self) -> &'static str {
        "learner"
    }

    fn place(&mut self, _: &View<'_>) -> Placement {
        Placement::new()
    }

    fn learned(&self) -> Option<LearnedPairs> {
        let next_to = vec![NextTo { program: "b".to_owned(), ln: -0.2, variance: 1e-4 }];
        let (program, core) = ("a".to_owned(), CoreKind::Performance);
        Some(LearnedPairs { programs: vec![LearnedProgram { program, core, next_to }] })
    }
}

fn learned_of(panics: bool, plan: &Plan<'_>) -> Option<LearnedPairs> {
    let mut lock = Lock::acquire(&plan.state_dir, &[]).unwrap();
    let inner = FakeMachine::new(Topology::synthetic("core:2").unwrap());
    let held = RunLock::new(&mut lock, &[]);
    run(Broken { inner, samples: 0, panics }, Box::new(Learner), plan, vec![], held).2
}

#[test]
fn what_was_learned_is_kept_unless_it_panicked_or_was_a_dry_run() {
    let folder = tempfile::tempdir().unwrap();
    let file = LearnedFile::new(&folder.path().join("learned.json"), "A");
    let plan = Plan { learned: Some(file.clone()), ..plan_of(folder.path()) };
    assert_eq!(learned_of(true, &plan), None);
    let learned = learned_of(false, &plan);
    assert_eq!(learned, Learner.learned());
    let dry = Plan { dry_run: true, learned: Some(file.clone()), ..plan_of(folder.path()) };
    assert_eq!(keep(&dry, learned.clone()), None);
    assert!(file.read().unwrap().is_empty());
    assert_eq!(keep(&plan, learned.clone()), None);
    assert_eq!(Some(file.read().unwrap()), learned);
    std::fs::write(folder.path().join("learned.json"), "{").unwrap();
    assert!(keep(&plan, learned).unwrap().contains("learned.json"));
}
