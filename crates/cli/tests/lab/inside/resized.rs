//! A pod's cpuset shrinks and grows many times, as kubelet's static CPU manager has it, under a daemon.
//!
//! # Problem
//! Which CPUs a container has is decided by others while Symbiont places its threads. It has to follow,
//! and may neither write a cpuset nor let a thread out of one.
//!
//! # Approach
//! Threads of a container are dealt anew ten times a second among the CPUs of its cpuset, while those of
//! another container use all CPUs now and then. Each change is *followed* once each thread is held to one
//! CPU of the new set, and, if it grew, some to CPUs that it did not have. Masks are looked at all the
//! while. Where time is executed instructions it does not depend on what runs outside, so that how long it
//! took can be judged there.
//!
//! # Properties
//! - Each change is followed in [`WITHIN`], where time is executed instructions; no thread is ever out of
//!   its cpuset; no file of a group of pods is written; at the end nothing is left changed
//!   (`a_pod_follows_its_cpuset_each_time_and_is_released`).

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use super::daemon::has_own_masks;
use super::pods::{Container, Node, Spec};
use super::siblings::{cpus_of, list, wait_until_seen, workers};
use crate::given::{Given, Scope};
use crate::test_folder::wait_until;

/// How long a change may take until it is followed.
const WITHIN: Duration = Duration::from_secs(1);
const SETTINGS: &str = "policy = \"random\"\nquantum = \"100ms\"\n";
const RULES: &str = "[[rule]]\npod = \"shop/*\"\nmanage = true\n";
const THREADS: usize = 4;
const CPUS: &str = "cpuset.cpus";
/// What others set of a group, and nothing else may.
const FILES: [&str; 3] = [CPUS, "cpuset.cpus.partition", "cpu.weight"];

/// The pod and what it may use.
struct Resized<'a> {
    pod: &'a Container,
    threads: Vec<u32>,
}

impl Resized<'_> {
    fn masks(&self) -> Vec<BTreeSet<u32>> {
        self.threads.iter().map(|thread| cpus_of(*thread)).collect()
    }

    /// Sets the CPUs, and gives how long it took until that was followed. `used`: of these some must be used then.
    fn set(&self, cpus: &[u32], used: &[u32]) -> Duration {
        self.pod.group.set(CPUS, &list(cpus));
        let begin = Instant::now();
        wait_until_seen("the change is followed", |seen| {
            let masks = self.masks();
            *seen = format!("{masks:?} within {cpus:?}");
            let within = |mask: &BTreeSet<u32>| mask.iter().all(|cpu| cpus.contains(cpu));
            assert!(masks.iter().all(within), "let out of {cpus:?}: {masks:?}");
            let is_used = |mask: &BTreeSet<u32>| mask.iter().any(|cpu| used.contains(cpu));
            masks.iter().all(|mask| mask.len() == 1) && masks.iter().any(is_used)
        });
        begin.elapsed()
    }
}

/// What is set of the groups of the containers.
fn settings(of: &[&Container]) -> Vec<String> {
    of.iter().flat_map(|container| FILES.map(|file| container.group.get(file))).collect()
}

pub fn many_times(given: &Given) {
    let is_timed = given.scope == Scope::Pods;
    let times = if is_timed { 100 } else { 3 };
    let mut node = Node::start(SETTINGS, RULES);
    let all = given.cpus();
    let (most, few) = (&all[..all.len() - 1], &all[..all.len() / 2]);
    let count = (all.len() / 2).to_string();
    let load = node.run(&Spec::of("load"), &["group", "all", &count, "dozer", "nibbler"]);
    let pod = node.run(&Spec::of("resized"), &["group", "all", &THREADS.to_string(), "sleeper"]);
    wait_until("all have begun", || workers(&pod.program, "sleeper").len() == THREADS);
    let resized = Resized { threads: workers(&pod.program, "sleeper"), pod: &pod };
    resized.set(most, most);
    let before = settings(&[&load, &pod]);
    let mut took = Vec::new();
    for _ in 0..times {
        took.push(resized.set(few, few));
        took.push(resized.set(most, &most[few.len()..]));
        assert_eq!(settings(&[&load, &pod]), before, "no other process writes them");
    }
    took.sort_unstable();
    let ms = |at: usize| took[at].as_millis();
    let (half, last) = (took.len() / 2, took.len() - 1);
    println!(
        "{} changes, followed in {} to {} ms, median {}",
        took.len(),
        ms(0),
        ms(last),
        ms(half)
    );
    println!("moves: {}", node.daemon.status()["moves"]);
    assert!(!is_timed || took[last] <= WITHIN, "{took:?}");
    node.daemon.end();
    for thread in &resized.threads {
        assert_eq!(cpus_of(*thread), most.iter().copied().collect(), "may use all of it again");
    }
    // A mask that stayed would show now.
    pod.group.set(CPUS, &list(&all));
    [&pod, &load].iter().for_each(|container| has_own_masks(&container.program));
}
