//! A bare loop that watches this process's own threads.
//!
//! Part of the cost of managing is unavoidable for any manager: to wake, and to
//! have the kernel write two files for each thread. This does just that, so
//! that this part can be measured separately, on the same machine and in the same minute.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The cost of watching.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Watched {
    /// Rounds of reading.
    pub quanta: u64,
    /// Threads read, summed over the rounds.
    pub thread_quanta: u64,
    /// CPU time of the loop, in nanoseconds, waiting for the next round
    /// included; absent where the kernel does not report it.
    pub cpu_ns: Option<u64>,
}

/// The kept-open `stat` and `schedstat` of the threads that there are.
#[derive(Debug)]
pub(crate) struct Watch {
    files: Vec<File>,
    threads: u64,
    began: Option<u64>,
    quanta: u64,
    pub period: Duration,
}

impl Watch {
    /// Opens the files of all threads that stand now; the calling thread is
    /// the one whose CPU time counts.
    pub fn start(period: Duration) -> Self {
        let tasks = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
        let files: Vec<[File; 2]> = tasks
            .filter_map(|task| {
                let open = |file| File::open(task.path().join(file)).ok();
                Some([open("stat")?, open("schedstat")?])
            })
            .collect();
        let threads = files.len() as u64;
        let files = files.into_iter().flatten().collect();
        Self { files, threads, began: cpu_ns(), quanta: 0, period }
    }

    /// Reads all files once.
    pub fn read(&mut self) {
        let mut buffer = [0; 1024];
        for file in &self.files {
            // A thread that is gone has nothing to read.
            let _ = file.read_at(&mut buffer, 0);
        }
        self.quanta += 1;
    }

    /// The cost since the start.
    pub fn end(self) -> Watched {
        let used = cpu_ns().zip(self.began).map(|(now, began)| now.saturating_sub(began));
        Watched { quanta: self.quanta, thread_quanta: self.quanta * self.threads, cpu_ns: used }
    }
}

/// CPU time of the calling thread. The kernel brings it up to date when the
/// thread is switched out and at ticks: at most 10 ms behind.
fn cpu_ns() -> Option<u64> {
    let text = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_round_reads_every_thread() {
        let mut watch = Watch::start(Duration::from_millis(1));
        assert!(watch.threads >= 1);
        let threads = watch.threads;
        (0..3).for_each(|_| watch.read());
        let watched = watch.end();
        assert_eq!((watched.quanta, watched.thread_quanta), (3, 3 * threads));
    }
}
