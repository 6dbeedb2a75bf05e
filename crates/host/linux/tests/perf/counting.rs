//! One group on one thread.

use std::time::{Duration, Instant};

use procfs::process::Process;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use symbiont_linux::perf::{Group, GroupOptions, HARDWARE, Modes, Reason, Spec};

use crate::support::{Worker, burn, options, skip};

/// Faults that the thread's own work between two readings may add.
const OTHER_FAULTS: u64 = 16;

/// Writes to so many pages that were not used before.
fn touch(pages: usize) {
    let page = rustix::param::page_size();
    // Never freed: a later call must not get the same memory.
    let memory: &mut Vec<u8> = Box::leak(Box::new(Vec::with_capacity(pages * page)));
    for byte in memory.spare_capacity_mut().iter_mut().step_by(page) {
        std::hint::black_box(byte.write(1));
    }
}

#[test]
fn touched_pages_are_counted() {
    let Some(options) = options() else { return };
    // Huge pages would make one fault of many.
    if rustix::thread::disable_transparent_huge_pages(true).is_err() {
        return skip("huge pages cannot be switched off");
    }
    let worker = Worker::spawn();
    let group = Group::open(worker.number, &[Spec::page_faults()], options).unwrap();
    for pages in [100, 1000, 5000] {
        let before = group.read().unwrap();
        worker.run(move || touch(pages));
        let faults = group.read().unwrap().since(&before).unwrap().count("page-faults").unwrap();
        let pages = pages as u64;
        assert!((pages..=pages + OTHER_FAULTS).contains(&faults), "{pages} pages, {faults} faults");
    }
}

#[test]
fn the_task_clock_is_the_cpu_time() {
    let Some(options) = options() else { return };
    let worker = Worker::spawn();
    let start = Instant::now();
    let group = Group::open(worker.number, &[Spec::task_clock()], options).unwrap();
    let run_time = worker.run(|| {
        let run_time = burn(Duration::from_millis(50));
        std::thread::sleep(Duration::from_millis(200));
        run_time
    });
    let reading = group.read().unwrap();
    let passed = start.elapsed() - Duration::from_millis(200);
    let clock = Duration::from_nanos(reading.count("task-clock").unwrap());
    // Interrupts and time stolen by a hypervisor are in one and not the other.
    assert!(clock >= run_time.mul_f64(0.9), "{clock:?} of {run_time:?}");
    assert!(clock <= passed, "{clock:?} in {passed:?}");
    assert_eq!(reading.enabled, reading.running, "software events are never multiplexed");
}

#[test]
fn switches_and_migrations_are_counted() {
    let Some(options) = options().filter(|options| options.kernel_side) else {
        return skip("the kernel's side may not be counted");
    };
    let worker = Worker::spawn();
    let switches = |number| {
        let task = Process::myself().unwrap().task_from_tid(number).unwrap();
        let status = task.status().unwrap();
        status.voluntary_ctxt_switches.unwrap() + status.nonvoluntary_ctxt_switches.unwrap()
    };
    let number = i32::try_from(worker.number).unwrap();
    let specs = [Spec::context_switches(), Spec::migrations()];
    let outer = switches(number);
    let group = Group::open(worker.number, &specs, options).unwrap();
    let (inner, flips) = worker.run(move || {
        let all = sched_getaffinity(None).unwrap();
        let mut cpus = (0..CpuSet::MAX_CPU).filter(|&cpu| all.is_set(cpu));
        let pair = [cpus.next(), cpus.next()].map(|cpu| {
            let mut one = CpuSet::new();
            cpu.into_iter().for_each(|cpu| one.set(cpu));
            one
        });
        let before = switches(number);
        let mut flips = 0;
        for _ in 0..20 {
            std::thread::sleep(Duration::from_millis(1));
            for one in pair.iter().filter(|one| one.count() == 1) {
                sched_setaffinity(None, one).unwrap();
                flips += u64::from(pair[1].count() == 1);
            }
        }
        (switches(number) - before, flips)
    });
    let reading = group.read().unwrap();
    let outer = switches(number) - outer;
    let counted = reading.count("context-switches").unwrap();
    assert!(inner >= 20 && (inner - 1..=outer + 1).contains(&counted), "{inner} {counted} {outer}");
    let migrations = reading.count("cpu-migrations").unwrap();
    // Before the first flip it may be on either, and move by itself.
    assert!(migrations + 1 >= flips, "{migrations} of {flips}");
    assert!(flips == 0 || migrations <= flips + 20, "{migrations} of {flips}");
}

#[test]
fn a_refused_event_leaves_the_others() {
    let Some(options) = options() else { return };
    let worker = Worker::spawn();
    let unknown = Spec::new("no-such-event", HARDWARE, 0xffff).in_modes(Modes::User);
    let faults = [Spec::alignment_faults(), Spec::emulation_faults()];
    let specs = [&[unknown.clone(), Spec::task_clock()][..], &faults].concat();
    let group = Group::open(worker.number, &specs, options).unwrap();
    let [missing] = group.missing() else { panic!("{:?}", group.missing()) };
    assert_eq!((missing.thread, &*missing.event), (worker.number, "no-such-event"));
    worker.run(|| burn(Duration::from_millis(1)));
    let reading = group.read().unwrap();
    let names: Vec<_> = reading.counts.iter().map(|(name, _)| &**name).collect();
    assert_eq!(names, ["task-clock", "alignment-faults", "emulation-faults"]);
    assert_eq!(reading.count("no-such-event"), None);
    assert!(Group::open(worker.number, &[unknown], options).is_err());
    assert!(Group::open(worker.number, &[], options).is_err());
}

#[test]
fn kernel_side_events_are_absent_without_the_kernels_side() {
    if options().is_none() {
        return;
    }
    let worker = Worker::spawn();
    let options = GroupOptions { kernel_side: false, enabled: true };
    let specs = [Spec::context_switches(), Spec::page_faults(), Spec::migrations()];
    let group = Group::open(worker.number, &specs, options).unwrap();
    let missing: Vec<_> = group.missing().iter().map(|e| (&*e.event, e.reason)).collect();
    let kernel = Reason::KernelSide;
    assert_eq!(missing, [("context-switches", kernel), ("cpu-migrations", kernel)]);
    assert_eq!(group.read().unwrap().counts.len(), 1);
}

#[test]
fn a_group_counts_only_while_it_is_enabled() {
    let Some(options) = options() else { return };
    let worker = Worker::spawn();
    let options = GroupOptions { enabled: false, ..options };
    let group = Group::open(worker.number, &[Spec::task_clock()], options).unwrap();
    let work = || worker.run(|| burn(Duration::from_millis(5)));
    work();
    let idle = group.read().unwrap();
    assert_eq!((idle.count("task-clock"), idle.running), (Some(0), Duration::ZERO));
    group.enable().unwrap();
    work();
    group.disable().unwrap();
    let counted = group.read().unwrap();
    assert!(counted.count("task-clock").unwrap() > 0);
    work();
    assert_eq!(group.read().unwrap().count("task-clock"), counted.count("task-clock"));
}

#[test]
fn the_last_counts_stay_readable_and_the_gone_cannot_be_opened() {
    let Some(options) = options() else { return };
    let worker = Worker::spawn();
    let (number, specs) = (worker.number, [Spec::task_clock()]);
    let group = Group::open(number, &specs, options).unwrap();
    worker.run(|| burn(Duration::from_millis(1)));
    drop(worker);
    assert!(group.read().unwrap().count("task-clock").unwrap() > 0);
    let gone = Group::open(i32::MAX as u32, &specs, options).unwrap_err();
    assert!(gone.reason.is_gone() && gone.to_string().contains("the thread is gone"), "{gone}");
}
