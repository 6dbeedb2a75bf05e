//! Processes that are managed no longer, on real ones.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::BTreeSet;
use std::io;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use symbiont_linux::launch::Wake;
use symbiont_linux::machine::{CountOptions, Keeping, LinuxMachine, MachineOptions, Wait};
use symbiont_linux::observe::{Choice, WatchOptions};
use symbiont_machine::{Change, Machine, Move, Outcome, Sample, Target, ThreadId};
use symbiont_topology::{CpuSet, HostTopology};
use tempfile::TempDir;

const QUANTUM: Duration = Duration::from_millis(5);

/// Sleeps, and says whether the first processes have ended.
struct Sleep {
    roots_ended: bool,
}

impl Wait for Sleep {
    fn wait(&mut self, timeout: Duration) -> io::Result<Wake> {
        std::thread::sleep(timeout);
        Ok(if self.roots_ended { Wake::RootsEnded } else { Wake::Timeout })
    }
}

/// A shell whose children, two busy ones, are killed at the end of the test: one in a session of
/// its own.
struct Program {
    root: Child,
    known: BTreeSet<u32>,
}

impl Program {
    fn start() -> Self {
        let busy = "while :; do :; done";
        let script = format!("setsid sh -c '{busy}' & sh -c '{busy}' & wait");
        let mut command = Command::new("sh");
        command.args(["-c", &script]).stdin(Stdio::null()).stdout(Stdio::null());
        Self { root: command.spawn().unwrap(), known: BTreeSet::new() }
    }

    fn end_root(&mut self) {
        self.root.kill().unwrap();
        self.root.wait().unwrap();
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        for &process in self.known.iter().filter(|process| **process != self.root.id()) {
            let _ = kill_process(pid(process), Signal::KILL);
        }
        let _ = self.root.kill();
        let _ = self.root.wait();
    }
}

fn pid(process: u32) -> Pid {
    Pid::from_raw(process.try_into().unwrap()).unwrap()
}

/// By /proc, where a session from outside this PID namespace is 0; rustix's getsid takes that for
/// impossible.
fn leads_session(process: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let after_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    after_name.split_whitespace().nth(3).is_some_and(|session| session == process.to_string())
}

fn mask_of(thread: u32) -> CpuSet {
    let status = std::fs::read_to_string(format!("/proc/{thread}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap();
    line.trim().parse().unwrap()
}

struct Scene {
    machine: LinuxMachine<Sleep>,
    program: Program,
    /// The child in a session of its own, and the other one; both are pinned.
    daemon: ThreadId,
    other: ThreadId,
    narrow: CpuSet,
    _state: TempDir,
}

impl Scene {
    /// None where there is one CPU only.
    fn new(choice: Choice) -> Option<Self> {
        let own = mask_of(std::process::id());
        if own.len() < 2 {
            eprintln!("skipped: needs two CPUs");
            return None;
        }
        let state = tempfile::tempdir().unwrap();
        let options = MachineOptions {
            state_dir: state.path().join("state"),
            watch: WatchOptions { choice, ..WatchOptions::default() },
            counting: CountOptions::default(),
            keeping: Keeping::default(),
        };
        let host = HostTopology::read().unwrap();
        let sleep = Sleep { roots_ended: false };
        let machine = LinuxMachine::new(host, options, sleep).map_err(|(error, _)| error).unwrap();
        let program = Program::start();
        let no_thread = ThreadId { process: 0, thread: 0, born: 0, generation: 0 };
        let narrow = own.first().unwrap().into();
        let (daemon, other) = (no_thread, no_thread);
        let mut scene = Self { machine, program, daemon, other, narrow, _state: state };
        scene.machine.enrol("daemons", scene.program.root.id()).unwrap();
        let mut looks = 0;
        scene.sample_until("both children run", |scene, sample| {
            let children = sample.threads.iter().map(|thread| thread.id);
            let root = scene.program.root.id();
            let children: Vec<_> = children.filter(|id| id.process != root).collect();
            scene.program.known.extend(children.iter().map(|id| id.process));
            let (daemons, others): (Vec<ThreadId>, Vec<_>) =
                children.into_iter().partition(|id| leads_session(id.process));
            // An exec undoes what is applied, so none may be still to come or be reported.
            let is_busy = |id: &ThreadId| {
                let words = std::fs::read(format!("/proc/{}/cmdline", id.process));
                words.is_ok_and(|words| words.starts_with(b"sh\0-c\0while"))
            };
            let all_busy = daemons.iter().chain(&others).all(is_busy);
            looks = if all_busy { looks + 1 } else { 0 };
            if let ([daemon], [other]) = (&daemons[..], &others[..]) {
                (scene.daemon, scene.other) = (*daemon, *other);
            }
            scene.daemon != no_thread && looks > 2
        });
        for thread in [scene.daemon, scene.other] {
            let change = Change::Affinity(Target::Cpus(scene.narrow.clone()));
            let done = scene.machine.apply(&[Move { thread, change }]).unwrap();
            assert_eq!(done, [Outcome::Done]);
            assert_eq!(mask_of(thread.thread), scene.narrow);
        }
        Some(scene)
    }

    fn sample_until(&mut self, what: &str, mut holds: impl FnMut(&mut Self, &Sample) -> bool) {
        let deadline = Instant::now() + Duration::from_secs(30);
        loop {
            let sample = self.machine.sample().unwrap();
            if holds(self, &sample) {
                return;
            }
            assert!(Instant::now() < deadline, "never {what}: {sample:?}");
            self.machine.wait(QUANTUM).unwrap();
        }
    }

    /// The processes of the next sample.
    fn sampled(&mut self) -> BTreeSet<u32> {
        self.machine.wait(QUANTUM).unwrap();
        self.machine.sample().unwrap().threads.iter().map(|thread| thread.id.process).collect()
    }
}

#[test]
fn a_daemon_is_released_once_its_program_has_ended() {
    for choice in [Choice::Best, Choice::Scan] {
        let Some(mut scene) = Scene::new(choice) else { return };
        let own = mask_of(std::process::id());
        scene.machine.release_daemons();
        assert!(scene.sampled().contains(&scene.daemon.process), "its program lives");
        scene.program.end_root();
        scene.machine.waiter_mut().roots_ended = true;
        for _ in 0..4 {
            assert_eq!(scene.sampled(), BTreeSet::from([scene.other.process]), "{choice:?}");
            assert_eq!(mask_of(scene.daemon.thread), own, "{choice:?}");
            assert_eq!(mask_of(scene.other.thread), scene.narrow, "{choice:?}");
            assert!(!scene.machine.ended());
        }
        let _ = kill_process(pid(scene.other.process), Signal::KILL);
        scene.sample_until("ended", |scene, _| scene.machine.ended());
        assert_eq!(mask_of(scene.daemon.thread), own, "the daemon goes on");
    }
}

#[test]
fn a_daemon_is_managed_to_its_end_where_that_is_wanted() {
    let Some(mut scene) = Scene::new(Choice::Best) else { return };
    scene.program.end_root();
    scene.machine.waiter_mut().roots_ended = true;
    assert!(scene.sampled().contains(&scene.daemon.process));
    assert_eq!(mask_of(scene.daemon.thread), scene.narrow);
}

#[test]
fn a_released_process_is_left_alone() {
    for choice in [Choice::Best, Choice::Scan] {
        let Some(mut scene) = Scene::new(choice) else { return };
        let own = mask_of(std::process::id());
        let report = scene.machine.release(&BTreeSet::from([scene.other.process]));
        assert_eq!((report.restored, report.failed.len()), (1, 0), "{choice:?}: {report:?}");
        assert_eq!(mask_of(scene.other.thread), own, "{choice:?}");
        let rest = BTreeSet::from([scene.program.root.id(), scene.daemon.process]);
        // More samples than a scan takes to judge all processes anew.
        for _ in 0..40 {
            assert_eq!(scene.sampled(), rest, "{choice:?}");
        }
        let change = Change::Affinity(Target::Cpus(scene.narrow.clone()));
        let refused = scene.machine.apply(&[Move { thread: scene.other, change }]).unwrap();
        assert!(matches!(refused[..], [Outcome::Refused(_)]), "{choice:?}: {refused:?}");
        // What the user does with it since then is the user's.
        let narrow = scene.narrow.to_string();
        let pinned = ["-cp", &narrow, &scene.other.process.to_string()].map(str::to_owned);
        if Command::new("taskset").args(pinned).stdout(Stdio::null()).status().is_ok() {
            let Scene { machine, program: _program, .. } = scene;
            let (report, _) = machine.restore_all();
            assert_eq!((report.restored, report.failed.len()), (1, 0), "{choice:?}: {report:?}");
            assert_eq!(mask_of(scene.other.thread).to_string(), narrow, "{choice:?}");
        }
    }
}
