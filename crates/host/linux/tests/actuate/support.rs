//! Real processes to act on, and ways to see what they have.

use std::fmt::Debug;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use procfs::process::Process;
use rustix::process::Pid;
use rustix::thread::{sched_getaffinity, sched_setaffinity};
use symbiont_linux::actuate::{Actuator, Grouping, Privilege, boost_ability};
use symbiont_machine::{Ability, Change, Move, Outcome, Priority, Target, ThreadId};
use symbiont_topology::{CpuSet, HostTopology, PuId};
use tempfile::TempDir;

/// Long enough for a loaded machine.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Waits until something is there.
pub fn wait_for<T>(what: &str, mut find: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = find() {
            return found;
        }
        assert!(start.elapsed() < TIMEOUT, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Prints why a test cannot run here; use as `return skip("...")`.
pub fn skip(why: &str) {
    eprintln!("skipped: {why}");
}

pub fn host() -> HostTopology {
    HostTopology::read().unwrap()
}

pub fn set(text: &str) -> CpuSet {
    text.parse().unwrap()
}

/// All hardware threads that this process may use, and the first two of them.
pub fn two_cpus() -> Option<(CpuSet, CpuSet, CpuSet)> {
    let all = mask_of(std::process::id());
    let mut each = all.iter().map(CpuSet::from);
    match (each.next(), each.next()) {
        (Some(first), Some(second)) => Some((all.clone(), first, second)),
        _ => {
            skip("this machine leaves only one hardware thread");
            None
        }
    }
}

pub fn gettid() -> u32 {
    rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs()
}

pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// May this process raise priorities at will? Root in a container often may not.
pub fn may_boost() -> bool {
    boost_ability(Privilege::current(), Grouping::None) == Ability::Full
}

fn pid(number: u32) -> Option<Pid> {
    Pid::from_raw(i32::try_from(number).unwrap())
}

pub fn mask_of(thread: u32) -> CpuSet {
    let mask = sched_getaffinity(pid(thread)).unwrap();
    (0..1024).filter(|&cpu| mask.is_set(cpu as usize)).map(PuId).collect()
}

pub fn set_mask(thread: u32, cpus: &CpuSet) {
    let mut mask = rustix::thread::CpuSet::new();
    cpus.iter().for_each(|pu| mask.set(pu.0 as usize));
    sched_setaffinity(pid(thread), &mask).unwrap();
}

/// Nice value and scheduling policy.
pub fn priority_of(process: u32) -> (i64, u32) {
    let stat = stat(process, process).unwrap();
    (stat.nice, stat.policy.unwrap())
}

fn stat(process: u32, thread: u32) -> Option<procfs::process::Stat> {
    let process = Process::new(i32::try_from(process).unwrap()).ok()?;
    process.task_from_tid(i32::try_from(thread).unwrap()).ok()?.stat().ok()
}

pub fn comm_of(process: u32) -> Option<String> {
    stat(process, process).map(|stat| stat.comm)
}

pub fn thread_id(process: u32, thread: u32) -> ThreadId {
    let born = stat(process, thread).unwrap().starttime;
    ThreadId { process, thread, born, generation: 0 }
}

pub fn threads_of(process: u32) -> Vec<u32> {
    let process = Process::new(i32::try_from(process).unwrap()).unwrap();
    let tasks = process.tasks().unwrap().filter_map(Result::ok);
    tasks.map(|task| u32::try_from(task.tid).unwrap()).collect()
}

pub fn children_of(process: u32) -> Vec<u32> {
    let all = procfs::process::all_processes().unwrap().filter_map(Result::ok);
    all.filter_map(|p| p.stat().ok())
        .filter(|stat| u32::try_from(stat.ppid) == Ok(process))
        .map(|stat| u32::try_from(stat.pid).unwrap())
        .collect()
}

/// A child process that is killed when the test ends.
pub struct Victim(pub Child);

impl Victim {
    pub fn spawn(command: &mut Command) -> Self {
        Self(command.stdin(Stdio::piped()).spawn().unwrap())
    }

    /// A process that sleeps. Its exec is over when this returns.
    pub fn sleeper() -> Self {
        let victim = Self::spawn(Command::new("sleep").arg("1000"));
        wait_for("sleep to start", || (comm_of(victim.id())? == "sleep").then_some(()));
        victim
    }

    /// A process that runs all the time.
    pub fn busy() -> Self {
        let victim = Self::spawn(Command::new("sh").args(["-c", "while :; do :; done"]));
        wait_for("sh to start", || (comm_of(victim.id())? == "sh").then_some(()));
        victim
    }

    /// A shell that waits for a line before it runs the rest.
    pub fn shell(script: &str) -> Self {
        let victim = Self::spawn(Command::new("sh").args(["-c", &format!("read line; {script}")]));
        wait_for("sh to start", || (comm_of(victim.id())? == "sh").then_some(()));
        victim
    }

    pub fn id(&self) -> u32 {
        self.0.id()
    }

    pub fn thread(&self) -> ThreadId {
        thread_id(self.id(), self.id())
    }

    pub fn go_on(&mut self) {
        self.0.stdin.as_mut().unwrap().write_all(b"go\n").unwrap();
    }

    pub fn kill(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        let mut all = vec![self.id()];
        let mut next = 0;
        while let Some(&process) = all.get(next) {
            all.extend(children_of(process));
            next += 1;
        }
        for child in all.iter().skip(1).filter_map(|&child| pid(child)) {
            let _ = rustix::process::kill_process(child, rustix::process::Signal::KILL);
        }
        self.kill();
    }
}

/// Threads of this process, until they are dropped.
pub struct Threads {
    pub threads: Vec<ThreadId>,
    _ends: Vec<mpsc::Sender<()>>,
}

impl Threads {
    pub fn sleeping(count: usize) -> Self {
        Self::new(count, |ended| {
            let _ = ended.recv();
        })
    }

    pub fn busy(count: usize) -> Self {
        Self::new(count, |ended| while ended.try_recv() == Err(mpsc::TryRecvError::Empty) {})
    }

    fn new(count: usize, work: fn(&mpsc::Receiver<()>)) -> Self {
        let (mut threads, mut ends) = (Vec::new(), Vec::new());
        for _ in 0..count {
            let (numbers, number) = mpsc::channel();
            let (end, ended) = mpsc::channel::<()>();
            std::thread::spawn(move || {
                numbers.send(gettid()).unwrap();
                work(&ended);
            });
            threads.push(thread_id(std::process::id(), number.recv().unwrap()));
            ends.push(end);
        }
        Self { threads, _ends: ends }
    }
}

/// The hardware thread on which a thread runs or ran last.
pub fn cpu_of(process: u32) -> Option<PuId> {
    stat(process, process)?.processor.and_then(|cpu| u32::try_from(cpu).ok()).map(PuId)
}

/// Does a process wait, as in a read?
pub fn is_asleep(process: u32) -> bool {
    stat(process, process).is_some_and(|stat| stat.state == 'S')
}

/// An actuator with a state directory of its own.
pub struct Rig {
    pub actuator: Actuator,
    pub dir: TempDir,
}

impl Rig {
    pub fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let actuator = Actuator::new(&host(), &dir.path().join("state")).unwrap();
        Self { actuator, dir }
    }

    pub fn state(&self) -> PathBuf {
        self.dir.path().join("state")
    }

    pub fn pin(&self, thread: &ThreadId, cpus: &CpuSet) -> Outcome {
        let change = Change::Affinity(Target::Cpus(cpus.clone()));
        self.actuator.apply(&Move { thread: *thread, change })
    }

    pub fn unpin(&self, thread: &ThreadId) -> Outcome {
        self.actuator.apply(&Move { thread: *thread, change: Change::Affinity(Target::Os) })
    }

    pub fn set_priority(&self, thread: &ThreadId, priority: Priority) -> Outcome {
        self.actuator.apply(&Move { thread: *thread, change: Change::Priority(priority) })
    }
}

#[track_caller]
pub fn assert_refused(outcome: &Outcome, part: &str) {
    match outcome {
        Outcome::Refused(why) if why.contains(part) => {}
        other => assert_eq!(format!("refused: …{part}…"), format!("{other:?}")),
    }
}

#[track_caller]
pub fn assert_nothing<T: Debug + PartialEq>(list: &[T]) {
    assert_eq!(list, &[] as &[T]);
}

/// The lines of the rig's only journal.
pub fn journal_of(rig: &Rig) -> Vec<String> {
    let path = std::fs::read_dir(rig.state()).unwrap().next().unwrap().unwrap().path();
    std::fs::read_to_string(path).unwrap().lines().map(str::to_owned).collect()
}
