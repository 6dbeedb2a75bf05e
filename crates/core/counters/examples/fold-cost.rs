//! What it costs to derive measurements from counts: time per thread and
//! quantum, for the CPI stack, IPC and Top-Down categories of some machines.
//!
//! `cargo run --release -p symbiont-counters --example fold-cost`

use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use symbiont_counters::History;
use symbiont_counters::catalogue::Catalogue;
use symbiont_machine::{
    Counting, GroupReading, Lifecycle, ProgramId, RunState, Sample, Signal, Signals, ThreadId,
    ThreadSample, Timestamp,
};

const QUANTA: u64 = 200;

fn main() -> Result<(), Box<dyn Error>> {
    println!(
        "{:<16} {:>8} {:>10} {:>8} {:>14}",
        "catalogue", "events", "formulas", "threads", "us/thread"
    );
    for name in ["power8", "skylake-sp", "zen4"] {
        let catalogue = Catalogue::named(name).ok_or("no such catalogue")??;
        let wanted = Signals::from([Signal::Ipc, Signal::CpiStack, Signal::TopB2M3L]);
        let counting = Arc::new(catalogue.counting(&wanted));
        let events: usize = counting.groups.iter().map(|group| group.events.len()).sum();
        for threads in [16, 128, 1024] {
            let (time_taken, formulas) = fold(&counting, threads)?;
            let each = time_taken.as_secs_f64() * 1e6 / f64::from(threads) / QUANTA as f64;
            println!("{name:<16} {events:>8} {formulas:>10} {threads:>8} {each:>14.2}");
        }
    }
    Ok(())
}

/// Time for all quanta, and formulas derived of each thread.
fn fold(counting: &Arc<Counting>, threads: u32) -> Result<(Duration, usize), Box<dyn Error>> {
    let mut history = History::default();
    let mut time_taken = Duration::ZERO;
    let mut formulas = 0;
    for quantum in 1..=QUANTA {
        let sample = sample(counting, threads, quantum)?;
        let begin = Instant::now();
        let known = history.take(&sample)?;
        time_taken += begin.elapsed();
        formulas = known.values().next().map_or(0, |measured| measured.iter().count());
    }
    Ok((time_taken, formulas))
}

fn sample(counting: &Arc<Counting>, threads: u32, quantum: u64) -> Result<Sample, Box<dyn Error>> {
    let time = Duration::from_millis(100 * quantum);
    let limit = Arc::new("0-7".parse()?);
    let thread = |thread: u32| ThreadSample {
        id: ThreadId { process: 1, thread, born: 0, generation: 0 },
        program: ProgramId(0),
        state: RunState::Runnable,
        run_time: time,
        wait_time: Duration::ZERO,
        switches: 0,
        cpu: None,
        allowed: Arc::clone(&limit),
        lifecycle: Lifecycle::Settled,
        cookie: None,
        counts: counting
            .groups
            .iter()
            .map(|group| {
                let counts = (1u64..).zip(&group.events).map(|(n, _)| quantum * (1_000_000 / n));
                Ok(GroupReading {
                    opened: Timestamp(0),
                    enabled: time,
                    running: time / 2,
                    counts: counts.collect(),
                })
            })
            .collect(),
    };
    Ok(Sample {
        at: Timestamp(quantum),
        threads: (0..threads).map(thread).collect(),
        counting: Some(Arc::clone(counting)),
        ..Sample::default()
    })
}
