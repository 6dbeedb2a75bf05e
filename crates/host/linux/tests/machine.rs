//! The host as a machine, on real processes.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::io;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use symbiont_linux::launch::Wake;
use symbiont_linux::machine::{CountOptions, Keeping, LinuxMachine, MachineOptions, Wait};
use symbiont_linux::observe::{Choice, WatchOptions};
use symbiont_machine::{Change, Machine, Move, Outcome, RunState, Sample, Target, ThreadId};
use symbiont_topology::{CpuSet, HostTopology};
use tempfile::TempDir;

const QUANTUM: Duration = Duration::from_millis(5);

struct Sleep;

impl Wait for Sleep {
    fn wait(&mut self, timeout: Duration) -> io::Result<Wake> {
        std::thread::sleep(timeout);
        Ok(Wake::Timeout)
    }
}

/// A child that is killed at the end of its test.
struct Program(Child);

impl Program {
    fn shell(script: &str) -> Self {
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdin(Stdio::null()).stdout(Stdio::null());
        Self(command.spawn().unwrap())
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn machine(choice: Choice) -> (LinuxMachine<Sleep>, TempDir) {
    let state_dir = tempfile::tempdir().unwrap();
    let watch = WatchOptions { choice, ..WatchOptions::default() };
    let (state_dir_path, counting) = (state_dir.path().join("state"), CountOptions::default());
    let options =
        MachineOptions { state_dir: state_dir_path, watch, counting, keeping: Keeping::default() };
    let host = HostTopology::read().unwrap();
    let machine = LinuxMachine::new(host, options, Sleep).map_err(|(error, _)| error).unwrap();
    (machine, state_dir)
}

/// Samples until one fulfils the condition.
fn sample_until(
    machine: &mut LinuxMachine<Sleep>,
    what: &str,
    condition: impl Fn(&Sample) -> bool,
) -> Sample {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        let sample = machine.sample().unwrap();
        if condition(&sample) {
            return sample;
        }
        assert!(Instant::now() < deadline, "never {what}: {sample:?}");
        machine.wait(QUANTUM).unwrap();
    }
}

fn mask_of(thread: u32) -> CpuSet {
    let status = std::fs::read_to_string(format!("/proc/{thread}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap();
    line.trim().parse().unwrap()
}

#[test]
fn threads_of_a_program_are_sampled() {
    for choice in [Choice::Best, Choice::Scan] {
        let program = Program::shell("sleep 60 & while :; do :; done");
        let (mut machine, _state) = machine(choice);
        let id = machine.enrol("busy", program.0.id()).unwrap();
        let first = sample_until(&mut machine, "two processes", |s| s.threads.len() == 2);
        assert_eq!(first.programs[0].name, "busy");
        assert!(first.threads.is_sorted_by_key(|thread| thread.id));
        let own = mask_of(std::process::id());
        for thread in &first.threads {
            assert_eq!(thread.program, id);
            assert_eq!(*thread.allowed, own);
        }
        let busy = |s: &Sample| s.threads.iter().find(|t| t.id.process == program.0.id()).cloned();
        let before = busy(&first).unwrap();
        assert_eq!(before.state, RunState::Runnable);
        let later = sample_until(&mut machine, "progress", |s| {
            busy(s).is_some_and(|now| now.run_time > before.run_time)
        });
        assert!(later.at > first.at);
    }
}

/// A busy program with its one thread, which may be placed, and its mask; none where there is one CPU only.
fn placeable() -> Option<(Program, LinuxMachine<Sleep>, TempDir, ThreadId, CpuSet)> {
    let program = Program::shell("while :; do :; done");
    let before = mask_of(program.0.id());
    if before.len() < 2 {
        eprintln!("skipped: needs two CPUs");
        return None;
    }
    let (mut machine, state) = machine(Choice::Best);
    machine.enrol("busy", program.0.id()).unwrap();
    let sample = sample_until(&mut machine, "settled", |s| {
        s.threads.iter().all(|t| t.lifecycle.is_settled())
    });
    let thread = sample.threads[0].id;
    Some((program, machine, state, thread, before))
}

#[test]
fn what_was_applied_is_restored() {
    let Some((program, mut machine, _state, thread, before)) = placeable() else { return };
    let narrow: CpuSet = before.first().unwrap().into();
    let change = Change::Affinity(Target::Cpus(narrow.clone()));
    let asked = Move { thread, change };
    assert_eq!(machine.apply(&[asked]).unwrap(), [Outcome::Done]);
    assert_eq!(mask_of(program.0.id()), narrow);
    let (report, _) = machine.restore_all();
    assert_eq!(report.restored, 1);
    assert_eq!(mask_of(program.0.id()), before);
}

#[test]
fn a_thread_that_forked_of_late_is_not_settled() {
    for choice in [Choice::Best, Choice::Scan] {
        forking_unsettles(choice);
    }
}

fn forking_unsettles(choice: Choice) {
    // Forks far more often than once per SETTLE, until it gets a signal.
    // A scan may see none of the children.
    let program = Program::shell("trap 'while :; do :; done' USR1; while :; do (:); done");
    let (mut machine, _state) = machine(choice);
    machine.enrol("forks", program.0.id()).unwrap();
    let root = |s: &Sample| s.threads.iter().find(|t| t.id.process == program.0.id()).cloned();
    for _ in 0..20 {
        let sample = machine.sample().unwrap();
        assert!(!root(&sample).unwrap().lifecycle.is_settled(), "{sample:?}");
        machine.wait(QUANTUM).unwrap();
    }
    let pid = program.0.id().to_string();
    assert!(Command::new("kill").args(["-USR1", &pid]).status().unwrap().success());
    let is_settled = |s: &Sample| root(s).is_some_and(|thread| thread.lifecycle.is_settled());
    if rustix::process::geteuid().is_root() {
        sample_until(&mut machine, "settled", is_settled);
        return;
    }
    // For an ordinary user what made processes stays as it is.
    for _ in 0..20 {
        let sample = machine.sample().unwrap();
        assert!(!is_settled(&sample), "{sample:?}");
        machine.wait(QUANTUM).unwrap();
    }
}

#[test]
fn a_sample_is_empty_when_the_program_has_ended() {
    let program = Program::shell("exec sleep 60");
    let (mut machine, _state) = machine(Choice::Best);
    machine.enrol("short", program.0.id()).unwrap();
    sample_until(&mut machine, "there", |s| !s.threads.is_empty());
    drop(program);
    sample_until(&mut machine, "empty", |s| s.threads.is_empty());
}

#[test]
fn a_placed_thread_that_execs_is_restored_and_still_known() {
    for choice in [Choice::Best, Choice::Scan] {
        let folder = tempfile::tempdir().unwrap();
        let go = folder.path().join("go");
        let script = format!("while [ ! -e '{}' ]; do :; done; exec sleep 60", go.display());
        let program = Program::shell(&script);
        let before = mask_of(program.0.id());
        if before.len() < 2 {
            eprintln!("skipped: needs two CPUs");
            return;
        }
        let (mut machine, _state) = machine(choice);
        machine.enrol("execs", program.0.id()).unwrap();
        let sample = sample_until(&mut machine, "settled", |s| {
            s.threads.iter().all(|t| t.lifecycle.is_settled())
        });
        let change = Change::Affinity(Target::Cpus(before.first().unwrap().into()));
        let thread = sample.threads[0].id;
        assert_eq!(machine.apply(&[Move { thread, change }]).unwrap(), [Outcome::Done]);
        // The shell's own exec may have been reported after it was enrolled.
        let known = thread.generation;
        std::fs::write(go, "").unwrap();
        let sample = sample_until(&mut machine, "exec", |s| {
            s.threads.iter().all(|t| t.id.generation == known + 1)
        });
        assert!(!sample.threads[0].lifecycle.is_settled());
        assert_eq!(mask_of(program.0.id()), before);
        for _ in 0..3 {
            machine.wait(QUANTUM).unwrap();
            assert_eq!(*machine.sample().unwrap().threads[0].allowed, before);
        }
    }
}

#[test]
fn a_thread_that_is_insisted_on_is_brought_back_within_the_quantum() {
    let Some((program, mut machine, _state, thread, all)) = placeable() else { return };
    let (home, away): (CpuSet, CpuSet) =
        (all.first().unwrap().into(), all.iter().last().unwrap().into());
    let change = Change::Nudge(away);
    // The kernel may have moved it back, before it is looked at.
    let brought_back = (0..50).any(|_| {
        machine.insist(vec![(thread, home.clone())]);
        let outcomes = machine.apply(&[Move { thread, change: change.clone() }]).unwrap();
        assert_eq!(outcomes, [Outcome::Done]);
        machine.wait(Duration::from_millis(100)).unwrap();
        machine.insist(Vec::new()) > 0
    });
    assert!(brought_back);
    assert_eq!(mask_of(program.0.id()), all);
}
