//! All threads of a program are found, and no other program's.

use std::collections::BTreeSet;
use std::time::Duration;

use symbiont_linux::observe::{Observed, WatchError, WatchOptions, Watcher};
use symbiont_machine::{ProgramId, RunState};

use crate::support::{PROGRAM, RecordingHook, Running, by_both_methods, scanning, until};

by_both_methods! {
    fn threads_present_and_future_are_found(watcher: Watcher, hook: RecordingHook) {
        let mut early = Running::own("threads 3");
        early.go();
        early.says("ready");
        watcher.enrol(PROGRAM, early.process()).unwrap();
        let before = watcher.read().unwrap().len();
        // Three, the main thread, and perhaps one of the test harness.
        assert!((4..6).contains(&before), "{before}");

        let mut late = Running::own("threads 3");
        watcher.enrol(ProgramId(8), late.process()).unwrap();
        late.go();
        late.says("ready");
        let both = until(&mut watcher, "all there", |all| all.len() == 2 * before);
        for thread in &both {
            let early = thread.id.process == early.process();
            assert_eq!(thread.program, if early { PROGRAM } else { ProgramId(8) });
        }
        assert!(hook.notes(|notes| notes.births.len()) >= both.len());
        assert!(both.is_sorted_by_key(|thread| thread.id));
    }
}

by_both_methods! {
    fn a_thread_in_the_place_of_another_is_found(watcher: Watcher, _hook: RecordingHook) {
        let mut program = Running::own("threads 2");
        watcher.enrol(PROGRAM, program.process()).unwrap();
        program.go();
        program.says("ready");
        let before: BTreeSet<_> =
            watcher.read().unwrap().into_iter().map(|thread| thread.id).collect();
        program.go();
        program.says("replaced");
        // The former may be seen for a moment after it was joined.
        until(&mut watcher, "replaced", |all| {
            let after = all.iter().map(|thread| thread.id).collect();
            all.len() == before.len() && before.difference(&after).count() == 1
        });
    }
}

by_both_methods! {
    /// Its state and its place may be of a read before; its times and a stop are not.
    fn a_thread_that_hardly_runs_is_reported_with_all_its_time(watcher: Watcher, _hook: RecordingHook) {
        let mut program = Running::own("ticking");
        watcher.enrol(PROGRAM, program.process()).unwrap();
        program.go();
        let number: u32 = program.says("ticks ").parse().unwrap();
        let file = format!("/proc/{}/task/{number}/schedstat", program.process());
        let switches = || {
            let text = std::fs::read_to_string(&file).unwrap();
            text.split_whitespace().nth(2).unwrap().parse::<u64>().unwrap()
        };
        let ticker = |all: &[Observed]| all.iter().find(|t| t.id.thread == number).copied();
        let first = ticker(&until(&mut watcher, "there", |all| ticker(all).is_some())).unwrap();
        for _ in 0..20 {
            std::thread::sleep(Duration::from_millis(10));
            let before = switches();
            let thread = ticker(&watcher.read().unwrap()).unwrap();
            let truth = before..=switches();
            assert!(truth.contains(&thread.switches), "{truth:?}, {thread:?}");
        }
        let last = ticker(&watcher.read().unwrap()).unwrap();
        assert!(last.switches > first.switches && last.run_time > first.run_time, "{first:?}, {last:?}");

        let process = i32::try_from(program.process()).unwrap();
        let process = rustix::process::Pid::from_raw(process).unwrap();
        rustix::process::kill_process(process, rustix::process::Signal::STOP).unwrap();
        until(&mut watcher, "stopped", |all| all.iter().all(|t| t.state == RunState::Stopped));
    }
}

by_both_methods! {
    fn a_sleeper_that_waits_for_a_cpu_is_seen_ready(watcher: Watcher, _hook: RecordingHook) {
        let mut program = Running::own("starved");
        watcher.enrol(PROGRAM, program.process()).unwrap();
        program.go();
        let sleeper: u32 = program.says("sleeper ").parse().unwrap();
        let state = |all: &[Observed]| {
            all.iter().find(|thread| thread.id.thread == sleeper).map(|thread| thread.state)
        };
        until(&mut watcher, "asleep", |all| state(all) == Some(RunState::Sleeping));
        assert_eq!(state(&watcher.read().unwrap()), Some(RunState::Sleeping));
        program.go();
        program.says("woken");
        // Most often it has not run since, and `schedstat` is as it was.
        assert_eq!(state(&watcher.read().unwrap()), Some(RunState::Runnable));
    }
}

by_both_methods! {
    fn children_are_found_and_leave(watcher: Watcher, hook: RecordingHook) {
        let mut program = Running::shell("sleep 1000 & echo child $!; read more; kill $!; wait; read end");
        watcher.enrol(PROGRAM, program.process()).unwrap();
        program.go();
        let child: u32 = program.says("child ").parse().unwrap();
        until(&mut watcher, "enrolled", |all| all.iter().any(|t| t.id.process == child));
        let birth = hook.notes(|notes| *notes.births.iter().find(|b| b.process == child).unwrap());
        assert_eq!(birth.parent_process, program.process());
        assert!([None, Some(program.process())].contains(&birth.parent_thread));
        program.go();
        until(&mut watcher, "left", |all| all.len() == 1);
        assert!(hook.notes(|notes| notes.ends.contains(&(child, child))));
    }
}

by_both_methods! {
    fn descendants_present_at_enrolment_are_found(watcher: Watcher, _hook: RecordingHook) {
        let mut program = Running::shell("sh -c 'sleep 1000 & echo grandchild $!; wait' & wait");
        program.go();
        let grandchild: u32 = program.says("grandchild ").parse().unwrap();
        watcher.enrol(PROGRAM, program.process()).unwrap();
        let all = watcher.read().unwrap();
        assert_eq!(all.len(), 3);
        assert!(all.iter().any(|thread| thread.id.process == grandchild));
    }
}

by_both_methods! {
    fn an_exec_makes_another_generation(watcher: Watcher, hook: RecordingHook) {
        let mut program = Running::shell("exec sh -c 'echo execed; read end'");
        watcher.enrol(PROGRAM, program.process()).unwrap();
        let before = watcher.read().unwrap()[0];
        program.go();
        program.says("execed");
        let after = until(&mut watcher, "execed", |all| all[0].id.generation == 1)[0];
        assert_eq!((before.id.process, before.id.born), (after.id.process, after.id.born));
        assert_eq!(after.ages.execed, Some(0));
        assert_eq!(watcher.read().unwrap()[0].ages.execed, Some(1));
        assert_eq!(hook.notes(|notes| notes.execs[0].candidates.clone()), [before.id.thread]);
    }
}

by_both_methods! {
    fn an_exec_from_another_thread_leaves_the_leader(watcher: Watcher, hook: RecordingHook) {
        let mut program = Running::own("exec-from-thread");
        watcher.enrol(PROGRAM, program.process()).unwrap();
        program.go();
        let caller: u32 = program.says("thread ").parse().unwrap();
        let before = until(&mut watcher, "found", |all| all.iter().any(|t| t.id.thread == caller));
        let born = before[0].id.born;
        program.go();
        program.says("execed");
        let after = until(&mut watcher, "alone", |all| all.len() == 1 && all[0].id.generation == 1);
        assert_eq!((after[0].id.thread, after[0].id.born), (program.process(), born));
        hook.notes(|notes| {
            assert_eq!(notes.execs.len(), 1);
            assert!(notes.execs[0].candidates.contains(&caller), "{notes:?}");
            assert!(notes.ends.contains(&(program.process(), caller)));
        });
    }
}

by_both_methods! {
    fn an_orphan_in_a_session_made_since_stays_enrolled(watcher: Watcher, _hook: RecordingHook) {
        if !std::path::Path::new("/usr/bin/setsid").exists() {
            println!("skipped: no setsid here");
            return;
        }
        let directory = tempfile::tempdir().unwrap();
        let seen = directory.path().join("seen");
        let mut program = Running::shell(&format!(
            "setsid sh -c 'echo leader $$; while [ ! -e {} ]; do sleep 0.01; done; sleep 1000 & \
             echo orphan $!' & read end",
            seen.display()
        ));
        watcher.enrol(PROGRAM, program.process()).unwrap();
        program.go();
        let leader: u32 = program.says("leader ").parse().unwrap();
        until(&mut watcher, "found", |all| {
            all.iter().any(|t| t.id.process == leader && t.session == leader)
        });
        std::fs::write(&seen, "").unwrap();
        let orphan: u32 = program.says("orphan ").parse().unwrap();
        until(&mut watcher, "an orphan", |all| {
            let is = |process| all.iter().any(|t| t.id.process == process);
            is(orphan) && !is(leader)
        });
        let orphan = rustix::process::Pid::from_raw(orphan.try_into().unwrap()).unwrap();
        rustix::process::kill_process(orphan, rustix::process::Signal::KILL).unwrap();
    }
}

by_both_methods! {
    fn run_states_and_times_are_reported(watcher: Watcher, _hook: RecordingHook) {
        use symbiont_machine::RunState;
        let mut program = Running::shell("while :; do :; done");
        watcher.enrol(PROGRAM, program.process()).unwrap();
        until(&mut watcher, "sleeping", |all| all[0].state == RunState::Sleeping);
        program.go();
        let first = until(&mut watcher, "runnable", |all| all[0].state == RunState::Runnable)[0];
        until(&mut watcher, "run on", |all| all[0].run_time > first.run_time);
        let process = rustix::process::Pid::from_raw(program.process().try_into().unwrap()).unwrap();
        rustix::process::kill_process(process, rustix::process::Signal::STOP).unwrap();
        let last = until(&mut watcher, "stopped", |all| all[0].state == RunState::Stopped)[0];
        assert!(last.cpu.is_some());
        assert!(last.ages.seen > 0);
    }
}

#[test]
fn a_process_that_is_gone_or_taken_is_refused() {
    let (mut watcher, _) = scanning();
    let program = Running::shell("read end");
    watcher.enrol(PROGRAM, program.process()).unwrap();
    watcher.enrol(PROGRAM, program.process()).unwrap();
    let again = watcher.enrol(ProgramId(8), program.process());
    assert!(matches!(again, Err(WatchError::Enrolled { program: PROGRAM, .. })), "{again:?}");
    let none = watcher.enrol(PROGRAM, u32::MAX);
    assert!(matches!(none, Err(WatchError::NoSuchProcess { .. })), "{none:?}");
}

#[test]
fn a_missing_proc_is_a_clear_error() {
    let folder = tempfile::tempdir().unwrap();
    let proc = folder.path().join("nothing");
    let options = WatchOptions { proc: proc.clone(), ..WatchOptions::default() };
    let error = Watcher::start(options, Box::new(())).unwrap_err().to_string();
    assert!(error.contains(&proc.display().to_string()), "{error}");
}
