//! Threads that carry out jobs.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use symbiont_linux::perf::{GroupOptions, Support, support};
use symbiont_machine::ThreadId;

/// Prints why a test cannot run here; use as `return skip("...")`.
pub fn skip(why: &str) {
    eprintln!("skipped: {why}");
}

/// What can be counted here; none, and said so, if nothing can.
pub fn counters() -> Option<Support> {
    let support = support();
    if let Err(error) = &support.software {
        skip(&error.to_string());
        return None;
    }
    Some(support)
}

/// How groups are opened here; none, and said so, if none can be.
pub fn options() -> Option<GroupOptions> {
    counters().map(|support| support.options())
}

type Job = Box<dyn FnOnce() + Send>;

/// A thread that sleeps but for the jobs that it is given.
pub struct Worker {
    pub number: u32,
    jobs: Option<Sender<Job>>,
    thread: Option<JoinHandle<()>>,
}

impl Worker {
    pub fn spawn() -> Self {
        let (jobs, todo): (_, Receiver<Job>) = channel();
        let (sender, number) = channel();
        let body = move || {
            sender.send(rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs()).unwrap();
            for job in todo {
                job();
            }
        };
        let thread = std::thread::Builder::new().stack_size(128 << 10).spawn(body).unwrap();
        Self { number: number.recv().unwrap(), jobs: Some(jobs), thread: Some(thread) }
    }

    /// Begins a job; its result comes later.
    pub fn begin<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Receiver<T> {
        let (sender, result) = channel();
        let job = Box::new(move || drop(sender.send(job())));
        self.jobs.as_ref().unwrap().send(job).unwrap();
        result
    }

    /// Does a job and gives its result.
    pub fn run<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> T {
        self.begin(job).recv().unwrap()
    }

    pub fn id(&self) -> ThreadId {
        let process = std::process::id();
        ThreadId { process, thread: self.number, born: 0, generation: 0 }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        drop(self.jobs.take());
        let _ = self.thread.take().unwrap().join();
    }
}

/// CPU time of the calling thread.
pub fn cpu_time() -> Duration {
    clock_gettime(ClockId::ThreadCPUTime).try_into().unwrap()
}

/// Computes until so much CPU time has passed; gives what really passed.
pub fn burn(time: Duration) -> Duration {
    let start = cpu_time();
    loop {
        let passed = cpu_time() - start;
        if passed >= time {
            return passed;
        }
        std::hint::spin_loop();
    }
}
