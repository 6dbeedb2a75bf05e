//! A program whose threads say on which CPUs they spent their time, and how late they woke.

use std::io::{BufRead, BufReader, Write};
use std::num::NonZeroU64;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::thread::{clock_nanosleep_absolute, set_current_timer_slack};
use rustix::time::{ClockId, Timespec, clock_gettime};
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
    /// It sleeps up to so much longer, never the same twice in a row, and books how late it wakes; zero: it does neither.
    pub varies: Duration,
}

impl Shape {
    /// Never asleep.
    pub const BUSY: Self =
        Self { runs: Duration::from_secs(3600), sleeps: Duration::ZERO, varies: Duration::ZERO };

    pub const fn sleeping(sleeps_ms: u64, of_ms: u64) -> Self {
        let runs = Duration::from_millis(of_ms - sleeps_ms);
        Self { runs, sleeps: Duration::from_millis(sleeps_ms), varies: Duration::ZERO }
    }

    fn word(self) -> String {
        [self.runs, self.sleeps, self.varies].map(|time| time.as_micros().to_string()).join("+")
    }

    fn parse(word: &str) -> Self {
        let micros = |digits: &str| Duration::from_micros(digits.parse().unwrap());
        let times: Vec<Duration> = word.split('+').map(micros).collect();
        Self { runs: times[0], sleeps: times[1], varies: times[2] }
    }

    /// How long the n-th sleep is.
    fn nth_sleep(self, n: u32) -> Duration {
        // Multiples of the golden ratio fill a range evenly (Knuth, The Art of Computer Programming, volume 3, 6.4).
        let part = f64::from(n.wrapping_mul(0x9e37_79b1)) / f64::from(u32::MAX);
        self.sleeps + self.varies.mul_f64(part)
    }
}

/// What a thread has done so far.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Clocked {
    pub thread: u32,
    /// Time running in nanoseconds, by CPU.
    pub ran_ns: Vec<u64>,
    /// How much later than asked it came back from each sleep, in nanoseconds, if it books that.
    pub late_ns: Vec<u64>,
}

/// What a thread books.
#[derive(Debug)]
struct Booked {
    ran_ns: Vec<AtomicU64>,
    late_ns: Mutex<Vec<u64>>,
}

impl Booked {
    fn none() -> Self {
        Self { ran_ns: (0..CPUS).map(|_| AtomicU64::new(0)).collect(), late_ns: Mutex::default() }
    }
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
            let booked = Arc::new(Booked::none());
            let (its, sender) = (Arc::clone(&booked), sender.clone());
            std::thread::spawn(move || {
                let _ = sender.send(rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs());
                run(shape, &its);
            });
            (names.recv().unwrap(), booked)
        })
        .collect();
    for _ in std::io::stdin().lock().lines().map_while(Result::ok) {
        let load = |ran: &AtomicU64| ran.load(Ordering::Relaxed);
        let clocked = |(thread, booked): &(u32, Arc<Booked>)| Clocked {
            thread: *thread,
            ran_ns: booked.ran_ns.iter().map(load).collect(),
            late_ns: booked.late_ns.lock().unwrap().clone(),
        };
        println!(
            "{}",
            serde_json::to_string(&threads.iter().map(clocked).collect::<Vec<_>>()).unwrap()
        );
    }
}

/// The time by a clock.
fn time_of(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap())
}

/// Sleeps so long, and gives how much later than that it came back.
fn sleep_on_time(time: Duration) -> Duration {
    let deadline = time_of(ClockId::Monotonic) + time;
    let request = Timespec {
        tv_sec: i64::try_from(deadline.as_secs()).unwrap(),
        tv_nsec: i64::from(deadline.subsec_nanos()),
    };
    clock_nanosleep_absolute(ClockId::Monotonic, &request).unwrap();
    time_of(ClockId::Monotonic).saturating_sub(deadline)
}

/// Runs and sleeps for good, and books its time where it is found after each bit of it.
fn run(shape: Shape, booked: &Booked) {
    let clock = || time_of(ClockId::ThreadCPUTime);
    let books_sleeps = shape.varies > Duration::ZERO;
    if books_sleeps {
        // The kernel may wake a thread later by 50 microseconds otherwise.
        set_current_timer_slack(NonZeroU64::new(1)).unwrap();
    }
    let (mut last, mut woke, mut sleeps) = (clock(), clock(), 0);
    loop {
        spin(TURNS);
        let now = clock();
        let cpu = rustix::thread::sched_getcpu();
        booked.ran_ns[cpu].fetch_add((now - last).as_nanos() as u64, Ordering::Relaxed);
        last = now;
        if now - woke < shape.runs {
            continue;
        }
        if books_sleeps {
            let late = sleep_on_time(shape.nth_sleep(sleeps));
            booked.late_ns.lock().unwrap().push(late.as_nanos() as u64);
            sleeps += 1;
        } else {
            std::thread::sleep(shape.sleeps);
        }
        woke = now;
    }
}

/// As a thread of such a program, without being asked.
pub fn run_for_good(shape: Shape) {
    be_normal();
    run(shape, &Booked::none());
}
