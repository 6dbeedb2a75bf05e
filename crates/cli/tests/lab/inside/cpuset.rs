//! Cpusets change while their programs are managed.

use std::collections::BTreeSet;
use std::fs;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use crate::given::Given;
use crate::settings::{changed, of_tree, own};
use crate::test_folder::{TestFolder, send, stderr, wait_until};

use super::cgroup::{Group, begin_namespace};
use super::siblings::{cpus, cpus_of, list, wait_until_seen, workers};
use super::skip;
use super::workers::command;

/// How EINVAL is reported.
const INVALID: &str = "(os error 22)";
/// How often a partition is made at most, until a thread was refused.
const TIMES: u32 = 10;

/// The program's group loses half of its CPUs and gets them back: never is a
/// thread let out of what it has, and at the end each may use all of it.
pub fn shrinks(given: &Given) {
    let group = Group::new("cpuset", &["cpuset"]);
    shrinks_around(given, &group, || group.take(std::process::id()), |_| {});
}

/// The same, with a manager in a cgroup namespace, from which the group's path leads out.
pub fn shrinks_outside(given: &Given) {
    let (own, group) = (Group::new("own", &["cpuset"]), Group::new("cpuset", &["cpuset"]));
    let enter = || {
        own.take(std::process::id());
        begin_namespace();
    };
    shrinks_around(given, &group, enter, |processes| {
        processes.iter().for_each(|process| group.take(*process));
        let path = fs::read_to_string(format!("/proc/{}/cgroup", processes[0])).unwrap();
        assert_eq!(path, "0::/../lab-cpuset\n");
    });
}

/// `before`: what is done before the program is started; `after`: with its processes, once all run.
fn shrinks_around(given: &Given, group: &Group, before: impl Fn(), after: impl Fn(&[u32])) {
    let place = TestFolder::new();
    let all = given.cpus();
    let (most, few) = (&all[..all.len() - 1], &all[..all.len() / 2]);
    let set = |cpus: &[u32]| group.set("cpuset.cpus", &list(cpus));
    set(most);
    before();
    let options = ["--policy", "random", "--quantum", "100ms"];
    let program =
        place.start(&mut place.run(&options, &command(&["group", "all", "4", "sleeper"])));
    let workers = || workers(&program, "sleeper");
    wait_until("all run", || workers().len() == 4);
    after(&[vec![program.id()], workers()].concat());
    let placed = |within: &[u32], seen: &mut String| {
        let masks: Vec<_> = workers().into_iter().map(cpus_of).collect();
        *seen = format!("{masks:?}");
        let right =
            |mask: &BTreeSet<u32>| mask.len() == 1 && within.contains(mask.first().unwrap());
        masks.len() == 4 && masks.iter().all(right)
    };
    let confined = |within: &[u32], times: u32| {
        for _ in 0..times {
            for (thread, now) in of_tree(program.id()) {
                let mask = cpus(&now.mask);
                let out = mask.iter().any(|cpu| !within.contains(cpu));
                assert!(!out, "thread {thread} was let out of {within:?}: {now:?}");
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    wait_until_seen("all are placed", |seen| placed(most, seen));
    set(few);
    confined(few, 50);
    wait_until_seen("all are placed again", |seen| placed(few, seen));
    set(most);
    confined(most, 50);
    wait_until("the CPUs that are back are used", || {
        workers().iter().any(|worker| cpus_of(*worker).iter().any(|cpu| !few.contains(cpu)))
    });
    place.signal_manager(Signal::TERM);
    for worker in workers() {
        assert_eq!(cpus_of(worker), most.iter().copied().collect(), "may use all of it again");
    }
}

/// A core is taken from all by an isolated partition, and given back: no thread is
/// placed there meanwhile, and all of it is used before and after. A thread that is sent there before
/// any thread noticed is refused with EINVAL, which is counted; that is not so if the cpusets
/// happen to be read at the very moment, so it may take another time.
pub fn isolated(given: &Given) {
    let place = TestFolder::new();
    let partition = Group::new("isolated", &["cpuset"]);
    let record = place.path("record");
    let policy = ["--policy", "random", "--quantum", "100ms"];
    let shown = ["--report", "json", "--record", record.to_str().unwrap()];
    let options = [policy, shown].concat();
    let mut run = place.run(&options, &command(&["group", "all", "8", "sleeper"]));
    let program = place.start(run.stderr(Stdio::piped()));
    let (taken, rest) = given.cores.split_last().unwrap();
    let rest = rest.concat();
    let masks = || -> Vec<_> { workers(&program, "sleeper").into_iter().map(cpus_of).collect() };
    let used = |cpus: &[u32]| {
        masks().iter().any(|mask| mask.len() == 1 && cpus.contains(mask.first().unwrap()))
    };
    partition.set("cpuset.cpus", &list(taken));
    let mut times = 0;
    while times == 0 || !fs::read_to_string(&record).unwrap().contains(INVALID) {
        times += 1;
        assert!(times <= TIMES, "no thread was ever refused");
        wait_until("a thread is placed on the core", || used(taken));
        partition.set("cpuset.cpus.partition", "isolated");
        let made = partition.get("cpuset.cpus.partition");
        if made != "isolated" {
            skip(&format!("the kernel makes no isolated partition: {made}"));
        }
        for _ in 0..50 {
            let masks = masks();
            assert_eq!(masks.len(), 8, "all run on");
            let there = masks.iter().any(|mask| mask.iter().any(|cpu| taken.contains(cpu)));
            assert!(!there, "on {taken:?}: {masks:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
        wait_until_seen("all are placed on the other cores", |seen| {
            let masks = masks();
            *seen = format!("{masks:?}");
            masks.iter().all(|mask| mask.len() == 1 && rest.contains(mask.first().unwrap()))
        });
        partition.set("cpuset.cpus.partition", "member");
        wait_until("the core that is back is used", || used(taken));
    }
    place.signal_manager(Signal::TERM);
    assert!(changed(program.id(), &own()).is_empty(), "{:?}", changed(program.id(), &own()));
    workers(&program, "sleeper").into_iter().for_each(|worker| send(worker, Signal::KILL));
    let said = stderr(&program.output());
    let report: Value = serde_json::from_str(&said).expect("a report");
    let moves = &report["moves"];
    println!("partitions made: {times}; moves: {moves}");
    assert!(moves["done"].as_u64() > Some(0), "{said}");
    let reasons = moves["reasons"].as_object().expect("why moves were refused");
    let refused = reasons.iter().filter(|(why, _)| why.contains(INVALID));
    let refused: u64 = refused.filter_map(|(_, times)| times.as_u64()).sum();
    assert!(refused > 0 && moves["refused"].as_u64() >= Some(refused), "{said}");
}
