//! Tests with a CPU that goes offline at any moment while a thread's mask is read.
//!
//! Linux takes a CPU offline in steps (`sched_cpu_deactivate`, `select_fallback_rq`, `set_cpu_online`): first no
//! thread may use it any more, though it is still listed; then a thread whose mask has no other CPU may run
//! everywhere once it wakes; at last the CPU is no longer listed. A manager's calls fall in between.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use symbiont_machine::{Change, Move, Outcome, Target, ThreadId};
use symbiont_topology::CpuSet;

use super::ability::Privilege;
use super::actuator::Actuator;
use super::groups::{GroupKey, Grouping};
use super::kernel::Kernel;
use super::thread::{Class, Facts, ThreadError, ThreadKey};

const KEY: ThreadKey = ThreadKey { process: 20, thread: 20, born: 200 };

/// What is true at one moment.
#[derive(Debug, Default)]
struct Truth {
    calls: usize,
    /// After how many calls the CPU may not be used, the thread is let run everywhere, and the CPU
    /// is not listed.
    at: [usize; 3],
    /// What was asked for the thread; none is all.
    asked: Option<CpuSet>,
}

#[derive(Debug, Clone, Default)]
struct Leaving(Arc<Mutex<Truth>>);

fn set(text: &str) -> CpuSet {
    text.parse().unwrap()
}

impl Leaving {
    fn truth(&self) -> MutexGuard<'_, Truth> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A call: time goes on.
    fn call(&self) -> MutexGuard<'_, Truth> {
        let mut truth = self.truth();
        truth.calls += 1;
        let nowhere = truth.asked.as_ref().is_some_and(|asked| *asked == set("2"));
        if truth.calls >= truth.at[1] && nowhere {
            truth.asked = None;
        }
        truth
    }

    fn listed(&self) -> CpuSet {
        let truth = self.call();
        set(if truth.calls >= truth.at[2] { "0-1,3" } else { "0-3" })
    }
}

impl Truth {
    fn usable(&self) -> CpuSet {
        set(if self.calls >= self.at[0] { "0-1,3" } else { "0-3" })
    }
}

impl Kernel for Leaving {
    fn facts(&self, process: u32, _: u32) -> Result<Option<Facts>, ThreadError> {
        let (nice, class, zombie) = (0, Class::Other, false);
        let (parent, group, session, on) = (1, 20, 20, None);
        let facts = Facts { key: KEY, parent, group, session, nice, class, zombie, on };
        Ok((process == KEY.process).then_some(facts))
    }

    fn mask(&self, _: ThreadKey) -> Result<CpuSet, ThreadError> {
        let truth = self.call();
        let usable = truth.usable();
        Ok(truth.asked.as_ref().map_or(usable.clone(), |asked| asked.intersection(&usable)))
    }

    fn set_mask(&self, _: ThreadKey, cpus: Option<&CpuSet>) -> Result<(), ThreadError> {
        self.call().asked = cpus.cloned();
        Ok(())
    }

    fn set_nice(&self, _: ThreadKey, _: i8) -> Result<(), ThreadError> {
        Ok(())
    }

    fn scheduler(&self, _: ThreadKey) -> Result<(Class, bool), ThreadError> {
        Ok((Class::Other, false))
    }

    fn set_class(&self, _: ThreadKey, _: Class, _: bool) -> Result<(), ThreadError> {
        Ok(())
    }

    fn now_ns(&self) -> u64 {
        0
    }
    fn now_ticks(&self) -> u64 {
        300
    }

    fn processes(&self) -> Vec<u32> {
        vec![KEY.process]
    }

    fn threads(&self, _: u32) -> Vec<u32> {
        vec![KEY.thread]
    }

    fn cpuset(&self, _: u32) -> Arc<CpuSet> {
        Arc::new(self.listed())
    }

    fn group(&self, _: u32) -> Option<GroupKey> {
        Some(GroupKey::Root)
    }

    fn grouping(&self) -> Grouping {
        Grouping::None
    }

    fn loaded_scheduler(&self) -> Option<String> {
        None
    }

    fn leaving(&self) -> CpuSet {
        let own = self.listed();
        own.difference(&self.call().usable())
    }
}

#[test]
fn a_cpu_that_goes_offline_while_a_mask_is_looked_at_is_no_other_process() {
    let dir = tempfile::tempdir().unwrap();
    let id = ThreadId { process: KEY.process, thread: KEY.thread, born: KEY.born, generation: 0 };
    let to = |target| Move { thread: id, change: Change::Affinity(target) };
    for at in orders(12) {
        let kernel = Leaving::default();
        kernel.truth().at = [usize::MAX; 3];
        kernel.truth().asked = Some(set("0,2"));
        let boxed = Box::new(kernel.clone());
        let actuator =
            Actuator::over(boxed, Privilege::all(), 4, &dir.path().join("state")).unwrap();
        actuator.adopt(&id).unwrap();
        assert_eq!(actuator.apply(&to(Target::Cpus(set("2")))), Outcome::Done);
        (kernel.truth().at, kernel.truth().calls) = (at, 0);
        while kernel.truth().calls < 24 {
            assert_eq!(actuator.lapsed(), [], "{at:?}");
            actuator.refresh().unwrap();
        }
        assert_eq!(actuator.apply(&to(Target::Os)), Outcome::Done, "{at:?}");
        assert_eq!(kernel.truth().asked, Some(set("0,2")), "{at:?}");
    }
}

/// All moments of the three steps within so many calls: the thread may wake late.
fn orders(calls: usize) -> impl Iterator<Item = [usize; 3]> {
    let two = (1..=calls).flat_map(move |first| (first..=calls).map(move |second| [first, second]));
    two.flat_map(move |[first, second]| (first..=calls).map(move |third| [first, second, third]))
}
