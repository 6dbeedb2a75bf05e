//! One run: threads that are counted, and what that takes.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use symbiont_linux::perf::{
    Alive, Group, GroupOptions, OpenError, Sharing, Spec, Watch, WatchOptions, descriptor_budget,
    support,
};
use symbiont_machine::ThreadId;

use super::plan::{Activity, Load};
use symbiont_campaign::harness::Error;
use symbiont_campaign::{Finished, InRound};

/// Events that each thread is counted by.
pub const EVENTS: u32 = 6;
/// Descriptors that this process needs besides those of counters.
const OTHERS: usize = 64;

/// What counting took. Times are CPU time of the counting thread in µs, for
/// each thread that was counted.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Costs {
    /// Threads that were counted: fewer than there were if descriptors ran out.
    pub counted: u32,
    /// Opening six events in two groups.
    pub open_us: f64,
    /// Reading both groups at a quantum's end, all bookkeeping included.
    pub read_us: f64,
    /// Stopping one group and starting the other.
    pub turn_us: f64,
    /// Closing.
    pub close_us: f64,
    /// Memory of the kernel for each event, in bytes; none if it cannot be read.
    pub event_bytes: Option<f64>,
}

/// A finished run.
pub type Done = Finished<InRound<Load>, Costs>;

/// Carries out one run.
///
/// # Errors
/// When nothing can be counted here, or threads cannot be started.
pub fn measure(load: Load, quanta: u32) -> Result<Costs, Error> {
    let support = support();
    if let Err(error) = &support.software {
        return Err(Error::Evaluation(format!("no event can be counted: {}", error.reason)));
    }
    let threads = (0..load.threads).map(|_| Thread::spawn()).collect::<Result<Vec<_>, _>>()?;
    let stir = || {
        if load.activity == Activity::Active {
            threads.iter().for_each(Thread::stir);
        }
    };
    let group = support.options();
    let alive: Vec<_> = threads.iter().map(Thread::alive).collect();
    let options = WatchOptions {
        group,
        sharing: Sharing::Kernel,
        descriptors: descriptor_budget(OTHERS),
        stay: 2,
    };
    let mut watch = Watch::new(groups().into(), options);
    // Threads are opened when they have outlived a quantum.
    watch.end_quantum(&alive);
    let memory = kernel_memory();
    let open = cpu_time_of(|| drop(watch.end_quantum(&alive)));
    let memory = kernel_memory().zip(memory).map(|(after, before)| after - before);
    let counted = u32::try_from(watch.watched()).unwrap_or(u32::MAX);
    if counted == 0 {
        return Err(Error::Evaluation("no descriptor is left (raise RLIMIT_NOFILE)".to_owned()));
    }
    let mut read = Duration::ZERO;
    for _ in 0..quanta {
        stir();
        read += cpu_time_of(|| drop(watch.end_quantum(&alive)));
    }
    let close = cpu_time_of(|| drop(watch));
    let threads = threads.get(..counted as usize).unwrap_or(&threads);
    let turn = turns(threads, group, quanta, &stir)?;
    let each = |time: Duration| time.as_secs_f64() * 1e6 / f64::from(counted);
    Ok(Costs {
        counted,
        open_us: each(open),
        read_us: each(read) / f64::from(quanta),
        turn_us: each(turn) / f64::from(quanta),
        close_us: each(close),
        event_bytes: memory.map(|bytes| bytes / f64::from(counted * EVENTS)),
    })
}

/// Six events that every kernel has, three of them counted in the kernel.
fn groups() -> [Vec<Spec>; 2] {
    [
        vec![Spec::task_clock(), Spec::context_switches(), Spec::migrations()],
        vec![Spec::page_faults(), Spec::alignment_faults(), Spec::emulation_faults()],
    ]
}

/// Time for stopping one group of each thread and starting the other.
fn turns(
    threads: &[Thread],
    group: GroupOptions,
    quanta: u32,
    stir: &dyn Fn(),
) -> Result<Duration, Error> {
    let error = |error: &dyn std::fmt::Display| Error::Evaluation(error.to_string());
    let pair = |thread: &Thread| -> Result<[Group; 2], OpenError> {
        let [first, second] = groups();
        let waiting = GroupOptions { enabled: false, ..group };
        Ok([
            Group::open(thread.number, &first, group)?,
            Group::open(thread.number, &second, waiting)?,
        ])
    };
    let pairs = threads.iter().map(pair).collect::<Result<Vec<_>, _>>();
    let mut pairs = pairs.map_err(|why| error(&why))?;
    let mut time = Duration::ZERO;
    for _ in 0..quanta {
        stir();
        let mut turned = Ok(());
        time += cpu_time_of(|| {
            turned = pairs.iter().try_for_each(|[stop, start]| stop.disable().and(start.enable()));
        });
        turned.map_err(|why| error(&why))?;
        pairs.iter_mut().for_each(|pair| pair.reverse());
    }
    Ok(time)
}

fn cpu_time_of(work: impl FnOnce()) -> Duration {
    let now = || Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default();
    let start = now();
    work();
    now().saturating_sub(start)
}

/// Memory that the kernel cannot give back, in bytes.
fn kernel_memory() -> Option<f64> {
    let info = std::fs::read_to_string("/proc/meminfo").ok()?;
    let wanted = |line: &&str| line.starts_with("SUnreclaim:") || line.starts_with("Percpu:");
    let kib = |line: &str| line.split_whitespace().nth(1)?.parse::<f64>().ok();
    Some(info.lines().filter(wanted).filter_map(kib).sum::<f64>() * 1024.0)
}

/// A thread that sleeps, and runs for a moment when it is stirred.
struct Thread {
    number: u32,
    stir: Option<Sender<()>>,
    stirred: Receiver<()>,
    thread: Option<JoinHandle<()>>,
}

impl Thread {
    fn spawn() -> Result<Self, Error> {
        let (report, reported) = channel();
        let (stir, stirs) = channel::<()>();
        let (done, stirred) = channel();
        let body = move || {
            let _ = report.send(rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs());
            for () in stirs {
                let _ = done.send(());
            }
        };
        let failed = |source| Error::Start { program: "a thread".to_owned(), source };
        let thread =
            std::thread::Builder::new().stack_size(64 << 10).spawn(body).map_err(failed)?;
        let number = reported.recv().map_err(|_| failed(std::io::ErrorKind::NotFound.into()))?;
        Ok(Self { number, stir: Some(stir), stirred, thread: Some(thread) })
    }

    fn stir(&self) {
        // A thread that is gone does not answer.
        let _ = self.stir.as_ref().map(|stir| stir.send(()));
        let _ = self.stirred.recv();
    }

    fn alive(&self) -> Alive {
        let (process, thread) = (std::process::id(), self.number);
        Alive {
            thread: ThreadId { process, thread, born: 0, generation: 0 },
            run_time: Duration::ZERO,
        }
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        drop(self.stir.take());
        let _ = self.thread.take().map(JoinHandle::join);
    }
}
