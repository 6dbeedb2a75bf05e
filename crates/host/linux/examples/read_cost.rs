//! What watching costs: CPU time of this process per thread and read, in µs.
//!
//! `cargo run --release -p symbiont-linux --example read_cost`
//!
//! A child process holds 8, 64, 512 or 2,048 threads, which sleep all the time
//! or run a little in each quantum of 100 ms. The thread that waits for reports
//! is shown apart: its work depends on what the whole machine starts and ends.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use symbiont_linux::observe::{Choice, WatchOptions, Watcher, raise_descriptor_limit};
use symbiont_machine::ProgramId;

const QUANTUM: Duration = Duration::from_millis(100);
const READS: u32 = 20;

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    if let (Some(threads), Some(pause)) = (arguments.next(), arguments.next()) {
        return hold(threads.parse()?, Duration::from_millis(pause.parse()?));
    }
    raise_descriptor_limit()?;
    println!("CPU µs per thread and read; then µs per read for reports of the whole machine");
    println!("{:>8} {:>18} {:>18} {:>18}", "threads", "by reports", "by scanning", "reports");
    println!("{:>8} {:>9}{:>9} {:>9}{:>9}", "", "asleep", "active", "asleep", "active");
    for threads in [8, 64, 512, 2048] {
        let (mut line, mut reports) = (format!("{threads:>8} "), 0.0);
        for choice in [Choice::Best, Choice::Scan] {
            for pause in ["1000000", "100"] {
                let cost = cost(threads, pause, choice)?;
                line += &format!("{:>9.2}", cost.reading);
                reports += cost.reports / 2.0;
            }
            line.push(' ');
        }
        println!("{line} {reports:>17.0}");
    }
    Ok(())
}

/// CPU time in µs.
struct Cost {
    /// Of the thread that reads, per enrolled thread and read.
    reading: f64,
    /// Of the thread that waits for reports, per read.
    reports: f64,
}

/// The program: threads that run a little after each pause.
fn hold(threads: u32, pause: Duration) -> Result<(), Failure> {
    for number in 0..threads.saturating_sub(1) {
        let first = pause * number / threads;
        std::thread::Builder::new().stack_size(64 << 10).spawn(move || {
            std::thread::sleep(first.min(QUANTUM));
            loop {
                std::thread::sleep(pause);
            }
        })?;
    }
    println!("ready");
    std::io::stdin().lines().for_each(drop);
    Ok(())
}

fn cost(threads: u32, pause: &str, choice: Choice) -> Result<Cost, Failure> {
    let mut program = Command::new(std::env::current_exe()?)
        .args([&threads.to_string(), pause])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let output = program.stdout.take().ok_or("no output")?;
    BufReader::new(output).read_line(&mut String::new())?;
    let options = WatchOptions { choice, ..WatchOptions::default() };
    let mut watcher = Watcher::start(options, Box::new(()))?;
    watcher.enrol(ProgramId(0), program.id())?;
    let mut read = 0;
    for _ in 0..3 {
        read = watcher.read()?.len();
        std::thread::sleep(QUANTUM);
    }
    let before = (used(ClockId::ThreadCPUTime), used(ClockId::ProcessCPUTime));
    for _ in 0..READS {
        std::thread::sleep(QUANTUM);
        watcher.read()?;
    }
    let reading = used(ClockId::ThreadCPUTime) - before.0;
    let all = used(ClockId::ProcessCPUTime) - before.1;
    drop(program.stdin.take());
    program.wait()?;
    let per_read = |spent: Duration| spent.as_secs_f64() * 1e6 / f64::from(READS);
    Ok(Cost {
        reading: per_read(reading) / f64::from(u32::try_from(read)?),
        reports: per_read(all.saturating_sub(reading)),
    })
}

/// CPU time used so far.
fn used(clock: ClockId) -> Duration {
    Duration::try_from(clock_gettime(clock)).unwrap_or_default()
}
