//! The thread that reads tracepoint records.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime};
use symbiont_machine::Timestamp;
use symbiont_topology::CpuSet;

use super::format::{Layout, SwitchRecord};
use super::ring::Ring;
use super::{Event, SwitchError, open};
use crate::observe::run_at_realtime_priority;

/// The reader looks at most this often: it never takes more than a few per cent
/// of a hardware thread, whatever happens.
pub const PAUSE: Duration = Duration::from_micros(100);
/// How soon it notices that it is to end.
const SLICE: Duration = Duration::from_millis(50);

/// Reads the scheduler's tracepoints until it is dropped.
#[derive(Debug)]
pub struct Reader {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    realtime: Result<(), Errno>,
}

#[derive(Debug, Default)]
struct Shared {
    end: AtomicBool,
    lost: AtomicU64,
}

impl Reader {
    /// Starts to read on these hardware threads. `sink` is given the events that
    /// came since its last call, those of each hardware thread in order, and the
    /// moment at which they were read; it is called on the reader's thread.
    ///
    /// # Errors
    /// When the tracepoints cannot be opened.
    pub fn start(
        cpus: &CpuSet,
        sink: impl FnMut(&[Event], Timestamp) + Send + 'static,
    ) -> Result<Self, SwitchError> {
        let shared = Arc::new(Shared::default());
        let (cpus, theirs) = (cpus.clone(), Arc::clone(&shared));
        let (sender, receiver) = mpsc::channel();
        let body = move || {
            let realtime = run_at_realtime_priority();
            let this = rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
            match open::open(&cpus, this) {
                Ok((layout, rings)) => {
                    if sender.send(Ok(realtime)).is_ok() {
                        read(&layout, rings, sink, &theirs);
                    }
                }
                // The thread that asked hears it, or does not want to know any more.
                Err(error) => drop(sender.send(Err(error))),
            }
        };
        let thread = std::thread::Builder::new().name("switches".into()).spawn(body);
        let thread = thread.map_err(|error| {
            SwitchError::Thread(Errno::from_io_error(&error).unwrap_or(Errno::AGAIN))
        })?;
        match receiver.recv() {
            Ok(Ok(realtime)) => Ok(Self { shared, thread: Some(thread), realtime }),
            Ok(Err(error)) => Err(error),
            Err(mpsc::RecvError) => Err(SwitchError::Thread(Errno::AGAIN)),
        }
    }

    /// Events that were lost so far for want of room.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.shared.lost.load(Ordering::Relaxed)
    }

    /// Does it run at real-time priority? If not, why.
    pub fn realtime(&self) -> Result<(), Errno> {
        self.realtime
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.shared.end.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic in the sink has been reported by then.
            let _ = thread.join();
        }
    }
}

fn read(
    layout: &Layout,
    mut rings: Vec<Ring>,
    mut sink: impl FnMut(&[Event], Timestamp),
    shared: &Shared,
) {
    let mut events = Vec::new();
    let slice = Timespec::try_from(SLICE).ok();
    while !shared.end.load(Ordering::Relaxed) {
        let mut waiting: Vec<PollFd<'_>> =
            rings.iter().map(|ring| PollFd::new(ring, PollFlags::IN)).collect();
        // An interrupted wait is a short one.
        let _ = poll(&mut waiting, slice.as_ref());
        drop(waiting);
        for ring in &mut rings {
            ring.drain(|record| match layout.decode(record) {
                SwitchRecord::Event(event) => events.push(event),
                SwitchRecord::Lost(count) => {
                    shared.lost.fetch_add(count, Ordering::Relaxed);
                }
                SwitchRecord::Other => {}
            });
        }
        if !events.is_empty() {
            events.sort_by_key(|event| event.at);
            sink(&events, now());
            events.clear();
        }
        std::thread::sleep(PAUSE);
    }
}

fn now() -> Timestamp {
    let now = clock_gettime(ClockId::Monotonic);
    let seconds = u64::try_from(now.tv_sec).unwrap_or_default();
    Timestamp(seconds * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap_or_default())
}
