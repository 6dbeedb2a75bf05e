//! A program whose threads say on which CPUs they spent their time.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use symbiont_linux::launch::be_normal;

use super::workers::{WORKER, spin};

/// The role of such a worker.
pub const ROLE: &str = "clocked";
/// The most CPUs of a guest that plays it.
const CPUS: usize = 64;
/// What is done between two looks at the clock.
const TURNS: usize = 1_000;

/// How a thread spends its time: so long running, then so long asleep.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    pub runs: Duration,
    pub sleeps: Duration,
}

impl Shape {
    /// Never asleep.
    pub const BUSY: Self = Self { runs: Duration::from_secs(3600), sleeps: Duration::ZERO };

    pub const fn sleeping(sleeps_ms: u64, of_ms: u64) -> Self {
        let runs = Duration::from_millis(of_ms - sleeps_ms);
        Self { runs, sleeps: Duration::from_millis(sleeps_ms) }
    }

    fn word(self) -> String {
        format!("{}+{}", self.runs.as_micros(), self.sleeps.as_micros())
    }

    fn parse(word: &str) -> Self {
        let (runs, sleeps) = word.split_once('+').unwrap();
        let micros = |digits: &str| Duration::from_micros(digits.parse().unwrap());
        Self { runs: micros(runs), sleeps: micros(sleeps) }
    }
}

/// What a thread has done so far.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Clocked {
    pub thread: u32,
    /// Time running in nanoseconds, by CPU.
    pub ran_ns: Vec<u64>,
}

/// The program, seen from outside; killed when dropped.
pub struct Program {
    child: Child,
    asks: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Program {
    pub fn start(shapes: &[Shape]) -> Self {
        let mut command = Command::new(super::INIT);
        command.args([WORKER, ROLE]).args(shapes.iter().map(|shape| shape.word()));
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (asks, answers) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        Self { child, asks, answers: BufReader::new(answers) }
    }

    pub fn process(&self) -> u32 {
        self.child.id()
    }

    /// What each thread has done so far.
    pub fn clocked(&mut self) -> Vec<Clocked> {
        self.asks.write_all(b"\n").unwrap();
        let mut line = String::new();
        self.answers.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The program itself: answers each line, until there are no more.
pub fn main(shapes: &[String]) {
    // It was made by a manager.
    be_normal();
    let (sender, names) = std::sync::mpsc::channel();
    let threads: Vec<_> = shapes
        .iter()
        .map(|word| Shape::parse(word))
        .map(|shape| {
            let ran: Arc<Vec<AtomicU64>> = Arc::new((0..CPUS).map(|_| AtomicU64::new(0)).collect());
            let (its, sender) = (Arc::clone(&ran), sender.clone());
            std::thread::spawn(move || {
                let _ = sender.send(rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs());
                run(shape, &its);
            });
            (names.recv().unwrap(), ran)
        })
        .collect();
    for _ in std::io::stdin().lock().lines().map_while(Result::ok) {
        let load = |ran: &AtomicU64| ran.load(Ordering::Relaxed);
        let clocked = |(thread, ran): &(u32, Arc<Vec<AtomicU64>>)| Clocked {
            thread: *thread,
            ran_ns: ran.iter().map(load).collect(),
        };
        println!(
            "{}",
            serde_json::to_string(&threads.iter().map(clocked).collect::<Vec<_>>()).unwrap()
        );
    }
}

/// Runs and sleeps for good, and books its time where it is found after each bit of it.
fn run(shape: Shape, ran: &[AtomicU64]) {
    let clock = || {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap())
    };
    let (mut last, mut woke) = (clock(), clock());
    loop {
        spin(TURNS);
        let now = clock();
        let cpu = rustix::thread::sched_getcpu();
        ran[cpu].fetch_add((now - last).as_nanos() as u64, Ordering::Relaxed);
        last = now;
        if now - woke >= shape.runs {
            std::thread::sleep(shape.sleeps);
            woke = now;
        }
    }
}

/// As a thread of such a program, without being asked.
pub fn run_for_good(shape: Shape) {
    be_normal();
    run(shape, &(0..CPUS).map(|_| AtomicU64::new(0)).collect::<Vec<_>>());
}
