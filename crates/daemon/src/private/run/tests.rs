//! The loop goes wrong.

use symbiont_linux::actuate::Lock;
use symbiont_linux::machine::CountOptions;
use symbiont_linux::observe::Choice;
use symbiont_machine::test_support::FakeMachine;
use symbiont_machine::{Move, Sample, Support};
use symbiont_planner::Bounds;
use symbiont_policy::Settings;
use symbiont_topology::Topology;

use super::*;
use crate::private::Wakes;
use symbiont_control::Holding;

/// Fails at its second sample, and says how at its third.
struct Broken {
    inner: FakeMachine,
    samples: u32,
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
            (2, _) => Err(LinuxError::Wait(std::io::Error::other("no memory"))),
            (3, _) => panic!("sample {} is wrong", self.samples),
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

#[test]
fn a_panic_in_the_loop_is_reported_and_gives_the_machine_back_to_be_restored() {
    let folder = tempfile::tempdir().unwrap();
    let plan = Plan {
        policy: symbiont_policy::find("stay").unwrap(),
        settings: Settings::default(),
        quantum: Duration::from_millis(20),
        bounds: Bounds::none(),
        holding: Holding::default(),
        choice: Choice::Best,
        counting: CountOptions::default(),
        dry_run: false,
        class: symbiont_machine::Class::Normal,
        linger: false,
        summarise: true,
        wakes: Wakes::Quanta,
        slower: Vec::new(),
        state_dir: folder.path().join("state"),
        processor: None,
        record: None,
    };
    let mut lock = Lock::acquire(&plan.state_dir, &[]).unwrap();
    let inner = FakeMachine::new(Topology::synthetic("core:2").unwrap());
    let policy = (plan.policy.make)(&plan.settings);
    let held = Held::new(&mut lock, &[]);
    let (machine, report) = run(Broken { inner, samples: 0 }, policy, &plan, vec![], held);
    assert_eq!((machine.samples, report.quanta), (3, 1));
    let [panic, failure] = &report.trouble[..] else { panic!("{:?}", report.trouble) };
    assert!(panic.contains("panicked") && panic.contains("sample 3 is wrong"), "{panic}");
    assert!(failure.contains("1 quanta failed") && failure.contains("no memory"), "{failure}");
}
