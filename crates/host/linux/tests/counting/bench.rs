//! The host as a machine that counts by the stand-in catalogue.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use symbiont_counters::catalogue::Catalogue;
use symbiont_linux::launch::Wake;
use symbiont_linux::machine::{CountOptions, Keeping, LinuxMachine, MachineOptions, Wait};
use symbiont_linux::observe::WatchOptions;
use symbiont_linux::perf::{Sharing, support};
use symbiont_machine::{GroupCounts, GroupReading, Machine, Sample, Signal, Signals, ThreadSample};
use symbiont_topology::HostTopology;
use tempfile::TempDir;

use crate::worker::Worker;

const QUANTUM: Duration = Duration::from_millis(5);
/// No wait in these tests is longer; all but the broken end much sooner.
const TIMEOUT: Duration = Duration::from_secs(60);

pub struct Sleep;

impl Wait for Sleep {
    fn wait(&mut self, timeout: Duration) -> io::Result<Wake> {
        std::thread::sleep(timeout);
        Ok(Wake::Timeout)
    }
}

/// A worker and the machine that watches it.
pub struct CountingBench {
    pub machine: LinuxMachine<Sleep>,
    pub worker: Worker,
    _state: TempDir,
}

/// Prints why a test cannot run here; use as `return skip("...")`.
pub fn skip(why: &str) {
    eprintln!("skipped: {why}");
}

/// Can software events be counted here? Else says that a test is skipped.
pub fn can_count() -> bool {
    let support = support();
    if let Err(error) = &support.software {
        skip(&error.to_string());
    }
    support.software.is_ok()
}

pub fn stand_in() -> CountOptions {
    let catalogue = Catalogue::parse("stand-in", include_str!("stand-in.toml")).unwrap();
    CountOptions { catalogue: Some(Arc::new(catalogue)), ..CountOptions::default() }
}

impl CountingBench {
    /// Counts for these signals.
    pub fn new(signals: &[Signal], sharing: Sharing) -> Self {
        let mut bench = Self::set(CountOptions { sharing, ..stand_in() });
        let wanted: Signals = signals.iter().copied().collect();
        bench.machine.measure(&wanted);
        bench
    }

    /// Measures nothing yet.
    pub fn set(counting: CountOptions) -> Self {
        let worker = Worker::start();
        let state = tempfile::tempdir().unwrap();
        let state_dir = state.path().join("state");
        let options = MachineOptions {
            state_dir,
            watch: WatchOptions::default(),
            counting,
            keeping: Keeping::default(),
        };
        let host = HostTopology::read().unwrap();
        let mut machine =
            LinuxMachine::new(host, options, Sleep).map_err(|(error, _)| error).unwrap();
        machine.enrol("worker", worker.pid()).unwrap();
        Self { machine, worker, _state: state }
    }

    /// The sample at the end of a quantum.
    pub fn next(&mut self) -> Sample {
        self.machine.wait(QUANTUM).unwrap();
        self.machine.sample().unwrap()
    }

    /// Samples until one fulfils the condition.
    pub fn until(&mut self, what: &str, mut holds: impl FnMut(&Sample) -> bool) -> Sample {
        let begin = Instant::now();
        loop {
            let sample = self.next();
            if holds(&sample) {
                return sample;
            }
            assert!(begin.elapsed() < TIMEOUT, "never {what}: {sample:?}");
        }
    }

    /// The worker's main thread in a sample.
    pub fn main_thread<'a>(&self, sample: &'a Sample) -> &'a ThreadSample {
        let pid = self.worker.pid();
        sample.threads.iter().find(|thread| thread.id.thread == pid).unwrap()
    }

    /// Samples until the main thread is counted.
    pub fn until_counted(&mut self) -> Sample {
        let pid = self.worker.pid();
        self.until("counted", |sample| {
            let main = sample.threads.iter().find(|thread| thread.id.thread == pid);
            main.is_some_and(|main| main.counts.iter().all(Result::is_ok))
        })
    }
}

/// What a group counted of an event.
pub fn count(sample: &Sample, counts: &[GroupCounts], event: &str) -> u64 {
    let counting = sample.counting.as_ref().unwrap();
    let mut found = counting.groups.iter().zip(counts).filter_map(|(group, counts)| {
        let place = group.events.iter().position(|known| &**known == event)?;
        Some(counts.as_ref().unwrap().counts[place])
    });
    found.next().unwrap_or_else(|| panic!("no group counts {event}"))
}

pub fn reading(counts: &GroupCounts) -> &GroupReading {
    counts.as_ref().unwrap()
}
