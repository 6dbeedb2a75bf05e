//! A cpuset shrinks and grows while its programs are managed.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use rustix::process::Signal;

use crate::given::Given;
use crate::place::{Place, wait_until};
use crate::settings::of_tree;

use super::siblings::{cpus, cpus_of, list, wait_until_seen, workers};
use super::skip;
use super::workers::command;

const ROOT: &str = "/sys/fs/cgroup";
const GROUP: &str = "/sys/fs/cgroup/lab";

fn write(file: &Path, text: &str) {
    fs::write(file, text).unwrap_or_else(|why| panic!("{text:?} to {}: {why}", file.display()));
}

/// A group with these CPUs.
fn group(cpus: &[u32]) {
    let controllers = fs::read_to_string(Path::new(ROOT).join("cgroup.controllers"));
    if !controllers.is_ok_and(|names| names.split_whitespace().any(|name| name == "cpuset")) {
        skip("the kernel has no cpusets");
    }
    write(&Path::new(ROOT).join("cgroup.subtree_control"), "+cpuset");
    fs::create_dir(GROUP).unwrap();
    set(cpus);
}

fn set(cpus: &[u32]) {
    write(&Path::new(GROUP).join("cpuset.cpus"), &list(cpus));
}

/// Removes what a scenario made, once its processes are gone.
pub fn remove_all() {
    // Most scenarios made none.
    let _ = fs::remove_dir(GROUP);
}

/// The program's group loses half of its CPUs and gets them back: never is a
/// thread let out of what it has, and at the end each may use all of it.
pub fn shrinks(given: &Given) {
    let place = Place::new();
    let all = given.cpus();
    let (most, few) = (&all[..all.len() - 1], &all[..all.len() / 2]);
    group(most);
    write(&Path::new(GROUP).join("cgroup.procs"), &std::process::id().to_string());
    let options = ["--policy", "random", "--quantum", "100ms"];
    let program =
        place.start(&mut place.run(&options, &command(&["group", "all", "4", "sleeper"])));
    let workers = || workers(&program, "sleeper");
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
            std::thread::sleep(std::time::Duration::from_millis(20));
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
