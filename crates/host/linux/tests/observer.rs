//! The host as a machine that is only watched, on real processes.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::io;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use symbiont_linux::launch::Wake;
use symbiont_linux::machine::{CountOptions, Observer, Wait};
use symbiont_linux::observe::{WatchError, WatchOptions};
use symbiont_machine::{Change, Lifecycle, Machine, Move, Outcome, Sample, Target};
use symbiont_topology::HostTopology;

const QUANTUM: Duration = Duration::from_millis(5);

struct Sleep;

impl Wait for Sleep {
    fn wait(&mut self, timeout: Duration) -> io::Result<Wake> {
        std::thread::sleep(timeout);
        Ok(Wake::Timeout)
    }
}

/// A child that is killed at the end of its test.
struct Busy(Child);

impl Busy {
    fn start() -> Self {
        let mut command = Command::new("sh");
        Self(command.args(["-c", "while :; do :; done"]).stdin(Stdio::null()).spawn().unwrap())
    }

    fn status(&self, field: &str) -> String {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.0.id())).unwrap();
        status.lines().find(|line| line.starts_with(field)).unwrap().to_owned()
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn observer() -> Observer<Sleep> {
    let (host, watch) = (HostTopology::read().unwrap(), WatchOptions::default());
    Observer::new(host, watch, CountOptions::default(), Sleep).unwrap()
}

fn sample_until(
    observer: &mut Observer<Sleep>,
    what: &str,
    holds: impl Fn(&Sample) -> bool,
) -> Sample {
    let begin = Instant::now();
    loop {
        let sample = observer.sample().unwrap();
        if holds(&sample) {
            return sample;
        }
        assert!(begin.elapsed() < Duration::from_secs(60), "never {what}: {sample:?}");
        observer.wait(QUANTUM).unwrap();
    }
}

#[test]
fn an_observer_changes_nothing() {
    let (mut observer, busy) = (observer(), Busy::start());
    let before = busy.status("Cpus_allowed:");
    let program = observer.add_program("busy");
    observer.enrol_in(program, busy.0.id()).unwrap();
    assert_eq!(observer.program_of(busy.0.id()), Some(program));
    let sample = sample_until(&mut observer, "settled", |sample| {
        sample.threads.first().is_some_and(|thread| thread.lifecycle == Lifecycle::Settled)
    });
    let thread = &sample.threads[0];
    let online = observer.topology().cpus();
    assert!(!thread.allowed.intersection(&online).is_empty() && !thread.run_time.is_zero());
    let target = Target::Cpus(thread.allowed.first().into_iter().collect());
    let asked = Move { thread: thread.id, change: Change::Affinity(target) };
    assert_eq!(observer.apply(&[asked]).unwrap(), [Outcome::NotEnforced]);
    assert_eq!(busy.status("Cpus_allowed:"), before);
}

#[test]
fn an_observer_samples_threads_until_they_end() {
    let (mut observer, busy) = (observer(), Busy::start());
    let program = observer.add_program("busy");
    observer.enrol_in(program, busy.0.id()).unwrap();
    sample_until(&mut observer, "seen", |sample| sample.threads.len() == 1);
    let process = busy.0.id();
    drop(busy);
    sample_until(&mut observer, "gone", |sample| sample.threads.is_empty());
    let refused = observer.enrol_in(program, process);
    assert!(matches!(refused, Err(WatchError::NoSuchProcess { .. })), "{refused:?}");
}
