//! The scheduler's tracepoints on this machine; where they may not be read, the
//! tests say so and pass.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a failed test panics")]

use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use symbiont_linux::switches::{Event, Kind, Reader, ReadyThreads};
use symbiont_topology::HostTopology;

/// Waits until something is so, however busy the machine is.
fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < Duration::from_secs(60), "never saw {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

type Shared = Arc<Mutex<ReadyThreads>>;

/// A reader that keeps count, if tracepoints may be read here.
fn reader() -> Option<(Reader, Shared)> {
    let ready = Shared::default();
    let theirs = Arc::clone(&ready);
    let cpus = HostTopology::read().expect("a topology").cpus();
    let sink = move |events: &[Event], _| {
        let mut ready = theirs.lock().expect("no panic");
        events.iter().for_each(|event| ready.apply(event));
    };
    match Reader::start(&cpus, sink) {
        Ok(reader) => Some((reader, ready)),
        Err(why) => {
            eprintln!("skipped: {why}");
            None
        }
    }
}

#[test]
fn a_thread_that_sleeps_and_wakes_is_seen() {
    let Some((reader, ready)) = reader() else { return };
    let (number, numbered) = channel();
    let (wake, woken) = channel::<()>();
    let thread = std::thread::spawn(move || {
        let this = rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
        number.send(this).expect("a listener");
        woken.recv().expect("a wake-up");
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_millis(30) {}
        woken.recv().expect("another wake-up");
    });
    let thread_number = numbered.recv().expect("a number");
    let is = || ready.lock().expect("no panic").is_ready(thread_number);
    eventually("it asleep", || is() == Some(false));
    let before = time(&ready, thread_number);
    wake.send(()).expect("a thread");
    eventually("it awake", || is() == Some(true) || time(&ready, thread_number) > before);
    eventually("it asleep again", || is() == Some(false));
    // It was ready for as long as it ran, at least.
    let worked = time(&ready, thread_number) - before;
    assert!(worked >= Duration::from_millis(29), "{worked:?}");
    wake.send(()).expect("a thread");
    thread.join().expect("no panic");
    assert_eq!(reader.lost(), 0);
}

fn time(ready: &Shared, thread: u32) -> Duration {
    // Asleep: the moment that is asked for does not matter.
    let now = symbiont_machine::Timestamp(0);
    ready.lock().expect("no panic").ready_time(thread, now).unwrap_or_default()
}

/// Its own switches would wake the reader for ever: the kernel leaves them out.
#[test]
fn the_reader_is_not_told_of_itself() {
    let told = Arc::new(Mutex::new((0u64, Vec::new())));
    let theirs = Arc::clone(&told);
    let cpus = HostTopology::read().expect("a topology").cpus();
    let sink = move |events: &[Event], _| {
        let this = rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
        let mut told = theirs.lock().expect("no panic");
        told.0 += events.len() as u64;
        told.1.extend(events.iter().copied().filter(|event| match event.kind {
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
    eventually("a hundred events", || told.lock().expect("no panic").0 > 100);
    drop(reader);
    assert_eq!(told.lock().expect("no panic").1, []);
}
