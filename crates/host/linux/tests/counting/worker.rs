//! A program that carries out orders, line by line on its standard input:
//! `touch PAGES`, `burn MILLISECONDS`, `threads COUNT` (that sleep from then on), `end` (of those).
//! It answers each line when it has done it.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// What the worker's command line begins with.
pub const WORKER: &str = "worker";

/// What the program does.
pub fn main() {
    // Huge pages would make one fault of many. Where that cannot be had, the
    // tests say that they skip.
    let _ = rustix::thread::disable_transparent_huge_pages(true);
    let mut sleepers: Vec<(Sender<()>, JoinHandle<()>)> = Vec::new();
    for line in std::io::stdin().lines() {
        let line = line.unwrap();
        let (verb, number) = line.split_once(' ').unwrap();
        let number: usize = number.parse().unwrap();
        match verb {
            "touch" => touch(number),
            "burn" => burn(Duration::from_millis(number as u64)),
            "threads" => sleepers.extend((0..number).map(|_| sleeper())),
            "end" => {
                for (wake, sleeper) in sleepers.drain(..number) {
                    drop(wake);
                    sleeper.join().unwrap();
                }
            }
            other => panic!("what is {other}?"),
        }
        println!("done");
    }
}

fn sleeper() -> (Sender<()>, JoinHandle<()>) {
    let (wake, woken) = channel();
    let body = move || {
        let _ = woken.recv();
    };
    let sleeper = std::thread::Builder::new().stack_size(64 << 10).spawn(body).unwrap();
    (wake, sleeper)
}

/// Writes to so many pages that were not used before.
fn touch(pages: usize) {
    let page = rustix::param::page_size();
    // Never freed: a later call must not get the same memory.
    let memory: &mut Vec<u8> = Box::leak(Box::new(Vec::with_capacity(pages * page)));
    for byte in memory.spare_capacity_mut().iter_mut().step_by(page) {
        std::hint::black_box(byte.write(1));
    }
}

/// Computes until so much CPU time has passed.
fn burn(time: Duration) {
    let now = || Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap();
    let end = now() + time;
    while now() < end {
        std::hint::spin_loop();
    }
}

/// The program as a child; killed when dropped.
pub struct Worker {
    child: Child,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Worker {
    pub fn start() -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.arg(WORKER).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let orders = child.stdin.take().unwrap();
        let answers = BufReader::new(child.stdout.take().unwrap());
        Self { child, orders, answers }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Gives an order and waits until it is done.
    pub fn order(&mut self, order: &str) {
        writeln!(self.orders, "{order}").unwrap();
        let mut answer = String::new();
        self.answers.read_line(&mut answer).unwrap();
        assert_eq!(answer, "done\n");
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
