//! CPUs that are slowed down for experiments: how much, and that nothing is
//! left behind.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use libtest_mimic::Trial;
use rustix::process::Signal;

use crate::test_folder::{TestFolder, is_alive, send, wait_until};
use crate::trials::{own_cpus, skip, trial};

pub fn trials() -> Vec<Trial> {
    vec![
        trial("slow_cpu_takes_about_its_share", takes_its_share),
        trial("slow_cpu_ends_at_its_deadline", ends_at_its_deadline),
        trial("slow_cpu_killed_at_any_point_is_gone", killed_at_any_point),
        trial("slow_cpu_ends_with_its_parent", ends_with_its_parent),
        trial("a_killed_bench_with_a_slow_cpu_leaves_nothing", killed_bench_leaves_nothing),
        trial("slow_cpu_says_what_is_no_cpu", says_what_is_wrong),
    ]
}

fn symbiont() -> Command {
    Command::new(env!("CARGO_BIN_EXE_symbiont"))
}

/// `CPU:FACTOR` of a CPU that this process may use.
fn slow(factor: f64) -> String {
    let cpus = own_cpus();
    format!("{}:{factor}", cpus.first().expect("a CPU"))
}

/// A process that slows a CPU down; ended with this value.
struct Slowing(std::process::Child);

impl Drop for Slowing {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Begins to slow a CPU; none, and said so, where that is not permitted.
fn begin(factor: f64) -> Option<Slowing> {
    use std::io::{BufRead, BufReader};
    let mut command = symbiont();
    command.args(["slow-cpu", &slow(factor), "--for", "60s"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it starts");
    let mut slowing = Slowing(child);
    let mut line = String::new();
    let stdout = slowing.0.stdout.as_mut().expect("a pipe");
    BufReader::new(stdout).read_line(&mut line).expect("text");
    if line.trim() == "slowed" {
        return Some(slowing);
    }
    skip("no CPU may be slowed down here");
    None
}

/// CPU time of a process.
fn cpu_time(process: u32) -> Duration {
    let path = PathBuf::from(format!("/proc/{process}/schedstat"));
    let text = std::fs::read_to_string(path).expect("the process lives");
    let ns = text.split(' ').next().and_then(|word| word.parse().ok()).expect("a number");
    Duration::from_nanos(ns)
}

fn takes_its_share() {
    for (factor, share) in [(2.0, 0.5), (4.0, 0.75)] {
        let Some(slowing) = begin(factor) else { return };
        let process = slowing.0.id();
        // With a co-runner that would take all of the CPU.
        let cpu = slow(factor);
        let cpu = cpu.split(':').next().expect("a number");
        let mut busy = Command::new("taskset");
        busy.args(["-c", cpu, "sh", "-c", "while :; do :; done"]);
        let Ok(busy) = busy.spawn() else { return skip("taskset is not installed") };
        let _busy = Slowing(busy);
        let (begin, before) = (Instant::now(), cpu_time(process));
        std::thread::sleep(Duration::from_secs(1));
        let took = (cpu_time(process) - before).as_secs_f64() / begin.elapsed().as_secs_f64();
        // A virtual machine's host may take CPU time from it.
        assert!(took < share + 0.1 && took > share - 0.3, "{factor}: {took}");
    }
}

fn ends_at_its_deadline() {
    let mut command = symbiont();
    command.args(["slow-cpu", &slow(2.0), "--for", "100ms"]);
    let output = command.output().expect("it starts");
    if !output.status.success() {
        return skip("no CPU may be slowed down here");
    }
    assert_eq!(String::from_utf8_lossy(&output.stdout), "slowed\n");
}

/// What slows CPUs elsewhere, and would stay: clocks, hot-plugging, limits of real-time threads; and masks,
/// nice values and classes of others, for which the first process stands.
fn machine() -> Vec<(PathBuf, Option<String>)> {
    let mut files: Vec<PathBuf> = [
        "/sys/devices/system/cpu/online",
        "/sys/devices/system/cpu/isolated",
        "/sys/devices/system/cpu/smt/control",
        "/proc/sys/kernel/sched_rt_runtime_us",
        "/proc/sys/kernel/sched_rt_period_us",
    ]
    .map(PathBuf::from)
    .into();
    let policies = std::fs::read_dir("/sys/devices/system/cpu/cpufreq");
    for policy in policies.into_iter().flatten().flatten() {
        let names = ["scaling_governor", "scaling_min_freq", "scaling_max_freq"];
        files.extend(names.map(|name| policy.path().join(name)));
    }
    let first = |name: &str| PathBuf::from("/proc/1").join(name);
    let line = |file: PathBuf, starts: &str| {
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        let line = text.lines().find(|line| line.starts_with(starts)).map(str::to_owned);
        (file, line)
    };
    let stat = std::fs::read_to_string(first("stat")).unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split(' ').collect();
    // Nice value and policy: fields 19 and 41 of proc_pid_stat(5), of which two are before the bracket.
    let urgency = [17, 39].map(|at| fields.get(at).copied().unwrap_or_default()).join(" ");
    let mut all: Vec<_> =
        files.into_iter().map(|f| (f.clone(), std::fs::read_to_string(f).ok())).collect();
    all.push(line(first("status"), "Cpus_allowed:"));
    all.push((first("stat"), Some(urgency)));
    all
}

/// Is there a process with this word in its command line?
fn is_anywhere(word: &str) -> bool {
    let processes = std::fs::read_dir("/proc").expect("/proc").flatten();
    let mut lines = processes.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    lines.any(|line| line.split(|byte| *byte == 0).any(|found| found == word.as_bytes()))
}

fn killed_at_any_point() {
    let before = machine();
    for number in 0..20u64 {
        // A time that no other process was given.
        let limit = format!("--for={}us", 60_000_000 + u64::from(std::process::id()));
        let mut command = symbiont();
        command.args(["slow-cpu", &slow(2.0), &limit]).stdout(Stdio::null()).stderr(Stdio::null());
        let mut slowing = Slowing(command.spawn().expect("it starts"));
        // From before it has begun to well into its work.
        std::thread::sleep(Duration::from_micros(number * number * 100));
        slowing.0.kill().expect("it can be killed");
        slowing.0.wait().expect("it ended");
        assert!(!is_anywhere(&limit), "something is left of it");
    }
    assert_eq!(machine(), before);
}

fn ends_with_its_parent() {
    for (number, signal) in [Signal::KILL, Signal::TERM, Signal::KILL].into_iter().enumerate() {
        let place = TestFolder::new();
        let file = place.path("pid");
        let binary = env!("CARGO_BIN_EXE_symbiont");
        // The slowing process is a child of a shell that is killed.
        let script = format!(
            "{binary} slow-cpu {} --for 60s --parent $$ > /dev/null & echo $! > {}; wait",
            slow(2.0),
            file.display()
        );
        let shell = Command::new("sh").args(["-c", &script]).stderr(Stdio::null()).spawn();
        let mut shell = Slowing(shell.expect("it starts"));
        let mut child = None;
        wait_until("the child's number is known", || {
            child = std::fs::read_to_string(&file).ok().and_then(|t| t.trim().parse::<u32>().ok());
            child.is_some()
        });
        let child = child.expect("a number");
        std::thread::sleep(Duration::from_millis(3 * number as u64));
        send(shell.0.id(), signal);
        shell.0.wait().expect("it ended");
        wait_until("the child is gone", || !is_alive(child));
    }
}

fn says_what_is_wrong() {
    let output = symbiont().args(["slow-cpu", "0"]).output().expect("it starts");
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("CPU:FACTOR"));
    let output = symbiont().args(["slow-cpu", "4000000:2"]).output().expect("it starts");
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("cannot run on CPU 4000000"));
}

/// Processes that have this text somewhere in their command line.
fn of_text(text: &str) -> Vec<u32> {
    let processes = std::fs::read_dir("/proc").expect("/proc").flatten();
    let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let has = |number: &u32| {
        std::fs::read(format!("/proc/{number}/cmdline"))
            .is_ok_and(|line| String::from_utf8_lossy(&line).contains(text))
    };
    numbers.filter(has).collect()
}

/// Processes whose parent is this one.
fn children_of(process: u32) -> Vec<u32> {
    let is_child = |number: &u32| {
        std::fs::read_to_string(format!("/proc/{number}/stat")).is_ok_and(|stat| {
            let after = stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(1));
            after.and_then(|parent| parent.parse().ok()) == Some(process)
        })
    };
    of_text("").into_iter().filter(is_child).collect()
}

/// A folder for `PATH` that holds setsid(1) alone, or nothing where there is none: no
/// real programs are found there, which would have to be made ready.
fn little_path(place: &TestFolder) -> PathBuf {
    let folder = place.path("bin");
    std::fs::create_dir(&folder).expect("a folder");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let setsid = std::env::split_paths(&path).map(|f| f.join("setsid")).find(|f| f.is_file());
    if let Some(setsid) = setsid {
        std::os::unix::fs::symlink(setsid, folder.join("setsid")).expect("a link");
    }
    folder
}

/// The slowed CPU is free at once; what runs ends by itself, and its manager with it.
/// The second bench goes on in the folder of the first.
fn killed_bench_leaves_nothing() {
    let before = machine();
    let place = TestFolder::new();
    let path = little_path(&place);
    let output = place.path("report");
    let output = output.to_str().expect("text");
    // Children of the bench when it is killed: the one that slows the CPU, and the one that runs programs,
    // with its manager.
    let moments = [("it slows a CPU", 0), ("it manages programs", 2)];
    for ((moment, least), later_ms) in moments.into_iter().flat_map(|m| [(m, 0), (m, 150)]) {
        let mut command = symbiont();
        // With this seed a managed run is the first.
        command.args(["bench", "phases", "--short", "--seed", "1", "--slow-cpu", &slow(2.0)]);
        command.args(["--output", output]).env("PATH", &path);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut bench = Slowing(command.spawn().expect("it starts"));
        let number = bench.0.id();
        let mut slowing = Vec::new();
        let mut ended = false;
        wait_until(moment, || {
            ended = bench.0.try_wait().expect("a child").is_some();
            let (children, slows) = (children_of(number), of_text("slow-cpu"));
            slowing = children.into_iter().filter(|child| slows.contains(child)).collect();
            let programs = of_text(output).into_iter().filter(|other| *other != number).count();
            ended || (!slowing.is_empty() && programs >= least)
        });
        if ended {
            return skip("the bench does not run here");
        }
        std::thread::sleep(Duration::from_millis(later_ms));
        bench.0.kill().expect("it can be killed");
        bench.0.wait().expect("it ended");
        wait_until("no CPU is slowed", || !slowing.iter().any(|child| is_alive(*child)));
        wait_until("what it managed is gone", || of_text(output).is_empty());
    }
    assert_eq!(machine(), before);
}
