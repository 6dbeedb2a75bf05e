//! Parts that this test binary plays in a process of its own.

use std::io::{BufRead, BufReader, Lines, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{ChildStdout, Command, Stdio};

use symbiont_linux::actuate::Actuator;
use symbiont_machine::{Change, Move, Outcome, Priority, Target};
use symbiont_topology::CpuSet;

use crate::support::*;

const ROLE: &str = "SYMBIONT_TEST_ROLE";
pub const STATE: &str = "SYMBIONT_TEST_STATE";
/// A number that has no user of its own on common systems.
const UNPRIVILEGED: u32 = 65_534;

/// Not a test: the way in for the other processes.
#[test]
fn play() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let state = PathBuf::from(std::env::var(STATE).unwrap_or_default());
    match role.as_str() {
        "manager" => manager(&state),
        "thread that calls exec" => thread_that_calls_exec(),
        "pinned maker of a thread" => pinned_maker_of_a_thread(),
        "ordinary user" => as_an_ordinary_user(&state),
        crate::namespaces::ROLE => crate::namespaces::manager(&state),
        other => panic!("no such role: {other}"),
    }
}

/// This test binary in a role.
pub fn actor(role: &str) -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.args(["--exact", "roles::play", "--nocapture"]).env(ROLE, role);
    command
}

/// A manager in a process of its own, to be killed.
pub struct Manager {
    process: Victim,
    answers: Lines<BufReader<ChildStdout>>,
}

impl Manager {
    pub fn spawn(state: &Path) -> Self {
        let mut command = actor("manager");
        command.env(STATE, state).stdout(Stdio::piped());
        let mut process = Victim::spawn(&mut command);
        let answers = BufReader::new(process.0.stdout.take().unwrap()).lines();
        let mut manager = Self { process, answers };
        manager.await_answer();
        manager
    }

    /// Lets it adopt a thread and, if any are given, keep it on CPUs and boost it.
    pub fn act(&mut self, process: u32, thread: u32, cpus: Option<&CpuSet>, levels: u8) {
        let cpus = cpus.map_or("-".to_owned(), ToString::to_string);
        let stdin = self.process.0.stdin.as_mut().unwrap();
        writeln!(stdin, "{process} {thread} {cpus} {levels}").unwrap();
        self.await_answer();
    }

    pub fn kill(&mut self) {
        self.process.kill();
    }

    fn await_answer(&mut self) {
        let answered = |line: std::io::Result<String>| line.is_ok_and(|l| l.contains("done"));
        assert!(self.answers.any(answered), "the manager failed");
    }
}

/// A manager that kept one process's first thread on CPUs and was killed.
pub fn killed_after_pinning(state: &Path, process: u32, cpus: &CpuSet) {
    let mut manager = Manager::spawn(state);
    manager.act(process, process, Some(cpus), 0);
    manager.kill();
}

fn manager(state: &Path) {
    let actuator = Actuator::new(&host(), state).unwrap();
    println!("done");
    for line in std::io::stdin().lines() {
        let line = line.unwrap();
        let words: Vec<&str> = line.split_whitespace().collect();
        let thread = thread_id(words[0].parse().unwrap(), words[1].parse().unwrap());
        actuator.adopt(&thread).unwrap();
        if words[2] != "-" {
            let levels = words[3].parse().unwrap();
            for change in [
                Change::Affinity(Target::Cpus(set(words[2]))),
                Change::Priority(Priority::Boosted(levels)),
            ] {
                assert_eq!(actuator.apply(&Move { thread, change }), Outcome::Done);
            }
        }
        println!("done");
    }
}

fn wait_for_input() {
    let _ = std::io::stdin().read(&mut [0u8; 1]);
}

/// Waits for a line in a second thread, which then becomes `sleep`.
fn thread_that_calls_exec() {
    let thread = std::thread::Builder::new().name("caller".to_owned()).spawn(|| {
        wait_for_input();
        panic!("exec failed: {}", Command::new("sleep").arg("1000").exec());
    });
    thread.unwrap().join().unwrap();
}

fn pinned_maker_of_a_thread() {
    let Some((all, first, _)) = two_cpus() else { return };
    let (rig, process, maker) = (Rig::new(), std::process::id(), gettid());
    rig.actuator.adopt(&thread_id(process, maker)).unwrap();
    assert_eq!(rig.pin(&thread_id(process, maker), &first), Outcome::Done);
    let newborn = || {
        let newborn = gettid();
        assert_eq!(mask_of(newborn), first, "it inherits");
        // The kernel names the process's parent as the parent of a thread.
        let parent = std::os::unix::process::parent_id();
        rig.actuator.newborn(parent, parent, process, newborn);
        assert_eq!(mask_of(newborn), all);
    };
    std::thread::scope(|scope| scope.spawn(newborn).join().unwrap());
}

/// Runs the unprivileged part as another user.
pub fn play_as_unprivileged() {
    let dir = tempfile::tempdir().unwrap();
    std::os::unix::fs::chown(dir.path(), Some(UNPRIVILEGED), Some(UNPRIVILEGED)).unwrap();
    let mut command = actor("ordinary user");
    command.env(STATE, dir.path().join("state")).uid(UNPRIVILEGED).gid(UNPRIVILEGED);
    match command.output() {
        Ok(output) => assert!(
            output.status.success(),
            "{}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        ),
        Err(error) => skip(&format!("user 65534 cannot run this test binary: {error}")),
    }
}

pub fn as_an_ordinary_user(state: &Path) {
    let actuator = Actuator::new(&host(), state).unwrap();
    let victim = Victim::sleeper();
    let (id, thread) = (victim.id(), victim.thread());
    let before = (mask_of(id), priority_of(id));
    actuator.adopt(&thread).unwrap();
    if let Some((_, first, _)) = two_cpus() {
        let change = Change::Affinity(Target::Cpus(first.clone()));
        assert_eq!(actuator.apply(&Move { thread, change }), Outcome::Done);
        assert_eq!(mask_of(id), first);
    }
    let priority = |p| actuator.apply(&Move { thread, change: Change::Priority(p) });
    let abilities = actuator.abilities();
    if !abilities.boost.exists() {
        assert_refused(&priority(Priority::Boosted(10)), "CAP_SYS_NICE");
        assert_eq!(priority_of(id), before.1);
    }
    if !abilities.idle_class.exists() {
        assert_refused(&priority(Priority::Idle), "CAP_SYS_NICE");
        assert_eq!(priority_of(id), before.1);
    }
    assert_nothing(&actuator.restore_all().failed);
    assert_eq!((mask_of(id), priority_of(id)), before);
}
