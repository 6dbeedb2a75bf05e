//! A program of threads that end as soon as they began, for testing what
//! managing short lives costs and leaves behind.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread::Builder;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::Error;
use crate::work::{Stop, calculate};

/// Between looks at how many threads are due.
const PAUSE: Duration = Duration::from_millis(1);

/// ChurnOptions of a run.
#[derive(Debug, Clone)]
pub struct ChurnOptions {
    /// Threads to start per second; what comes late is made up for.
    pub per_s: f64,
    /// Iterations that each does before it ends.
    pub work: u64,
    /// How long.
    pub duration: Duration,
}

/// The result; the JSON form of `churn --json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Threads asked for, per second.
    pub per_s: f64,
    /// Threads that were born and ended.
    pub threads: u64,
    /// Seconds from the first to the end.
    pub elapsed_s: f64,
}

/// Starts threads at the rate asked for, and waits for each.
///
/// # Errors
/// When the system refuses a thread.
pub fn run(options: &ChurnOptions, stop: &Arc<AtomicBool>) -> Result<Report, Error> {
    let begin = Instant::now();
    let stop = Stop::new(begin.checked_add(options.duration), Arc::clone(stop));
    let mut threads: u64 = 0;
    while !stop.reached() {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
        let due = (begin.elapsed().as_secs_f64() * options.per_s) as u64;
        let mut batch = Vec::new();
        while threads < due && batch.len() < 64 {
            let work = options.work;
            let builder = Builder::new().stack_size(64 * 1024);
            batch.push(builder.spawn(move || calculate(work, 1)).map_err(Error::Thread)?);
            threads += 1;
        }
        for thread in batch {
            // They run nothing that can panic.
            let _ = thread.join();
        }
        if threads >= due {
            std::thread::sleep(PAUSE);
        }
    }
    Ok(Report { per_s: options.per_s, threads, elapsed_s: begin.elapsed().as_secs_f64() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_born_and_end() {
        let options = ChurnOptions { per_s: 200.0, work: 5, duration: Duration::from_millis(300) };
        let report = run(&options, &Arc::new(AtomicBool::new(false))).unwrap();
        assert!(report.threads >= 1, "{report:?}");
        assert!(report.elapsed_s >= 0.3, "{report:?}");
    }
}
