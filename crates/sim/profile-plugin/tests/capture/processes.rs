//! Threads, children, scripts, and what goes wrong.

use std::collections::BTreeSet;
use std::process::Command;

use symbiont_profile::capture::CaptureError;
use symbiont_profile::{OpClass, Phase, Profile, Thread};

use crate::or_skip;
use crate::support::{build, capture, profile, text, try_profile};

fn programs(profile: &Profile) -> BTreeSet<&str> {
    profile.threads.iter().map(|thread| thread.program.as_str()).collect()
}

#[test]
fn each_thread_is_observed() {
    or_skip!();
    let built = build(
        r#"#include <pthread.h>
        static void *work(void *rounds) {
            for (long i = 0; i < (long)rounds; i++) __asm__ volatile("" : : "r"(i));
            return 0;
        }
        int main(void) {
            pthread_t threads[3];
            for (long i = 0; i < 3; i++) pthread_create(&threads[i], 0, work, (void *)((i + 1) * 1000000));
            for (int i = 0; i < 3; i++) pthread_join(threads[i], 0);
            return 0;
        }"#,
    );
    let profile = profile(&[text(&built.program)]);
    let lengths: Vec<u64> = profile.threads.iter().map(Thread::instructions).collect();
    assert_eq!(lengths.len(), 4, "{lengths:?}");
    // Three instructions a round or so; the main thread only starts them.
    let ratio = lengths[0] as f64 / lengths[2] as f64;
    assert!((2.7..3.3).contains(&ratio), "{lengths:?}");
    assert_eq!(profile.gaps, Vec::<String>::new());
}

/// Micro-operations of each class per instruction, mispredictions, and misses of caches of some
/// sizes, all of the whole program.
fn summary(profile: &Profile) -> Vec<f64> {
    let executed = profile.phases.iter().map(|phase| phase.instructions).sum::<u64>() as f64;
    let sum = |of: &dyn Fn(&Phase) -> f64| profile.phases.iter().map(of).sum::<f64>() / executed;
    let mut summary: Vec<f64> =
        OpClass::ALL.into_iter().map(|class| sum(&|phase| phase.mix.count(class) as f64)).collect();
    summary.push(sum(&|phase| phase.branches.mispredicted[0] as f64));
    for reach in [1e2, 1e3, 1e4, 1e5] {
        let misses = |phase: &Phase| {
            phase.data.line_64.curve().misses(reach) * phase.data.line_64.accesses as f64
        };
        summary.push(sum(&misses));
    }
    summary
}

#[test]
fn threads_are_observed_again_within_two_percent() {
    or_skip!();
    // They wait for each other: the number of waits of each differs from run to run.
    let built = build(
        r#"#include <pthread.h>
        static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
        static pthread_barrier_t all;
        static long sum, cells[3][4096];
        static void *work(void *number) {
            long *mine = cells[(long)number];
            for (int round = 0; round < 20; round++) {
                for (int i = 0; i < 40000; i++) mine[i * 17 % 4096] += i;
                pthread_mutex_lock(&lock);
                for (int i = 0; i < 4096; i++) sum += mine[i];
                pthread_mutex_unlock(&lock);
                pthread_barrier_wait(&all);
            }
            return 0;
        }
        int main(void) {
            pthread_t threads[3];
            pthread_barrier_init(&all, 0, 3);
            for (long i = 0; i < 3; i++) pthread_create(&threads[i], 0, work, (void *)i);
            for (int i = 0; i < 3; i++) pthread_join(threads[i], 0);
            return 0;
        }"#,
    );
    let [one, two] = [(); 2].map(|()| profile(&[text(&built.program)]));
    let near = |a: f64, b: f64| (a - b).abs() <= 0.02 * a.max(b).max(0.01);
    assert!(near(one.instructions as f64, two.instructions as f64));
    assert_eq!(one.threads.len(), two.threads.len());
    for (first, second) in summary(&one).into_iter().zip(summary(&two)) {
        assert!(near(first, second), "{first} and then {second} per instruction");
    }
}

#[test]
fn forked_children_are_observed() {
    or_skip!();
    let built = build(
        r#"#include <sys/wait.h>
        #include <unistd.h>
        int main(void) {
            for (int i = 0; i < 2; i++)
                if (fork() == 0) {
                    for (long j = 0; j < 1000000; j++) __asm__ volatile("" : : "r"(j));
                    _exit(0);
                }
            while (wait(0) > 0) {}
            return 0;
        }"#,
    );
    let profile = profile(&[text(&built.program)]);
    let processes: BTreeSet<u32> = profile.threads.iter().map(|thread| thread.process).collect();
    assert_eq!(processes.len(), 3);
    assert!(profile.threads[1].instructions() > 2_000_000);
    assert_eq!(profile.gaps, Vec::<String>::new());
}

#[test]
fn programs_that_children_execute_are_observed_or_reported() {
    or_skip!();
    let profile = profile(&["sh", "-c", "seq 2000 | sort -n | wc -l"]);
    let found = programs(&profile);
    if profile.gaps.is_empty() {
        for name in ["seq", "sort", "wc"] {
            assert!(found.contains(name), "{name} is missing in {found:?}");
        }
    } else {
        eprintln!("not followed here: {}", profile.gaps[0]);
        assert_eq!(profile.gaps.len(), 3, "{:?}", profile.gaps);
        assert!(profile.gaps.iter().all(|gap| gap.contains("executed another program")));
    }
}

#[test]
fn a_script_runs_in_its_interpreter() {
    or_skip!();
    let dir = tempfile::tempdir().unwrap();
    let (text_of_it, script) = (dir.path().join("text"), dir.path().join("script"));
    std::fs::write(&text_of_it, "#!/bin/sh -e\n[ \"$1\" = 'a b' ] || exit 3\n").unwrap();
    // Written by a process of its own: no thread of this one has it open when it runs.
    let install =
        || Command::new("install").args(["-m", "755"]).arg(&text_of_it).arg(&script).status();
    assert!(install().unwrap().success());
    let profile = profile(&[text(&script), "a b"]);
    assert_eq!(profile.program, "script");
    assert!(profile.instructions > 10_000);
}

#[test]
fn a_failed_execution_loses_and_doubles_nothing() {
    or_skip!();
    let built = build(
        r#"#include <unistd.h>
        int main(void) {
            for (int i = 0; i < 3; i++) execl("/nowhere", "nowhere", (char *)0);
            for (long j = 0; j < 1000000; j++) __asm__ volatile("" : : "r"(j));
            return 0;
        }"#,
    );
    let profile = profile(&[text(&built.program)]);
    assert_eq!(profile.gaps, Vec::<String>::new());
    assert!((2_000_000..5_000_000).contains(&profile.instructions), "{}", profile.instructions);
}

#[test]
fn a_program_that_closes_everything_is_observed() {
    or_skip!();
    let built = build(
        r#"#include <unistd.h>
        #include <fcntl.h>
        int main(void) {
            for (int fd = 0; fd < 256; fd++) close(fd);
            open("/dev/null", O_RDWR);
            for (long j = 0; j < 3000000; j++) __asm__ volatile("" : : "r"(j));
            return 0;
        }"#,
    );
    let profile = profile(&[text(&built.program)]);
    assert!(profile.instructions > 9_000_000);
    assert_eq!(profile.gaps, Vec::<String>::new());
}

#[test]
fn a_child_that_is_killed_is_reported() {
    or_skip!();
    let built = build(
        r#"#include <signal.h>
        #include <sys/wait.h>
        #include <unistd.h>
        int main(void) {
            if (fork() == 0) kill(getpid(), SIGKILL);
            wait(0);
            return 0;
        }"#,
    );
    let gaps = profile(&[text(&built.program)]).gaps;
    assert_eq!(gaps.len(), 1, "{gaps:?}");
    assert!(gaps[0].contains("killed"), "{gaps:?}");
}

#[test]
fn a_failing_program_gives_no_profile() {
    or_skip!();
    let error = try_profile(&["sh", "-c", "exit 3"]).unwrap_err();
    assert!(matches!(error, CaptureError::Failed { .. }), "{error}");
    assert!(error.to_string().contains("exit status: 3"), "{error}");
}

#[test]
fn the_environment_is_fixed_but_for_what_is_added() {
    or_skip!();
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    let mut capture = capture(&["env".into()]);
    capture.variables = vec![("ADDED".into(), "1".into())];
    capture.stdout = Some(out.clone());
    capture.run(|_| {}).unwrap();
    let environment = std::fs::read_to_string(out).unwrap();
    let names: BTreeSet<&str> =
        environment.lines().filter_map(|line| line.split('=').next()).collect();
    assert!(names.contains("ADDED") && names.contains("PYTHONHASHSEED"), "{names:?}");
    assert!(!names.contains("CARGO_MANIFEST_DIR"), "{names:?}");
}
