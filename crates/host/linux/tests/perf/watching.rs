//! Many threads, quantum by quantum.

use std::collections::BTreeSet;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use symbiont_linux::perf::{
    Alive, Group, GroupOptions, Sharing, Spec, Watch, WatchOptions, descriptor_budget,
};

use crate::support::{Worker, burn, cpu_time, options};

fn watch(groups: Vec<Vec<Spec>>, group: GroupOptions, descriptors: usize) -> Watch {
    let options = WatchOptions { group, sharing: Sharing::Kernel, descriptors, stay: 2 };
    Watch::new(groups, options)
}

fn alive<'a>(workers: impl IntoIterator<Item = &'a Worker>) -> Vec<Alive> {
    let alive = |worker: &Worker| Alive { thread: worker.id(), run_time: Duration::ZERO };
    workers.into_iter().map(alive).collect()
}

#[test]
fn threads_come_and_go() {
    let Some(options) = options() else { return };
    let mut watch = watch(vec![vec![Spec::task_clock(), Spec::page_faults()]], options, 100);
    let mut workers: Vec<_> = (0..4).map(|_| Worker::spawn()).collect();
    for _ in 0..20 {
        let old: BTreeSet<_> = workers.iter().map(Worker::id).collect();
        watch.end_quantum(&alive(&workers));
        assert!(watch.watched() < 4 || watch.descriptors() == 8);
        watch.end_quantum(&alive(&workers));
        assert_eq!((watch.watched(), watch.waiting(), watch.descriptors()), (4, 0, 8));
        for worker in &workers {
            worker.run(|| burn(Duration::from_micros(100)));
        }
        let counted = watch.end_quantum(&alive(&workers));
        assert_eq!(counted.keys().copied().collect::<BTreeSet<_>>(), old);
        for counted in counted.values() {
            let group = counted.groups[0].as_ref().unwrap();
            assert_eq!((group.age, counted.missing.len()), (0, 0));
            assert!(group.change.as_ref().unwrap().count("task-clock").unwrap() >= 90_000);
        }
        workers.remove(0);
        workers.push(Worker::spawn());
    }
    watch.end_quantum(&[]);
    assert_eq!((watch.watched(), watch.descriptors()), (0, 0));
}

#[test]
fn the_last_counts_of_a_thread_are_reported_once() {
    let Some(options) = options() else { return };
    let mut watch = watch(vec![vec![Spec::task_clock()]], options, 100);
    let (worker, brief) = (Worker::spawn(), Worker::spawn());
    let id = worker.id();
    watch.end_quantum(&alive([&worker]));
    watch.end_quantum(&alive([&worker, &brief]));
    watch.end_quantum(&alive([&worker, &brief]));
    assert!(watch.take_ended().is_empty());
    worker.run(|| burn(Duration::from_millis(20)));
    drop(worker);
    // Opened a moment ago: it could be any thread with its number.
    drop(brief);
    assert!(watch.end_quantum(&[]).is_empty());
    let ended = watch.take_ended();
    let [(thread, counted)] = &ended[..] else { panic!("{ended:?}") };
    assert_eq!(*thread, id);
    let group = counted.groups[0].as_ref().unwrap();
    let clock = group.change.as_ref().unwrap().count("task-clock").unwrap();
    assert!(clock >= 18_000_000, "{clock} ns");
    assert!(group.coverage.is_some_and(|coverage| coverage > 0.9));
    assert!(watch.take_ended().is_empty());
    assert_eq!(watch.descriptors(), 0);
}

#[test]
fn a_thread_that_ended_unseen_is_no_error() {
    let Some(options) = options() else { return };
    let mut watch = watch(vec![vec![Spec::task_clock()]], options, 100);
    let worker = Worker::spawn();
    let seen = alive([&worker]);
    watch.end_quantum(&seen);
    // A number that no thread has.
    let gone = seen.iter().map(|alive| {
        let mut alive = *alive;
        alive.thread.thread = i32::MAX as u32;
        alive
    });
    let gone: Vec<_> = gone.collect();
    for _ in 0..3 {
        assert!(watch.end_quantum(&gone).is_empty());
    }
    assert!(watch.refusal(gone[0].thread).is_some_and(|error| error.reason.is_gone()));
    assert_eq!(watch.watched(), 0);
}

#[test]
fn a_number_used_again_is_another_thread() {
    let Some(options) = options() else { return };
    let mut watch = watch(vec![vec![Spec::task_clock()]], options, 100);
    let worker = Worker::spawn();
    let (first, mut second) = (alive([&worker]), alive([&worker]));
    second[0].thread.born += 1;
    watch.end_quantum(&first);
    watch.end_quantum(&first);
    worker.run(|| burn(Duration::from_millis(20)));
    assert!(watch.end_quantum(&second).is_empty(), "the counts are the first one's");
    assert_eq!(watch.watched(), 0);
    watch.end_quantum(&second);
    worker.run(|| burn(Duration::from_millis(1)));
    let counted = watch.end_quantum(&second);
    let clock = counted[&second[0].thread].groups[0].as_ref().unwrap().reading.count("task-clock");
    assert!(clock.is_some_and(|clock| clock > 0));
}

#[test]
fn two_thousand_threads_share_the_budget() {
    let Some(options) = options() else { return };
    let specs = vec![
        Spec::task_clock(),
        Spec::page_faults(),
        Spec::alignment_faults(),
        Spec::emulation_faults(),
        Spec::context_switches(),
        Spec::migrations(),
    ];
    let budget = descriptor_budget(200).min(9_000);
    let mut watch = watch(vec![specs], options, budget);
    let workers: Vec<_> = (0..2_000).map(|_| Worker::spawn()).collect();
    let all = alive(&workers);
    let mut counted = BTreeSet::new();
    let turns = 2 * (2_000 / (budget / 6).max(1) + 2);
    for _ in 0..turns {
        counted.extend(watch.end_quantum(&all).into_keys());
        assert!(watch.descriptors() <= budget);
        assert!(watch.watched() <= budget / 6);
    }
    assert_eq!(watch.watched() + watch.waiting(), 2_000);
    assert_eq!(counted.len(), 2_000, "every thread had a turn");
}

/// Set in the child that has few descriptors.
const FEW: &str = "SYMBIONT_TEST_FEW_DESCRIPTORS";

#[test]
fn few_descriptors_are_enough() {
    let Some(options) = options() else { return };
    if std::env::var_os(FEW).is_none() {
        let name = "watching::few_descriptors_are_enough";
        let mut child = Command::new(std::env::current_exe().unwrap());
        let done = child.args(["--exact", name]).env(FEW, "1").output().unwrap();
        assert!(done.status.success(), "{done:?}");
        return;
    }
    let maximum = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: Some(48), maximum }).unwrap();
    assert_eq!(descriptor_budget(0), 0, "below the reserve nothing is left");
    // A budget far beyond what the kernel gives.
    let mut watch = watch(vec![vec![Spec::task_clock(), Spec::page_faults()]], options, 1_000);
    let workers: Vec<_> = (0..40).map(|_| Worker::spawn()).collect();
    let mut counted = BTreeSet::new();
    for quantum in 0..40 {
        counted.extend(watch.end_quantum(&alive(&workers)).into_keys());
        assert!(watch.descriptors() < 48);
        assert!(quantum == 0 || watch.watched() > 0);
        std::fs::File::open("/proc/self/stat").expect("some descriptors are left to others");
    }
    assert_eq!(counted.len(), 40, "every thread had a turn");
}

#[test]
fn rotation_covers_each_group() {
    let Some(group) = options() else { return };
    let groups = vec![
        vec![Spec::task_clock()],
        vec![Spec::page_faults()],
        vec![Spec::task_clock(), Spec::page_faults()],
    ];
    let options = WatchOptions { group, sharing: Sharing::ByQuantum, descriptors: 100, stay: 2 };
    let mut watch = Watch::new(groups, options);
    let (worker, stop) = (Worker::spawn(), Arc::new(AtomicBool::new(false)));
    let clock = Group::open(worker.number, &[Spec::task_clock()], group).unwrap();
    let now = || clock.read().unwrap().running;
    let seen = stop.clone();
    let done = worker.begin(move || {
        while !seen.load(Ordering::Relaxed) {
            std::hint::spin_loop();
        }
        cpu_time()
    });
    // Each group's time lies between what surely and what at most fell into its
    // quanta; the clock is read before and after each end.
    let (mut least, mut most) = ([Duration::ZERO; 3], [Duration::ZERO; 3]);
    let mut last = None;
    for quantum in 0..20_usize {
        let target = now() + Duration::from_millis(5);
        while now() < target {
            std::thread::sleep(Duration::from_millis(1));
        }
        let (before, alive) = (now(), Alive { thread: worker.id(), run_time: now() });
        let counted = watch.end_quantum(&[alive]);
        let after = now();
        if let Some((earlier, later)) = last.replace((before, after)).filter(|_| quantum >= 2) {
            least[quantum % 3] += before.saturating_sub(later);
            most[quantum % 3] += after - earlier;
        }
        let Some(counted) = counted.get(&worker.id()) else {
            assert!(quantum < 2, "watched from the second quantum's end on");
            continue;
        };
        let groups: Vec<_> = counted.groups.iter().map(|group| group.as_ref().unwrap()).collect();
        assert_eq!(groups[quantum % 3].age, 0);
        for (index, group) in groups.iter().enumerate() {
            let running = group.reading.running;
            let bounds = least[index]..=most[index];
            assert!(bounds.contains(&running), "{index} in {quantum}: {running:?} {bounds:?}");
            if quantum >= 5 {
                assert_eq!(group.age as usize, (quantum + 3 - index) % 3);
                assert!(group.coverage.is_some_and(|coverage| coverage > 0.0 && coverage < 1.0));
            }
        }
        let sum: f64 = groups.iter().filter_map(|group| group.coverage).sum();
        assert!(sum <= 1.2 && (quantum < 5 || sum > 0.5), "coverage sums to {sum}");
    }
    stop.store(true, Ordering::Relaxed);
    assert!(done.recv().unwrap() > Duration::ZERO);
}
