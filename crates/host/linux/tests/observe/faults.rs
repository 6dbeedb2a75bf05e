//! Losses, storms, numbers used again, and places without privilege.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use symbiont_linux::observe::{
    Birth, BirthHook, Choice, Exec, Haste, Method, WatchOptions, Watcher,
};
use symbiont_machine::Ability;

use crate::census::{Counted, census};
use crate::support::{
    PROGRAM, RecordingHook, Running, by_both_methods, reporting, scanning, until,
};

by_both_methods! {
    fn a_thread_that_lives_through_a_quantum_is_read_at_its_end(watcher: Watcher, _hook: RecordingHook) {
        let mut program = Running::shell(
            "work() { while :; do sleep 0.05 | sleep 0.12 | (:; sleep 0.03); done; }; \
             work & work & work & work & wait",
        );
        let mut threads = Running::own("thread-storm 200 3000");
        for program in [&mut program, &mut threads] {
            watcher.enrol(PROGRAM, program.process()).unwrap();
            program.go();
        }
        let roots = [program.process(), threads.process()];
        let count = || census("/proc".as_ref(), &roots).unwrap();
        let mut compared = 0;
        let mut before = count();
        for _ in 0..20 {
            std::thread::sleep(Duration::from_millis(20));
            let read: std::collections::BTreeSet<_> = watcher
                .read()
                .unwrap()
                .iter()
                .map(|thread| thread.id)
                .map(|id| Counted { process: id.process, thread: id.thread, born: id.born })
                .collect();
            let after = count();
            for thread in before.intersection(&after) {
                assert!(read.contains(thread), "{thread:?} was missed");
                compared += 1;
            }
            before = after;
        }
        assert!(compared >= 20 * 6, "{compared}");
    }
}

by_both_methods! {
    fn a_number_used_again_is_another_thread(watcher: Watcher, hook: RecordingHook) {
        // The number of a child that has ended is free for a while.
        let mut ended = std::process::Command::new("/bin/true").spawn().unwrap();
        let number = ended.id();
        ended.wait().unwrap();
        let mut program = Running::own(&format!("reuse {number}"));
        watcher.enrol(PROGRAM, program.process()).unwrap();
        program.go();
        let said = program.says("number ");
        if said != "taken" {
            println!("skipped: cannot choose a number: {said}");
            return;
        }
        let is = |all: &[symbiont_linux::observe::Observed]| {
            all.iter().find(|thread| thread.id.process == number).copied()
        };
        let first = is(&until(&mut watcher, "there", |all| is(all).is_some())).unwrap();
        // Start times have a resolution of a clock tick.
        let births_before = hook.notes(|notes| notes.births.len());
        std::thread::sleep(Duration::from_millis(50));
        program.go();
        program.says("number taken");
        let second = is(&until(&mut watcher, "another", |all| {
            is(all).is_some_and(|thread| thread.id != first.id)
        }))
        .unwrap();
        assert!(second.id.born > first.id.born);
        assert!(second.ages.seen <= first.ages.seen + 1);
        assert!(second.run_time <= first.run_time + Duration::from_secs(1));
        hook.notes(|notes| {
            assert!(notes.births.len() > births_before);
            assert!(notes.ends.contains(&(number, number)));
        });
        watcher.read().unwrap();
        assert!(is(&watcher.read().unwrap()).is_some(), "it was lost again");
    }
}

by_both_methods! {
    fn short_lived_threads_leave_nothing_behind(watcher: Watcher, hook: RecordingHook) {
        let mut program = Running::own("thread-storm 5000 2000");
        watcher.enrol(PROGRAM, program.process()).unwrap();
        program.go();
        let start = Instant::now();
        let (mut most_enrolled, mut most_open) = (0, 0);
        while start.elapsed() < Duration::from_millis(2500) {
            std::thread::sleep(Duration::from_millis(20));
            watcher.read().unwrap();
            most_enrolled = most_enrolled.max(watcher.enrolled());
            most_open = most_open.max(watcher.kept_open());
        }
        let made: usize = program.says("made ").parse().unwrap();
        until(&mut watcher, "calm", |all| all.len() <= 2);
        assert!(watcher.enrolled() <= 3 && watcher.kept_open() <= 3);
        assert!(most_open <= 16, "{most_open}");
        assert!(most_enrolled <= 64, "{most_enrolled}");
        let births = hook.notes(|notes| notes.births.len());
        println!("{made} made, {births} births reported, {:?}", watcher.losses());
        if matches!(watcher.method(), Method::Connector { .. }) && watcher.losses().overruns == 0 {
            assert!(births >= made, "{births} of {made}");
        }
    }
}

/// A hook that is stuck in the first birth until it is let go.
struct Stuck {
    root: u32,
    born: Sender<u32>,
    go: Option<Receiver<()>>,
}

impl BirthHook for Stuck {
    fn born(&mut self, birth: &Birth) {
        if birth.process != self.root {
            let _ = self.born.send(birth.process);
            if let Some(go) = self.go.take() {
                let _ = go.recv();
            }
        }
    }
    fn execed(&mut self, _: &Exec) {}
    fn exited(&mut self, _: u32, _: u32) {}
}

#[test]
fn births_are_reported_without_a_read_with_and_without_haste() {
    let Some((mut watcher, hook)) = reporting(WatchOptions::default()) else { return };
    let mut program = Running::shell("while read more; do sleep 1000 & echo child $!; done");
    watcher.enrol(PROGRAM, program.process()).unwrap();
    program.go();
    for haste in [Haste::Soon, Haste::AtOnce, Haste::Soon] {
        watcher.hurry(haste);
        program.go();
        let child: u32 = program.says("child ").parse().unwrap();
        let deadline = Instant::now() + Duration::from_secs(30);
        while !hook.notes(|notes| notes.births.iter().any(|birth| birth.process == child)) {
            assert!(Instant::now() < deadline, "{haste:?}: no report of {child}");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

#[test]
fn an_overrun_is_made_good_by_a_scan() {
    let mut program = Running::own("fork-storm 300");
    let ((born, births), (go, wait)) = (channel(), channel());
    let hook = Stuck { root: program.process(), born, go: Some(wait) };
    let options = WatchOptions { buffer: 16 << 10, ..WatchOptions::default() };
    let mut watcher = Watcher::start(options, Box::new(hook)).unwrap();
    if let Method::Scan { why } = watcher.method() {
        println!("skipped: {why}");
        return;
    }
    watcher.enrol(PROGRAM, program.process()).unwrap();
    program.go();
    let stays: u32 = program.says("stays ").parse().unwrap();
    go.send(()).unwrap();
    let all = until(&mut watcher, "found again", |all| {
        all.len() == 2 && all.iter().any(|thread| thread.id.process == stays)
    });
    assert_eq!(all.iter().filter(|thread| thread.program == PROGRAM).count(), 2);
    let losses = watcher.losses();
    assert!(losses.overruns > 0 && losses.rescans > 0, "{losses:?}");
    assert!(births.try_iter().any(|process| process == stays), "its birth was not reported");
}

/// A hook that panics at the first birth of a child.
struct Defect {
    root: u32,
    panicked: Sender<()>,
    done: bool,
}

impl BirthHook for Defect {
    fn born(&mut self, birth: &Birth) {
        if birth.process != self.root && !std::mem::replace(&mut self.done, true) {
            let _ = self.panicked.send(());
            panic!("on purpose");
        }
    }
    fn execed(&mut self, _: &Exec) {}
    fn exited(&mut self, _: u32, _: u32) {}
}

#[test]
fn a_panic_of_the_reader_is_reported_and_births_are_found_by_scanning() {
    let mut program = Running::shell("while read more; do sleep 1000 & echo child $!; done");
    let (panicked, reported) = channel();
    let hook = Defect { root: program.process(), panicked, done: false };
    let mut watcher = Watcher::start(WatchOptions::default(), Box::new(hook)).unwrap();
    if let Method::Scan { why } = watcher.method() {
        println!("skipped: {why}");
        return;
    }
    watcher.enrol(PROGRAM, program.process()).unwrap();
    watcher.hurry(Haste::AtOnce);
    program.go();
    program.go();
    let child: u32 = program.says("child ").parse().unwrap();
    reported.recv_timeout(Duration::from_secs(30)).unwrap();
    until(&mut watcher, "found by a scan", |all| all.iter().any(|one| one.id.process == child));
    // The child may be found a moment before the reader's end is noted.
    let start = Instant::now();
    while !matches!(watcher.method(), Method::Scan { .. }) {
        assert!(start.elapsed() < Duration::from_secs(60), "the reader's end is not noted");
        watcher.read().unwrap();
    }
    let method = watcher.method();
    assert!(matches!(method, Method::Scan { why } if why.contains("panicked")), "{method:?}");
}

#[test]
fn few_descriptors_are_enough() {
    let options =
        WatchOptions { choice: Choice::Scan, kept_open: Some(2), ..WatchOptions::default() };
    let mut watcher = Watcher::start(options, Box::new(())).unwrap();
    let mut program = Running::own("threads 5");
    watcher.enrol(PROGRAM, program.process()).unwrap();
    program.go();
    program.says("ready");
    until(&mut watcher, "all there", |all| all.len() >= 6);
    assert!(watcher.read().unwrap().len() >= 6);
    assert_eq!(watcher.kept_open(), 2);
    drop(program);
    until(&mut watcher, "gone", <[_]>::is_empty);
    watcher.read().unwrap();
    assert_eq!((watcher.kept_open(), watcher.enrolled()), (0, 0));
}

#[test]
fn an_ordinary_user_can_watch() {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: the other tests show it");
        return;
    }
    let mut program = Running::own("watch 65534");
    program.go();
    println!("{}", program.says("method "));
    program.says("found its child");
}

#[test]
fn in_another_pid_namespace_it_scans() {
    let by = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc"];
    let Some(mut program) = Running::own_by(&by, "watch 0") else {
        println!("skipped: no namespaces here");
        return;
    };
    program.go();
    let method = program.says("method ");
    assert!(method.starts_with("Scan"), "{method}");
    program.says("found its child");
}

#[test]
fn without_schedstat_running_time_comes_in_ticks() {
    let root = tempfile::tempdir().unwrap();
    let task = root.path().join("10/task/10");
    std::fs::create_dir_all(&task).unwrap();
    let line = "10 (a) R 1 1 1 0 0 0 0 0 0 0 5 6 0 0 20 0 1 0 77 0 0 0 0 0 9 0 0 0 0 0 0 0 0 0 \
                0 1 0 0\n";
    std::fs::write(task.join("stat"), line).unwrap();
    std::fs::write(root.path().join("10/stat"), line).unwrap();
    let proc = root.path().to_owned();
    let options = WatchOptions { proc, choice: Choice::Scan, ..WatchOptions::default() };
    let mut watcher = Watcher::start(options, Box::new(())).unwrap();
    assert!(matches!(watcher.run_states(), Ability::Partial(_)));
    watcher.enrol(PROGRAM, 10).unwrap();
    let thread = watcher.read().unwrap()[0];
    let tick = Duration::from_secs(1) / rustix::param::clock_ticks_per_second() as u32;
    assert_eq!(
        (thread.run_time, thread.wait_time, thread.switches),
        (11 * tick, Duration::ZERO, 0)
    );
}

#[test]
fn scanning_says_what_it_cannot_do() {
    let (watcher, _) = scanning();
    let Ability::Partial(why) = watcher.enrolment() else { panic!("not partial") };
    assert!(why.contains("scanning was asked for"), "{why}");
}
