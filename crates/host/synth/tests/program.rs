//! The program as its users meet it.
#![allow(clippy::unwrap_used, reason = "helpers of tests may fail loudly")]

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use assert_cmd::prelude::*;
use serde_json::Value;
use symbiont_synth::{Ended, Report};

fn synth(args: &str) -> Command {
    let mut command = Command::cargo_bin("symbiont-synth").unwrap();
    command.args(args.split_whitespace());
    command
}

fn json(args: &str) -> Value {
    let out = synth(args).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    serde_json::from_slice(&out.stdout).unwrap()
}

/// Ends its program when the test ends, however it ends.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Running {
    fn start(args: &str) -> Self {
        Self(synth(args).stdout(Stdio::piped()).spawn().unwrap())
    }

    /// State letters of its threads, as in `/proc/PID/task/TID/stat`.
    fn states(&self) -> Vec<char> {
        let tasks = PathBuf::from(format!("/proc/{}/task", self.0.id()));
        let Ok(tasks) = tasks.read_dir() else { return Vec::new() };
        tasks
            .flatten()
            .filter_map(|task| std::fs::read_to_string(task.path().join("stat")).ok())
            .filter_map(|stat| stat.rsplit_once(") ")?.1.chars().next())
            .collect()
    }

    /// CPU time of the whole program, in clock ticks.
    fn cpu_ticks(&self) -> u64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.0.id())).unwrap();
        // utime and stime, counted from the state (proc_pid_stat(5)).
        let fields = stat.rsplit_once(") ").unwrap().1.split(' ').skip(11).take(2);
        fields.map(|ticks| ticks.parse::<u64>().unwrap()).sum()
    }

    fn wait_for(&self, what: &str, mut condition: impl FnMut(&[char]) -> bool) {
        let begin = Instant::now();
        while !condition(&self.states()) {
            assert!(begin.elapsed() < Duration::from_secs(30), "never saw {what}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

#[test]
fn phases_are_logged_in_order_if_asked() {
    let args = "--until-work 20000 --iterations-per-phase 500 --seed 3 --json --ratio 1:1";
    let report: Report = serde_json::from_value(json(&format!("{args} --threads 2"))).unwrap();
    assert!(report.log.is_none());
    let report: Report =
        serde_json::from_value(json(&format!("{args} --threads 2 --log"))).unwrap();
    let log = report.log.unwrap();
    let phases = report.serial.phases + report.parallel.phases;
    assert_eq!(log.len() as u64, phases);
    assert!(log.iter().all(|span| span.begin_ns <= span.end_ns));
    assert!(log.windows(2).all(|pair| pair[0].end_ns <= pair[1].begin_ns));
    let inside: u64 = log.iter().map(|span| span.end_ns - span.begin_ns).sum();
    assert!(inside as f64 * 1e-9 <= report.elapsed_s + 0.001);
}

#[test]
fn the_report_has_the_documented_shape() {
    let report = json("--ratio 4:1 --threads 2 --duration 200ms --phase 10ms --seed 9 --json");
    assert_eq!(report["ratio"], "4:1");
    assert_eq!(report["threads"], 2);
    assert_eq!(report["seed"], 9);
    assert_eq!(report["calibration"], "measured");
    assert_eq!(report["ended_by"], "time");
    for kind in ["serial", "parallel"] {
        for key in ["iterations", "iterations_per_s", "phases", "seconds"] {
            assert!(report[kind][key].is_number(), "{kind}.{key}");
        }
    }
    let report: Report = serde_json::from_value(report).unwrap();
    let sum = report.serial.iterations_per_s + report.parallel.iterations_per_s;
    assert!((report.iterations_per_s - sum).abs() < 1e-6);
    assert!(report.elapsed_s >= 0.2);
}

#[test]
fn fixed_work_is_done_exactly_and_split_the_same_each_time() {
    let of = |threads| {
        let args = "--until-work 20000 --iterations-per-phase 500 --seed 3 --json --ratio 1:1";
        let report = json(&format!("{args} --threads {threads}"));
        serde_json::from_value::<Report>(report).unwrap()
    };
    let (first, again) = (of(3), of(3));
    assert_eq!(first.ended_by, Ended::Work);
    assert_eq!(first.serial.iterations + first.parallel.iterations, 20_000);
    assert_eq!(first.serial.iterations, again.serial.iterations);
    assert_eq!(first.serial.phases, again.serial.phases);
    // Three times as much parallel work as serial, but for the last cycle.
    assert!(first.parallel.iterations > 2 * first.serial.iterations);
}

#[test]
fn threads_sleep_through_serial_phases() {
    let program = Running::start("--ratio 1:inf --threads 8 --duration 60s --rate 1000000");
    program.wait_for("eight threads", |states| states.len() == 8);
    program.wait_for("seven sleepers", |states| {
        states.iter().filter(|state| **state == 'S').count() == 7
    });
    for _ in 0..50 {
        let ready = program.states().iter().filter(|state| **state == 'R').count();
        assert!(ready <= 1, "{ready} threads ready in a serial phase");
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn all_threads_are_ready_in_a_parallel_phase() {
    let program =
        Running::start("--ratio inf:1 --threads 4 --duration 60s --iterations-per-phase 100000000");
    program.wait_for("four ready threads", |states| {
        states.iter().filter(|state| **state == 'R').count() == 4
    });
}

#[test]
fn a_signal_ends_a_run_with_its_report() {
    for signal in ["TERM", "INT"] {
        let mut program = Running::start("--ratio 1:1 --threads 2 --duration 60s --json");
        program.wait_for("its threads", |states| states.len() == 2);
        let kill = Command::new("kill")
            .args([format!("-{signal}"), program.0.id().to_string()])
            .status()
            .unwrap();
        assert!(kill.success());
        let mut out = program.0.stdout.take().unwrap();
        let report: Report = serde_json::from_reader(&mut out).unwrap();
        assert!(program.0.wait().unwrap().success());
        assert_eq!(report.ended_by, Ended::Signal, "{signal}");
        assert!(report.elapsed_s < 60.0);
    }
}

#[test]
fn a_signal_before_the_start_still_gives_a_report() {
    let at = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap() + Duration::from_secs(120);
    let args = format!("--start-at {} --threads 2 --rate 1000000 --json", at.as_secs_f64());
    let mut program = Running::start(&args);
    program.wait_for("its threads", |states| states.len() == 2);
    Command::new("kill").arg(program.0.id().to_string()).status().unwrap();
    let report: Report = serde_json::from_reader(program.0.stdout.take().unwrap()).unwrap();
    assert_eq!((report.ended_by, report.iterations_per_s), (Ended::Signal, 0.0));
}

#[test]
fn a_start_that_is_past_or_too_far_is_refused() {
    for (at, word) in [("1000", "later"), ("99999999999", "at most")] {
        let out = synth(&format!("--start-at {at}")).output().unwrap();
        assert!(!out.status.success());
        let error = String::from_utf8_lossy(&out.stderr).into_owned();
        assert!(error.contains(word), "{error}");
    }
}

#[test]
fn programs_with_one_start_begin_together() {
    let at = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap() + Duration::from_secs(2);
    let report = json(&format!(
        "--start-at {} --duration 100ms --threads 1 --rate 1000000 --json",
        at.as_secs_f64()
    ));
    let end = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap();
    assert!(end >= at + Duration::from_millis(99), "ended before its time");
    assert!(report["elapsed_s"].as_f64().unwrap() >= 0.1);
}

#[cfg(target_arch = "x86_64")]
#[test]
fn a_kernel_runs_for_some_time() {
    let kernel = |args: &[&str]| {
        let out = synth("kernel --json").args(args).output().unwrap();
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        serde_json::from_slice::<symbiont_synth::kernel::Report>(&out.stdout).map_err(|_| said)
    };
    for name in ["independent loads", "pointer chase in 256 KiB", "sum of 64 MiB"] {
        let report = kernel(&[name, "--duration=50ms"]).unwrap();
        assert!(report.elapsed_s >= 0.05 && report.cpu_s <= report.elapsed_s, "{report:?}");
        let all = report.operations as f64 * report.ns_per_operation / 1e9;
        assert!((all - report.cpu_s).abs() <= 1e-6 * report.cpu_s && all > 0.0, "{report:?}");
    }
    let rounds = kernel(&["independent loads", "--rounds=3"]).unwrap();
    assert_eq!((rounds.operations, rounds.kernel.as_str()), (3 * 64, "independent loads"));
    let late = kernel(&["independent loads", "--duration=50ms", "--start-at=1000"]).unwrap_err();
    assert!(late.contains(symbiont_synth::LATE), "{late}");
}

#[test]
fn many_threads_are_there_until_the_end() {
    let mut program = Running::start("threads --count 40 --busy 2 --duration 60s --json");
    program.wait_for("41 threads", |states| states.len() == 41);
    // That they all stand does not say that the busy ones have had a CPU.
    program.wait_for("CPU time", |_| program.cpu_ticks() >= 20);
    Command::new("kill").arg(program.0.id().to_string()).status().unwrap();
    let report: Value = serde_json::from_reader(program.0.stdout.take().unwrap()).unwrap();
    assert_eq!(report["count"], 40);
    assert!(report["busy_iterations"].as_u64().unwrap() > 0);
    assert!(program.0.wait().unwrap().success());
}

#[test]
fn calibration_gives_a_rate() {
    assert!(json("calibrate --json")["iterations_per_s"].as_f64().unwrap() > 0.0);
}

#[test]
fn help_teaches_the_ratio() {
    let out = synth("--help").output().unwrap();
    let help = String::from_utf8_lossy(&out.stdout).into_owned();
    for word in ["PARALLEL:SERIAL", "inf:1", "calibrate", "SIGTERM"] {
        assert!(help.contains(word), "{word} missing in:\n{help}");
    }
}
