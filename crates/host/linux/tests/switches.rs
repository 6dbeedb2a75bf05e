//! The scheduler's tracepoints on this machine; where they may not be read, the
//! tests say so and pass.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a failed test panics")]

use std::collections::BTreeMap;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use symbiont_linux::switches::{Event, Kind, Reader, ReadyThreads};
use symbiont_topology::{HostTopology, PuId};

/// Waits until something is so, however busy the machine is.
fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < Duration::from_secs(60), "never saw {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// What was reported.
#[derive(Debug, Default)]
struct Reported {
    ready: ReadyThreads,
    /// Times that each thread was woken.
    wakeups: BTreeMap<u32, u64>,
}

impl Reported {
    fn note(&mut self, event: &Event) {
        self.ready.apply(event);
        if let Kind::Wakeup { thread } = event.kind {
            *self.wakeups.entry(thread).or_default() += 1;
        }
    }
}

type Shared = Arc<Mutex<Reported>>;

/// A reader that keeps count, if tracepoints may be read here.
fn reader() -> Option<(Reader, Shared)> {
    let reported = Shared::default();
    let theirs = Arc::clone(&reported);
    let cpus = HostTopology::read().expect("a topology").cpus();
    let sink = move |events: &[Event], _| {
        let mut reported = theirs.lock().expect("no panic");
        events.iter().for_each(|event| reported.note(event));
    };
    match Reader::start(&cpus, sink) {
        Ok(reader) => Some((reader, reported)),
        Err(why) => {
            eprintln!("skipped: {why}");
            None
        }
    }
}

/// Runs the calling thread here only.
fn pin(cpu: PuId) {
    let mut cpus = rustix::thread::CpuSet::new();
    cpus.set(usize::try_from(cpu.0).expect("a small number"));
    rustix::thread::sched_setaffinity(None, &cpus).expect("a CPU of this machine");
}

/// Wherever it sleeps, and whatever wakes it there.
#[test]
fn a_thread_that_sleeps_and_wakes_is_seen() {
    let cpus: Vec<_> = HostTopology::read().expect("a topology").cpus().iter().collect();
    for (&waker, &sleeper) in cpus.iter().zip(cpus.iter().cycle().skip(1)) {
        pin(waker);
        sleeps_and_wakes_on(sleeper);
    }
}

fn sleeps_and_wakes_on(cpu: PuId) {
    let Some((reader, reported)) = reader() else { return };
    let (number, numbered) = channel();
    let (wake, woken) = channel::<()>();
    let thread = std::thread::spawn(move || {
        pin(cpu);
        let this = rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
        number.send(this).expect("a listener");
        woken.recv().expect("a wake-up");
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_millis(30) {}
        woken.recv().expect("another wake-up");
    });
    let thread_number = numbered.recv().expect("a number");
    let is = || reported.lock().expect("no panic").ready.is_ready(thread_number);
    let wakeups = || reported.lock().expect("no panic").wakeups.get(&thread_number).copied();
    eventually("it asleep", || is() == Some(false));
    let before = time(&reported, thread_number);
    let woken_before = wakeups();
    wake.send(()).expect("a thread");
    eventually("it woken", || wakeups() > woken_before);
    eventually("it awake", || is() == Some(true) || time(&reported, thread_number) > before);
    eventually("it asleep again", || is() == Some(false));
    // It was ready for as long as it ran, at least.
    let worked = time(&reported, thread_number) - before;
    assert!(worked >= Duration::from_millis(29), "{worked:?}");
    wake.send(()).expect("a thread");
    thread.join().expect("no panic");
    assert_eq!(reader.lost(), 0);
}

fn time(reported: &Shared, thread: u32) -> Duration {
    // Asleep: the moment that is asked for does not matter.
    let now = symbiont_machine::Timestamp(0);
    reported.lock().expect("no panic").ready.ready_time(thread, now).unwrap_or_default()
}

/// Its own switches would wake the reader for ever: the kernel leaves them out.
#[test]
fn the_reader_does_not_report_itself() {
    let reported = Arc::new(Mutex::new((0u64, Vec::new())));
    let theirs = Arc::clone(&reported);
    let cpus = HostTopology::read().expect("a topology").cpus();
    let sink = move |events: &[Event], _| {
        let this = rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
        let mut reported = theirs.lock().expect("no panic");
        reported.0 += events.len() as u64;
        reported.1.extend(events.iter().copied().filter(|event| match event.kind {
            Kind::Switch { from, to, .. } => from == this || (from == 0 && to == this),
            Kind::Wakeup { thread } => thread == this,
        }));
    };
    let reader = match Reader::start(&cpus, sink) {
        Ok(reader) => reader,
        Err(why) => {
            eprintln!("skipped: {why}");
            return;
        }
    };
    eventually("a hundred events", || reported.lock().expect("no panic").0 > 100);
    drop(reader);
    assert_eq!(reported.lock().expect("no panic").1, []);
}
